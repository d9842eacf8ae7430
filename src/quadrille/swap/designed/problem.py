"""From the parameters of a designed swap and a file to tables, losses and movers; refuses what cannot be done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quadrille import kernels
from quadrille.data import Data, require_columns
from quadrille.errors import InputError, ParameterError, infeasible
from quadrille.expressions import Rules
from quadrille.kernels import At, Board, lay_out
from quadrille.kernels.designed.neighbours import CHI_SQUARE, HELLINGER, TOTAL_VARIATION
from quadrille.measure.base import Address
from quadrille.recipe import carried, refuse_fixed
from quadrille.swap.controlled.frame import flags_of
from quadrille.swap.groups import Ints, group_ids
from quadrille.swap.rules import Candidates, Forbidden, RuleCounts, count_pairs, rules_facts

if TYPE_CHECKING:
    from quadrille.swap.designed import DesignedSwap


@dataclass(frozen=True, eq=False)
class Limits:
    """The rules, and for each mover which records they keep from which values; nothing where there are no rules."""

    rules: Rules
    columns: tuple[tuple[str, ...], ...]
    forbidden: tuple[Forbidden, ...]

    @classmethod
    def of(cls, rules: Rules, movers: Sequence[tuple[str, ...]], columns: Sequence[tuple[str, ...]]) -> Limits:
        """Find out what the rules forbid; `movers` are the columns that decide the level, `columns` all that move."""
        for seen, moved in zip(movers, columns, strict=True):
            for name in moved:
                if name not in seen and rules.about([name]):
                    raise ParameterError(
                        f"A rule of DesignedSwap names {name!r}, which is carried along and in no protected table. "
                        "Name a table that has it with 'tables', or leave the rule out."
                    )
        made = tuple(Forbidden.of(rules, moved) for moved in columns) if rules else ()
        return cls(rules, tuple(columns), made)

    @property
    def patterns(self) -> list[tuple[Ints, int]]:
        """What records are to the rules, mover by mover: a further division of the base cells."""
        return [(each.pattern, len(each.creates)) for each in self.forbidden]

    def arrays(self, leader: Ints, level: Ints, levels: int) -> dict[At, NDArray[np.int64]]:
        """Lay out the patterns of base cells and levels, and which levels a pattern must not take."""
        movers, most = len(self.forbidden), max((len(each.creates) for each in self.forbidden), default=0)
        pattern = np.zeros((movers, len(leader)), dtype=np.int64)
        of_level = np.zeros((movers, levels), dtype=np.int64)
        table = np.zeros((movers, most, most), dtype=np.int64)
        for m, each in enumerate(self.forbidden):
            pattern[m] = each.pattern[leader]
            of_level[m, level[m]] = pattern[m]
            table[m, : len(each.creates), : len(each.creates)] = each.creates
        return {At.PATTERN: pattern, At.LEVEL_PATTERN: of_level, At.FORBIDDEN: table}

    def told(self, leader: Ints, level: Ints, klass: Ints, unlike: Ints, records: Ints) -> list[RuleCounts]:
        """Count the pairs of records that may be paired, but for the rules, and that the rules exclude."""
        found: list[RuleCounts] = []
        for m, moved in enumerate(self.columns if self.rules else ()):
            about = self.rules.about(moved)
            edits = about.edits(moved).take(leader)
            pairs = Candidates(klass, [level[m], *unlike], records, records, both=True)
            found.append(count_pairs(about, moved, edits, pairs))
        return found


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
class DesignedProblem:
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


def build(data: Data, task: Task, never: NDArray[np.bool_], limits: Limits) -> DesignedProblem:
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
    return DesignedProblem(lay_out(sizes, arrays), task, base, small, rest, rules_facts(limits.rules, told))


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


LOSSES = {
    "hellinger": HELLINGER,
    "total_variation": TOTAL_VARIATION,
    "effective_swap_rate": TOTAL_VARIATION,
    "chi_square": CHI_SQUARE,
}
"""Losses that are a sum over cells, or its root, and the number by which the kernels know them."""
Movers = tuple[tuple[str, ...], ...]


def problem_of(recipe: DesignedSwap, data: Data) -> tuple[DesignedProblem, NDArray[np.bool_]]:
    """Tabulate a file for a recipe; return also which records take no part."""
    for parameter in ("swap", "same", "different"):
        require_columns(data, getattr(recipe, parameter), f"'{parameter}' of DesignedSwap")
    require_columns(data, recipe.steering_columns, "'never' of DesignedSwap")
    protected = _tables(recipe, data)
    movers, columns = _movers(recipe, data, protected)
    views = _views(recipe, data, protected)
    task = Task(views, movers, columns, tuple(recipe.same), tuple(recipe.different), recipe.n, recipe.spread)
    never = flags_of(data, recipe.never, "never", "DesignedSwap")
    limits = Limits.of(Rules.of(data, recipe.rules, "DesignedSwap"), movers, columns)
    return build(data, task, never, limits), never


def _tables(recipe: DesignedSwap, data: Data) -> list[tuple[str, ...]]:
    """Return the protected tables."""
    tables = [tuple(table) for table in recipe.tables]
    for table in tables:
        require_columns(data, table, "'tables' of DesignedSwap")
    keys = tuple(name for name in data.keys if name not in recipe.steering_columns)
    found = tables or [keys]
    if not found[0]:
        raise InputError("The file has no key variable. Name categorical variables with 'tables' of DesignedSwap.")
    return list(dict.fromkeys(found))


def _movers(recipe: DesignedSwap, data: Data, protected: list[tuple[str, ...]]) -> tuple[Movers, Movers]:
    """Return the variables that each pair exchanges, as the tables see them, and all columns that go with them."""
    fixed = {*recipe.same, *recipe.different}
    inside = dict.fromkeys(name for table in protected for name in table)
    swap = tuple(recipe.swap) or tuple(name for name in inside if name not in fixed and name != data.weight)
    refuse_fixed(data, swap)
    for name in swap:
        if name not in inside:
            raise ParameterError(
                f"'swap' of DesignedSwap names {name!r}, which is in none of the protected tables: moving it protects "
                "nobody. Leave it out, or name a table that has it with 'tables'."
            )
    grouped = [tuple(group) for group in recipe.together]
    for name in (name for group in grouped for name in group):
        if name not in swap:
            raise ParameterError(f"'together' of DesignedSwap names {name!r}, which is not a swap variable.")
    alone = [(name,) for name in swap if not any(name in group for group in grouped)]
    whole = _united([(*mover, *carried(data, mover, recipe.same)) for mover in [*grouped, *alone]])
    seen = [tuple(name for name in mover if name in inside) for mover in whole]
    for mover in seen:
        if any(0 < len(set(mover) & set(table)) < len(mover) for table in protected):
            raise ParameterError(
                f"The columns {', '.join(mover)} move together, and one of the protected tables has some of them only. "
                "A table must have all of them or none."
            )
    several = [m for m, mover in enumerate(seen) if any(_varies(data, name) for name in mover)]
    if not several:
        raise infeasible(
            "Every variable that DesignedSwap may move has one category only in this file, so nothing can be swapped. "
            "Name other variables with 'swap' or 'tables'.",
            1,
            0,
            exact=True,
        )
    return tuple(seen[m] for m in several), tuple(whole[m] for m in several)


def _united(movers: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Unite movers that share a column."""
    made: list[tuple[str, ...]] = []
    for mover in movers:
        shared = [other for other in made if set(other) & set(mover)]
        made = [other for other in made if other not in shared]
        made.append(tuple(dict.fromkeys(name for each in (*shared, mover) for name in each)))
    return made


