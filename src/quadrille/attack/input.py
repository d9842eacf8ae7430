"""What all attacks look at, prepared once: keys, chances that they become others, fits of tables; what they find."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from quadrille.attack.channel import Rehearsal, rehearse
from quadrille.data import Cross, Data, Floats, Ints, require_columns, require_data
from quadrille.errors import InputError, ParameterError, QuadrilleError, bad_parameter
from quadrille.measure.population import all_margins, fit, is_feasible, sample_of
from quadrille.params import one_of
from quadrille.plan import Plan
from quadrille.present.numbers import statistic
from quadrille.recipe import Recipe
from quadrille.score.matching import changed_columns, matched
from quadrille.swap.designed import DesignedSwap
from quadrille.swap.designed.pairs import DesignedPairs
from quadrille.swap.designed.problem import protected_tables, views_of
from quadrille.swap.groups import group_ids
from quadrille.text import Shown
from quadrille.theory.cells import NotPredicted, levels_of

Release = Recipe | Plan | Data
"""A recipe with its seed, the plan that it draws, or the released file."""

OWNER = "attack"
NOT_ALIGNED = "needs to know which row is whose, and the rows of the two files are not aligned: give the plan or recipe"
NEEDS_DESIGN = "is for an intruder who knows the design"
NO_RECIPE = "needs the recipe of the release: give it as the release, or with recipe="


@dataclass(frozen=True, eq=False)
class KeyTable:
    """The combinations of some columns that occur before or after, in lexicographic order; each is a cell.

    `codes[v, c]` is what cell c holds of column v. `before[i]` is the cell of record i of the original file,
    `after[j]` that of row j of the release.
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    codes: Ints
    before: Ints
    after: Ints

    @classmethod
    def of(cls, data: Data, released: Data, names: Sequence[str]) -> KeyTable:
        """Number the combinations of these columns in both files."""
        columns = [(data.coded(name, purpose="an attack"), released[name].values) for name in names]
        sizes = tuple(column.size for column, _ in columns)
        both = [np.concatenate([column.values, values]) for column, values in columns]
        cell, count = group_ids(list(zip(both, sizes, strict=True)), data.n + released.n)
        leader = np.zeros(count, dtype=np.int64)
        leader[cell] = np.arange(len(cell))
        codes = np.array([values[leader] for values in both], dtype=np.int64).reshape(len(sizes), count)
        return cls(tuple(names), sizes, codes, cell[: data.n], cell[data.n :])

    @property
    def cells(self) -> int:
        """How many combinations occur."""
        return self.codes.shape[1]

    @property
    def records(self) -> int:
        """Persons in the original file."""
        return len(self.before)

    @property
    def possible(self) -> int:
        """How many combinations there could be."""
        return prod(self.sizes)

    @cached_property
    def f(self) -> Ints:
        """Records of each cell before."""
        return np.bincount(self.before, minlength=self.cells)

    @cached_property
    def g(self) -> Ints:
        """Rows of each cell after."""
        return np.bincount(self.after, minlength=self.cells)

    @cached_property
    def flows(self) -> tuple[Ints, Ints, Ints]:
        """Cell before, cell after and number of the records that went from one to the other; rows are aligned."""
        pair, count = np.unique(self.before * self.cells + self.after, return_counts=True)
        return pair // self.cells, pair % self.cells, count

    @cached_property
    def stayed(self) -> Ints:
        """Records that were in a cell and still are; rows are aligned."""
        return np.bincount(self.before[self.before == self.after], minlength=self.cells)

    @cached_property
    def number(self) -> Ints:
        """The place of each cell in the table of all possible combinations."""
        number = np.zeros(self.cells, dtype=np.int64)
        for codes, size in zip(self.codes, self.sizes, strict=True):
            number = number * size + codes
        return number

    def spread(self, values: Ints | Floats) -> Floats:
        """Lay values of the cells out as the table of all possible combinations; the others have 0."""
        table = np.zeros(self.possible)
        table[self.number] = values
        return table.reshape(self.sizes)

    def ids(self, names: Sequence[str]) -> tuple[Ints, int]:
        """Number the combinations of some of the columns; return that of each cell, and how many there are."""
        places = [self.names.index(name) for name in names]
        return group_ids([(self.codes[place], self.sizes[place]) for place in places], self.cells)


