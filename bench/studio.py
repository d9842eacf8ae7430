"""The studio in a browser: bytes and time of a page, the plane of 100,000 candidates, answers under load, memory."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median, quantiles
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from bench.timing import Result
from quadrille.studio import files, jobs, users
from quadrille.studio.store import Home, Project, Store, User

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
MOST_BYTES = 60_000
MANY = 100_800
JOB = """
[search]
measures = ["exposed", "hellinger"]
[[grid]]
method = "RandomSwap"
swap = "singles"
pairs = [244, 488]
seeds = 40
"""
PAINT = """new Promise((go) => {
    const look = () => {
        const found = performance.getEntriesByName("first-contentful-paint")[0];
        if (found) go(found.startTime); else requestAnimationFrame(look);
    };
    look();
})"""
THREADS, TURNS = 8, 40


def studio_results() -> list[Result]:
    """Measure a studio that runs as users run it; nothing where there is no browser."""
    if CHROMIUM is None:
        return []
    with tempfile.TemporaryDirectory() as folder, _served(Path(folder)) as (store, user, address, pid):
        project = _prepared(store, user)
        first = _first_point(store, user, project)
        with sync_playwright() as play:
            browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
            context = browser.new_context(viewport={"width": 1280, "height": 850})
            context.new_page().goto(address)
            origin = address.partition("/open")[0]
            results = [*_pages(browser, context, origin, project), first, *_plane(context, store, origin, project)]
            browser.close()
        results += _load(store, user, project, origin)
        held = _memory(pid)
        return [*results, Result("web process after the load, MB", held, "at most 120", held <= 120)]


@contextmanager
def _served(home: Path) -> Generator[tuple[Store, User, str, int]]:
    """Start a studio; give its store, its user, its address and the number of its process."""
    store = Store(Home(home / "home"))
    command = [sys.executable, "-m", "quadrille", "studio", "--home", str(home / "home"), "--no-browser", "--jobs", "1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        told = next(match[0] for line in lines if (match := re.search(r"http://\S+/open/\S+", line)))
        yield store, users.local_user(store), re.sub(r"//[^:/]+", "//127.0.0.1", told, count=1), process.pid
    finally:
        process.terminate()
        process.wait(20)
        store.close()


def _wait(ready: Callable[[], bool], pause: float = 0.02) -> float:
    """Return how long something took."""
    started = time.perf_counter()
    while not ready():
        if time.perf_counter() - started > 300:
            raise TimeoutError
        time.sleep(pause)
    return time.perf_counter() - started


def _done(store: Store, job: jobs.Job) -> None:
    _wait(lambda: store.job(job.id).over)


def _prepared(store: Store, user: User) -> Project:
    """A project with a search that is done: all pages have something to show, and the worker is warm."""
    project = files.open_bundled(store, user, store.create_project(user, "bench"), "cps8d")
    _done(store, jobs.submit(store, user, project, "profile"))
    store.put_document(user, project.id, "job", JOB)
    _done(store, jobs.submit(store, user, store.project(project.id), "search"))
    return store.project(project.id)


def _first_point(store: Store, user: User, project: Project) -> Result:
    """From asking for a search to its first result."""
    job = jobs.submit(store, user, project, "search")
    seconds = _wait(lambda: store.job(job.id).done > 0)
    _done(store, job)
    return Result("first point of a search, worker warm, s", seconds, "at most 1.5", seconds <= 1.5)


def _pages(browser: Browser, context: BrowserContext, origin: str, project: Project) -> list[Result]:
    """Bytes on the wire of a first visit, and the first paint against a page that is nothing but text."""
    most = 0
    for step in ("data", "roles", "design", "search"):
        visit = browser.new_context(storage_state=context.storage_state())
        page, sizes = visit.new_page(), list[int]()
        page.on("requestfinished", lambda one, sizes=sizes: sizes.append(one.sizes()["responseBodySize"]))
        page.goto(f"{origin}/projects/{project.id}/{step}", wait_until="networkidle")
        most = max(most, sum(sizes))
        visit.close()
    bare, ours = list[float](), list[float]()
    page = context.new_page()
    with _bare_page() as plain:
        for _ in range(7):
            for address, times in ((plain, bare), (f"{origin}/projects/{project.id}/data", ours)):
                page.goto(address)
                times.append(page.evaluate(PAINT))
    ratio, part = median(ours) / median(bare), most / MOST_BYTES
    name, paint = "studio, bytes of a first visit to a page without charts / 60,000", f"{median(ours):.0f} ms"
    return [
        Result(name, part, "at most 1", part <= 1, f"{most:,} bytes"),
        Result("studio, first paint of a page against a bare one", ratio, "at most 2", ratio <= 2, paint),
    ]


@contextmanager
def _bare_page() -> Generator[str]:
    """Serve a page that is nothing but text, from a port of its own."""

    class Bare(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>bare</title><p>nothing but text")

        def log_message(self, format: str, *args: object) -> None:
            del format, args

    server = ThreadingHTTPServer(("127.0.0.1", 0), Bare)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()


def _plane(context: BrowserContext, store: Store, origin: str, project: Project) -> list[Result]:
    """The plane of 100,800 candidates: loaded again, drawn anew, pointed at."""
    row = store.studies(project.id)[0]
    _fill(store.home.study(row))
    page = context.new_page()
    address = f"{origin}/projects/{project.id}/search?study={row.id}"
    _shown(page, address)
    reload = min(_shown(page, address) for _ in range(3))
    cost = page.evaluate(
        """() => {
            const all = [];
            for (let k = 0; k < 7; k++) { plane.redraw(); all.push(plane.cost); }
            const started = performance.now();
            for (let k = 0; k < 200; k++) plane.nearest(100 + 2 * k, 150 + k % 90);
            return { redraw: all.sort((a, b) => a - b)[3], hover: (performance.now() - started) / 200 };
        }"""
    )
    redraw, hover = cost["redraw"], cost["hover"]
    return [
        Result("100,800 candidates: whole redraw, ms", redraw, "at most 60", redraw <= 60),
        Result("100,800 candidates: pointing at one, ms", hover, "at most 2", hover <= 2),
        Result(
            "100,800 candidates: the page loaded again to the full picture, s", reload, "at most 1.5", reload <= 1.5
        ),
    ]


def _shown(page: Page, address: str) -> float:
    started = time.perf_counter()
    page.goto(address, wait_until="commit")
    page.wait_for_selector("body[data-loaded]")
    count = page.evaluate("plane.count")
    assert count >= MANY, count
    return time.perf_counter() - started


def _fill(path: Path) -> None:
    """Give a study 100,800 results: what they say does not matter here, where they are kept does."""
    with closing(sqlite3.connect(path)) as db, db:
        columns = [row[1] for row in db.execute("PRAGMA table_info(results)") if row[1] not in ("status", "reason")]
        values = ", ".join("0.001" if name == "seconds" else "abs(random() % 100003) / 5e6" for name in columns[1:])
        first = db.execute("SELECT MAX(id) FROM candidates").fetchone()[0] + 1
        numbers = f"WITH RECURSIVE n(i) AS (VALUES ({first}) UNION ALL SELECT i + 1 FROM n WHERE i < {first + MANY})"
        db.execute(f"INSERT INTO seeds (id, seed) {numbers} SELECT i + 1000000, 'bench ' || i FROM n")
        db.execute(f"INSERT INTO candidates (id, design, seed) {numbers} SELECT i, 1, i + 1000000 FROM n")
        db.execute(f"INSERT INTO results (status, {', '.join(columns)}) {numbers} SELECT 0, i, {values} FROM n")


def _load(store: Store, user: User, project: Project, origin: str) -> list[Result]:
    """The slowest twentieth of pages, reads and changes against a static file, all asked for by eight at once."""
    token = users.add_token(store, user, "bench", "run", 1)
    host, head = urlsplit(origin).netloc, {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    kinds: dict[str, tuple[str, str, str | None]] = {
        "static file": ("GET", "/static/studio.css", None),
        "pages": ("GET", f"/projects/{project.id}/data", None),
        "reads": ("GET", f"/api/v1/projects/{project.id}", None),
        "changes": ("PATCH", f"/api/v1/projects/{project.id}", '{"name": "bench"}'),
    }
    times: dict[str, list[float]] = {kind: [] for kind in kinds}

    def ask() -> None:
        connection = HTTPConnection(host, timeout=60)
        for _ in range(TURNS):
            for kind, (method, path, body) in kinds.items():
                started = time.perf_counter()
                connection.request(method, path, body, head)
                answer = connection.getresponse()
                answer.read()
                assert answer.status == 200, (kind, answer.status)
                times[kind].append(time.perf_counter() - started)

    threads = [threading.Thread(target=ask) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    slow = {kind: quantiles(found, n=20)[-1] for kind, found in times.items()}
    rows: list[Result] = []
    for kind, most in (("pages", 3), ("reads", 2), ("changes", 4)):
        ratio = slow[kind] / slow["static file"]
        remark = f"{1000 * slow[kind]:.0f} ms"
        rows.append(
            Result(f"studio, p95 of {kind} against a static file", ratio, f"at most {most}", ratio <= most, remark)
        )
    return rows


def _memory(pid: int) -> float:
    """Return the memory that a process holds, in MB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


if __name__ == "__main__":
    for result in studio_results():
        print(
            f"{result.name:70} {result.value:8.2f}  {result.target:14} {'yes' if result.met else 'NO'}  {result.remark}"
        )