def _varies(data: Data, name: str) -> bool:
    values = data.coded(name, purpose="DesignedSwap").values
    return bool((values != values[0]).any())


def _views(recipe: DesignedSwap, data: Data, protected: list[tuple[str, ...]]) -> tuple[View, ...]:
    """Return the protected tables and those whose loss counts; a table with the same variables once."""
    losses = {recipe.loss: 1.0} if isinstance(recipe.loss, str) else dict(recipe.loss)
    views = {frozenset(table): View(table, protected=True, loss=0, importance=0.0) for table in protected}
    extra: list[View] = []
    for address, importance in losses.items():
        kind, margin = _loss(recipe, data, address)
        key = frozenset(margin)
        if key in views and views[key].loss == 0:
            views[key] = views[key]._replace(loss=kind, importance=importance)
        else:
            extra.append(View(margin, protected=False, loss=kind, importance=importance))
    return (*views.values(), *extra)


def _loss(recipe: DesignedSwap, data: Data, address: str) -> tuple[int, tuple[str, ...]]:
    call = Address.parse(address)
    if call.name not in LOSSES or call.where or call.options or call.models or call.margin == ("2-way",):
        raise ParameterError(
            f"'loss' of DesignedSwap has {address!r}. It takes {', '.join(LOSSES)}, each alone or with one margin, "
            'like "hellinger(Age*Sex)".'
        )
    margin = call.margin or tuple(name for name in data.keys if name not in recipe.steering_columns)
    require_columns(data, margin, "'loss' of DesignedSwap")
    return LOSSES[call.name], margin