@dataclass(frozen=True, eq=False)
class AttackInput:
    """The original file, the release, and what the intruder knows and wants.

    `recipe` is the design, None where it is not known; `moved` are the columns that were swapped, None where that
    cannot be told. `aligned` says that row i of the release is that of record i. `population` is everybody of whom the
    file has a share, `sampling` that share, `earlier` other releases of the same data.
    """

    data: Data
    released: Data
    keys: tuple[str, ...]
    targets: tuple[str, ...]
    columns: tuple[str, ...]
    n: int
    recipe: Recipe | None
    knows: str
    moved: tuple[str, ...] | None
    aligned: bool
    population: Data | None = None
    sampling: float | None = None
    earlier: tuple[Release, ...] = ()

    @cached_property
    def table(self) -> KeyTable:
        """The table of the keys."""
        return self.table_of(self.keys)

    def table_of(self, names: Sequence[str]) -> KeyTable:
        """Return the table of some columns."""
        return KeyTable.of(self.data, self.released, names)

    @property
    def design(self) -> Recipe | None:
        """The recipe, without its seed, if the intruder knows it."""
        return self.recipe if self.knows == "design" else None

    @property
    def designed(self) -> DesignedPairs | None:
        """The recipe if it is a designed swap, of whichever version."""
        return self.recipe if isinstance(self.recipe, DesignedPairs) else None

    @property
    def protected(self) -> list[tuple[str, ...]]:
        """The tables that a designed swap protects."""
        return [] if self.designed is None else protected_tables(self.designed, self.data)

    @cached_property
    def rehearsal(self) -> Rehearsal | None:
        """Swaps of made-up files by the design, of which all attacks learn; None where it is none of one table."""
        recipe, protected = self.design, self.protected
        if not isinstance(recipe, DesignedSwap) or len(protected) != 1:
            return None
        names = protected[0]
        if any(name not in self.released.codebook for name in names):
            return None
        table = self.table if names == self.keys else self.table_of(names)
        way = feasible_way(table, FEW_ROUNDS)
        if way is None:
            return None
        fitted = fit(table.spread(table.g), all_margins(len(names), way), SWEEPS)
        return rehearse(self.released, table, recipe, fitted)

    @property
    def preserved(self) -> frozenset[str]:
        """The columns whose associations a designed swap keeps: those of its protected tables and of its loss."""
        recipe = self.designed
        views = () if recipe is None else views_of(recipe, self.data, self.protected)
        return frozenset(name for view in views for name in view.variables)


def attack_input(
    data: Data,
    release: Release,
    keys: Sequence[str] | None,
    targets: Sequence[str] | None,
    n: int,
    knows: str,
    columns: Sequence[str] | None,
    recipe: Recipe | None,
    population: Data | None = None,
    sampling: float | None = None,
    earlier: Sequence[Release] = (),
) -> AttackInput:
    """Check what an attack is given, and make the release where only its recipe or plan is."""
    require_data(data, OWNER)
    one_of(OWNER, "knows", knows, ("design", "file"))
    if not _is_size(n):
        raise bad_parameter(OWNER, "n", "a whole number of 2 or more", n)
    if population is not None:
        require_data(population, "the population of attack")
    if sampling is not None and not 0 < sampling <= 1:
        raise bad_parameter(OWNER, "sampling", "a number in (0, 1]", sampling)
    if isinstance(release, Recipe):
        if recipe is not None:
            raise ParameterError("attack got two recipes. Give it as the release, or with recipe= of a plan or a file.")
        release, recipe = release.plan(data), release
    steers = () if recipe is None else recipe.steering_columns
    if isinstance(release, Plan):
        steers += release.steering_columns
    known = _columns(data, "keys", keys) or tuple(name for name in data.keys if name not in steers)
    if not known:
        raise InputError("The file has no key variable. Name what the intruder knows of a person with keys=.")
    wanted = _columns(data, "target", targets) or (known if len(known) > 1 else ())
    if any(not set(known) - {name} for name in wanted):
        raise ParameterError("A target is the only key, so nothing is left to infer it from. Name more keys.")
    others = _columns(data, "columns", columns)
    for name in others:
        if name in known:
            raise ParameterError(f"Column {name!r} is both in 'keys' and in 'columns' of attack. Name it once.")
    names = tuple(dict.fromkeys((*known, *wanted, *others)))
    moved = None
    if not isinstance(release, Plan):
        require_data(release, "the release of attack")
        moved = changed_columns(data, release)
        release = (None if moved is not None else _redrawn(data, release, recipe, names)) or release
    aligned = isinstance(release, Plan) or moved is not None
    if isinstance(release, Plan):
        released, moved = release.apply(data), release.columns
    else:
        data, released = matched(data, release, names)
    for name in names:
        data.coded(name, purpose="an attack")
    sample = sample_of(data, sampling)
    return AttackInput(
        data,
        released,
        known,
        wanted,
        others,
        n,
        recipe,
        knows,
        moved,
        aligned,
        population,
        sampling if population is not None or sample is None else sample.share,
        (earlier,) if isinstance(earlier, Release) else tuple(earlier),
    )


