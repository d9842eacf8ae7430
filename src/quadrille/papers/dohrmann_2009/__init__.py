"""Dohrmann, Krenzke, Roey & Russell (2009): what controlled swapping does to the utility of a weighted survey file.

The design of 1,920 runs on simulated files like those of the paper, which are not public here, and on samples of
Adult: the regressions with backward elimination, the spread over seeds, and the claims of the paper.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from quadrille.papers.dohrmann_2009.claims import all_claims, listings, signs_of
from quadrille.papers.dohrmann_2009.files import METHODS, RATES, SEEDS, SIZES, SOURCES, scenarios, settings
from quadrille.papers.dohrmann_2009.run import (
    NAMES,
    Addresses,
    Make,
    Result,
    Runs,
    analyse,
    controlled,
    names_of,
    run_source,
    utility,
)
from quadrille.papers.reproduction import Claim, Listing, Progress, Reproduction, adding_up, check_arguments

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
