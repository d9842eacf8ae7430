"""A study on disk: one SQLite file with the candidates, filled first, and their results, appended.

It survives being killed at any moment: what is committed is kept, what is not is computed again on resume. Only its
owner can read it, because it holds the seeds.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import sqlite3
from bisect import bisect_left
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from errno import EPERM
from pathlib import Path
from typing import Any, NamedTuple, cast

from quadrille.errors import InputError, MismatchError, OutputError, unknown_name

FORMAT = 1
DONE, INFEASIBLE, FAILED = 0, 1, 2
STATUS = ("done", "infeasible", "failed")

_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE designs (id INTEGER PRIMARY KEY, json TEXT NOT NULL UNIQUE);
CREATE TABLE seeds (id INTEGER PRIMARY KEY, seed TEXT NOT NULL UNIQUE);
CREATE TABLE grids (identity TEXT PRIMARY KEY, seeds TEXT NOT NULL);
CREATE TABLE candidates (
    id INTEGER PRIMARY KEY, design INTEGER NOT NULL, seed INTEGER NOT NULL, UNIQUE (design, seed)
);
CREATE TABLE results (id INTEGER PRIMARY KEY, status INTEGER NOT NULL, reason TEXT, seconds REAL{values});
CREATE TABLE later (id INTEGER PRIMARY KEY, reason TEXT{later});
CREATE TABLE notes (id INTEGER PRIMARY KEY, note TEXT NOT NULL);
"""


TABLES: set[str] = set(re.findall(r"CREATE TABLE (\w+)", _SCHEMA))


class Pending(NamedTuple):
    """A candidate without a result."""

    id: int
    design: int
    seed: str


class Result(NamedTuple):
    """The outcome of a candidate: scores in the order of the measures, None where undefined."""

    id: int
    status: int
    reason: str
    seconds: float
    values: tuple[float | None, ...]


class Stored(NamedTuple):
    """A candidate as it stands in the study, without its seed: `seed_no` only tells the seeds apart."""

    id: int
    design: str
    seed_no: int
    status: int | None
    reason: str
    seconds: float | None
    note: str
    values: tuple[float | None, ...]
    """The scores in the order of the measures, those of the costly ones last."""


class Point(NamedTuple):
    """A candidate in the plane of two measures, with its scores as they are."""

    id: int
    x: float
    y: float


class Header(NamedTuple):
    """What a study is about."""

    fingerprint: str
    records: int
    measures: tuple[str, ...]
    then: tuple[str, ...]


def seed_text(seed: int | str) -> str:
    """Write a seed so that numbers and secrets cannot be confused."""
    return f"number {seed}" if isinstance(seed, int) else seed


FORGOTTEN = "forgotten "
"""How the text begins that stands where a seed stood."""


def seed_of(text: str) -> int | str:
    """Read a seed back."""
    if text.startswith(FORGOTTEN):
        raise InputError("The seed of this candidate was forgotten, so its plan cannot be drawn again.")
    return int(text.removeprefix("number ")) if text.startswith("number ") else text


@contextmanager
def locked(path: Path) -> Generator[None]:
    """Keep a second search out while this one runs."""
    lock = path.with_name(f".{path.name}.lock")
    parents = [parent for parent in path.absolute().parents if not parent.exists()]
    made = not lock.exists()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = _lock(lock)
    except BlockingIOError:
        raise OutputError(f"Another search is working on the study {str(path)!r}. Wait for it or stop it.") from None
    except OSError as error:
        if made:  # a file system that has no locks keeps nobody out, so nobody is at work
            with suppress(OSError):
                lock.unlink()
        _remove_empty(parents)
        raise _cannot_write(path, error) from None
    try:
        yield
    finally:
        with suppress(OSError):
            lock.unlink()
        os.close(handle)
        _remove_empty(parents)


def _remove_empty(parents: Iterable[Path]) -> None:
    """Remove folders that were made for a study, unless it is there."""
    with suppress(OSError):
        for parent in parents:
            parent.rmdir()


def _lock(lock: Path) -> int:
    """Lock a file; start again if the holder before us removed it in the meantime."""
    while True:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if lock.exists() and os.fstat(handle).st_ino == lock.stat().st_ino:
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


