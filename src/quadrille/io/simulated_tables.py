"""The analysis of a simulation as tables and as one JSON document."""

from __future__ import annotations

from itertools import combinations
from math import isfinite

import polars as pl

from quadrille.frames import tidy
from quadrille.study.simulate import COUNTS, METRICS
from quadrille.study.trials.analysis import DISTANCES, DIVERSITIES, Analysis, Floats, Row, Stratum
from quadrille.study.trials.design import Design
from quadrille.study.trials.effects import INTERCEPT, Model

RANGES = ("within A", "within B", "across")


def tables(found: Analysis) -> dict[str, pl.DataFrame]:
    """Return the tables that stand beside the replicates as CSV."""
    return {
        "summary": tidy(found.summary),
        "settings": tidy(found.settings),
        "correlations": tidy(_correlations(found.pooled)),
        "strata": tidy([{**each.levels, **_ranges(each)} for each in found.strata]),
        "effects": tidy([row for model in found.models.values() if model for row in _effects(model)]),
    }


def document(design: Design, seed: int | str, found: Analysis) -> dict[str, object]:
    """Return everything but the replicates as plain values; what is undefined is null."""
    counts = {name: int(found.values[:, :, i].sum()) for i, name in enumerate(COUNTS, len(METRICS))}
    return {
        "title": design.title,
        "identity": design.identity,
        "seed": seed,
        "settings": len(design.trials),
        "replicates": design.replicates,
        "factors": [
            {"factor": factor.name, "levels": list(factor.levels), "baseline": factor.baseline}
            for factor in design.factors
        ],
        **counts,
        "groups": {"A": list(DISTANCES), "B": list(DIVERSITIES)},
        "summary": list(found.summary),
        "correlations": _correlations(found.pooled),
        "strata": [{"stratum": each.levels, **_ranges(each)} for each in found.strata],
        "models": {name: model and _model(model) for name, model in found.models.items()},
    }


def _correlations(matrix: Floats) -> list[Row]:
    return [
        {"first": METRICS[i], "second": METRICS[j], "spearman": _known(float(matrix[i, j]))}
        for i, j in combinations(range(len(METRICS)), 2)
    ]


def _ranges(stratum: Stratum) -> Row:
    found: Row = {}
    for kind in RANGES:
        low, high = stratum.range(kind)
        found |= {f"{kind}, least": _known(low), f"{kind}, largest": _known(high)}
    return found


def _effects(model: Model) -> list[Row]:
    return [
        {
            "metric": model.metric,
            "factor": term.factor,
            "level": "" if term.factor == INTERCEPT else term.level,
            "effect": term.effect,
            "error": _known(term.error),
            "low": _known(term.low),
            "high": _known(term.high),
        }
        for term in model.terms
    ]


def _model(model: Model) -> Row:
    return {
        "factors": list(model.factors),
        "effects": _effects(model),
        "r2": model.r2,
        "r2 of the settings": model.ceiling,
        "rmse": _known(model.rmse),
        "steps": [{"factor": s.factor, "entered": s.entered, "p": s.p} for s in model.steps],
    }


def _known(value: float) -> float | None:
    return value if isfinite(value) else None
