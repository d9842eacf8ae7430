"""The studio's interface: from a file to a release, who may do what, and what must not get through."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import sqlite3
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest
from argon2 import PasswordHasher
from fastapi import Request
from starlette.types import Message
from tests.unit.studio_case import JOB, PASSWORD, Browser, Studio, studio

import quadrille as qd
from quadrille.studio import audit, files, jobs, serve, users
from quadrille.studio.routes_roles import fault_of
from quadrille.studio.store import Home, KeyUsedError, Store
from quadrille.study.store import Store as StudyStore


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    with studio(tmp_path_factory.mktemp("alone") / "home", root=tmp_path_factory.mktemp("root"), limit=100_000) as made:
        yield made


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    quick = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)  # the real one takes a quarter of a second
    with pytest.MonkeyPatch.context() as patch, studio(tmp_path_factory.mktemp("team") / "home", team=True) as made:
        patch.setattr(users, "_hasher", lambda: quick)
        for name, role in (("anna", "analyst"), ("bert", "analyst"), ("rita", "reviewer"), ("adam", "admin")):
            made.user(name, role)
        made.user("ruth", "analyst", "reviewer", password=PASSWORD)
        yield made


def of(team: Studio, name: str) -> Browser:
    user = team.store.user_named(name)
    assert user is not None
    return team.browser(user)


def state(answer: Any) -> int:
    """The status of an answer; every fault says what, where and what to do."""
    if answer.status_code >= 400 and answer.headers["content-type"] == "application/json":
        assert set(answer.json()) == {"error", "where", "do"} and answer.json()["error"]
    return answer.status_code


# --- the whole path --------------------------------------------------------------------------------------------------


def searched(made: Studio, browser: Browser, project: str) -> int:
    """Search in a project; return the number of the study."""
    put = browser.send("PUT", f"/projects/{project}/job", content=JOB, headers={"Content-Type": "application/toml"})
    assert put.status_code == 200
    job = browser.post(f"/projects/{project}/searches").json()["job"]
    assert [each.state for each in made.work()] == ["done"]
    return browser.get(f"/jobs/{job}").json()["spec"]["study"]


@pytest.fixture(scope="module")
def project(alone: Studio) -> str:
    return alone.opened().id


@pytest.fixture(scope="module")
def study(alone: Studio, project: str) -> int:
    return searched(alone, alone.browser(), project)


def result(made: Studio, browser: Browser, answer: Any) -> dict[str, Any]:
    assert answer.status_code == 202, answer.text
    made.work()
    job = browser.get(f"/jobs/{answer.json()['job']}").json()
    assert job["state"] == "done", job["message"]
    return browser.get(f"/jobs/{job['id']}/result").json()


def test_a_study_is_looked_at_without_its_seeds_and_as_the_product_has_it(
    alone: Studio, project: str, study: int
) -> None:
    browser = alone.browser()
    held = qd.Study(alone.home.study(alone.store.study(study)))
    packed = browser.get(f"/studies/{study}/points")
    points = {number: (loss, risk) for number, loss, risk in struct.iter_unpack("<Iff", packed.content)}
    table = held.frame()
    assert sorted(points) == table["id"].to_list() and packed.headers["X-Last"] == str(max(points))
    for place, address in enumerate(("hellinger", "exposed")):
        assert [points[i][place] for i in table["id"]] == pytest.approx(table[address].to_list(), rel=1e-6)
    assert browser.get(f"/studies/{study}/points?after={max(points) - 1}").content == packed.content[-12:]
    front = browser.get(f"/studies/{study}/frontier").json()
    assert [each["id"] for each in front["candidates"]] == held.frontier()["id"].to_list()
    assert state(browser.send("PUT", f"/studies/{study}/candidates/1/note", json={"text": "=<img onerror>"})) == 204
    one = browser.get(f"/studies/{study}/candidates/1").json()
    assert one["note"] == "=<img onerror>" and one["scores"]["hellinger"] == table["hellinger"][0]
    assert 1 in browser.get(f"/studies/{study}/clouds?candidate=1").json()
    seeds = {held.recipe(int(number)).seed for number in held.ids}
    told = json.dumps([one, front, browser.get(f"/projects/{project}").json(), browser.get("/jobs").json()])
    assert not [seed for seed in seeds if str(seed) in told]
    assert state(browser.get(f"/studies/{study}/candidates/999999")) == 404


def test_a_hundred_thousand_candidates_have_their_frontier_in_no_time(
    alone: Studio, study: int, tmp_path: Path
) -> None:
    """Pages ask for it again and again: no join of points with steps, which takes minutes."""
    path, many = tmp_path / "study", 100_000
    path.write_bytes(alone.home.study(alone.store.study(study)).read_bytes())
    with closing(sqlite3.connect(path)) as db, db:
        names = [row[1] for row in db.execute("PRAGMA table_info(results)") if re.fullmatch(r"m\d+", row[1])]
        values = ", ".join("0.1 + abs(random() % 1000003) / 5e6" for _ in names)
        numbers = f"WITH RECURSIVE n(i) AS (VALUES (1000) UNION ALL SELECT i + 1 FROM n WHERE i < {many})"
        db.execute(f"INSERT INTO results (id, status, {', '.join(names)}) {numbers} SELECT i, 0, {values} FROM n")
    with closing(StudyStore.look(path)) as held:
        started = time.process_time()
        found = held.frontier("hellinger", "exposed")
        spent = time.process_time() - started
        points = list(held.points("hellinger", "exposed", ("lower", "lower")))
    assert len(points) > many - 1000
    best, last, expected = float("inf"), (-1.0, -1.0), list[int]()
    for point in sorted(points, key=lambda each: (each.x, each.y, each.id)):
        if point.y < best or (point.x, point.y) == last:
            best, last = point.y, (point.x, point.y)
            expected.append(point.id)
    assert [each.id for each in found] == expected
    assert spent < 1


def test_a_study_of_the_command_line_is_opened_and_gone_on_with_where_it_is(
    alone: Studio, study: int, tmp_path: Path
) -> None:
    path = tmp_path / "study"
    path.write_bytes(alone.home.study(alone.store.study(study)).read_bytes())
    qd.Study(path).remember("dataset:cps8d", None, None)
    page = files.open_named(alone.store, str(path))
    project, browser = page.split("/")[2], alone.browser()
    assert {job.state for job in alone.work()} == {"done"}
    (row,) = alone.store.studies(project)
    shown = browser.client.get(page)
    assert shown.status_code == 200 and "Done." in shown.text and f"{len(qd.Study(path))} of" in shown.text
    sent = {"study": str(row.id), "csrf": browser.csrf}
    assert browser.client.post(f"{page}/again", data=sent, follow_redirects=False).status_code == 303
    assert [job.state for job in alone.work()] == ["done"]
    again, other = (browser.post(f"/projects/{project}/searches", {"study": row.id}) for _ in range(2))
    assert alone.store.studies(project) == [row] and again.json()["job"] != other.json()["job"]
    alone.work()


def test_the_job_file_of_the_drawer_gives_the_same_designs_on_the_command_line(
    alone: Studio, project: str, study: int, tmp_path: Path
) -> None:
    text = alone.browser().get(f"/projects/{project}/files/document/job.toml").text
    job = tmp_path / "job.toml"
    job.write_text(text, encoding="utf-8")
    from quadrille.study.job import Job

    read = Job.read(job)
    own = qd.search(
        qd.datasets.cps8d(), read.recipes(qd.datasets.cps8d()), read.measures, out=tmp_path / "s", progress=False
    )
    held = qd.Study(alone.home.study(alone.store.study(study)))
    both = [each.frame().select("id", "design", "swap", "pairs").rows() for each in (own, held)]
    assert both[0] == both[1] and own.measures == held.measures
    assert own.unswapped == held.unswapped


def test_from_the_study_to_a_signed_release_with_one_user(alone: Studio, project: str, study: int) -> None:
    browser = alone.browser()
    base = f"/projects/{project}"
    compared = result(alone, browser, browser.post(f"{base}/comparisons", {"study": study, "candidates": [1, 9]}))
    assert [each["candidate"] for each in compared["candidates"]] == [1, 9] and compared["differences"] == ["swap"]
    assert compared["candidates"][0]["kept"] and compared["candidates"][0]["charts"]
    policy = "[measures]\nhellinger = {most = 0.0001}\n"
    toml = {"Content-Type": "application/toml"}
    assert browser.send("PUT", f"{base}/policy", content=policy, headers=toml).status_code == 200
    asked = {"study": study, "pick": {"criterion": "knee"}}
    checked = browser.post(f"{base}/policy-checks", asked)
    assert result(alone, browser, checked)["verdict"] == "fail"
    assert browser.post(f"{base}/propose", checked.json()).status_code == 200
    refused = browser.post(f"{base}/submit")
    assert state(refused) == 409 and "[measures] hellinger asks at most 0.0001" in refused.json()["error"]
    shown = browser.client.get(f"{base}/release").text
    assert 'data-next disabled aria-describedby="why-not"' in shown, "the button is off, with the reason beside it"
    assert "[measures] hellinger must be at most 0.0001" in shown.partition('id="why-not"')[2][:400]
    put = browser.send("PUT", f"{base}/policy", content=policy.replace("0.0001", "0.5"), headers=toml)
    assert put.status_code == 200
    assert state(browser.post(f"{base}/submit")) == 409, "the check is of another policy"
    checked = browser.post(f"{base}/policy-checks", asked)
    found = result(alone, browser, checked)
    assert found["verdict"] == "pass"
    recipe = qd.Study(alone.home.study(alone.store.study(study))).recipe(found["candidate"])
    assert str(recipe.seed) not in json.dumps(found)
    assert state(browser.post(f"{base}/releases")) == 409, "nobody has approved it"
    browser.post(f"{base}/propose", checked.json())
    assert browser.post(f"{base}/submit").json()["state"] == "submitted"
    assert browser.post(f"{base}/approve", {"text": "agreed"}).json()["approval"]["by_owner"] is True
    made = result(alone, browser, browser.post(f"{base}/releases"))
    assert browser.get(base).json()["state"] == "released" and made["forgotten"] >= 1
    public = browser.get(f"{base}/files/public/data.csv")
    assert public.status_code == 200 and "attachment" in public.headers["content-disposition"]
    assert state(browser.get(f"{base}/files/confidential/dossier.md")) == 409, "asked twice"
    dossier = browser.get(f"{base}/files/confidential/dossier.md?sure=true").text
    assert "## Sign-off" in dossier and "approved by: local" in dossier and "head of the audit: event" in dossier
    own = qd.Recipe.from_json(browser.get(f"{base}/files/confidential/recipe.json?sure=true").text)
    assert own == recipe
    after = recipe.plan(qd.datasets.cps8d()).apply(qd.datasets.cps8d()).frame()
    rows = sorted(public.text.splitlines()[1:])
    assert rows == sorted(after.write_csv().splitlines()[1:]), "the same recipe gives the same release"
    for bad in ("../recipe.json", "..%2frecipe.json", "recipe.json%00", "nothing.csv", "plan.parquet"):
        assert state(browser.get(f"{base}/files/public/{bad}")) == 404


# --- who may do what -------------------------------------------------------------------------------------------------


def test_other_people_s_projects_do_not_exist_and_admins_see_no_data(team: Studio) -> None:
    anna = team.store.user_named("anna")
    found = team.opened(anna)
    job = team.store.jobs(found.id)[0].id
    reads = [
        *(f"/projects/{found.id}{rest}" for rest in ("", "/codebook", "/comments", "/files/document/codebook.toml")),
        *(f"/jobs/{job}{rest}" for rest in ("", "/result", "/events")),
    ]
    writes = [
        f"/projects/{found.id}/{rest}"
        for rest in ("submit", "withdraw", "forecast", "searches", "profiles", "releases")
    ]
    for name in ("bert", "rita", "adam"):
        browser = of(team, name)
        assert browser.get("/projects").json() == []
        assert {state(browser.get(path)) for path in reads} == {404}, name
        assert {state(browser.post(path)) for path in [*writes, f"/jobs/{job}/cancel"]} == {404}, name
        assert state(browser.send("PUT", f"/projects/{found.id}/codebook", content="")) == 404
        assert state(browser.send("PUT", f"/projects/{found.id}/source?name=a.csv", content="a")) == 404
        assert state(browser.send("DELETE", f"/projects/{found.id}")) == 404
    assert state(of(team, "anna").get("/users")) == 404 and state(of(team, "anna").get("/audit")) == 404
    assert state(of(team, "adam").post("/projects", {"name": "mine"})) == 404


def test_a_second_person_signs_off_and_any_change_voids_it(team: Studio) -> None:
    anna, rita, ruth = of(team, "anna"), of(team, "rita"), of(team, "ruth")
    found = team.opened(team.store.user_named("anna"))
    base = f"/projects/{found.id}"
    study = searched(team, anna, found.id)

    def submitted() -> None:
        checked = anna.post(f"{base}/policy-checks", {"study": study, "candidate": 3})
        assert result(team, anna, checked)["verdict"] == "none"
        assert anna.post(f"{base}/propose", checked.json()).status_code == 200
        assert anna.post(f"{base}/submit").status_code == 200

    submitted()
    assert rita.get(base).status_code == 200 and state(of(team, "bert").get(base)) == 404
    assert state(anna.post(f"{base}/approve", {"text": "fine"})) == 409, "no reviewer"
    assert rita.post(f"{base}/reject", {"text": "a lower rate, please"}).json()["state"] == "rejected"
    assert [each["text"] for each in anna.get(f"{base}/comments").json()] == ["a lower rate, please"]
    submitted()
    assert rita.post(f"{base}/approve", {"text": "good"}).json()["approval"]["by"] == "rita"
    codebook = anna.get(f"{base}/codebook")
    changed = codebook.text.replace('kind = "ordinal"', 'kind = "nominal"', 1)
    put = anna.send("PUT", f"{base}/codebook", content=changed, headers={"If-Match": codebook.headers["ETag"]})
    assert put.status_code == 200
    assert anna.get(base).json()["state"] == "draft" and anna.get(base).json()["approval"] is None
    assert state(anna.post(f"{base}/releases")) == 409
    anna.send("PUT", f"{base}/codebook", content=codebook.text)
    assert {event.action for event in audit.events(team.store.db)} >= {"sign-off void", "approved", "rejected"}
    own = team.opened(team.store.user_named("ruth"))
    store = team.store
    store.change_project("test", own.id, "test", {"state": "submitted", "choice": {}}, keeps_state=True)
    refused = ruth.post(f"/projects/{own.id}/approve", {"text": "mine"})
    assert state(refused) == 409 and "own project" in refused.json()["error"]


def test_passwords_are_refused_slowly_and_tokens_end(team: Studio) -> None:
    client = of(team, "ruth").client
    client.cookies.clear()
    body = {"name": "ruth", "password": PASSWORD}
    assert client.post("/api/v1/login", json=body).status_code == 204
    me = Browser(client)
    assert state(me.post("/tokens", {"name": "script", "days": 400})) == 422
    token = me.post("/tokens", {"name": "script", "scope": "read"}).json()["token"]
    head = {"Authorization": f"Bearer {token}"}
    client.cookies.clear()
    assert client.get("/api/v1/projects", headers=head).status_code == 200
    assert state(client.post("/api/v1/projects", headers=head, json={"name": "x"})) == 403
    assert state(client.get("/api/v1/me", headers={"Authorization": "Bearer qst_nothing"})) == 401
    held = team.store.db.execute("SELECT hash FROM tokens").fetchone()["hash"]
    assert token not in held and PASSWORD not in str([tuple(r) for r in team.store.db.execute("SELECT * FROM users")])
    for _ in range(users.FREE_FAILURES):
        assert state(client.post("/api/v1/login", json={**body, "password": "wrong"})) == 401
    slow = client.post("/api/v1/login", json=body)
    assert state(slow) == 429 and int(slow.headers["Retry-After"]) >= 1, "even with the right one"
    user = team.store.user_named("ruth")
    assert user is not None
    users.change(team.store, "test", user, active=False)
    assert state(client.get("/api/v1/projects", headers=head)) == 401
    users.change(team.store, "test", user, active=True)


def test_sessions_end_and_survive_a_restart(alone: Studio, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = alone.browser()
    alone.store.close()  # what is known of sessions stands in the data base alone
    assert browser.get("/me").status_code == 200
    now = alone.store.now()
    monkeypatch.setattr(alone.store, "now", lambda: now + users.LOCAL_IDLE + 60)
    assert state(browser.get("/me")) == 401
    monkeypatch.setattr(alone.store, "now", lambda: now)
    ticket = users.ticket(alone.store, users.local_user(alone.store))
    monkeypatch.setattr(alone.store, "now", lambda: now + users.TICKET_SECONDS + 1)
    assert browser.client.get(f"/open/{ticket}").status_code == 401, "too old"
    monkeypatch.setattr(alone.store, "now", lambda: now)
    assert browser.client.get(f"/open/{ticket}").status_code == 200
    assert browser.client.get(f"/open/{ticket}").status_code == 401, "used before"
    assert browser.post("/logout").status_code in (204, 403)


# --- what must not get through ---------------------------------------------------------------------------------------


def test_requests_of_other_pages_and_hosts_are_refused(alone: Studio) -> None:
    browser = alone.browser()
    sent = {"json": {"name": "made"}}
    assert browser.post("/projects", {"name": "made"}).status_code == 201
    for headers in (
        {"X-CSRF-Token": "wrong"},
        {"Origin": "http://evil.example"},
        {"Origin": "http://testserver:81"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ):
        assert state(browser.send("POST", "/projects", headers=headers, **sent)) == 403, headers
    assert state(browser.client.post("/api/v1/projects", **sent)) == 403, "no token"
    form = {"content": "name=x", "headers": {"Content-Type": "application/x-www-form-urlencoded"}}
    assert state(browser.client.post("/api/v1/projects", **form)) == 403, "a foreign form"
    for host in ("evil.example", "testserver:81", "", "testserver.evil.example"):
        assert state(browser.client.get("/api/v1/me", headers={"Host": host})) == 400
    assert len(browser.get("/projects").json()) == len({each["id"] for each in browser.get("/projects").json()})


def test_every_answer_has_its_headers(alone: Studio, project: str) -> None:
    browser = alone.browser()
    for answer in (browser.get("/me"), browser.get(f"/projects/{project}/nothing"), browser.client.get("/nothing")):
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff" and answer.headers["cache-control"] == "no-store"
        assert answer.headers["referrer-policy"] == "no-referrer"
    assert browser.client.get("/docs").status_code == 404


BOMB = gzip.compress(bytes(300 << 20), compresslevel=9)


@pytest.mark.parametrize(
    ("name", "contents", "status"),
    [
        ("people.csv", b"sex,age\nf,1\nm,2\n", 202),
        ("people.exe", b"MZ", 415),
        ("", b"a", 422),
        ("x" * 301 + ".csv", b"a", 422),
        ("people.csv", b"", 422),
        ("people.csv", bytes(100_001), 413),
        ("people.csv.gz", b"not packed", 422),
    ],
)
def test_uploads_are_limited_and_leave_nothing_behind(alone: Studio, name: str, contents: bytes, status: int) -> None:
    browser = alone.browser()
    project = browser.post("/projects", {"name": "upload"}).json()["id"]
    answer = browser.send("PUT", f"/projects/{project}/source", params={"name": name}, content=contents)
    assert state(answer) == status
    held = [path.name for path in (alone.home.project(project) / "source").iterdir()]
    assert held == (["data.csv"] if status == 202 else [])
    for job in alone.store.jobs(project):
        alone.store.wish(users.local_user(alone.store), job.id, "cancel")


def test_nothing_is_left_of_an_upload_that_is_cut(alone: Studio) -> None:
    user = users.local_user(alone.store)
    project = alone.store.create_project(user, "cut")
    sent: Iterator[Message] = iter(
        [{"type": "http.request", "body": b"sex,age\nf,", "more_body": True}, {"type": "http.disconnect"}]
    )

    async def receive() -> Message:
        return next(sent)

    async def upload() -> None:
        request = Request({"type": "http", "method": "PUT", "headers": []}, receive)
        await files.take_upload(request, alone.store, user, project, "people.csv", 100_000)

    with pytest.raises(files.Problem, match="connection was cut"):
        anyio.run(upload)
    assert list((alone.home.project(project.id) / "source").iterdir()) == []
    assert alone.store.project(project.id).source == "" and alone.store.jobs(project.id) == []


def test_a_packed_file_that_unpacks_to_too_much_is_refused_on_its_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "ALWAYS_UNPACKED", 1 << 20)
    count = files.Unpacked()
    with pytest.raises(files.Problem, match="unpacks to more than"):
        for start in range(0, len(BOMB), 4096):
            count.add(BOMB[start : start + 4096])
    assert count.size < 4 << 20, "it stops early"
    fine = files.Unpacked()
    fine.add(gzip.compress(b"a,b\n") + gzip.compress(b"1,2\n"))
    assert fine.size == 8


def test_files_of_this_machine_open_only_below_the_root(alone: Studio, tmp_path: Path) -> None:
    browser, root = alone.browser(), alone.app.state.settings.root
    (root / "in.csv").write_text("a\n1\n", encoding="utf-8")
    (tmp_path / "out.csv").write_text("a\n1\n", encoding="utf-8")
    (root / "link.csv").symlink_to(tmp_path / "out.csv")
    project = browser.post("/projects", {"name": "paths"}).json()["id"]
    for path in (str(tmp_path / "out.csv"), "link.csv", "../out.csv", "/etc/passwd", "missing.csv", ".", "a\0b.csv"):
        assert state(browser.post(f"/projects/{project}/source", {"path": path})) == 422, path
    assert browser.post(f"/projects/{project}/source", {"path": "in.csv"}).status_code == 202
    assert [each["name"] for each in files.listed(root, ".")] == ["in.csv"]
    assert files.listed(root, "..") == [] and files.listed(None, ".") == []
    alone.work()


def test_what_is_wrong_with_a_file_or_a_job_is_told_without_data_and_paths(alone: Studio) -> None:
    browser = alone.browser()
    project = browser.post("/projects", {"name": "faults"}).json()["id"]
    browser.send("PUT", f"/projects/{project}/source?name=my file.csv", content=b"a,b\nCANARY,1,2,3\n")
    (job,) = alone.work()
    assert job.state == "failed" and "my file.csv" in job.message
    assert "CANARY" not in job.message and str(alone.home.path) not in job.message
    bad = alone.opened().id
    grid = "[[grid]]\nmethod = 'RandomSwap'\nswap = [['Edu']]\n"
    for text, part, place in (
        (f"[search]\nmeasures = ['nothing']\n{grid}pairs = [1]\n", "nothing", ("search", 0, "measures")),
        ("[data]\nweight = 'x'\n[search]\nmeasures = ['exposed']\n", "codebook", ("data", 0, "")),
        (f"[search]\nmeasures = ['exposed']\n{grid * 2}", "[grid 1]", ("grid", 1, "")),
        (f"[search]\nmeasures = ['exposed']\n{grid}pairs = 1\n{grid}rate = 3\n", "[grid 2]", ("grid", 2, "rate")),
    ):
        assert browser.send("PUT", f"/projects/{bad}/job", content=text).status_code == 200
        browser.post(f"/projects/{bad}/forecast")
        (job,) = alone.work()
        assert job.state == "failed" and part in job.message and str(alone.home.path) not in job.message, job.message
        found = alone.store.place(job)
        assert found is not None and (found.section, found.nth, found.key) == place
        assert job.message.endswith(found.text) and str(alone.home.path) not in found.file


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ("kinds = 'nominal'", "There is no setting 'kinds'. Did you mean: 'kind'?"),
        ("kind = 'great'", "'kind' must be one of nominal, ordinal, numeric. Got 'great'."),
        ("categories = ['a', 'a']", "A category or missing code is listed twice. List each once."),
        ("kind = 'numeric'\nrole = 'geography'\nlevel = 1", "A level of geography is numeric. "),
    ],
)
def test_what_is_wrong_with_a_codebook_stands_beside_its_column(entry: str, told: str) -> None:
    fault = fault_of(f'[columns."a: b]"]\n{entry}\n', ["c", "a: b]"])
    assert fault is not None and fault[0] == "a: b]" and fault[1].startswith(told), fault


def test_the_same_key_is_the_same_job_and_another_tab_is_noticed(alone: Studio, project: str) -> None:
    browser = alone.browser()
    keyed = {"headers": {"Idempotency-Key": "one-and-the-same"}}
    first = browser.post(f"/projects/{project}/risks", {"n": 4}, **keyed).json()
    assert browser.post(f"/projects/{project}/risks", {"n": 4}, **keyed).json() == first
    assert state(browser.post(f"/projects/{project}/risks", {"n": 5}, **keyed)) == 409
    assert state(browser.send("POST", f"/projects/{project}/risks", json={}, headers={"Idempotency-Key": ""})) == 422
    found = result(alone, browser, browser.post(f"/projects/{project}/risks", {"n": 4}))
    assert found["sets"][0]["cells"]["ones"] == 361 and found["sets"][0]["sizes"][1]["records"] == 372
    data = qd.datasets.cps8d()
    exposed = qd.score(data, qd.Plan([], data=data), ["exposed(n=4)"])
    assert found["sets"][0]["exposed"] == exposed["exposed(n=4)"]

    def put_policy(most: float, **headers: str) -> Any:
        text = f"[measures]\nexposed = {{most = {most}}}\n"
        return browser.send("PUT", f"/projects/{project}/policy", content=text, headers=headers)

    tag = put_policy(0.5).headers["ETag"]
    put = put_policy(0.4, **{"If-Match": tag})
    assert put.status_code == 200
    late = put_policy(0.3, **{"If-Match": tag})
    assert state(late) == 412 and late.headers["ETag"] == put.headers["ETag"]
    assert state(browser.send("PUT", f"/projects/{project}/policy", content="[measures\n")) == 422
    as_json = browser.get(f"/projects/{project}/policy", headers={"Accept": "application/json"}).json()
    assert as_json == {"measures": {"exposed": {"most": 0.4}}}


def test_a_stream_tells_states_and_points_until_the_end_and_a_fifth_is_refused(
    alone: Studio, project: str, study: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from quadrille.studio import live

    browser = alone.browser()
    job = next(each for each in alone.store.jobs(project, "search") if each.spec["study"] == study)
    text = browser.get(f"/jobs/{job.id}/events").text
    kinds = re.findall(r"^event: (\w+)$", text, re.MULTILINE)
    assert kinds == ["state", "points", "end"]
    (last,) = re.findall(r"^id: (\d+)$", text, re.MULTILINE)
    again = browser.get(f"/jobs/{job.id}/events", headers={"Last-Event-ID": last}).text
    assert "event: points" not in again and '"state": "done"' in again
    latest = alone.store.db.execute("SELECT hash FROM sessions ORDER BY created DESC").fetchone()["hash"]
    monkeypatch.setattr(live, "_streams", {latest: live.MOST_STREAMS})
    assert browser.get(f"/jobs/{job.id}/events").status_code == 204


def test_the_web_process_loads_neither_polars_nor_numba_and_opens_no_data(alone: Studio, project: str) -> None:
    code = (
        "import sys, importlib\n"
        "from pathlib import Path\n"
        "from quadrille.studio.app import make_app\n"
        "from quadrille.studio.web import Settings\n"
        "from quadrille.studio.store import Home\n"
        "from quadrille.studio import users, serve\n"
        "from fastapi.testclient import TestClient\n"
        f"app = make_app(Settings(Home(Path({str(alone.home.path)!r}))))\n"
        "client = TestClient(app)\n"
        "client.get('/open/' + users.ticket(app.state.store, users.local_user(app.state.store)))\n"
        f"for path in ('', '/projects/{project}/data', '/projects/{project}/search', '/api/v1/projects'):\n"
        "    assert client.get(path or '/').status_code < 500, path\n"
        "print([name for name in ('polars', 'numba', 'pyarrow', 'scipy', 'altair') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


def test_a_studio_whose_folder_was_removed_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(serve.os, "kill", lambda *to: sent.append(to))
    serve.Workers(Home(tmp_path / "gone"), 1)._watch()
    assert sent == [(os.getpid(), signal.SIGTERM)]


def test_a_worker_that_cannot_start_is_tried_at_growing_intervals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers, pauses = serve.Workers(Home(tmp_path), 1), []

    class Ended:
        def poll(self) -> int:
            return 1

    class Clock:
        def wait(self, seconds: float) -> bool:
            pauses.append(seconds)
            return len(pauses) == 8

        def is_set(self) -> bool:
            return False

    monkeypatch.setattr(serve.subprocess, "Popen", lambda *_, **__: Ended())
    monkeypatch.setattr(workers, "_stopping", Clock())
    workers._start(0)
    workers._watch()
    assert pauses == [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0]


# --- the store and the audit -----------------------------------------------------------------------------------------


def test_a_changed_audit_is_found_wherever_it_was_changed(tmp_path: Path) -> None:
    with studio(tmp_path / "home") as made:
        store = made.store
        with store.writing():
            for number in range(1000):
                store.record("test", "event", detail={"number": number})
        db = store.db
        assert audit.verify(db) == audit.Checked(1000, audit.head(db)[1], None)
        copy = tmp_path / "audit.jsonl"
        assert audit.copy(db, copy) == 1000 and audit.copy(db, copy) == 0 and audit.differs(db, copy) is None
        for number, statement in (
            (500, "UPDATE audit SET detail = replace(detail, '499', '498') WHERE number = 500"),
            (700, "UPDATE audit SET time = '2020' || substr(time, 5) WHERE number = 700"),
            (301, "DELETE FROM audit WHERE number = 300"),
        ):
            db.execute("SAVEPOINT before")
            db.execute(statement)
            assert audit.verify(db).broken == number
            db.execute("ROLLBACK TO before")
            db.execute("RELEASE before")
        db.execute("DELETE FROM audit WHERE number > 990")
        assert audit.verify(db).broken is None and audit.differs(db, copy) == 991, "a cut end is found by a copy"


def test_everything_in_the_folder_is_for_its_owner_alone(alone: Studio, project: str, study: int) -> None:
    assert alone.home.path.stat().st_mode & 0o777 == 0o700
    assert alone.home.database.stat().st_mode & 0o777 == 0o600
    folders = [path for path in alone.home.path.rglob("*") if path.is_dir() and "releases" not in path.parts]
    assert folders and all(path.stat().st_mode & 0o077 == 0 for path in folders)
    assert alone.store.db.execute("PRAGMA synchronous").fetchone()[0] == 2
    assert alone.store.db.execute("PRAGMA journal_mode").fetchone()[0] == "wal"


def test_a_change_and_its_row_of_the_audit_are_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with studio(tmp_path / "home") as made:
        user = users.local_user(made.store)

        def broken(*_: object) -> None:
            raise sqlite3.OperationalError("disk full")

        monkeypatch.setattr(audit, "append", broken)
        with pytest.raises(sqlite3.OperationalError):
            made.store.create_project(user, "lost")
        monkeypatch.undo()
        assert made.store.projects(user) == []


def test_a_second_answer_never_names_another_user_s_job(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with studio(tmp_path / "home") as made:
        store: Store = made.store
        people = [made.user(f"user{number}", "analyst") for number in range(4)]
        projects = {user.id: store.create_project(user, user.name) for user in people}

        def ask(number: int) -> bool:
            user = people[number % 4]
            asked = (user, projects[user.id].id, "profile", {})
            job = store.add_job(*asked, key=f"key-{number}")
            return store.job(job.id).user == user.id and store.add_job(*asked, key=f"key-{number}").id == job.id

        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(ask, range(60)))
        with pytest.raises(KeyUsedError):
            store.add_job(people[0], projects[people[0].id].id, "risk", {}, key="key-0")
        from quadrille.studio import worker

        order = [job.user for _ in range(8) if (job := worker.claim(store, "w"))]
        everybody = {user.id for user in people}
        assert [set(order[:4]), set(order[4:])] == [everybody, everybody], "turns go round"


def test_formats_and_endings_are_those_of_the_product() -> None:
    from quadrille.io import RELEASED, SUFFIXES

    assert set(jobs.ENDINGS) == set(SUFFIXES) - {".xport"}
    assert set(jobs.FORMATS) == set(RELEASED)


def test_shredding_overwrites_removes_and_says_what_it_was(alone: Studio) -> None:
    from hashlib import sha256

    from quadrille.studio import retention

    browser = alone.browser()
    project = browser.post("/projects", {"name": "to go"}).json()["id"]
    browser.send("PUT", f"/projects/{project}/source?name=a.csv", content=b"a,b\n1,2\n")
    found = retention.shred_all(alone.store, alone.store.project(project), "source")
    assert found["sha256"] == {"source/data.csv": sha256(b"a,b\n1,2\n").hexdigest()}
    assert not list((alone.home.project(project) / "source").iterdir())
    for job in alone.store.jobs(project):
        alone.store.wish(users.local_user(alone.store), job.id, "cancel")
    assert browser.send("DELETE", f"/projects/{project}").status_code == 204
    assert not alone.home.project(project).exists() and state(browser.get(f"/projects/{project}")) == 404
    assert audit.verify(alone.store.db).broken is None


def test_the_description_of_the_interface_names_every_fault(alone: Studio) -> None:
    document = alone.browser().client.get("/api/openapi.json").json()
    assert document["openapi"].startswith("3.1") and len(document["paths"]) > 35
    for path, methods in document["paths"].items():
        for method, about in methods.items():
            assert {"401", "404", "422"} <= set(about["responses"]) or "live" in about["tags"], (path, method)
