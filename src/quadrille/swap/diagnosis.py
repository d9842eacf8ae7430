"""What a designed swap says about itself: which cells were treated and how, which were not and why, and who is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from quadrille import kernels
from quadrille.kernels import At, read
from quadrille.kernels.treat import BUDGET, CAMOUFLAGED, EMPTIED, NO_NEIGHBOUR, NO_PARTNER, NOT_CHOSEN, TOO_DEAR
from quadrille.recipe import carried_fact
from quadrille.swap.groups import Ints
from quadrille.swap.lattice import Ground

if TYPE_CHECKING:
    from quadrille.swap.design import Drawn

SPOILT = BUDGET + 1
REASONS = {
    NOT_CHOSEN: "not chosen",
    NO_NEIGHBOUR: "no neighbouring cell can give or take a record and stay large enough",
    NO_PARTNER: "no records can move the other way",
    TOO_DEAR: "dearer than the price",
    BUDGET: "no pairs left",
    SPOILT: "treated, and undone for the sake of a cell of another table",
}
_NEAR = 3
"""Cells of n to n + 2 records are looked at: so many sizes."""


def facts(ground: Ground, drawn: Drawn) -> dict[str, object]:
    """Account for a draw, in counts only."""
    board = drawn.board
    f, g = _counts(ground, drawn)
    n = ground.task.small
    status = np.bincount(_outcome(ground, drawn), minlength=max(REASONS) + 1)
    carried = [
        name
        for mover, columns in zip(ground.task.movers, ground.task.columns, strict=True)
        for name in columns
        if name not in mover
    ]
    return {
        "small_cells": len(ground.small),
        "camouflaged": int(status[CAMOUFLAGED]),
        "emptied": int(status[EMPTIED]),
        "left": {reason: int(status[code]) for code, reason in REASONS.items() if status[code]},
        "exposed_before": int(f[f < n].sum()),
        "exposed_after": int(np.minimum(f, g)[(g > 0) & (g < n)].sum()),
        "by_size": [_of_size(f, g, size, n) for size in range(1, n)],
        "just_large": [_just_large(f, g, size) for size in range(n, n + _NEAR)],
        "design_loss": float(kernels.loss_now(board)),
        "rounds": drawn.rounds,
        **carried_fact(carried),
        **ground.rules,
    }


def _outcome(ground: Ground, drawn: Drawn) -> Ints:
    """Return what became of each small cell: with several tables, moves for one cell may also fill or empty another."""
    board, n = drawn.board, ground.task.small
    held = read(board, At.COUNT, int(board.at[At.CELLS]))[ground.small]
    status = read(board, At.STATUS, len(ground.small))
    left = np.where(np.isin(status, (CAMOUFLAGED, EMPTIED)), SPOILT, status)
    return np.where(held >= n, CAMOUFLAGED, np.where(held == 0, EMPTIED, left))


def _counts(ground: Ground, drawn: Drawn) -> tuple[Ints, Ints]:
    """Return the records of the cells of all protected tables, before and after."""
    board = drawn.board
    cells, tables = int(board.at[At.CELLS]), int(board.at[At.TABLES])
    kept: NDArray[np.bool_] = read(board, At.PROTECTED, tables)[read(board, At.OF_TABLE, cells)] > 0
    return read(board, At.BEFORE, cells)[kept].astype(np.int64), read(board, At.COUNT, cells)[kept]


def _of_size(f: Ints, g: Ints, size: int, n: int) -> dict[str, object]:
    """Tell what became of the cells that held so many records."""
    held, after = f == size, g[f == size]
    small = (after > 0) & (after < n)
    return {
        "records": size,
        "cells": int(held.sum()),
        "camouflaged": int((after >= n).sum()),
        "emptied": int((after == 0).sum()),
        "left": int(small.sum()),
        "exposed": int(np.minimum(size, after)[small].sum()),
    }


def _just_large(f: Ints, g: Ints, size: int) -> dict[str, object]:
    """Tell how many of the cells that hold so many records in the release are what they seem to be."""
    shown = g == size
    records = size * int(shown.sum())
    genuine = int(np.minimum(f, g)[shown].sum())
    return {
        "records": size,
        "cells_before": int((f == size).sum()),
        "cells_after": int(shown.sum()),
        "unchanged": int((shown & (f == size)).sum()),
        "genuine_share": genuine / records if records else None,
    }
