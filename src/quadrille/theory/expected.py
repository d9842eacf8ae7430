"""What is expected before a draw: the pairs between levels (expected.md), the ranks of a rank swap (ranks.md)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from quadrille.data import Data, Floats, Ints, require_data, tidy
from quadrille.errors import InputError, ParameterError, bad_parameter, infeasible
from quadrille.params import as_float, one_of, share, whole
from quadrille.swap.groups import codes_of, group_ids
from quadrille.swap.random import RandomSwap
from quadrille.swap.rank import RankSwap
from quadrille.swap.rank.draw import RankDraw
from quadrille.swap.rank.expected import expected_correlation
from quadrille.theory.tally import Margin

if TYPE_CHECKING:
    import polars as pl


_OWNER = "pairs_between"
MOST_LEVELS = 2000
_FLOW_STEPS = 256
_MOST_WALK, _MOST_WALKED = 20_000, 50
"""Up to these numbers of stayed parts times squared levels, and levels, the scatter of pairs is that of draws without
replacement: beyond, it would take longer than tabulating the file."""

_TWO = 2


@dataclass(frozen=True, eq=False)
class FlowMoments:
    """Count, total before, expected total and variance of every cell of a margin; `exact` for two levels.

    `levels` counts the combinations of values that decide who may be paired.
    """

    count: Ints
    before: Floats
    expected: Floats
    variance: Floats
    exact: bool
    levels: int


def pairs_between(
    counts: Floats, pairs: float, sampler: str = "first-uniform", admissible: NDArray[np.bool_] | None = None
) -> Floats:
    """Return m_ab, the expected number of pairs between levels a and b (expected.md, formulas 1 and 2).

    Mean field: each pair takes the expected numbers off both levels. Exact for two levels. Up to 256 pairs the
    recursion goes pair by pair, beyond in as many equal steps by the midpoint rule.

    Example
    -------
    >>> import numpy as np
    >>> import quadrille as qd
    >>> m = qd.theory.pairs_between(np.array([8432.0, 33541.0, 6869.0]), 2442)
    >>> [round(float(m[pair]), 1) for pair in ((0, 1), (0, 2), (1, 2))]
    [1280.4, 129.7, 1031.9]
    """
    unused, allowed = _checked_levels(counts, pairs, sampler, admissible)
    found = np.zeros(allowed.shape)
    if not pairs:
        return found
    steps = max(1, min(int(pairs), _FLOW_STEPS))
    size = pairs / steps
    for _ in range(steps):
        chance = chances(unused, allowed, sampler)
        if size > 1:
            middle = np.maximum(unused - size / 2 * taken(chance), 0.0)
            chance = chances(middle, allowed, sampler)
        if not chance.any():
            left = int(found.sum() / 2)
            raise infeasible(
                f"{int(pairs):,} pairs cannot be drawn: after about {left:,} no record has a partner.",
                int(pairs),
                left,
                hint="Ask for fewer.",
            )
        found += size * chance
        unused = np.maximum(unused - size * taken(chance), 0.0)
    return found


def _checked_levels(
    counts: object, pairs: object, sampler: str, admissible: object
) -> tuple[Floats, NDArray[np.bool_]]:
    """Check what `pairs_between` was given; return a copy of the counts, and which levels may be paired."""
    one_of(_OWNER, "sampler", sampler, ("first-uniform", "pair-uniform"))
    try:
        unused = np.array(counts, dtype=float)
    except (TypeError, ValueError):
        unused = np.zeros(0)
    if unused.ndim != 1 or not len(unused) or not np.isfinite(unused).all() or (unused < 0).any():
        raise InputError(f"The 'counts' of {_OWNER} must be a list of numbers of 0 or more, one per level.")
    if not 0 <= as_float(pairs) < np.inf:
        raise bad_parameter(_OWNER, "pairs", "a number of 0 or more", pairs)
    allowed = ~np.eye(len(unused), dtype=bool) if admissible is None else np.asarray(admissible, dtype=bool)
    if allowed.shape != (len(unused), len(unused)) or (allowed != allowed.T).any():
        raise InputError(f"The 'admissible' of {_OWNER} must be a symmetric matrix with a row and column per level.")
    return unused, allowed


def taken(chance: Floats) -> Floats:
    """Return how many records of each level the next pair takes on average."""
    return chance.sum(axis=1) + np.diag(chance)


def chances(unused: Floats, allowed: NDArray[np.bool_], sampler: str) -> Floats:
    """Return the symmetric chances that the next pair joins levels a and b; those with a <= b add up to 1."""
    own = np.diag(allowed) * 1.0
    ordered = allowed * (unused[:, None] * np.maximum(unused[None, :] - np.diag(own), 0.0))
    if sampler == "pair-uniform":
        total = ordered.sum()
        chance = ordered / total if total > 0 else ordered
    else:
        partners = ordered.sum(axis=1)
        able = partners > 0
        start = unused[able].sum()
        chance = np.zeros_like(ordered)
        if start > 0:
            chance[able] = ordered[able] / partners[able, None] * (unused[able] / start)[:, None]
    symmetric = chance + chance.T
    np.fill_diagonal(symmetric, np.diag(chance))
    return symmetric


def transitions(counts: Floats, between: Floats) -> Floats:
    """Return Q: the share of the records of level a that hold the values of level b afterwards."""
    q = between / np.maximum(counts, 1)[:, None]
    np.fill_diagonal(q, 0.0)
    np.fill_diagonal(q, 1 - q.sum(axis=1))
    return q


def combinations(data: Data, names: Iterable[str]) -> tuple[Ints, Floats, dict[str, Ints]]:
    """Number the combinations of values that occur; return that of each record, their counts and what they hold."""
    columns = {name: codes_of(data, name) for name in names}
    of, count = group_ids(list(columns.values()), data.n)
    leader = np.zeros(count, dtype=np.int64)
    leader[of] = np.arange(data.n)
    codes = {name: column[leader].astype(np.int64) for name, (column, _) in columns.items()}
    return of, np.bincount(of, minlength=count).astype(float), codes


def flow_moments(
    data: Data, recipe: RandomSwap, moved: tuple[tuple[str, ...], tuple[str, ...]], margin: Margin, pairs: int
) -> FlowMoments:
    """Return the expected table and its variance when some variables move in true swaps and carry others along."""
    swap, along = moved
    level, counts, codes = combinations(data, (*swap, *along, *recipe.same, *recipe.different))
    levels = len(counts)
    if levels > MOST_LEVELS:
        raise InputError(
            f"The swapped and constraining variables have {levels:,} combinations; the expected table takes at most "
            f"{MOST_LEVELS:,}. Draw plans instead."
        )
    allowed = admissible(recipe, swap, codes)
    own = _own_part(margin, codes)
    between = pairs_between(counts, pairs, recipe.sampler, allowed)
    reached = transitions(counts, between) @ own
    plain, total, square = _level_tables(data, margin, level, levels)
    spare = np.maximum(counts - 1, 1)[:, None]
    scatter = np.where(counts[:, None] > 1, (counts[:, None] * square - total**2) / spare, square)
    before, expected = own.T @ total, reached.T @ total
    variance = (reached * (1 - reached)).T @ np.maximum(scatter, 0.0)
    free = bool((allowed == ~np.eye(levels, dtype=bool)).all())
    if levels == _TWO and free:
        pass  # every pair joins the two levels
    elif free and levels <= _MOST_WALKED and margin.stayed.possible * levels**2 <= _MOST_WALK:
        variance += _walking_pairs(counts, pairs, recipe.sampler, own, total / counts[:, None])
    else:
        variance += _varying_pairs(between, own, total / counts[:, None]) - (expected - before) ** 2 / pairs
    return FlowMoments(
        (own.T @ plain).astype(np.int64).ravel(),
        before.ravel(),
        expected.ravel(),
        np.maximum(variance, 0.0).ravel(),
        levels == _TWO and not allowed.diagonal().any(),
        levels,
    )


def _walking_pairs(counts: Floats, pairs: int, sampler: str, own: Floats, mean: Floats) -> Floats:
    """Return what the scatter of numbers of pairs adds, drawn without replacement (correction.md, 3)."""

    gain = mean.T[:, None, :] - mean.T[:, :, None]
    return np.einsum("fab,ap,bp->pf", pair_scatter(counts, pairs, sampler, gain), own, own, optimize=True)


def _varying_pairs(between: Floats, own: Floats, mean: Floats) -> Floats:
    """Return sum m_ab d_ab^2 for every cell, d_ab what one pair between levels a and b adds to it on average.

    Pairs fall between levels almost as in a multinomial draw (expected.md, formula 6).
    """
    apart = between * (1 - own @ own.T)
    square = mean**2
    return (
        own.T @ (square * apart.sum(axis=1)[:, None]) + (apart @ own).T @ square - 2 * own.T @ (mean * (apart @ mean))
    )


def admissible(recipe: RandomSwap, swap: Sequence[str], codes: dict[str, Ints]) -> NDArray[np.bool_]:
    """Return which levels may be paired with which."""

    def equal(name: str) -> NDArray[np.bool_]:
        return codes[name][:, None] == codes[name][None, :]

    alike = [equal(name) for name in swap]
    size = len(codes[swap[0]])
    allowed = np.ones((size, size), dtype=bool)
    if recipe.differ == "all":
        allowed &= ~np.logical_or.reduce(alike)
    elif recipe.differ == "any":
        allowed &= ~np.logical_and.reduce(alike)
    for name in recipe.same:
        allowed &= equal(name)
    for name in recipe.different:
        allowed &= ~equal(name)
    return allowed


def _own_part(margin: Margin, codes: dict[str, Ints]) -> Floats:
    """Return which moved part of the margin each level holds, as a 0/1 matrix."""
    cross = margin.moved
    part = sum((codes[name] * cross.stride(name) for name in cross.variables), np.zeros(1, dtype=np.int64))
    return (part[:, None] == np.arange(cross.possible)[None, :]) * 1.0


def _level_tables(data: Data, margin: Margin, level: Ints, levels: int) -> tuple[Floats, Floats, Floats]:
    """Return records, total weight and total squared weight by level and stayed part."""
    cells, shape = margin.stayed.cells(data) + level * margin.stayed.possible, (levels, margin.stayed.possible)

    def added(weights: Floats | None) -> Floats:
        return np.bincount(cells, weights=weights, minlength=prod(shape)).reshape(shape).astype(np.float64)

    plain = added(None)
    if data.ticks is None:
        return plain, plain, plain
    weight = data.ticks.values / data.ticks.per_unit
    return plain, added(weight), added(weight**2)


_STEPS = 64


def pair_scatter(counts: Floats, pairs: int, sampler: str, gain: Floats) -> Floats:
    """Return the covariances of y_a = sum_b m_ab g_ab over draws, m_ab the number of pairs between levels a and b.

    `gain` holds g, antisymmetric, (..., level, level); the result has the same shape. Every pair is a step of a random
    walk whose chances depend on the records left over: the covariances follow from its chances and their slopes.
    """
    unused = counts.astype(float).copy()
    own = np.zeros((len(counts), len(counts)))
    cross, found = np.zeros(gain.shape), np.zeros(gain.shape)
    steps = max(1, min(pairs, _STEPS))
    size = pairs / steps
    for _ in range(steps):
        middle = _left(unused, unused, size / 2, sampler) if size > 1 else unused
        walk = _Walk.at(middle, sampler, gain)
        if size > 1:
            first, second, _ = walk.grow(own, cross)
            grown = walk.grow(own + size / 2 * first, cross + size / 2 * second)
        else:
            grown = walk.step(own, cross)
        own, cross, found = (old + size * more for old, more in zip((own, cross, found), grown, strict=True))
        unused = _left(unused, middle, size, sampler)
    return found


def _left(unused: Floats, at: Floats, pairs: float, sampler: str) -> Floats:
    """Return the records left after some pairs, at the chances that hold where `at` are left."""
    return np.maximum(unused - pairs * taken(_chances(at, sampler)), 0.0)


def _chances(unused: Floats, sampler: str) -> Floats:
    return chances(unused, ~np.eye(len(unused), dtype=bool), sampler)


@dataclass(frozen=True, eq=False)
class _Walk:
    """The next pair: slopes of the records left and of the gains by the records left, covariances that it adds."""

    slopes: Floats
    turns: Floats
    noise: tuple[Floats, Floats, Floats]

    @classmethod
    def at(cls, unused: Floats, sampler: str, gain: Floats) -> _Walk:
        """Linearise the walk where these records are left."""
        chance = _chances(unused, sampler)
        loss, weighted, square = taken(chance), chance * gain, chance * gain**2
        mean = weighted.sum(axis=-1)
        noise = (
            np.diag(loss) + chance - np.outer(loss, loss),
            mean[..., :, None] * loss - weighted - _diagonal(mean),
            _diagonal(square.sum(axis=-1)) - square - mean[..., :, None] * mean[..., None, :],
        )
        return cls(-_slopes(unused, sampler, np.ones_like(chance)), _slopes(unused, sampler, gain), noise)

    def grow(self, own: Floats, cross: Floats) -> tuple[Floats, Floats, Floats]:
        """Return how fast covariances grow: of the records left, of gains with them, of the gains."""
        both = self.turns @ np.swapaxes(cross, -1, -2)
        return (
            self.slopes @ own + own @ self.slopes.T + self.noise[0],
            cross @ self.slopes.T + self.turns @ own + self.noise[1],
            both + np.swapaxes(both, -1, -2) + self.noise[2],
        )

    def step(self, own: Floats, cross: Floats) -> tuple[Floats, Floats, Floats]:
        """Return by how much covariances grow with one pair, the products of slopes included."""
        grown = self.grow(own, cross)
        return (
            grown[0] + self.slopes @ own @ self.slopes.T,
            grown[1] + self.turns @ own @ self.slopes.T,
            grown[2] + self.turns @ own @ np.swapaxes(self.turns, -1, -2),
        )


def _slopes(unused: Floats, sampler: str, weight: Floats) -> Floats:
    """Return the derivative of sum_b weight_ab p_ab by the records left in level c, as (..., a, c)."""
    x = np.maximum(unused, 1e-9)
    total = x.sum()
    apart = 1 - np.eye(len(x))
    if sampler == "pair-uniform":
        every = total**2 - (x**2).sum()
        chance = weight * apart * 2 * np.outer(x, x) / every
        row = chance.sum(axis=-1)
        return _diagonal(row / x) + chance / x - row[..., :, None] * 2 * (total - x) / every
    rest = np.maximum(total - x, 1e-9)
    start = apart * np.outer(x / rest, x) / total
    leaving, coming = weight * start, weight * start.T
    out, back = leaving.sum(axis=-1), coming.sum(axis=-1)
    late = (coming / rest).sum(axis=-1)
    return (
        _diagonal(out * (1 / x + 1 / rest) + back / x)
        + leaving / x
        + coming * (1 / x + 1 / rest)
        - (out * (1 / total + 1 / rest) + back / total + late)[..., :, None]
    )


def _diagonal(values: Floats) -> Floats:
    return values[..., :, None] * np.eye(values.shape[-1])


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
