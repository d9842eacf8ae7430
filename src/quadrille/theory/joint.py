"""The tally of a margin by class, moved part and stayed part: all that the errors of its cells depend on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from quadrille.cross import Cross
from quadrille.data import Data
from quadrille.errors import InputError
from quadrille.theory.across import Moments, cross_parts
from quadrille.theory.margin import MOST_ENTRIES, Ints, Margin
from quadrille.theory.spread import Floats, Spread
from quadrille.weights import Ticks

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
            flat(found.lean),
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
            lean, parts = cross_parts(*moments)
            return Spread(value, tuple(m[0][0] for m in moments), lean, parts)
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
