"""From a designed swap and a file to the cells that moves over cubes work on, and from their new counts to records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, groupby
from math import comb, prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quadrille import kernels
from quadrille.data import Combinations, Data, Floats, Ints
from quadrille.errors import ParameterError, infeasible
from quadrille.expressions import Rules, Where
from quadrille.kernels.designed import Rows, rows
from quadrille.kernels.designed.cubes import MOST_AXES, MOST_BLOCKS, UNLIMITED, CubeCell, Cubes, CubeTable
from quadrille.plan import Move
from quadrille.randomness import Chooser, Stream, Words, draw_until_enough
from quadrille.recipe import random_order
from quadrille.swap.controlled.frame import flags_of
from quadrille.swap.designed.problem import View, movers_of, protected_tables, views_of
from quadrille.swap.groups import codes_of, combinations_of, group_ids, sorted_by
from quadrille.swap.kept import kept_tables, named_variables

if TYPE_CHECKING:
    from quadrille.swap.designed import DesignedSwap


LISTED_KEYS = 1 << 20
"""Keys are listed one by one if they are no more than this, or than `LISTED_PER_CELL` for each cell; else hashed."""
LISTED_PER_CELL = 16
_MOST_KEYS = 1 << 62
_MOST_SETS = 1 << 18
NEW_CELLS, MORE_NEW_CELLS = 4, 1 << 16
"""Room for so many times as many new cells as there are occupied ones, and so many more."""

Names = tuple[str, ...]


class Axis(NamedTuple):
    """Columns that decide the level, all columns that go with them, and whether they move."""

    seen: Names
    columns: Names
    moves: bool


@dataclass(frozen=True, eq=False)
class CubeProblem:
    """The cells before anything has moved, and what leads back to the records.

    The first table has all axes; it holds the records, and moves start at its cells. Cells of all tables are numbered
    through, and so are their keys: those of table t begin at `first[t]` and at `first_key[t]`.
    """

    data: Data
    """The records, or the combinations of all columns that matter where no more of them is looked at."""
    cubes: Cubes
    axes: tuple[Axis, ...]
    views: tuple[View, ...]
    kept: tuple[Names, ...]
    first: tuple[int, ...]
    first_key: tuple[int, ...]
    base: Ints
    """[row of the data]: its cell in the first table."""
    free: NDArray[np.bool_]
    """[row of the data]: whether it may move."""
    home: Ints
    """[table, cell of the first table]: the cell in which it lies."""
    small: Ints
    """The small cells of the protected tables."""
    starts: NDArray[np.int32]
    """The cells of the first table that lie in them."""
    broken_before: tuple[tuple[str, int], ...]

    def cells_of(self, t: int, cubes: Cubes) -> Ints:
        """Return the cells of a table, and behind them those that arose after the first draw began."""
        new = np.arange(self.first[-1], int(cubes.progress[0]))
        key = cubes.cells["key"][new]
        mine = (key >= self.first_key[t]) & (key < self.first_key[t + 1])
        return np.concatenate((np.arange(self.first[t], self.first[t + 1]), new[mine]))


class Layout(NamedTuple):
    """What a recipe makes of a file before any record is counted: axes, tables that stay exact, tables seen, rules."""

    axes: tuple[Axis, ...]
    kept: tuple[Names, ...]
    views: tuple[View, ...]
    rules: Rules


def cube_problem(recipe: DesignedSwap, data: Data) -> CubeProblem:
    """Tabulate a file for a recipe."""
    recipe.check_columns(data)
    layout = layout_of(recipe, data)
    if data.ticks is None and not recipe.fit and not isinstance(data, Combinations):
        rules = (each.variable for conditions in layout.rules.conditions for each in conditions)
        never = () if recipe.never is None else (recipe.never,)
        named = {*(name for axis in layout.axes for name in axis.seen), *rules, *never, *recipe.same}
        data = combinations_of(data, [name for name in data.columns if name in named])
        layout = layout._replace(rules=layout.rules.on(data))
    return _Tabulation(recipe, data, layout).problem()


def layout_of(recipe: DesignedSwap, data: Data) -> Layout:
    """Return what moves and what stays; within `same` the kept tables are exact in each class."""
    protected = protected_tables(recipe, data)
    movers, moved = movers_of(recipe, data, protected)
    views = views_of(recipe, data, protected)
    rules = Rules.of(data, recipe.rules, recipe.method_name)
    inside = dict.fromkeys(name for table in protected for name in table)
    variables = tuple(dict.fromkeys((*inside, *sorted(named_variables(recipe.keep), key=data.columns.index))))
    tabulated = dict.fromkeys((*variables, *(name for view in views for name in view.variables), *recipe.same))
    # A level of geography that is carried along decides the level where a table or a rule is about it.
    decisive = {*tabulated, *(each.variable for conditions in rules.conditions for each in conditions)}
    axes = [
        Axis((*mover, *(name for name in columns if name in decisive and name not in mover)), columns, moves=True)
        for mover, columns in zip(movers, moved, strict=True)
    ]
    moving = {name for axis in axes for name in axis.columns}
    staying = tuple(name for name in tabulated if name not in moving)
    axes += [Axis((name,), (name,), moves=False) for name in staying]
    kept = kept_tables(recipe.keep, variables, fixed=staying)
    within = tuple((*table, *(name for name in recipe.same if name not in table)) for table in kept)
    return Layout(tuple(axes), tuple(dict.fromkeys(within)), views, rules)


class _Tabulation:
    """A file seen along axes."""

    def __init__(self, recipe: DesignedSwap, data: Data, layout: Layout) -> None:
        self._recipe, self._data, self._kept = recipe, data, layout.kept
        axes, rules = layout.axes, layout.rules
        self._moving = {name for axis in axes if axis.moves for name in axis.columns}
        self._about = [c for c in rules.conditions if any(each.variable in self._moving for each in c)]
        self._broken_before = tuple(zip(rules.texts, rules.before, strict=True))
        numbered = [self._ids(axis.seen) for axis in axes]
        pattern = self._patterns()
        if pattern[1] > 1:  # what of the rules is about columns that stay divides the records further
            axes, numbered = (*axes, Axis((), (), moves=False)), [*numbered, pattern]
        self._axes = axes
        self._level = [ids for ids, _ in numbered]
        self._sizes = np.array([size for _, size in numbered], dtype=np.int64)
        self._never = flags_of(data, recipe.never, "never", recipe.method_name)
        if len(axes) > MOST_AXES:
            raise ParameterError(
                f"The tables of {recipe.method_name} have {len(axes)} variables, and up to {MOST_AXES} can be treated "
                "together. Name fewer with 'tables'."
            )
        self._views = self._with_the_whole_first(layout.views)

    def _ids(self, names: Sequence[str]) -> tuple[Ints, int]:
        columns = [self._data.coded(name, purpose=self._recipe.method_name) for name in names]
        return group_ids([(column.values, column.size) for column in columns], self._data.n)

    def _patterns(self) -> tuple[Ints, int]:
        """Number what records are to the rules by the columns that stay with them."""
        bits = [
            (Where(tuple(c for c in about if c.variable not in self._moving)).met(self._data).astype(np.int64), 2)
            for about in self._about
        ]
        return group_ids(bits, self._data.n)

    def _with_the_whole_first(self, views: tuple[View, ...]) -> tuple[View, ...]:
        """Put the table of all axes before the others: one of them, or one that is neither protected nor of a loss."""
        names = {name for axis in self._axes for name in axis.seen}
        if all(axis.seen for axis in self._axes):
            for view in views:
                if names == set(view.variables):
                    return (view, *(other for other in views if other is not view))
        return (View((), protected=False, loss=0, importance=0.0), *views)

    def problem(self) -> CubeProblem:
        """Lay out the cells."""
        whole = prod(map(int, self._sizes))
        if whole >= _MOST_KEYS:
            raise ParameterError(
                f"The table of all variables of {self._recipe.method_name} has more than 4 * 10^18 cells. "
                "Protect tables of fewer variables, or merge categories."
            )
        strides = np.cumprod(np.append(1, self._sizes[:-1]))
        key = np.zeros(self._data.n, dtype=np.int64)
        for level, stride in zip(self._level, strides, strict=True):
            key += level * stride
        keys, leader, base = np.unique(key, return_index=True, return_inverse=True)
        held = self._records(base, len(keys))
        levels = np.stack([level[leader] for level in self._level], axis=1).astype(np.int32)

        level_from = np.cumsum(self._sizes) - self._sizes
        adds = np.zeros((len(self._views), int(self._sizes.sum())), dtype=np.int64)
        for a, (begin, size) in enumerate(zip(level_from.tolist(), self._sizes.tolist(), strict=True)):
            adds[0, begin : begin + size] = np.arange(size) * strides[a]
        first, first_key = [0, len(keys)], [0, whole]
        cell_keys, before, key_of, home = [keys], [held], [keys], [np.arange(len(keys))]
        for t, view in enumerate(self._views[1:], start=1):
            first_key.append(first_key[-1] + self._write_adds(adds[t], level_from, view))
            if first_key[-1] >= _MOST_KEYS:
                raise ParameterError(
                    f"The tables of {self._recipe.method_name} have too many cells. Name smaller ones."
                )
            own = first_key[t] + adds[t][level_from + levels].sum(axis=1)
            distinct, where = np.unique(own, return_inverse=True)
            home.append(first[t] + where)
            first.append(first[t] + len(distinct))
            cell_keys.append(distinct)
            before.append(np.bincount(where, weights=held, minlength=len(distinct)).astype(np.int64))
            key_of.append(own)
        masks = self._kept_axes()
        cells = self._cells(np.concatenate(cell_keys), np.concatenate(before), levels, base, first)
        cubes = self._cubes(cells, first, first_key, levels, np.stack(key_of), strides, level_from, adds, masks)
        small = self._small_cells(cells["before"], first)
        for t, view in enumerate(self._views):
            if view.protected:
                _, one = np.unique(home[t], return_index=True)  # a cell of the first table in each cell of this one
                parts = adds[t][level_from + levels[one]]
                cells["alone"][first[t] : first[t + 1]] = _alone(key_of[t][one], parts, before[t])
        starts = np.flatnonzero(np.isin(np.stack(home), small).any(axis=0))
        return CubeProblem(
            self._data,
            cubes,
            self._axes,
            self._views,
            self._kept,
            tuple(first),
            tuple(first_key),
            base.astype(np.int64),
            ~self._never,
            np.stack(home),
            small,
            starts.astype(np.int32),
            self._broken_before,
        )

    def _records(self, cell: Ints, cells: int, which: NDArray[np.bool_] | None = None) -> Ints:
        """Count the records of each cell, or those of some rows."""
        rows = slice(None) if which is None else which
        times = self._data.times[rows] if isinstance(self._data, Combinations) else None
        return np.bincount(cell[rows], weights=times, minlength=cells).astype(np.int64)

    def _write_adds(self, adds: Ints, level_from: Ints, view: View) -> int:
        """Write what each level of each axis adds to the key of a table; return the number of keys."""
        stride = 1
        for a, axis in enumerate(self._axes):
            inside = [name for name in axis.seen if name in view.variables]
            if inside:
                ids, count = (
                    (self._level[a], int(self._sizes[a])) if len(inside) == len(axis.seen) else self._ids(inside)
                )
                adds[level_from[a] + self._level[a]] = ids * stride
                stride *= count
        return stride

    def _cells(self, keys: Ints, before: Ints, levels: NDArray[np.int32], base: Ints, first: list[int]) -> Rows:
        """Return the cells of all tables, with how few and how many records they may hold, and room for new ones."""
        recipe, used = self._recipe, len(keys)
        makes_cells = recipe.makes_cells or not all(view.protected for view in self._views)
        cells = rows(CubeCell, used + (NEW_CELLS * used + MORE_NEW_CELLS if makes_cells else 0))
        cells["key"][:used], cells["before"][:used], cells["count"][:used] = keys, before, before
        cells["most"][:used] = UNLIMITED
        whole = cells[: first[1]]
        whole["least"] = self._records(base, len(whole), self._never)
        against = self._against_rules(levels)
        whole["most"][against] = whole["before"][against]
        for view, begin, end in zip(self._views, first[:-1], first[1:], strict=True):
            if view.protected:
                mine = cells[begin:end]
                small = mine["before"] < recipe.n
                mine["least"] = np.maximum(mine["least"], np.where(small, recipe.treatment == "camouflage", recipe.n))
                if recipe.treatment == "empty":
                    mine["most"][small] = mine["before"][small]
        return cells

    def _against_rules(self, levels: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Tell which cells of the first table meet a rule."""
        rules = self._rule_levels()
        meets = np.ones((len(rules), len(levels)), dtype=bool)
        for a in range(len(self._axes)):
            meets &= rules[:, a, levels[:, a]]
        return np.logical_or.reduce(meets, axis=0)

    def _rule_levels(self) -> NDArray[np.bool_]:
        """Tell, by rule, axis and level, whether the level meets what the rule says about the axis."""
        made = np.ones((len(self._about), len(self._axes), int(self._sizes.max())), dtype=np.bool_)
        for a, axis in enumerate(self._axes if self._about else ()):
            leader = np.zeros(int(self._sizes[a]), dtype=np.int64)
            leader[self._level[a]] = np.arange(self._data.n)
            for r, conditions in enumerate(self._about):
                own = [c for c in conditions if c.variable in axis.columns] if axis.moves else []
                if not axis.seen:  # the axis of patterns
                    own = [c for c in conditions if c.variable not in self._moving]
                if own:
                    made[r, a, : len(leader)] = Where(tuple(own)).met(self._data)[leader]
        return made

    def _kept_axes(self) -> list[int]:
        """Return the kept tables as bits of axes: those asked for, and that of all that stays with its record."""
        masks = [_mask(a for a, axis in enumerate(self._axes) if set(axis.seen) & set(table)) for table in self._kept]
        masks.append(_mask(a for a, axis in enumerate(self._axes) if not axis.moves))
        return _largest(masks)

    def _cubes(
        self,
        cells: Rows,
        first: list[int],
        first_key: list[int],
        levels: NDArray[np.int32],
        key_of: Ints,
        strides: Ints,
        level_from: Ints,
        adds: Ints,
        kept: list[int],
    ) -> Cubes:
        listed = first_key[-1] <= max(LISTED_KEYS, LISTED_PER_CELL * len(cells))
        places = first_key[-1] if listed else 1 << (2 * len(cells)).bit_length()
        near = [_neighbours(key_of[0] - adds[0][level_from[a] + levels[:, a]]) for a in range(len(self._axes))]
        cubes = Cubes(
            n=self._recipe.n,
            new_cells=self._recipe.new_cells,
            inference=float(self._recipe.inference),
            tables=rows(
                CubeTable,
                len(self._views),
                protected=[view.protected for view in self._views],
                loss=[view.loss for view in self._views],
                importance=[view.importance for view in self._views],
                total=self._data.records,
            ),
            sizes=self._sizes,
            strides=strides,
            level_from=level_from,
            adds=adds,
            cells=cells,
            cell_at=np.full(places, -1, dtype=np.int32),
            keys=np.zeros(0 if listed else places, dtype=np.int64),
            levels=levels,
            key_of=key_of,
            kept=np.array(kept, dtype=np.uint64),
            kept_axes=np.array([mask.bit_count() for mask in kept], dtype=np.int32),
            faces=self._faces(kept),
            order=np.stack([order for order, _, _ in near]),
            near_from=np.stack([begin for _, begin, _ in near]),
            near=np.stack([size for _, _, size in near]),
            rules=self._rule_levels(),
            progress=np.array([first[-1], 0], dtype=np.int64),
        )
        kernels.put_all(first[-1], cubes)
        return cubes

    def _faces(self, kept: list[int]) -> NDArray[np.int32]:
        """Return the smallest sets of axes that no kept table contains; refuse a file in which there are none."""
        listed = smallest_missing(kept, [a for a, size in enumerate(self._sizes.tolist()) if size > 1])
        if not listed:
            raise infeasible(
                f"'keep' of {self._recipe.method_name} keeps so many tables that no record can move. "
                'Keep less, such as "1-way", or swap more variables.',
                1,
                0,
                exact=True,
            )
        made = np.full((len(listed), max(map(len, listed))), -1, dtype=np.int32)
        for i, chosen in enumerate(listed):
            made[i, : len(chosen)] = chosen
        return made

    def _small_cells(self, before: Ints, first: list[int]) -> Ints:
        """Return the small cells of the protected tables; refuse a table without any cell that can give a record."""
        small: list[Ints] = []
        for view, begin, end in zip(self._views, first[:-1], first[1:], strict=True):
            if not view.protected:
                continue
            held, n = before[begin:end], self._recipe.n
            small.append(begin + np.flatnonzero(held < n))
            if len(small[-1]) and int(held.max()) <= n:
                raise infeasible(
                    f"No cell of the protected tables has more than n = {n} records, so none can give one without "
                    "becoming small itself. Lower 'n', or protect a table of fewer variables.",
                    1,
                    0,
                    exact=True,
                )
        return np.concatenate(small)


