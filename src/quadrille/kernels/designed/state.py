"""All numbers of a designed swap, side by side in five arrays.

Every array that a kernel takes makes it slower to compile, and a designed swap needs fifty. So they lie one after the
other: `fixed` and `real` hold the lattice of cells, which a draw does not change, `now` and `value` where it stands,
and `at` says where each begins. `lay_out` makes a board of named arrays.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, auto
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quadrille.kernels.compile import kernel
from quadrille.kernels.pool import Ints, Whole

Floats = NDArray[np.float64]
Real = Any
"""A real number in a kernel."""
NOTHING = np.int64(0)
NONE = np.int64(-1)
"""Constants of one type: a plain number would make kernels be compiled for it alone."""


class At(IntEnum):
    """Sizes, then the places at which the arrays begin.

    Base cells: records that are alike in all that matters. Every table is a coarser view of them, and the cells of all
    tables are numbered through. Movers: sets of variables that a pair exchanges together.
    """

    SMALL = 0
    """Cells of fewer records than this are small."""
    TABLES = auto()
    CELLS = auto()
    BASES = auto()
    MOVERS = auto()
    LEVELS = auto()
    CLASSES = auto()
    UNLIKES = auto()
    """Columns in which partners must differ."""
    PATTERNS = auto()
    """What records can be to the plausibility rules; 0 where there are none."""
    BLOCKS = auto()
    BUCKETS = auto()
    PATIENTS = auto()
    """Small cells."""
    HEAP_SIZE = auto()
    ROOM = auto()
    """Most entries of a bucket's heap."""
    OPTIONS = auto()

    # fixed: whole numbers of the lattice
    CELL_OF = auto()
    """[table, base cell]: the cell."""
    BEFORE = auto()
    """[cell]: records before."""
    LEVEL = auto()
    """[mover, cell]: level of the mover."""
    GROUP = auto()
    """[mover, cell]: where its neighbours begin in MEMBERS."""
    SIZE = auto()
    """[mover, cell]: how many they are."""
    MEMBERS = auto()
    """[mover, place]: cells by neighbourhood and level."""
    AS_LEVEL = auto()
    """[table, mover, level]: the level as the table sees it."""
    OF_TABLE = auto()
    """[cell]: its table."""
    PROTECTED = auto()
    """[table]: 1 where small cells are to be protected."""
    LOSS = auto()
    """[table]: which loss, 0 for none."""
    FIRST_BASE = auto()
    """[cell + 1]: where its base cells begin in BASES_OF."""
    BASES_OF = auto()
    BASE_LEVEL = auto()
    """[mover, base cell]: level of the mover."""
    CLASS_OF = auto()
    """[base cell]: number of the values that must be the same in a pair."""
    UNLIKE = auto()
    """[column, base cell]: the value that must differ in a pair."""
    ORDER = auto()
    """[mover, place]: base cells by class and level; a block is those of one class and level."""
    BLOCK_FROM = auto()
    BLOCK_TO = auto()
    BUCKET_FROM = auto()
    """[block + 1]: bucket BUCKET_FROM + k is for moves from the block to level k."""
    CELL = auto()
    """[patient]: the small cell."""
    PATTERN = auto()
    """[mover, base cell]: what its records are to the rules."""
    LEVEL_PATTERN = auto()
    """[mover, level]: what records of that level are to the rules, as far as the level goes."""
    FORBIDDEN = auto()
    """[mover, pattern, pattern]: 1 where a record of the one must not take the values of the other."""

    # real: real numbers of the lattice
    WEIGHT_BEFORE = auto()
    MEAN = auto()
    """[base cell]: mean weight of its records."""
    IMPORTANCE = auto()
    """[table]: how much its loss counts."""
    TOTAL = auto()
    """[table]: total weight."""
    SPREAD = auto()

    # now: whole numbers of where a draw stands
    COUNT = auto()
    """[cell]: records after."""
    FREE = auto()
    """[base cell]: records that may move and have not."""
    EXPOSED = auto()
    MOVED = auto()
    MARK_EXPOSED = auto()
    HEAP_USED = auto()
    UNUSED_SLOT = auto()
    LOGGED = auto()
    DEATHS = auto()
    """Buckets found dead since the last mark; the first of them are in DIED."""
    DIED = auto()
    LENGTH = auto()
    """[bucket]: entries of its heap; CLOSED before it is opened, DEAD when nothing is left."""
    HEAP_AT = auto()
    """[bucket]: where its heap begins."""
    HEAD = auto()
    """[bucket]: newest filler in use, -1 for none."""
    HEAP = auto()
    """[place]: base cells."""
    UNDER = auto()
    """[slot]: the next filler of the bucket, or the next unused slot."""
    BASE = auto()
    """[slot]: base cell of a filler."""
    STATUS = auto()
    """[patient]: what was done."""
    MADE = auto()
    """[patient]: how many moves were made for it."""
    MOVES = auto()
    """[patient, move]: mover, base cell, level, base cell of a partner of its own or -1."""
    MAY_MOVE = auto()
    """[option]: mover, base cell, level."""
    LOG = auto()
    """[step]: what, mover, base cell, level, bucket, block: steps that can be undone."""
    BLOCK_KEY = auto()
    """[block]: (mover * CLASSES + class) * LEVELS + level, ascending."""

    # value: real numbers of where a draw stands
    WEIGHT = auto()
    """[cell]: weight after."""
    SUM = auto()
    """[table]: raw loss."""
    SLOPE = auto()
    """[table]: price of a small change of the raw loss."""
    MARK_SUM = auto()
    LIMIT = auto()
    """[bucket]: dearer entries were left out of its heap."""
    PRICE = auto()
    """[place]: price of an entry of a heap when it was last looked at."""
    MAY_COST = auto()
    """[option]: its price."""


