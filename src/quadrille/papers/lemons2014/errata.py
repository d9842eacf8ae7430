"""What is amiss in the paper, with the figures of the run at hand: only what the run speaks to is said."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import nan

import numpy as np

from quadrille.papers.lemons2014.report import Found, expectations
from quadrille.papers.lemons2014.study import Floats
from quadrille.papers.lemons2014.tables import Entry, Key
from quadrille.study.simulate import METRICS
from quadrille.study.trials.analysis import spearman

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
        said.append(_described({entry.key: entry for entry in found["records"][2]}))
    if "cells" in found:
        design, values, entries = found["cells"]
        by = {entry.key: entry for entry in entries}
        said += [_followed(by), *_misprints(by), _pooled(by, values)]
        said.append(_noise(by, expectations(design, values, by)))
    return [*said, *PRINT]


def _described(by: By) -> str:
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
