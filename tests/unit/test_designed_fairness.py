"""Designed swaps of a small file: all outcomes are listed by hand, and each is drawn equally often."""

from __future__ import annotations

from collections import Counter
from itertools import product

from scipy.stats import chisquare

import quadrille as qd
from effort import tries
from strategies import file_of

RECKONED = 1e-4
"""A chi-square test with fixed seeds fails below this chance."""


def test_small_files_have_the_enumerated_outcomes() -> None:
    """The table [[4, 1], [1, 4]], its margins kept, becomes [[5, 0], [0, 5]] or, at half of the loss, [[3, 2], [2, 3]].

    That takes one exchange of A or of B between one of the first four records and one of the last four: 32 ways.
    """
    data = file_of(A=[0] * 5 + [1] * 5, B=[0] * 4 + [1] + [0] + [1] * 4)
    draws, found = tries(40, nightly=6_400), Counter[tuple[str, int, int]]()
    recipe = qd.DesignedSwap(keep="1-way", n=2, inference=0, effort=0.01, seed=1)
    prepared = recipe.prepared(data)
    for seed in range(draws):
        (move,) = prepared.draw(recipe.stream_of(seed)).moves
        rows, source = (side.tolist() for side in move.expanded)
        assert rows == source[::-1]
        found[(*move.columns, min(rows), max(rows))] += 1
    ways = list(product("AB", range(4), range(6, 10)))
    assert set(found) <= set(ways)
    assert chisquare([found[way] for way in ways]).pvalue > RECKONED
