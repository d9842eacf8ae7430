"""What the codebook recodes when a file is read: bands of numbers, top and bottom codes, merged categories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import cast

import polars as pl

from quadrille.codebook import Codebook, Value, Variable
from quadrille.errors import InputError
from quadrille.io.frames.identifiers import MOST_ORDINAL
from quadrille.io.frames.values import finite_floats, is_text, not_numbers, text_of, with_found_codes, without_marks


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

    >>> from quadrille.io.frames.recode import band_labels
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
