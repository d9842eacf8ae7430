"""The columns of a polars frame become codes or numbers, as the codebook says or as guessed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import cast

import numpy as np
import polars as pl

from quadrille.codebook import Codebook, Kind, Value, Variable
from quadrille.data import Column, Data, code_dtype
from quadrille.errors import InputError, unknown_name
from quadrille.io.frames.identifiers import MOST_ORDINAL, Run, identifies, names_identifier, names_point, tells_apart
from quadrille.io.frames.recode import recoded
from quadrille.io.frames.values import (
    Marks,
    canonical_integers,
    finite_floats,
    is_text,
    moments_as_text,
    no_far_moments,
    not_numbers,
    numeric_column,
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
    if (odd := empty - source.empty) > 0:
        raise InputError(
            f"Column {source.series.name!r} of {source.where} holds a value that is neither a category nor a "
            f"missing code of the codebook in {odd:,} row{'' if odd == 1 else 's'}. "
            "Add the value to the codebook, or correct the data."
        )
    last = len(variable.values)
    codes = codes.cast(_CODE_TYPES[code_dtype(last + (empty > 0))])
    if empty:
        codes = codes.fill_null(last)
    return Column(variable, codes.to_numpy(), source.dtype, nullable=empty > 0)


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
