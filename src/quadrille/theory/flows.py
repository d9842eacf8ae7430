"""The expected table after random true swaps: how many pairs join each two levels (derivations/expected.md)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any, SupportsFloat, cast

import numpy as np
from numpy.typing import NDArray

from quadrille.data import Cross, Data, Ticks
from quadrille.errors import InputError, bad_parameter, infeasible
from quadrille.params import one_of
from quadrille.swap.groups import Ints, codes_of, group_ids
from quadrille.swap.random import RandomSwap
from quadrille.theory.margin import MOST_ENTRIES, Margin
from quadrille.theory.spread import Floats, Moments, Spread, cross_parts

_CHUNK = 1 << 18
_PART = 1 << 15


@dataclass(frozen=True, eq=False)
class Joint:
    """Records of each group, class, moved part and stayed part; with a weight also sums of its deviations.

    `first` and `second` add up w - m and (w - m)^2, m the mean weight of the class: sums around the mean keep their
    digits when weights hardly vary. `heavy` says which side the weight is on.
    """

    count: Ints
    first: Floats | None = None
    second: Floats | None = None
    mean: Floats | None = None
    heavy: str = "stayed"

    def spreads(self) -> Iterator[tuple[slice, Spread]]:
        """Return the sums of all cells, some classes at a time, as arrays (class, cell)."""
        classes, cells = self.count.shape[1], prod(self.count.shape[2:])
        step = max(1, _CHUNK // max(1, cells))
        for start in range(0, classes, step):
            part = slice(start, min(start + step, classes))
            yield part, self._spread(part)

    def _spread(self, part: slice) -> Spread:
        count, first, second = (
            None if t is None else _facing(t[:, part], self.heavy) for t in (self.count, self.first, self.second)
        )
        assert count is not None
        mean = np.ones(count.shape[1]) if self.mean is None else self.mean[part]
        blocks = Blocks(count, first, second, mean[:, None, None])
        found = blocks.spread()

        def flat(values: Floats) -> Floats:
            return _facing(values, self.heavy).reshape(values.shape[0], -1)

        return Spread(
            flat(found.value),
            tuple(size[:, :, 0] for size in found.sizes),
            flat(found.bias_sum),
            tuple(flat(each) for each in found.parts),
        )


def _facing(table: NDArray[Any], heavy: str) -> NDArray[Any]:
    """Turn the table so that the side with the weight comes first; the formulas are symmetric in a and b."""
    return table if heavy == "moved" else np.swapaxes(table, -1, -2)


@dataclass(frozen=True, eq=False)
class Blocks:
    """The joint counts (group, class, a-side, b-side) of some classes; a = w on its part, b an indicator."""

    count: Ints
    first: Floats | None
    second: Floats | None
    mean: Floats

    def spread(self) -> Spread:
        """Return the sums of every cell: C and (Q, A2 B2, C^2), or those over cross pairs for two groups."""
        pooled = self.count.sum(axis=0)
        n = pooled.sum(axis=(1, 2), keepdims=True)
        on_a, on_b = pooled.sum(axis=2, keepdims=True), pooled.sum(axis=1, keepdims=True)
        first = None if self.first is None else self.first.sum(axis=0)
        value = self.mean * pooled + (0 if first is None else first)
        tilt = 0.0 if first is None else first.sum(axis=2, keepdims=True)
        safe = np.maximum(n, 1)
        level = (self.mean * on_a + tilt) / safe
        above = self.mean * ((n - on_a) / safe) - tilt / safe
        inside, outside = (n - on_b) / safe, -(on_b / safe)
        moments = [self._moments(g, level, above, inside, outside) for g in range(len(self.count))]
        if len(moments) > 1:
            bias_sum, parts = cross_parts(*moments)
            return Spread(value, tuple(m[0][0] for m in moments), bias_sum, parts)
        m = moments[0]
        # whole numbers below 2^62 for counts, so that independence gives 0 and not a rounding error
        c = (n * pooled - on_a * on_b) / safe if first is None else value - level * on_b
        a2, b2 = np.maximum(m[2][0], 0.0), on_b * ((n - on_b) / safe)
        return Spread(value, (n,), c, (np.maximum(m[2][2], 0.0), a2 * b2, c * c))

    def _moments(self, g: int, level: Floats, above: Floats, inside: Floats, outside: Floats) -> Moments:
        """Add up (a - mean)^i (b - mean)^j over the four blocks: in both, in a only, in b only, in neither."""
        count = self.count[g]
        n = count.sum(axis=(1, 2), keepdims=True)
        on_a, on_b = count.sum(axis=2, keepdims=True), count.sum(axis=1, keepdims=True)
        both = self._powers(g, count, above)
        only_b, neither = on_b - count, n - on_a - on_b + count
        rows: list[tuple[Floats, ...]] = []
        for i, part in enumerate(both):
            rest = part.sum(axis=2, keepdims=True) - part
            off = (-level) ** i
            rows.append(
                tuple(
                    inside**j * part + outside**j * rest + off * (inside**j * only_b + outside**j * neither)
                    for j in range(3)
                )
            )
        return (n, *rows[0][1:]), rows[1], rows[2]

    def _powers(self, g: int, count: Ints, above: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the sums of (a - mean)^i over the records that are in both parts."""
        one, two = count * above, count * above**2
        if self.first is not None and self.second is not None:
            one, two = one + self.first[g], two + 2 * above * self.first[g] + self.second[g]
        return count.astype(float), one, two


