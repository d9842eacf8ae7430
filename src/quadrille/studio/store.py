"""The studio on disk: one SQLite file with users, sessions, projects, jobs, comments, audit; a folder per project.

Every change is one transaction together with its row of the audit. Each thread has a connection of its own: the number
of a new row is asked of the statement that writes it, never of a connection that others use.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import sqlite3
import threading
import time
import tomllib
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar, cast

from quadrille.errors import InputError, OutputError, Place
from quadrille.studio import audit

FORMAT = 1

_SCHEMA = """
CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE users (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, roles TEXT NOT NULL, password TEXT NOT NULL DEFAULT '',
    active INTEGER NOT NULL DEFAULT 1, created REAL NOT NULL
);
CREATE TABLE failures (who TEXT PRIMARY KEY, count INTEGER NOT NULL, latest REAL NOT NULL);
CREATE TABLE sessions (
    hash TEXT PRIMARY KEY, user INTEGER NOT NULL REFERENCES users, csrf TEXT NOT NULL, created REAL NOT NULL,
    seen REAL NOT NULL
);
CREATE TABLE tickets (hash TEXT PRIMARY KEY, user INTEGER NOT NULL REFERENCES users, until REAL NOT NULL);
CREATE TABLE tokens (
    id INTEGER PRIMARY KEY, user INTEGER NOT NULL REFERENCES users, name TEXT NOT NULL, hash TEXT NOT NULL UNIQUE,
    scope TEXT NOT NULL, until REAL NOT NULL, created REAL NOT NULL
);
CREATE TABLE projects (
    id TEXT PRIMARY KEY, owner INTEGER NOT NULL REFERENCES users, name TEXT NOT NULL, state TEXT NOT NULL,
    version INTEGER NOT NULL, file TEXT NOT NULL, source TEXT NOT NULL, size INTEGER NOT NULL, sha256 TEXT NOT NULL,
    fingerprint TEXT NOT NULL, records INTEGER NOT NULL, columns INTEGER NOT NULL, study INTEGER, candidate INTEGER,
    choice TEXT NOT NULL, approval TEXT NOT NULL, created REAL NOT NULL, changed REAL NOT NULL
);
CREATE TABLE documents (
    project TEXT NOT NULL REFERENCES projects, kind TEXT NOT NULL, version INTEGER NOT NULL, text TEXT NOT NULL,
    user INTEGER NOT NULL, created REAL NOT NULL, PRIMARY KEY (project, kind, version)
);
CREATE TABLE studies (
    id INTEGER PRIMARY KEY, project TEXT NOT NULL REFERENCES projects, measures TEXT NOT NULL, created REAL NOT NULL
);
CREATE TABLE jobs (
    id INTEGER PRIMARY KEY, project TEXT NOT NULL, user INTEGER NOT NULL, kind TEXT NOT NULL, spec TEXT NOT NULL,
    key TEXT NOT NULL, state TEXT NOT NULL, wish TEXT NOT NULL, worker TEXT NOT NULL, lease REAL NOT NULL,
    attempts INTEGER NOT NULL, done INTEGER NOT NULL, total INTEGER NOT NULL, message TEXT NOT NULL,
    created REAL NOT NULL, started REAL, ended REAL, UNIQUE (user, key)
);
CREATE INDEX jobs_waiting ON jobs (state, lease);
CREATE INDEX jobs_of_project ON jobs (project, kind);
CREATE TABLE comments (
    id INTEGER PRIMARY KEY, project TEXT NOT NULL, user INTEGER NOT NULL, text TEXT NOT NULL, created REAL NOT NULL
);
CREATE TABLE audit (
    number INTEGER PRIMARY KEY, time TEXT NOT NULL, who TEXT NOT NULL, role TEXT NOT NULL, action TEXT NOT NULL,
    project TEXT NOT NULL, detail TEXT NOT NULL, previous TEXT NOT NULL, hash TEXT NOT NULL
);
"""

ROLES = ("analyst", "reviewer", "admin")
STATES = ("draft", "submitted", "approved", "rejected", "released")
"""What a project can be; any change of data, roles, job or choice leads back to draft."""
DOCUMENTS = ("codebook", "job", "policy")
"""The texts of a project that are kept in versions."""

_T = TypeVar("_T")


@dataclass(frozen=True)
class User:
    """Who may do what: `roles` are some of ROLES."""

    id: int
    name: str
    roles: tuple[str, ...]
    active: bool = True
    created: float = 0.0

    def has(self, role: str) -> bool:
        """Whether the user has a role."""
        return role in self.roles


@dataclass(frozen=True)
class Session:
    """A browser that has logged in, or a request with a token; `csrf` must come with every change of a browser."""

    user: User
    csrf: str = ""
    hash: str = ""
    scope: str = "run"
    created: float = 0.0


@dataclass(frozen=True)
class Project:
    """A project: `file` is the name that the user knows, `source` is where the data are.

    `source` is "" before there are any, "dataset:NAME", the absolute path of a file of this machine, or the name of a
    file in the folder `source`. `version` grows with every change of the row. `choice` is what was proposed for
    release: {"study", "candidate", "reason", "format", "shuffle"} and more; `approval` binds it.
    """

    id: str
    owner: int
    name: str
    state: str
    version: int
    file: str
    source: str
    size: int
    sha256: str
    fingerprint: str
    records: int
    columns: int
    study: int | None
    candidate: int | None
    choice: dict[str, Any]
    approval: dict[str, Any]
    created: float
    changed: float


@dataclass(frozen=True)
class Document:
    """A version of a codebook, job or policy; `user` 0 is the program itself."""

    project: str
    kind: str
    version: int
    text: str
    user: int
    created: float


@dataclass(frozen=True)
class StudyRow:
    """A study of a project; `measures` is filled when its search begins: [{"address", "side", "direction"}, ...]."""

    id: int
    project: str
    measures: tuple[dict[str, str], ...]
    created: float


@dataclass(frozen=True)
class Job:
    """A piece of work for the worker, as `jobs` describes it."""

    id: int
    project: str
    user: int
    kind: str
    spec: dict[str, Any]
    key: str
    state: str
    wish: str
    worker: str
    lease: float
    attempts: int
    done: int
    total: int
    message: str
    created: float
    started: float | None
    ended: float | None

    @property
    def over(self) -> bool:
        """Whether nothing more will come of it."""
        return self.state in ("done", "failed", "cancelled")


@dataclass(frozen=True)
class Comment:
    """A remark on a project, with the name of who made it."""

    id: int
    project: str
    user: str
    text: str
    created: float


class ChangedError(Exception):
    """Somebody else was faster: the version that a change was made from is no longer the newest."""

    def __init__(self, newest: int) -> None:
        super().__init__(f"version {newest} is the newest")
        self.newest = newest


class KeyUsedError(Exception):
    """An idempotency key stands for another request already."""


@dataclass(frozen=True)
class Home:
    """The folder of the studio, for its owner alone."""

    path: Path

    @property
    def database(self) -> Path:
        """The SQLite file."""
        return self.path / "studio.db"

    @property
    def scratch(self) -> Path:
        """Where workers put what is temporary; emptied at start."""
        return self.path / "scratch"

    @property
    def run(self) -> Path:
        """What belongs to the running program: its number, the one-time address, the catalogue."""
        return self.path / "run"

    def project(self, project: str) -> Path:
        """The folder of a project."""
        return self.path / "projects" / project

    def source(self, project: Project) -> Path:
        """The data file of a project that has one."""
        return self.project(project.id) / "source" / project.source  # an absolute path stays as it is

    def study(self, study: StudyRow) -> Path:
        """The file of a study."""
        return self.project(study.project) / "studies" / str(study.id)

    def result(self, job: Job) -> Path:
        """The result of a job, JSON."""
        return self.project(job.project) / "results" / f"{job.id}.json"

    def report(self, project: str, job: int) -> Path:
        """The report that a job has written."""
        return self.project(project) / "reports" / f"{job}.html"

    def release(self, project: str, job: int) -> Path:
        """The folder of a release: public and confidential."""
        return self.project(project) / "releases" / str(job)

    def prepare(self) -> None:
        """Make the folders, for their owner alone."""
        for folder in (self.path, self.path / "projects", self.scratch, self.run):
            private(folder)


def private(folder: Path) -> Path:
    """Make a folder that only its owner can look into."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder.stat().st_uid != os.geteuid():
            raise OutputError(f"The folder {str(folder)!r} belongs to another user. Name another one with --home.")
        folder.chmod(0o700)
    except OSError as error:
        raise OutputError(f"Cannot use the folder {str(folder)!r}: {error.strerror}. Name another --home.") from None
    return folder


