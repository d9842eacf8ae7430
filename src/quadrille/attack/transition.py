"""The chance that a person with one combination of keys is released with another, from the design of a swap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from quadrille.attack.input import NO_RECIPE, AttackInput, Floats, KeyTable
from quadrille.errors import QuadrilleError
from quadrille.swap.groups import Ints, group_ids
from quadrille.theory.cells import Levels, NotPredicted, levels_of


@dataclass(frozen=True, eq=False)
class Transition:
    """M(x -> z) = reach[source[x], goal[z]] where x and z agree in the keys that stay, else 0.

    `stay` numbers the combinations of the keys that stay, `goal` those of the keys that move, `source` what of a
    combination decides how it moves.
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


def transition(given: AttackInput) -> Transition | str:
    """Return the transition of the keys that the design gives, or why there is none.

    It is worked out from the released file, which is all that the intruder has.
    """
    if given.design is None:
        return NO_RECIPE if given.recipe is None else "is for an intruder who knows the design"
    try:
        levels = levels_of(given.released, given.design)
    except NotPredicted as why:
        return f"the chances of the design are not known in closed form: {why}"
    except QuadrilleError as error:
        return f"the design does not fit the released file: {error}"
    return _of_keys(given.table, levels)


def _of_keys(table: KeyTable, levels: Levels) -> Transition:
    """Average the levels of a design over what the keys do not tell."""
    moving = [name for name in table.names if name in levels.swap]
    deciding = [name for name in table.names if name in levels.codes]
    source, sources = _joint(table, levels, deciding)
    goal, goals = _joint(table, levels, moving)
    count = len(levels.counts)
    inside = np.bincount(source[:count], weights=levels.counts, minlength=sources)
    reach = np.zeros((sources, goals))
    np.add.at(reach, source[:count], levels.counts[:, None] * _summed(levels.reach, goal[:count], goals))
    reach /= np.maximum(inside, 1)[:, None]
    stay, stays = table.ids([name for name in table.names if name not in moving])
    return Transition(stay, stays, source[count:], goal[count:], reach)


def _joint(table: KeyTable, levels: Levels, names: Sequence[str]) -> tuple[Ints, int]:
    """Number the combinations of some columns alike for levels, which come first, and cells."""
    columns = [
        (np.concatenate([levels.codes[name], table.codes[place]]), table.sizes[place])
        for name in names
        for place in [table.names.index(name)]
    ]
    return group_ids(columns, len(levels.counts) + table.cells)


def _summed(values: Floats, group: Ints, groups: int) -> Floats:
    return values @ (group[:, None] == np.arange(groups)).astype(np.float64)
