"""Gomatam & Karr (2003), Distortion Measures for Categorical Data Swapping, NISS Technical Report 131: Tables 3-7."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

from quadrille.data import Data
from quadrille.datasets import cps8d
from quadrille.papers.reproduction import (
    ABOUT,
    Check,
    Claim,
    Floats,
    Progress,
    Reproduction,
    adding_up,
    check_arguments,
    over_seeds,
    published,
)
from quadrille.score.evaluator import Evaluator
from quadrille.swap.pairing import Sampler
from quadrille.swap.random import RandomSwap

Full = dict[str, Floats]
"""8-way scores by measure: (rate, swapped variable, seed)."""

DEFAULT_SEEDS = 100
DEFAULT_SAMPLER = "first-uniform"

MEASURES = ("hellinger", "total_variation", "entropy_change", "cramers_v_change", "contingency_change")
TABLES = dict(zip(MEASURES, range(3, 8), strict=True))
FULL = MEASURES[:3]
RATES = (0.01, 0.05, 0.10)
PUBLISHED_RATE = 0.05
ONE_DRAW = "the paper has one draw a variable, and its five tables show the same one"

ERRATA = (
    "Table 3 does not show the formula's Hellinger distance H but sqrt(H/2), so H = 2 T^2. With that its cells agree "
    "as those of the other tables do, all but AvgHrs with Race (first-uniform, 100 seeds); without, none does.",
    "The entropy formulas lack the minus sign: Table 5 and the text use H = - sum p ln p, in nats, after minus before.",
    "adV is said to lie between 0 and 1, but can be negative; its range at 5 % in the text (.005 to .046) contradicts "
    "Table 6 (.0001 to .0603).",
    "The 8-way Hellinger distance does not grow in proportion to the rate, and no 8-way measure puts the variables in "
    "the same order at all rates: see the claims.",
    "Hellinger is sqrt(2) sin(angle/2), not the sine of the angle; for 2 x 2 tables V is the absolute value of phi.",
)


def reproduce(
    seeds: int = DEFAULT_SEEDS, sampler: str = DEFAULT_SAMPLER, progress: Progress | None = None
) -> Reproduction:
    """Swap each variable alone at three rates with many seeds; set Tables 3-7 and the claims beside the result."""
    check_arguments(seeds, sampler, ("first-uniform", "pair-uniform"))
    data = cps8d()
    names = data.columns
    done = adding_up(progress, len(names) * len(RATES) * seeds)
    runs = {
        (name, rate): _run(data, name, rate, seeds, cast("Sampler", sampler), done) for name in names for rate in RATES
    }
    two_way = {name: runs[name, PUBLISHED_RATE][0] for name in names}
    full = {
        measure: np.array([[runs[name, rate][1][:, m] for name in names] for rate in RATES])
        for m, measure in enumerate(FULL)
    }
    checks = _checks(names, two_way)
    return Reproduction(
        paper="gomatam-karr-2003",
        title="Gomatam & Karr (2003), Distortion Measures for Categorical Data Swapping, NISS Technical Report 131",
        setting={"file": "CPS-8d", "sampler": sampler, "seeds": seeds, "records swapped": "5 % (1,221 pairs)"},
        checks=tuple(checks),
        claims=tuple(_claims(names, checks, two_way, full)),
        errata=ERRATA,
        figures=_figures(checks, full, two_way),
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


def _checks(names: Sequence[str], two_way: dict[str, Floats]) -> list[Check]:
    """Set the one draw of every published cell beside the mean of ours."""
    checks: list[Check] = []
    for m, (measure, number) in enumerate(TABLES.items()):
        rows = {row["other"]: row for row in published(f"gomatam_karr_table{number}_{measure}.csv")}
        title = f"Table {number}: {measure}" + (", as sqrt(H/2)" if measure == "hellinger" else "")
        for name in names:
            values = _as_printed(measure, two_way[name][:, m])
            for i, other in enumerate(other for other in names if other != name):
                checks.append(Check(title, name, other, rows[other][name], *over_seeds(values[:, i]), ONE_DRAW))
    return checks


def _claims(names: Sequence[str], checks: Sequence[Check], two_way: dict[str, Floats], full: Full) -> list[Claim]:
    columns = np.stack([two_way[name].mean(axis=2) for name in names], axis=2)  # seed, measure, swapped
    lowest = ("Race" if measure == "entropy_change" else "Edu" for measure in MEASURES)
    tables = {check.table: [other for other in checks if other.table == check.table] for check in checks}
    return [
        *(Claim.of(f"{table}: all cells", cells) for table, cells in tables.items()),
        *(_extreme(names, columns, m, "largest", "AnnSal") for m in range(len(MEASURES))),
        *(_extreme(names, columns, m, "smallest", name) for m, name in enumerate(lowest)),
        _grows(full),
        _proportionate(full),
        _same_order(names, full),
        *(
            _full_extreme(names, full, measure, word, expected)
            for measure, word, expected in (
                ("total_variation", "largest", ("AnnSal", "MS")),
                ("total_variation", "smallest", ("Race", "Edu")),
                ("entropy_change", "largest", ("AnnSal", "MS")),
                ("entropy_change", "smallest", ("Race", "Edu")),
                ("hellinger", "largest", ("AnnSal",)),
                ("hellinger", "smallest", ("Edu", "AvgHrs")),
            )
        ),
        *_cramer(two_way),
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
    found = [names[int(_EXTREME[word](means))] for means in full[measure].mean(axis=2)]
    evidence = "; ".join(f"{name} at {rate:.0%}" for rate, name in zip(RATES, found, strict=True))
    text = f"8-way {measure} is {word} for {' or '.join(expected)}"
    return Claim(text, all(name in expected for name in found), evidence)


def _grows(full: Full) -> Claim:
    steps = np.array([np.diff(values.mean(axis=2), axis=0) > 0 for values in full.values()])
    text = "distortion grows with the rate (8-way measures, every variable, 1 % to 5 % to 10 %)"
    return Claim(text, bool(steps.all()), f"{steps.sum()} of {steps.size} steps rise")


def _growth(values: Floats, step: int) -> Floats:
    """Return by variable the mean at a higher rate as a multiple of that at 1 %."""
    means = values.mean(axis=2)
    return means[step] / means[0]


def _proportionate(full: Full) -> Claim:
    near, words = True, list[str]()
    for step, times in ((1, 5), (2, 10)):
        near &= bool((np.abs(_growth(full["hellinger"], step) / times - 1) <= ABOUT).all())
        grown = {measure: _growth(values, step) for measure, values in full.items()}
        words.append(
            f"{times} times the rate: "
            + ", ".join(f"{measure} {own.min():.1f} to {own.max():.1f} times" for measure, own in grown.items())
        )
    text = f"8-way hellinger is approximately proportionate to the swap rate (within {ABOUT:.0%}, every variable)"
    return Claim(text, near, "; ".join(words))


def _same_order(names: Sequence[str], full: Full) -> Claim:
    """Compare the order of the variables at the three rates, by means and in every seed."""

    def same(values: Floats) -> NDArray[np.bool_]:
        order = values.argsort(axis=1)
        return np.asarray((order == order[:1]).all(axis=(0, 1)))

    holds = {measure: bool(same(values.mean(axis=2))) for measure, values in full.items()}
    seeds = ", ".join(f"{measure} in {same(values).sum()} of {values.shape[2]}" for measure, values in full.items())
    first = [names[int(i)] for i in full["entropy_change"].mean(axis=2).argmax(axis=1)]
    evidence = f"the same in single seeds: {seeds}; by means {sum(holds.values())} of {len(holds)} measures"
    evidence += f"; first by entropy_change: {', '.join(first)} at 1 %, 5 %, 10 %"
    text = "the ordering of swap variables by 8-way entropy_change is exactly the same over all three swap rates"
    return Claim(text, holds["entropy_change"], evidence)


def _cramer(two_way: dict[str, Floats]) -> list[Claim]:
    """Judge what the text says about adV: its range at 5 % in one draw, and that it cannot be negative."""
    values = np.concatenate([scores[:, MEASURES.index("cramers_v_change")] for scores in two_way.values()], axis=1)
    reason = "Table 6 itself goes from .0001 to .0603"
    ends = (("least", "0.005", values.min(axis=1)), ("largest", "0.046", values.max(axis=1)))
    checks = [Check("text", "adV at 5 %", word, printed, *over_seeds(own), reason) for word, printed, own in ends]
    return [
        Claim.of("adV ranges from .005 to .046 at 5 %", checks),
        Claim(
            "adV lies between 0 and 1",
            bool((values >= 0).all()),
            f"{(values < 0).sum():,} of {values.size:,} are negative, the least {values.min():.4f}",
        ),
    ]


def _figures(checks: Sequence[Check], full: Full, two_way: dict[str, Floats]) -> dict[str, float]:
    growth = _growth(full["hellinger"], 1)
    squares = _growth(full["hellinger"] ** 2, 1)
    v = np.array([scores[:, MEASURES.index("cramers_v_change")].mean(axis=0) for scores in two_way.values()])
    z = np.array([check.z for check in checks], dtype=float)
    return {
        "cells compared": float(len(checks)),
        "cells that agree": float(sum(check.agrees for check in checks)),
        "mean z^2 over all cells": float((z**2).mean()),
        "cells with |z| > 2": float((np.abs(z) > 2).sum()),
        "8-way Hellinger, 5 % against 1 %, smallest ratio": float(growth.min()),
        "8-way Hellinger, 5 % against 1 %, largest ratio": float(growth.max()),
        "its square, smallest ratio": float(squares.min()),
        "its square, largest ratio": float(squares.max()),
        "smallest mean adV at 5 %": float(v.min()),
        "largest mean adV at 5 %": float(v.max()),
    }