def _redrawn(data: Data, release: Data, recipe: Recipe | None, names: Sequence[str]) -> Plan | None:
    """Return the plan of a recipe if the release holds the rows that it makes, in whatever order; None if not.

    A public file is shuffled. With the recipe of the release it is known all the same which row is whose.
    """
    if recipe is None or data.n != release.n:
        return None
    try:
        plan = recipe.plan(data)
    except QuadrilleError:
        return None  # a design that does not fit these data has not made the release
    table = KeyTable.of(*matched(plan.apply(data), release, tuple(names)), names)
    return plan if bool((table.f == table.g).all()) else None


def _is_size(n: object) -> bool:
    return isinstance(n, int) and not isinstance(n, bool) and n >= 2


def _columns(data: Data, parameter: str, names: Sequence[str] | None) -> tuple[str, ...]:
    listed = () if names is None else (names,) if isinstance(names, str) else tuple(names)
    require_columns(data, listed, f"'{parameter}' of {OWNER}")
    return tuple(dict.fromkeys(listed))


@dataclass(frozen=True, repr=False)
class Finding(Shown):
    """One quantity of an attack.

    `value` is what the intruder gets from the release, `before` what the original file would have given, `chance` what
    guessing gives. None stands for what cannot be told, and `note` says why. `count` is the number of persons, cells or
    claims that the value is about.
    """

    attack: str
    quantity: str
    value: float | None
    before: float | None = None
    chance: float | None = None
    count: int | None = None
    note: str = ""


@dataclass(frozen=True, repr=False)
class Section(Shown):
    """An attack: its name, the story of a person in the file, what was found, and what to do about it.

    `story` says what the findings mean for one person; `advice` what helps against the attack. An attack that could
    not be made has no findings, and `reason` says why.
    """

    attack: str
    title: str
    story: str
    findings: tuple[Finding, ...] = ()
    advice: str = ""
    reason: str = ""


WAY, SWEEPS, ROUNDS, FEW_ROUNDS = 3, 30, 8, 4
"""Variables of each margin, sweeps and rounds of the fits by which tables are undone: without and with simulations."""


def feasible_way(table: KeyTable, rounds: int) -> int | None:
    """Return how many variables the margins of a fit may have that undoes a table; None where it has too many cells."""
    ways = (way for way in (WAY, 2) if is_feasible(table.possible, len(table.names), way, rounds * SWEEPS))
    return next(ways, None)


def guessing_fit(table: KeyTable) -> Floats | None:
    """Return the fit of the released table that guesses best: of three variables, of two where that expects nobody."""
    fitted = released_fit(table)
    if fitted is None or feasible_way(table, FEW_ROUNDS) != WAY:
        return fitted
    released = table.spread(table.g)
    return fit(released, all_margins(released.ndim, WAY), SWEEPS) + _HARDLY * fitted


_SWEEPS, _HARDLY = 20, 1e-9


def released_fit(table: KeyTable) -> Floats | None:
    """Return the 2-way log-linear fit of the released table, over all possible cells; None where it has too many."""
    if not is_feasible(table.possible, len(table.names), 2, _SWEEPS):
        return None
    released = table.spread(table.g)
    return fit(released, all_margins(released.ndim, 2), _SWEEPS)


def auc(score: Floats, truth: NDArray[np.bool_]) -> float | None:
    """Return the chance that a true one has the higher score than a false one, ties counted half; None without both."""
    true, false = int(truth.sum()), int((~truth).sum())
    if not true or not false:
        return None
    _, place, count = np.unique(score, return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - (count - 1) / 2)[place]
    return (float(rank[truth].sum()) - true * (true + 1) / 2) / (true * false)


