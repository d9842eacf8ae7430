"""Where records went: how many moved from each area to each other one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from quadrille import frames
from quadrille.areas import labels_of
from quadrille.cross import Cells, Cross
from quadrille.data import Data, require_data
from quadrille.delta import Delta
from quadrille.errors import InputError, bad_parameter
from quadrille.matching import changed_columns, matched
from quadrille.plan import Plan
from quadrille.study.by_area import Level, levels_of

if TYPE_CHECKING:
    import polars as pl


def area_flows(data: Data, released: Plan | Data, by: str) -> pl.DataFrame:
    """Count the records that moved between areas: level, origin, destination, records; the largest flow first.

    `released` is the plan, or the released file with its rows in the order of `data`. `by` is a level of geography,
    or a cross such as "county*sex". Records that stay in their area are not counted.
    """
    require_data(data, "area_flows")
    levels = levels_of(by, data) if isinstance(by, str) else {}  # pyright: ignore[reportUnnecessaryIsInstance]
    if len(levels) != 1:
        raise bad_parameter("area_flows", "by", "one column or cross of columns", by)
    text, level = next(iter(levels.items()))
    if isinstance(released, Plan):
        labelled, old, new = _of_plan(data, released, level)
    else:
        labelled, old, new = _of_files(data, require_data(released, "area_flows"), level)
    if not (old != new).any():
        raise InputError(f"No record changes its area of {text!r}: there are no flows. Name a level that was swapped.")
    return frames.tidy(_rows(text, labelled, Cross.of(labelled, level), old, new))


def _of_plan(data: Data, plan: Plan, level: Level) -> tuple[Data, Cells, Cells]:
    plan.check(data)
    old, new = Delta(data, plan).cells(Cross.of(data, level))
    return data, old.astype(np.int64), new.astype(np.int64)


def _of_files(data: Data, other: Data, level: Level) -> tuple[Data, Cells, Cells]:
    if changed_columns(data, other) is None:
        raise InputError(
            "Flows need the rows of the two files in the same order, and no column agrees row by row. "
            "Give the plan, or the file before its rows are shuffled."
        )
    mine, theirs = matched(data, other, level)
    cross = Cross.of(mine, level)
    return mine, cross.cells(mine), cross.cells(theirs)


def _rows(text: str, data: Data, cross: Cross, old: Cells, new: Cells) -> list[dict[str, object]]:
    moved = old != new
    areas, place = np.unique(np.concatenate((old[moved], new[moved])), return_inverse=True)
    origin, destination = np.split(place, 2)
    flows, count = np.unique(origin * len(areas) + destination, return_counts=True)
    names = [" × ".join(labels) for labels in labels_of(cross, areas, [data[name].labels for name in cross.variables])]
    return [
        {
            "level": text,
            "origin": names[flow // len(areas)],
            "destination": names[flow % len(areas)],
            "records": records,
        }
        for flow, records in sorted(zip(flows.tolist(), count.tolist(), strict=True), key=lambda each: -each[1])
    ]
