"""Files of SPSS, Stata and SAS become Data: values, labels, missing codes, formats, in their order."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import polars as pl

from quadrille.codebook import Codebook, Kind, Stored, Value, Variable
from quadrille.data import Data
from quadrille.errors import InputError
from quadrille.io import stat_library
from quadrille.io.formats import FORMATS
from quadrille.io.frames import build, lines_of
from quadrille.io.frames.columns import guess, is_running
from quadrille.io.frames.identifiers import MOST_ORDINAL, identifies, name_kind, tells_apart
from quadrille.io.frames.values import EXACT, Moment, from_moments, from_texts, moment_of, moments_as_text, to_moments
from quadrille.io.raw import contents
from quadrille.io.stat_library import TAG, Facts

ISOLATED = True
"""Whether files are read by a process of its own, which may crash over a damaged one."""

_WORDS = {".sav": "sav/zsav", ".zsav": "sav/zsav", ".xpt": "xport"}
"""How pyreadstat calls a format, where not by its ending."""


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
    """The columns of a file in order, and what else it holds, in words without its texts."""

    columns: tuple[Raw, ...]
    remarks: tuple[str, ...]


def parse(path: Path, suffix: str, *, catalog: Path | None = None, own: bool = False) -> Contents:
    """Read a whole file. What cannot be read as its name says is refused; nothing of its text gets out.

    An `own` file was written by this process a moment ago and is read in it.
    """
    form = FORMATS[suffix]
    _check_end(path, suffix, f"The file {str(path)!r}")
    source = _isolated if ISOLATED and not own else stat_library.batches
    tables: list[pl.DataFrame] = []
    facts: Facts = {}
    for part in source(path, _WORDS.get(suffix, suffix[1:]), form.name, catalog):
        if isinstance(part, pl.DataFrame):
            tables.append(part)
        else:
            facts = part
    table = pl.concat(tables, how="vertical_relaxed") if len(tables) > 1 else tables[0]
    return Contents(tuple(_raw(table, name, facts, form.program) for name in facts["names"]), _remarks(facts))


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
    columns = ((name, reason) for fact, reason in _OF_COLUMNS.items() for name in facts[fact])
    return (*filter(None, found), *lines_of(columns))


_OF_COLUMNS = {
    "empty_labels": "value labels that are empty are not copied",
    "aligned": "the alignment on the screen is not copied",
    "informats": "the informat, by which SAS reads the column from text, is not copied",
}


_TAG = r"^\.[A-Za-z_]$"


def moments_of(raw: Raw) -> tuple[pl.Series, Raw] | None:
    """Read numbers as dates or times when their format says so and every value, code and labelled value is one.

    Returned are the moments and the column with texts for numbers, in the values, missing codes and labels alike.
    A range of missing codes becomes the codes that are found in it.
    """
    program = raw.stored.program
    what = moment_of(program, raw.stored.format)
    moments = to_moments(raw.series, what, program) if what else None
    if what is None or moments is None:
        return None
    coded, tags = _missing(raw, _ranges(raw))
    texts = _texts((*coded, *(value for value in raw.value_labels if not isinstance(value, str))), what, program)
    if texts is None:
        return None
    codes = [*dict.fromkeys(texts[float(value)] for value in coded), *tags]
    return moments, replace(
        raw,
        series=_with_tags(moments_as_text(moments), raw) if codes or raw.value_labels else moments,
        value_labels={v if isinstance(v, str) else texts[float(v)]: label for v, label in raw.value_labels.items()},
        ranges=tuple((code, code) for code in codes),
    )


def _texts(numbers: Iterable[Value], what: Moment, program: str) -> dict[float, str] | None:
    """Return the text of each number, or None when one of them is no date or time."""
    floats = [float(number) for number in numbers]
    moments = to_moments(pl.Series(floats, dtype=pl.Float64), what, program)
    return None if moments is None else dict(zip(floats, moments_as_text(moments).to_list(), strict=True))


def moments_in(text: pl.Series, variable: Variable) -> tuple[pl.Series, pl.Series | None] | None:
    """Read a text column that was dates or times in a statistics program as such again, apart from .a to .z.

    None when the column was something else, or when some text is neither.
    """
    what = was_moment(variable)
    if what is None:
        return None
    tagged = text.str.contains(_TAG).fill_null(value=False)
    moments = from_texts(text.set(tagged, None), what)
    if moments.null_count() > text.null_count() + int(tagged.sum()):
        return None
    return moments, text.set(~tagged, None) if tagged.any() else None


def was_moment(variable: Variable) -> Moment | None:
    """Tell whether a column was dates or times in the statistics program it comes from."""
    stored = variable.stored
    return moment_of(stored.program, stored.format) if stored and stored.type != "string" else None


def is_tag(code: str) -> bool:
    """Whether a missing code is one of Stata's or SAS's: .a to .z, .A to .Z, or ._"""
    return re.fullmatch(_TAG, code) is not None


def number_of(value: Value, what: Moment, program: str) -> Value | None:
    """Return the number that stands for the text of a date or time in a program; tags stay, None for other texts."""
    if not isinstance(value, str):
        return value
    if is_tag(value):
        return value
    number: float | None = from_moments(from_texts(pl.Series([value]), what), program).item()
    return None if number is None else int(number) if number.is_integer() else number


MOST_DECLARED = 100_000
"""A column that its program calls nominal or ordinal is coded when it has at most this many different values."""


def read_file(
    path: Path, suffix: str, *, codebook: Codebook | None, weight: str | None, catalog: Path | None = None
) -> Data:
    """Read a file of a statistics program. What the codebook leaves open is taken from the file, or guessed."""
    if not len(contents(path)):
        raise InputError(f"The file {str(path)!r} is empty.")
    found = parse(path, suffix, catalog=catalog)
    if not len(found.columns[0].series):
        raise InputError(f"The file {str(path)!r} holds columns but no records.")
    given = {variable.name: variable for variable in codebook or ()}
    columns = [_column(raw, given.pop(raw.name, None)) for raw in found.columns]
    # A column that only the codebook has is refused by `build`.
    book = Codebook((*(variable for _, variable in columns), *given.values()))
    table = pl.DataFrame([series for series, _ in columns])
    data = build(table, codebook=book, weight=weight, where=f"the file {str(path)!r}")
    data.remarks += found.remarks
    return data


def _column(raw: Raw, given: Variable | None) -> tuple[pl.Series, Variable]:
    """Return a column and its variable: what the codebook says comes first, then the file, then the guess."""
    series, variable = _text(raw, given) if raw.text else _moments(raw, given) or _numbers(raw, given)
    label = given.label if given is not None and given.label else raw.label
    stored = given.stored if given is not None and given.stored else raw.stored
    return series, replace(variable, label=label, stored=stored)


def _base(given: Variable | None, guessed: Variable) -> Variable:
    """Return what the codebook says, with the kind that is guessed where it says none."""
    if given is None or not given.kind_open:
        return given or guessed
    return replace(given, kind=guessed.kind, kind_open=False)


def _text(raw: Raw, given: Variable | None) -> tuple[pl.Series, Variable]:
    """Describe a text column; where it has value labels, labelled values are categories even if none occurs."""
    base = _base(given, _guess_text(raw))
    missing = base.missing or tuple(low for low, _ in raw.ranges)
    base = _with_missing(base, missing, raw.value_labels)
    if not base.coded or not raw.value_labels:
        return raw.series, base
    valid = {value for value in raw.value_labels if value not in missing}
    if not base.categories:
        found: list[Value] = raw.series.drop_nulls().unique().to_list()
        values = sorted(valid | {value for value in found if value not in missing}, key=str)
        base = replace(base, categories=tuple(values), ordered=False)
    return raw.series, _labelled(base, raw.value_labels)


def _moments(raw: Raw, given: Variable | None) -> tuple[pl.Series, Variable] | None:
    """Read numbers as dates or times when their format says so, unless the codebook lists numbers."""
    listed = given is not None and (not given.coded or any(not isinstance(v, str) for v in given.values))
    found = None if listed else moments_of(raw)
    if found is None:
        return None
    moments, texts = found
    base = _base(given, guess(moments))
    if not texts.ranges and not texts.value_labels:
        return moments, base
    _, variable = _text(texts, base)
    if not variable.categories:
        values: list[Value] = texts.series.drop_nulls().unique().sort().to_list()
        variable = replace(variable, categories=tuple(v for v in values if v not in variable.missing))
    variable = replace(variable, missing_ranges=variable.missing_ranges or _ranges(raw), ordered=True)
    return moments if raw.tags is None else texts.series, variable


def _numbers(raw: Raw, given: Variable | None) -> tuple[pl.Series, Variable]:
    """Describe a column of numbers: codes or quantities."""
    ranges = _ranges(raw) if given is None or not given.missing_ranges else given.missing_ranges
    codes, tags = _missing(raw, ranges)
    missing = given.missing if given is not None and given.missing else (*codes, *tags)
    left_out = set(missing)
    valid = _valid(raw.series, missing, ranges)
    base = _base(given, _guess(raw, valid))
    base = replace(_with_missing(base, missing, raw.value_labels), missing_ranges=ranges)
    if base.coded and not base.categories:
        whole = raw.series.dtype.is_integer()
        named = [
            value
            for value in raw.value_labels
            if value not in left_out and not within(value, ranges) and isinstance(value, int if whole else int | float)
        ]
        base = replace(base, categories=tuple(sorted({*valid.to_list(), *named}, key=float)))
    return _with_tags(raw.series, raw), _labelled(base, raw.value_labels)


def _valid(numbers: pl.Series, missing: tuple[Value, ...], ranges: tuple[tuple[float, float], ...]) -> pl.Series:
    """Return the different values of a column that are no missing codes."""
    values = numbers.drop_nulls().unique().sort()
    for low, high in ranges:
        values = values.filter(~values.is_between(low, high))
    codes = [float(code) for code in missing if not isinstance(code, str)]
    return values.filter(~values.cast(pl.Float64).is_in(codes)) if codes else values


def _guess(raw: Raw, valid: pl.Series) -> Variable:
    """Guess from the name, the level of measurement, the labels, and the values, in this order."""
    whole, measure = raw.series.dtype.is_integer(), raw.stored.measure
    alone = (whole or name_kind(raw.name, raw.label) == "point") and _identifying(raw, valid)
    if alone and len(valid) > MOST_ORDINAL:
        return Variable(raw.name, "numeric", role="id")  # without a list of all its values
    kind: Kind = "numeric"
    if measure in ("nominal", "ordinal") and len(valid) <= MOST_DECLARED:
        kind = "ordinal" if measure == "ordinal" else "nominal"
    elif 0 < len(valid) <= len(raw.value_labels) and all(value in raw.value_labels for value in valid.to_list()):
        kind = "ordinal" if whole and len(valid) <= MOST_ORDINAL else "nominal"
    elif whole and 0 < len(valid) <= MOST_ORDINAL:
        kind = "ordinal"
    return Variable(raw.name, kind, role="id" if alone else None)


def _identifying(raw: Raw, valid: pl.Series) -> bool:
    """Whether numbers identify: by name or label, as a running number, or nominal ones different nearly everywhere."""
    named, nominal = name_kind(raw.name, raw.label) is not None, raw.stored.measure == "nominal"
    if is_running(raw.series):
        return True
    if not named and not nominal:
        return False
    distinct, present = len(valid), int(raw.series.is_in(valid.implode()).sum())
    return (named and identifies(raw.name, distinct, present, raw.label)) or (
        nominal and tells_apart(distinct, present)
    )


def _guess_text(raw: Raw) -> Variable:
    """Guess from the values; a text that its program calls ordinal is so, though nobody knows in which order."""
    found = guess(raw.series, raw.label)
    ordinal = raw.stored.measure == "ordinal" and found.role is None
    return replace(found, kind="ordinal") if ordinal else found


def _ranges(raw: Raw) -> tuple[tuple[float, float], ...]:
    """Return the ranges of missing codes, apart from single codes."""
    return tuple((float(low), float(high)) for low, high in raw.ranges if low != high)


def _missing(raw: Raw, ranges: tuple[tuple[float, float], ...]) -> tuple[list[Value], list[str]]:
    """Return single missing codes and those found inside ranges, then tags that occur or have a label."""
    single = [low for low, high in raw.ranges if low == high]
    found = raw.series.drop_nulls().unique().sort()
    inside: list[Value] = [
        value for low, high in ranges for value in found.filter(found.is_between(low, high)).to_list()
    ]
    occurring: list[str] = [] if raw.tags is None else raw.tags.drop_nulls().unique().to_list()
    tags = {value for value in raw.value_labels if isinstance(value, str)} | set(occurring)
    return [*dict.fromkeys((*single, *inside))], sorted(tags)


def within(value: Value, ranges: tuple[tuple[float, float], ...]) -> bool:
    """Whether a number lies inside a range of missing codes."""
    return not isinstance(value, str) and any(low <= value <= high for low, high in ranges)


def _with_missing(variable: Variable, missing: tuple[Value, ...], labels: Mapping[Value, str]) -> Variable:
    if variable.missing_labels:
        return variable
    named = tuple(labels.get(code, "") for code in missing)
    return replace(variable, missing=missing, missing_labels=named if any(named) else ())


def _labelled(variable: Variable, labels: Mapping[Value, str]) -> Variable:
    """Give labels to categories; those of other values are kept apart."""
    if not variable.labels and any(value in labels for value in variable.categories):
        variable = replace(variable, labels=tuple(labels.get(value, "") for value in variable.categories))
    if variable.labelled:
        return variable
    known = set(variable.values)
    return replace(variable, labelled=tuple((value, text) for value, text in labels.items() if value not in known))


def _with_tags(values: pl.Series, raw: Raw) -> pl.Series:
    """Return values, or values and tags as one text, from which the codebook tells them apart again."""
    values = values.alias(raw.name)
    return values if raw.tags is None else values.cast(pl.String).zip_with(raw.tags.is_null(), raw.tags)
