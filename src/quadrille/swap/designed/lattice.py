"""From a designed swap and a file to the cells that moves over cubes work on, and the tables they keep.

Axes are what can differ between the corners of a cube: the variables that move, those that move as one being one axis,
and the variables of the tables that stay with their record. The joint table of all that stays is kept by any swap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quadrille import kernels
from quadrille.data import Data
from quadrille.errors import ParameterError, infeasible
from quadrille.expressions import Rules, Where
from quadrille.kernels.designed.cubes import MOST_AXES, MOST_BLOCKS, CubeCell, Cubes, CubeTable
from quadrille.kernels.designed.state import rows
from quadrille.swap.controlled.frame import flags_of
from quadrille.swap.designed.problem import View, movers_of, protected_tables, views_of
from quadrille.swap.groups import Ints, group_ids
from quadrille.swap.kept import kept_tables, named_variables

if TYPE_CHECKING:
    from quadrille.swap.designed import DesignedSwap

_LISTED_KEYS = 1 << 25
_MOST_KEYS = 1 << 62
_MOST_SETS = 1 << 16
_NEW_CELLS = 4
"""Room for so many times as many new cells as there are occupied ones."""


class Axis(NamedTuple):
    """Columns that decide the level, all columns that go with them, and whether they move."""

    seen: tuple[str, ...]
    columns: tuple[str, ...]
    moves: bool


@dataclass(frozen=True, eq=False)
class CubeProblem:
    """The cells before anything has moved, and what leads back to the records.

    `base` is the cell of each record in the first table and `free` who may move. `small` are the cells of the first
    table that lie in a small cell of a protected table; `home[t]` is the cell of table t in which each of them lies.
    """

    cubes: Cubes
    axes: tuple[Axis, ...]
    views: tuple[View, ...]
    kept: tuple[tuple[str, ...], ...]
    variables: tuple[str, ...]
    base: Ints
    free: NDArray[np.bool_]
    small: NDArray[np.int32]
    home: Ints
    broken_before: tuple[tuple[str, int], ...]


def cube_problem(recipe: DesignedSwap, data: Data) -> CubeProblem:
    """Tabulate a file for a recipe."""
    recipe.check_columns(data)
    axes, kept, variables = axes_of(recipe, data)
    views = views_of(recipe, data, protected_tables(recipe, data))
    rules = Rules.of(data, recipe.rules, recipe.method_name)
    return _Builder(recipe, data, axes, views, rules).built(kept, variables)


def axes_of(recipe: DesignedSwap, data: Data) -> tuple[tuple[Axis, ...], tuple[tuple[str, ...], ...], tuple[str, ...]]:
    """Return the axes, the tables that are kept, and the variables of the protected and of the kept tables."""
    protected = protected_tables(recipe, data)
    seen, whole = movers_of(recipe, data, protected)
    views = views_of(recipe, data, protected)
    moving = {name for mover in seen for name in mover}
    inside = dict.fromkeys(name for table in protected for name in table)
    variables = tuple(dict.fromkeys((*inside, *sorted(named_variables(recipe.keep), key=data.columns.index))))
    named = (*variables, *(name for view in views for name in view.variables), *recipe.same)
    staying = tuple(dict.fromkeys(name for name in named if name not in moving))
    axes = [Axis(each, all_of_it, moves=True) for each, all_of_it in zip(seen, whole, strict=True)]
    axes += [Axis((name,), (name,), moves=False) for name in staying]
    return tuple(axes), kept_tables(recipe.keep, variables, fixed=staying), variables


class _Builder:
    """What the steps of tabulating share."""

    def __init__(
        self, recipe: DesignedSwap, data: Data, axes: tuple[Axis, ...], views: tuple[View, ...], rules: Rules
    ) -> None:
        self.recipe, self.data, self.views, self.rules = recipe, data, views, rules
        moving = {name for axis in axes if axis.moves for name in axis.columns}
        numbered = [self._ids(axis.seen) for axis in axes]
        pattern = self._patterns(moving)
        if pattern[1] > 1:  # what of the rules is about columns that stay divides the records further
            axes, numbered = (*axes, Axis((), (), moves=False)), [*numbered, pattern]
        self.axes = axes
        self.level = [ids for ids, _ in numbered]
        self.sizes = np.array([size for _, size in numbered], dtype=np.int64)
        self.never = flags_of(data, recipe.never, "never", recipe.method_name)
        if len(axes) > MOST_AXES:
            raise ParameterError(
                f"The tables of {recipe.method_name} have {len(axes)} variables, and up to {MOST_AXES} can be treated "
                "together. Name fewer with 'tables'."
            )

    def _ids(self, names: Sequence[str]) -> tuple[Ints, int]:
        columns = [self.data.coded(name, purpose=self.recipe.method_name) for name in names]
        return group_ids([(column.values, column.size) for column in columns], self.data.n)

    def _patterns(self, moving: set[str]) -> tuple[Ints, int]:
        """Number what records are to the rules by the columns that stay with them."""
        bits = [
            (Where(tuple(c for c in conditions if c.variable not in moving)).met(self.data).astype(np.int64), 2)
            for conditions in self.rules.conditions
            if any(c.variable in moving for c in conditions)
        ]
        return group_ids(bits, self.data.n)

    def built(self, kept: tuple[tuple[str, ...], ...], variables: tuple[str, ...]) -> CubeProblem:
        """Lay out the cells."""
        data, sizes, count = self.data, self.sizes, len(self.axes)
        keys_of_all = prod(int(size) for size in sizes)
        if keys_of_all >= _MOST_KEYS:
            raise ParameterError(
                f"The table of all variables of {self.recipe.method_name} has more than 4 * 10^18 cells. "
                "Protect tables of fewer variables, or merge categories."
            )
        strides = np.zeros((1 + len(self.views), count), dtype=np.int64)
        strides[0] = np.cumprod(np.append(1, sizes[:-1]))
        key = sum((level * stride for level, stride in zip(self.level, strides[0], strict=True)), np.int64(0))
        codes, first, base, held = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
        levels = np.stack([level[first] for level in self.level], axis=1).astype(np.int32)

        tables, cell_keys, befores = [View((), protected=False, loss=0, importance=0.0)], [codes], [held]
        key_of, start = [codes], keys_of_all
        for view in self.views:
            inside = [a for a, axis in enumerate(self.axes) if set(axis.seen) & set(view.variables)]
            if len(inside) == count and not tables[0].protected and tables[0].loss == 0:  # the table of all axes is this one
                tables[0] = view
                continue
            t = len(tables)
            strides[t, inside] = np.cumprod(np.append(1, sizes[inside][:-1]))
            own = start + levels[:, inside].astype(np.int64) @ strides[t, inside]
            distinct, where = np.unique(own, return_inverse=True)
            tables.append(view)
            key_of.append(own)
            cell_keys.append(distinct)
            befores.append(np.bincount(where, weights=held, minlength=len(distinct)).astype(np.int64))
            start += prod(int(size) for size in sizes[inside])
            if start >= _MOST_KEYS:
                raise ParameterError(f"The tables of {self.recipe.method_name} have too many cells. Name smaller ones.")
        cubes = self._cubes(tables, strides[: len(tables)], cell_keys, befores, np.stack(key_of), levels, start)
        self._limit(cubes, tables, cell_keys, base, len(codes))
        masks = self._kept_axes(kept)
        cubes = cubes._replace(kept=np.array(masks, dtype=np.uint64), faces=_faces(masks, count, self.recipe.method_name))
        home = np.stack([np.arange(len(codes)), *(_places(cell_keys, t, key_of[t]) for t in range(1, len(tables)))])
        small = np.zeros(len(codes), dtype=bool)
        for t, view in enumerate(tables):
            if view.protected:
                small |= cubes.cells["before"][home[t]] < self.recipe.n
        self._refuse_hopeless(cubes, tables, home)
        return CubeProblem(
            cubes,
            self.axes,
            tuple(tables),
            kept,
            variables,
            base.astype(np.int64),
            ~self.never,
            np.flatnonzero(small).astype(np.int32),
            home,
            tuple(zip(self.rules.texts, self.rules.before, strict=True)),
        )

    def _cubes(
        self,
        tables: list[View],
        strides: Ints,
        cell_keys: list[Ints],
        befores: list[Ints],
        key_of: Ints,
        levels: NDArray[np.int32],
        keys: int,
    ) -> Cubes:
        used = sum(len(each) for each in cell_keys)
        room = used + (_NEW_CELLS * used + (1 << 16) if self.recipe.makes_cells else 0)
        listed = keys <= _LISTED_KEYS
        places = keys if listed else 1 << int(2 * room).bit_length()
        before = np.concatenate(befores)
        cells = rows(CubeCell, room)
        known = {"key": np.concatenate(cell_keys), "before": before, "count": before, "gains": 1, "loses": 1}
        for name, values in known.items():
            cells[name][:used] = values
        near = [_neighbours(self.level_keys(levels, strides[0], a)) for a in range(len(self.axes))]
        cubes = Cubes(
            n=self.recipe.n,
            new_cells=self.recipe.new_cells,
            tables=rows(
                CubeTable,
                len(tables),
                protected=[view.protected for view in tables],
                loss=[view.loss for view in tables],
                importance=[view.importance for view in tables],
                total=self.data.n,
            ),
            strides=strides,
            sizes=self.sizes,
            cells=cells,
            index=np.full(places, -1, dtype=np.int32),
            keys=np.empty(0 if listed else places, dtype=np.int64),
            levels=levels,
            key_of=key_of,
            kept=np.empty(0, dtype=np.uint64),
            faces=np.empty((0, 0), dtype=np.int32),
            order=np.stack([each[0] for each in near]),
            near_from=np.stack([each[1] for each in near]),
            near=np.stack([each[2] for each in near]),
            rules=self._rule_levels(),
            progress=np.array([used, 0], dtype=np.int64),
        )
        kernels.put_all(used, cubes)
        return cubes

    def _kept_axes(self, kept: tuple[tuple[str, ...], ...]) -> list[int]:
        """Return the kept tables as bits of axes: those asked for, and those that every swap keeps.

        Records exchange a variable within the classes of `same`, so its table with these is kept; and so is the table
        of all that stays with its record.
        """
        moving = [axis.seen for axis in self.axes if axis.moves]
        tables = [*kept, *((*self.recipe.same, *mover) for mover in moving)]
        masks = [sum(1 << a for a, axis in enumerate(self.axes) if set(axis.seen) & set(table)) for table in tables]
        masks.append(sum(1 << a for a, axis in enumerate(self.axes) if not axis.moves))
        return _largest(masks)

    @staticmethod
    def level_keys(levels: NDArray[np.int32], strides: Ints, axis: int) -> Ints:
        """Return the key of each cell without one axis."""
        rest = strides.copy()
        rest[axis] = 0
        return levels.astype(np.int64) @ rest

    def _rule_levels(self) -> NDArray[np.bool_]:
        """Tell, by rule, axis and level, whether the level meets what the rule says about the axis."""
        moving = {name for axis in self.axes if axis.moves for name in axis.columns}
        about = [c for c in self.rules.conditions if any(each.variable in moving for each in c)]
        made = np.ones((len(about), len(self.axes), int(self.sizes.max())), dtype=np.bool_)
        for a, axis in enumerate(self.axes):
            leader = np.zeros(int(self.sizes[a]), dtype=np.int64)
            leader[self.level[a]] = np.arange(self.data.n)
            for r, conditions in enumerate(about):
                mine = tuple(
                    each
                    for each in conditions
                    if (each.variable in axis.columns if axis.moves else not axis.seen and each.variable not in moving)
                )
                if mine:
                    made[r, a, : len(leader)] = Where(mine).met(self.data)[leader]
        return made

    def _limit(self, cubes: Cubes, tables: list[View], cell_keys: list[Ints], base: Ints, occupied: int) -> None:
        """Write into the cells how few records they may hold, and whether they may gain and lose."""
        cells, recipe = cubes.cells, self.recipe
        cells["least"][:occupied] = np.bincount(base[self.never], minlength=occupied)
        if len(cubes.rules):
            level = cubes.levels.astype(np.int64)
            meets = np.ones((len(cubes.rules), occupied), dtype=bool)
            for a in range(len(self.axes)):
                meets &= cubes.rules[:, a, level[:, a]]
            cells["gains"][:occupied][meets.any(axis=0)] = 0
        first = 0
        for view, keys in zip(tables, cell_keys, strict=True):
            mine = slice(first, first + len(keys))
            first += len(keys)
            if view.protected and recipe.treatment == "camouflage":
                cells["least"][mine] = np.maximum(cells["least"][mine], 1)
            if view.protected and recipe.treatment == "empty":
                cells["gains"][mine][cells["before"][mine] < recipe.n] = 0

    def _refuse_hopeless(self, cubes: Cubes, tables: list[View], home: Ints) -> None:
        before = cubes.cells["before"]
        for t, view in enumerate(tables):
            held = before[home[t]]
            if view.protected and (held < self.recipe.n).any() and int(held.max()) <= self.recipe.n:
                raise infeasible(
                    f"No cell of the protected tables has more than n = {self.recipe.n} records, so none can give one "
                    "without becoming small itself. Lower 'n', or protect a table of fewer variables.",
                    1,
                    0,
                    exact=True,
                )


def _neighbours(rest: Ints) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Sort cells by what they are without an axis; return the order, where each cell's neighbours begin, how many."""
    _, group, size = np.unique(rest, return_inverse=True, return_counts=True)
    first = np.cumsum(size) - size
    order = np.argsort(group, kind="stable")
    return order.astype(np.int32), first[group].astype(np.int32), size[group].astype(np.int32)


