"""All measures, by name."""

from __future__ import annotations

from quadrille.errors import unknown_name
from quadrille.measure import ard, association, correlation, difference, records, regression, risk, tables, utility
from quadrille.measure.base import Measure

MEASURES: dict[str, Measure] = {
    measure.name: measure
    for family in (tables, association, difference, records, risk, utility, ard, correlation, regression)
    for measure in family.MEASURES
}


def get(name: str) -> Measure:
    """Return the measure of that name."""
    if name not in MEASURES:
        raise unknown_name("measure", name, MEASURES)
    return MEASURES[name]
