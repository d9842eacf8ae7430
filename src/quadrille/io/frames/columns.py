"""The columns of a polars frame become codes or numbers, as the codebook says or as guessed, and are recoded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import isfinite
from typing import cast

import numpy as np
import polars as pl

from quadrille.codebook import Codebook, Kind, Value, Variable
from quadrille.data import Column, Data, code_dtype
from quadrille.errors import InputError, unknown_name
from quadrille.io.frames.identifiers import MOST_ORDINAL, Run, identifies, names_identifier, names_point, tells_apart
from quadrille.io.frames.values import (
    Marks,
    canonical_integers,
    finite_floats,
    is_text,
    moments_as_text,
    no_far_moments,
    not_numbers,
    numeric_column,
    text_of,
    too_large,
    type_name,
    with_found_codes,
    without_marks,
)

_MAIL = r"^\S+@\S+\.\w+$"

_CODE_TYPES: dict[object, type[pl.DataType]] = {
    np.uint8: pl.UInt8,
    np.uint16: pl.UInt16,
    np.uint32: pl.UInt32,
}


@dataclass(frozen=True, eq=False)
class Source:
    """One column on its way in, with the name of its type for the way back and its number of empty fields."""

    series: pl.Series
    dtype: str
    given: Variable | None
    where: str
    empty: int


def build(
    table: pl.DataFrame,
    *,
    codebook: Codebook | None,
    weight: str | None,
    where: str,
    dtypes: Mapping[str, str] | None = None,
) -> Data:
    """Turn a polars frame into Data; `dtypes` names types for the way back that differ from the frame's."""
    table, codebook, lines = recoded(table, codebook, where)
    given = given_by(table, codebook, weight, where)
    names = {series.name: type_name(series, where) for series in table.get_columns()} | dict(dtypes or {})
    sources = [
        Source(series, names[series.name], given.get(series.name), where, series.null_count())
        for series in table.get_columns()
    ]
    data = Data([code(source) for source in encode_text(sources)], weight=weight, remarks=lines)
    data.recoded = lines
    return data


def wants(variable: Variable | None) -> str:
    """Tell what text stands for: "text", "number" or "bool", or "any" when the codebook leaves it open."""
    if variable is None:
        return "any"
    if not variable.coded or variable.role == "weight":
        return "number"
    values = variable.categories or variable.missing
    if variable.kind_open and not any(isinstance(value, str) for value in values):
        return "any"
    if any(isinstance(value, str) for value in values):
        return "text"
    if any(isinstance(value, bool) for value in values):
        return "bool"
    return "number" if values else "any"


def wants_in_file(variable: Variable | None) -> str:
    """Tell what text of a file stands for, see `wants`; a column that is yet to be recoded may hold anything."""
    return "any" if variable is not None and variable.recodes else wants(variable)


def no_patterns(names: Iterable[str], where: str) -> None:
    """Refuse names that polars takes for patterns of names: it would work on other columns without a word."""
    for name in names:
        if name == "*" or (name.startswith("^") and name.endswith("$")):
            raise InputError(f"The column name {name!r} of {where} stands for several columns. Rename the column.")


def given_by(table: pl.DataFrame, codebook: Codebook | None, weight: str | None, where: str) -> dict[str, Variable]:
    """Return what the codebook and `weight` say about each column; a weight is always numeric."""
    given = {variable.name: variable for variable in codebook or ()}
    for name in [*given, *([] if weight is None else [weight])]:
        if name not in table.columns:
            raise unknown_name("column", name, table.columns, where=where)
    if "" in table.columns:
        raise InputError(f"A column of {where} has no name. Give each column a name.")
    no_patterns(table.columns, where)
    if weight is not None:
        if weight not in given and not table[weight].dtype.is_numeric():
            raise InputError(not_numbers(f"Weight column {weight!r} of {where}", table[weight]))
        given[weight] = replace(given.get(weight, Variable(weight)), role="weight")
    given = {name: settled(variable, table[name]) for name, variable in given.items()}
    return {
        name: replace(variable, kind="numeric", categories=(), labels=()) if variable.role == "weight" else variable
        for name, variable in given.items()
    }


