"""What a designed swap that keeps tables says about itself, in counts only; and the proof that it kept them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from quadrille.data import Data
from quadrille.errors import QuadrilleError
from quadrille.kernels.designed.cubes import Cubes
from quadrille.kernels.designed.neighbours import HELLINGER, raw_loss
from quadrille.plan import Move
from quadrille.recipe import carried_fact
from quadrille.swap.designed.draw import just_large, of_size
from quadrille.swap.designed.lattice import CubeProblem
from quadrille.swap.groups import Ints, group_ids

if TYPE_CHECKING:
    from quadrille.swap.designed import DesignedSwap

_NEAR = 3
REASONS = {
    1: "not chosen",
    2: "left by the coin",
    0: "no way found that keeps the tables",
}


def cube_facts(
    recipe: DesignedSwap, data: Data, problem: CubeProblem, cubes: Cubes, fate: Ints, moves: Sequence[Move]
) -> dict[str, object]:
    """Account for a draw; raise an error if a kept table has changed."""
    f, g = _protected(problem, cubes)
    n = recipe.n
    home, status = _small(problem, cubes, fate)
    held = cubes.cells["count"][home]
    left = (held > 0) & (held < n)
    carried = [name for axis in problem.axes if axis.moves for name in axis.columns if name not in axis.seen]
    weighted = _check(data, problem, moves)
    return {
        "small_cells": len(home),
        "camouflaged": int((held >= n).sum()),
        "emptied": int(((held == 0) & (status != 3)).sum()),
        "displaced": int(((held == 0) & (status == 3)).sum()),
        "left": {reason: int((left & (status == code)).sum()) for code, reason in REASONS.items() if (left & (status == code)).any()},
        "new_cells": int(((f == 0) & (g > 0)).sum()),
        "exposed_before": int(f[f < n].sum()),
        "exposed_after": int(np.minimum(f, g)[(g > 0) & (g < n)].sum()),
        "by_size": [of_size(f, g, size, n) for size in range(1, n)],
        "just_large": [just_large(f, g, size) for size in range(n, n + _NEAR)],
        "design_loss": _loss(problem, cubes),
        "kept": [*( [recipe.keep] if isinstance(recipe.keep, str) else recipe.keep)],
        "kept_tables": len(problem.kept),
        "records_moved": int(cubes.progress[1]) // 2,
        "values_moved": sum(len(move.given[0]) for move in moves),
        **_small_kept(data, problem, n),
        **weighted,
        **carried_fact(carried),
        **_rule_facts(problem),
    }


def _protected(problem: CubeProblem, cubes: Cubes) -> tuple[Ints, Ints]:
    """Return the records of all cells of the protected tables before and after, new cells among them."""
    used, old = int(cubes.progress[0]), int(problem.cubes.progress[0])
    first, key_from = 0, 0
    f: list[Ints] = []
    g: list[Ints] = []
    for t, view in enumerate(problem.views):
        count = len(np.unique(problem.home[t])) if t else len(problem.cubes.levels)
        inside = cubes.strides[t] > 0
        keys = int(np.prod(cubes.sizes[inside].astype(object))) if t else int(np.prod(cubes.sizes.astype(object)))
        if view.protected:
            new = np.arange(old, used)
            key = cubes.cells["key"][new]
            cells = np.concatenate((np.arange(first, first + count), new[(key >= key_from) & (key < key_from + keys)]))
            f.append(cubes.cells["before"][cells].astype(np.int64))
            g.append(cubes.cells["count"][cells].astype(np.int64))
        first, key_from = first + count, key_from + keys
    return np.concatenate(f), np.concatenate(g)


def _small(problem: CubeProblem, cubes: Cubes, fate: Ints) -> tuple[Ints, Ints]:
    """Return the small cells of all protected tables, and what was decided about each before the search."""
    homes: list[Ints] = []
    fates: list[Ints] = []
    for t, view in enumerate(problem.views):
        if view.protected:
            home = problem.home[t][problem.small]
            small = cubes.cells["before"][home] < cubes.n
            distinct, first = np.unique(home[small], return_index=True)
            homes.append(distinct)
            fates.append(fate[small][first].astype(np.int64))
    return np.concatenate(homes), np.concatenate(fates)


def _loss(problem: CubeProblem, cubes: Cubes) -> float:
    """Return the loss that was kept low, on counts."""
    loss = raw_loss.py_func  # pyright: ignore[reportFunctionMemberAccess]
    total, first = 0.0, 0
    for t, view in enumerate(problem.views):
        count = len(np.unique(problem.home[t])) if t else len(problem.cubes.levels)
        cells = cubes.cells[first : first + count]
        first += count
        if not view.loss:
            continue
        n = float(cubes.tables["total"][t])
        f, g = cells["before"].astype(float), cells["count"].astype(float)
        if view.loss == HELLINGER:
            total += view.importance * sqrt(max(0.0, 1.0 - float(np.sqrt(f * g).sum()) / n))
        else:
            total += view.importance * float(sum(loss(view.loss, a, b, n) for a, b in zip(f, g, strict=True) if a != b))
    return total


def _check(data: Data, problem: CubeProblem, moves: Sequence[Move]) -> dict[str, object]:
    """Count the kept tables on the records that moved; return the largest change of a weighted cell of theirs."""
    rows = np.unique(np.concatenate([move.given[0] for move in moves])) if moves else np.empty(0, dtype=np.int64)
    names = tuple(dict.fromkeys(name for table in problem.kept for name in table))
    before = {name: data.coded(name, purpose="DesignedSwap") for name in names}
    after = {name: column.values[rows].astype(np.int64) for name, column in before.items()}
    for move in moves:
        at = np.searchsorted(rows, move.given[0])
        for name in move.columns:
            if name in after:
                after[name][at] = before[name].values[move.given[1]]
    weight = None if data.ticks is None else data.ticks.values[rows] / data.ticks.per_unit
    largest = 0.0
    for table in problem.kept:
        both = [(np.concatenate((before[n].values[rows], after[n])), before[n].size) for n in table]
        ids, count = group_ids(both, 2 * len(rows))
        old, new = ids[: len(rows)], ids[len(rows) :]
        if (np.bincount(old, minlength=count) != np.bincount(new, minlength=count)).any():
            raise QuadrilleError(f"The table of {', '.join(table)} was to be kept and has changed. Please report this.")
        if weight is not None and count:
            change = np.bincount(new, weights=weight, minlength=count) - np.bincount(old, weights=weight, minlength=count)
            largest = max(largest, float(np.abs(change).max()))
    return {} if weight is None else {"weighted_change": largest}


def _small_kept(data: Data, problem: CubeProblem, n: int) -> dict[str, object]:
    """Count the small cells of the kept tables, which the release shows as they are, and the cells inside them."""
    levels, held = problem.cubes.levels, problem.cubes.cells["before"][: len(problem.cubes.levels)]
    axis_of = {name: a for a, axis in enumerate(problem.axes) for name in axis.seen}
    small, inside = 0, np.zeros(len(levels), dtype=bool)
    for table in problem.kept:
        axes = sorted({axis_of[name] for name in table})
        ids, count = group_ids([(levels[:, a].astype(np.int64), int(problem.cubes.sizes[a])) for a in axes], len(levels))
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
