"""Additive sums of centred numbers: everything that weighted correlations and regressions are made of.

For columns z, centred and 0 where missing, and masks m of who has a value, the sums are [z|m]'W[z|m], (z²)'W m and the
counts m'm of records with a weight. Every pair's weighted r and n follow from them, and so does a regression on the
complete cases. A record of weight 0 counts nowhere, not even as a degree of freedom. Infinite values are counted: what
rests on one is not defined.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from quadrille.data import Codes, Data, Flags, Floats, Ints, unequal
from quadrille.delta import Delta
from quadrille.errors import MismatchError
from quadrille.expressions import Scale
from quadrille.summary import Summary

Values = Callable[[str], Codes]
Block = tuple[Floats, Floats, Ints, Ints]
"""Products, squares, counts and numbers of infinite values of some records."""

_CHUNK = 1 << 14
_FORMED_ANEW = 0.1
"""A sum that falls below this share of what it was has lost digits to its own rounding."""
_SAME = 1e-13
_LEAST = 1e-290
"""A sum of squares below this is near the smallest numbers, which have fewer digits."""
OUT_OF_RANGE = "the sums of squares leave the range of numbers: rescale the weight or the columns"


@dataclass(frozen=True)
class Moments(Summary):
    """Sums over some columns of numbers; each pair over the records with both values, or over `complete` records."""

    scales: tuple[Scale, ...] = ()
    complete: bool = False

    @cached_property
    def _hash(self) -> int:
        return hash((self.variables, self.where, self.scales, self.complete))

    def __hash__(self) -> int:
        return self._hash

    def of(self, data: Data, original: Data | None = None, swapped: Flags | None = None) -> Sums:
        """Add up, in chunks of rows."""
        reader = Reader(self, data)
        weights = _weights(data)
        total, weight = np.zeros((2, len(self.scales)))
        for span in _spans(data.n):
            x, own, _ = reader.numbers(_at(data, span))
            w = weights(span)
            with np.errstate(over="ignore", invalid="ignore"):
                total += w @ np.where(own, x, 0.0)
            weight += w @ own
        centre = np.divide(total, weight, out=np.zeros_like(total), where=weight > 0)
        return replace(Sums.around(self, centre, reader), unknown=reader.unknown(data))


class Reader:
    """Reads the records of a file as columns of numbers and masks."""

    def __init__(self, summary: Moments, data: Data) -> None:
        self.data = data
        self.complete = summary.complete
        self.variables = tuple(dict.fromkeys(scale.variable for scale in summary.scales))
        self.scales = [[scale for scale in summary.scales if scale.variable == name] for name in self.variables]
        self.lookups = [self._lookup(name, scales) for name, scales in zip(self.variables, self.scales, strict=True)]
        conditions = summary.where.conditions if summary.where else ()
        self.conditions = [(condition.variable, condition.allowed(data)) for condition in conditions]
        masks, mask_of = 1, list[int]()
        for name, scales in zip(self.variables, self.scales, strict=True):
            column = data[name]
            may_miss = not self.complete and (not column.variable.coded or column.size > column.valid)
            mask_of += [masks if may_miss else 0] * len(scales)
            masks += may_miss
        self.masks = masks
        self.mask_of = np.array(mask_of, dtype=np.int64)
        """The mask of each column; mask 0 holds the records that meet the condition."""

    def _lookup(self, name: str, scales: list[Scale]) -> Floats | None:
        numbers = [scale.numbers(self.data[name]) for scale in scales]
        return np.stack([n for n in numbers if n is not None], axis=1) if numbers[0] is not None else None

    def unknown(self, data: Data) -> int:
        """Count the records with a category that the file before does not have."""
        unknown = 0
        for name, scales in zip(self.variables, self.scales, strict=True):
            column = data[name]
            if column.variable.coded and column.valid > scales[0].known:
                unknown += int(((column.values >= scales[0].known) & (column.values < column.valid)).sum())
        return unknown

    def numbers(self, values: Values) -> tuple[Floats, Flags, Flags]:
        """Return the numbers of some records, one column per scale, which of them count, and which are infinite."""
        x = np.concatenate(
            [
                lookup[values(name)] if lookup is not None else values(name)[:, None]
                for name, lookup in zip(self.variables, self.lookups, strict=True)
            ],
            axis=1,
        )
        own, infinite = np.isfinite(x), np.isinf(x)
        inside = self._inside(values, len(x))[:, None]
        if self.complete:
            infinite &= (own | infinite).all(axis=1, keepdims=True)  # who misses a value is left out anyway
            own[:] = own.all(axis=1, keepdims=True)
        return x, own & inside, infinite & inside

    def _inside(self, values: Values, n: int) -> Flags:
        inside = np.ones(n, dtype=np.bool_)
        for variable, allowed in self.conditions:
            inside &= allowed[values(variable)]
        return inside

    def block(self, values: Values, w: Floats, centre: Floats) -> Block:
        """Return the sums over some records."""
        x, own, infinite = self.numbers(values)
        p = len(centre)
        a = np.empty((len(x), p + self.masks))
        a[:, p] = own[:, 0] if self.complete else self._inside(values, len(x))
        for k in range(1, self.masks):
            a[:, p + k] = own[:, np.argmax(self.mask_of == k)]
        counts = (w > 0)[:, None]
        masks = a[:, p:] * counts
        count = np.rint(masks.T @ masks).astype(np.int64)
        with np.errstate(over="ignore", invalid="ignore"):  # `Sums.out_of_range` says so
            a[:, :p] = np.where(own, x - centre, 0.0)
            weighted = a * w[:, None]
            squares = (a[:, :p] ** 2).T @ weighted[:, p:]
            products = a.T @ weighted
        return products, squares, count, (infinite & counts).sum(axis=0)


@dataclass(frozen=True, eq=False)
class Sums:
    """The sums of a file, centred on `centre`: products (p+q, p+q), squares (p, q), counts (q, q), infinite values (p).

    `unknown` counts records with a category that the scales do not know; `merged`: more than the reader's file.
    """

    summary: Moments
    centre: Floats
    products: Floats
    squares: Floats
    count: Ints
    infinite: Ints
    reader: Reader = field(repr=False)
    unknown: int = 0
    merged: bool = False

    @classmethod
    def zero(cls, summary: Moments, centre: Floats, reader: Reader) -> Sums:
        """Return the sums of no record."""
        p, q = len(centre), reader.masks
        count, infinite = np.zeros((q, q), np.int64), np.zeros(p, np.int64)
        return cls(summary, centre, np.zeros((p + q, p + q)), np.zeros((p, q)), count, infinite, reader)

    @classmethod
    def around(cls, summary: Moments, centre: Floats, reader: Reader) -> Sums:
        """Add up the reader's file around a centre."""
        sums, weights = cls.zero(summary, centre, reader), _weights(reader.data)
        for span in _spans(reader.data.n):
            sums = sums.plus(reader.block(_at(reader.data, span), weights(span), centre))
        return sums

    @property
    def out_of_range(self) -> bool:
        """Whether a sum is too large for a number, or so small that it has lost digits."""
        lost = (self.squares > 0) & (self.squares < _LEAST)
        return not np.isfinite(self.products).all() or not np.isfinite(self.squares).all() or bool(lost.any())

    @property
    def mask_of(self) -> Ints:
        """The mask of each column."""
        return self.reader.mask_of

    def plus(self, block: Block) -> Sums:
        """Add the sums over other records."""
        products, squares, count, infinite = block
        with np.errstate(over="ignore", invalid="ignore"):  # `out_of_range` looks at what comes of it
            return replace(
                self,
                products=self.products + products,
                squares=self.squares + squares,
                count=self.count + count,
                infinite=self.infinite + infinite,
            )

    def change(self, delta: Delta) -> SumsChange:
        """Return what a plan does to the sums, at a cost in proportion to the rows that change."""
        moved = [name for name in self.summary.needs if name in delta.moved]
        changed = np.zeros(len(delta.rows), dtype=np.bool_)
        for name in moved:
            changed |= unequal(*delta.values(name))
        if delta.weight_moves:
            changed |= np.not_equal(*_touched_weights(delta))
        rows = np.flatnonzero(changed)
        if not len(rows):
            return SumsChange(self, self)
        weights = _touched_weights(delta)
        new = self
        for start in range(0, len(rows), _CHUNK):
            span = rows[start : start + _CHUNK]
            was, now = (
                self.reader.block(lambda name, s=span, i=i: delta.values(name)[i][s], weights[i][span], self.centre)
                for i in (0, 1)
            )
            with np.errstate(over="ignore", invalid="ignore"):
                new = new.plus((now[0] - was[0], now[1] - was[1], now[2] - was[2], now[3] - was[3]))
        return SumsChange(self, self._anew(delta) if self._lost_digits(new) else new)

    def _lost_digits(self, new: Sums) -> bool:
        weight, left = self.weight, new.weight
        return bool((new.squares < _FORMED_ANEW * self.squares).any() or (left < _FORMED_ANEW * weight).any())

    def _anew(self, delta: Delta) -> Sums:
        """Add up all records after the plan, centred as before."""
        columns: dict[str, Codes] = {}
        for name in self.summary.needs:
            columns[name] = delta.data[name].values
            if name in delta.moved:
                columns[name] = columns[name].copy()
                columns[name][delta.rows] = delta.values(name)[1]
        weights = _weights(delta.data)(slice(None))
        if delta.weight_moves:
            weights[delta.rows] = _touched_weights(delta)[1]
        sums = Sums.zero(self.summary, self.centre, self.reader)
        for span in _spans(delta.data.n):
            sums = sums.plus(self.reader.block(lambda name, s=span: columns[name][s], weights[span], self.centre))
        return replace(sums, unknown=self.unknown)

    @property
    def weight(self) -> Floats:
        """The weight of the records that have both values, by masks."""
        p = len(self.centre)
        return self.products[p:, p:]

    def against(self, after: Sums) -> SumsChange:
        """Return the change to the sums of another file, which is added up around the same centre if need be."""
        if after.merged or np.array_equal(after.centre, self.centre):
            return SumsChange(self, after.centred(self.centre))
        again = Sums.around(after.summary, self.centre, after.reader)
        return SumsChange(self, replace(again, unknown=after.unknown))

    def merge(self, other: Sums) -> Sums:
        """Add the sums of other records."""
        if self.summary != other.summary or self.products.shape != other.products.shape:
            raise MismatchError("Only sums over the same columns, with the same categories, can be merged.")
        mine, theirs = self._own_weight, other._own_weight
        share = np.divide(theirs, mine + theirs, out=np.zeros_like(mine), where=mine + theirs > 0)
        with np.errstate(over="ignore", invalid="ignore"):
            centre = self.centre + share * (other.centre - self.centre)
        other = other.centred(centre)
        merged = self.centred(centre).plus((other.products, other.squares, other.count, other.infinite))
        return replace(merged, unknown=self.unknown + other.unknown, merged=True)

    @property
    def _own_weight(self) -> Floats:
        """The weight of the records that have a value, by column."""
        return np.diag(self.weight)[self.mask_of]

    def centred(self, centre: Floats) -> Sums:
        """Return the same sums around another centre."""
        with np.errstate(over="ignore", invalid="ignore"):
            shift = self.centre - centre
            if not shift.any():
                return self
            p = len(centre)
            own = np.zeros((p + self.reader.masks, p))
            own[p + self.mask_of, np.arange(p)] = shift
            turn = np.eye(len(self.products))
            turn[:, :p] += own
            crossed, masks = self.products[:p, p:], self.weight[self.mask_of]
            squares = self.squares + 2 * shift[:, None] * crossed + shift[:, None] ** 2 * masks
            return replace(self, centre=centre, products=turn.T @ self.products @ turn, squares=squares)


