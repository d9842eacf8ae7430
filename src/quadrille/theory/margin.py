"""A margin such as "Age*MS", split into the variables that move and those that stay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from quadrille.data import Cross, Data, require_columns
from quadrille.errors import InputError, bad_parameter
from quadrille.expressions import split_outside_quotes, unquoted

Ints = NDArray[np.int64]

MOST_ENTRIES = 1 << 24
"""Classes times cells of the largest tally."""


@dataclass(frozen=True, eq=False)
class Margin:
    """The variables of a margin, those that move first, those that stay second."""

    variables: tuple[str, ...]
    moved: Cross
    stayed: Cross
    labels: dict[str, tuple[str, ...]]

    @property
    def cells(self) -> int:
        """Number of possible cells."""
        return self.moved.possible * self.stayed.possible

    def codes(self, cells: Ints) -> dict[str, Ints]:
        """Return the code of each variable in cells numbered moved part first."""
        p, f = np.divmod(cells, self.stayed.possible)
        sides = dict.fromkeys(self.moved.variables, (self.moved, p)) | dict.fromkeys(
            self.stayed.variables, (self.stayed, f)
        )
        return {name: cross.codes(part, name) for name in self.variables for cross, part in (sides[name],)}

    def ordered(self, cells: Ints) -> Ints:
        """Return cells in the order of the margin as it was written."""
        codes = self.codes(cells)
        return cells[np.lexsort([codes[name] for name in reversed(self.variables)])]

    def named(self, cells: Ints) -> list[dict[str, object]]:
        """Return the labels of cells, one mapping per cell."""
        codes = self.codes(cells)
        return [{name: self.labels[name][int(codes[name][i])] for name in self.variables} for i in range(len(cells))]


def margin_of(data: Data, margin: str | Sequence[str], swap: Sequence[str], where: str) -> Margin:
    """Read a margin such as "Age*MS" and split it into what moves and what stays."""
    if not isinstance(cast("object", margin), str | list | tuple):
        raise bad_parameter(where, "margin", 'variables joined by "*", such as "Age*MS", or a list of them', margin)
    listed = split_outside_quotes(margin, "*") if isinstance(margin, str) else list(margin)
    if not listed or not all(isinstance(name, str) and name.strip() for name in cast("list[object]", listed)):
        raise bad_parameter(where, "margin", 'at least one variable, such as "Age*MS"', margin)
    variables = tuple(unquoted(name) for name in listed)
    require_columns(data, variables, f"the margin of {where}")
    if len(set(variables)) != len(variables):
        raise InputError(f"A variable occurs twice in the margin of {where}. Name each variable once.")
    moved = Cross.of(data, tuple(name for name in variables if name in swap))
    stayed = Cross.of(data, tuple(name for name in variables if name not in swap))
    if moved.possible * stayed.possible > MOST_ENTRIES:
        raise InputError(
            f"The margin of {where} has {moved.possible * stayed.possible:,} possible cells; at most "
            f"{MOST_ENTRIES:,} are supported. Leave out a variable."
        )
    return Margin(variables, moved, stayed, {name: data[name].labels for name in variables})
