"""Where a designed swap stands: the lattice of cells, the fillers that balance moves, and the treatment of small cells.

Each array is a list of rows of one kind, so that a kernel reads like the method: `lattice.cells[c].count`. Rows rather
than an array per field, because every array that a kernel takes makes it slower to compile; for the same reason
kernels take the parts of the state that they need.

Base cells are sets of records that are alike in all that matters. Every table is a coarser view of them, and the cells
of all tables are numbered through. A mover is a set of variables that a pair exchanges together; its levels are the
combinations of their values. A class is a combination of the values that must be the same in a pair.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, NamedTuple, get_type_hints

import numpy as np
from numpy.typing import NDArray

Rows = Any
"""Rows of one kind, made by `rows`: `cells[c].count` in a kernel is `cells["count"][c]` in numpy."""
Real = Any
"""A real number in a kernel."""
NOTHING = np.int64(0)
NONE = np.int64(-1)
"""Constants of one type: a plain number would make kernels be compiled for it alone."""
EXHAUSTED_LISTED = 64
"""How many buckets found exhausted are listed one by one."""

IntField = Annotated[Any, np.int64]
ShortField = Annotated[Any, np.int32]
"""In arrays of a number per mover and cell, which are the largest; kernels turn what they read into 64 bits."""
FloatField = Annotated[Any, np.float64]


class Table:
    """A table whose small cells are protected, whose loss counts, or both."""

    protected: IntField
    loss: IntField
    """Which loss, 0 for none."""
    importance: FloatField
    total: FloatField
    """Its total weight."""
    raw_loss: FloatField
    marked_loss: FloatField
    """The raw loss at the mark to which steps can be undone."""
    slope: FloatField
    """Price of a small change of the raw loss."""


class Cell:
    """A cell of a table: records and weight before the swap, and now."""

    table: IntField
    before: IntField
    weight_before: FloatField
    count: IntField
    weight: FloatField
    bases_from: IntField
    bases_to: IntField
    """Its base cells are those from here to there in `Treatments.bases_of`."""


class BaseCell:
    """Records that are alike in all that matters."""

    class_: IntField
    mean_weight: FloatField
    free: IntField
    """Records that may move and have not."""


class BaseLevel:
    """What a base cell is to a mover: its level, and the pattern of its records in the plausibility rules."""

    level: ShortField
    pattern: ShortField


class Place:
    """Where a cell stands among its neighbours in a mover: its level, and which neighbours are its own."""

    level: ShortField
    first: ShortField
    size: ShortField


class Neighbour:
    """A cell of a neighbourhood, by level."""

    level: ShortField
    cell: ShortField


class Totals:
    """What a draw has done so far."""

    exposed: IntField
    moved: IntField
    marked_exposed: IntField
    """Exposed records at the mark to which steps can be undone."""


class Lattice(NamedTuple):
    """The cells of all tables, what they hold, and which of them neighbour one another."""

    n: int
    """Cells of 1 to n - 1 records are small."""
    tables: Rows
    cells: Rows
    bases: Rows
    cell_of: NDArray[np.int32]
    """[table, base cell]: the cell."""
    seen_level: NDArray[np.int32]
    """[table, mover, level]: the level as the table sees it."""
    base_levels: Rows
    """[mover, base cell]."""
    places: Rows
    """[mover, cell]."""
    neighbours: Rows
    """[mover, place]: the cells by neighbourhood and, within it, by level."""
    level_pattern: NDArray[np.int32]
    """[mover, level]: the pattern of records of that level in the plausibility rules, as far as the level goes."""
    forbidden: NDArray[np.bool_]
    """[mover, pattern, pattern]: whether a record of the one must not take the values of the other."""
    totals: Any


class Block:
    """The base cells of one class and level of a mover."""

    key: IntField
    """(mover * classes + class) * levels + level, ascending."""
    first: IntField
    end: IntField
    """They are those from `first` to `end` in the mover's row of `Fillers.by_block`."""
    buckets_from: IntField
    buckets_to: IntField
    """Bucket `buckets_from + k` is for moves from the block to level k."""


