"""What is shown and what is judged: Tables 2 to 5, the conclusions, and the errata that the run at hand speaks to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import isnan, nan, sqrt

import numpy as np

from quadrille.papers.lemons_2014.run import TERMS, Chosen, Entry, Floats, Key, expected, selected, with_levels
from quadrille.papers.reproduction import Claim, Columns, Listing
from quadrille.simulation import METRICS
from quadrille.simulation.design import SimulationDesign
from quadrille.simulation.effects import ENTER, STAY, spearman

ELEVEN = [(a, b) for i, a in enumerate(METRICS) for b in METRICS[i + 1 :] if "deviance" not in (a, b)]
ELEVEN.insert(1, ("chi_square", "deviance"))
"""The pooled correlations that are compared: all but those that repeat chi_square with deviance in its place."""
TITLES = {
    "Table 2": "Table 2, spread of the metrics, two and five levels",
    "Table 3": "Table 3, Spearman correlations, all settings pooled",
    "Table 4": "Table 4, ranges of Spearman correlations by perturbation, tract sizes and level shares",
    "Table 5": "Table 5, main effects of all five factors",
}
TOLERANCES = (
    "agrees: mean and sd of chi_square and deviance within 1 %, correlations within .02, effects on chi_square and "
    "deviance within 4 %, on effective_swap_rate within .00001, all else within 1 %. noise: beyond that, but within 3 "
    "standard errors of the difference of two such studies, rounding included (z). differs: beyond both."
)
UNRELATED = 0.2
"""Rank correlations below this in size are taken for none."""
Found = dict[str, tuple[SimulationDesign, Floats, Sequence[Entry]]]
"""By mechanism: the design, its metrics and the published numbers beside them."""


_COLUMNS: Columns[Entry] = (
    ("", "", lambda entry: entry.key[1]),
    ("", "", lambda entry: entry.key[2]),
    ("published", "", lambda entry: _number(entry.published)),
    ("ours", "", lambda entry: _number(entry.ours)),
    ("z", "", lambda entry: "" if isnan(entry.z) else f"{entry.z:+.1f}" if abs(entry.z) < 99 else "far"),
    ("", "", lambda entry: entry.verdict),
)


def listings(mechanism: str, entries: Sequence[Entry]) -> list[Listing]:
    """Return Tables 2 to 5 with the verdict on every number."""
    rows = {table: [entry for entry in entries if entry.key[0] == table] for table in TITLES}
    return [
        Listing.of(f"{title}: mechanism {mechanism}", rows[table], _COLUMNS, TOLERANCES)
        for table, title in TITLES.items()
    ]


def _number(value: float) -> str:
    if value == 0:
        return "0"
    if abs(value) < 1e-3:
        return f"{value:.6f}"
    return f"{value:.2f}" if abs(value) >= 2 else f"{value:.5f}"


def closed_forms(design: SimulationDesign, values: Floats) -> Listing:
    """Set the means of the cells mechanism beside their closed forms."""
    rows: list[tuple[str | int | float, ...]] = []
    for word in ("two", "five"):
        mean, error = _means(design, values, word)
        for metric, value in zip(("chi_square", "gini_difference"), expected(design, word), strict=True):
            m = METRICS.index(metric)
            rows.append(
                (f"{metric}, {word} levels", _number(value), _number(mean[m]), f"{(mean[m] - value) / error[m]:+.1f}")
            )
    note = "With v = 2 rate N / (TJ), E chi_square = v sum 1/f and E gini_difference = v J sum 1/n^2."
    return Listing("Means of mechanism cells and their closed forms", ("", "expected", "ours", "z"), tuple(rows), note)


def _means(design: SimulationDesign, values: Floats, word: str) -> tuple[list[float], list[float]]:
    """Return means over the settings with so many levels, and their standard errors."""
    inside = values[with_levels(design, word)]
    error = np.sqrt(inside.var(axis=1, ddof=1).sum(axis=0) / inside.shape[1]) / len(inside)
    return inside.mean(axis=(0, 1)).tolist(), error.tolist()


def all_claims(found: Found) -> list[Claim]:
    """Judge the targets by the cells mechanism, and whether the mechanism that the paper describes gives its tables."""
    judged: list[Claim] = []
    for mechanism, (design, values, entries) in sorted(found.items()):
        if mechanism == "cells":
            judged += [*_targets(entries), _gini(design, values, entries)]
        else:
            judged.append(_described(entries))
        judged += [*_conclusions(mechanism, values, entries), keeps_all(mechanism, selected(design, values))]
    return judged


def _targets(entries: Sequence[Entry]) -> list[Claim]:
    by = {entry.key: entry for entry in entries}
    spread = [by["Table 2", f"chi_square, {w}", c] for w in ("two", "five") for c in ("mean", "sd")]
    pairs = [by["Table 3", a, b] for a, b in ELEVEN]
    rate = [e for k, e in by.items() if k[0] == "Table 5" and k[2] == "effective_swap_rate" and k[1] in TERMS]
    square = [by["Table 5", term, "chi_square"] for term in TERMS]
    return [
        _all("cells: means and sds of chi_square are the published ones within 1 %", spread, "share"),
        _all("cells: the eleven pooled Spearman correlations are the published ones within .02", pairs, "size"),
        _all("cells: the effects on effective_swap_rate are the published ones within .00001", rate, "size"),
        _all("cells: the effects on chi_square are the published ones within 4 %", square, "share", limit=0.04),
    ]


def _all(text: str, entries: Sequence[Entry], by: str, limit: float | None = None) -> Claim:
    """Judge that all numbers meet their target, and tell the one farthest off."""
    if by == "share":
        worst = max(entries, key=lambda entry: abs(entry.off))
        far = f"{abs(worst.off):.1%}".replace("%", " %")
    else:
        worst = max(entries, key=lambda entry: abs(entry.ours - entry.published))
        far = f"{abs(worst.ours - worst.published):.2g}"
    held = [entry for entry in entries if (abs(entry.off) <= limit if limit else entry.met)]
    where = ", ".join(worst.key[1:])
    return Claim(text, len(held) == len(entries), f"{len(held)} of {len(entries)}; largest difference {far} ({where})")


RULE = f"stepwise selection (enter {ENTER:.2f}, stay {STAY:.2f})".replace("0.", ".")


def selection(mechanism: str, chosen: list[Chosen]) -> Listing:
    """Return which factors enter for each metric, with their p-values, and R2 and RMSE of both models."""
    rows: list[tuple[str | int | float, ...]] = []
    for each in chosen:
        metric = each.selected.metric
        entered = [step for step in each.selected.steps if step.entered and step.factor in each.selected.factors]
        for turn, step in enumerate(entered, 1):
            rows.append((metric, step.factor, f"enters {turn}.", "p < .0001" if step.p < 1e-4 else f"p = {step.p:.4f}"))
        rows += [(metric, name, "left out", "") for name in each.left_out]
        for what, one, full in (
            ("R2", each.selected.r2, each.full.r2),
            ("RMSE", each.selected.rmse, each.full.rmse),
        ):
            rows.append((metric, what, f"{one:.4g}", f"all factors: {full:.4g}"))
    note = (
        "Table 5 above is of the model with all five factors, as the paper prints all terms for all metrics. The "
        "design is balanced, so that the effects of factors that are selected are the same in both models."
    )
    return Listing(f"Table 5, {RULE}: mechanism {mechanism}", ("", "", "", ""), tuple(rows), note)


def keeps_all(mechanism: str, chosen: list[Chosen]) -> Claim:
    """Judge whether the selection keeps what Table 5 prints."""
    lost = [f"{each.selected.metric} leaves out {' and '.join(each.left_out)}" for each in chosen if each.left_out]
    kept = sum(len(each.selected.factors) for each in chosen)
    evidence = f"{kept} of {sum(len(each.full.factors) for each in chosen)} selected"
    text = f"{mechanism}: {RULE} keeps all five factors for every metric, as Table 5 prints them"
    return Claim(text, not lost, "; ".join([evidence, *lost]))


def expectations(
    design: SimulationDesign, values: Floats, by: Mapping[Key, Entry]
) -> dict[str, tuple[float, float, float]]:
    """Return the expected gini_difference, which needs no draw, and how far the published and our mean lie from it.

    Both are in standard errors of one study; that of the paper had 1,000 replicates.
    """
    found: dict[str, tuple[float, float, float]] = {}
    for word in ("two", "five"):
        value = expected(design, word)[1]
        entry = by["Table 2", f"gini_difference, {word}", "mean"]
        error = _means(design, values, word)[1][METRICS.index("gini_difference")]
        theirs = sqrt((error * sqrt(values.shape[1] / 1000)) ** 2 + (0.00001**2) / 12)
        found[word] = value, (entry.published - value) / theirs, (entry.ours - value) / error
    return found


def _gini(design: SimulationDesign, values: Floats, entries: Sequence[Entry]) -> Claim:
    """Set the expectation beside the published means: within 3 standard errors of one study."""
    by = {entry.key: entry for entry in entries}
    found = expectations(design, values, by)
    words = [
        f"{word} levels: published {by['Table 2', f'gini_difference, {word}', 'mean'].published:.5f}, "
        f"expected {value:.5f}, z {z:+.1f}"
        for word, (value, z, _) in found.items()
    ]
    text = "cells: the published means of gini_difference are within 3 standard errors of their expectation"
    return Claim(text, all(abs(z) <= 3 for _, z, _ in found.values()), "; ".join(words))


def _described(entries: Sequence[Entry]) -> Claim:
    by = {entry.key: entry for entry in entries}
    counts = Counter(entry.verdict for entry in entries)
    two, five = (by["Table 2", f"chi_square, {word}", "mean"] for word in ("two", "five"))
    effect = by["Table 5", "level shares skewed", "chi_square"]
    evidence = (
        f"mean chi_square {two.ours:.2f} and {five.ours:.2f} against {two.published} and {five.published}; effect of "
        f"skewed levels on it {effect.ours:+.2f} against {effect.published:+.2f}; {counts['differs']} of "
        f"{len(entries)} numbers differ"
    )
    return Claim(
        "records: swapping records, as the paper describes it, gives its tables", counts["differs"] == 0, evidence
    )


def _conclusions(mechanism: str, values: Floats, entries: Sequence[Entry]) -> list[Claim]:
    """Judge what the tables say, with either mechanism."""
    ours = {entry.key: entry.ours for entry in entries}
    a, b = METRICS[:3], METRICS[3:]
    inside = [ours["Table 3", x, y] for x, y in ((a[0], a[1]), (a[0], a[2]), (a[1], a[2]))]
    other = [ours["Table 3", x, y] for x, y in ((b[0], b[1]), (b[0], b[2]), (b[1], b[2]))]
    across = [ours["Table 3", x, y] for x in a for y in b]
    skewed = [v for k, v in ours.items() if k[0] == "Table 4" and k[1].endswith("skewed, skewed") and "across" in k[2]]
    effects = {term: ours["Table 5", term, "chi_square"] for term in TERMS}
    steps = {
        metric: tuple(ours["Table 5", f"perturbation {word}", metric] for word in ("low", "medium"))
        for metric in METRICS
    }
    risen = ", ".join(f"{metric} {_number(low)} and {_number(medium)}" for metric, (low, medium) in steps.items())
    negative = float((values[:, :, 3:] < 0).mean())
    return [
        Claim(
            f"{mechanism}: metrics agree within each group of three, and less across",
            min(*inside, *other) > max(across),
            f"pooled correlations {min(inside):.2f} to {max(inside):.2f} within A, {min(other):.2f} to "
            f"{max(other):.2f} within B, {min(across):.2f} to {max(across):.2f} across",
        ),
        Claim(
            f"{mechanism}: with skewed tracts and skewed levels the two groups have nothing to do with each other",
            max(map(abs, skewed)) < UNRELATED,
            f"correlations across from {min(skewed):.2f} to {max(skewed):.2f}; the limit is {UNRELATED:.2f} in size",
        ),
        Claim(
            f"{mechanism}: every metric rises with the rate, on average: low below medium below high",
            all(low < medium < 0 for low, medium in steps.values()),
            f"effects of low and medium against high: {risen}; {100 * negative:.0f} % of the values of group B are "
            "below 0",
        ),
        Claim(
            f"{mechanism}: skewed tracts and skewed levels both raise chi_square",
            min(effects["tract sizes skewed"], effects["level shares skewed"]) > 1,
            f"tracts {effects['tract sizes skewed']:+.2f}, levels {effects['level shares skewed']:+.2f}",
        ),
    ]


By = Mapping[Key, Entry]

PRINT = (
    "Rates, skewed shares and skewed tract sizes are not stated. Those used here are the ones that fit.",
    'Table 5: "x 10^3" stands for 10^-3. Table 6 shows gender and age. Tables 6 to 8 are of survey microdata that are '
    "not public; `quadrille score --by` gives the same tables for any file.",
    "Effects on the effective swap rate that are printed as below .00001 in size are compared with 0.",
)
"""What needs no run."""


def errata(found: Found) -> list[str]:
    """Return the errata, those that the mechanisms of this run show first."""
    said: list[str] = []
    if "records" in found:
        said.append(_errata_words({entry.key: entry for entry in found["records"][2]}))
    if "cells" in found:
        design, values, entries = found["cells"]
        by = {entry.key: entry for entry in entries}
        said += [_followed(by), *_misprints(by), _pooled(by, values)]
        said.append(_noise(by, expectations(design, values, by)))
    return [*said, *PRINT]


def _errata_words(by: By) -> str:
    two, five, skewed = _squares(by)
    return (
        "The mechanism: the paper swaps randomly chosen households between tracts. That gives chi_square a mean "
        f"proportional to the number of levels less one ({two.ours:.2f} with two, {five.ours:.2f} with five), and "
        f"makes it indifferent to their shares (effect of skewed shares {skewed.ours:+.2f}). Tables 2 to 5 show "
        f"neither: {two.published:.2f}, {five.published:.2f} and {skewed.published:+.2f}."
    )


def _followed(by: By) -> str:
    two, five, skewed = _squares(by)
    return (
        "The mechanism: Tables 2 to 5 follow when every pair takes two tracts and two levels with equal chances, "
        "whatever their counts, so that small cells change as much as large ones. Mean chi_square with two and five "
        f"levels and effect of skewed shares: {two.ours:.2f}, {five.ours:.2f} and {skewed.ours:+.2f}; published "
        f"{two.published:.2f}, {five.published:.2f} and {skewed.published:+.2f}."
    )


def _squares(by: By) -> tuple[Entry, Entry, Entry]:
    two, five = (by["Table 2", f"chi_square, {word}", "mean"] for word in ("two", "five"))
    return two, five, by["Table 5", "level shares skewed", "chi_square"]


def _misprints(by: By) -> Iterator[str]:
    sd, rmse = by["Table 2", "shannon_difference, five", "sd"], by["Table 5", "RMSE", "shannon_difference"]
    yield (
        "Table 2: the sd of the Shannon difference with five levels is printed as .00460. Its own percentiles, -.00614 "
        f"and .01575, and the RMSE of .008 in Table 5 do not fit that; ours are {sd.ours:.4f} and {rmse.ours:.4f}."
    )
    low, medium = (by["Table 5", f"perturbation {word}", "renyi_difference"].ours for word in ("low", "medium"))
    yield (
        "Table 5: the effects of low and medium perturbation on the Renyi difference are printed as -.00053 and "
        f"-.00027. They are compared as -.000053 and -.000027; ours are {low:.6f} and {medium:.6f}."
    )


def _pooled(by: By, values: Floats) -> str:
    entry = by["Table 3", "chi_square", "gini_difference"]
    each = [float(spearman(rows[None])[0, METRICS.index("gini_difference")]) for rows in values]
    mean = float(np.nanmean(each)) if not np.isnan(each).all() else nan
    return (
        "Table 3 is the correlation of all replicates pooled, not the average over settings, which is what the text "
        f"says. Of chi_square with gini_difference: published {entry.published:.2f}, ours pooled {entry.ours:.2f}, "
        f"averaged over settings {mean:.2f}. Table 4 likewise pools the six settings of a stratum."
    )


def _noise(by: By, expected: Mapping[str, tuple[float, float, float]]) -> str:
    _, printed, ours = expected["two"]
    low = by["Table 2", "gini_difference, two", "p05"]
    b = [
        entry for entry in by.values() if set(entry.key) & set(METRICS[3:]) or entry.key[1].split(",")[0] in METRICS[3:]
    ]
    differ = sum(entry.verdict == "differs" for entry in b)
    return (
        "Means of the three differences of diversity are small against their spread over replicates. With two levels "
        f"the published mean of gini_difference lies {_away(printed)} its expectation and ours {_away(ours)} it. Its "
        f"published 5th percentile with two levels is {low.published:.5f}, ours {low.ours:.5f} (z {low.z:+.1f}). Of "
        f"the {len(b)} numbers about these three metrics {differ} differ."
    )


def _away(z: float) -> str:
    return f"{abs(z):.1f} standard errors {'above' if z > 0 else 'below'}"
