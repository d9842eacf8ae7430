"""The studio over a night: killed, paused, on a full disk, in seven tabs, attacked from another port, under load."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, expect, sync_playwright
from tests.effort import tries
from tests.studio.running import CHROMIUM, QUIET, Running, Visitor, running, serious, wait

import quadrille as qd
from quadrille.studio import audit, files, jobs, users
from quadrille.studio.work import MOST_CELLS
from quadrille.study.job import Job as JobFile

pytestmark = [pytest.mark.nightly, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium found")]

LONG = """
[data]
file = "dataset:cps8d"
[search]
measures = ["exposed", "small_cells", "hellinger"]
[[grid]]
method = "RandomSwap"
swap = "singles and pairs"
pairs = [244, 488, 976, 2442]
seed = {seeds}
"""
SLOW = """
[search]
measures = ["exposed", "hellinger"]
[[grid]]
method = "DesignedSwap"
effort = 1
seeds = 40
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as play:
        made = play.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield made
        made.close()


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path / "home", "--jobs", "1") as made:
        yield made


def test_a_search_that_is_killed_again_and_again_ends_as_one_that_is_not(
    studio: Running, browser: Browser, tmp_path: Path
) -> None:
    """All of it is killed at random moments; the page finds it again each time, and no row differs at the end."""
    kills, moment = tries(3, 20), random.Random(1)
    text = LONG.format(seeds=list(range(1, 1 + 12 * kills)))
    project = studio.opened()
    job = studio.searching(project, text)
    visitor = Visitor(studio.address, browser)
    visitor.project = project.id
    page = visitor.go("search")
    landed = 0
    for _ in range(kills):
        before = studio.store.job(job.id).done
        with contextlib.suppress(AssertionError):
            wait(lambda before=before: studio.store.job(job.id).done > before or studio.store.job(job.id).over, 60)
        time.sleep(moment.uniform(0, 1))
        landed += not studio.store.job(job.id).over
        studio.kill()
        studio.start()
    studio.finished(job, 600)
    assert landed >= kills // 2, "most kills have hit a search"
    expect(page.get_by_text("Done.")).to_be_visible(timeout=60_000)
    held = qd.Study(studio.store.home.study(studio.store.studies(project.id)[0]))
    path = tmp_path / "job.toml"
    path.write_text(text, encoding="utf-8")
    read, data = JobFile.read(path), qd.datasets.cps8d()
    own = qd.search(data, read.recipes(data), read.measures, out=tmp_path / "study", progress=False)
    assert own.frame().drop("seconds").equals(held.frame().drop("seconds"))
    assert held.counts()["pending"] == 0


@pytest.mark.parametrize("text", [LONG.format(seeds=list(range(1, 401))), SLOW], ids=["random", "designed"])
def test_a_search_is_paused_and_cancelled_within_two_seconds(studio: Running, text: str) -> None:
    project = studio.opened()
    job = studio.searching(project, text)

    def state() -> str:
        return studio.store.job(job.id).state

    def within(wish: str, then: str) -> float:
        started = time.monotonic()
        studio.store.wish(studio.user, job.id, wish)
        wait(lambda: state() == then, 20)
        return time.monotonic() - started

    wait(lambda: state() == "running" and studio.store.job(job.id).done > 0)
    assert within("pause", "paused") <= 2
    done = studio.store.job(job.id).done
    time.sleep(1)
    assert studio.store.job(job.id).done == done
    assert within("resume", "running") <= 20
    wait(lambda: studio.store.job(job.id).done > done)
    assert within("cancel", "cancelled") <= 2