def surest(score: Floats, truth: NDArray[np.bool_] | Floats, most: int) -> float | None:
    """Return the share of true ones, or the mean of shares, among the highest scores; the first of equals first."""
    top = np.argsort(-score, kind="stable")[:most]
    return float(truth[top].mean()) if len(top) else None


def standard_error(found: float | None, count: int) -> str:
    """Say how far a share of so few may be from what it is for others like them; nothing where there is no share."""
    return "" if found is None or not count else f"standard error {statistic((found * (1 - found) / count) ** 0.5)}"


def hellinger(before: Floats, after: Floats) -> float:
    """Return the Hellinger distance of two tables of counts."""
    f, g = before / before.sum(), after / after.sum()
    return float(np.sqrt(((np.sqrt(f) - np.sqrt(g)) ** 2).sum() / 2))


Codes = Mapping[str, Ints]
"""The code of each key, for some cells."""


_LOST = 1e-6


class NoClosedForm(QuadrilleError):
    """The chances of a design are not known in closed form."""


@dataclass(frozen=True, eq=False)
class Transition:
    """Keys that move and keys that are held; `chance[a, b]` that a record of origin a shows the moved values b.

    Origins are the combinations that occur of the moved keys and of held keys on which the design depends; `origins`
    and `shown` are their numbers in `decisive` and `moving`, ascending. `level[a]` is what origin a itself shows.
    """

    moved: tuple[str, ...]
    held: tuple[str, ...]
    decisive: Cross
    moving: Cross
    origins: Ints
    shown: Ints
    chance: Floats
    level: Ints
    size: Floats

    def of(self, origin: Codes, shows: Codes) -> Floats:
        """Return M, the chance of each cell of `shows` for a record of the same place of `origin`.

        The cells of a place agree on the keys that are held. An origin that the file lacks moves like an average one.
        """
        at, known = _places(self.decisive, self.origins, origin)
        to, there = _places(self.moving, self.shown, shows)
        stays = _number(self.moving, origin) == _number(self.moving, shows)
        average = (1 - self._moves) * stays + self._moves * np.where(there, self._margin[to], 0.0)
        return np.where(known & there, self.chance[at, to], np.where(known, 0.0, average))

    @property
    def _margin(self) -> Floats:
        """The share of records of each combination of moved values."""
        return np.bincount(self.level, weights=self.size, minlength=len(self.shown)) / self.size.sum()

    @property
    def _moves(self) -> float:
        """The f of the design: 1 less how much of a difference between two values a swap leaves, on average."""
        own = self.chance[np.arange(len(self.level)), self.level]
        apart = float(self.size @ (1 - self._margin[self.level]))
        return float(self.size @ (1 - own)) / apart if apart else 0.0

    def undo(self, table: Floats, rows: Codes) -> Floats:
        """Return the table that became this one on average: E T' = T M, so T = T' inv(M).

        The moved values, in the order of `shown`, are the columns; `rows` holds the codes of the held keys of each row.
        """
        deciding = Cross(self.decisive.variables[len(self.moved) :], self.decisive.sizes[len(self.moved) :])
        of_origin = self.origins % deciding.possible
        of_row = _number(deciding, rows) if rows else np.zeros(len(table), dtype=np.int64)
        found = table.astype(np.float64)
        for value in np.unique(of_row):
            block, inside = np.flatnonzero(of_origin == value), np.flatnonzero(of_row == value)
            columns = self.level[block]
            found[np.ix_(inside, columns)] = table[np.ix_(inside, columns)] @ _inverse(self.chance[block][:, columns])
        return found

    def between(self, table: KeyTable) -> CellMoves:
        """Return the chances between the cells of a table, some of which the file may lack: nothing goes from there."""
        codes = dict(zip(table.names, table.codes, strict=True))
        source, known = _places(self.decisive, self.origins, codes)
        goal, there = _places(self.moving, self.shown, codes)
        stay, stays = table.ids(self.held)
        reach = np.pad(self.chance, ((0, 1), (0, 1)))
        return CellMoves(
            stay, stays, np.where(known, source, len(self.origins)), np.where(there, goal, len(self.shown)), reach
        )


