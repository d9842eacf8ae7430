"""The claims of the paper, judged by the runs of one source."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import sqrt

import numpy as np

from quadrille.papers.dohrmann_2009.analysis import Result
from quadrille.papers.dohrmann_2009.design import METHODS, SHAPES, scenarios
from quadrille.papers.dohrmann_2009.runs import NAMES, Floats, Runs
from quadrille.papers.reproduction import Claim

ALWAYS = 0.95
"""A claim without "usually" needs this share of the comparisons, for each measure."""
USUALLY = 0.5
"""A claim with "usually", or about a tendency, needs more than this share."""
ERRORS = 2.0
"""A mean change counts from this many standard errors on."""

_HD = ("HD1", "HD2")
_ASSOCIATIONS = ("R_ASED", "C_ARD", "ASED_REG")
_STANDARD, _BALANCED = METHODS.index("standard"), METHODS.index("balanced")


def claims(runs: Runs, results: Sequence[Result]) -> list[Claim]:
    """Judge every claim, by means over seeds or by the spread over seeds; `results` are the analysis of these runs."""
    means = runs.means
    return [
        _rate(runs.source, means),
        _method(runs.source, means),
        _cells(runs, results, _ASSOCIATIONS, sign=-1),
        _cells(runs, results, _HD, sign=1),
        _spread(runs),
    ]


def _rate(source: str, means: Floats) -> Claim:
    """Compare both rates: same file, scenario and method."""
    counts = {name: _count(means[:, :, 1, :, m], means[:, :, 0, :, m]) for m, name in enumerate(NAMES)}
    text = f"{source}: utility falls as the rate rises (larger loss at 15 % than at 3 %, in {ALWAYS:.0%} of settings)"
    return _claim(text, counts, least=ALWAYS)


def _method(source: str, means: Floats) -> Claim:
    """Compare both methods: same file, scenario and rate."""
    counts = {name: _count(means[..., _BALANCED, m], means[..., _STANDARD, m]) for m, name in enumerate(NAMES)}
    text = f"{source}: the standard method usually loses less than the balanced one (in more than half of settings)"
    return _claim(text, counts)


def _cells(runs: Runs, results: Sequence[Result], measures: tuple[str, ...], *, sign: int) -> Claim:
    """Compare all pairs of scenarios with as many variables, and ask the regression, which is what the paper did."""
    effect = {result.measure: result.effect("cells") for result in results if result.table == "values"}
    words: list[str] = []
    failing: list[str] = []
    for name in measures:
        groups = _by_variables(sign * runs.means[..., NAMES.index(name)])
        agree, total = (sum(counts) for counts in zip(*groups.values(), strict=True))
        parts = ", ".join(f"{a} of {b}" for a, b in groups.values())
        words.append(
            f"{name} {agree} of {total} (with {'/'.join(map(str, groups))} variables: {parts}), 100 cells in the "
            f"regression {f'{100 * effect[name]:+.3f}' if effect[name] else 'n.s.'}"
        )
        if not total or agree / total <= USUALLY or sign * effect[name] <= 0:
            failing.append(name)
    what = "help associations" if sign < 0 else "hurt HD"
    text = (
        f"{runs.source}: more cells with the same number of variables {what} (in more than half of pairs of scenarios, "
        "and by the regression)"
    )
    return Claim(text, not failing, "; ".join(words) + _but(failing))


def _by_variables(values: Floats) -> dict[int, tuple[int, int]]:
    """Count, by number of variables, where the scenario with more cells has the larger value: (size, scenario, ...)."""
    plan = scenarios("simulated")
    counts: dict[int, tuple[int, int]] = {}
    for variables in sorted({len(each.variables) for each in plan}):
        pairs = [pair for pair in pairs_of_scenarios() if len(plan[pair[0]].variables) == variables]
        fewer, more = ([pair[i] for pair in pairs] for i in (0, 1))
        counts[variables] = _count(values[:, more], values[:, fewer])
    return counts


def pairs_of_scenarios() -> list[tuple[int, int]]:
    """Return all pairs of scenarios with the same number of variables, by position, that with fewer cells first."""
    plan = scenarios("simulated")
    pairs: list[tuple[int, int]] = []
    for a, b in combinations(range(len(SHAPES)), 2):
        if len(plan[a].variables) == len(plan[b].variables) and plan[a].cells != plan[b].cells:
            pairs.append((a, b) if plan[a].cells < plan[b].cells else (b, a))
    return pairs


def _spread(runs: Runs) -> Claim:
    """Compare the spread over seeds at both rates: mean change of its logarithm, in standard errors."""
    cv = np.where(runs.cv > 0, runs.cv, np.nan)
    words: list[str] = []
    failing: list[str] = []
    for m, name in enumerate(NAMES):
        change = np.log10(cv[:, :, 1, :, m] / cv[:, :, 0, :, m])
        change = change[np.isfinite(change)]
        if len(change) < 2:
            words.append(f"{name} cannot be compared")
            failing.append(name)
            continue
        mean, error = float(change.mean()), float(change.std(ddof=1)) / sqrt(len(change))
        words.append(f"{name} {10**mean - 1:+.0%} ({mean:+.3f} with error {error:.3f}, {len(change)} settings)")
        if mean >= -ERRORS * error:
            failing.append(name)
    text = (
        f"{runs.source}: run-to-run variability falls with the rate (coefficient of variation over seeds, mean change "
        f"of its logarithm below 0 by more than {ERRORS:g} standard errors)"
    )
    return Claim(text, not failing, "; ".join(words) + _but(failing))


def _count(larger: Floats, smaller: Floats) -> tuple[int, int]:
    """Count where the first is larger, and where both are defined and differ."""
    comparable = np.isfinite(larger) & np.isfinite(smaller) & (larger != smaller)
    return int((larger > smaller)[comparable].sum()), int(comparable.sum())


def _claim(text: str, counts: dict[str, tuple[int, int]], least: float | None = None) -> Claim:
    """Judge by the share of comparisons, for each measure: at least `least`, or else more than half."""
    failing: list[str] = []
    for name, (agree, total) in counts.items():
        enough = total and (agree / total >= least if least is not None else agree / total > USUALLY)
        if not enough:
            failing.append(name)
    words = [f"{name} {agree:,} of {total:,}" for name, (agree, total) in counts.items()]
    return Claim(text, not failing, "; ".join(words) + _but(failing))


def _but(failing: list[str]) -> str:
    return f". Not by {', '.join(failing)}" if failing else ""
