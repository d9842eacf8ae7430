"""Boudreau (2005), Statistics Canada: the error that swapping puts into a table, and that of random rounding.

Table 1 by enumeration, Tables 2 to 4 for both regions with the errors of every cell, the worked cell, the swap that is
equivalent to rounding, and the paper's conclusion in numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from quadrille.data import tidy
from quadrille.papers.boudreau_2005 import claims
from quadrille.papers.boudreau_2005.run import (
    BASE,
    KINDS,
    RATE,
    REGIONS,
    WORKED,
    Cell,
    Enumerated,
    Kind,
    cells,
    draw,
    enumerated,
    region,
)
from quadrille.papers.reproduction import Progress, Reproduction, adding_up, check_arguments, save_figures

if TYPE_CHECKING:
    import polars as pl

DEFAULT_SEEDS = 1000
DEFAULT_SAMPLER = "pairs"

ERRATA = (
    "What the paper calls MSE is its root: 5.03 for the small file, which should be 5.04. Its bias is X - E X', ours "
    "E X' - X.",
    "f2 - f1^2 is said to be about -tau/n. It is about -3 tau (1 - tau) / n for kind (a), where records move in "
    "cycles, and -tau (2 - 3 tau) / n for kind (b), where they move in pairs.",
    "The second-order probability that two records both leave needs the delta' of the complement, the records that "
    "move, and not that of the records that stay.",
    "Section 3 derives the error for kind (a) only, and section 4 uses kind (b). The bias is the same for both, the "
    "variance is not: Table 1 has 23.20468 for (a), and (b) gives 21.61678.",
    "The figure of 5,800 for the worked cell of Region I does not follow from equal weights: see the claim. For the "
    "bias alone to be that large, 5.4 % of the records would have to move.",
    "Table 3 of Region I keeps the totals of age and changes those of status. Records that all count 1 cannot do that: "
    "its counts seem to be weighted estimates, the weights travelling with age. Our errors for it are those of a "
    "file of 907,999 records that count 1 each; with fewer, heavier records the bias is about the same and "
    "the variance larger.",
    "Rounding leaves an empty cell empty. Swapping does not: of the children under 16 of Region I none is or was "
    "married, and after the swap 4,660 are expected to be.",
)


def reproduce(
    seeds: int = DEFAULT_SEEDS, sampler: str = DEFAULT_SAMPLER, progress: Progress | None = None
) -> Reproduction:
    """Enumerate Table 1, work out the errors of Tables 2 to 4, check them by draws, and judge the conclusion.

    `sampler` is the kind of permutation for Tables 2 to 4: "pairs", as in the paper, or "cycles".
    """
    check_arguments(seeds, sampler, KINDS)
    kind = cast("Kind", sampler)
    small = [enumerated(one) for one in KINDS]
    places = [region(name) for name in REGIONS]
    every = [cells(place, kind) for place in places]
    done = adding_up(progress, len(REGIONS) * seeds)
    drawn = [draw(place, own, kind, seeds, done) for place, own in zip(places, every, strict=True)]
    both = [one for made in drawn for one in made]
    shown = claims.small_file(small)
    for place, made in zip(places, drawn, strict=True):
        shown += claims.region_tables(place, kind, made, seeds)
    return Reproduction(
        paper="boudreau-2005",
        title="Boudreau (2005), Statistics Canada: the error of data swapping, and of random rounding",
        setting={
            "records swapped": f"{100 * RATE:.0f} %",
            "kind": sampler,
            "rounding to base": BASE,
            "draws": f"{seeds:,} per region",
        },
        claims=(
            *claims.small_file_claims(small),
            claims.worked_cell(claims.worked(every[0])),
            *claims.conclusion(every[0], every[1]),
            *claims.tables(places, every),
            claims.draws_agree(both, seeds),
        ),
        errata=ERRATA,
        figures=_figures(small, every),
        listings=tuple(shown),
        points=tuple(map(claims.point, both)),
    )


def figures(reproduction: Reproduction) -> dict[str, pl.DataFrame]:
    """Return the frames of the charts: error by size in both regions, and Table 3 of Region I against prediction."""
    sizes: list[dict[str, object]] = []
    changes: list[dict[str, object]] = []
    for point in reproduction.points:
        label = f"{point['status']} {point['age']}"
        size = {name: point[name] for name in ("count", "rmse", "rounding")}
        named = (point["age"], point["status"]) == WORKED
        sizes.append({"label": label, "group": f"Region {point['region']}", **size, "named": named})
        if point["region"] == REGIONS[0]:
            change = cast("int", point["swapped"]) - cast("int", point["count"])
            changes.append({"label": label, "bias": point["bias"], "sd": point["sd"], "realised": change})
    return {"error-by-size": tidy(sizes), "table-3-region-I": tidy(changes)}


def write_figures(reproduction: Reproduction, folder: str | Path) -> list[Path]:
    """Draw the charts as PNG files in a folder; return their paths."""
    from quadrille import chart

    charts = (chart.error_by_size, chart.predicted_realised)
    frames = figures(reproduction).items()
    return save_figures({name: draw(frame) for draw, (name, frame) in zip(charts, frames, strict=True)}, folder)


def _figures(small: Sequence[Enumerated], every: Sequence[Sequence[Cell]]) -> dict[str, float]:
    numbers = {f"small file, RMSE, {one.kind}": one.rmse for one in small}
    for cell in map(claims.worked, every):
        where = f"worked cell, Region {cell.region}"
        numbers[f"{where}, RMSE of swapping / count"] = cell.swap.rmse / cell.count
        numbers[f"{where}, RMSE of rounding / count"] = cell.rounding.rmse / cell.count
        if cell.equivalent is not None:
            numbers[f"{where}, records to move for the error of rounding"] = float(cell.equivalent)
    children = [cell for cell in every[0] if cell.age == "0-15"]
    married = sum(cell.swap.expected for cell in children if not cell.count)
    numbers["Region I, share of the children under 16 expected to be or have been married"] = married / sum(
        cell.count for cell in children
    )
    return numbers