class Store:
    """An open study. Writing is for one search at a time; reading is for anybody with access to the file."""

    def __init__(self, path: Path, connection: sqlite3.Connection, header: Header) -> None:
        self.path = path
        self.header = header
        self._db = connection

    @classmethod
    def create_or_open(cls, path: Path, header: Header) -> Store:
        """Open the study for writing, or make it; refuse one of other data or other measures."""
        if not path.exists() or path.stat().st_size == 0:
            return cls(path, _create(path, header), header)
        db = _connect(path)
        if _empty(db):  # a search was stopped before it had written the tables
            db.close()
            return cls(path, _create(path, header), header)
        found = _header(path, db)
        if found.fingerprint != header.fingerprint:
            raise MismatchError(
                f"The study {str(path)!r} was made for other data. Use the file, codebook and weight it was made with, "
                "or another name for the study."
            )
        if (found.measures, found.then) != (header.measures, header.then):
            asked = ", ".join(found.measures + tuple(f"then {m}" for m in found.then))
            raise MismatchError(f"The study {str(path)!r} has other measures: {asked}. Use these, or another name.")
        _keep_a_journal(db)
        return cls(path, db, header)

    @classmethod
    def open(cls, path: Path) -> Store:
        """Open a study for reading."""
        if not path.is_file():
            raise InputError(f"There is no study {str(path)!r}. Check the path, or make one with `quadrille search`.")
        db = _connect(path)
        return cls(path, db, _header(path, db))

    @classmethod
    def look(cls, path: Path) -> Store:
        """Open a study for a short look, also while a search writes it: nothing can be written, not even a journal."""
        try:
            db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=5)
        except sqlite3.Error as error:
            raise InputError(f"Cannot open the study {str(path)!r}: {error}.") from None
        _guard(db)
        try:
            return cls(path, db, _header(path, db))
        except BaseException:
            db.close()
            raise

    def close(self) -> None:
        """Stop reading; a search that is running is not disturbed."""
        self._db.close()

    def finish(self) -> None:
        """Stop writing, and leave one file behind without a journal next to it; a reader may make that wait."""
        with suppress(sqlite3.Error):
            self._db.execute("PRAGMA busy_timeout=2000")
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._db.execute("PRAGMA journal_mode=DELETE")
        self._db.close()

    def add(self, candidates: Iterable[tuple[str, int | str]]) -> int:
        """Register designs with their seeds, in order, each once; return how many there are in all."""
        designs = {text: number for number, text in self._db.execute("SELECT id, json FROM designs")}
        seeds = {text: number for number, text in self._db.execute("SELECT id, seed FROM seeds")}

        def numbered() -> Iterator[tuple[int, int]]:
            for design, seed in candidates:
                yield (
                    self._number("designs", "json", design, designs),
                    self._number("seeds", "seed", seed_text(seed), seeds),
                )

        with self.writing():
            self._db.executemany("INSERT OR IGNORE INTO candidates (design, seed) VALUES (?, ?)", numbered())
        return self.count()

    def _number(self, table: str, column: str, text: str, known: dict[str, int]) -> int:
        if text not in known:
            done = self._db.execute(f"INSERT INTO {table} ({column}) VALUES (?)", (text,))
            known[text] = cast("int", done.lastrowid)
        return known[text]

    def seeds_of_grid(self, identity: str, fresh: Sequence[int | str]) -> list[int | str]:
        """Return the secret seeds that this grid has in the study, storing fresh ones when it is new."""
        row = self._db.execute("SELECT seeds FROM grids WHERE identity = ?", (identity,)).fetchone()
        if row is not None:
            return [seed_of(text) for text in json.loads(row[0])]
        with self.writing():
            texts = json.dumps([seed_text(seed) for seed in fresh])
            self._db.execute("INSERT INTO grids (identity, seeds) VALUES (?, ?)", (identity, texts))
        return list(fresh)

    def designs(self) -> dict[int, str]:
        """Return all designs by number."""
        return dict(self._db.execute("SELECT id, json FROM designs"))

    def pending(self) -> Generator[Pending]:
        """Yield the candidates without a result, in order, without holding them all. Close it before the store."""
        with closing(_connect(self.path)) as reader:
            query = (
                "SELECT c.id, c.design, s.seed FROM candidates c JOIN seeds s ON s.id = c.seed "
                "WHERE NOT EXISTS (SELECT 1 FROM results r WHERE r.id = c.id) ORDER BY c.id"
            )
            for row in reader.execute(query):
                yield Pending(*row)

    def write(self, results: Sequence[Result]) -> None:
        """Append results and commit."""
        self._insert("INSERT INTO results", [(r.id, r.status, r.reason or None, r.seconds, *r.values) for r in results])

    def write_later(self, rows: Sequence[tuple[int, str, tuple[float | None, ...]]]) -> None:
        """Append the scores of the costly measures and commit."""
        values = [(number, reason or None, *scores) for number, reason, scores in rows]
        self._insert("INSERT OR REPLACE INTO later", values)

    def _insert(self, where: str, rows: Sequence[tuple[object, ...]]) -> None:
        """Write whole rows of a table and commit; all of them are of one length."""
        with self.writing():
            self._db.executemany(f"{where} VALUES ({', '.join('?' * len(rows[0]))})", rows)

    def has_later(self, candidate: int) -> bool:
        """Tell whether the costly measures of a candidate are there."""
        return self._db.execute("SELECT 1 FROM later WHERE id = ?", (candidate,)).fetchone() is not None

    def since(self, candidate: int, most: int = -1) -> list[Result]:
        """Return the results after that of a candidate, by number: a search stores them in this order.

        So whoever asks again with the last number that they have seen misses none.
        """
        values, _ = _score_columns(self.header, ", m{}", "")
        query = f"SELECT id, status, reason, seconds{values} FROM results WHERE id > ? ORDER BY id LIMIT ?"
        with intact(self.path):
            return [
                Result(number, status, reason or "", seconds, tuple(scores))
                for number, status, reason, seconds, *scores in self._db.execute(query, (candidate, most)).fetchall()
            ]

    def candidate(self, candidate: int) -> Stored:
        """Return one candidate with its scores."""
        with intact(self.path):
            row = self._db.execute(f"{self._all_columns()} WHERE c.id = ?", (candidate,)).fetchone()
            if row is None:
                raise self._no_candidate(candidate)
            number, design, seed_no, status, reason, seconds, note, *scores = row
            text = self._db.execute("SELECT json FROM designs WHERE id = ?", (design,)).fetchone()[0]
        return Stored(number, text, seed_no, status, reason or "", seconds, note or "", tuple(scores))

    def frontier(self, x: str, y: str, better: tuple[str, str] | None = None) -> list[Point]:
        """Return the candidates that no other dominates on two measures, in order of the first.

        The same ones as `Study.frontier` finds; here the data base looks for them, also while the study grows.
        `better` are the directions of the two measures, for those who know them and import no measure.
        """
        query = f"{self._points(x, y, better)} SELECT id, own_x, own_y, x, y FROM points"
        stairs = _Stairs()
        with intact(self.path), closing(self._db.execute(query)) as rows:
            for number, own_x, own_y, left, low in rows:
                stairs.meet(Point(number, own_x, own_y), left, low)
        return stairs.points()

    def points(self, x: str, y: str, better: tuple[str, str], after: int = 0, most: int = -1) -> Generator[Point]:
        """Yield the candidates after a number that have two scores, turned so that less is better, by number.

        They are not held: 100,000 of them as objects take more memory than all else of a web process.
        """
        query = f"{self._points(x, y, better)} SELECT id, x, y FROM points WHERE id > ? ORDER BY id LIMIT ?"
        with intact(self.path), closing(self._db.execute(query, (after, most))) as rows:
            yield from map(Point._make, rows)

    def same_design(self, candidate: int) -> list[int]:
        """Return the candidates that differ from one by their seed only, itself among them."""
        query = "SELECT id FROM candidates WHERE design = (SELECT design FROM candidates WHERE id = ?) ORDER BY id"
        with intact(self.path):
            return [row[0] for row in self._db.execute(query, (candidate,)).fetchall()]

    def last(self) -> int:
        """Return the number of the latest result, 0 before the first."""
        with intact(self.path):
            return self._db.execute("SELECT COALESCE(MAX(id), 0) FROM results").fetchone()[0]

    def dominance(
        self, candidate: int, x: str, y: str, better: tuple[str, str] | None = None
    ) -> tuple[int, int] | None:
        """Count the candidates that one dominates on two measures, and those that dominate it; None without scores."""
        query = (
            f"{self._points(x, y, better)}, own AS (SELECT x AS a, y AS b FROM points WHERE id = ?) SELECT "
            "SUM(x >= a AND y >= b AND (x > a OR y > b)), SUM(x <= a AND y <= b AND (x < a OR y < b)) FROM points, own"
        )
        with intact(self.path):
            counts = cast("tuple[int | None, int | None]", self._db.execute(query, (candidate,)).fetchone())
        return None if counts[0] is None or counts[1] is None else (counts[0], counts[1])

    def _points(self, x: str, y: str, better: tuple[str, str] | None) -> str:
        """Begin a statement with the candidates that have two scores, also turned so that less is better."""
        columns = {address: f"r.m{place}" for place, address in enumerate(self.header.measures)}
        columns |= {address: f"l.m{place}" for place, address in enumerate(self.header.then)}
        for address in (x, y):
            if address not in columns:
                raise unknown_name("measure", address, columns, where=f"the study {str(self.path)!r}")
        better = better or _directions(x, y)
        turned = [_TURNED[way].format(columns[address]) for way, address in zip(better, (x, y), strict=True)]
        return (
            f"WITH points AS (SELECT r.id, {turned[0]} AS x, {turned[1]} AS y, {columns[x]} AS own_x, "
            f"{columns[y]} AS own_y FROM results r LEFT JOIN later l ON l.id = r.id "
            f"WHERE {columns[x]} IS NOT NULL AND {columns[y]} IS NOT NULL)"
        )

    def forget_seeds(self, keep: Sequence[int]) -> int:
        """Overwrite all seeds but those of some candidates, and return how many; what has no result goes with its seed.

        A seed is shared by many designs, so all candidates of a seed that is kept keep it.
        """
        for candidate in keep:
            self.recipe_parts(candidate)
        self._db.execute("PRAGMA secure_delete=ON")
        others = "seed NOT LIKE ? AND id NOT IN (SELECT c.seed FROM candidates c JOIN json_each(?) k ON k.value = c.id)"
        with self.writing():
            given = (f"{FORGOTTEN}%", json.dumps(list(keep)))
            gone = cast("int", self._db.execute(f"SELECT COUNT(*) FROM seeds WHERE {others}", given).fetchone()[0])
            self._db.execute(f"UPDATE seeds SET seed = '{FORGOTTEN}' || id WHERE {others}", given)
            self._db.execute("DELETE FROM grids")
            self._db.execute(
                "DELETE FROM candidates WHERE id NOT IN (SELECT id FROM results) "
                "AND seed IN (SELECT id FROM seeds WHERE seed LIKE ?)",
                (f"{FORGOTTEN}%",),
            )
        with self.writing():
            self._db.commit()
            self._db.execute("VACUUM")
        return gone

    def _no_candidate(self, candidate: int) -> InputError:
        return InputError(f"The study {str(self.path)!r} has no candidate {candidate}.")

    def source(self) -> dict[str, str | None]:
        """Return the data file, codebook and weight that the study was made with, where it knows."""
        row = self._db.execute("SELECT value FROM meta WHERE key = 'source'").fetchone()
        return json.loads(row[0]) if row else {}

    def remember(self, source: dict[str, str | None]) -> None:
        """Keep the names of data file, codebook and weight."""
        self._insert("INSERT OR REPLACE INTO meta", [("source", json.dumps(source))])

    def unswapped(self) -> dict[str, float | None] | None:
        """Return the scores of the file as it is, or None where an earlier version made the study."""
        row = self._db.execute("SELECT value FROM meta WHERE key = 'unswapped'").fetchone()
        return json.loads(row[0]) if row else None

    def keep_unswapped(self, scores: dict[str, float | None]) -> None:
        """Keep the scores of the file as it is."""
        self._insert("INSERT OR REPLACE INTO meta", [("unswapped", json.dumps(scores))])

    def tables(self) -> tuple[tuple[str, ...], ...]:
        """Return the published tables that the study was told of."""
        row = self._db.execute("SELECT value FROM meta WHERE key = 'tables'").fetchone()
        listed = cast("list[list[object]]", json.loads(row[0]) if row else [])
        return tuple(tuple(map(str, names)) for names in listed)

    def keep_tables(self, tables: Sequence[Sequence[str]]) -> None:
        """Keep the published tables, instead of those of before."""
        self._insert("INSERT OR REPLACE INTO meta", [("tables", json.dumps([list(names) for names in tables]))])

    def picked(self) -> dict[str, Any] | None:
        """Return what somebody picked: candidate, rule, reason and axes; None before."""
        row = self._db.execute("SELECT value FROM meta WHERE key = 'picked'").fetchone()
        return json.loads(row[0]) if row else None

    def keep_pick(self, pick: dict[str, Any]) -> None:
        """Keep what somebody picked, instead of what was picked before."""
        self._insert("INSERT OR REPLACE INTO meta", [("picked", json.dumps(pick))])

    def note(self, candidate: int, text: str) -> None:
        """Pin a note to a candidate."""
        self._insert("INSERT OR REPLACE INTO notes", [(candidate, text)])

    @contextmanager
    def writing(self) -> Generator[None]:
        """Commit what the block writes, or nothing of it; a block within another is a part of that."""
        try:
            with nullcontext() if self._db.in_transaction else self._db:
                yield
        except sqlite3.Error as error:
            raise OutputError(
                f"Cannot write to the study {str(self.path)!r}: {error}. What was stored before is intact; "
                "make room and search again to go on."
            ) from None

    def count(self, table: str = "candidates") -> int:
        """Count the rows of a table."""
        return cast("int", self._db.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0])

    def rows(self) -> Iterator[tuple[object, ...]]:
        """Return id, design, seed number, status, reason, seconds, note, the scores and the later scores."""
        yield from self._db.execute(f"{self._all_columns()} ORDER BY c.id")

    def _all_columns(self) -> str:
        values, later = _score_columns(self.header, ", r.m{}", ", l.m{}")
        return (
            f"SELECT c.id, c.design, c.seed, r.status, r.reason, r.seconds, n.note{values}{later} FROM candidates c "
            "LEFT JOIN results r ON r.id = c.id LEFT JOIN later l ON l.id = c.id LEFT JOIN notes n ON n.id = c.id"
        )

    def recipe_parts(self, candidate: int) -> tuple[str, int | str]:
        """Return the design and the seed of a candidate."""
        row = self._db.execute(
            "SELECT d.json, s.seed FROM candidates c JOIN designs d ON d.id = c.design JOIN seeds s ON s.id = c.seed "
            "WHERE c.id = ?",
            (candidate,),
        ).fetchone()
        if row is None:
            raise self._no_candidate(candidate)
        return row[0], seed_of(row[1])


