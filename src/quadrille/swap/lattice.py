"""From a file to the board of a designed swap: base cells, the tables over them, and the neighbours in each mover."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quadrille import kernels
from quadrille.data import Data
from quadrille.errors import ParameterError, infeasible
from quadrille.kernels import At, Board, lay_out
from quadrille.swap.groups import Ints, group_ids
from quadrille.swap.limits import Limits
from quadrille.swap.plausible import rules_facts

Floats = NDArray[np.float64]
Arrays = dict[At, NDArray[Any]]
_MOST_BUCKETS = 1 << 26
_ROOM = 512
_HEAPS = 1 << 25
_OPTIONS = 4096
_STEP_WIDTH = 6


class View(NamedTuple):
    """A table: its variables, whether its small cells are protected, its loss (0: none) and how much that counts."""

    variables: tuple[str, ...]
    protected: bool
    loss: int
    importance: float


class Task(NamedTuple):
    """What a designed swap is about: the tables, the movers, what must be the same or differ, what is small.

    `columns` are those of each mover that no table knows, too: levels of geography that travel with the others.
    """

    views: tuple[View, ...]
    movers: tuple[tuple[str, ...], ...]
    columns: tuple[tuple[str, ...], ...]
    same: tuple[str, ...]
    different: tuple[str, ...]
    small: int
    spread: float


@dataclass(frozen=True, eq=False)
class Ground:
    """The board before anything has moved, and what leads back to the records.

    `base` is the base cell of each record, `small` the small cells, and `rest[m]` numbers what a base cell is without
    mover m. `rules` is what a plan tells of its plausibility rules.
    """

    board: Board
    task: Task
    base: Ints
    small: Ints
    rest: Ints
    rules: Mapping[str, object]


class _Cells:
    """Some columns of base cells, or of the cells of a table, as codes."""

    def __init__(self, codes: Mapping[str, tuple[Ints, int]], count: int) -> None:
        self.codes, self.count = codes, count

    def ids(self, names: Sequence[str]) -> tuple[Ints, int]:
        """Number the combinations of values of some columns."""
        return group_ids([self.codes[name] for name in names], self.count)

    def at(self, places: Ints) -> _Cells:
        """Return some of the cells."""
        return _Cells({name: (codes[places], size) for name, (codes, size) in self.codes.items()}, len(places))


class _Table:
    """The cells of one table and who neighbours whom in each mover."""

    def __init__(self, every: _Cells, view: View, movers: Sequence[tuple[str, ...]], level: Ints, levels: int) -> None:
        self.cell, self.cells = every.ids(view.variables)
        leader = _leaders(self.cell, self.cells)
        inside, shape = every.at(leader), (len(movers), self.cells)
        self.as_level = np.zeros((len(movers), levels), dtype=np.int64)
        self.level, self.group = np.empty(shape, np.int64), np.empty(shape, np.int64)
        self.size, self.members = np.empty(shape, np.int64), np.empty(shape, np.int64)
        for m, mover in enumerate(movers):
            part = [name for name in mover if name in view.variables]
            seen = level[m] if len(part) == len(mover) else every.ids(part)[0]
            self.as_level[m, level[m]] = seen
            self.level[m] = seen[leader]
            rest, groups = inside.ids([name for name in view.variables if name not in mover])
            size = np.bincount(rest, minlength=groups)
            self.members[m] = np.lexsort((self.level[m], rest))
            self.size[m] = size[rest]
            self.group[m] = (np.cumsum(size) - size)[rest]


def build(data: Data, task: Task, never: NDArray[np.bool_], limits: Limits) -> Ground:
    """Tabulate a file once, find the neighbours of all cells, and lay out the board."""
    names = tuple(dict.fromkeys([*(v for view in task.views for v in view.variables), *task.same, *task.different]))
    columns = [data.coded(name, purpose="DesignedSwap") for name in names]
    base, count = group_ids([*((column.values, column.size) for column in columns), *limits.patterns], data.n)
    leader = _leaders(base, count)
    every = _Cells(
        {
            name: (column.values[leader].astype(np.int64), column.size)
            for name, column in zip(names, columns, strict=True)
        },
        count,
    )
    records = np.bincount(base, minlength=count)
    weight = records.astype(np.float64)
    if data.ticks is not None:
        weight = np.bincount(base, weights=data.ticks.values, minlength=count) / data.ticks.per_unit
    rest = np.stack([every.ids([name for name in names if name not in mover])[0] for mover in task.movers])
    sizes, arrays = _lattice(every, task, records, weight)
    level = arrays[At.BASE_LEVEL]
    arrays |= limits.arrays(leader, level, sizes[At.LEVELS])
    sizes[At.PATTERNS] = arrays[At.FORBIDDEN].shape[-1]
    arrays[At.FREE] = records - np.bincount(base[never], minlength=count)
    small = _small_cells(arrays, task.small)
    _add_start(sizes, arrays, small, task)
    told = limits.told(leader, level, arrays[At.CLASS_OF], arrays[At.UNLIKE], records)
    return Ground(lay_out(sizes, arrays), task, base, small, rest, rules_facts(limits.rules, told))


def _leaders(ids: Ints, count: int) -> Ints:
    """Return a member of each group."""
    leader = np.zeros(count, dtype=np.int64)
    leader[ids] = np.arange(len(ids))
    return leader


def _small_cells(arrays: Arrays, n: int) -> Ints:
    """Return the small cells of the protected tables; refuse a file without any cell that can give a record."""
    protected = arrays[At.PROTECTED][arrays[At.OF_TABLE]] > 0
    small = np.flatnonzero(protected & (arrays[At.BEFORE] < n))
    if len(small) and int(arrays[At.BEFORE][protected].max()) <= n:
        raise infeasible(
            f"No cell of the protected tables has more than n = {n} records, so none can give one without becoming "
            "small itself. Lower 'n', or protect a table of fewer variables.",
            1,
            0,
            exact=True,
        )
    return small


def _lattice(every: _Cells, task: Task, records: Ints, weight: Floats) -> tuple[dict[At, int], Arrays]:
    """Return the sizes and arrays of the lattice."""
    found = [every.ids(mover) for mover in task.movers]
    level, levels = np.stack([ids for ids, _ in found]), [size for _, size in found]
    klass, classes = every.ids(task.same)
    tables = [_Table(every, view, task.movers, level, max(levels)) for view in task.views]
    offset = np.cumsum([0, *(table.cells for table in tables)])
    cell = np.stack([table.cell + first for table, first in zip(tables, offset[:-1], strict=True)])
    cells = int(offset[-1])
    arrays: Arrays = {
        At.CELL_OF: cell,
        At.BEFORE: np.bincount(cell.ravel(), weights=np.tile(records, len(tables)), minlength=cells).astype(np.int64),
        At.LEVEL: _joined(tables, "level", 0 * offset),
        At.GROUP: _joined(tables, "group", offset),
        At.SIZE: _joined(tables, "size", 0 * offset),
        At.MEMBERS: _joined(tables, "members", offset),
        At.AS_LEVEL: np.stack([table.as_level for table in tables]),
        At.OF_TABLE: np.repeat(np.arange(len(tables)), np.diff(offset)),
        At.PROTECTED: np.array([view.protected for view in task.views], dtype=np.int64),
        At.LOSS: np.array([view.loss for view in task.views]),
        At.FIRST_BASE: np.concatenate(([0], np.cumsum(np.bincount(cell.ravel(), minlength=cells)))),
        At.BASES_OF: np.argsort(cell, axis=1, kind="stable"),
        At.BASE_LEVEL: level,
        At.CLASS_OF: klass,
        At.UNLIKE: np.array([every.ids([name])[0] for name in task.different], dtype=np.int64),
        At.WEIGHT_BEFORE: np.bincount(cell.ravel(), weights=np.tile(weight, len(tables)), minlength=cells),
        At.MEAN: weight / records,
        At.IMPORTANCE: np.array([view.importance for view in task.views], dtype=np.float64),
        At.TOTAL: np.full(len(tables), weight.sum()),
        At.SPREAD: np.array([task.spread]),
    }
    blocks = _add_blocks(arrays, level, levels, klass, classes)
    sizes = {
        At.SMALL: task.small,
        At.TABLES: len(tables),
        At.CELLS: cells,
        At.BASES: every.count,
        At.MOVERS: len(task.movers),
        At.LEVELS: max(levels),
        At.CLASSES: classes,
        At.UNLIKES: len(task.different),
        At.BLOCKS: blocks,
        At.BUCKETS: int(arrays[At.BUCKET_FROM][-1]),
    }
    return sizes, arrays


def _joined(tables: Sequence[_Table], name: str, offset: Ints) -> Ints:
    parts = [getattr(table, name) + first for table, first in zip(tables, offset, strict=False)]
    return np.concatenate(parts, axis=1)


def _add_blocks(arrays: Arrays, level: Ints, levels: list[int], klass: Ints, classes: int) -> int:
    """Sort the base cells by class and level for each mover, and number the buckets; return the number of blocks."""
    order: list[Ints] = []
    keys: list[Ints] = []
    first: list[Ints] = []
    buckets: list[Ints] = []
    for m, own in enumerate(level):
        key = (m * classes + klass) * max(levels) + own
        order.append(np.argsort(key, kind="stable"))
        distinct, begin = np.unique(key[order[-1]], return_index=True)
        keys.append(distinct)
        first.append(begin)
        buckets.append(np.full(len(distinct), levels[m]))
    each = np.concatenate(buckets)
    if int(each.sum()) > _MOST_BUCKETS:
        raise ParameterError(
            "The variables of DesignedSwap have too many levels for so many classes of 'same'. "
            "Name fewer columns in 'same', or leave out the swap variable with the most levels."
        )
    arrays[At.ORDER] = np.stack(order)
    arrays[At.BLOCK_KEY] = np.concatenate(keys)
    arrays[At.BLOCK_FROM] = np.concatenate(first)
    arrays[At.BLOCK_TO] = np.concatenate([np.append(begin[1:], level.shape[1]) for begin in first])
    arrays[At.BUCKET_FROM] = np.concatenate(([0], np.cumsum(each)))
    return len(each)


def _add_start(sizes: dict[At, int], arrays: Arrays, small: Ints, task: Task) -> None:
    """Add the state in which nothing has moved, and room for fillers, options and steps."""
    buckets, tables = sizes[At.BUCKETS], sizes[At.TABLES]
    widest = int((arrays[At.BLOCK_TO] - arrays[At.BLOCK_FROM]).max())
    widest = int(kernels.room_for(widest, _ROOM))
    heaps = max(min(_HEAPS, widest * buckets), widest)
    slots = 2 * task.small * (len(small) + 2)
    sizes |= {At.PATIENTS: len(small), At.HEAP_SIZE: heaps, At.ROOM: _ROOM, At.OPTIONS: _OPTIONS}
    nothing = np.zeros(1, dtype=np.int64)
    arrays |= {
        At.CELL: small,
        At.COUNT: arrays[At.BEFORE],
        At.EXPOSED: arrays[At.BEFORE][small].sum(keepdims=True),
        At.MOVED: nothing,
        At.MARK_EXPOSED: nothing,
        At.HEAP_USED: nothing,
        At.UNUSED_SLOT: nothing,
        At.LOGGED: nothing,
        At.DEATHS: nothing,
        At.DIED: np.zeros(kernels.DEATHS_KEPT, dtype=np.int64),
        At.LENGTH: np.full(buckets, -1),
        At.HEAP_AT: np.zeros(buckets, dtype=np.int64),
        At.HEAD: np.full(buckets, -1),
        At.HEAP: np.zeros(heaps, dtype=np.int64),
        At.UNDER: np.arange(1, slots + 1),
        At.BASE: np.zeros(slots, dtype=np.int64),
        At.STATUS: np.zeros(len(small), dtype=np.int64),
        At.MADE: np.zeros(len(small), dtype=np.int64),
        At.MOVES: np.zeros((len(small), task.small, 4), dtype=np.int64),
        At.MAY_MOVE: np.zeros((_OPTIONS, 3), dtype=np.int64),
        At.LOG: np.zeros((16 * task.small + 64, _STEP_WIDTH), dtype=np.int64),
        At.WEIGHT: arrays[At.WEIGHT_BEFORE],
        At.SUM: np.zeros(tables),
        At.SLOPE: np.zeros(tables),
        At.MARK_SUM: np.zeros(tables),
        At.LIMIT: np.full(buckets, inf),
        At.PRICE: np.zeros(heaps),
        At.MAY_COST: np.zeros(_OPTIONS),
    }
