"""The limits of a policy file: the least and the most that a value may be, within what it can be."""

from __future__ import annotations

from math import isfinite
from typing import cast

from quadrille.io.policy import Limit
from quadrille.measure_base import Measure
from quadrille.study.job.table import Table

_LARGEST = 1e300


def limit_of(table: Table, key: str, kind: Measure, margin: float) -> Limit:
    """Read the limits of a measure; of a signed one its size is limited."""
    low, high = kind.range
    if kind.direction == "nearer 0":
        low, high = 0.0, max(abs(low), abs(high))
    return _between(table, key, low, high, margin)


def rate_of(table: Table, key: str) -> Limit | None:
    """Read the limits of a share of the records, if there are any."""
    return _between(table, key, 0.0, 1.0, None) if key in table.values else None


def _between(table: Table, key: str, low: float, high: float, margin: float | None) -> Limit:
    """Read {least = ..., most = ...}, within what the value can be; margin None: a margin makes no sense here."""
    written = table.values[key]
    names = ("least", "most") if margin is None else ("least", "most", "margin")
    if not isinstance(written, dict):
        table.demand("a table of limits, like {most = 0.05}", written, key)
    given = Table(f"{table.place} {key}", cast("dict[str, object]", written))
    given.know(names)
    least, most = (_number(given, name, low, high) for name in ("least", "most"))
    if least is not None and most is not None and least > most:
        given.refuse(f"'least' is above 'most'. Got {least:g} and {most:g}.")
    if margin is None and least is None and most is None:
        given.refuse("gives no limit. Add 'least' or 'most'.")
    own = None if margin is None else margin_of(given)
    return Limit(least, most, margin or 0.0 if own is None else own)


def _number(table: Table, key: str, low: float, high: float) -> float | None:
    value = table.values.get(key)
    if value is None:
        return None
    if (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and low <= value <= high
        and abs(value) <= _LARGEST
    ):
        return float(value)
    return table.demand("a number" + _range(low, high), value, key)


def _range(low: float, high: float) -> str:
    if isfinite(low) and isfinite(high):
        return f" in [{low:g}, {high:g}]"
    return f" of {low:g} or more" if isfinite(low) else f" of {high:g} or less" if isfinite(high) else ""


def margin_of(table: Table) -> float | None:
    """Read how near to a limit a person must look, as a share of it."""
    value = _number(table, "margin", 0.0, 1.0)
    if value == 1.0:
        table.demand("a number in [0, 1)", value, "margin")
    return value