@dataclass(frozen=True, eq=False)
class ClassIndex:
    """The class of every record, either listed or worked out from codes as they are read."""

    count: int
    listed: Ints | None = None
    cross: Cross | None = None

    def of(self, data: Data, rows: slice) -> Ints:
        """Return the class of some records."""
        return self.listed[rows] if self.listed is not None else _codes(data, (self.cross,), rows)


def tally(
    data: Data,
    margin: Margin,
    *,
    classes: ClassIndex | None = None,
    group: Ints | None = None,
    heavy: str | None = None,
) -> Joint:
    """Count in one pass; `heavy` is the side of the weight, "moved" or "stayed", None for plain counts."""
    many = 1 if classes is None else classes.count
    shape = (1 if group is None else 2, many, margin.moved.possible, margin.stayed.possible)
    size = prod(shape)
    if size > 2 * MOST_ENTRIES:
        raise InputError(
            f"{many:,} classes times {margin.cells:,} cells are too many for one table of errors. "
            "Take a smaller margin or fewer classes."
        )
    weights = None if heavy is None else data.ticks
    mean = None if weights is None else _class_means(data, weights, classes)
    count, first, second = np.zeros(size, dtype=np.int64), np.zeros(size), np.zeros(size)
    for rows in _parts(data.n, size):
        cells = _codes(data, (margin.moved, margin.stayed), rows)
        own = None if classes is None else classes.of(data, rows)
        if own is not None:
            cells += own * margin.cells
        if group is not None:
            cells += group[rows] * (many * margin.cells)
        count += np.bincount(cells, minlength=size)
        if weights is not None and mean is not None:
            gap = weights.values[rows] / weights.per_unit - (mean[0] if own is None else mean[own])
            first += np.bincount(cells, weights=gap, minlength=size)
            gap *= gap
            second += np.bincount(cells, weights=gap, minlength=size)
    if heavy is None or mean is None:
        return Joint(count.reshape(shape))
    return Joint(count.reshape(shape), first.reshape(shape), second.reshape(shape), mean, heavy)


def _parts(n: int, size: int) -> Iterator[slice]:
    """Cut the file into parts that stay in the processor's cache: no intermediate result is as long as a column."""
    step = max(_PART, size)
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


def _codes(data: Data, crosses: tuple[Cross | None, ...], rows: slice) -> Ints:
    """Return the cells of some records in the cross of crosses, the first one slowest."""
    cells = np.zeros(rows.stop - rows.start, dtype=np.int64)
    for cross in filter(None, crosses):
        cells *= cross.possible
        for name, stride in zip(cross.variables, cross.strides, strict=True):
            cells += data[name].values[rows].astype(np.int64) * stride
    return cells


