"""What a file takes before it is read: records, bytes of a record, and memory and time of every stage.

The figures rest on a part of the file and on measured costs per record (bench/nation.py); they are no promise. Only
what certainly cannot be met is refused.
"""

from __future__ import annotations

import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

import polars as pl

from quadrille.data import Data
from quadrille.errors import InputError, OutputError
from quadrille.io import format_of, streamed
from quadrille.io.atomic import temporary_folder
from quadrille.io.csv import parse
from quadrille.io.csv import refuse_few_addresses as refuse_few_for_text
from quadrille.io.frames import from_frame
from quadrille.io.parquet import no_panic_shown, refuse_few_addresses
from quadrille.io.raw import Buffer, contents
from quadrille.io.space import MEMORY, free_memory, memory_limit
from quadrille.text import Shown

_SAMPLE = 1 << 16
_SAMPLE_BYTES = 1 << 22
_WINDOW, _WINDOWS = 1 << 16, 32
"""Bytes in which lines are counted, and in how many places of a file: later lines may be longer than the first."""
_BASE = 0.35e9
"""Bytes of the libraries, and of tables that do not grow with the file."""
_IN_FRAMES = 16
"""Bytes of a value in a table of text, beside the text itself."""
_NS_READ, _NS_TEXT, _NS_DRAW, _NS_MEASURE, _NS_WRITE, _NS_FRAMES = 10, 60, 5, 15, 25, 60
"""Nanoseconds of a value to read Parquet and to parse text; of a record to draw and to measure; of a value to write."""
_LEAST_SECONDS = 3.0


@dataclass(frozen=True, repr=False)
class Stage(Shown):
    """One stage of the work: the most memory that it takes, in bytes, and CPU seconds."""

    name: str
    memory: float
    seconds: float


@dataclass(frozen=True, repr=False)
class Needs(Shown):
    """What the file has, what its columns take, and what there is.

    `columns` are the bytes of the coded columns; those beyond `limit` lie in files in `folder`, where `room` is left.
    """

    file: str
    format: str
    records: int
    width: int
    columns: int
    stages: tuple[Stage, ...]
    limit: int
    free: int
    folder: str
    room: int

    @property
    def paged(self) -> int:
        """Bytes of columns that will lie in files instead of memory: those read, and those on their way out."""
        on_their_way = self.columns if streamed(f"data.{self.format}") else 0
        return max(0, self.columns + on_their_way - self.limit)

    @property
    def peak(self) -> float:
        """The most memory that any stage takes at a time."""
        return max(stage.memory for stage in self.stages)

    @property
    def refusal(self) -> str:
        """Say what cannot be met, with the number; nothing when all can."""
        if self.peak > self.free:
            where = next(stage.name for stage in self.stages if stage.memory > self.free)
            how = (
                "Convert it to Parquet on a larger machine, which is read piece by piece"
                if where == "read"
                else "Release parquet or csv, which are written piece by piece"
            )
            return (
                f"{self.file!r} takes about {gigabytes(self.peak)} of memory ({where}), and {gigabytes(self.free)} is "
                f"free. {how}, or free some memory."
            )
        if self.paged > self.room:
            return (
                f"The columns of {self.file!r} may take {gigabytes(self.limit)} of memory, and the other "
                f"{gigabytes(self.paged)} do not fit into {self.folder!r}, where {gigabytes(self.room)} is left. Make "
                f"room there, name another folder by TMPDIR, or allow more memory ({MEMORY})."
            )
        return ""

    def as_dict(self) -> dict[str, object]:
        """Return plain values, for JSON."""
        return {**asdict(self), "peak": self.peak, "paged": self.paged, "refusal": self.refusal}


def gigabytes(size: float) -> str:
    """Write a number of bytes as a person would: 5.3 GB, 40 MB.

    >>> from quadrille.io.needs import gigabytes
    >>> gigabytes(5.31e9), gigabytes(40e6), gigabytes(10)
    ('5.3 GB', '40 MB', '1 MB')
    """
    return f"{size / 1e9:,.1f} GB" if size >= 1e9 else f"{max(1, round(size / 1e6))} MB"