def _alone(keys: Ints, parts: Ints, before: Ints) -> Ints:
    """Count the axes that can be read off from the others: nobody else is alike in all but that one."""
    found = np.zeros(len(keys), dtype=np.int64)
    for part in parts.T:
        if part.any():
            _, group, size = np.unique(keys - part, return_inverse=True, return_counts=True)
            found += size[group] == 1
    return np.where(before == 1, found, 0)


def _neighbours(rest: Ints) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Sort cells by what they are without an axis; return the order, where each cell's neighbours begin, how many."""
    _, group, size = np.unique(rest, return_inverse=True, return_counts=True)
    first = np.cumsum(size) - size
    order = np.argsort(group, kind="stable")
    return order.astype(np.int32), first[group].astype(np.int32), size[group].astype(np.int32)


def _mask(axes: Iterable[int]) -> int:
    return sum(1 << a for a in axes)


def _largest(masks: Sequence[int]) -> list[int]:
    """Return the sets that are part of no other, the largest first."""
    made: list[int] = []
    distinct = sorted({mask for mask in masks if mask}, key=lambda mask: (-mask.bit_count(), mask))
    for _, equal in groupby(distinct, key=int.bit_count):
        larger = np.array(made, dtype=np.uint64)
        made += [mask for mask in equal if not (larger & np.uint64(mask) == mask).any()]
    return made