@dataclass(frozen=True, eq=False)
class CellMoves:
    """M(x -> z) = reach[source[x], goal[z]] where the cells x and z of a table agree in the keys that are held, else 0.

    `stay` numbers the combinations of these keys, `goal` those of the keys that move, `source` what of a combination
    decides how it moves.
    """

    stay: Ints
    stays: int
    source: Ints
    goal: Ints
    reach: Floats

    @property
    def kept(self) -> Floats:
        """M(x -> x) of every cell."""
        return self.reach[self.source, self.goal]

    def arrivals(self, table: KeyTable) -> Floats:
        """Return how many rows of a cell came from other cells, expected from the counts after the swap."""
        sources, goals = self.reach.shape
        room = np.bincount(self.stay * sources + self.source, weights=table.g, minlength=self.stays * sources)
        coming = room.reshape(self.stays, sources) @ self.reach
        return coming.reshape(-1)[self.stay * goals + self.goal] - table.g * self.kept


def _inverse(chance: Floats) -> Floats:
    """Invert the chances, unless some value does not stay among them, or values are all but mixed up."""
    if np.abs(chance.sum(axis=1) - 1).max(initial=0.0) > _LOST or np.linalg.cond(chance) > 1 / _LOST:
        raise NoClosedForm("The swap leaves too little to correct its tables by.")
    return np.linalg.inv(chance).astype(np.float64)


def _number(cross: Cross, codes: Codes) -> Ints:
    number = np.zeros(max(map(len, codes.values()), default=0), dtype=np.int64)
    for name, stride in zip(cross.variables, cross.strides, strict=True):
        number += codes[name] * stride
    return number


def _places(cross: Cross, listed: Ints, codes: Codes) -> tuple[Ints, NDArray[np.bool_]]:
    """Return where the numbers of cells are in a list, and whether they are."""
    number = _number(cross, codes)
    place = np.minimum(np.searchsorted(listed, number), len(listed) - 1)
    return place, listed[place] == number


def transition_of(data: Data, recipe: Recipe, keys: Sequence[str]) -> Transition:
    """Work out how a design moves records between the combinations of keys; raise NoClosedForm where it cannot be.

    Example
    -------
    >>> import numpy as np
    >>> import quadrille as qd
    >>> from quadrille.attack.input import transition_of
    >>> data = qd.datasets.cps8d()
    >>> sexes = transition_of(data, qd.PermutationSwap(["Sex"], rate=0.1), ["Age", "Sex"])
    >>> sexes.chance.round(4).tolist()
    [[0.9668, 0.0332], [0.0668, 0.9332]]
    """
    try:
        levels = levels_of(data, recipe)
    except NotPredicted as why:
        raise NoClosedForm(f"the chances of the design are not known in closed form: {why}") from None
    moved = tuple(name for name in keys if name in levels.swap)
    held = tuple(name for name in keys if name not in moved)
    decisive = Cross.of(data, (*moved, *(name for name in held if name in levels.codes)))
    moving = Cross.of(data, moved)
    if not decisive.exact:
        raise NoClosedForm("the keys have too many categories to list the chances of the design")
    origins, origin = np.unique(_number(decisive, levels.codes), return_inverse=True)
    shown, part = np.unique(_number(moving, levels.codes), return_inverse=True)
    size = np.bincount(origin, weights=levels.counts).astype(np.float64)
    share = (levels.counts / size[origin])[:, None]
    own = (part[:, None] == np.arange(len(shown))) * 1.0
    chance = (origin[:, None] == np.arange(len(origins))).T.astype(float) @ (share * (levels.reach @ own))
    level = np.zeros(len(origins), dtype=np.int64)
    level[origin] = part
    return Transition(moved, held, decisive, moving, origins, shown, chance, level, size)


def moves_of(given: AttackInput) -> CellMoves | str:
    """Return the chances between the cells of the keys that the design gives, or why there are none.

    They are worked out from the released file, which is all that the intruder has.
    """
    if given.design is None:
        return NO_RECIPE if given.recipe is None else NEEDS_DESIGN
    try:
        return transition_of(given.released, given.design, given.keys).between(given.table)
    except NoClosedForm as why:
        return str(why)
    except QuadrilleError as error:
        return f"the design does not fit the released file: {error}"
