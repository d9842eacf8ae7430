"""A studio for tests: its application, its store, users with browsers, and a worker in this process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient

from quadrille.studio import users, work, worker
from quadrille.studio.app import make_app
from quadrille.studio.store import Home, Job, Project, Store, User
from quadrille.studio.web import Settings

_KEYS = count(1)
PASSWORD = "correct horse battery"
JOB = """
[search]
measures = ["exposed", "small_cells", "hellinger"]
[[grid]]
method = "RandomSwap"
swap = "singles"
pairs = [244, 488]
seeds = 2
"""


class Studio:
    """A studio of its own, for one person or for a team."""

    def __init__(self, home: Path, *, team: bool = False, **settings: Any) -> None:
        self.home = Home(home)
        self.store = Store(self.home)
        self.app = make_app(Settings(self.home, team=team, **settings), self.store)
        work.write_catalogue(self.home)

    def close(self) -> None:
        self.store.close()

    def browser(self, user: User | None = None) -> Browser:
        """Return a browser in which a user, or the local one, has logged in."""
        client = TestClient(self.app, raise_server_exceptions=True)
        ticket = users.ticket(self.store, user or users.local_user(self.store))
        assert client.get(f"/open/{ticket}").status_code == 200
        return Browser(client)

    def user(self, name: str, *roles: str, password: str | None = None) -> User:
        """Add a user; a password costs a quarter of a second."""
        return users.add(self.store, "test", name, roles, password)

    def work(self, most: int = 100) -> list[Job]:
        """Do all jobs that are waiting, in this process."""
        done: list[Job] = []
        while len(done) < most and (job := worker.claim(self.store, "test")) is not None:
            worker.run_one(self.store, job, "test", lambda: None)
            done.append(self.store.job(job.id))
        return done

    def opened(self, user: User | None = None, dataset: str = "cps8d") -> Project:
        """Return a project with a bundled file, profiled."""
        from quadrille.studio import files, jobs

        user = user or users.local_user(self.store)
        project = self.store.create_project(user, "a project")
        project = files.open_bundled(self.store, user, project, dataset)
        jobs.submit(self.store, user, project, "profile")
        assert [job.state for job in self.work()] == ["done"]
        return self.store.project(project.id)


class Browser:
    """A client with a session: changes carry the token against foreign forms."""

    def __init__(self, client: TestClient) -> None:
        self.client = client
        self.csrf: str = client.get("/api/v1/me").json()["csrf"]

    def get(self, path: str, **options: Any) -> Any:
        return self.client.get(f"/api/v1{path}", **options)

    def send(self, method: str, path: str, **options: Any) -> Any:
        headers = {"X-CSRF-Token": self.csrf, "Idempotency-Key": f"test-key-{next(_KEYS)}"}
        return self.client.request(
            method, f"/api/v1{path}", **{**options, "headers": headers | options.get("headers", {})}
        )

    def post(self, path: str, json: object = None, **options: Any) -> Any:
        return self.send("POST", path, json={} if json is None else json, **options)


@contextmanager
def studio(home: Path, **settings: Any) -> Iterator[Studio]:
    """Run a studio for a test."""
    made = Studio(home, **settings)
    try:
        yield made
    finally:
        made.close()