def smallest_missing(kept: Sequence[int], axes: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the smallest sets of these axes that no kept table contains, of up to `MOST_BLOCKS` axes.

    Where there are very many, those of more axes are left out.

    >>> from quadrille.swap.designed.lattice import smallest_missing
    >>> smallest_missing([0b011, 0b110], [0, 1, 2])
    [(0, 2)]
    """
    tables = [tuple(a for a in axes if mask >> a & 1) for mask in kept]
    listed: list[tuple[int, ...]] = []
    inside: set[tuple[int, ...]] = {(a,) for a in axes}
    for size in range(2, MOST_BLOCKS + 1):
        if min(sum(comb(len(table), size) for table in tables), comb(len(axes), size)) > _MOST_SETS:
            break
        larger = {chosen for table in tables for chosen in combinations(table, size)}
        for chosen in sorted(inside):
            for a in axes:
                more = (*chosen, a)
                if (
                    a > chosen[-1]
                    and more not in larger
                    and all(part in inside for part in combinations(more, size - 1))
                ):
                    listed.append(more)
        inside = larger
    return listed


_MATCHED = 2_000
"""So many records are matched to places at the least number of changed values; more than that in steps."""
_CANDIDATES = 256
"""So many records of a cell are compared, drawn at random where there are more."""


class Realisation:
    """Who stands in which cell, and how records are drawn from it."""

    def __init__(self, recipe: DesignedSwap, problem: CubeProblem) -> None:
        self._problem, data = problem, problem.data
        cells = len(problem.cubes.levels)
        self._weighted = data.ticks is not None
        self._order = np.empty(0, dtype=np.int64)
        if isinstance(data, Combinations):
            counts = np.bincount(problem.base, weights=data.times * problem.free, minlength=cells).astype(np.int64)
            self._start = np.concatenate(([0], np.cumsum(counts)))
            self._rows = partial(data.find, np.where(problem.free, problem.base, -1), self._start)
        else:
            rows = np.flatnonzero(problem.free)
            order, self._start = sorted_by(problem.base[rows], cells)
            self._order = rows[order]
            if data.ticks is not None:  # records of like weight hardly change weighted tables
                weight = data.ticks.values
                away = np.abs(weight - np.median(weight))
                self._order = self._order[np.lexsort((away[self._order], problem.base[self._order]))]
            self._rows = self._order.__getitem__
        self._moving = [a for a, axis in enumerate(problem.axes) if axis.moves]
        self._still = [a for a, axis in enumerate(problem.axes) if not axis.moves]
        leader = np.zeros(cells, dtype=np.int64)
        leader[problem.base] = np.arange(len(problem.base))
        same = [codes_of(data, name) for name in recipe.same]
        self._class, _ = group_ids([(codes[leader], count) for codes, count in same], cells)
        self._fit = _Fit(data, problem, recipe.fit) if recipe.fit else None

    def moves(self, cubes: Cubes, stream: Stream) -> list[Move]:
        """Return the moves that turn the records into those of the new table."""
        more = cubes.cells["count"].astype(np.int64) - cubes.cells["before"]
        first = self._problem.cells_of(0, cubes)
        leaving, arriving = first[more[first] < 0], first[more[first] > 0]
        leaving, arriving = np.repeat(leaving, -more[leaving]), np.repeat(arriving, more[arriving])
        leaving = leaving[random_order(len(leaving), stream.sub("leaving"))]
        arriving = arriving[random_order(len(arriving), stream.sub("arriving"))]
        before, after = self._levels(cubes, leaving), self._levels(cubes, arriving)
        place = self._matched(before, after)
        wanted = after[place]
        rows = self._drawn(leaving, before, wanted, stream)
        return [
            Move(self._problem.axes[a].columns, self._permuted(rows, leaving, before[:, a], wanted[:, a]))
            for a in self._moving
            if (before[:, a] != wanted[:, a]).any()
        ]

    def _levels(self, cubes: Cubes, cells: Ints) -> Ints:
        return cubes.cells["key"][cells][:, None] // cubes.strides[None, :] % cubes.sizes[None, :]

    def _matched(self, before: Ints, after: Ints) -> Ints:
        """Return for each record that leaves the place it takes: alike in all that stays, few values changed."""
        place = np.full(len(before), -1, dtype=np.int64)
        size = int(max(before.max(initial=0), after.max(initial=0))) + 1
        both = np.concatenate((before, after))

        def keys(axes: list[int]) -> tuple[Ints, Ints]:
            ids, _ = group_ids([(both[:, a], size) for a in axes], len(both))
            return ids[: len(before)], ids[len(before) :]

        if len(before) > _MATCHED:
            for without in [[a] for a in self._moving] + [[a, b] for a in self._moving for b in self._moving if a < b]:
                free, open_ = np.flatnonzero(place < 0), _open(place, len(after))
                mine, theirs = keys([a for a in range(both.shape[1]) if a not in without])
                _join(mine[free], theirs[open_], free, open_, place)
        mine, theirs = keys(self._still)
        free, open_ = np.flatnonzero(place < 0), _open(place, len(after))
        free, open_ = free[np.argsort(mine[free], kind="stable")], open_[np.argsort(theirs[open_], kind="stable")]
        cuts = np.flatnonzero(np.diff(mine[free])) + 1
        for left, right in zip(np.split(free, cuts), np.split(open_, cuts), strict=True):
            for at in range(0, len(left), _MATCHED):
                some, others = left[at : at + _MATCHED], right[at : at + _MATCHED]
                place[some] = others[_assigned(before[some][:, self._moving], after[others][:, self._moving])]
        return place

    def _drawn(self, cells: Ints, before: Ints, wanted: Ints, stream: Stream) -> Ints:
        """Draw a record of each of these cells; nobody twice."""
        if self._fit is not None:
            return self._fit.drawn(cells, before, wanted, self._order, self._start, Chooser(stream.sub("records")))
        available = np.diff(self._start)
        if self._weighted:
            available = np.minimum(available, 3 * np.bincount(cells, minlength=len(available)))

        def attempt(words: Words) -> Ints | None:
            dice, places = kernels.dice(words), np.empty(len(cells), dtype=np.int64)
            kernels.draw_places(cells, self._start, available.copy(), places, dice)
            return None if dice.cursor[1] else places

        return self._rows(draw_until_enough(attempt, stream.sub("records"), 2 * len(cells) + 64))

    def _permuted(self, rows: Ints, cells: Ints, has: Ints, needs: Ints) -> tuple[Ints, Ints]:
        """Return who receives a value and from whom, among the records of these cells that need another one."""
        changed = has != needs
        rows, has, needs = rows[changed], has[changed], needs[changed]
        group = self._class[cells[changed]]
        receivers, givers = np.lexsort((needs, group)), np.lexsort((has, group))
        return rows[receivers], rows[givers]


class _Fit:
    """How well the other columns of a record fit a place: products of odds from tables of two variables."""

    def __init__(self, data: Data, problem: CubeProblem, names: Sequence[str]) -> None:
        coded = [codes_of(data, name) for name in names]
        self._codes = [codes.astype(np.int64) for codes, _ in coded]
        self._pairs: dict[tuple[int, int], Floats] = {}
        for w, (codes, (_, size)) in enumerate(zip(self._codes, coded, strict=True)):
            for a, axis in enumerate(problem.axes):
                if axis.moves:
                    width = int(problem.cubes.sizes[a])
                    ids = codes * width + problem.cubes.levels[problem.base, a]
                    records = np.bincount(ids, minlength=size * width).reshape(size, width)
                    self._pairs[w, a] = records.astype(np.float64) + 0.5

    def drawn(self, cells: Ints, before: Ints, wanted: Ints, order: Ints, start: Ints, chooser: Chooser) -> Ints:
        """Draw a record of each cell, in proportion to how well it fits the place it is to take."""
        left = {int(cell): order[start[cell] : start[cell + 1]] for cell in np.unique(cells)}
        rows = np.empty(len(cells), dtype=np.int64)
        for i, cell in enumerate(cells.tolist()):
            here = left[cell]
            picked = np.arange(len(here))
            if len(here) > _CANDIDATES:
                picked = np.unique([chooser.below(len(here)) for _ in range(_CANDIDATES)])
            odds = np.ones(len(picked))
            for a in np.flatnonzero(before[i] != wanted[i]).tolist():
                for w, codes in enumerate(self._codes):
                    pair = self._pairs[w, a][codes[here[picked]]]
                    odds *= pair[:, wanted[i, a]] / pair[:, before[i, a]]
            edges: Floats = np.cumsum(odds)
            dice = (chooser.below(1 << 32) + 0.5) / (1 << 32)
            at = picked[int(np.searchsorted(edges, dice * float(edges[-1])))]
            rows[i] = here[at]
            left[cell] = np.delete(here, at)
        return rows


def _open(place: Ints, count: int) -> Ints:
    """Return the places that are not taken."""
    taken = np.zeros(count, dtype=bool)
    taken[place[place >= 0]] = True
    return np.flatnonzero(~taken)


def _join(mine: Ints, theirs: Ints, free: Ints, open_: Ints, place: Ints) -> None:
    """Give records places of the same key, one each, as far as both go."""
    mine_order, their_order = np.argsort(mine, kind="stable"), np.argsort(theirs, kind="stable")
    mine_sorted, their_sorted = mine[mine_order], theirs[their_order]
    rank = np.arange(len(mine)) - np.searchsorted(mine_sorted, mine_sorted, side="left")
    first = np.searchsorted(their_sorted, mine_sorted, side="left")
    size = np.searchsorted(their_sorted, mine_sorted, side="right") - first
    found = rank < size
    place[free[mine_order[found]]] = open_[their_order[(first + rank)[found]]]


def _assigned(before: Ints, after: Ints) -> Ints:
    """Match rows one to one with the least number of differing values."""
    from scipy.optimize import linear_sum_assignment

    differ = np.zeros((len(before), len(after)), dtype=np.int8)
    for a in range(before.shape[1]):
        differ += before[:, a][:, None] != after[:, a][None, :]
    _, place = linear_sum_assignment(differ)
    return np.asarray(place, dtype=np.int64)