class Board(NamedTuple):
    """The five arrays."""

    at: Ints
    fixed: NDArray[np.int32]
    real: Floats
    now: Ints
    value: Floats


def lay_out(sizes: Mapping[At, int], arrays: Mapping[At, NDArray[Any]]) -> Board:
    """Lay named arrays out one after the other, in the order of their names."""
    at = np.zeros(len(At), dtype=np.int64)
    for name, size in sizes.items():
        at[name] = size
    parts: dict[type, list[NDArray[Any]]] = {np.int32: [], np.float32: [], np.int64: [], np.float64: []}
    length = dict.fromkeys(parts, 0)
    for name in At:
        if name in arrays:
            kind = _kind(name)
            at[name] = length[kind]
            parts[kind].append(np.ravel(arrays[name]))
            length[kind] += arrays[name].size
    fixed, real, now, value = (np.concatenate(part) for part in parts.values())
    return Board(at, fixed.astype(np.int32), real.astype(np.float64), now.astype(np.int64), value.astype(np.float64))


def _kind(name: At) -> type:
    if name < At.WEIGHT_BEFORE:
        return np.int32
    if name < At.COUNT:
        return np.float32
    return np.int64 if name < At.WEIGHT else np.float64


def read(board: Board, name: At, *shape: int) -> NDArray[Any]:
    """Return one of the arrays of a board, as a view of this shape."""
    kind = _kind(name)
    whole = {np.int32: board.fixed, np.float32: board.real, np.int64: board.now, np.float64: board.value}[kind]
    first = int(board.at[name])
    return whole[first : first + int(np.prod(shape))].reshape(shape)


@kernel
def fixed(name: Whole, place: Whole, x: Board) -> Whole:
    """Read a whole number of the lattice."""
    return np.int64(x.fixed[x.at[name] + place])


@kernel
def real(name: Whole, place: Whole, x: Board) -> Real:
    """Read a real number of the lattice."""
    return x.real[x.at[name] + place]


@kernel
def now(name: Whole, place: Whole, x: Board) -> Whole:
    """Read a whole number of where the draw stands."""
    return x.now[x.at[name] + place]


@kernel
def value(name: Whole, place: Whole, x: Board) -> Real:
    """Read a real number of where the draw stands."""
    return x.value[x.at[name] + place]


@kernel
def put(name: Whole, place: Whole, number: Whole, x: Board) -> None:
    """Write a whole number of where the draw stands."""
    x.now[x.at[name] + place] = number


@kernel
def put_value(name: Whole, place: Whole, number: Real, x: Board) -> None:
    """Write a real number of where the draw stands."""
    x.value[x.at[name] + place] = number