def settled(variable: Variable, series: pl.Series) -> Variable:
    """Return the variable with the kind that its column is guessed to have, where the codebook says none."""
    if not variable.kind_open:
        return variable
    codes = [float(code) for code in variable.missing if not isinstance(code, str)]
    rest = series.filter(~series.cast(pl.Float64).is_in(codes)) if codes and series.dtype.is_numeric() else series
    return replace(variable, kind=guess(rest).kind, kind_open=False)


def encode_text(sources: list[Source]) -> list[Source]:
    """Turn every text column that will be coded into an Enum, in one call that polars runs in parallel."""
    texts = {s.series.name: s for s in sources if is_text(s.series) and wants(s.given) in ("any", "text")}
    if not texts:
        return sources
    table = pl.DataFrame([source.series for source in texts.values()])
    loose = [name for name, s in texts.items() if not (s.given and s.given.categories) and s.series.dtype != pl.Enum]
    found = table.select(pl.col(loose).drop_nulls().unique().cast(pl.String).sort().implode())
    known = {
        name: complete_text(s, found[name][0] if name in loose else None, table.height) for name, s in texts.items()
    }
    enums = {name: pl.Enum(cast("list[str]", list(variable.values))) for name, variable in known.items()}
    coded = table.with_columns(
        pl.col(name).cast(enum, strict=False) for name, enum in enums.items() if table[name].dtype != enum
    )
    return [
        replace(s, series=coded[name], given=known[name]) if (name := s.series.name) in texts else s for s in sources
    ]


def complete_text(source: Source, found: pl.Series | None, rows: int) -> Variable:
    """Complete the variable of a text column with the values found, or with the Enum's own when None."""
    series = source.series
    given = source.given or Variable(series.name)
    if given.categories:
        return given
    listed = cast("pl.Enum", series.dtype).categories if found is None else found
    if source.given is None and _identifying(series.name, listed, rows - source.empty, declared=found is None):
        given = replace(given, role="id")
    if found is None:
        return replace(given, categories=_without(listed.to_list(), given.missing))
    categories, ordered = _in_order(_without(found.to_list(), given.missing))
    return replace(given, categories=categories, ordered=ordered)


def _in_order(texts: tuple[Value, ...]) -> tuple[tuple[Value, ...], bool]:
    """Put texts that stand for numbers in the order of the numbers; others keep an order that means nothing."""
    try:
        numbers = {text: float(text) for text in texts}
    except ValueError:
        return texts, False
    if not all(map(isfinite, numbers.values())):
        return texts, False
    return tuple(sorted(texts, key=lambda text: numbers[text])), True


def _without(found: Sequence[Value], missing: tuple[Value, ...]) -> tuple[Value, ...]:
    left_out = set(map(_key, missing))
    return tuple(value for value in found if _key(value) not in left_out) if left_out else tuple(found)


def _key(value: Value) -> tuple[bool, Value]:
    """Tell True from 1, which are equal and hash alike."""
    return (isinstance(value, bool), value)


def code(source: Source) -> Column:
    """Code one column as its variable says, or as guessed."""
    given = source.given or _guess(source.series)
    if not given.coded:
        return numeric_column(source.series, given, source.dtype, source.where)
    if source.series.dtype == pl.Enum and wants(given) in ("any", "text"):
        return _coded_column(source, given, source.series.to_physical())
    return _column_by_value(source, given)