def _places(cell_keys: list[Ints], t: int, keys: Ints) -> Ints:
    """Return the cells of table t with these keys."""
    return sum(len(each) for each in cell_keys[:t]) + np.searchsorted(cell_keys[t], keys)


def _largest(masks: Sequence[int]) -> list[int]:
    """Return the sets that are part of no other."""
    distinct = sorted({mask for mask in masks if mask}, reverse=True)
    return [mask for mask in distinct if not any(mask != other and mask & other == mask for other in distinct)]


def _faces(kept: list[int], axes: int, owner: str) -> NDArray[np.int32]:
    """Return the smallest sets of axes that no kept table contains, of up to MOST_BLOCKS axes."""
    listed: list[tuple[int, ...]] = []
    inside: set[tuple[int, ...]] = {(a,) for a in range(axes)}  # sets of one size that some kept table contains
    while inside and len(next(iter(inside))) < MOST_BLOCKS and len(inside) <= _MOST_SETS:
        larger: set[tuple[int, ...]] = set()
        for chosen in sorted(inside):
            for a in range(chosen[-1] + 1, axes):
                more = (*chosen, a)
                if all((*more[:i], *more[i + 1 :]) in inside for i in range(len(more))):
                    mask = sum(1 << axis for axis in more)
                    if any(mask & table == mask for table in kept):
                        larger.add(more)
                    else:
                        listed.append(more)
        inside = larger
    if not listed:
        raise infeasible(
            f"'keep' of {owner} keeps so many tables that no record can move. "
            'Keep less, such as "1-way", or swap more variables.',
            1,
            0,
            exact=True,
        )
    made = np.full((len(listed), max(len(chosen) for chosen in listed)), -1, dtype=np.int32)
    for i, chosen in enumerate(listed):
        made[i, : len(chosen)] = chosen
    return made