class Bucket:
    """The moves of one class from one level of a mover to another."""

    length: IntField
    """Entries of its heap; CLOSED before it is opened, EXHAUSTED when nothing is left."""
    heap_at: IntField
    newest: IntField
    """The newest filler in use, -1 for none."""
    limit: FloatField
    """Dearer entries were left out of its heap."""


class Entry:
    """An entry of a heap: a base cell to move from, and the price of that when it was last looked at."""

    base: IntField
    price: FloatField


class Filler:
    """A filler in use: its base cell, and the next older one of its bucket. Of an unused slot, the next unused one."""

    base: IntField
    older: IntField


class Stock:
    """How much of the room for heaps and fillers is used, and the buckets found exhausted since the mark."""

    heap_used: IntField
    unused_slot: IntField
    exhausted: IntField
    first_exhausted: Annotated[Any, np.int64, EXHAUSTED_LISTED]


class Fillers(NamedTuple):
    """Moves that balance other moves: what there is to choose from, and which are in use."""

    classes: int
    levels: int
    room: int
    """Least number of entries that a bucket's heap may have."""
    blocks: Rows
    by_block: NDArray[np.int32]
    """[mover, place]: base cells by class and level."""
    different: NDArray[np.int32]
    """[column, base cell]: the value that must differ in a pair."""
    buckets: Rows
    heap: Rows
    """The heaps of all open buckets, one after the other."""
    slots: Rows
    stock: Any


class SmallCell:
    """A small cell to be treated, what came of it, and how many moves were made for it."""

    cell: IntField
    status: IntField
    made: IntField


class NeededMove:
    """A move made for a small cell: from a base cell to a level of a mover; its own partner, -1 for a filler."""

    mover: IntField
    base: IntField
    to: IntField
    partner: IntField


class Option:
    """A move that could be made, and its price with that of balancing it."""

    mover: IntField
    base: IntField
    to: IntField
    cost: FloatField


class Step:
    """A step that can be undone."""

    what: IntField
    mover: IntField
    base: IntField
    to: IntField
    bucket: IntField
    block: IntField


class Progress:
    """How many steps were logged since the mark."""

    steps: IntField


class Treatments(NamedTuple):
    """The small cells, the moves made for them, and the steps since the mark."""

    spread: float
    bases_of: NDArray[np.int32]
    """Base cells by cell, table after table."""
    small_cells: Rows
    moves: Rows
    """[small cell, move]."""
    options: Rows
    log: Rows
    progress: Any


class State(NamedTuple):
    """All that a draw reads and changes."""

    lattice: Lattice
    fillers: Fillers
    treatments: Treatments


def rows(kind: type, shape: int | tuple[int, ...], **fields: object) -> Rows:
    """Return rows of a kind with these values in their fields; 0 in the others."""
    made = np.zeros(shape, _layout(kind))
    for name, values in fields.items():
        made[name] = values
    return made


@cache
def _layout(kind: type) -> np.dtype[Any]:
    """Return the fields of a kind of row as numpy lays them out; always the same object, by which numba knows it."""
    hints = get_type_hints(kind, include_extras=True)
    fields = np.dtype([(name, *hint.__metadata__) for name, hint in hints.items()], align=True)
    return np.dtype((np.record, fields))  # numba sees no difference; where it is switched off, rows have their fields


def row(kind: type, **fields: object) -> Any:
    """Return one row, which kernels change in place."""
    return rows(kind, 1, **fields)[0]


def fresh(state: State) -> State:
    """Return the state for another draw: a copy of what a draw changes, and empty room for what it writes first."""
    lattice, fillers, treatments = state
    return State(
        lattice._replace(
            tables=lattice.tables.copy(),
            cells=lattice.cells.copy(),
            bases=lattice.bases.copy(),
            totals=_copied(lattice.totals),
        ),
        fillers._replace(
            buckets=fillers.buckets.copy(),
            heap=np.zeros_like(fillers.heap),
            slots=fillers.slots.copy(),
            stock=_copied(fillers.stock),
        ),
        treatments._replace(
            small_cells=treatments.small_cells.copy(),
            moves=treatments.moves.copy(),
            options=np.zeros_like(treatments.options),
            log=np.zeros_like(treatments.log),
            progress=_copied(treatments.progress),
        ),
    )


def _copied(one: Any) -> Any:
    made = np.empty(1, one.dtype)
    made[0] = one
    return made[0]
