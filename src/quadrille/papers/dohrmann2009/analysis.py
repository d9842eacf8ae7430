"""The paper's analysis: what a run's loss, and its spread over seeds, depend on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from quadrille.papers.dohrmann2009 import tables
from quadrille.papers.dohrmann2009.design import METHODS, RATES, SIZES, scenarios, settings
from quadrille.papers.dohrmann2009.model import Factors, Fit, Floats, Term, all_terms, eliminate
from quadrille.papers.dohrmann2009.runs import NAMES, Runs

LOGGED = ("R_ASED", "C_ARD", "ASED_REG")
"""Measures whose logarithm is the response; the spread over seeds is logged for all. Logarithms are decimal."""


@dataclass(frozen=True)
class Result:
    """One response: the model that begins with the terms of the paper, that with all terms, the published one.

    `left_out` counts responses that are undefined, or 0 where the logarithm is taken.
    """

    measure: str
    table: str
    fit: Fit
    full: Fit
    printed: tables.Column
    left_out: int

    def effect(self, factor: str, *, ours: bool = True) -> float:
        """Return the effect of one unit of a factor, averaged over the design."""
        return average_effect(factor, self.fit.coefficients if ours else self.printed.coefficients)


def analyse(runs: Runs) -> list[Result]:
    """Regress the five measures, then the spread of each over seeds, on the factors of the design."""
    found: list[Result] = []
    for table, values in (("values", runs.values), ("cv", runs.cv[..., None, :])):
        printed = tables.columns(table)
        for m, measure in enumerate(NAMES):
            logged = table == "cv" or measure in LOGGED
            found.append(_result(measure, table, values[..., m], printed[measure], logged=logged))
    return found


def _result(measure: str, table: str, values: Floats, printed: tables.Column, *, logged: bool) -> Result:
    repeats = values.shape[-1]
    flat = values.reshape(-1)
    usable = np.isfinite(flat) & ((flat > 0) | (not logged))
    response = np.log10(flat[usable]) if logged else flat[usable]
    factors = {name: (labels, columns[usable]) for name, (labels, columns) in design_factors(repeats).items()}
    fit = eliminate(response, factors, list(printed.considered))
    full = eliminate(response, factors, all_terms(tables.FACTORS))
    return Result(measure, table, fit, full, printed, int((~usable).sum()))


def design_factors(repeats: int = 1) -> Factors:
    """Return the factors of the design, a row per setting and repeat, in the order of a table of runs."""
    plan = scenarios("simulated")  # cells, variables and nominal categories are the same for all sources
    rows = list(settings())
    single: dict[str, Floats] = {
        "cells": np.array([[float(plan[s.scenario].cells)] for s in rows]),
        "rate": np.array([[RATES[s.rate]] for s in rows]),
        "standard": np.array([[float(METHODS[s.method] == "standard")] for s in rows]),
        "size": np.array([[float(SIZES[s.size] == size) for size in SIZES[:-1]] for s in rows]),
        "variables": np.array([[float(len(plan[s.scenario].variables))] for s in rows]),
        "nominal": np.array([[float(plan[s.scenario].nominal)] for s in rows]),
    }
    return {
        name: (tables.LEVELS.get(name, (name,)), np.repeat(columns, repeats, axis=0))
        for name, columns in single.items()
    }


def average_effect(factor: str, coefficients: Mapping[str, float]) -> float:
    """Return the effect of one unit of a factor with a single column, the other factors at their mean in the design.

    The coefficient of a factor alone is its effect where all others are 0, which no file is; this is what it does on
    average.
    """
    means = {
        label: float(mean)
        for labels, values in design_factors().values()
        for label, mean in zip(labels, values.mean(axis=0), strict=True)
    }
    total = 0.0
    for name, value in coefficients.items():
        parts = name.split(" x ")
        if factor in parts:
            total += value * float(np.prod([means[part] for part in parts if part != factor]))
    return total


def sign_of(name: str, coefficients: Mapping[str, float], considered: tuple[Term, ...]) -> str:
    """Return "+" or "-", "0" for a coefficient that was dropped, "" for one that was not considered."""
    if name in coefficients:
        return "+" if coefficients[name] > 0 else "-"
    return "0" if any(name in tables.names_of(term) for term in considered) else ""