def _column_by_value(source: Source, given: Variable) -> Column:
    """Code a column that is not text, or text that stands for numbers, by looking at its distinct values."""
    no_far_moments(source.series, source.where)
    marks: Marks = []
    if is_text(source.series) and any(isinstance(code, str) for code in given.missing):
        rest, marks = without_marks(source.series.cast(pl.String), given)
        source = replace(source, series=rest)
    series = _as_values(source.series, given)
    given = with_found_codes(given, series)
    distinct = series.drop_nulls().unique().sort()
    values = _values(distinct)
    if not given.categories:
        domain = [False, True] if series.dtype == pl.Boolean else values
        given = replace(given, categories=_without(domain, given.missing))
    position = {_key(value): code for code, value in enumerate(given.values)}
    codes = pl.Series([position.get(_key(value)) for value in values], dtype=pl.UInt32)
    if is_text(source.series):
        # "3.50" and "3.5" are one category: the text is gone, so the way back is the number.
        source = replace(source, dtype="String" if marks else type_name(series, source.where))
    elif series.dtype.is_float():
        source = replace(source, empty=series.null_count())
    coded = series.replace_strict(distinct, codes, default=None, return_dtype=pl.UInt32)
    for place, mark in marks:
        coded = coded.set(mark, len(given.categories) + place)
    return _coded_column(source, given, coded)


def _as_values(series: pl.Series, given: Variable) -> pl.Series:
    """Take text for the numbers or booleans that the codebook lists; what is neither becomes null."""
    if series.dtype.is_float():
        return series.fill_nan(None)
    if not is_text(series):
        return series
    text = series.cast(pl.String)
    if wants(given) == "bool":
        return text.replace_strict(["false", "true"], [False, True], default=None, return_dtype=pl.Boolean)
    if any(isinstance(value, float) for value in given.values):
        return finite_floats(text)
    return canonical_integers(text)


def _values(distinct: pl.Series) -> list[Value]:
    """Return distinct values as a codebook writes them: dates, times and decimals as text."""
    return (distinct.cast(pl.String) if distinct.dtype.is_decimal() else moments_as_text(distinct)).to_list()


def _coded_column(source: Source, variable: Variable, codes: pl.Series) -> Column:
    """Check the codes (null: empty or unknown) and store them in the smallest type, empty fields last."""
    empty = codes.null_count()
    refuse_unknown(source.series.name, source.where, empty - source.empty)
    last = len(variable.values)
    codes = codes.cast(_CODE_TYPES[code_dtype(last + (empty > 0))])
    if empty:
        codes = codes.fill_null(last)
    return Column(variable, codes.to_numpy(), source.dtype, nullable=empty > 0)


def refuse_unknown(name: str, where: str, odd: int) -> None:
    """Refuse values that the codebook does not know; `odd` rows have one."""
    if odd > 0:
        raise InputError(
            f"Column {name!r} of {where} holds a value that is neither a category nor a "
            f"missing code of the codebook in {odd:,} row{'' if odd == 1 else 's'}. "
            "Add the value to the codebook, or correct the data."
        )


def guess(series: pl.Series, label: str = "") -> Variable:
    """Guess kind and role of a column, text or not; its categories are left open. A label helps to tell text."""
    if not is_text(series):
        return _guess(series)
    present = series.drop_nulls()
    alone = _identifying(series.name, present.unique().cast(pl.String), len(present), label=label)
    return Variable(series.name, role="id" if alone else None)


def _identifying(name: str, distinct: pl.Series, present: int, *, label: str = "", declared: bool = False) -> bool:
    """Whether text identifies: by its name, by being different nearly everywhere, or since it is addresses of mail.

    The categories of an Enum are `declared`: they are many on purpose, so only the name speaks against them.
    """
    count = len(distinct)
    if identifies(name, count, present, label):
        return True
    return not declared and (tells_apart(count, present) or _is_mail(distinct))


def _is_mail(distinct: pl.Series) -> bool:
    """Whether most values are addresses of electronic mail."""
    return bool(2 * distinct.str.contains(_MAIL).sum() > len(distinct))


def _guess(series: pl.Series) -> Variable:
    """Guess kind and role of a column that is not text."""
    name, dtype = series.name, series.dtype
    if (dtype.is_integer() and too_large(series)) or (dtype.is_decimal() and _inexact(series)):
        return Variable(name, role="id")
    kind: Kind = "numeric" if dtype.is_numeric() else "nominal"
    if dtype.is_integer() and _few_values(series.drop_nulls()):
        kind = "ordinal"
    alone = (names_identifier(name) and _numbers_identify(series)) or is_running(series)
    return Variable(name, kind, role="id" if alone else None)