_TURNED = {"lower": "{}", "higher": "-{}", "nearer 0": "ABS({})"}
"""How a score is written so that less is better, by the direction of its measure."""


class _Stairs:
    """The points that no other dominates, as they come: steps go down to the right, and equal points share one."""

    def __init__(self) -> None:
        self._x: list[float] = []
        self._y: list[float] = []
        self._steps: list[list[Point]] = []

    def meet(self, point: Point, x: float, y: float) -> None:
        """Take in a point; what it dominates goes, and it goes itself where it is dominated."""
        first = bisect_left(self._x, x)
        if first < len(self._x) and self._x[first] == x and self._y[first] == y:
            self._steps[first].append(point)
            return
        if first > 0 and self._y[first - 1] <= y:
            return
        if first < len(self._x) and self._x[first] == x and self._y[first] < y:
            return
        last = first
        while last < len(self._y) and self._y[last] >= y:
            last += 1
        self._x[first:last], self._y[first:last], self._steps[first:last] = [x], [y], [[point]]

    def points(self) -> list[Point]:
        """Return them from left to right, equal ones by number."""
        return [point for step in self._steps for point in sorted(step)]


def _directions(x: str, y: str) -> tuple[str, str]:
    from quadrille.measure import measure_of

    return measure_of(x).direction, measure_of(y).direction


