"""Where records went: how many moved from each area to each other one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quadrille.data import Cells, Cross, Data, require_data, tidy
from quadrille.delta import Delta
from quadrille.errors import InputError, ParameterError, bad_parameter
from quadrille.measure.areas import labels_of
from quadrille.plan import Plan
from quadrille.score.by_area import Level, levels_of
from quadrille.score.matching import changed_columns, matched

if TYPE_CHECKING:
    import polars as pl

_IN_ORDER = "Flows need the rows of the two files in the same order"
_ADVICE = (
    "Give the plan, or swapped= with a file whose rows are in order (on the command line: --recipe), or keep a column "
    "that identifies records in both files."
)
_TOLD_APART = 0.95


def area_flows(data: Data, released: Plan | Data, by: str, *, swapped: ArrayLike | None = None) -> pl.DataFrame:
    """Count the records that moved between areas: level, origin, destination, records; the largest flow first.

    `released` is the plan, or the released file with its rows in the order of `data`. `by` is a level of geography,
    or a cross such as "county*sex". Records that stay in their area are not counted.

    A file must show that its rows are in order, as flows of rows out of order look like any others. `swapped`, true or
    false per row, says who was swapped: all others must be where they were. Without it, the columns that agree row by
    row, levels of geography aside, must tell at least 95 % of the records apart, as an identifier does.

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.state()
    >>> flows = qd.area_flows(data, qd.RandomSwap(["tract"], rate=0.02, seed=1).plan(data), "county")
    >>> flows.columns, flows["records"].sum() <= 6400
    (['level', 'origin', 'destination', 'records'], True)
    """
    require_data(data, "area_flows")
    levels = levels_of(by, data) if isinstance(by, str) else {}  # pyright: ignore[reportUnnecessaryIsInstance]
    if len(levels) != 1:
        raise bad_parameter("area_flows", "by", "one column or cross of columns", by)
    text, level = next(iter(levels.items()))
    if isinstance(released, Plan):
        if swapped is not None:
            raise ParameterError("A plan knows who was swapped. Leave 'swapped' out.")
        labelled, old, new = _of_plan(data, released, level)
    else:
        labelled, old, new = _of_files(data, require_data(released, "area_flows"), level, swapped)
    if not (old != new).any():
        raise InputError(f"No record changes its area of {text!r}: there are no flows. Name a level that was swapped.")
    return tidy(_rows(text, labelled, Cross.of(labelled, level), old, new))


def _of_plan(data: Data, plan: Plan, level: Level) -> tuple[Data, Cells, Cells]:
    plan.check(data)
    old, new = Delta(data, plan).cells(Cross.of(data, level))
    return data, old.astype(np.int64), new.astype(np.int64)


def _of_files(data: Data, other: Data, level: Level, swapped: ArrayLike | None) -> tuple[Data, Cells, Cells]:
    if data.n != other.n:
        raise InputError(f"{_IN_ORDER}, and they have {data.n:,} and {other.n:,} rows. {_ADVICE}")
    if swapped is None:
        _check_order(data, other, level)
    mine, theirs = matched(data, other, level)
    cross = Cross.of(mine, level)
    old, new = cross.cells(mine), cross.cells(theirs)
    if swapped is not None:
        strays = int(((old != new) & ~_mask(swapped, data.n)).sum())
        if strays:
            raise InputError(
                f"{_IN_ORDER}: {strays:,} records that were not swapped have another area in the second file. "
                "Check 'swapped', and do not shuffle the rows."
            )
    return mine, old, new


def _mask(swapped: ArrayLike, n: int) -> NDArray[np.bool_]:
    mask: NDArray[np.generic] = np.asarray(swapped)
    if mask.dtype != np.bool_ or mask.shape != (n,):
        raise bad_parameter(
            "area_flows", "swapped", f"true or false for each of the {n:,} rows", type(swapped).__name__
        )
    return mask.astype(np.bool_)


def _check_order(data: Data, other: Data, level: Level) -> None:
    """Refuse files of which nothing shows that a row is the same record in both."""
    changed = changed_columns(data, other)
    if changed is None:
        raise InputError(f"{_IN_ORDER}, and no column agrees row by row. {_ADVICE}")
    areas = {*level, *(variable.name for variable in data.codebook if variable.role == "geography")}
    agree = [name for name in data.columns if name in other.codebook and name not in areas and name not in changed]
    apart = _told_apart(data, agree)
    if apart < _TOLD_APART * data.n:
        raise InputError(
            f"{_IN_ORDER}, and nothing shows that they are: what agrees row by row (columns: {len(agree)}) tells "
            f"{apart:,} of {data.n:,} records apart, so that others may have changed places. {_ADVICE}"
        )


def _told_apart(data: Data, names: Sequence[str]) -> int:
    """Count the records that no other record equals in all of these columns."""
    group = np.zeros(data.n, dtype=np.int64)
    for name in names:
        values, place = np.unique(data[name].values, return_inverse=True)
        group = np.unique(group * len(values) + place, return_inverse=True)[1]
    return int((np.bincount(group) == 1).sum())


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