def _class_means(data: Data, weights: Ticks, classes: ClassIndex | None) -> Floats:
    """Return the mean weight of each class."""
    if classes is None:
        return np.array([weights.values.mean() / weights.per_unit])
    total, count = np.zeros(classes.count), np.zeros(classes.count, dtype=np.int64)
    for rows in _parts(data.n, classes.count):
        own = classes.of(data, rows)
        total += np.bincount(own, weights=weights.values[rows], minlength=classes.count)
        count += np.bincount(own, minlength=classes.count)
    return total / weights.per_unit / np.maximum(count, 1)


def sums_by(cells: Ints, values: Floats, shape: tuple[int, ...]) -> Floats:
    """Add up values by cell, in an array of this shape."""
    return cast("Floats", np.bincount(cells, weights=values, minlength=prod(shape))).reshape(shape)


_OWNER = "pairs_between"
MOST_LEVELS = 2000
_FLOW_STEPS = 256
_MOST_WALK, _MOST_WALKED = 20_000, 50
"""Up to so many stayed parts times squared levels, and levels, the scatter of pairs is that of draws without
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
    """Return m_ab, the expected number of pairs between levels a and b (derivations/expected.md, formulas 1 and 2).

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
    if isinstance(pairs, bool) or not isinstance(pairs, SupportsFloat) or not 0 <= float(pairs) < np.inf:
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


def flow_moments(
    data: Data, recipe: RandomSwap, moved: tuple[tuple[str, ...], tuple[str, ...]], margin: Margin, pairs: int
) -> FlowMoments:
    """Return the expected table and its variance when some variables move in true swaps and carry others along."""
    swap, along = moved
    moving = swap + along
    names = (*moving, *(name for name in (*recipe.same, *recipe.different) if name not in moving))
    columns = [codes_of(data, name) for name in names]
    level, levels = group_ids(columns, data.n)
    if levels > MOST_LEVELS:
        raise InputError(
            f"The swapped and constraining variables have {levels:,} combinations; the expected table takes at most "
            f"{MOST_LEVELS:,}. Draw plans instead."
        )
    leader = np.zeros(levels, dtype=np.int64)
    leader[level] = np.arange(data.n)
    codes = {name: column[leader].astype(np.int64) for name, (column, _) in zip(names, columns, strict=True)}
    counts = np.bincount(level, minlength=levels).astype(float)
    allowed = _admissible(recipe, swap, codes)
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
    """Return what the scatter of numbers of pairs adds, drawn without replacement (derivations/correction.md, 3)."""

    gain = mean.T[:, None, :] - mean.T[:, :, None]
    return np.einsum("fab,ap,bp->pf", pair_scatter(counts, pairs, sampler, gain), own, own, optimize=True)


def _varying_pairs(between: Floats, own: Floats, mean: Floats) -> Floats:
    """Return sum m_ab d_ab^2 for every cell, d_ab what one pair between levels a and b adds to it on average.

    Pairs fall between levels almost as in a multinomial draw (derivations/expected.md, formula 6).
    """
    apart = between * (1 - own @ own.T)
    square = mean**2
    return (
        own.T @ (square * apart.sum(axis=1)[:, None]) + (apart @ own).T @ square - 2 * own.T @ (mean * (apart @ mean))
    )


def _admissible(recipe: RandomSwap, swap: tuple[str, ...], codes: dict[str, Ints]) -> NDArray[np.bool_]:
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
    cells = margin.stayed.cells(data) + level * margin.stayed.possible
    shape = (levels, margin.stayed.possible)
    plain = np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape).astype(float)
    if data.ticks is None:
        return plain, plain, plain
    weight = data.ticks.values / data.ticks.per_unit
    return plain, sums_by(cells, weight, shape), sums_by(cells, weight**2, shape)


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
        """Linearise the walk where so many records are left."""
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
