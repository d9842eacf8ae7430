"""The worker: a process of its own that takes jobs, reads data, draws, scores and writes. It opens no socket.

A job is leased: its worker says every second that it is alive, and a job whose worker no longer does is taken up by
another. What cannot be stopped between two steps is stopped by ending the process, which is started again.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from quadrille.errors import QuadrilleError
from quadrille.studio import work
from quadrille.studio.store import Home, Job, Store

LEASE, HEARTBEAT, ATTEMPTS = 15.0, 0.5, 5
GRACE = 0.9
"""Seconds that a job has to stop by itself."""
MOST_READING = 600.0
"""Seconds that a look at a file may take."""
STOPPED = 75
"""How the process ends when it had to leave a job: start it again."""


class Claim:
    """A job that this worker has: its wishes are looked at, and it is said to be alive, by a thread of its own."""

    def __init__(self, store: Store, job: Job, worker: str, leave: Callable[[], None]) -> None:
        self.job = job
        self.wish = ""
        self.lost = False
        self._store = store
        self._worker = worker
        self._leave = leave
        self._over = threading.Event()
        self._counts: tuple[int, int] = (job.done, job.total)
        self._thread = threading.Thread(target=self._beat, daemon=True)

    def __enter__(self) -> Claim:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(5)

    def progress(self, done: int, total: int) -> None:
        """Note how far the job is; the next heartbeat tells."""
        self._counts = (done, total)

    def stop(self) -> bool:
        """Whether the job has to stop."""
        return bool(self.wish) or self.lost

    def _beat(self) -> None:
        asked: float | None = None
        began = time.monotonic()
        while not self._over.wait(HEARTBEAT):
            try:
                self.wish, self.lost = beat(self._store, self.job.id, self._worker, self._counts)
            except Exception:
                continue
            if self.job.kind == "profile" and time.monotonic() - began > MOST_READING and not self._over.is_set():
                text = (
                    f"Reading the file took longer than {MOST_READING / 60:.0f} minutes. Convert it to Parquet first."
                )
                finish(self._store, self.job, self._worker, "failed", text, None)
                self._leave()
            if self.stop():
                asked = asked or time.monotonic()
                if time.monotonic() - asked > GRACE and not self._over.is_set():
                    if not self.lost:
                        give_back(self._store, self.job.id, self._worker, self.wish)
                    self._leave()


def claim(store: Store, worker: str, *, searches: bool = True) -> Job | None:
    """Take the next job, by one statement: turns go round by user; a job that failed too often is given up."""
    now = store.now()
    with store.writing() as db:
        query = (
            "UPDATE jobs SET state = 'failed', ended = ?, message = ? WHERE state = 'running' AND lease < ? "
            "AND attempts >= ? RETURNING id, project, kind"
        )
        text = f"The worker was lost {ATTEMPTS} times at this job, for lack of memory perhaps. Ask for less at a time."
        for row in db.execute(query, (now, text, now, ATTEMPTS)).fetchall():
            store.record("worker", f"{row['kind']} failed", row["project"], {"job": row["id"]})
        db.execute(
            "UPDATE jobs SET state = CASE wish WHEN 'cancel' THEN 'cancelled' ELSE 'paused' END, wish = '', "
            "ended = CASE wish WHEN 'cancel' THEN ? END WHERE state = 'running' AND lease < ? AND wish != ''",
            (now, now),
        )
        taken = (
            "UPDATE jobs SET state = 'running', worker = ?, lease = ?, attempts = attempts + 1, "
            "started = COALESCE(started, ?) WHERE id = (SELECT j.id FROM jobs j WHERE (j.state = 'queued' OR "
            "(j.state = 'running' AND j.lease < ?)) AND (? OR j.kind != 'search') ORDER BY "
            "(SELECT COUNT(*) FROM jobs r WHERE r.user = j.user AND r.state = 'running'), "
            "(SELECT MAX(r.started) FROM jobs r WHERE r.user = j.user), j.id LIMIT 1) RETURNING id"
        )
        row = db.execute(taken, (worker, now + LEASE, now, now, searches)).fetchone()
    return None if row is None else store.job(row["id"])


def beat(store: Store, job: int, worker: str, counts: tuple[int, int]) -> tuple[str, bool]:
    """Renew the lease and tell how far the job is; return what is wished, and whether the job is lost to another."""
    with store.writing() as db:
        query = (
            "UPDATE jobs SET lease = ?, attempts = CASE WHEN ? > done THEN 1 ELSE attempts END, done = ?, total = ? "
            "WHERE id = ? AND worker = ? AND state = 'running' "
            "RETURNING wish"
        )
        row = db.execute(query, (store.now() + LEASE, counts[0], *counts, job, worker)).fetchone()
    return ("", True) if row is None else (row["wish"], False)


def give_back(store: Store, job: int, worker: str, wish: str) -> None:
    """Leave a job that was to be paused or cancelled."""
    state, ended = ("paused", None) if wish == "pause" else ("cancelled", store.now())
    with store.writing() as db:
        query = (
            "UPDATE jobs SET state = ?, wish = '', ended = ?, attempts = 0 WHERE id = ? AND worker = ? "
            "AND state = 'running' RETURNING project, kind"
        )
        row = db.execute(query, (state, ended, job, worker)).fetchone()
        if row is not None:
            store.record("worker", f"{row['kind']} {state}", row["project"], {"job": job})


def finish(store: Store, job: Job, worker: str, state: str, message: str, counts: tuple[int, int] | None) -> bool:
    """End a job, unless another worker has it by now."""
    with store.writing() as db:
        done, total = counts or (job.done, job.total)
        query = (
            "UPDATE jobs SET state = ?, wish = '', message = ?, done = ?, total = ?, ended = ? WHERE id = ? "
            "AND worker = ? AND state = 'running' RETURNING id"
        )
        row = db.execute(query, (state, message, done, total, store.now(), job.id, worker)).fetchone()
        if row is not None:
            store.record("worker", f"{job.kind} {state}", job.project, {"job": job.id})
    return row is not None


def run_one(store: Store, job: Job, worker: str, leave: Callable[[], None]) -> None:
    """Do a job and write its result; what goes wrong is told in words that hold no data, no path and no traceback."""
    with Claim(store, job, worker, leave) as claimed:
        try:
            result = work.do(store, job, claimed.progress, claimed.stop)
        except work.Stopped:
            state, message, result = "stopped", "", None
        except QuadrilleError as error:
            state, message, result = "failed", clean(store, job, str(error)), _placed(store, job, error)
        except MemoryError:
            state, result = "failed", None
            message = "This does not fit into the memory of a worker. Ask for less at a time, or use a larger machine."
        except Exception as error:
            _log(job, error)
            state, result = "failed", None
            message = f"This went wrong inside the program ({type(error).__name__}). The log of the studio says where."
        else:
            state, message = "done", ""
        if claimed.lost:
            return
        if state == "stopped":
            give_back(store, job.id, worker, claimed.wish or "cancel")
            return
        if result is not None:
            write_result(store, job, result)
        finish(store, job, worker, state, message, claimed._counts if state == "done" else None)  # pyright: ignore[reportPrivateUsage]


def write_result(store: Store, job: Job, result: Mapping[str, object]) -> None:
    """Write the result of a job, whole or not at all."""
    path = store.home.result(job)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    with fresh.open("w", encoding="utf-8") as file:
        file.write(json.dumps(result, ensure_ascii=False, allow_nan=False))
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def clean(store: Store, job: Job, text: str) -> str:
    """Return a message with the user's own names of files in the place of ours."""
    with suppress(KeyError):
        project = store.project(job.project)
        if project.source:
            text = text.replace(str(store.home.source(project)), project.file)
    folder = str(store.home.project(job.project))
    return text.replace(f"{folder}/", "").replace(folder, "the project").replace(f"{store.home.path}/", "")