MOST_TEXT = 50_000_000
"""Bytes of the longest value of a study: a design or a list of seeds is far shorter."""


def _connect(path: Path) -> sqlite3.Connection:
    try:
        db = sqlite3.connect(path, timeout=30)
    except sqlite3.Error as error:
        raise InputError(f"Cannot open the study {str(path)!r}: {error}.") from None
    _guard(db)
    return db


def _guard(db: sqlite3.Connection) -> None:
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_TEXT)
    db.execute("PRAGMA trusted_schema=OFF")  # a study can come from anywhere


def _refuse_foreign(path: Path, db: sqlite3.Connection) -> None:
    """Refuse a data base that does more than hold the tables of a study: what else is in it runs when they are read."""
    with intact(path):
        found: list[tuple[str, str, str | None]] = db.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
        tables = {name for kind, name, _ in found if kind == "table"}
        own = all(kind == "table" or (kind == "index" and sql is None) for kind, _, sql in found)
        columns = [column for name in tables & TABLES for column in db.execute(f"PRAGMA table_xinfo({name})")]
        if not own or tables != TABLES or any(hidden for *_, hidden in columns):  # hidden ones are computed
            raise InputError(
                f"The study {str(path)!r} holds other things than a search writes, such as a view or a trigger. "
                "Search again, or ask who gave it to you."
            )


