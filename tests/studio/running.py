"""A studio as users run it, a process with workers, and a browser that was let in."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from playwright.sync_api import Browser, Page

from quadrille.studio import files, jobs, users
from quadrille.studio.store import Home, Job, Project, Store

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
AXE = Path(__file__).with_name("axe.min.js")
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]

_T = TypeVar("_T")


class Running:
    """A studio on a folder; it can be killed and started again, and what it knows is looked at in its own files."""

    def __init__(self, home: Path, *options: str) -> None:
        self.home = home
        self._options = options
        self._process: subprocess.Popen[str] | None = None
        self.store = Store(Home(home))
        self.user = users.local_user(self.store)
        self.address = self.origin = ""

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start it and wait until it says where it is."""
        command = [
            sys.executable,
            "-m",
            "quadrille",
            "studio",
            "--home",
            str(self.home),
            "--no-browser",
            *self._options,
        ]
        with (self.home / "log").open("a") as log:
            self._process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
            )
        assert self._process.stdout is not None
        lines = iter(self._process.stdout.readline, "")
        told = next(match[0] for line in lines if (match := re.search(r"http://\S+/open/\S+", line)))
        self.address = re.sub(r"//[^:/]+", "//127.0.0.1", told, count=1)
        self.origin = self.address.partition("/open")[0]

    def kill(self) -> None:
        """Kill all of it at once, as a loss of power does."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(20)

    def stop(self) -> None:
        """Stop it as users do."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait(20)
        self.store.close()

    def opened(self, dataset: str = "cps8d") -> Project:
        """Return a project on a bundled file."""
        project = self.store.create_project(self.user, "a project")
        project = files.open_bundled(self.store, self.user, project, dataset)
        self.finished(jobs.submit(self.store, self.user, project, "profile"))
        return self.store.project(project.id)

    def searching(self, project: Project, job: str) -> Job:
        """Ask for a search."""
        self.store.put_document(self.user, project.id, "job", job)
        return jobs.submit(self.store, self.user, self.store.project(project.id), "search", {})

    def finished(self, job: Job, seconds: float = 240) -> Job:
        """Wait until a job is done."""
        wait(lambda: self.store.job(job.id).over, seconds)
        found = self.store.job(job.id)
        assert found.state == "done", found.message
        return found


def wait(ready: Callable[[], _T], seconds: float = 60) -> _T:
    """Wait for something that is true; return it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := ready():
            return found
        time.sleep(0.05)
    raise AssertionError(f"nothing came of {ready} in {seconds} s")


@contextmanager
def running(home: Path, *options: str) -> Iterator[Running]:
    """Run a studio for a test."""
    made = Running(home, *options)
    try:
        made.start()
        yield made
    finally:
        made.stop()


class Visitor:
    """A browser that was let in; it writes down what must not be: faults, refusals, requests to elsewhere."""

    def __init__(self, address: str, browser: Browser) -> None:
        self.origin = address.partition("/open")[0]
        self.complaints: list[str] = []
        self.context = browser.new_context(viewport={"width": 1280, "height": 850}, accept_downloads=True)
        self.context.set_default_timeout(60_000)
        self.page: Page = self.context.new_page()
        self.page.on("console", lambda told: self.complaints.append(f"{told.type}: {told.text}"))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self._foreign(request.url))
        self.page.on("response", lambda answer: self._refused(answer.status, answer.url))
        self.page.on("dialog", lambda dialog: dialog.accept())
        self.page.goto(address)
        self.page.wait_for_url(f"{self.origin}/")
        self.project = ""

    def _foreign(self, url: str) -> None:
        if not url.startswith((self.origin, "data:", "blob:")):
            self.complaints.append(f"asked for {url}")

    def _refused(self, status: int, url: str) -> None:
        if status >= 400:
            self.complaints.append(f"{status} {url}")

    def go(self, step: str, **options: Any) -> Page:
        """Go to a page of the project."""
        self.page.goto(f"{self.origin}/projects/{self.project}/{step}", **options)
        return self.page


def serious(page: Page) -> list[str]:
    """Return what axe finds serious, contrast among it."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found: dict[str, Any] = page.evaluate("axe.run(document, {resultTypes: ['violations'], iframes: false})")
    return [
        f"{each['id']}: {node['target']} {node.get('failureSummary', '')[:200]}"
        for each in found["violations"]
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"][:3]
    ]
