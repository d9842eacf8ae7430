"""The tables of the report, for one source."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from quadrille.papers.dohrmann_2009 import analysis, census
from quadrille.papers.dohrmann_2009.analysis import INTERCEPT, Result, all_terms, sign_of
from quadrille.papers.dohrmann_2009.design import METHODS, RATES, SHAPES, Source, scenarios
from quadrille.papers.dohrmann_2009.runs import NAMES, Runs
from quadrille.papers.reproduction import Listing

Row = tuple[str | int | float, ...]

TITLES = {"values": "Tables A-1 and A-3", "cv": "Tables A-2 and A-4, logarithm of the CV over seeds"}
_DROPPED = "n.s."
_SMALL = 0.0005
"""Coefficients below this are shown by their power of ten."""
_STEPS = {"rate": 0.12, "standard": 1.0, "cells": 100.0, "variables": 1.0, "nominal": 10.0}
_STEP_NAMES = {
    "rate": "15 %, not 3 %",
    "standard": "standard method",
    "cells": "100 more cells",
    "variables": "1 more variable",
    "nominal": "10 more nominal",
}


def listings(runs: Runs, results: Sequence[Result]) -> list[Listing]:
    """Return all tables of a source, in the order in which they are read."""
    found = [scenarios_of(runs.source), means(runs), variation(runs)]
    for table in TITLES:
        mine = [result for result in results if result.table == table]
        found += [
            effects(runs.source, table, mine),
            signs(runs.source, table, mine),
            coefficients(runs.source, table, mine),
        ]
    return [*found, *undefined(runs)]


def scenarios_of(source: Source) -> Listing:
    """List the scenarios of a source."""
    rows = tuple(
        (each.number, " ".join(each.variables), shape, each.cells, each.nominal)
        for each, shape in zip(scenarios(source), SHAPES, strict=True)
    )
    note = "N nominal, O ordinal; the right-most variable changes most often. "
    if source == "adult":
        note += "; ".join(f"{name}: {what}" for name, what in census.DESCRIPTIONS.items()) + "."
    else:
        note += "A name tells kind and number of categories; the file is simulated."
    return Listing(
        f"Scenarios, {source}", ("scenario", "variables", "categories", "possible cells", "nominal"), rows, note
    )


def means(runs: Runs) -> Listing:
    """Average every measure over files and scenarios, by rate and method."""
    found = runs.means
    rows: list[Row] = []
    for r, rate in enumerate(RATES):
        for m, method in enumerate(METHODS):
            defined = [found[:, :, r, m, k] for k in range(len(NAMES))]
            rows.append((f"{rate:.0%}", method, *(float(x[np.isfinite(x)].mean()) for x in defined)))
    note = "Means over seeds, files and scenarios where the measure is defined. HD in roots of weights."
    return Listing(f"Mean loss, {runs.source}", ("targets", "method", *NAMES), tuple(rows), note, digits=4)


def variation(runs: Runs) -> Listing:
    """Set the coefficients of variation over seeds beside the published ones."""
    rows: list[Row] = []
    for m, name in enumerate(NAMES):
        mine = runs.cv[..., m]
        mine = mine[np.isfinite(mine)]
        ours = f"{mine.mean():.1f} ({mine.min():.1f}-{mine.max():.1f})" if mine.size else "-"
        mean, least, largest = analysis.PUBLISHED_CV[name]
        rows.append((name, f"{mean} ({least}-{largest})", ours, int(mine.size)))
    title = f"Coefficient of variation over {runs.seeds} seeds in percent, mean (least-largest), {runs.source}"
    return Listing(title, ("measure", "published", "ours", "settings"), tuple(rows))


def effects(source: str, table: str, results: Sequence[Result]) -> Listing:
    """Set the average effects that follow from both sets of coefficients beside each other."""
    rows: list[Row] = []
    for factor, step in _STEPS.items():
        for word, ours in (("published", False), ("ours", True)):
            entries = [_effect(result, factor, step, ours=ours) for result in results]
            rows.append((_STEP_NAMES[factor], word, *entries))
    note = (
        "The effect of a step in one factor (nominal: categories), the others at their mean in the design, by the "
        "coefficients below. "
        "The coefficient of a factor alone is its effect where all others are 0, which no file is."
    )
    title = f"Average effects by {TITLES[table]}, {source}"
    return Listing(title, ("step", "", *(result.measure for result in results)), tuple(rows), note)


def _effect(result: Result, factor: str, step: float, *, ours: bool) -> str:
    if (factor,) not in result.printed.considered:
        return ""
    value = step * result.effect(factor, ours=ours)
    return f"{value:+.4f}" if value else _DROPPED


def signs(source: str, table: str, results: Sequence[Result]) -> Listing:
    """Set the signs of the published coefficients beside those of ours."""
    rows: list[Row] = []
    for name in _names():
        entries = [" ".join(signs_of(result, name)) for result in results]
        rows.append((name, *(entry.strip() for entry in entries)))
    note = "Each entry: the published sign, then ours; 0 dropped by the elimination, empty not considered."
    title = f"Signs of the coefficients, published and ours, {TITLES[table]}, {source}"
    return Listing(title, ("term", *(result.measure for result in results)), tuple(rows), note)


def signs_of(result: Result, name: str) -> tuple[str, str]:
    """Return the published sign of a coefficient and ours."""
    considered = result.printed.considered
    return (
        sign_of(name, result.printed.coefficients, considered),
        sign_of(name, result.fit.coefficients, considered),
    )


def coefficients(source: str, table: str, results: Sequence[Result]) -> Listing:
    """List our coefficients; R-square also as published and with all terms to begin with."""
    rows: list[Row] = [
        ("R-square", *(f"{result.fit.r_square:.4f}" for result in results)),
        ("R-square published", *(f"{result.printed.r_square:.4f}" for result in results)),
        ("R-square, all terms", *(f"{result.full.r_square:.4f}" for result in results)),
    ]
    for name in (INTERCEPT, *_names()):
        rows.append((name, *(_coefficient(result, name) for result in results)))
    counts = ", ".join(f"{result.measure} {result.fit.n:,}" for result in results)
    left = ", ".join(f"{result.measure} {result.left_out:,}" for result in results if result.left_out)
    note = (
        f"Responses: {counts}. Left out because undefined, or 0 under a logarithm: {left or 'none'}. "
        "The elimination begins with the terms that the paper considered; all terms: the same with all six factors "
        "and all products of two."
    )
    aliased = sorted({" x ".join(term) for result in results for term in result.fit.aliased})
    if aliased:
        note += f" Not to be told from other terms in the responses left: {', '.join(aliased)}."
    title = f"Our coefficients, {TITLES[table]}, {source}"
    return Listing(title, ("term", *(result.measure for result in results)), tuple(rows), note)


def _coefficient(result: Result, name: str) -> str:
    if name in result.fit.coefficients:
        value = result.fit.coefficients[name]
        return f"{value:.4f}" if abs(value) >= _SMALL else f"{value:.0e}"
    return _DROPPED if sign_of(name, {}, result.printed.considered) else ""


def _names() -> list[str]:
    return [name for term in all_terms(analysis.FACTORS) for name in analysis.names_of(term)]


def undefined(runs: Runs) -> list[Listing]:
    """List why scores are undefined, if any is."""
    if not runs.reasons:
        return []
    rows = tuple((reason, count) for reason, count in sorted(runs.reasons.items()))
    return [Listing(f"Undefined scores, {runs.source}", ("reason", "runs"), rows)]