def test_a_session_that_ends_in_mid_search_is_told_and_begun_again_on_the_same_page(
    studio: Running, browser: Browser
) -> None:
    project = studio.opened()
    job = studio.searching(project, LONG.format(seeds=list(range(1, 301))))
    visitor = Visitor(studio.address, browser)
    visitor.project = project.id
    page = visitor.go("search")
    wait(lambda: studio.store.job(job.id).done > 0)
    studio.store.db.execute("DELETE FROM sessions")
    studio.kill()
    studio.start()  # the stream is cut, and asks again without a session
    expect(page.get_by_text("Your session has ended")).to_be_visible(timeout=30_000)
    page.get_by_role("link", name="Sign in and come back to this page").click()
    expect(page.get_by_text("You are not signed in")).to_be_visible()
    assert f"/projects/{project.id}/search" in page.url
    visitor.context.new_page().goto(studio.address)
    page.reload()
    expect(page.locator("#progress")).to_be_visible()
    studio.finished(job)
    expect(page.get_by_text("Done.")).to_be_visible(timeout=30_000)


def test_a_page_of_another_port_can_neither_change_nor_read_anything(studio: Running, browser: Browser) -> None:
    """The cookie goes to every port of the machine: the page of a neighbour's program must not profit from it."""
    visitor = Visitor(studio.address, browser)
    form = f'<form method="post" action="{studio.origin}/projects"><input name="name" value="foreign"></form>'

    class Neighbour(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(f"<!doctype html><title>n</title>{form}".encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Neighbour)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        page = visitor.context.new_page()
        page.goto(f"http://127.0.0.1:{server.server_address[1]}/")
        read = (
            "async (url) => { try { return await (await fetch(url, {credentials: 'include'})).text() } "
            "catch { return '' } }"
        )
        assert page.evaluate(read, f"{studio.origin}/api/v1/me") == ""
        post = (
            "async (url) => { try { await fetch(url, {method: 'POST', mode: 'no-cors', credentials: 'include', "
            "headers: {'Content-Type': 'text/plain'}, body: '{\"name\":\"foreign\"}'}) } catch { } }"
        )
        page.evaluate(post, f"{studio.origin}/api/v1/projects")
        with page.expect_navigation() as moved:
            page.evaluate("document.forms[0].submit()")
        assert moved.value.status in (401, 403)
    finally:
        server.shutdown()
    assert studio.store.projects(studio.user) == []


def test_seven_tabs_on_one_search_are_all_alive(studio: Running, browser: Browser) -> None:
    project = studio.opened()
    job = studio.searching(project, LONG.format(seeds=list(range(1, 101))))
    visitor = Visitor(studio.address, browser)
    visitor.project = project.id
    pages = [visitor.context.new_page() for _ in range(7)]
    for page in pages:
        page.goto(f"{studio.origin}/projects/{project.id}/search", wait_until="commit")
    for page in pages:
        expect(page.locator("[data-words]").first).to_have_text(re.compile(r"^[1-9][\d,]* of 14,400"), timeout=60_000)
    studio.finished(job)
    for page in pages:
        page.bring_to_front()
        expect(page.get_by_text("Done.")).to_be_visible(timeout=60_000)


def test_a_search_on_a_full_disk_says_so_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    """No file of the worker may grow beyond a size, as on a full disk; then it may."""
    home = tmp_path / "home"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with running(home, "--jobs", "1") as studio:
        project = studio.opened()
        (worker,) = _workers(studio.pid)
        resource.prlimit(worker, resource.RLIMIT_FSIZE, (300_000, hard))
        job = studio.searching(project, LONG.format(seeds=list(range(1, 101))))
        wait(lambda: studio.store.job(job.id).over, 120)
        found = studio.store.job(job.id)
        assert found.state == "failed" and str(home) not in found.message
        assert re.search("disk|room|too large|larger", found.message), found.message
        resource.prlimit(worker, resource.RLIMIT_FSIZE, (soft, hard))
        study = studio.store.studies(project.id)[0].id
        again = jobs.submit(studio.store, studio.user, project, "search", {"study": study})
        done = studio.finished(again)
        assert done.done == done.total > 1000


def _workers(parent: int) -> list[int]:
    """The processes that a process has started to work."""
    listed = subprocess.run(
        ["ps", "-o", "pid=,args=", "--ppid", str(parent)], capture_output=True, text=True, check=True
    )
    return [int(line.split()[0]) for line in listed.stdout.splitlines() if "quadrille.studio.worker" in line]


@pytest.mark.parametrize("ending", [".sav", ".dta", ".parquet"])
def test_files_with_labels_go_the_whole_way(studio: Running, browser: Browser, tmp_path: Path, ending: str) -> None:
    data = qd.datasets.cps8d()
    path = tmp_path / f"survey{ending}"
    subprocess.run(
        [sys.executable, "-m", "quadrille", "convert", "dataset:cps8d", str(path)], check=True, capture_output=True
    )
    visitor = Visitor(studio.address, browser)
    page = visitor.page
    page.get_by_label(re.compile("Name of the")).fill(f"From {ending}")
    page.get_by_role("button", name="Start").click()
    page.wait_for_url("**/data")
    page.set_input_files("#file", path)
    expect(page.get_by_text("What the studio takes each column for")).to_be_visible(timeout=90_000)
    expect(page.locator("dd").first).to_have_text(f"{data.n:,}")
    page.get_by_role("link", name="Roles →").click()
    page.get_by_role("button", name="edit Edu").click()
    expect(page.get_by_label("Order of categories, lowest first")).to_be_visible()
    assert visitor.complaints == []


def test_hostile_files_are_refused_in_words(studio: Running, tmp_path: Path) -> None:
    pl = pytest.importorskip("polars")
    huge = tmp_path / "huge.parquet"
    pl.select(pl.repeat(1, MOST_CELLS // 40, dtype=pl.Int8).alias("a")).with_columns(
        *(pl.col("a").alias(f"b{i}") for i in range(41))
    ).write_parquet(huge, compression="zstd")
    whole = huge.read_bytes()
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(whole[: len(whole) // 2])
    wide = tmp_path / "wide.csv"
    wide.write_text(",".join(f"c{i}" for i in range(10_001)) + "\n" + ",".join("1" * 10_001) + "\n", encoding="utf-8")
    for path, words in ((huge, "values are the most"), (cut, "not intact"), (wide, "more than 10,000 columns")):
        project = studio.store.create_project(studio.user, path.name)
        target = studio.store.home.project(project.id) / "source" / f"data{path.suffix}"
        shutil.copy(path, target)
        values = {"source": target.name, "file": path.name, "size": path.stat().st_size}
        project = studio.store.change_project(studio.user, project.id, "data opened", values)
        job = jobs.submit(studio.store, studio.user, project, "profile")
        wait(lambda job=job: studio.store.job(job.id).over, 120)
        found = studio.store.job(job.id)
        assert found.state == "failed" and words in found.message, (path.name, found.message)
        assert path.name in found.message


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_pages_of_admins_can_be_read_on_a_desk_and_a_phone(
    studio: Running, browser: Browser, scheme: Literal["light", "dark"]
) -> None:
    users.add(studio.store, "test", "anna", ["analyst"], None)
    users.add_token(studio.store, studio.user, "a program", "read", 1)
    visitor = Visitor(studio.address, browser)
    studio.store.db.execute("UPDATE users SET roles = 'admin' WHERE id = ?", (studio.user.id,))
    visitor.page.emulate_media(color_scheme=scheme)
    for width, height in ((1280, 850), (390, 844)):
        visitor.page.set_viewport_size({"width": width, "height": height})
        for path in ("account", "users", "retention", "audit"):
            answer = visitor.page.goto(f"{studio.origin}/{path}")
            assert answer is not None and answer.status == 200, path
            assert serious(visitor.page) == [], (path, width)
            wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            assert visitor.page.evaluate(wide) <= 0, (path, width)
    assert visitor.complaints == []


# --- load ------------------------------------------------------------------------------------------------------------


def test_a_thousand_jobs_of_a_hundred_users_survive_ten_kills(studio: Running) -> None:
    """Every job that was acknowledged is done, and none is there twice, although answers were lost."""
    people, each, kills = tries(10, 100), 10, tries(2, 10)
    store, tokens, projects = studio.store, [], []
    for number in range(people):
        user = users.add(store, "test", f"user{number}", ["analyst"], None)
        tokens.append(users.add_token(store, user, "load", "run", 1))
        project = files.open_bundled(store, user, store.create_project(user, "load"), "cps8d")
        projects.append(project.id)
    acknowledged: dict[str, set[int]] = {}
    host = urlsplit(studio.origin).netloc

    def ask(number: int) -> None:
        for turn in range(each):
            key = f"load-{number}-{turn}"
            head = {
                "Authorization": f"Bearer {tokens[number]}",
                "Idempotency-Key": key,
                "Content-Type": "application/json",
            }
            for _ in range(200):
                try:
                    connection = HTTPConnection(host, timeout=20)
                    connection.request("POST", f"/api/v1/projects/{projects[number]}/profiles", "{}", head)
                    answer = connection.getresponse()
                    body = answer.read()
                    connection.close()
                    if answer.status == 202:
                        acknowledged.setdefault(key, set()).add(json.loads(body)["job"])
                        break
                except (OSError, HTTPException):
                    pass
                time.sleep(0.1)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(people)]
    for thread in threads:
        thread.start()
    moment = random.Random(2)
    for _ in range(kills):
        time.sleep(moment.uniform(0.5, 3))
        studio.kill()
        studio.start()
    for thread in threads:
        thread.join(300)
    assert len(acknowledged) == people * each and all(len(found) == 1 for found in acknowledged.values())
    numbers = {number for found in acknowledged.values() for number in found}
    assert len(numbers) == people * each
    wait(lambda: store.db.execute("SELECT COUNT(*) FROM jobs WHERE state = 'done'").fetchone()[0] >= len(numbers), 900)
    rows = store.db.execute("SELECT state, COUNT(*) AS n FROM jobs GROUP BY state").fetchall()
    assert {row["state"]: row["n"] for row in rows} == {"done": people * each}
    ended = [e for e in audit.events(store.db) if e.action == "profile done"]
    assert len(ended) == people * each, "none was done twice in effect"
    assert audit.verify(store.db).broken is None
    status = Path(f"/proc/{studio.pid}/status").read_text(encoding="ascii")
    held = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) / 1024
    assert held <= 120, f"{held:.0f} MB"


# --- the description of the interface --------------------------------------------------------------------------------


SCHEMATHESIS = """
[parameters]
"path.project" = "{project}"
[checks.positive_data_acceptance]
expected-statuses = ["2xx", "401", "403", "404", "409", "412", "415", "429"]
[[operations]]
include-name = "DELETE /api/v1/projects/{{project}}"
enabled = false
[[operations]]
include-path-regex = "/(source|codebook|job|policy|comparisons|forecast|policy-checks|reports|searches|risks|users)$"
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", "401", "403", "404", "409", "412", "415", "422", "429"]
"""
"""One project for all, which is not removed. What is in a file, a study or a document no schema can say: 422."""


def test_schemathesis_finds_nothing(studio: Running, tmp_path: Path) -> None:
    """All its checks on the whole description, as analyst and as admin; it comes into an environment of its own."""
    home = tmp_path / "schemathesis"
    made = subprocess.run([sys.executable, "-m", "venv", str(home)], capture_output=True, check=False)
    pip = [str(home / "bin" / "pip"), "install", "--quiet", "schemathesis==4.32.5"]
    if made.returncode or subprocess.run(pip, capture_output=True, check=False).returncode:
        pytest.skip("Schemathesis cannot be installed here")
    project = studio.opened()
    adam = users.add(studio.store, "test", "adam", ["admin"], None)
    (tmp_path / "schemathesis.toml").write_text(SCHEMATHESIS.format(project=project.id), encoding="utf-8")
    for user in (studio.user, adam):
        token = users.add_token(studio.store, user, "fuzz", "run", 1)
        command = [str(home / "bin" / "schemathesis"), "--config-file", str(tmp_path / "schemathesis.toml"), "run"]
        command += [f"{studio.origin}/api/openapi.json", "-H", f"Authorization: Bearer {token}", "--checks", "all"]
        command += ["--max-examples", str(tries(5, 100)), "--request-timeout", "30", "--exclude-path-regex", "events$"]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env={**os.environ}, check=False)
        assert done.returncode == 0, done.stdout[-6000:]