def is_running(series: pl.Series) -> bool:
    """Whether numbers count the records in file order; the first ones often tell already that they do not."""
    run = Run(series.name)
    go_on(run, series.head(MOST_ORDINAL))
    if run.rising:
        go_on(run, series.slice(MOST_ORDINAL))
    return run.counts


def go_on(run: Run, part: pl.Series) -> None:
    """Extend a run by the next part of its column; only whole numbers and floats can be running numbers."""
    if not (part.dtype.is_integer() or part.dtype.is_float()) or part.null_count():
        run.rising = False
    elif run.rising:
        run.extend(part.cast(pl.Float64).to_numpy())


def _numbers_identify(series: pl.Series) -> bool:
    """Whether whole numbers, called like an identifier, are one; floats are whole where a column has empty fields."""
    present = series.fill_nan(None).drop_nulls() if series.dtype.is_float() else series.drop_nulls()
    whole = series.dtype.is_integer() or (series.dtype.is_numeric() and bool((present.cast(pl.Float64) % 1 == 0).all()))
    return (whole or names_point(series.name)) and identifies(series.name, present.n_unique(), len(present))


def _inexact(series: pl.Series) -> bool:
    """Whether decimals have more digits than float64 holds."""
    return not series.cast(pl.Float64).cast(series.dtype, strict=False).equals(series)


def _few_values(series: pl.Series) -> bool:
    """Whether the distinct values are few enough to be categories; the first rows often tell already."""
    return series.head(10 * MOST_ORDINAL).n_unique() <= MOST_ORDINAL and series.n_unique() <= MOST_ORDINAL


def recoded(
    table: pl.DataFrame, codebook: Codebook | None, where: str
) -> tuple[pl.DataFrame, Codebook | None, tuple[str, ...]]:
    """Return the table and the codebook after all recoding, and one line for each column that was recoded."""
    lines: list[str] = []
    variables: list[Variable] = []
    for variable in codebook or ():
        if not variable.recodes or variable.name not in table.columns:
            variables.append(variable)
            continue
        original = table[variable.name]
        series, told, line = _recoded(original, variable, f"Column {variable.name!r} of {where}")
        table = table.with_columns(series.alias(variable.name))
        if variable.original:
            if variable.original in table.columns:
                raise InputError(f"Column {variable.original!r} of {where} exists already. Name another original.")
            table = table.with_columns(original.alias(variable.original))
        kept = f", and kept as it was in {variable.original!r}" if variable.original else ""
        lines.append(f"{variable.name}: {line}{kept}.")
        variables.append(told)
    return table, Codebook(tuple(variables)) if variables else codebook, tuple(lines)


def _recoded(series: pl.Series, variable: Variable, place: str) -> tuple[pl.Series, Variable, str]:
    if variable.bands:
        return _in_bands(series, variable, place)
    lines: list[str] = []
    if variable.top is not None or variable.bottom is not None:
        series, variable = _within_codes(series, variable, place)
        lines += ["numbers above the top code are set to it"] * (variable.top is not None)
        lines += ["numbers below the bottom code are set to it"] * (variable.bottom is not None)
    if variable.merge:
        series, variable = _merged(series, variable, place)
        lines.append(f"categories are merged into {len(variable.merge):,}")
    return series, variable, "; ".join(lines)


@dataclass(frozen=True)
class _Numbers:
    """A column of numbers, null where a field is empty or a missing code, and its missing codes as text.

    `found` is the column as numbers, with the missing codes of its ranges.
    """

    valid: pl.Series
    codes: pl.Series
    found: Variable

    def told(self, variable: Variable) -> Variable:
        """Return the variable with the missing codes that were found."""
        missing = tuple(text_of(code) for code in self.found.missing) if variable.bands else self.found.missing
        return replace(variable, missing=missing, missing_labels=self.found.missing_labels)


