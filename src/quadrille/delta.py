"""The touched rows before and after a plan, gathered once and shared by all measures."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import NDArray

from quadrille import kernels
from quadrille.cross import Cells, Cross
from quadrille.data import Codes, Data, Rows
from quadrille.plan import Plan

Ints = NDArray[np.int64]

OUTSIDE = -1
"""The cell of a record that a table leaves out."""
_NONE = np.empty(0, dtype=np.int64)


class Delta:
    """What a plan changes in the data: for every touched row its old and its new cell.

    `fused` holds the cell of every record for crosses that are used again and again; a cross that is not
    in it is gathered column by column, for the touched rows only.
    """

    def __init__(self, data: Data, plan: Plan, fused: Mapping[Cross, Fused] | None = None) -> None:
        self.data = data
        self.plan = plan
        self.fused = fused or {}
        self._cells: dict[Cross, tuple[Codes, Codes]] = {}
        self._nets: dict[Cross, tuple[Cells, Cells]] = {}
        self._values: dict[str, tuple[Codes, Codes]] = {}
        only = plan.moves[0] if len(plan.moves) == 1 else None
        self.rows: Rows = only.given[0] if only else plan.rows
        self._places = [
            (move, None if move is only else np.searchsorted(self.rows, move.given[0])) for move in plan.moves
        ]

    @cached_property
    def moved(self) -> tuple[str, ...]:
        """The columns that move."""
        return self.plan.columns

    @cached_property
    def weight_moves(self) -> bool:
        """Whether the weight moves too, so that tables of columns that stay change as well."""
        return self.data.weight is not None and self.data.weight in self.moved

    @cached_property
    def ticks(self) -> Ints | None:
        """Weights of the touched rows before, in ticks."""
        return None if self.data.ticks is None else self.data.ticks.values[self.rows]

    @cached_property
    def ticks_after(self) -> Ints | None:
        """Weights of the touched rows after, in ticks."""
        old, ticks = self.ticks, self.data.ticks
        if old is None or ticks is None or not self.weight_moves:
            return old
        move, place = next(each for each in self._places if self.data.weight in each[0].columns)
        new = old.copy()
        new[slice(None) if place is None else place] = ticks.values[move.given[1]]
        return new

    def steps(self, old: Codes, new: Codes) -> tuple[Codes, Codes, Ints]:
        """Return cells that the touched rows leave and reach, with the ticks they carry; no ticks without a weight.

        Where the weight moves, a row leaves with its old weight and arrives with its new one: two steps, from a cell
        to outside and from outside to a cell.
        """
        if self.ticks is None or self.ticks_after is None:
            return old, new, _NONE
        if not self.weight_moves:
            return old, new, self.ticks
        outside = np.full_like(old, OUTSIDE)
        ticks = np.concatenate((self.ticks, self.ticks_after))
        return np.concatenate((old, outside)), np.concatenate((outside, new)), ticks

    def values(self, name: str) -> tuple[Codes, Codes]:
        """Return one column at the touched rows, before and after."""
        if name not in self._values:
            values = self.data[name].values
            old = new = values[self.rows]
            for move, place in self._places:
                if name in move.columns:
                    new = old.copy()
                    new[slice(None) if place is None else place] = values[move.given[1]]
            self._values[name] = old, new
        return self._values[name]

    def cells(self, cross: Cross) -> tuple[Codes, Codes]:
        """Return the cells of the touched rows in a cross, before and after."""
        if cross not in self._cells:
            self._cells[cross] = self._gather_fused(cross) if cross in self.fused else self._gather(cross)
        return self._cells[cross]

    def fused_with(self, variables: tuple[str, ...]) -> Fused | None:
        """Return a fused cross that has all of these variables, if there is one."""
        return next((fused for fused in self.fused.values() if fused.contains(variables)), None)

    def net(self, cross: Cross) -> tuple[Cells, Cells]:
        """Return the cells of a fused cross that change, and the net changes of count and ticks, (2, m)."""
        if cross not in self._nets:
            memory = scratch(cross.possible)
            self._nets[cross] = kernels.net_of_rows(*self.steps(*self.cells(cross)), memory, cross.possible)
        return self._nets[cross]

    def _gather(self, cross: Cross) -> tuple[Cells, Cells]:
        old = cross.cells(self.data, self.rows)
        new = old
        for name in set(cross.variables) & set(self.moved):
            was, now = self.values(name)
            new = new + (now.astype(np.int64) - was.astype(np.int64)) * cross.stride(name)
        return old, new

    def _gather_fused(self, cross: Cross) -> tuple[Codes, Codes]:
        fused = self.fused[cross]
        old = fused.cells[self.rows]
        new = old.copy()
        for move, place in self._places:
            part = fused.part(move.columns)
            if part is None:
                continue
            if place is None:
                new += part[_partner_cells(fused, old, move.given[1], paired=move.pairs is not None)] - part[old]
            else:
                new[place] += part[fused.cells[move.given[1]]] - part[old[place]]
        return old, new


def _partner_cells(fused: Fused, old: Codes, source: Rows, *, paired: bool) -> Codes:
    """Return the cells of the source rows; in an exchange they are the two halves of `old`, turned round."""
    if not paired:
        return fused.cells[source]
    half = len(old) // 2
    return np.concatenate((old[half:], old[:half]))


class Fused:
    """The cell of every record in a dense cross, and what each group of moved columns contributes to it."""

    def __init__(self, data: Data, cross: Cross) -> None:
        self.cross = cross
        self.cells = cross.cells(data).astype(np.int32)
        self._parts: dict[tuple[str, ...], NDArray[np.int32] | None] = {}
        self._lookups: dict[object, NDArray[np.int32]] = {}

    def contains(self, variables: tuple[str, ...]) -> bool:
        """Tell whether all of these variables are in the cross."""
        return all(name in self.cross.variables for name in variables)

    def lookup(self, table: object, make: Callable[[], NDArray[np.int32]]) -> NDArray[np.int32]:
        """Return the cell of a table for each cell of the cross, made once."""
        if table not in self._lookups:
            self._lookups[table] = make()
        return self._lookups[table]

    def part(self, columns: tuple[str, ...]) -> NDArray[np.int32] | None:
        """Return, for each cell, the share of its number that comes from `columns`; None if they are not in it."""
        if columns not in self._parts:
            inside = set(columns) & set(self.cross.variables)
            self._parts[columns] = self.cross.part(inside) if inside else None
        return self._parts[columns]


_SCRATCH = threading.local()


def scratch(possible: int) -> Cells:
    """Return zeroed working memory for the counting kernels, which leave it zeroed."""
    memory = cast("Cells | None", getattr(_SCRATCH, "memory", None))
    if memory is None or memory.shape[1] < possible:
        memory = np.zeros((3, possible), dtype=np.int64)
        _SCRATCH.memory = memory
    return memory
