"""Files of SPSS, Stata and SAS become Data: values, labels, missing codes, formats, in their order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import polars as pl

from quadrille.codebook import Codebook, Kind, Value, Variable
from quadrille.data import Data
from quadrille.errors import InputError
from quadrille.frames import build
from quadrille.frames.columns import guess, is_running
from quadrille.frames.identifiers import MOST_ORDINAL, identifies, tells_apart
from quadrille.frames.sorts import sort_of
from quadrille.io.files import contents
from quadrille.io.stat_moments import moments_of
from quadrille.io.stat_parse import Raw, parse

MOST_DECLARED = 100_000
"""A column that its program calls nominal or ordinal is coded when it has at most this many different values."""


def read_stat(
    path: Path, suffix: str, *, codebook: Codebook | None, weight: str | None, catalog: Path | None = None
) -> Data:
    """Read a file of a statistics program. What the codebook leaves open is taken from the file, or guessed."""
    if not len(contents(path)):
        raise InputError(f"The file {str(path)!r} is empty.")
    found = parse(path, suffix, catalog=catalog)
    if not len(found.columns[0].series):
        raise InputError(f"The file {str(path)!r} holds columns but no records.")
    given = {variable.name: variable for variable in codebook or ()}
    series: list[pl.Series] = []
    variables: list[Variable] = []
    for raw in found.columns:
        one, variable = _column(raw, given.pop(raw.name, None))
        series.append(one)
        variables.append(variable)
    book = Codebook((*variables, *given.values()))  # a column that only the codebook has is refused by `build`
    data = build(pl.DataFrame(series), codebook=book, weight=weight, where=f"the file {str(path)!r}")
    data.remarks = found.remarks
    return data


def _column(raw: Raw, given: Variable | None) -> tuple[pl.Series, Variable]:
    """Return a column and its variable: what the codebook says comes first, then the file, then the guess."""
    described = _text(raw, given) if raw.text else _moments(raw, given) or _numbers(raw, given)
    series, variable = described
    label = given.label if given is not None and given.label else raw.label
    stored = given.stored if given is not None and given.stored else raw.stored
    return series, replace(variable, label=label, stored=stored)


def _text(raw: Raw, given: Variable | None) -> tuple[pl.Series, Variable]:
    """Describe a text column; where it has value labels, labelled values are categories even if none occurs."""
    base = given or _guess_text(raw)
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
    base = given or guess(moments)
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
    missing = given.missing if given is not None and given.missing else _codes(raw, ranges)
    left_out = set(missing)
    valid = _valid(raw.series, missing, ranges)
    base = given or _guess(raw, valid)
    base = replace(_with_missing(base, missing, raw.value_labels), missing_ranges=ranges)
    if base.coded and not base.categories:
        whole = raw.series.dtype.is_integer()
        named = [
            value
            for value in raw.value_labels
            if value not in left_out and not _within(value, ranges) and isinstance(value, int if whole else int | float)
        ]
        base = replace(base, categories=tuple(sorted({*valid.to_list(), *named}, key=float)))
    return _with_tags(raw), _labelled(base, raw.value_labels)


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
    alone = (whole or sort_of(raw.name, raw.label) == "point") and _identifying(raw, valid)
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
    named, nominal = sort_of(raw.name, raw.label) is not None, raw.stored.measure == "nominal"
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


def _codes(raw: Raw, ranges: tuple[tuple[float, float], ...]) -> tuple[Value, ...]:
    """Return single missing codes, codes found inside ranges, and tags that occur or have a label."""
    single = [low for low, high in raw.ranges if low == high]
    found = raw.series.drop_nulls().unique().sort()
    inside: list[Value] = [
        value for low, high in ranges for value in found.filter(found.is_between(low, high)).to_list()
    ]
    occurring: list[str] = [] if raw.tags is None else raw.tags.drop_nulls().unique().to_list()
    tags = {value for value in raw.value_labels if isinstance(value, str)} | set(occurring)
    return (*dict.fromkeys((*single, *inside)), *sorted(tags))


def _within(value: Value, ranges: tuple[tuple[float, float], ...]) -> bool:
    return not isinstance(value, str) and any(low <= value <= high for low, high in ranges)


def _with_missing(variable: Variable, missing: tuple[Value, ...], labels: Mapping[Value, str]) -> Variable:
    if variable.missing_labels:
        return variable
    named = tuple(labels.get(code, "") for code in missing)
    return replace(variable, missing=missing, missing_labels=named if any(named) else ())


def _labelled(variable: Variable, labels: Mapping[Value, str]) -> Variable:
    """Give labels to categories; those of other values are kept beside them."""
    if not variable.labels and any(value in labels for value in variable.categories):
        variable = replace(variable, labels=tuple(labels.get(value, "") for value in variable.categories))
    if variable.labelled:
        return variable
    known = set(variable.values)
    return replace(variable, labelled=tuple((value, text) for value, text in labels.items() if value not in known))


def _with_tags(raw: Raw) -> pl.Series:
    """Return numbers, or numbers and tags as one text, from which the codebook tells them apart again."""
    if raw.tags is None:
        return raw.series
    text = raw.series.cast(pl.String)
    return text.zip_with(raw.tags.is_null(), raw.tags).alias(raw.name)
