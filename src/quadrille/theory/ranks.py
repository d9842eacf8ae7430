"""What a rank swap does to ranks and correlations, before any draw (ranks.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from quadrille.data import Data, require_data, tidy
from quadrille.errors import ParameterError
from quadrille.params import share, whole
from quadrille.swap.rank import RankSwap
from quadrille.swap.rank.draw import RankDraw
from quadrille.swap.rank.expected import expected_correlation

if TYPE_CHECKING:
    import polars as pl

LARGE = 1_000_000
"""Ranks of a file that is large: the correlation no longer depends on their number."""


def rank_correlation(window: float, n: int = LARGE) -> float:
    """Return the expected correlation of ranks before and after a rank swap within a window.

    For windows p of up to a quarter of the ranks it is 1 - 6 p^2 (0.391958 - 0.1941 p), but for small n.

    Parameters
    ----------
    window : share of the ranks.
    n : values that are ranked; a large file by default.

    Example
    -------
    >>> import quadrille as qd
    >>> [round(qd.theory.rank_correlation(p), 4) for p in (0.01, 0.05, 0.1, 0.5)]
    [0.9998, 0.9943, 0.9776, 0.5561]
    >>> round(qd.theory.rank_correlation(0.1, n=50), 4)
    0.971
    """
    ranks = whole("rank_correlation", "n", n, least=2)
    width = int(share("rank_correlation", "window", window) * ranks + 1e-9)
    if not width:
        raise ParameterError(f"A window of {window:g} takes in none of {ranks:,} ranks. Widen it.")
    one, none = np.array([ranks]), np.zeros(1, dtype=np.int64)
    return cast("float", expected_correlation(one, one, np.array([width]), none))


def expected_ranks(data: Data, recipe: RankSwap) -> pl.DataFrame:
    """Return what is known of a rank swap before any draw: one row per variable. Its seed plays no part.

    `width` is the window in ranks, `correlation` the expected one of ranks before and after, and `f` 1 less it: a
    correlation with another variable falls by this factor, where the regression on the ranks is linear. `changing` is
    the share of the pairs that hold two values. What has no closed form is missing: kernels other than "window",
    weighted windows, rules, differ="any", and a window that is found by trial.

    Example
    -------
    >>> import quadrille as qd
    >>> found = qd.theory.expected_ranks(qd.datasets.adult(), qd.RankSwap(["age"], window=0.05))
    >>> found.select("variable", "ranked", "width").rows(), round(found["f"][0], 4)
    ([('age', 48842, 2442)], 0.0057)
    """
    require_data(data, "expected_ranks")
    if not isinstance(cast("object", recipe), RankSwap):
        raise ParameterError("expected_ranks needs a recipe of RankSwap.")
    recipe.check_columns(data)
    rows = RankDraw(recipe, data).expected()
    names = {
        **{name: name for name in ("variable", "moves_with", "ranked", "missing", "classes", "window", "width")},
        "correlation": "rank_correlation_expected",
        "changing": "pairs_that_change_expected",
        "window_for_half": "window_for_half",
    }
    listed: list[dict[str, object]] = []
    for row in rows:
        expected = cast("float | None", row.get("rank_correlation_expected"))
        known = {name: row.get(key) for name, key in names.items()}
        listed.append({**known, "f": None if expected is None else 1 - expected})
    return tidy(listed)
