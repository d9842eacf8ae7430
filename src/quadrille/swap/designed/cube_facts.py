"""What a designed swap that keeps tables says about itself, in counts only; and the proof that it kept them."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from quadrille.data import Data, Floats, Ints
from quadrille.errors import QuadrilleError
from quadrille.kernels.designed.cubes import Cubes
from quadrille.kernels.designed.neighbours import HELLINGER, NEVER, TOTAL_VARIATION
from quadrille.plan import Move
from quadrille.recipe import carried_fact
from quadrille.swap.designed.draw import just_large, of_size
from quadrille.swap.designed.lattice import CubeProblem
from quadrille.swap.groups import group_ids

if TYPE_CHECKING:
    from quadrille.swap.designed import DesignedSwap


_NEAR = 3
"""Cells of n to n + 2 records are looked at: so many sizes."""
REASONS = {
    1: "not chosen",
    2: "left by the coin",
    0: "no way found that keeps the tables",
}
_TOO_DEAR = "no way found that keeps the tables and is worth the price"
_DISPLACED = 3


def cube_facts(
    recipe: DesignedSwap, data: Data, problem: CubeProblem, cubes: Cubes, fate: Ints, moves: Sequence[Move]
) -> dict[str, object]:
    """Account for a draw; raise an error if a kept table has changed."""
    n = recipe.n
    reasons = REASONS if recipe.price is None else {**REASONS, 0: _TOO_DEAR}
    protected = [problem.cells_of(t, cubes) for t, view in enumerate(problem.views) if view.protected]
    f, g = _before_after(cubes, np.concatenate(protected))
    _, held = _before_after(cubes, problem.small)
    emptied, left = held == 0, (held > 0) & (held < n)
    carried = [name for axis in problem.axes if axis.moves for name in axis.columns if name not in axis.seen]
    return {
        "small_cells": len(problem.small),
        "camouflaged": int((held >= n).sum()),
        "emptied": int((emptied & (fate != _DISPLACED)).sum()),
        "displaced": int((emptied & (fate == _DISPLACED)).sum()),
        "left": {reason: count for code, reason in reasons.items() if (count := int((left & (fate == code)).sum()))},
        "new_cells": int(((f == 0) & (g > 0)).sum()),
        "exposed_before": int(f[f < n].sum()),
        "exposed_after": int(np.minimum(f, g)[(g > 0) & (g < n)].sum()),
        "by_size": [of_size(f, g, size, n) for size in range(1, n)],
        "just_large": [just_large(f, g, size) for size in range(n, n + _NEAR)],
        "design_loss": _loss(problem, cubes),
        "kept": [recipe.keep] if isinstance(recipe.keep, str | int) else [*recipe.keep],
        "kept_tables": len(problem.kept),
        "records_moved": int(cubes.progress[1]) // 2,
        "values_moved": sum(len(move.expanded[0]) for move in moves),
        **_small_kept(problem, n),
        **_check(data, problem, moves),
        **carried_fact(carried),
        **_rule_facts(problem),
    }


def _before_after(cubes: Cubes, cells: Ints) -> tuple[Ints, Ints]:
    return cubes.cells["before"][cells].astype(np.int64), cubes.cells["count"][cells].astype(np.int64)


def cell_losses(kind: int, before: Ints, after: Ints, total: int) -> Floats:
    """Return what cells add to the raw loss of their table, as the search counts it.

    >>> import numpy as np
    >>> from quadrille.kernels.designed.neighbours import HELLINGER, TOTAL_VARIATION
    >>> from quadrille.swap.designed.cube_facts import cell_losses
    >>> cell_losses(HELLINGER, np.array([1, 4]), np.array([0, 4]), 10).tolist()
    [-0.0, -0.4]
    >>> cell_losses(TOTAL_VARIATION, np.array([1, 4]), np.array([0, 5]), 10).tolist()
    [0.05, 0.05]
    """
    f, g = before.astype(float), after.astype(float)
    if kind == HELLINGER:
        return -np.sqrt(f * g) / total
    if kind == TOTAL_VARIATION:
        return 0.5 * np.abs(g - f) / total
    return np.where(f > 0, (g - f) ** 2 / np.maximum(f, 1), np.where(g > 0, NEVER, 0.0))


def _loss(problem: CubeProblem, cubes: Cubes) -> float:
    """Return the loss that was kept low, on counts."""
    loss = 0.0
    for t, view in enumerate(problem.views):
        if view.loss:
            total = int(cubes.tables["total"][t])
            raw = float(cell_losses(view.loss, *_before_after(cubes, problem.cells_of(t, cubes)), total).sum())
            loss += view.importance * (sqrt(max(0.0, 1.0 + raw)) if view.loss == HELLINGER else raw)
    return loss


def _check(data: Data, problem: CubeProblem, moves: Sequence[Move]) -> dict[str, object]:
    """Count the kept tables on the records that moved; return the largest change of a weighted cell of theirs."""
    rows = np.unique(np.concatenate([move.expanded[0] for move in moves])) if moves else np.empty(0, dtype=np.int64)
    names = tuple(dict.fromkeys(name for table in problem.kept for name in table))
    before = {name: data.coded(name, purpose="DesignedSwap") for name in names}
    after = {name: column.values[rows].astype(np.int64) for name, column in before.items()}
    for move in moves:
        at = np.searchsorted(rows, move.expanded[0])
        for name in move.columns:
            if name in after:
                after[name][at] = before[name].values[move.expanded[1]]
    weight = None if data.ticks is None else data.ticks.values[rows] / data.ticks.per_unit
    largest = 0.0
    for table in problem.kept:
        both = [(np.concatenate((before[n].values[rows], after[n])), before[n].size) for n in table]
        ids, count = group_ids(both, 2 * len(rows))
        old, new = ids[: len(rows)], ids[len(rows) :]
        if (np.bincount(old, minlength=count) != np.bincount(new, minlength=count)).any():
            raise QuadrilleError(f"The table of {', '.join(table)} was to be kept and has changed. Please report this.")
        if weight is not None and count:
            change = np.bincount(new, weights=weight, minlength=count) - np.bincount(
                old, weights=weight, minlength=count
            )
            largest = max(largest, float(np.abs(change).max()))
    return {} if weight is None else {"weighted_change": largest}


def _small_kept(problem: CubeProblem, n: int) -> dict[str, object]:
    """Count the small cells of the kept tables, which the release shows as they are, and the cells inside them."""
    levels, held = problem.cubes.levels, problem.cubes.cells["before"][: len(problem.cubes.levels)]
    axis_of = {name: a for a, axis in enumerate(problem.axes) for name in axis.seen}
    small, inside = 0, np.zeros(len(levels), dtype=bool)
    for table in problem.kept:
        axes = sorted({axis_of[name] for name in table})
        ids, count = group_ids(
            [(levels[:, a].astype(np.int64), int(problem.cubes.sizes[a])) for a in axes], len(levels)
        )
        records = np.bincount(ids, weights=held, minlength=count)
        small += int((records < n).sum())
        inside |= records[ids] < n
    return {"small_kept_cells": small, "cells_in_small_kept": int(inside.sum())}


def _rule_facts(problem: CubeProblem) -> dict[str, object]:
    """Say which rules there were, and how many records broke them before."""
    if not problem.broken_before:
        return {}
    rows = [{"rule": text, "broken_before": before} for text, before in problem.broken_before]
    return {"rules": rows}
