"""Dohrmann, Krenzke, Roey & Russell (2009): what controlled swapping does to the utility of a weighted survey file.

The design of 1,920 runs on simulated files like those of the paper, which are not public here, and on samples of
Adult: the regressions with backward elimination, the spread over seeds, and the claims of the paper.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import sqrt

import numpy as np

from quadrille.papers.dohrmann_2009.files import (
    DESCRIPTIONS,
    METHODS,
    RATES,
    SEEDS,
    SHAPES,
    SIZES,
    SOURCES,
    Scenario,
    Source,
    scenarios,
    settings,
)
from quadrille.papers.dohrmann_2009.run import (
    FACTORS,
    INTERCEPT,
    NAMES,
    PUBLISHED_CV,
    Addresses,
    Make,
    Result,
    Runs,
    all_terms,
    analyse,
    controlled,
    names_of,
    run_source,
    sign_of,
    utility,
)
from quadrille.papers.reproduction import (
    MOST_ERRORS,
    Claim,
    Columns,
    Entry,
    Floats,
    Listing,
    Progress,
    Reproduction,
    adding_up,
    check_arguments,
)

DEFAULT_SEEDS = SEEDS
DEFAULT_SAMPLER = "systematic"
SAMPLERS = ("systematic",)
LEAST_SEEDS = 3

ERRATA = (
    "The standard error of a correlation is printed as (1 - r)^2 / sqrt(n). It is (1 - r^2) / sqrt(n), which the "
    "output of the original program confirms.",
    "The logarithms are taken to be decimal, and the CV to be in percent: only so do the published intercepts of "
    "Tables A-2 and A-4 (1.6 to 2.2) fit the published mean CVs (25 to 61). Our average effects of the rate then have "
    "the size of the published ones, too.",
    'The column of C_ARD has "n.s." for the products of nominal categories and size, though nominal categories are not '
    "considered there. We leave these products out.",
    "The sign of a factor's own coefficient says little where its products are in the model: by Table A-1 the rate "
    "has -161 on HD1, and yet a higher rate raises HD1 in every file above 1,156 records, and in that one from 118 "
    "cells on. Compare the average effects.",
    "The files of the paper are not public here. Those called simulated have their sizes, scenarios, weights with a "
    "CV of about 0.7 and three scores that correlate at .9; sizes of coefficients are not to be compared.",
    "On Adult the swapped education classes are a recode of the outcome education-num, which itself stays. Their "
    "correlation is .94 before the swap, so that its standard error is small, and R_ASED larger than elsewhere.",
    "By R_ASED and ASED_REG more cells clearly help where two variables are swapped; with four or five it depends on "
    "the file. By C_ARD most pairs of scenarios say so, and the regression says the opposite.",
)


def reproduce(
    seeds: int = DEFAULT_SEEDS,
    sampler: str = DEFAULT_SAMPLER,
    progress: Progress | None = None,
    *,
    workers: int = 2,
    make: Make = controlled,
    addresses: Addresses = utility,
) -> Reproduction:
    """Run the design on both sources, analyse it as the paper does, and judge its claims.

    `make` and `addresses` put another method or other measures in the place of the published ones.
    """
    check_arguments(seeds, sampler, SAMPLERS, least=LEAST_SEEDS)
    done = adding_up(progress, len(SOURCES) * len(list(settings())) * seeds)
    return assemble(
        [run_source(source, seeds, done, workers=workers, make=make, addresses=addresses) for source in SOURCES]
    )


def assemble(found: Sequence[Runs]) -> Reproduction:
    """Make the report of the runs of one source or several."""
    judged: list[Claim] = []
    shown: list[Listing] = []
    figures: dict[str, float] = {}
    points: list[Mapping[str, object]] = []
    for runs in found:
        results = analyse(runs)
        judged += all_claims(runs, results)
        shown += listings(runs, results)
        figures |= _figures(runs, results)
        points += _points(runs)
    return Reproduction(
        paper="dohrmann-2009",
        title="Dohrmann, Krenzke, Roey & Russell (2009), Evaluating the Impact of Data Swapping Using Global Utility "
        "Measures, Federal Committee on Statistical Methodology Research Conference",
        setting={
            "files": " and ".join(runs.source for runs in found),
            "records": ", ".join(f"{size:,}" for size in SIZES),
            "seeds": found[0].seeds,
            "runs per source": f"{found[0].values[..., 0].size:,}",
        },
        claims=tuple(judged),
        errata=ERRATA,
        figures=figures,
        listings=tuple(shown),
        points=tuple(points),
    )


def _figures(runs: Runs, results: Sequence[Result]) -> dict[str, float]:
    """Count how often the signs agree, where both models kept a term."""
    pairs = [
        signs_of(result, name) for result in results for term in result.printed.considered for name in names_of(term)
    ]
    both = [(theirs, ours) for theirs, ours in pairs if theirs != "0" and ours != "0"]
    effects = [
        (result.effect(factor, ours=False), result.effect(factor))
        for result in results
        for factor in ("rate", "standard", "cells")
    ]
    known = [(theirs, ours) for theirs, ours in effects if theirs and ours]
    return {
        f"{runs.source}, undefined scores": float(np.isnan(runs.values).sum()),
        f"{runs.source}, coefficients considered": float(len(pairs)),
        f"{runs.source}, kept by both": float(len(both)),
        f"{runs.source}, of them with the same sign": float(sum(theirs == ours for theirs, ours in both)),
        f"{runs.source}, average effects of rate, method and cells in both": float(len(known)),
        f"{runs.source}, average effects with the same sign": float(sum(a * b > 0 for a, b in known)),
    }


def _points(runs: Runs) -> list[Mapping[str, object]]:
    """Return one row per setting: what was swapped, the mean over seeds and the CV of every measure."""
    plan, means, cv = scenarios(runs.source), runs.means, runs.cv
    rows: list[Mapping[str, object]] = []
    for each in settings():
        row: dict[str, object] = {
            "source": runs.source,
            "size": SIZES[each.size],
            "scenario": plan[each.scenario].number,
            "rate": RATES[each.rate],
            "method": METHODS[each.method],
        }
        for m, name in enumerate(NAMES):
            for label, value in ((name, means[*each, m]), (f"CV {name}", cv[*each, m])):
                row[label] = float(value) if np.isfinite(value) else None
        rows.append(row)
    return rows


Row = tuple[Entry, ...]

TITLES = {"values": "Tables A-1 and A-3", "cv": "Tables A-2 and A-4, logarithm of the CV over seeds"}
_DROPPED = "n.s."
_SMALL = 0.0005
"""Coefficients below this are shown by their power of ten."""
_STEPS = {
    "rate": (0.12, "15 %, not 3 %"),
    "standard": (1.0, "standard method"),
    "cells": (100.0, "100 more cells"),
    "variables": (1.0, "1 more variable"),
    "nominal": (10.0, "10 more nominal"),
}
"""By factor, the step whose effect is shown, and its name."""


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
    columns: Columns[Scenario] = (
        ("scenario", "", lambda scenario: scenario.number),
        ("variables", "", lambda scenario: " ".join(scenario.variables)),
        ("categories", "", lambda scenario: SHAPES[scenario.number - 1]),
        ("possible cells", "", lambda scenario: scenario.cells),
        ("nominal", "", lambda scenario: scenario.nominal),
    )
    note = "N nominal, O ordinal; the right-most variable changes most often. "
    if source == "adult":
        note += "; ".join(f"{name}: {what}" for name, what in DESCRIPTIONS.items()) + "."
    else:
        note += "A name tells kind and number of categories; the file is simulated."
    return Listing.of(f"Scenarios, {source}", scenarios(source), columns, note)


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
        mean, least, largest = PUBLISHED_CV[name]
        rows.append((name, f"{mean} ({least}-{largest})", ours, int(mine.size)))
    title = f"Coefficient of variation over {runs.seeds} seeds in percent, mean (least-largest), {runs.source}"
    return Listing(title, ("measure", "published", "ours", "settings"), tuple(rows))


def effects(source: str, table: str, results: Sequence[Result]) -> Listing:
    """Set the average effects that follow from both sets of coefficients beside each other."""
    rows: list[Row] = []
    for factor, (step, name) in _STEPS.items():
        for word, ours in (("published", False), ("ours", True)):
            rows.append((name, word, *(_effect(result, factor, step, ours=ours) for result in results)))
    note = (
        "The effect of a step in one factor (nominal: categories), the others at their mean in the design, by the "
        "coefficients below. "
        "The coefficient of a factor alone is its effect where all others are 0, which no file is."
    )
    headings = ("step", "", *(result.measure for result in results))
    return Listing(f"Average effects by {TITLES[table]}, {source}", headings, tuple(rows), note)


def _effect(result: Result, factor: str, step: float, *, ours: bool) -> str:
    if (factor,) not in result.printed.considered:
        return ""
    value = step * result.effect(factor, ours=ours)
    return f"{value:+.4f}" if value else _DROPPED


def signs(source: str, table: str, results: Sequence[Result]) -> Listing:
    """Set the signs of the published coefficients beside those of ours."""
    rows = ((name, *(" ".join(signs_of(result, name)).strip() for result in results)) for name in _names())
    note = "Each entry: the published sign, then ours; 0 dropped by the elimination, empty not considered."
    title = f"Signs of the coefficients, published and ours, {TITLES[table]}, {source}"
    return Listing(title, ("term", *(result.measure for result in results)), tuple(rows), note)


def signs_of(result: Result, name: str) -> tuple[str, str]:
    """Return the published sign of a coefficient and ours."""
    theirs, ours = (
        sign_of(name, model.coefficients, result.printed.considered) for model in (result.printed, result.fit)
    )
    return theirs, ours


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
    return [name for term in all_terms(FACTORS) for name in names_of(term)]


def undefined(runs: Runs) -> list[Listing]:
    """List why scores are undefined, if any is."""
    if not runs.reasons:
        return []
    rows = tuple((reason, count) for reason, count in sorted(runs.reasons.items()))
    return [Listing(f"Undefined scores, {runs.source}", ("reason", "runs"), rows)]


USUALLY = 0.5
"""A claim with "usually", or about a tendency, needs more than this share of the comparisons, for each measure."""

_HD = ("HD1", "HD2")
_ASSOCIATIONS = ("R_ASED", "C_ARD", "ASED_REG")
_STANDARD, _BALANCED = METHODS.index("standard"), METHODS.index("balanced")


def all_claims(runs: Runs, results: Sequence[Result]) -> list[Claim]:
    """Judge every claim, by means over seeds or by the spread over seeds; `results` are the analysis of these runs."""
    return [
        _rate(runs),
        _method(runs.source, runs.means),
        _cells(runs, results, _ASSOCIATIONS, sign=-1),
        _cells(runs, results, _HD, sign=1),
        _spread(runs),
    ]


def _rate(runs: Runs) -> Claim:
    """Compare both rates: same file, scenario and method. A single setting contradicts when it is beyond chance."""
    low, high = runs.means[:, :, 0], runs.means[:, :, 1]
    variance = runs.values.var(axis=4, ddof=1) / runs.seeds
    error = np.sqrt(variance[:, :, 0] + variance[:, :, 1])
    counts = {name: _count(high[..., m], low[..., m]) for m, name in enumerate(NAMES)}
    beyond = (low - high > MOST_ERRORS * error).sum(axis=(0, 1, 2))
    against = {name: int(number) for name, number in zip(NAMES, beyond, strict=True)}
    text = (
        f"{runs.source}: utility falls as the rate rises (larger loss at 15 % than at 3 %; no setting the other way by "
        f"more than {MOST_ERRORS:g} standard errors)"
    )
    return _claim(text, counts, against)


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
        if mean >= -MOST_ERRORS * error:
            failing.append(name)
    text = (
        f"{runs.source}: run-to-run variability falls with the rate (coefficient of variation over seeds, mean change "
        f"of its logarithm below 0 by more than {MOST_ERRORS:g} standard errors)"
    )
    return Claim(text, not failing, "; ".join(words) + _but(failing))


def _count(larger: Floats, smaller: Floats) -> tuple[int, int]:
    """Count where the first is larger, and where both are defined and differ."""
    comparable = np.isfinite(larger) & np.isfinite(smaller) & (larger != smaller)
    return int((larger > smaller)[comparable].sum()), int(comparable.sum())


def _claim(text: str, counts: dict[str, tuple[int, int]], against: Mapping[str, int] | None = None) -> Claim:
    """Judge by the share of comparisons: more than half for each measure, and none `against` it beyond chance."""
    words: list[str] = []
    failing: list[str] = []
    for name, (agree, total) in counts.items():
        beyond = (against or {}).get(name, 0)
        words.append(f"{name} {agree:,} of {total:,}" + (f", {beyond:,} against it beyond chance" if beyond else ""))
        if not total or agree / total <= USUALLY or beyond:
            failing.append(name)
    return Claim(text, not failing, "; ".join(words) + _but(failing))


def _but(failing: list[str]) -> str:
    return f". Not by {', '.join(failing)}" if failing else ""
