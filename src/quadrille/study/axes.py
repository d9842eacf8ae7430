"""Measures as objectives: lower is better on every axis."""

from __future__ import annotations

from collections.abc import Sequence

from quadrille import measure
from quadrille.measure_base import Call, Measure


def kind_of(address: str) -> Measure:
    """Return the measure that an address names."""
    return measure.get(Call.parse(address).name)


def orient(address: str, value: float) -> float:
    """Turn a value so that lower is better: signed measures by their size, higher-is-better ones negated."""
    direction = kind_of(address).direction
    return abs(value) if direction == "nearer 0" else -value if direction == "higher" else value


def sides(measures: Sequence[str]) -> tuple[int, int] | None:
    """Return the positions of the first risk and the first loss measure, if there are both."""
    found = [kind_of(address).side for address in measures]
    return (found.index("risk"), found.index("loss")) if {"risk", "loss"} <= set(found) else None
