"""How a designed swap that keeps tables is drawn: cells chosen, moves searched for, records permuted."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import ceil, log, sqrt
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from quadrille import kernels
from quadrille.data import Combinations, Data, Floats, Ints
from quadrille.errors import ParameterError, QuadrilleError
from quadrille.kernels.designed.cubes import AHEAD, AROUND_WORDS, Ahead, Cube, Cubes, Search
from quadrille.kernels.designed.neighbours import HELLINGER, NEVER, TOTAL_VARIATION
from quadrille.plan import Details, Move, Plan
from quadrille.randomness import Chooser, Stream
from quadrille.recipe import carried_fact, random_order
from quadrille.swap.designed.lattice import CubeProblem, Realisation
from quadrille.swap.designed.pairs import just_large, of_size
from quadrille.swap.groups import group_ids

if TYPE_CHECKING:
    from quadrille.swap.designed import DesignedSwap

Cells = NDArray[np.int32]

MOST_FITTED, _SWEEPS = 1 << 20, 12
"""Cells of a table that is fitted at most, and rounds of fitting."""
_TRIED = 16
"""Empty cells that are tried, one after the other."""
_MOST_STEPS, _FEWEST_SWEEPS, _MOST_SWEEPS = 1 << 29, 4, 20
"""Cells times margins times sweeps of a fit: a few seconds."""
_LEAST = 1e-9
_NEWTON, _PRIOR = 12, 1.0
"""Steps of a logistic regression, and how strongly it is held to what is known before."""
_ALIKE = round(log(1.2), 9)
"""The odds of partners differ by a fifth at most."""
_MIRRORS = (64, 128, 256)
"""Mirrors that turn one axis, two, and three."""


class Partners:
    """Cells in pairs: each of nobody or one gets another of nobody or one that is as plausible, and shares its fate.

    Which of a pair is occupied has no part in it: who partners whom follows from the seed, from which cells hold at
    most one, and from all others. So where a coin decides which of the two is shown, the shown one is genuine with the
    odds of the two cells, and those are even.

    Plausible is what a logistic regression makes of the records that the tables of two and of three variables let one
    expect, and of those in cells that differ in one axis; cells to be judged are counted by what is expected of them.
    """

    def __init__(self, problem: CubeProblem, table: int) -> None:
        self._problem, self._table, cubes = problem, table, problem.cubes
        self._first, last = problem.first_key[table : table + 2]
        if last - self._first > MOST_FITTED:
            raise ParameterError(
                f"'coin' of DesignedSwap works on a protected table of up to {MOST_FITTED:,} possible cells, and this "
                f"one has {last - self._first:,}. Name fewer variables with 'tables', or leave 'coin' out."
            )
        variables = set(problem.views[table].variables)
        self._inside = [a for a, axis in enumerate(problem.axes) if variables & set(axis.seen)]
        self._sizes = sizes_of(problem, table, self._inside)
        # A level of the table must be a level of the axis: of variables that move as one the table may have only some.
        whole = self._sizes == cubes.sizes[self._inside]
        moves = np.array([problem.axes[a].moves for a in self._inside])
        self._turned = np.flatnonzero(whole & moves & (self._sizes > 1))
        cells = slice(problem.first[table], problem.first[table + 1])
        self._held = np.zeros(last - self._first, dtype=np.int64)
        self._held[cubes.cells["key"][cells] - self._first] = cubes.cells["before"][cells]
        self._score = plausibility(self._held, self._sizes, self._turned)

    def drawn(self, stream: Stream) -> Ints:
        """Return the partner of each cell of the table by its key, counted from its first; -1 for none."""
        return partners(self._score, self._sizes, self._turned, stream)

    def of(self, cell: int, partner: Ints) -> int:
        """Return the partner of the cell of the table in which a cell of the first table lies; -1 for none."""
        return int(partner[self._problem.cubes.key_of[self._table, cell] - self._first])

    def if_empty(self, cell: int, partner: Ints) -> Cells | None:
        """Return the levels of the partner of a cell of the first table on all axes; None if somebody is there."""
        other = self.of(cell, partner)
        if self._held[other]:
            return None
        levels = self._problem.cubes.levels[cell].copy()
        digits = np.array(np.unravel_index(other, tuple(self._sizes), order="F"))
        levels[np.array(self._inside)[self._turned]] = digits[self._turned]
        return levels

    def key_of(self, levels: Cells) -> int:
        """Return the key of the cell of the table at these levels."""
        cubes = self._problem.cubes
        return self._first + int(cubes.adds[self._table, cubes.level_from + levels].sum())


def partners(score: Floats, sizes: Ints, turned: Ints, stream: Stream) -> Ints:
    """Return the partner of each cell of a table, the first axis running fastest; -1 for none.

    A stream draws mirrors, each of which gives every cell an image, and the image that cell. In one mirror after the
    other cells that are left are paired with their images where the scores of both are alike.
    """
    chooser, partner = Chooser(stream), np.full(len(score), -1, dtype=np.int64)
    mirrors: list[Ints] = []
    for axes, count in enumerate(_MIRRORS, start=1):
        for _ in range(count if axes <= len(turned) else 0):
            left, mirror = turned.tolist(), np.full(len(sizes), -1, dtype=np.int64)
            for _ in range(axes):
                a = left.pop(chooser.below(len(left)))
                mirror[a] = 1 if sizes[a] == 2 else chooser.below(int(sizes[a]))
            mirrors.append(mirror)
    if mirrors:
        waiting = np.flatnonzero(np.isfinite(score))
        kernels.pair_images(waiting, score, _ALIKE, sizes, np.stack(mirrors), partner)
    return partner


def plausibility(held: Ints, sizes: Ints, turned: Ints) -> Floats:
    """Return the log odds that somebody is in a cell rather than nobody; infinity where more than one are."""
    signs, unsure = signs_of(held, sizes, turned), held <= 1
    score = np.full(len(held), np.inf)
    # By a rounded logistic regression: one record here or there, or another machine, makes no other weights.
    score[unsure] = np.round(signs[unsure] @ np.round(logistic(signs[unsure], held[unsure] == 1), 1), 6)
    return score


def signs_of(held: Ints, sizes: Ints, turned: Ints) -> Floats:
    """Return what tells whether somebody is in a cell: what fits expect there, and who is around.

    Cells of nobody and of one count as what is expected of them: that somebody is in this very cell does not enter.
    """
    counts, unsure = held.astype(np.float64), held <= 1
    expected = np.ones(len(counts))
    signs: list[Floats] = []
    for ways in (2, 3)[: max(len(sizes) - 1, 1)]:
        margins = margins_of(len(sizes), ways)
        sweeps = min(_MOST_STEPS // (len(margins) * len(counts)), _MOST_SWEEPS)
        if ways == 2 or sweeps >= _FEWEST_SWEEPS:
            kernels.fit_margins(counts, unsure, sizes, margins, max(sweeps, _FEWEST_SWEEPS), expected)
            signs.append(np.log(np.maximum(expected, _LEAST)))
    table = counts.reshape(tuple(sizes), order="F")
    around = sum((table.sum(axis=int(a), keepdims=True) - table for a in turned), np.zeros(table.shape))
    signs.append(np.log1p(np.maximum(around.reshape(-1, order="F"), 0.0)))
    return np.stack([*signs, np.ones(len(counts))], axis=1)


def logistic(x: Floats, there: NDArray[np.bool_]) -> Floats:
    """Return the coefficients of a logistic regression.

    A little is known before: the first sign is taken to be the log odds, with a prior of unit variance.

    >>> import numpy as np
    >>> from quadrille.swap.designed.search import logistic
    >>> x = np.log([[0.5], [0.5], [0.5], [2.0], [2.0], [2.0]])
    >>> logistic(x, np.array([0, 0, 1, 0, 1, 1]) > 0).round(2).tolist()
    [1.0]
    """
    before = np.zeros(x.shape[1])
    before[0] = 1.0
    weight = before.copy()
    for _ in range(_NEWTON):
        chance = 1 / (1 + np.exp(-np.clip(x @ weight, -30.0, 30.0)))
        slope = x.T @ (there - chance) - _PRIOR * (weight - before)
        weight = weight + np.linalg.solve((x.T * (chance * (1 - chance))) @ x + _PRIOR * np.eye(len(weight)), slope)
    return weight


def sizes_of(problem: CubeProblem, table: int, inside: list[int]) -> Ints:
    """Return the number of levels that a table has of each of these axes."""
    cubes = problem.cubes
    adds = [cubes.adds[table, cubes.level_from[a] :][: cubes.sizes[a]] for a in inside]
    return np.array([len(np.unique(values)) for values in adds], dtype=np.int64)


def margins_of(axes: int, ways: int) -> Ints:
    """Return the sets of so many axes; all of them where there are fewer."""
    return np.array(list(combinations(range(axes), min(ways, axes))), dtype=np.int64)


class EmptyNeighbours:
    """Empty cells that differ from a cell in one axis, drawn in proportion to how plausible they are.

    A cell is as plausible as the number of records that the tables of two variables let one expect there: then the
    empty cells drawn are like the cells of one record. Of a table of very many cells the product of the shares of the
    values among the records that have the changed one is taken instead.
    """

    def __init__(self, problem: CubeProblem, table: int) -> None:
        self._problem, self._table, cubes = problem, table, problem.cubes
        variables = set(problem.views[table].variables)
        self._inside = [a for a, axis in enumerate(problem.axes) if variables & set(axis.seen)]
        self._moving = [a for a in self._inside if problem.axes[a].moves]
        self._levels = cubes.levels.astype(np.int64)
        self._held = cubes.cells["before"][: problem.first[1]].astype(np.int64)
        self._expected = self._fitted()
        self._pairs = {(a, b): self._pair(a, b) for a in self._moving for b in self._inside if b != a}

    def drawn(self, cell: int, chooser: Chooser) -> Cells:
        """Return the empty neighbours of a cell by their levels on all axes, in the order in which to try them."""
        axes: list[Ints] = [np.empty(0, dtype=np.int64)]
        levels, weights = [axes[0]], [np.empty(0)]
        for a in self._moving:
            keys, plausible = self._keys(cell, a), self._plausible(cell, a)
            occupied = np.array([kernels.find(int(key), self._problem.cubes) >= 0 for key in keys])
            level = np.flatnonzero(~occupied & (plausible > 0))
            axes.append(np.full(len(level), a))
            levels.append(level)
            weights.append(plausible[level])
        weight = np.concatenate(weights)
        chance = (np.array([chooser.below(1 << 32) for _ in weight], dtype=np.float64) + 0.5) / (1 << 32)
        waiting = np.round(-np.log(chance), 9) / weight  # rounded: the same on every machine
        order = np.argsort(waiting, kind="stable")[:_TRIED]
        goals = np.tile(self._problem.cubes.levels[cell], (len(order), 1))
        goals[np.arange(len(order)), np.concatenate(axes)[order]] = np.concatenate(levels)[order]
        return goals

    def _keys(self, cell: int, a: int) -> Ints:
        """Return the keys of the cells that differ from a cell in an axis, by level."""
        cubes = self._problem.cubes
        adds = cubes.adds[self._table, cubes.level_from[a] : cubes.level_from[a] + cubes.sizes[a]]
        return cubes.key_of[self._table, cell] + adds - adds[self._levels[cell, a]]

    def _plausible(self, cell: int, a: int) -> Floats:
        """Return how plausible these cells are."""
        if self._expected is not None:
            return self._expected[self._keys(cell, a) - self._problem.first_key[self._table]]
        count = np.bincount(self._levels[:, a], self._held, int(self._problem.cubes.sizes[a]))
        plausible: Floats = count.astype(np.float64)
        for b in self._inside:
            if b != a:
                plausible = plausible * (self._pairs[a, b][:, self._levels[cell, b]] + 0.5) / (count + 1.0)
        return plausible

    def _pair(self, a: int, b: int) -> Floats:
        """Return the table of two axes."""
        rows, columns = int(self._problem.cubes.sizes[a]), int(self._problem.cubes.sizes[b])
        records = np.bincount(self._levels[:, a] * columns + self._levels[:, b], self._held, rows * columns)
        return records.astype(np.float64).reshape(rows, columns)

    def _fitted(self) -> Floats | None:
        """Return the records to expect in each cell of the table; None where there are too many cells."""
        first, last = self._problem.first_key[self._table : self._table + 2]
        if last - first > MOST_FITTED:
            return None
        cubes, sizes = self._problem.cubes, sizes_of(self._problem, self._table, self._inside)
        keys = cubes.key_of[self._table] - first
        counts = np.bincount(keys, self._held, last - first).astype(np.float64)
        expected, unsure = np.ones(len(counts)), np.zeros(len(counts), dtype=np.bool_)
        kernels.fit_margins(counts, unsure, sizes, margins_of(len(sizes), 2), _SWEEPS, expected)
        return expected


NOT_CHOSEN, TOSSED, DISPLACED = 1, 2, 3
"""What was decided about a small cell before the search; 0: to be treated."""
STEPS = 36_000
"""Steps of a search per small cell; as many again for each block of a move beyond three."""
FEWEST, MOST = 500_000, 60_000_000
"""Steps of a search with effort 1."""
_STAGES, _LAST = 200, 180
"""Stages of a search; in the last ones the price is what was asked for, and cells that are still small come first."""
_AT_ONCE = 1 << 20
"""Steps for which random words are made at once."""
_REMEMBERED, _MOST_REMEMBERED = 32, 1 << 23
"""Cubes that are remembered with a small cell, and in all."""
_TRIES, _TRIES_OF_PARTNERS = 48, 512
"""Ways that are compared to displace a record to a given cell: to one of several, and to a partner."""
_NEAR_LARGEST = 1_000
_HELLINGER_PRICE = 0.45
_HOTTEST, _CROWDED = 0.2, 4.0
"""The temperature at the start, and at which multiple of their share of all cells small cells are crowded."""
_DEAREST = 11.0
"""Without a price an exposed record costs so many times what protecting one costs."""
_EXPONENTIAL: Floats = np.array([round(-log((side + 0.5) / 4096), 9) for side in range(4096)])
"""Exponential variates by a die of 4,096 sides, rounded so that they are the same on every machine."""


class CubeDraw:
    """A designed swap prepared for one file."""

    def __init__(self, recipe: DesignedSwap, data: Data, problem: CubeProblem) -> None:
        self._recipe, self._data, self._problem = recipe, data, problem
        self._natural = natural_price(problem, recipe.n)
        self._records = Realisation(recipe, problem)
        # Where small cells are few they do not get in each other's way, and heat would only move large cells about.
        crowd = _CROWDED * len(problem.starts) / problem.first[1]
        self._crowded, self._hottest = crowd >= 1, max(_HOTTEST * min(crowd, 1.0), 1e-4)
        self._most_moved = 2 * (data.records if recipe.max_pairs is None else recipe.max_pairs)
        self._partners = Partners(problem, self._protected) if recipe.coin and recipe.by_partners else None

    def draw(self, stream: Stream) -> Plan:
        """Draw the plan of a stream."""
        cubes = self._fresh()
        fate = self._choose(cubes, stream)
        self._search(cubes, stream)
        moves = self._records.moves(cubes, stream)
        facts = cube_facts(self._recipe, self._data, self._problem, cubes, fate, moves)
        return Plan(moves, data=self._data, asked=self._recipe.max_pairs, details=Details(facts))

    def _fresh(self) -> Cubes:
        """Return the cells for another draw; what a draw cannot change is shared."""
        cubes = self._problem.cubes
        cubes = cubes._replace(cells=cubes.cells.copy(), progress=cubes.progress.copy())
        if len(cubes.cells) > self._problem.first[-1]:  # there is room for new cells
            cubes = cubes._replace(cell_at=cubes.cell_at.copy(), keys=cubes.keys.copy())
        return cubes

    def _choose(self, cubes: Cubes, stream: Stream) -> Ints:
        """Freeze the small cells that are not to be treated; return what was decided about each small cell."""
        small, share = self._problem.small, self._recipe.share
        fate = np.zeros(len(small), dtype=np.int64)
        order = random_order(len(small), stream.sub("cells"))
        if share < 1:
            if self._recipe.choose == "cheapest":
                order = order[np.argsort(self._costs(stream)[order], kind="stable")]
            left = order[ceil(share * len(small) - 1e-9) :]
            fate[left] = NOT_CHOSEN
            _freeze(cubes, small[left])
        if self._recipe.coin:
            self._toss(cubes, fate, order, stream)
        return fate

    def _costs(self, stream: Stream) -> Floats:
        """Return what treating each small cell costs per record of it, as a search that treats all of them finds."""
        cubes = self._fresh()
        self._search(cubes, stream.sub("costs"))
        held = cubes.cells[self._problem.small]
        before, after = held["before"].astype(float), held["count"].astype(float)
        cost = before - np.sqrt(before * after) - 0.5 * (before - after)
        left = (after > 0) & (after < cubes.n)
        return np.where(left, np.inf, cost / before)

    def _toss(self, cubes: Cubes, fate: Ints, order: Ints, stream: Stream) -> None:
        """Toss for cells of one record: some are left as they are, as many displaced to an empty cell."""
        if self._partners is not None:
            self._toss_pairs(self._partners, cubes, fate, order, stream)
            return
        problem, chooser = self._problem, Chooser(stream.sub("coin"))
        start, empty = self._starts(), EmptyNeighbours(problem, self._protected)
        cube, open_ = room_for_cube(cubes), cubes._replace(new_cells=True)
        for i in order.tolist():
            cell = int(problem.small[i])
            if fate[i] or cubes.cells["before"][cell] != 1 or not chooser.chance(self._recipe.coin):
                continue
            goals = empty.drawn(int(start[cell]), chooser)
            words, apply = chooser.words(AROUND_WORDS * _TRIES * len(goals)), bool(chooser.below(2))
            if kernels.displace(int(start[cell]), goals, False, self._most_moved, words, apply, cube, open_) < 0:
                continue
            fate[i] = DISPLACED if apply else TOSSED
            if not apply:
                _freeze(cubes, np.array([cell]))

    def _toss_pairs(self, partners: Partners, cubes: Cubes, fate: Ints, order: Ints, stream: Stream) -> None:
        """Toss for cells of one record with an empty partner: one of the two is shown with a record, the other empty.

        Where both of a pair have a record none can be shown for the other, and another pair is tossed instead. All that
        is asked is the same for a cell and its partner, whichever of them is occupied.
        """
        problem, chooser = self._problem, Chooser(stream.sub("coin"))
        start, partner = self._starts(), partners.drawn(stream.sub("mirrors"))
        cube, open_ = room_for_cube(cubes), cubes._replace(new_cells=True)
        ones = [i for i in order.tolist() if not fate[i] and cubes.cells["before"][problem.small[i]] == 1]
        paired = [i for i in ones if partners.of(int(start[problem.small[i]]), partner) >= 0]
        falls = _falls(self._recipe.coin * len(paired), chooser, stream)
        tossed = 0
        for i in paired:
            cell = int(problem.small[i])
            goal = partners.if_empty(int(start[cell]), partner) if tossed < len(falls) else None
            if goal is None:
                continue
            words, apply, goals = chooser.words(AROUND_WORDS * _TRIES_OF_PARTNERS), bool(falls[tossed]), goal[None, :]
            if kernels.displace(int(start[cell]), goals, True, self._most_moved, words, apply, cube, open_) < 0:
                continue
            tossed += 1
            fate[i] = DISPLACED if apply else TOSSED
            if not apply:
                _freeze(cubes, np.array([cell]))
                if cubes.new_cells:
                    kernels.keep_empty(partners.key_of(goal), cubes)

    @property
    def _protected(self) -> int:
        """The table whose cells of one a coin is tossed for."""
        return next(t for t, view in enumerate(self._problem.views) if view.protected)

    def _starts(self) -> Ints:
        """Return for each cell of the protected table one of the first table that lies in it."""
        start = np.zeros(self._problem.first[-1], dtype=np.int64)
        start[self._problem.home[self._protected]] = np.arange(self._problem.first[1])
        return start

    def _search(self, cubes: Cubes, stream: Stream) -> None:
        """Look for moves, first hot and then cold, while the price of an exposed record rises to what it shall be."""
        starts, recipe = self._problem.starts, self._recipe
        if not len(starts):
            return
        blocks = cubes.faces.shape[1]
        steps = min(max(STEPS * len(starts) * max(1, blocks - 2), FEWEST), MOST) * recipe.effort
        per_stage, per_step = max(int(steps) // _STAGES, 256), max(blocks + 4, 7)
        number = np.full(len(cubes.levels), -1, dtype=np.int32)
        number[starts] = np.arange(len(starts))
        remembered = min(_REMEMBERED, max(_MOST_REMEMBERED // len(starts), 1))
        search = Search(
            memory=np.zeros((len(starts), remembered, blocks), dtype=np.int64),
            found=np.zeros(len(starts), dtype=np.int64),
            small_no=number,
            ahead=Ahead(
                blocks=np.zeros((AHEAD, blocks), dtype=np.int64),
                size=np.zeros(AHEAD, dtype=np.int64),
                found=np.zeros(AHEAD, dtype=np.int64),
                used=np.zeros(AHEAD, dtype=np.int64),
            ),
        )
        cube = room_for_cube(cubes)
        for stage in range(0 if recipe.improve else _LAST, _STAGES):
            price, temperature = self._weather(stage)
            words = stream.sub("design").sub(str(stage))
            for done in range(0, per_stage, _AT_ONCE):
                kernels.anneal(
                    starts if stage < _LAST else self._targets(cubes),
                    price,
                    temperature,
                    temperature if self._crowded else 0.0,  # or else large cells would wander off
                    self._most_moved,
                    words.sub(str(done)).words(min(_AT_ONCE, per_stage - done) * per_step),
                    per_step,
                    _EXPONENTIAL,
                    cube,
                    cubes,
                    search,
                )

    def _targets(self, cubes: Cubes) -> Cells:
        """Return where small cells are, those that are still small as often as all together."""
        problem = self._problem
        held = cubes.cells["count"][problem.small]
        left = problem.small[(held > 0) & (held < cubes.n)]
        again = problem.starts[np.isin(problem.home[:, problem.starts], left).any(axis=0)]
        return np.concatenate((problem.starts, np.tile(again, len(problem.starts) // max(len(again), 1))))

    def _weather(self, stage: int) -> tuple[float, float]:
        """Return the price of an exposed record and the temperature of a stage, the same on every machine."""
        natural = self._natural
        asked = _DEAREST * natural if self._recipe.price is None else float(self._recipe.price)
        low, high = min(natural, asked), min(2.7 * natural, asked)
        part = stage / _STAGES
        if part < 0.6:
            price, heat = low, _between(_HOTTEST, 0.03, part / 0.6)
        elif part < 0.9:
            price, heat = _between(low, high, (part - 0.6) / 0.3), _between(0.03, 0.01, (part - 0.6) / 0.3)
        else:
            price, heat = asked, _between(0.01, max(0.01 * self._recipe.spread, 1e-5), (part - 0.9) / 0.1)
        return price, _rounded(min(heat, self._hottest) * natural / _HELLINGER_PRICE)


def _falls(expected: float, chooser: Chooser, stream: Stream) -> NDArray[np.bool_]:
    """Return how a fair coin falls that is tossed about so often: to either side equally often, to within one."""
    count = int(expected) + chooser.chance(expected - int(expected))
    heads = (count - 1) // 2 + chooser.below(2) if count % 2 else count // 2 + (chooser.below(3) - 1 if count else 0)
    falls = np.zeros(count, dtype=np.bool_)
    falls[random_order(count, stream.sub("falls"))[:heads]] = True
    return falls


def _freeze(cubes: Cubes, cells: Ints) -> None:
    """Let these cells be as they are."""
    cubes.cells["least"][cells] = cubes.cells["most"][cells] = cubes.cells["count"][cells]


def _between(first: float, last: float, part: float) -> float:
    """Return a value between two in geometric steps; the last one if there are none because one of them is 0."""
    return _rounded(first * (last / first) ** part) if first > 0 and last > 0 else last


def _rounded(value: float) -> float:
    """Round away what differs between machines."""
    return float(f"{value:.9g}")


def natural_price(problem: CubeProblem, n: int) -> float:
    """Return a little more than what protecting a record costs where all other cells are large.

    >>> import quadrille as qd
    >>> from quadrille.swap.designed.lattice import cube_problem
    >>> from quadrille.swap.designed.search import natural_price
    >>> recipe = qd.DesignedSwap(seed=7)
    >>> round(natural_price(cube_problem(recipe, qd.datasets.cps8d()), 3), 2)
    0.45
    """
    tables = [(view.loss, view.importance) for view in problem.views if view.protected and view.loss]
    tables = tables or [(HELLINGER, max(view.importance for view in problem.views))]
    total = int(problem.cubes.tables["total"][0])

    def cost(kind: int, before: int, after: int) -> float:
        kept, changed = cell_losses(kind, np.array([before, before]), np.array([before, after]), total)
        return float(total * (changed - kept))

    def treated(f: int, to: int) -> float:
        step = -1 if to > f else 1
        return sum(
            importance * (cost(kind, f, to) + abs(to - f) * cost(kind, _NEAR_LARGEST, _NEAR_LARGEST + step))
            for kind, importance in tables
        )

    dearest = max(min(treated(f, n), treated(f, 0)) / f for f in range(1, n))
    return _rounded(1.68 * max(dearest, 1e-9))


def room_for_cube(cubes: Cubes) -> Cube:
    """Return room for one move."""
    tables, blocks = len(cubes.tables), cubes.faces.shape[1]
    return Cube(
        blocks=np.zeros((tables, blocks), dtype=np.int64),
        masks=np.zeros(blocks, dtype=np.uint64),
        corners=np.zeros((tables, 1 << blocks), dtype=np.int64),
        keys=np.zeros((tables, 1 << blocks), dtype=np.int64),
    )


_NEAR = 3
"""Cells of n to n + 2 records are looked at: so many sizes."""
REASONS = {
    1: "not chosen",
    2: "left by the coin",
    0: "no way found that keeps the tables",
}
_TOO_DEAR = "no way found that keeps the tables and is worth the price"
_DISPLACED = 3


def cube_facts(
    recipe: DesignedSwap, data: Data, problem: CubeProblem, cubes: Cubes, fate: Ints, moves: Sequence[Move]
) -> dict[str, object]:
    """Account for a draw; raise an error if a kept table has changed."""
    n = recipe.n
    reasons = REASONS if recipe.price is None else {**REASONS, 0: _TOO_DEAR}
    protected = [problem.cells_of(t, cubes) for t, view in enumerate(problem.views) if view.protected]
    f, g = _before_after(cubes, np.concatenate(protected))
    _, held = _before_after(cubes, problem.small)
    emptied, left = held == 0, (held > 0) & (held < n)
    carried = [name for axis in problem.axes if axis.moves for name in axis.columns if name not in axis.seen]
    return {
        "small_cells": len(problem.small),
        "camouflaged": int((held >= n).sum()),
        "emptied": int((emptied & (fate != _DISPLACED)).sum()),
        "displaced": int((emptied & (fate == _DISPLACED)).sum()),
        "left": {reason: count for code, reason in reasons.items() if (count := int((left & (fate == code)).sum()))},
        "new_cells": int(((f == 0) & (g > 0)).sum()),
        "exposed_before": int(f[f < n].sum()),
        "exposed_after": int(np.minimum(f, g)[(g > 0) & (g < n)].sum()),
        "by_size": [of_size(f, g, size, n) for size in range(1, n)],
        "just_large": [just_large(f, g, size) for size in range(n, n + _NEAR)],
        "design_loss": _loss(problem, cubes),
        "kept": [recipe.keep] if isinstance(recipe.keep, str | int) else [*recipe.keep],
        "kept_tables": len(problem.kept),
        "records_moved": int(cubes.progress[1]) // 2,
        "values_moved": sum(len(move.expanded[0]) for move in moves),
        **_small_kept(problem, n),
        **(
            {} if isinstance(data, Combinations) else _check(data, problem, moves)
        ),  # what is elsewhere is not looked at
        **carried_fact(carried),
        **_rule_facts(problem),
    }


def _before_after(cubes: Cubes, cells: Ints) -> tuple[Ints, Ints]:
    return cubes.cells["before"][cells].astype(np.int64), cubes.cells["count"][cells].astype(np.int64)


def cell_losses(kind: int, before: Ints, after: Ints, total: int) -> Floats:
    """Return what cells add to the raw loss of their table, as the search counts it.

    >>> import numpy as np
    >>> from quadrille.kernels.designed.neighbours import HELLINGER, TOTAL_VARIATION
    >>> from quadrille.swap.designed.search import cell_losses
    >>> cell_losses(HELLINGER, np.array([1, 4]), np.array([0, 4]), 10).tolist()
    [-0.0, -0.4]
    >>> cell_losses(TOTAL_VARIATION, np.array([1, 4]), np.array([0, 5]), 10).tolist()
    [0.05, 0.05]
    """
    f, g = before.astype(float), after.astype(float)
    if kind == HELLINGER:
        return -np.sqrt(f * g) / total
    if kind == TOTAL_VARIATION:
        return 0.5 * np.abs(g - f) / total
    return np.where(f > 0, (g - f) ** 2 / np.maximum(f, 1), np.where(g > 0, NEVER, 0.0))


def _loss(problem: CubeProblem, cubes: Cubes) -> float:
    """Return the loss that was kept low, on counts."""
    loss = 0.0
    for t, view in enumerate(problem.views):
        if view.loss:
            total = int(cubes.tables["total"][t])
            raw = float(cell_losses(view.loss, *_before_after(cubes, problem.cells_of(t, cubes)), total).sum())
            loss += view.importance * (sqrt(max(0.0, 1.0 + raw)) if view.loss == HELLINGER else raw)
    return loss


def _check(data: Data, problem: CubeProblem, moves: Sequence[Move]) -> dict[str, object]:
    """Count the kept tables on the records that moved; return the largest change of a weighted cell of theirs."""
    rows = np.unique(np.concatenate([move.expanded[0] for move in moves])) if moves else np.empty(0, dtype=np.int64)
    names = tuple(dict.fromkeys(name for table in problem.kept for name in table))
    before = {name: data.coded(name, purpose="DesignedSwap") for name in names}
    after = {name: column.values[rows].astype(np.int64) for name, column in before.items()}
    for move in moves:
        at = np.searchsorted(rows, move.expanded[0])
        for name in move.columns:
            if name in after:
                after[name][at] = before[name].values[move.expanded[1]]
    weight = None if data.ticks is None else data.ticks.values[rows] / data.ticks.per_unit
    largest = 0.0
    for table in problem.kept:
        both = [(np.concatenate((before[n].values[rows], after[n])), before[n].size) for n in table]
        ids, count = group_ids(both, 2 * len(rows))
        old, new = ids[: len(rows)], ids[len(rows) :]
        if (np.bincount(old, minlength=count) != np.bincount(new, minlength=count)).any():
            raise QuadrilleError(f"The table of {', '.join(table)} was to be kept and has changed. Please report this.")
        if weight is not None and count:
            change = np.bincount(new, weights=weight, minlength=count) - np.bincount(
                old, weights=weight, minlength=count
            )
            largest = max(largest, float(np.abs(change).max()))
    return {} if weight is None else {"weighted_change": largest}


def _small_kept(problem: CubeProblem, n: int) -> dict[str, object]:
    """Count the small cells of the kept tables, which the release shows as they are, and the cells inside them."""
    levels, held = problem.cubes.levels, problem.cubes.cells["before"][: len(problem.cubes.levels)]
    axis_of = {name: a for a, axis in enumerate(problem.axes) for name in axis.seen}
    small, inside = 0, np.zeros(len(levels), dtype=bool)
    for table in problem.kept:
        axes = sorted({axis_of[name] for name in table})
        ids, count = group_ids(
            [(levels[:, a].astype(np.int64), int(problem.cubes.sizes[a])) for a in axes], len(levels)
        )
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
