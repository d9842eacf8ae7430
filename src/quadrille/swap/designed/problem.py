"""From the parameters of a designed swap and a file to tables, losses and movers; refuses what cannot be done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quadrille import kernels
from quadrille.data import Data, Floats, Ints, require_columns
from quadrille.errors import InputError, ParameterError, infeasible
from quadrille.expressions import Rules
from quadrille.kernels.designed import (
    BaseCell,
    BaseLevel,
    Block,
    Bucket,
    Cell,
    Entry,
    Filler,
    Fillers,
    Lattice,
    NeededMove,
    Neighbour,
    Option,
    Place,
    Progress,
    Rows,
    SmallCell,
    State,
    Step,
    Stock,
    Table,
    Totals,
    Treatments,
    row,
    rows,
)
from quadrille.kernels.designed.neighbours import CHI_SQUARE, CLOSED, HELLINGER, TOTAL_VARIATION
from quadrille.measure.base import Address
from quadrille.recipe import carried, refuse_fixed
from quadrille.swap.controlled.frame import flags_of
from quadrille.swap.groups import group_ids
from quadrille.swap.pairing import Candidates, Forbidden, RuleCounts, count_pairs, rules_facts

if TYPE_CHECKING:
    from quadrille.swap.designed.pairs import DesignedPairs


_MOST_BUCKETS = 1 << 26
_ROOM = 512
_HEAPS = 1 << 25
_OPTIONS = 4096


@dataclass(frozen=True, eq=False)
class RuleFilter:
    """The rules, and for each mover which records they keep from which values; nothing where there are no rules."""

    rules: Rules
    columns: tuple[tuple[str, ...], ...]
    forbidden: tuple[Forbidden, ...]

    @classmethod
    def of(cls, rules: Rules, movers: Sequence[tuple[str, ...]], columns: Sequence[tuple[str, ...]]) -> RuleFilter:
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
        return [(forbidden.pattern, len(forbidden.creates)) for forbidden in self.forbidden]

    def tables(self, leader: Ints, level: Ints, levels: int) -> tuple[Ints, Ints, NDArray[np.bool_]]:
        """Return, by mover, the patterns of base cells and of levels, and which patterns one must not take."""
        most = max((count for _, count in self.patterns), default=0)
        pattern = np.zeros_like(level)
        of_level = np.zeros((len(level), levels), dtype=np.int64)
        table = np.zeros((len(level), most, most), dtype=np.bool_)
        for m, (forbidden, size) in enumerate(zip(self.forbidden, (count for _, count in self.patterns), strict=True)):
            pattern[m] = forbidden.pattern[leader]
            of_level[m, level[m]] = pattern[m]
            table[m, :size, :size] = forbidden.creates
        return pattern, of_level, table

    def counts(self, leader: Ints, level: Ints, class_: Ints, different: Ints, records: Ints) -> list[RuleCounts]:
        """Count the pairs of records that may be paired, but for the rules, and that the rules exclude."""
        counts: list[RuleCounts] = []
        for m, moved in enumerate(self.columns if self.rules else ()):
            about = self.rules.about(moved)
            edits = about.edits(moved).take(leader)
            pairs = Candidates(class_, [level[m], *different], records, records, both=True)
            counts.append(count_pairs(about, moved, edits, pairs))
        return counts


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
    """The state before anything has moved, and what leads back to the records.

    `base` is the base cell of each record, `small` the small cells, and `rest[m]` numbers what a base cell is without
    mover m. `rules` is what a plan reports of its plausibility rules.
    """

    state: State
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


class _Bases(NamedTuple):
    """The base cells: their columns, records and weight, class, and the levels of each mover."""

    cells: _Cells
    records: Ints
    weight: Floats
    class_: Ints
    classes: int
    level: Ints
    """[mover, base cell]."""
    levels: list[int]
    """[mover]: how many."""


class _Table:
    """The cells of one table and who neighbours whom in each mover; cells are numbered from `offset`."""

    def __init__(self, bases: _Bases, view: View, movers: Sequence[tuple[str, ...]], offset: int) -> None:
        cell, self.cells = bases.cells.ids(view.variables)
        leader = _leaders(cell, self.cells)
        inside, shape = bases.cells.at(leader), (len(movers), self.cells)
        self.cell_of = cell + offset
        self.seen_level = np.zeros((len(movers), max(bases.levels)), dtype=np.int64)
        self.places, self.neighbours = rows(Place, shape), rows(Neighbour, shape)
        for m, mover in enumerate(movers):
            part = [name for name in mover if name in view.variables]
            seen = bases.level[m] if len(part) == len(mover) else bases.cells.ids(part)[0]
            self.seen_level[m, bases.level[m]] = seen
            level = seen[leader]
            rest, groups = inside.ids([name for name in view.variables if name not in mover])
            order, size = np.lexsort((level, rest)), np.bincount(rest, minlength=groups)
            # A neighbourhood is a stretch of the mover's row of neighbours: the cells that are alike in the rest.
            first = offset + np.cumsum(size) - size
            for name, values in (("level", level), ("first", first[rest]), ("size", size[rest])):
                self.places[name][m] = values
            self.neighbours["level"][m], self.neighbours["cell"][m] = level[order], order + offset


def build(data: Data, task: Task, never: NDArray[np.bool_], rule_filter: RuleFilter) -> DesignedProblem:
    """Tabulate a file once, find the neighbours of all cells, and lay out the state."""
    names = tuple(dict.fromkeys([*(v for view in task.views for v in view.variables), *task.same, *task.different]))
    columns = [data.coded(name, purpose="DesignedSwap") for name in names]
    base, count = group_ids([*((column.values, column.size) for column in columns), *rule_filter.patterns], data.n)
    leader = _leaders(base, count)
    cells = _Cells(
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
    numbered = [cells.ids(mover) for mover in task.movers]
    level, levels = np.stack([ids for ids, _ in numbered]), [size for _, size in numbered]
    bases = _Bases(cells, records, weight, *cells.ids(task.same), level, levels)
    different = np.array([cells.ids([name])[0] for name in task.different], dtype=np.int64).reshape(-1, count)
    counts = rule_filter.counts(leader, level, bases.class_, different, records)
    lattice, bases_of = _lattice(bases, task, rule_filter.tables(leader, level, max(levels)))
    lattice.bases["free"] -= np.bincount(base[never], minlength=count)
    small = _small_cells(lattice)
    lattice.totals["exposed"] = lattice.cells["before"][small].sum()
    state = State(
        lattice, _fillers(bases, different, 2 * task.small * (len(small) + 2)), _treatments(task, small, bases_of)
    )
    rest = np.stack([cells.ids([name for name in names if name not in mover])[0] for mover in task.movers])
    return DesignedProblem(state, task, base, small, rest, rules_facts(rule_filter.rules, counts))


def _leaders(ids: Ints, count: int) -> Ints:
    """Return a member of each group."""
    leader = np.zeros(count, dtype=np.int64)
    leader[ids] = np.arange(len(ids))
    return leader


def _small_cells(lattice: Lattice) -> Ints:
    """Return the small cells of the protected tables; refuse a file without any cell that can give a record."""
    n, before = lattice.n, lattice.cells["before"]
    protected = lattice.tables["protected"][lattice.cells["table"]] > 0
    small = np.flatnonzero(protected & (before < n))
    if len(small) and int(before[protected].max()) <= n:
        raise infeasible(
            f"No cell of the protected tables has more than n = {n} records, so none can give one without becoming "
            "small itself. Lower 'n', or protect a table of fewer variables.",
            1,
            0,
            exact=True,
        )
    return small


def _lattice(bases: _Bases, task: Task, rules: tuple[Ints, Ints, NDArray[np.bool_]]) -> tuple[Lattice, Ints]:
    """Return the lattice with nothing moved, and the base cells of each cell, table after table."""
    tables: list[_Table] = []
    for view in task.views:
        tables.append(_Table(bases, view, task.movers, sum(table.cells for table in tables)))
    cell_of = np.stack([table.cell_of for table in tables])
    sizes = [table.cells for table in tables]
    count = sum(sizes)

    ends = np.cumsum(np.bincount(cell_of.ravel(), minlength=count))
    records, weight = (
        np.bincount(cell_of.ravel(), weights=np.tile(values, len(tables)), minlength=count)
        for values in (bases.records, bases.weight)
    )
    pattern, level_pattern, forbidden = rules
    lattice = Lattice(
        n=task.small,
        tables=rows(
            Table,
            len(tables),
            protected=[view.protected for view in task.views],
            loss=[view.loss for view in task.views],
            importance=[view.importance for view in task.views],
            total=bases.weight.sum(),
        ),
        cells=rows(
            Cell,
            count,
            table=np.repeat(np.arange(len(tables)), sizes),
            before=records,
            weight_before=weight,
            count=records,
            weight=weight,
            bases_from=np.append(0, ends[:-1]),
            bases_to=ends,
        ),
        bases=rows(
            BaseCell,
            bases.cells.count,
            class_=bases.class_,
            mean_weight=bases.weight / bases.records,
            free=bases.records,
        ),
        cell_of=cell_of.astype(np.int32),
        seen_level=np.stack([table.seen_level for table in tables]).astype(np.int32),
        base_levels=rows(BaseLevel, bases.level.shape, level=bases.level, pattern=pattern),
        places=np.concatenate([table.places for table in tables], axis=1),
        neighbours=np.concatenate([table.neighbours for table in tables], axis=1),
        level_pattern=level_pattern.astype(np.int32),
        forbidden=forbidden,
        totals=row(Totals),
    )
    return lattice, np.argsort(cell_of, axis=1, kind="stable").ravel()


def _blocks(bases: _Bases) -> tuple[Rows, Ints]:
    """Sort the base cells by class and level for each mover, and number the buckets; return also the base cells."""
    by_block: list[Ints] = []
    blocks: list[Rows] = []
    for m, level in enumerate(bases.level):
        key = (m * bases.classes + bases.class_) * max(bases.levels) + level
        by_block.append(np.argsort(key, kind="stable"))
        distinct, first = np.unique(key[by_block[-1]], return_index=True)
        end = np.append(first[1:], len(level))
        blocks.append(rows(Block, len(distinct), key=distinct, first=first, end=end, buckets_to=bases.levels[m]))
    made = np.concatenate(blocks)
    buckets = made["buckets_to"].copy()  # so far the number of each block's own
    made["buckets_to"] = np.cumsum(buckets)
    made["buckets_from"] = made["buckets_to"] - buckets
    return made, np.stack(by_block)


def _fillers(bases: _Bases, different: Ints, slots: int) -> Fillers:
    """Return the moves there are to choose from, with none in use, and room for `slots` of them."""
    blocks, by_block = _blocks(bases)
    buckets = int(blocks["buckets_to"][-1])
    if buckets > _MOST_BUCKETS:
        raise ParameterError(
            "The variables of DesignedSwap have too many levels for so many classes of 'same'. "
            "Name fewer columns in 'same', or leave out the swap variable with the most levels."
        )
    widest = int(kernels.room_for(int((blocks["end"] - blocks["first"]).max()), _ROOM))
    return Fillers(
        classes=bases.classes,
        levels=max(bases.levels),
        room=_ROOM,
        blocks=blocks,
        by_block=by_block.astype(np.int32),
        different=different.astype(np.int32),
        buckets=rows(Bucket, buckets, length=CLOSED, newest=-1, limit=inf),
        heap=rows(Entry, max(min(_HEAPS, widest * buckets), widest)),
        slots=rows(Filler, slots, older=np.arange(1, slots + 1)),
        stock=row(Stock),
    )


def _treatments(task: Task, small: Ints, bases_of: Ints) -> Treatments:
    return Treatments(
        spread=float(task.spread),
        bases_of=bases_of.astype(np.int32),
        small_cells=rows(SmallCell, len(small), cell=small),
        moves=rows(NeededMove, (len(small), task.small)),
        options=rows(Option, _OPTIONS),
        log=rows(Step, 16 * task.small + 64),
        progress=row(Progress),
    )


LOSSES = {
    "hellinger": HELLINGER,
    "total_variation": TOTAL_VARIATION,
    "effective_swap_rate": TOTAL_VARIATION,
    "chi_square": CHI_SQUARE,
}
"""Losses that are a sum over cells, or its root, and the number by which the kernels know them."""
Movers = tuple[tuple[str, ...], ...]


def problem_of(recipe: DesignedPairs, data: Data) -> tuple[DesignedProblem, NDArray[np.bool_]]:
    """Tabulate a file for a recipe; return also which records take no part."""
    recipe.check_columns(data)
    protected = protected_tables(recipe, data)
    movers, columns = movers_of(recipe, data, protected)
    views = views_of(recipe, data, protected)
    task = Task(views, movers, columns, tuple(recipe.same), tuple(recipe.different), recipe.n, recipe.spread)
    never = flags_of(data, recipe.never, "never", "DesignedSwap")
    rule_filter = RuleFilter.of(Rules.of(data, recipe.rules, "DesignedSwap"), movers, columns)
    return build(data, task, never, rule_filter), never


def protected_tables(recipe: DesignedPairs, data: Data) -> list[tuple[str, ...]]:
    """Return the protected tables."""
    tables = [tuple(table) for table in recipe.tables]
    keys = tuple(name for name in data.keys if name not in recipe.left_out)
    found = tables or [keys]
    if not found[0]:
        raise InputError(
            "The file has no key variable. Name categorical variables with 'tables' of DesignedSwap, or give columns "
            "the role key in the codebook, with bands where they hold many numbers."
        )
    return list(dict.fromkeys(found))


def movers_of(recipe: DesignedPairs, data: Data, protected: list[tuple[str, ...]]) -> tuple[Movers, Movers]:
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


def views_of(recipe: DesignedPairs, data: Data, protected: list[tuple[str, ...]]) -> tuple[View, ...]:
    """Return the protected tables and those whose loss counts; a table with the same variables once."""
    losses = {recipe.loss: 1.0} if isinstance(recipe.loss, str) else dict(recipe.loss)
    views = {frozenset(table): View(table, protected=True, loss=0, importance=0.0) for table in protected}
    extra: list[View] = []
    for address, importance in losses.items():
        kind, margins = _loss(recipe, data, address, protected)
        for margin in margins:
            key, part = frozenset(margin), importance / len(margins)
            if key in views and views[key].loss == 0:
                views[key] = views[key]._replace(loss=kind, importance=part)
            else:
                extra.append(View(margin, protected=False, loss=kind, importance=part))
    return (*views.values(), *extra)


def _loss(
    recipe: DesignedPairs, data: Data, address: str, protected: list[tuple[str, ...]]
) -> tuple[int, list[tuple[str, ...]]]:
    """Return a loss and its table; without one, the protected tables, of the first version that of all keys."""
    call = Address.parse(address)
    if call.name not in LOSSES or call.where or call.options or call.models or call.margin == ("2-way",):
        raise ParameterError(
            f"'loss' of DesignedSwap has {address!r}. It takes {', '.join(LOSSES)}, each alone or with one margin, "
            'like "hellinger(Age*Sex)".'
        )
    if not call.margin and recipe.version > 1:
        return LOSSES[call.name], list(protected)
    margin = call.margin or tuple(name for name in data.keys if name not in recipe.left_out)
    require_columns(data, margin, "'loss' of DesignedSwap")
    return LOSSES[call.name], [margin]
