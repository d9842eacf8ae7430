"""The published tables of coefficients, read by term."""

from __future__ import annotations

from dataclasses import dataclass

from quadrille.papers.dohrmann2009.design import SIZES
from quadrille.papers.dohrmann2009.model import INTERCEPT, Term, all_terms
from quadrille.papers.reproduction import published

FACTORS = ("cells", "rate", "standard", "size", "variables", "nominal")
REFERENCE_SIZE = SIZES[-1]
LEVELS = {"size": tuple(f"size {size}" for size in SIZES[:-1])}
"""Names of the columns of a factor that has several."""
FILES = {"values": "dohrmann_tables_A1_A3.csv", "cv": "dohrmann_tables_A2_A4.csv"}
PUBLISHED_CV = {
    "HD1": (34.2, 5.2, 186.3),
    "HD2": (42.4, 5.3, 182.4),
    "R_ASED": (24.9, 4.3, 68.3),
    "C_ARD": (61.0, 9.6, 178.3),
    "ASED_REG": (29.1, 6.0, 91.4),
}
"""Coefficients of variation in percent: mean, least, largest."""

_R_SQUARE, _DROPPED = "R-square", "n.s."


@dataclass(frozen=True)
class Column:
    """The published model of one response: the terms it began with, and the coefficients that stayed, by column."""

    response: str
    r_square: float
    considered: tuple[Term, ...]
    coefficients: dict[str, float]


def columns(table: str) -> dict[str, Column]:
    """Return the columns of a published table, "values" (A-1 and A-3) or "cv" (A-2 and A-4), by name of the measure."""
    rows = published(FILES[table])
    responses = [name for name in rows[0] if name != "term"]
    return {name.split()[-1]: _column(name, {row["term"]: row[name] for row in rows}) for name in responses}


def names_of(term: Term) -> list[str]:
    """Name the columns of a term.

    >>> from quadrille.papers.dohrmann2009.tables import names_of
    >>> names_of(("rate", "size"))
    ['rate x size 18102', 'rate x size 8153', 'rate x size 3648']
    """
    names = [""]
    for factor in term:
        names = [f"{a} x {b}" if a else b for a in names for b in LEVELS.get(factor, (factor,))]
    return names


def _column(response: str, entries: dict[str, str]) -> Column:
    r_square = float(entries.pop(_R_SQUARE))
    found: dict[str, str] = {}
    for printed, entry in entries.items():
        found |= dict.fromkeys(_spelled(printed), entry)
    considered = [term for term in all_terms(FACTORS) if any(found[name] for name in names_of(term))]
    # A product whose factors are not considered themselves cannot have been in a hierarchical model: the table has
    # one such entry, "n.s." for nominal x size in the column of C_ARD.
    kept = tuple(term for term in considered if all((factor,) in considered for factor in term))
    numbers = {name: float(entry) for name, entry in found.items() if entry not in ("", _DROPPED)}
    return Column(response, r_square, kept, numbers)


def _spelled(printed: str) -> list[str]:
    """Return our names for a printed one: factors in our order, one name per file where the print has one for all."""
    if printed == INTERCEPT:
        return [printed]
    parts = {part.split()[0]: part for part in printed.split(" x ")}
    names = [""]
    for factor in FACTORS:
        if factor in parts:
            levels = (parts[factor],) if parts[factor] in LEVELS.get(factor, ()) else LEVELS.get(factor, (factor,))
            names = [f"{a} x {b}" if a else b for a in names for b in levels]
    return names
