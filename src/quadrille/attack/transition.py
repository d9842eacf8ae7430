"""The chance that a person with some keys is released with others, as anybody can work it out who knows the design."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quadrille.attack.input import NEEDS_DESIGN, NO_RECIPE, AttackInput, KeyTable
from quadrille.data import Cross, Data, Floats, Ints
from quadrille.errors import QuadrilleError
from quadrille.recipe import Recipe
from quadrille.theory.cells import NotPredicted, levels_of

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
    >>> from quadrille.attack.transition import transition_of
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
