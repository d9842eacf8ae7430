"""All methods of swapping, one file each."""

from __future__ import annotations

from quadrille.recipe import Recipe
from quadrille.swap import controlled as controlled  # registers its recipe
from quadrille.swap import designed as designed
from quadrille.swap import permutation as permutation
from quadrille.swap import random as random


def recipe_from_json(text: str) -> Recipe:
    """Read a recipe of any method from its canonical JSON.

    Example
    -------
    >>> import quadrille as qd
    >>> qd.recipe_from_json(qd.RandomSwap(["Edu"], rate=0.02, seed=7).to_json()).rate
    0.02
    """
    return Recipe.from_json(text)
