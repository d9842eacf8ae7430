"""Columns that are never held whole as they stand in the file: a first pass finds the categories, a second codes them.

The result is the same as that of `build` on the whole table; the memory is that of the codes and one batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from quadrille.codebook import Codebook, Variable
from quadrille.data import Column, Data, code_dtype
from quadrille.frames.columns import Source, code, complete_text, encode_text, given_by, go_on, wants
from quadrille.frames.dtypes import is_text, type_name
from quadrille.frames.identifiers import MOST_ORDINAL, Run, names_identifier
from quadrille.frames.numeric import too_large

Reader = Callable[[str], Iterator[pl.Series]]
"""Returns the batches of a column, from the first again at each call."""


@dataclass(frozen=True)
class Batches:
    """A table that is read column by column and batch by batch; `empty` has its names and types and no rows."""

    empty: pl.DataFrame
    rows: int
    read: Reader

    def whole(self, name: str) -> pl.Series:
        """Return a column in one piece."""
        return pl.concat(list(self.read(name)), rechunk=True)


@dataclass
class _Facts:
    """What a first pass over a column finds out."""

    empty: int = 0
    few: bool = True
    large: bool = False
    distinct: pl.Series | None = None
    running: bool = False


def build_streamed(batches: Batches, *, codebook: Codebook | None, weight: str | None, where: str) -> Data:
    """Turn a table into Data batch by batch; see `build`."""
    given = given_by(batches.empty, codebook, weight, where)
    columns = [_column(batches, series, given, where) for series in batches.empty.get_columns()]
    return Data(columns, weight=weight)


def _column(batches: Batches, series: pl.Series, given: Mapping[str, Variable], where: str) -> Column:
    dtype, mine = type_name(series, where), given.get(series.name)
    facts = None if _needs_the_whole(series, mine) else _first_pass(batches, series, mine)
    if facts is None or facts.large:
        whole = batches.whole(series.name)
        (source,) = encode_text([Source(whole, dtype, mine, where, whole.null_count())])
        return code(source)
    variable = _complete(series, mine, facts, dtype, where, batches.rows)
    return _second_pass(batches, variable, facts, dtype, where)


def _needs_the_whole(series: pl.Series, given: Variable | None) -> bool:
    """Whether a column can be judged only in one piece: numbers kept as text, decimals, likely identifiers."""
    if is_text(series):
        return wants(given) not in ("any", "text") or isinstance(series.dtype, pl.Categorical)
    if series.dtype.is_decimal() or series.dtype == pl.Null:
        return True
    if given is None:
        return series.dtype.is_numeric() and names_identifier(series.name)
    return bool(given.missing_ranges) or any(isinstance(value, str) for value in given.missing)


def _first_pass(batches: Batches, series: pl.Series, given: Variable | None) -> _Facts:
    """Count empty fields and collect distinct values, as far as they decide anything."""
    facts, run = _Facts(), Run(series.name)
    text, whole = is_text(series), series.dtype.is_integer()
    coded = (given is None and not series.dtype.is_float()) or (given is not None and given.coded)
    wanted = coded and not (given is not None and given.categories) and series.dtype != pl.Enum
    for batch in batches.read(series.name):
        part = batch.fill_nan(None) if batch.dtype.is_float() and coded else batch
        facts.empty += part.null_count()
        if given is None:
            go_on(run, batch)
        facts.large = facts.large or (whole and too_large(part))
        if wanted and facts.few:
            found = part.drop_nulls().unique()
            known = found if facts.distinct is None else pl.concat([facts.distinct, found]).unique()
            # Whole numbers without a codebook are categories only when they are few.
            facts.few = text or given is not None or not whole or len(known) <= MOST_ORDINAL
            facts.distinct = known if facts.few else None
    facts.running = run.counts
    return facts


def _complete(series: pl.Series, given: Variable | None, facts: _Facts, dtype: str, where: str, rows: int) -> Variable:
    """Return the variable with all its categories."""
    if is_text(series):
        found = None if facts.distinct is None else facts.distinct.cast(pl.String).sort()
        return complete_text(Source(series, dtype, given, where, facts.empty), found, rows)
    if given is None and (series.dtype.is_float() or not facts.few):
        return Variable(series.name, "numeric", role="id" if facts.running else None)
    if given is not None and (not given.coded or given.categories):
        return given
    distinct = series if facts.distinct is None else facts.distinct
    # The distinct values stand for the column: guessing and coding see the same values as in the whole of it.
    return code(Source(distinct.alias(series.name), dtype, given, where, 0)).variable


def _second_pass(batches: Batches, variable: Variable, facts: _Facts, dtype: str, where: str) -> Column:
    last = len(variable.values)
    kind: Any = code_dtype(last + (facts.empty > 0)) if variable.coded else np.float64
    values: NDArray[Any] = np.empty(batches.rows, dtype=kind)
    start, coded = 0, None
    # Text that is coded here stays text, also where no value of it is known: `_needs_the_whole` has seen to the rest.
    text = is_text(batches.empty[variable.name])
    enum = pl.Enum(cast("list[str]", list(variable.values))) if text else None
    for batch in batches.read(variable.name):
        part = batch.cast(enum, strict=False) if enum is not None and batch.dtype != enum else batch
        coded = code(Source(part, dtype, variable, where, batch.null_count()))
        values[start : start + len(batch)] = coded.values
        start += len(batch)
    assert coded is not None
    assert start == batches.rows
    return replace(coded, values=values, nullable=variable.coded and facts.empty > 0)
