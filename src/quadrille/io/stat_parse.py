"""The columns of a file of a statistics program, with everything that the file says about them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import polars as pl

from quadrille.codebook import Stored, Value
from quadrille.errors import InputError
from quadrille.frames.numeric import EXACT
from quadrille.io import stat_library
from quadrille.io.stat_library import TAG, Facts
from quadrille.io.stat_targets import Losses

ISOLATED = True
"""Whether files are read by a process of its own, which may crash over a damaged one."""

FORMATS = {
    ".sav": ("SPSS", "spss", "sav/zsav"),
    ".zsav": ("SPSS", "spss", "sav/zsav"),
    ".por": ("SPSS portable", "spss", "por"),
    ".dta": ("Stata", "stata", "dta"),
    ".sas7bdat": ("SAS", "sas", "sas7bdat"),
    ".xpt": ("SAS transport", "sas", "xport"),
}
"""By ending: what to call the format, the program, and pyreadstat's word for it."""


@dataclass(frozen=True, eq=False)
class Raw:
    """One column as the file has it: numbers or text, null where empty; `tags` are Stata's and SAS's .a to .z."""

    series: pl.Series
    tags: pl.Series | None
    label: str
    value_labels: Mapping[Value, str]
    ranges: tuple[tuple[Value, Value], ...]
    stored: Stored

    @property
    def name(self) -> str:
        """The name of the column."""
        return self.series.name

    @property
    def text(self) -> bool:
        """Whether the column is text."""
        return self.series.dtype == pl.String


@dataclass(frozen=True, eq=False)
class Contents:
    """The columns of a file in order, and what it holds beside them, in words without its texts."""

    columns: tuple[Raw, ...]
    remarks: tuple[str, ...]


def parse(path: Path, suffix: str, *, catalog: Path | None = None, own: bool = False) -> Contents:
    """Read a whole file. What cannot be read as its name says is refused; nothing of its text gets out.

    An `own` file was written by this process a moment ago and is read in it.
    """
    named, program, word = FORMATS[suffix]
    _check_end(path, suffix, f"The file {str(path)!r}")
    source = _isolated if ISOLATED and not own else stat_library.batches
    tables: list[pl.DataFrame] = []
    facts: Facts = {}
    for part in source(path, word, named, catalog):
        if isinstance(part, pl.DataFrame):
            tables.append(part)
        else:
            facts = part
    table = pl.concat(tables, how="vertical_relaxed") if len(tables) > 1 else tables[0]
    return Contents(tuple(_raw(table, name, facts, program) for name in facts["names"]), _remarks(facts))


def _isolated(path: Path, word: str, named: str, catalog: Path | None) -> Iterator[pl.DataFrame | Facts]:
    """Let a process of its own read the file; when it dies, the file is to blame."""
    call = [sys.executable, "-P", "-m", stat_library.__name__, str(path), word, named, str(catalog or "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONFAULTHANDLER": ""}
    with subprocess.Popen(
        [*call, str(stat_library.BATCH)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    ) as child:
        assert child.stdout is not None
        try:
            last = b""
            while head := child.stdout.read(9):
                last = head[:1]
                yield _message(last, _exactly(child.stdout, int.from_bytes(head[1:], "little")))
            if last != b"F":
                raise EOFError
        except EOFError:
            raise InputError(f"The file {str(path)!r} is not intact {named}: it is damaged. Copy it again.") from None
        finally:
            child.kill()


def _exactly(stream: IO[bytes], size: int) -> bytes:
    found = stream.read(size)
    if len(found) < size:
        raise EOFError
    return found


def _message(kind: bytes, payload: bytes) -> pl.DataFrame | Facts:
    if kind == b"E":
        raise InputError(payload.decode())
    return pl.read_ipc(BytesIO(payload)) if kind == b"B" else json.loads(payload)


def _check_end(path: Path, suffix: str, where: str) -> None:
    """Refuse files that are cut off where pyreadstat would take what is left for the whole."""
    with path.open("rb") as file:
        start, size = file.read(11), file.seek(0, 2)
        file.seek(max(0, size - 12))
        end = file.read()
    cut_transport = suffix == ".xpt" and start == b"HEADER RECO" and size % 80 != 0
    if cut_transport or (start == b"<stata_dta>" and end != b"</stata_dta>"):
        raise InputError(f"{where} is cut off: it ends too early. Copy it again.")


def _raw(table: pl.DataFrame, name: str, facts: Facts, program: str) -> Raw:
    series, tags = table[name], None
    labels: dict[Any, str] = dict(facts["value_labels"].get(name, ()))
    kind, measure = str(facts["types"][name]), facts["measures"].get(name)
    if kind == "string":
        series = series.cast(pl.String).replace({"": None})
    elif series.dtype == pl.String:
        series, tags = _untangled(series)
    if kind != "string":
        series = _whole(series)
        labels = {f".{value}" if isinstance(value, str) else _plain(value): text for value, text in labels.items()}
    ranges = [(_plain(low), _plain(high)) for low, high in facts["ranges"].get(name, ())]
    stored = Stored(
        program,
        format=facts["formats"].get(name) or "",
        type=kind,
        width=int(facts["widths"].get(name) or 0) if kind == "string" else 0,
        display=int(facts["displays"].get(name) or 0) if program == "spss" else 0,
        measure=measure if measure in ("nominal", "ordinal", "scale") else "",
    )
    return Raw(series, tags, facts["labels"].get(name, ""), labels, tuple(ranges), stored)


def _untangled(mixed: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Part numbers and tags, which came as one text; a batch of nothing but tags has them bare."""
    tagged = mixed.str.starts_with(TAG) | mixed.str.contains("^[A-Za-z_]$")
    tags = mixed.set(~tagged, None).str.strip_prefix(TAG)
    return mixed.set(tagged, None).cast(pl.Float64), "." + tags.str.strip_prefix(".")


def _whole(numbers: pl.Series) -> pl.Series:
    """Return floats as integers when all of them are whole and exactly kept."""
    floats = numbers.cast(pl.Float64).fill_nan(None)
    fits = ((floats == floats.floor()) & (floats.abs() <= EXACT)).all()
    return floats.cast(pl.Int64) if fits else floats


def _plain(value: Value) -> Value:
    """Return a whole float as an integer, as the codebook of a column of whole numbers writes it."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) <= EXACT else value


def _remarks(facts: Facts) -> tuple[str, ...]:
    """Say what else the file holds; the texts themselves may be confidential."""
    found = [
        "The file's own label is not copied." if facts["label"] else "",
        f"Notes attached to the file are not copied (lines: {facts['notes']:,})." if facts["notes"] else "",
        "Names of sets of value labels are not copied: each column has its own set." if facts["label_sets"] else "",
        "The name of the table inside the file is not copied." if facts["table"] else "",
        f"Sets of multiple responses are not copied ({facts['sets']:,})." if facts["sets"] else "",
    ]
    losses = Losses()
    for fact, reason in _OF_COLUMNS.items():
        for name in facts[fact]:
            losses.add(name, reason)
    return (*filter(None, found), *losses.lines())


_OF_COLUMNS = {
    "empty_labels": "value labels that are empty are not copied",
    "aligned": "the alignment on the screen is not copied",
    "informats": "the informat, by which SAS reads the column from text, is not copied",
}
