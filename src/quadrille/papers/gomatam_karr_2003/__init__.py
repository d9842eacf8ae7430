"""Gomatam & Karr (2003), Distortion Measures for Categorical Data Swapping, NISS Technical Report 131: Tables 3-7."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt
from typing import cast

import numpy as np
from numpy.typing import NDArray

from quadrille.data import Data
from quadrille.datasets import cps8d
from quadrille.papers.reproduction import Cell, Claim, Progress, Reproduction, adding_up, check_arguments, published
from quadrille.score.evaluator import Evaluator
from quadrille.swap.pairing import Sampler
from quadrille.swap.random import RandomSwap

Floats = NDArray[np.float64]
Full = dict[tuple[str, float], Floats]
"""8-way scores (seed, measure) by variable and rate."""

DEFAULT_SEEDS = 100
DEFAULT_SAMPLER = "first-uniform"

MEASURES = ("hellinger", "total_variation", "entropy_change", "cramers_v_change", "contingency_change")
TABLES = dict(zip(MEASURES, range(3, 8), strict=True))
FULL = MEASURES[:3]
RATES = (0.01, 0.05, 0.10)
PUBLISHED_RATE = 0.05
HALF_DIGIT_VARIANCE = 0.0001**2 / 12
"""Variance that printing four decimals adds."""

ERRATA = (
    "Table 3 does not show the formula's Hellinger distance H but sqrt(H/2), so H = 2 T^2. With that every cell fits.",
    "The entropy formulas lack the minus sign: Table 5 and the text use H = - sum p ln p, in nats, after minus before.",
    "adV is said to lie between 0 and 1, but can be negative; its range at 5 % in the text (.005 to .046) contradicts "
    "Table 6 (.0001 to .0603).",
    "The 8-way Hellinger distance does not grow in proportion to the rate: see the summary figures.",
    "Hellinger is sqrt(2) sin(angle/2), not the sine of the angle; for 2 x 2 tables V is the absolute value of phi.",
)


def reproduce(
    seeds: int = DEFAULT_SEEDS, sampler: str = DEFAULT_SAMPLER, progress: Progress | None = None
) -> Reproduction:
    """Swap each variable alone at three rates with many seeds; set Tables 3-7 and the claims beside the result."""
    check_arguments(seeds, sampler, ("first-uniform", "pair-uniform"))
    data = cps8d()
    done = adding_up(progress, len(data.columns) * len(RATES) * seeds)
    runs = {
        (name, rate): _run(data, name, rate, seeds, cast("Sampler", sampler), done)
        for name in data.columns
        for rate in RATES
    }
    two_way = {name: runs[name, PUBLISHED_RATE][0] for name in data.columns}
    full = {key: run[1] for key, run in runs.items()}
    cells = _cells(data.columns, two_way)
    return Reproduction(
        paper="gomatam-karr-2003",
        title="Gomatam & Karr (2003), Distortion Measures for Categorical Data Swapping, NISS Technical Report 131",
        setting={"file": "CPS-8d", "sampler": sampler, "seeds": seeds, "records swapped": "5 % (1,221 pairs)"},
        cells=tuple(cells),
        claims=tuple(_claims(data.columns, two_way, full)),
        errata=ERRATA,
        figures=_figures(data.columns, cells, full, two_way),
        headings=("swapped", "other"),
    )


def _run(
    data: Data, name: str, rate: float, seeds: int, sampler: Sampler, done: Callable[[int], None]
) -> tuple[Floats, Floats]:
    """Return two-way scores (seed, measure, other variable) and 8-way scores (seed, measure) of one design."""
    others = [other for other in data.columns if other != name]
    pairs = [f"{measure}({name}*{other})" for measure in MEASURES for other in others]
    evaluator = Evaluator(data, [*pairs, *FULL])
    two_way, full = np.empty((seeds, len(MEASURES), len(others))), np.empty((seeds, len(FULL)))
    for seed in range(seeds):
        scores = evaluator.score(RandomSwap([name], rate=rate, sampler=sampler, seed=seed).plan(data))
        two_way[seed] = np.array([scores[pair] for pair in pairs], dtype=float).reshape(len(MEASURES), -1)
        full[seed] = [scores[measure] for measure in FULL]
        done(1)
    return two_way, full


def _as_printed(measure: str, values: Floats) -> Floats:
    """Bring scores to the scale of the printed table: Table 3 shows sqrt(H/2)."""
    return np.sqrt(values / 2) if measure == "hellinger" else values


def _cells(names: Sequence[str], two_way: dict[str, Floats]) -> list[Cell]:
    cells: list[Cell] = []
    for m, (measure, number) in enumerate(TABLES.items()):
        rows = {row["other"]: row for row in published(f"gomatam_karr_table{number}_{measure}.csv")}
        title = f"Table {number}: {measure}" + (", as sqrt(H/2)" if measure == "hellinger" else "")
        for name in names:
            others = [other for other in names if other != name]
            values = _as_printed(measure, two_way[name][:, m])
            for i, other in enumerate(others):
                mean, sd = float(values[:, i].mean()), float(values[:, i].std(ddof=1))
                printed = float(rows[other][name])
                z = (printed - mean) / sqrt(sd**2 + HALF_DIGIT_VARIANCE)
                cells.append(Cell(title, other, name, printed, mean, sd, z))
    return cells


def _claims(names: Sequence[str], two_way: dict[str, Floats], full: Full) -> list[Claim]:
    columns = np.stack([two_way[name].mean(axis=2) for name in names], axis=2)  # seed, measure, swapped
    lowest = ("Race" if measure == "entropy_change" else "Edu" for measure in MEASURES)
    return [
        *(_extreme(names, columns, m, "largest", "AnnSal") for m in range(len(MEASURES))),
        *(_extreme(names, columns, m, "smallest", name) for m, name in enumerate(lowest)),
        _grows(names, full),
        _full_extreme(names, full, "total_variation", "largest", ("AnnSal", "MS")),
        _full_extreme(names, full, "total_variation", "smallest", ("Race", "Edu")),
        _full_extreme(names, full, "entropy_change", "largest", ("AnnSal", "MS")),
        _full_extreme(names, full, "entropy_change", "smallest", ("Race", "Edu")),
        _full_extreme(names, full, "hellinger", "smallest", ("Edu", "AvgHrs")),
    ]


_EXTREME: dict[str, Callable[..., np.intp | NDArray[np.intp]]] = {"largest": np.argmax, "smallest": np.argmin}


def _extreme(names: Sequence[str], columns: Floats, m: int, word: str, expected: str) -> Claim:
    extreme, means = _EXTREME[word], columns[:, m].mean(axis=0)
    found = names[int(extreme(means))]
    share = float((np.asarray(extreme(columns[:, m], axis=1)) == names.index(expected)).mean())
    evidence = f"over all seeds: {found} ({means[names.index(found)]:.4f}); {expected} in {share:.0%} of single seeds"
    text = f"swapping {expected} has the {word} column mean of {MEASURES[m]}"
    return Claim(text, found == expected, evidence)


def _full_extreme(names: Sequence[str], full: Full, measure: str, word: str, expected: tuple[str, ...]) -> Claim:
    means = {rate: [full[name, rate][:, FULL.index(measure)].mean() for name in names] for rate in RATES}
    found = {rate: names[int(_EXTREME[word](own))] for rate, own in means.items()}
    evidence = "; ".join(f"{name} at {rate:.0%}" for rate, name in found.items())
    text = f"8-way {measure} is {word} for {' or '.join(expected)}"
    return Claim(text, all(name in expected for name in found.values()), evidence)


def _grows(names: Sequence[str], full: Full) -> Claim:
    rises, total = 0, 0
    for name in names:
        means = np.stack([full[name, rate].mean(axis=0) for rate in RATES])
        rises += int((np.diff(means, axis=0) > 0).sum())
        total += (len(RATES) - 1) * len(FULL)
    text = "distortion grows with the rate (8-way measures, every variable, 1 % to 5 % to 10 %)"
    return Claim(text, rises == total, f"{rises} of {total} steps rise")


def _figures(names: Sequence[str], cells: Sequence[Cell], full: Full, two_way: dict[str, Floats]) -> dict[str, float]:
    growth = [float(full[n, 0.05][:, 0].mean() / full[n, 0.01][:, 0].mean()) for n in names]
    squares = [float((full[n, 0.05][:, 0] ** 2).mean() / (full[n, 0.01][:, 0] ** 2).mean()) for n in names]
    v = [float(value) for n in names for value in two_way[n][:, 3].mean(axis=0)]
    far = [cell for cell in cells if abs(cell.z) > 2]
    return {
        "cells compared": float(len(cells)),
        "mean z^2 over all cells": float(np.mean([cell.z**2 for cell in cells])),
        "cells with |z| > 2": float(len(far)),
        "8-way Hellinger, 5 % against 1 %, smallest ratio": min(growth),
        "8-way Hellinger, 5 % against 1 %, largest ratio": max(growth),
        "its square, smallest ratio": min(squares),
        "its square, largest ratio": max(squares),
        "smallest mean adV at 5 %": min(v),
        "largest mean adV at 5 %": max(v),
    }