def _numbers(series: pl.Series, variable: Variable, place: str) -> _Numbers:
    """Part numbers from missing codes, however both are kept."""
    if not is_text(series) and not series.dtype.is_numeric():
        raise InputError(not_numbers(place, series))
    text = series.cast(pl.String)
    rest = without_marks(text, variable)[0] if is_text(series) else series
    numbers = finite_floats(rest) if is_text(series) else rest.cast(pl.Float64).fill_nan(None)
    if is_text(series) and numbers.null_count() > rest.null_count():
        raise InputError(not_numbers(place, rest))
    plain = replace(variable, kind="numeric", role=None, level=None, categories=(), labels=())
    found = with_found_codes(plain, numbers)
    missing = [_number(code) for code in found.missing]
    coded = numbers.is_in([code for code in missing if code is not None]).fill_null(value=False)
    codes = numbers.set(~coded, None).cast(pl.String).str.strip_suffix(".0")
    return _Numbers(numbers.set(coded, None), codes.zip_with(rest.is_not_null(), text), found)


def _number(code: Value) -> float | None:
    """Return the number of a missing code; the codebook of bands lists it as text."""
    try:
        return float(code)
    except ValueError:
        return None


def _in_bands(series: pl.Series, variable: Variable, place: str) -> tuple[pl.Series, Variable, str]:
    line = f"numbers are recoded into {len(variable.bands):,} bands"
    for labels in (variable.categories, *(band_labels(variable.bands, whole=whole) for whole in (True, False))):
        if labels and _holds_only(series, (*labels, *variable.missing)):  # recoded already
            return series, _banded(variable, labels), line
    parts = _numbers(series, variable, place)
    below = int((parts.valid < variable.bands[0]).sum())
    if below:
        raise InputError(
            f"{place} lies below the first band in {below:,} row{'' if below == 1 else 's'}. "
            "Start the bands lower, or declare missing codes."
        )
    present = parts.valid.drop_nulls()
    whole = bool((present == present.floor()).all()) and all(float(end).is_integer() for end in variable.bands)
    names = variable.categories or band_labels(variable.bands, whole=whole)
    of_band = pl.Series(list(variable.bands), dtype=pl.Float64).search_sorted(parts.valid.fill_null(0.0), side="right")
    texts = pl.Series(list(map(str, names))).gather((of_band.cast(pl.Int64) - 1).clip(0))
    banded = texts.zip_with(parts.valid.is_not_null(), parts.codes)
    return banded.alias(series.name), _banded(parts.told(variable), tuple(map(str, names))), line


def _banded(variable: Variable, labels: Sequence[Value]) -> Variable:
    missing = tuple(text_of(code) for code in variable.missing)
    return replace(
        variable,
        kind="ordinal",
        kind_open=False,
        categories=tuple(labels),
        missing=missing,
        missing_ranges=(),
        labelled=(),
        labels=variable.labels if len(variable.labels) == len(labels) else (),
        stored=None,
    )


def _holds_only(series: pl.Series, values: Sequence[Value]) -> bool:
    known = [text_of(value) for value in values]
    return is_text(series) and bool(series.cast(pl.String).drop_nulls().is_in(known).all())


def band_labels(bands: Sequence[float], *, whole: bool) -> tuple[str, ...]:
    """Name bands by their ends; bands of whole numbers by the first and the last number.

    >>> from quadrille.io.frames.columns import band_labels
    >>> band_labels((0, 16, 17, 65), whole=True), band_labels((0, 1.5), whole=False)
    (('0-15', '16', '17-64', '65+'), ('0 to <1.5', '1.5+'))
    """
    ends = [(text_of(float(low)), text_of(float(high)), high - low) for low, high in pairwise(bands)]
    last = f"{text_of(float(bands[-1]))}+"
    if not whole:
        return (*(f"{low} to <{high}" for low, high, _ in ends), last)
    lasts = [text_of(float(high) - 1) for high in bands[1:]]
    return (*(low if width == 1 else f"{low}-{end}" for (low, _, width), end in zip(ends, lasts, strict=True)), last)