@dataclass(frozen=True, eq=False)
class SumsChange:
    """Sums before and after, around the same centre."""

    old: Sums
    new: Sums

    @cached_property
    def nothing_changed(self) -> bool:
        """Whether the sums are as before, up to rounding."""
        old, new = self.old, self.new
        if old is new:
            return True
        if new.unknown or old.out_of_range or new.out_of_range:
            return False
        if not (np.array_equal(old.count, new.count) and np.array_equal(old.infinite, new.infinite)):
            return False
        size = np.diag(old.products)
        root = np.sqrt(size)  # before they are multiplied: weights of 1e250 have squares beyond all numbers
        same = np.abs(new.products - old.products) <= _SAME * np.outer(root, root)
        squares = np.abs(new.squares - old.squares) <= _SAME * size[: len(old.squares), None]
        return bool(same.all() and squares.all())


def _spans(n: int) -> list[slice]:
    return [slice(start, min(start + _CHUNK, n)) for start in range(0, n, _CHUNK)]


def _at(data: Data, span: slice) -> Values:
    return lambda name: data[name].values[span]


def _touched_weights(delta: Delta) -> tuple[Floats, Floats]:
    """Return the weights of the touched rows before and after; 1 where there is no weight."""
    ticks, old, new = delta.data.ticks, delta.ticks, delta.ticks_after
    if ticks is None or old is None or new is None:
        ones = np.ones(len(delta.rows))
        return ones, ones
    before = old / ticks.per_unit
    return before, new / ticks.per_unit if delta.weight_moves else before


def _weights(data: Data) -> Callable[[slice], Floats]:
    """Return the weights of some rows; 1 where there is no weight."""
    ticks = data.ticks
    if ticks is None:
        return lambda rows: np.ones(len(range(*rows.indices(data.n))))
    return lambda rows: ticks.values[rows] / ticks.per_unit
