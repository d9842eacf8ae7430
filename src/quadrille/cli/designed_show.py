"""What a designed swap says about small cells, as text for a terminal, and the measures that belong to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from quadrille.cli import show
from quadrille.cli.inputs import addresses

if TYPE_CHECKING:
    from quadrille.account import Account
    from quadrille.data import Data
    from quadrille.recipe import Recipe


def measured(recipe: Recipe, given: Sequence[str] | None, data: Data) -> Sequence[str]:
    """Return the measures to score; without any given, a designed swap is judged by its tables, too."""
    from quadrille.study.designed import default_measures
    from quadrille.swap.designed import DesignedSwap

    wanted = addresses(given, data)
    if given or not isinstance(recipe, DesignedSwap):
        return wanted
    return list(dict.fromkeys((*default_measures(recipe.n, recipe.tables), *wanted)))


def show_diagnosis(account: Account) -> None:
    """Print which cells were treated and how, which were left and why, and who is still exposed."""
    from quadrille.io.designed import NEAR_HEAD, SIZE_HEAD, diagnosis_of

    found = diagnosis_of(account)
    if found is None:
        return
    show.title("Small cells")
    left = [("left", f"{count} cells: {reason}") for reason, count in found.left]
    show.facts([("treated", found.treated), *left, ("exposed", found.exposed)])
    show.note("")
    show.grid(SIZE_HEAD, found.by_size, numbers=range(len(SIZE_HEAD)), whole=range(5))
    show.note("")
    show.facts([("just large", found.near)])
    show.note("")
    show.grid(NEAR_HEAD, found.just_large, numbers=range(len(NEAR_HEAD)))
    show.note(f"\nBeware: {found.n_rule}")
