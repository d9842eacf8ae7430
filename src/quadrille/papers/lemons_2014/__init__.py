"""Lemons, Dajani, You & Jordan (2014), US Census Bureau: six metrics of how different two tabulations are.

The study of 72 settings, each with 1,000 replicates, with two mechanisms: swapped records, as the paper describes it,
and cells drawn alike whatever their size, which gives the published tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

from quadrille.data import tidy
from quadrille.papers.lemons_2014.claims import Found, all_claims, closed_forms, errata, listings, selection
from quadrille.papers.lemons_2014.run import Entry, compare, design, selected, simulated
from quadrille.papers.reproduction import Listing, Progress, Reproduction, check_arguments, save_figures
from quadrille.simulation import MECHANISMS, METRICS, Mechanism

if TYPE_CHECKING:
    import polars as pl

DEFAULT_SEEDS = 1000
DEFAULT_SAMPLER = "both"
SAMPLERS = ("both", *MECHANISMS)
LEAST_SEEDS = 40


def reproduce(
    seeds: int = DEFAULT_SEEDS, sampler: str = DEFAULT_SAMPLER, progress: Progress | None = None
) -> Reproduction:
    """Simulate the study, set Tables 2 to 5 beside the published ones, and judge.

    `seeds` is the number of replicates of each setting, `sampler` the mechanism: "both", "records" or "cells".
    """
    check_arguments(seeds, sampler, SAMPLERS, least=LEAST_SEEDS)
    chosen = [each for each in ("cells", "records") if sampler in ("both", each)]
    found: Found = {}
    shown: list[Listing] = []
    figures: dict[str, float] = {}
    points: list[Mapping[str, object]] = []
    for turn, mechanism in enumerate(chosen):
        plan = design(cast("Mechanism", mechanism), seeds)

        values = simulated(plan, _after(progress, turn * plan.total, len(chosen) * plan.total))
        entries = compare(plan, values)
        found[mechanism] = (plan, values, entries)
        shown += [*listings(mechanism, entries), selection(mechanism, selected(plan, values))]
        shown += [closed_forms(plan, values)] if mechanism == "cells" else []
        figures |= _figures(mechanism, entries)
        points += [_point(mechanism, entry) for entry in entries]
    return Reproduction(
        paper="lemons-2014",
        title="Lemons, Dajani, You & Jordan (2014), US Census Bureau: measuring the difference between tabulations "
        "before and after swapping",
        setting={"settings": 72, "replicates": f"{seeds:,} each", "mechanisms": " and ".join(chosen)},
        claims=tuple(all_claims(found)),
        errata=tuple(errata(found)),
        figures=figures,
        listings=tuple(shown),
        points=tuple(points),
    )


def _after(progress: Progress | None, before: int, total: int) -> Callable[[int], None]:
    """Return what tells of the replicates of one mechanism after those of the other."""
    return lambda done: progress(before + done, total) if progress else None


def figures(reproduction: Reproduction) -> dict[str, pl.DataFrame]:
    """Return the frames of the charts: our pooled correlations with each mechanism."""
    found: dict[str, pl.DataFrame] = {}
    for mechanism in MECHANISMS:
        rows = [
            {"first": each["row"], "second": each["column"], "spearman": each["ours"]}
            for each in reproduction.points
            if (each["mechanism"], each["table"]) == (mechanism, "Table 3")
        ]
        if rows:
            found[f"correlations-{mechanism}"] = tidy(rows)
    return found


def write_figures(reproduction: Reproduction, folder: str | Path) -> list[Path]:
    """Draw the correlation matrices as PNG files in a folder; return their paths."""
    from quadrille import chart

    frames = figures(reproduction).items()
    return save_figures({name: chart.correlation_matrix(frame) for name, frame in frames}, folder)


def _figures(mechanism: str, entries: list[Entry]) -> dict[str, float]:
    counts = Counter(entry.verdict for entry in entries)
    found = {f"{mechanism}, numbers compared": float(len(entries))}
    found |= {f"{mechanism}, numbers: {word}": float(counts[word]) for word in ("agrees", "noise", "differs")}
    means = {entry.key[1]: entry.ours for entry in entries if entry.key[0] == "Table 2" and entry.key[2] == "mean"}
    for word in ("two", "five"):
        found[f"{mechanism}, mean {METRICS[0]}, {word} levels"] = means[f"{METRICS[0]}, {word}"]
    return found


def _point(mechanism: str, entry: Entry) -> Mapping[str, object]:
    place = dict(zip(("table", "row", "column"), entry.key, strict=True))
    numbers = {name: getattr(entry, name) for name in ("published", "ours", "error", "verdict")}
    return {"mechanism": mechanism, **place, **numbers}