def _within_codes(series: pl.Series, variable: Variable, place: str) -> tuple[pl.Series, Variable]:
    """Set numbers beyond the top and the bottom code to these; missing codes stay."""
    parts = _numbers(series, variable, place)
    clipped = parts.valid.clip(variable.bottom, variable.top)
    ends = [end for end in (variable.bottom, variable.top) if end is not None]
    categories = tuple(c for c in variable.categories if not isinstance(c, str) and _inside(c, variable))
    labels = tuple(label for c, label in zip(variable.categories, variable.labels, strict=False) if c in categories)
    if variable.categories:
        added = [end for end in ends if end not in categories]
        pairs = [*zip(categories, labels or [""] * len(categories), strict=True), *((end, "") for end in added)]
        pairs.sort(key=lambda pair: float(pair[0]))
        categories, named = tuple(value for value, _ in pairs), tuple(label for _, label in pairs)
        labels = named if any(named) else ()
    variable = replace(parts.told(variable), categories=categories, labels=labels)
    if is_text(series):
        variable = _guessed(variable, clipped)
        texts = clipped.cast(pl.String).str.strip_suffix(".0")
        return texts.zip_with(clipped.is_not_null(), parts.codes), variable
    restored = clipped.zip_with(clipped.is_not_null(), series.cast(pl.Float64))
    whole = series.dtype.is_integer() and all(float(end).is_integer() for end in ends)
    return (restored.cast(series.dtype) if whole else restored), variable


def _guessed(variable: Variable, numbers: pl.Series) -> Variable:
    """Guess the kind of numbers that stay text because missing codes stand among them, where nothing says it."""
    if not variable.kind_open:
        return variable
    found = numbers.drop_nulls().unique().sort()
    if len(found) > MOST_ORDINAL or not bool((found == found.floor()).all()):
        return replace(variable, kind="numeric", kind_open=False)
    return replace(variable, kind="ordinal", kind_open=False, categories=tuple(found.cast(pl.Int64).to_list()))


def _inside(value: Value, variable: Variable) -> bool:
    low = float("-inf") if variable.bottom is None else variable.bottom
    high = float("inf") if variable.top is None else variable.top
    return low <= float(value) <= high


def _merged(series: pl.Series, variable: Variable, place: str) -> tuple[pl.Series, Variable]:
    """Make one category of several: texts get its name, numbers that of the first with the name as its label."""
    of_numbers = series.dtype.is_integer() or series.dtype.is_float()
    if not of_numbers and not is_text(series):
        raise InputError(f"{place} is neither text nor numbers, so its categories cannot be merged.")
    becomes: dict[Value, Value] = {}
    labels: dict[Value, str] = {}
    for name, values in variable.merge:
        if any(isinstance(value, str) == of_numbers for value in values):
            kind = "numbers" if of_numbers else "text"
            raise InputError(f"{place} is {kind}, and the merge into {name!r} lists something else. Write it alike.")
        target = values[0] if of_numbers else name
        wanted = {*values, target}
        if not any(value in wanted for value in _distinct(series)):
            raise InputError(f"{place} holds no value of the merge into {name!r}. Check how they are written.")
        becomes |= dict.fromkeys(values, target)
        labels[target] = name
    if any(value in becomes for value in variable.missing):
        raise InputError(f"{place} has a missing code that is merged. A missing code is no category: leave it out.")
    plain = series if of_numbers else series.cast(pl.String)
    merged = plain.replace(list(becomes), list(becomes.values()))
    known = dict(zip(variable.categories, variable.labels or variable.categories, strict=True))
    categories = tuple(dict.fromkeys(becomes.get(value, value) for value in variable.categories))
    if of_numbers and variable.coded and not categories:
        codes = [code for code in variable.missing if not isinstance(code, str)]
        categories = tuple(sorted(set(_distinct(merged)) - set(codes), key=float))
    if not of_numbers or not (variable.labels or labels):
        return merged, replace(variable, categories=categories, labels=())
    named = tuple(str(labels.get(value, known.get(value, "") if variable.labels else "")) for value in categories)
    kind = "ordinal" if variable.kind_open else variable.kind
    return merged, replace(variable, kind=kind, kind_open=False, categories=categories, labels=named)


def _distinct(series: pl.Series) -> list[Value]:
    plain = series.cast(pl.String) if is_text(series) else series
    return cast("list[Value]", plain.drop_nulls().unique().to_list())