def hashed(token: str) -> str:
    """Return what is stored in the place of a token: 256 random bits need no salt."""
    return hashlib.blake2b(token.encode(), digest_size=32).hexdigest()


def canonical(document: object) -> str:
    """Return JSON that is the same for the same contents."""
    return json.dumps(document, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def toml(text: str) -> dict[str, Any]:
    """Read TOML that anybody may have sent: whatever is wrong with it, a million brackets among it, is a ValueError."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("It is nested too deeply") from None


class Store:
    """The data base; safe to share between threads."""

    def __init__(self, home: Home, *, clock: Callable[[], float] = time.time) -> None:
        self.home = home
        self.now = clock
        self._local = threading.local()
        self._opened: list[sqlite3.Connection] = []
        home.prepare()
        new = not home.database.exists()
        if new:
            os.close(os.open(home.database, os.O_WRONLY | os.O_CREAT, 0o600))
        try:
            self._open()
        except sqlite3.Error as error:  # its text is about the file, not about what it holds
            raise OutputError(
                f"The data base of the studio in {str(home.path)!r} cannot be used: {error}. Make room there, restore "
                "its last copy, or name another folder with --home."
            ) from None

    def _open(self) -> None:
        mode = self.db.execute("PRAGMA journal_mode=WAL").fetchone()[0]
        if mode != "wal":
            raise OutputError(
                f"The folder {str(self.home.path)!r} is on a file system that cannot hold a data base which several "
                "processes use, such as a network share. Name a folder of this machine with --home."
            )
        self._set_up()

    @property
    def db(self) -> sqlite3.Connection:
        """The connection of this thread."""
        found = getattr(self._local, "db", None)
        if found is None:
            found = sqlite3.connect(self.home.database, timeout=30, isolation_level=None, check_same_thread=False)
            found.row_factory = sqlite3.Row
            found.execute("PRAGMA synchronous=FULL")
            found.execute("PRAGMA foreign_keys=ON")
            found.execute("PRAGMA trusted_schema=OFF")
            self._local.db = found
            self._opened.append(found)
        return found

    def close(self) -> None:
        """Close the connections of all threads; nothing may be at work."""
        for each in self._opened:
            each.close()
        self._opened.clear()
        self._local = threading.local()

    @contextmanager
    def writing(self) -> Generator[sqlite3.Connection]:
        """Commit what the block writes, or nothing of it; a block within another is a part of that."""
        db = self.db
        if db.in_transaction:
            yield db
            return
        db.execute("BEGIN IMMEDIATE")
        try:
            yield db
        except BaseException:
            db.execute("ROLLBACK")
            raise
        db.execute("COMMIT")

    def _set_up(self) -> None:
        with self.writing() as db:
            if db.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0] == 0:
                for statement in _SCHEMA.split(";"):
                    db.execute(statement)
                db.execute("INSERT INTO settings VALUES ('format', ?)", (str(FORMAT),))
                db.execute("INSERT INTO settings VALUES ('name', ?)", (f"q-{secrets.token_hex(4)}",))
            found = self.setting("format")
        if found != str(FORMAT):
            raise InputError(f"The folder {str(self.home.path)!r} was written by another version of the studio.")

    def _one(self, kind: type[_T], query: str, given: Sequence[object] = ()) -> _T | None:
        row = self.db.execute(query, given).fetchone()
        return None if row is None else _made(kind, row)

    def _all(self, kind: type[_T], query: str, given: Sequence[object] = ()) -> list[_T]:
        return [_made(kind, row) for row in self.db.execute(query, given).fetchall()]

    # --- settings -----------------------------------------------------------------------------------------------

    def setting(self, key: str, default: str = "") -> str:
        """Return a setting."""
        row = self.db.execute("SELECT value FROM settings WHERE key = ?", (key,)).fetchone()
        return default if row is None else cast("str", row[0])

    def set(self, key: str, value: str) -> None:
        """Keep a setting."""
        with self.writing() as db:
            db.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", (key, value))

    # --- audit --------------------------------------------------------------------------------------------------

    def record(
        self, who: User | str, action: str, project: str = "", detail: Mapping[str, object] | None = None
    ) -> None:
        """Add a row to the audit, in the transaction that is open."""
        name, role = (who, "") if isinstance(who, str) else (who.name, ",".join(who.roles))
        with self.writing() as db:
            audit.append(db, self.now(), name, role, action, project, canonical(dict(detail or {})))

    # --- users --------------------------------------------------------------------------------------------------

    def user(self, user: int) -> User | None:
        """Return a user by number."""
        return self._one(User, "SELECT id, name, roles, active, created FROM users WHERE id = ?", (user,))

    def user_named(self, name: str) -> User | None:
        """Return a user by name."""
        return self._one(User, "SELECT id, name, roles, active, created FROM users WHERE name = ?", (name,))

    def users(self) -> list[User]:
        """Return all users."""
        return self._all(User, "SELECT id, name, roles, active, created FROM users ORDER BY name")

    def add_user(self, by: User | str, name: str, roles: Sequence[str], password: str = "") -> User:
        """Add a user; `password` is the hash that `users` makes."""
        with self.writing() as db:
            row = db.execute(
                "INSERT INTO users (name, roles, password, created) VALUES (?, ?, ?, ?) RETURNING id",
                (name, ",".join(roles), password, self.now()),
            ).fetchone()
            self.record(by, "user added", detail={"name": name, "roles": list(roles)})
        return User(row[0], name, tuple(roles))

    # --- projects -----------------------------------------------------------------------------------------------

    def create_project(self, by: User, name: str) -> Project:
        """Make an empty project with its folders."""
        number, now = secrets.token_hex(16), self.now()
        for folder in ("", "source", "studies", "results", "reports", "releases"):
            private(self.home.project(number) / folder)
        with self.writing() as db:
            db.execute(
                "INSERT INTO projects VALUES (?, ?, ?, 'draft', 1, '', '', 0, '', '', 0, 0, NULL, NULL, '{}', '{}', "
                "?, ?)",
                (number, by.id, name, now, now),
            )
            self.record(by, "project made", number)
        return self.project(number)

    def project(self, project: str) -> Project:
        """Return a project; KeyError if there is none."""
        found = self._one(Project, "SELECT * FROM projects WHERE id = ?", (project,))
        if found is None:
            raise KeyError(project)
        return found

    def projects(self, user: User, state: str | None = None) -> list[Project]:
        """Return the projects that a user may see, the latest first: own ones, and for a reviewer submitted ones."""
        query = (
            "SELECT * FROM projects WHERE (owner = ? AND ?) OR (? AND state IN ('submitted', 'approved', 'released')) "
            "ORDER BY changed DESC, id"
        )
        found = self._all(Project, query, (user.id, user.has("analyst"), user.has("reviewer")))
        return [each for each in found if state is None or each.state == state]

    def change_project(
        self,
        by: User | str,
        project: str,
        action: str,
        values: Mapping[str, object],
        *,
        expected: int | None = None,
        keeps_state: bool = False,
        detail: Mapping[str, object] | None = None,
    ) -> Project:
        """Change columns of a project, and lead it back to draft unless `keeps_state`; `expected` is its version."""
        with self.writing() as db:
            found = self.project(project)
            if expected is not None and found.version != expected:
                raise ChangedError(found.version)
            changed: dict[str, object] = {**values, "version": found.version + 1, "changed": self.now()}
            if not keeps_state:
                if found.state in ("submitted", "approved"):
                    self.record(by, "sign-off void", project, {"was": found.state, "because": action})
                changed |= {"state": "draft", "approval": {}}
            columns = ", ".join(f"{name} = ?" for name in changed)
            texts = [
                canonical(cast("object", value)) if isinstance(value, dict) else value for value in changed.values()
            ]
            db.execute(f"UPDATE projects SET {columns} WHERE id = ?", (*texts, project))
            self.record(by, action, project, detail)
        return self.project(project)

    # --- documents ----------------------------------------------------------------------------------------------

    def document(self, project: str, kind: str, version: int | None = None) -> Document | None:
        """Return the newest version of a codebook, job or policy, or one of the others."""
        query = "SELECT * FROM documents WHERE project = ? AND kind = ? AND (? IS NULL OR version = ?)"
        return self._one(Document, f"{query} ORDER BY version DESC LIMIT 1", (project, kind, version, version))

    def put_document(
        self, by: User | str, project: str, kind: str, text: str, *, expected: int | None = None
    ) -> Document:
        """Add a version; `expected` is the version that it was made from (0: none), None means any."""
        with self.writing() as db:
            held = self.document(project, kind)
            version = 0 if held is None else held.version
            if expected is not None and expected != version:
                raise ChangedError(version)
            if held is not None and held.text == text:
                return held
            user = 0 if isinstance(by, str) else by.id
            db.execute(
                "INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?)", (project, kind, version + 1, text, user, self.now())
            )
            detail = {"version": version + 1, "blake2b": hashed(text)}
            self.change_project(by, project, f"{kind} changed", {}, keeps_state=user == 0, detail=detail)
        return cast("Document", self.document(project, kind))

    # --- studies ------------------------------------------------------------------------------------------------

    def add_study(self, project: str) -> StudyRow:
        """Give a search the number of its study."""
        with self.writing() as db:
            query = "INSERT INTO studies (project, measures, created) VALUES (?, '[]', ?) RETURNING *"
            return _made(StudyRow, db.execute(query, (project, self.now())).fetchone())

    def study(self, study: int) -> StudyRow:
        """Return a study; KeyError if there is none."""
        found = self._one(StudyRow, "SELECT * FROM studies WHERE id = ?", (study,))
        if found is None:
            raise KeyError(study)
        return found

    def studies(self, project: str) -> list[StudyRow]:
        """Return the studies of a project, the latest first."""
        return self._all(StudyRow, "SELECT * FROM studies WHERE project = ? ORDER BY id DESC", (project,))

    def describe_study(self, study: int, measures: Sequence[Mapping[str, str]]) -> None:
        """Keep what the measures of a study are."""
        with self.writing() as db:
            db.execute("UPDATE studies SET measures = ? WHERE id = ?", (json.dumps(list(map(dict, measures))), study))

    # --- jobs ---------------------------------------------------------------------------------------------------

    def add_job(self, by: User, project: str, kind: str, spec: Mapping[str, object], key: str = "") -> Job:
        """Queue a job; the same key of the same user stands for the same job.

        A search gets the number of a study of its own, unless it goes on with one that is there.
        """
        key, asked = key or f"own-{secrets.token_hex(16)}", dict(spec)
        new_study = kind == "search" and "study" not in asked
        with self.writing() as db:
            held = self._one(Job, "SELECT * FROM jobs WHERE user = ? AND key = ?", (by.id, key))
            if held is not None:
                before = {name: value for name, value in held.spec.items() if not new_study or name != "study"}
                if (held.project, held.kind, before) != (project, kind, asked):
                    raise KeyUsedError(key)
                return held
            if new_study:
                asked["study"] = self.add_study(project).id
            row = db.execute(
                "INSERT INTO jobs (project, user, kind, spec, key, state, wish, worker, lease, attempts, done, total, "
                "message, created) VALUES (?, ?, ?, ?, ?, 'queued', '', '', 0, 0, 0, 0, '', ?) RETURNING *",
                (project, by.id, kind, canonical(asked), key, self.now()),
            ).fetchone()
            made = _made(Job, row)
            self.record(by, f"{kind} asked for", project, {"job": made.id})
        return made

    def job(self, job: int) -> Job:
        """Return a job; KeyError if there is none."""
        found = self._one(Job, "SELECT * FROM jobs WHERE id = ?", (job,))
        if found is None:
            raise KeyError(job)
        return found

    def jobs(self, project: str, kind: str | None = None, *, most: int = 100) -> list[Job]:
        """Return the jobs of a project, the latest first."""
        query = "SELECT * FROM jobs WHERE project = ? AND (? IS NULL OR kind = ?) ORDER BY id DESC LIMIT ?"
        return self._all(Job, query, (project, kind, kind, most))

    def jobs_of(self, user: User, state: str | None = None, *, most: int = 100) -> list[Job]:
        """Return the jobs that a user has asked for, the latest first."""
        query = "SELECT * FROM jobs WHERE user = ? AND (? IS NULL OR state = ?) ORDER BY id DESC LIMIT ?"
        return self._all(Job, query, (user.id, state, state, most))

    def latest_job(self, project: str, kind: str, *, done: bool = False) -> Job | None:
        """Return the latest job of a kind, or the latest that is done."""
        query = (
            "SELECT * FROM jobs WHERE project = ? AND kind = ? AND (? = 0 OR state = 'done') ORDER BY id DESC LIMIT 1"
        )
        return self._one(Job, query, (project, kind, done))

    def result(self, job: Job | None) -> dict[str, Any] | None:
        """Return the result of a job, as `jobs` describes it; None while there is none."""
        if job is None or job.state != "done":
            return None
        try:
            return json.loads(self.home.result(job).read_text(encoding="utf-8"))
        except OSError:  # shredded
            return None

    def place(self, job: Job) -> Place | None:
        """Return where in a file the fault is for which a job failed; None where that is not known."""
        if job.state != "failed":
            return None
        try:
            told = json.loads(self.home.result(job).read_text(encoding="utf-8"))
        except OSError:  # it failed for another reason, or is shredded
            return None
        return Place(**told)

    def wish(self, by: User, job: int, wish: str) -> Job:
        """Ask for a job to `pause`, `resume` or `cancel`; ValueError where its state does not allow that."""
        with self.writing() as db:
            held = self.job(job)
            if held.over or wish not in ("pause", "resume", "cancel") or (wish == "pause" and held.kind != "search"):
                raise ValueError(wish)
            if wish == "pause" and held.state == "queued":
                values = ("paused", "", None)
            elif wish == "cancel" and held.state in ("queued", "paused"):
                values = ("cancelled", "", self.now())
            elif wish == "resume":
                values = ("queued" if held.state == "paused" else held.state, "", None)
            else:
                values = (held.state, wish, None)
            query = "UPDATE jobs SET state = ?, wish = ?, ended = ? WHERE id = ?"
            db.execute(query, (*values, job))
            self.record(by, f"{wish} asked for", held.project, {"job": job})
        return self.job(job)

    # --- comments -----------------------------------------------------------------------------------------------

    def add_comment(self, by: User, project: str, text: str) -> None:
        """Add a remark to a project."""
        with self.writing() as db:
            query = "INSERT INTO comments (project, user, text, created) VALUES (?, ?, ?, ?)"
            db.execute(query, (project, by.id, text, self.now()))
            self.record(by, "comment", project)

    def comments(self, project: str) -> list[Comment]:
        """Return the remarks on a project, the earliest first."""
        query = (
            "SELECT c.id, c.project, u.name AS user, c.text, c.created FROM comments c JOIN users u ON u.id = c.user "
            "WHERE c.project = ? ORDER BY c.id"
        )
        return self._all(Comment, query, (project,))


def _made(kind: type[_T], row: sqlite3.Row) -> _T:
    """Make the object of a row: JSON and lists are stored as text."""
    values: dict[str, Any] = {each.name: row[each.name] for each in fields(cast("Any", kind))}
    for name in ("spec", "choice", "approval"):
        if name in values:
            values[name] = json.loads(values[name])
    if "measures" in values:
        values["measures"] = tuple(json.loads(values["measures"]))
    if "roles" in values:
        values["roles"] = tuple(role for role in str(values["roles"]).split(",") if role)
        values["active"] = bool(values["active"])
    return kind(**values)


def read_only(path: Path) -> closing[sqlite3.Connection]:
    """Open a data base for one short look that keeps nobody from writing."""
    return closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=5))