def _placed(store: Store, job: Job, error: QuadrilleError) -> dict[str, object] | None:
    """Return where in a file an error is, for the page that shows the fault beside its field."""
    place = error.place
    if place is None:
        return None
    return place._replace(file=clean(store, job, place.file), text=clean(store, job, place.text))._asdict()


def _log(job: Job, error: BaseException) -> None:
    """Say where a program error was, without its message, which could hold data."""
    frames = [f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in traceback.extract_tb(error.__traceback__)]
    where = " < ".join(reversed(frames))
    sys.stderr.write(f"studio: job {job.id} ({job.kind}): {type(error).__name__} at {where}\n")


def prepare(home: Home, jobs: int) -> None:
    """Set the limits of this process: memory, new files for the owner alone, temporary files in the studio's folder."""
    os.umask(0o077)
    scratch = home.scratch / str(os.getpid())
    scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.environ["TMPDIR"] = str(scratch)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    most = int(0.8 * memory / max(1, jobs))
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_DATA, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _follow_parent(parent: int) -> None:
    """End with the process that has started this one."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()


def main(folder: str, name: str, jobs: str, searches: str) -> None:
    """Take jobs until the parent ends."""
    _follow_parent(os.getppid())
    home = Home(Path(folder))
    prepare(home, int(jobs))
    store = Store(home)

    def leave() -> None:
        shutil.rmtree(home.scratch / str(os.getpid()), ignore_errors=True)
        os._exit(STOPPED)

    work.warm(home)
    worker = f"{name}-{os.getpid()}"
    while True:
        job = claim(store, worker, searches=searches == "1")
        if job is None:
            time.sleep(0.15)
        else:
            run_one(store, job, worker, leave)


if __name__ == "__main__":
    main(*sys.argv[1:])
