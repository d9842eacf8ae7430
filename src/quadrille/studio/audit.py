"""The audit: one row per event, each bound to the one before by a hash, so that a rewritten past is found.

The head of the chain is written where others keep it: on the terminal once a day, in a copy, in each dossier.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

START = "0" * 64
"""What the first row is bound to."""
_COLUMNS = "number, time, who, role, action, project, detail, previous, hash"


@dataclass(frozen=True)
class Event:
    """A row of the audit; `detail` is canonical JSON and holds no data."""

    number: int
    time: str
    who: str
    role: str
    action: str
    project: str
    detail: str
    previous: str
    hash: str

    def as_dict(self) -> dict[str, object]:
        """Return plain values, for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Checked:
    """The outcome of going through the chain: how many rows, the head, and the first row that does not fit."""

    events: int
    head: str
    broken: int | None


def _hash(number: int, *texts: str) -> str:
    """Return BLAKE2b of everything in a row, the hash of the row before included."""
    return hashlib.blake2b(json.dumps([number, *texts], ensure_ascii=False).encode(), digest_size=32).hexdigest()


def append(db: sqlite3.Connection, now: float, who: str, role: str, action: str, project: str, detail: str) -> None:
    """Add a row, in the transaction that is open."""
    number, previous = head(db)
    time = datetime.fromtimestamp(now, UTC).isoformat(timespec="milliseconds")
    texts = (time, who, role, action, project, detail, previous)
    row = (number + 1, *texts, _hash(number + 1, *texts))
    db.execute(f"INSERT INTO audit ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)


def head(db: sqlite3.Connection) -> tuple[int, str]:
    """Return the number and the hash of the last row."""
    found = db.execute("SELECT number, hash FROM audit ORDER BY number DESC LIMIT 1").fetchone()
    return (0, START) if found is None else (found[0], found[1])


def events(db: sqlite3.Connection, after: int = 0, most: int = -1) -> Iterator[Event]:
    """Yield the rows after a number."""
    query = f"SELECT {_COLUMNS} FROM audit WHERE number > ? ORDER BY number LIMIT ?"
    for row in db.execute(query, (after, most)):
        yield Event(*row)


def verify(db: sqlite3.Connection) -> Checked:
    """Work out every hash again; a row that was changed, taken out or put in does not fit."""
    number, previous = 0, START
    for event in events(db):
        expected = _hash(
            *(number + 1, event.time, event.who, event.role, event.action, event.project, event.detail, previous)
        )
        if event.number != number + 1 or event.previous != previous or event.hash != expected:
            return Checked(number, previous, event.number)
        number, previous = event.number, event.hash
    return Checked(number, previous, None)


def copy(db: sqlite3.Connection, path: Path) -> int:
    """Add the rows that a copy does not have yet, a line of JSON each; return how many."""
    last = 0
    if path.exists():
        with path.open("rb") as file:
            for line in file:
                last = json.loads(line)["number"]
    added = 0
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(handle, "a", encoding="utf-8") as file:
        for event in events(db, last):
            file.write(json.dumps(event.as_dict(), ensure_ascii=False) + "\n")
            added += 1
        file.flush()
        os.fsync(file.fileno())
    return added


def differs(db: sqlite3.Connection, path: Path) -> int | None:
    """Return the number of the first event of a copy that the audit no longer has as it was; None if all fit."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            held = json.loads(line)
            row = db.execute("SELECT hash FROM audit WHERE number = ?", (held["number"],)).fetchone()
            if row is None or row[0] != held["hash"]:
                return int(held["number"])
    return None
