"""The factor f by which users can correct tables: how it follows from a plan, and its lines in the methods note.

For a permutation of k of n records f = k / (n - 1), in every class apart; for true swaps of a variable with two
categories f = pairs * n / (n1 * n2). Published are f, the swapped variables and, where there are classes, what they
are; never a seed, a plan or a pair.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from quadrille.data import Data
from quadrille.errors import InputError, ParameterError
from quadrille.plan import Plan
from quadrille.recipe import Recipe
from quadrille.swap.permutation import PermutationSwap
from quadrille.swap.random import RandomSwap

_LINE = re.compile(r"^- f(?: \((?P<where>.*)\))?: (?P<f>[0-9.e+-]+)$", re.MULTILINE)
_SWAPPED = re.compile(r"^- swapped: (?P<names>.+)$", re.MULTILINE)
_KIND = re.compile(r"^- kind: (?P<kind>pairs|cycles)$", re.MULTILINE)


@dataclass(frozen=True)
class Published:
    """What a note says for the correction of tables: f, or an f for each class by its label."""

    swapped: tuple[str, ...]
    kind: str
    f: dict[str, float]

    def section(self) -> str:
        """Return the section of the methods note."""
        lines = [f"- f ({label}): {f:.12g}" if label else f"- f: {f:.12g}" for label, f in self.f.items()]
        listed = "\n".join([f"- swapped: {', '.join(self.swapped)}", f"- kind: {self.kind}", *lines])
        return _SECTION.format(listed=listed)


_SECTION = """
## Correcting a table

The published factor f lets users remove the bias that swapping puts into a table of counts. Let T'
be a table of the swapped variables (columns) against variables that were not swapped (rows), R and
C its row and column totals and n its total. Then

    T = (T' - f R C / n) / (1 - f)

estimates the original table without bias; where f is given by class, correct each class apart and
add up. Single cells become more variable, and small ones can
come out negative. `quadrille correct TABLE.csv --note methods.md` does the sum and gives standard
errors.

{listed}
"""


def published(recipe: Recipe, plan: Plan, data: Data) -> Published:
    """Work out what to publish for a plan, or say why there is no such factor."""
    if isinstance(recipe, PermutationSwap):
        return _of_permutation(recipe, plan, data)
    if isinstance(recipe, RandomSwap) and len(recipe.swap) == 1 and not recipe.same and not recipe.different:
        counts = np.bincount(data.coded(recipe.swap[0], purpose="a factor f").values)
        present = counts[counts > 0]
        if len(present) == 2 and recipe.differ != "none":
            f = recipe.count(data.n) * data.n / (int(present[0]) * int(present[1]))
            return Published(tuple(recipe.swap), "pairs", {"": f})
    raise ParameterError(
        "There is no factor f to publish for this recipe: only for PermutationSwap of kind pairs or cycles, and for a "
        "RandomSwap of one variable with two categories and no constraints. Leave 'publish_f' out."
    )


def _of_permutation(recipe: PermutationSwap, plan: Plan, data: Data) -> Published:
    if recipe.kind == "across":
        raise ParameterError("A swap of kind 'across' has no single factor f. Leave 'publish_f' out.")
    if not recipe.within:
        return Published(tuple(recipe.swap), recipe.kind, {"": len(plan.rows) / (data.n - 1)})
    assert plan.details is not None
    classes = cast("list[dict[str, Any]]", plan.details.facts["classes"])
    return Published(
        tuple(recipe.swap),
        recipe.kind,
        {str(each["class"]): each["k"] / (each["n"] - 1) if each["n"] > 1 else 0.0 for each in classes},
    )


def read_published(note: str, where: str) -> Published:
    """Read the factor f back from a methods note."""
    found, swapped, kind = _LINE.findall(note), _SWAPPED.search(note), _KIND.search(note)
    if not found or swapped is None or kind is None:
        raise InputError(f"{where} publishes no factor f. Ask the publisher for it, and give it with --f.")
    names = tuple(name.strip() for name in swapped["names"].split(","))
    return Published(names, kind["kind"], {label: float(f) for label, f in found})