def _score_columns(header: Header, measures: str, then: str) -> tuple[str, str]:
    """Return the columns of the scores, and of the later ones, in the form that a statement needs."""
    early, late = range(len(header.measures)), range(len(header.then))
    return "".join(map(measures.format, early)), "".join(map(then.format, late))


def _keep_a_journal(db: sqlite3.Connection) -> None:
    """Let a killed search lose nothing that it has committed."""
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=NORMAL")


def _create(path: Path, header: Header) -> sqlite3.Connection:
    """Make the file for its owner alone before anything is written to it."""
    new = not path.exists()
    try:
        handle = os.open(path, os.O_WRONLY | (os.O_CREAT | os.O_EXCL if new else 0), 0o600)
        with closing(os.fdopen(handle)):
            owner = os.fstat(handle).st_uid
            os.fchmod(handle, 0o600)
        if owner != os.geteuid():  # put there in advance, so that they can read it
            raise PermissionError(EPERM, "the file there belongs to another user")
    except FileExistsError:
        raise OutputError(f"Cannot write the study {str(path)!r}: a link or a new file is there. Remove it.") from None
    except OSError as error:
        raise _cannot_write(path, error) from None
    db = _connect(path)
    try:
        _keep_a_journal(db)
        values, later = _score_columns(header, ", m{} REAL", ", m{} REAL")
        meta = {"format": FORMAT, **header._asdict()}
        with db:
            db.execute("BEGIN")
            for statement in _SCHEMA.format(values=values, later=later).split(";"):
                db.execute(statement)
            db.executemany("INSERT INTO meta VALUES (?, ?)", [(k, json.dumps(v)) for k, v in meta.items()])
    except sqlite3.Error as error:
        db.close()
        if new:
            discard(path)
        raise OutputError(f"Cannot write the study {str(path)!r}: {error}. Choose another place.") from None
    return db