def needs_of(file: str | Path, format: str = "parquet") -> Needs:
    """Return what reading, swapping, measuring and releasing a file takes; `format` is that of the public file.

    >>> import quadrille as qd
    >>> from quadrille.io.needs import needs_of
    >>> _ = qd.write(qd.datasets.cps8d(), "people.parquet")
    >>> found = needs_of("people.parquet")
    >>> found.records, found.width, [stage.name for stage in found.stages], found.refusal
    (48842, 8, ['read', 'draw', 'measure', 'release'], '')
    """
    path = Path(file)
    raw = contents(path)
    size, form = len(raw), format_of(path.name)
    if form is None or form.reader not in ("parquet", "csv"):
        raise InputError(f"What {path.name!r} takes is known of Parquet and delimited text only. Convert it first.")
    whole = form.reader == "csv"
    records, sample = _of_text(raw, path) if whole else _of_parquet(path)
    names = sample.columns
    width = sum(sample[name].values.itemsize for name in names) + 8 * (sample.weight is not None)
    columns, values = records * width, records * len(names)
    text = size + values * _IN_FRAMES if whole else 0
    limit, free = memory_limit(), free_memory()
    held = _BASE + min(columns, limit)
    in_pieces = streamed(f"data.{format}")
    leaving = min(columns, max(limit - columns, 0)) if in_pieces else columns + 2 * values * _IN_FRAMES
    stages = (
        Stage("read", held + text, _seconds(values * (_NS_TEXT if whole else _NS_READ))),
        Stage("draw", held, _seconds(records * _NS_DRAW)),
        Stage("measure", held, _seconds(records * _NS_MEASURE)),
        Stage("release", held + leaving, _seconds(values * (_NS_WRITE if in_pieces else _NS_FRAMES), _LEAST_SECONDS)),
    )
    return Needs(str(path), format, records, width, columns, stages, limit, free, *_room())


def _room() -> tuple[str, int]:
    """Return the folder for what does not fit into memory, and the bytes that are left there."""
    try:
        folder = temporary_folder()
    except OutputError:  # whoever needs it says so
        return "nowhere", 0
    return str(folder), shutil.disk_usage(folder).free


def refuse_too_large(file: str | Path, format: str) -> None:
    """Refuse a file that is certainly too large for this machine, before the system ends the process."""
    try:
        refusal = needs_of(file, format).refusal
    except InputError:  # whoever reads the file says what is wrong with it
        return
    if refusal:
        raise InputError(refusal)


def _seconds(nanoseconds: float, least: float = 0.0) -> float:
    return least + nanoseconds / 1e9


def _of_parquet(path: Path) -> tuple[int, Data]:
    """Return the number of records, and some of them, coded."""
    try:
        with no_panic_shown():
            scan = pl.scan_parquet(path.absolute(), glob=False, hive_partitioning=False)
            records, first = int(scan.select(pl.len()).collect().item()), scan.head(_SAMPLE).collect()
    except (Exception, pl.exceptions.PanicException):  # its text may hold data values
        raise InputError(f"The file {str(path)!r} is not intact Parquet. Copy it again or check its name.") from None
    refuse_few_addresses(path, records, first.width)
    return records, from_frame(first)


def _of_text(raw: Buffer, path: Path) -> tuple[int, Data]:
    """Return about how many records a file of delimited text has, and the first of them, coded."""
    refuse_few_for_text(path, len(raw))
    whole = len(raw) <= _SAMPLE_BYTES
    part = raw[:] if whole else raw[: raw[:_SAMPLE_BYTES].rfind(b"\n") + 1]
    data = parse(part, path, path.suffix.lower())
    if whole:
        return data.n, data
    parts = [raw[start : start + _WINDOW] for start in range(0, len(raw), len(raw) // _WINDOWS)]
    return round(len(raw) * sum(each.count(b"\n") for each in parts) / sum(map(len, parts))) - 1, data