def discard(path: Path) -> None:
    """Remove a closed study that holds nothing, with what the data base may have left next to it."""
    for ending in ("", "-journal", "-wal", "-shm"):
        with suppress(OSError):
            path.with_name(path.name + ending).unlink()


def _empty(db: sqlite3.Connection) -> bool:
    """Tell whether the file is a data base without any table."""
    try:
        return db.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0] == 0
    except sqlite3.Error:
        return False


def _header(path: Path, db: sqlite3.Connection) -> Header:
    try:
        found = dict(db.execute("SELECT key, value FROM meta"))
    except (sqlite3.Error, ValueError):
        raise InputError(f"The file {str(path)!r} is not a study of Quadrille.") from None
    _refuse_foreign(path, db)
    with intact(path):
        meta: dict[str, Any] = {key: json.loads(value) for key, value in found.items()}
        if meta.get("format") != FORMAT:
            raise InputError(f"The study {str(path)!r} was written by another version of Quadrille. Search again.")
        measures, then = (tuple(map(str, cast("list[object]", meta[name]))) for name in ("measures", "then"))
        return Header(str(meta["fingerprint"]), int(meta["records"]), measures, then)


@contextmanager
def intact(path: Path) -> Generator[None]:
    """Refuse a study whose contents cannot be what a search has written."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise InputError(f"Cannot read the study {str(path)!r}: {error}.") from None
    except (sqlite3.DatabaseError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
        raise InputError(f"The study {str(path)!r} is damaged. Copy it again, or search again.") from None


def _cannot_write(path: Path, error: OSError) -> OutputError:
    blocked = isinstance(error, FileExistsError | NotADirectoryError)
    reason = "a file stands where its folder should be" if blocked else error.strerror
    return OutputError(f"Cannot write the study {str(path)!r}: {reason}. Choose another place.")
