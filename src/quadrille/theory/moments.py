"""Exact bias and variance of an estimate after a random permutation of the moved variables (moments.md).

Bias = bias_sum * factors.bias and variance = sum of parts * factors.parts. The spread (bias_sum and parts) belongs to
the estimate, the factors to the number of records moved, so that either can be varied without looking at the records
again. Both hold fractions, floats or arrays of floats. Where records are drawn by chance, the factors are averaged over
their number (private.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import fsum, hypot, isnan, sqrt
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quadrille.errors import InputError, ParameterError, bad_parameter
from quadrille.params import as_float, one_of, share, whole
from quadrille.swap.private import moved
from quadrille.text import Shown

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Number = Any
"""A whole number, a fraction, a float or an array of floats: the formulas are the same."""

Kind = Literal["pairs", "cycles", "across"]
KINDS = ("pairs", "cycles", "across")

_EXACT_RATIO = 20


@dataclass(frozen=True)
class Spread:
    """The sums of one estimate in one class: `sizes` is (n,), or (n1, n2) for two groups."""

    value: Number
    sizes: tuple[Number, ...]
    bias_sum: Number
    parts: tuple[Number, ...]


@dataclass(frozen=True)
class Factors:
    """What the sums are multiplied by when k records move."""

    bias: Number
    parts: tuple[Number, ...]

    def variance(self, spread: Spread) -> Number:
        """Return the variance that follows from the sums of an estimate; rounding may leave it below 0."""
        return sum(f * p for f, p in zip(self.parts, spread.parts, strict=True))


def ratio(above: Number, below: Number) -> Number:
    """Divide, exactly for whole numbers; 0 where the divisor is 0, because such terms count impossible events."""
    if isinstance(above, int | Fraction) and isinstance(below, int | Fraction):
        return Fraction(above, below) if below else Fraction(0)
    upper, lower = np.broadcast_arrays(np.asarray(above, dtype=float), np.asarray(below, dtype=float))
    return np.divide(upper, lower, out=np.zeros(upper.shape), where=lower != 0)


def factors(kind: Kind, sizes: tuple[Number, ...], k: Number) -> Factors:
    """Return the factors for k moved records among n, or among two groups (moments.md, 1 to 4, 7, 8)."""
    return _across(sizes[0], sizes[1], k) if kind == "across" else _uniform(kind, sizes[0], k)


def _uniform(kind: Kind, n: Number, k: Number) -> Factors:
    """Give the factors of the centred sums: C for the bias; Q, A2 B2 and C^2 for the variance."""
    exchange = _exchange(kind, k)
    both = ratio(k * (k - 1), n * (n - 1))
    mixed = ratio((n - k) * k, n * (n - 1) * (n - 2))
    path = ratio(both * (ratio(1, k - 1) - exchange), n - 2)
    general = ratio(both * (1 - 2 * ratio(1, k - 1) + exchange), (n - 2) * (n - 3))
    two, q = both * exchange, mixed + path
    alone = ratio(k * (n - k - 1), n * (n - 1))
    return Factors(
        -ratio(k, n - 1),
        (
            alone - two + 4 * q - 6 * general,
            ratio(k, n * (n - 1)) + general,
            ratio(alone, n - 1) + two - 2 * q + 2 * general,
        ),
    )


def _across(n1: Number, n2: Number, k: Number) -> Factors:
    """Give the factors of the sums over cross pairs (see `cross_parts`)."""
    half = k // 2
    once = ratio(half, n1 * n2)
    return Factors(once, (once, ratio(half * (half - 1), n1 * (n1 - 1) * n2 * (n2 - 1))))


def _exchange(kind: Kind, k: Number) -> Number:
    """Return r, the chance that two moved records exchange with each other."""
    if kind == "pairs":
        return ratio(1, k - 1)
    far = ratio(1, k * (k - 1))
    if isinstance(k, int):
        return far if k > _EXACT_RATIO else _derangement_ratio(k)
    small = np.array([float(_derangement_ratio(i)) for i in range(_EXACT_RATIO + 1)])
    moved = np.asarray(k, dtype=float)
    near = small[np.minimum(moved, _EXACT_RATIO).astype(np.int64)]
    return np.where(moved > _EXACT_RATIO, cast("Floats", far), near)


def _derangement_ratio(k: int) -> Fraction:
    """Return D_{k-2} / D_k; D_k counts the permutations of k things that leave none in place."""
    counts = [1, 0]
    while len(counts) <= k:
        counts.append((len(counts) - 1) * (counts[-1] + counts[-2]))
    return Fraction(counts[k - 2], counts[k]) if k > 1 else Fraction(0)


def count_spread(n: Number, on_a: Number, on_b: Number, both: Number) -> Spread:
    """Return the sums of a cell of counts, from n, its row, its column and itself (moments.md, 5)."""
    a, b = on_a / n, on_b / n
    c = (n * both - on_a * on_b) / n
    q = (
        (1 - a) ** 2 * ((1 - b) ** 2 * both + b**2 * (on_a - both))
        + a**2 * (1 - b) ** 2 * (on_b - both)
        + a**2 * b**2 * (n - on_a - on_b + both)
    )
    return Spread(both, (n,), c, (q, on_a * (1 - a) * on_b * (1 - b), c * c))


Moments = tuple[tuple[Number, ...], ...]
"""`m[i][j]` is the sum of a^i b^j over the records of a group, i and j from 0 to 2."""

_SQUARE = (1, -2, 1)


def cross_parts(one: Moments, two: Moments) -> tuple[Number, tuple[Number, Number]]:
    """Return T1, the sum of d_xy = -(a_x - a_y)(b_x - b_y), and the two sums of squares that the variance needs.

    They are taken around the mean of d, because the plain ones cancel when the bias is large against its deviation.
    """
    n1, n2 = one[0][0], two[0][0]
    total = -(n2 * one[1][1] + n1 * two[1][1] - one[1][0] * two[0][1] - one[0][1] * two[1][0])
    squares = sum(
        _SQUARE[i] * _SQUARE[j] * one[2 - i][2 - j] * two[i][j]
        for i in range(len(_SQUARE))
        for j in range(len(_SQUARE))
    )
    centred = squares - ratio(total * total, n1 * n2)
    rows = _squared_lines(one, two) - ratio(total * total, n1)
    columns = _squared_lines(two, one) - ratio(total * total, n2)
    return total, (centred, centred - rows - columns)


def _squared_lines(mine: Moments, other: Moments) -> Number:
    """Return the sum over my records of the square of d summed over the other group."""
    terms = ((1, 1, other[0][0]), (1, 0, -other[0][1]), (0, 1, -other[1][0]), (0, 0, other[1][1]))
    return sum(x * y * mine[i + p][j + q] for i, j, x in terms for p, q, y in terms)


MOST_RECORDS = 2**53


def refuse_too_many(total: float, what: str) -> None:
    """Refuse more records than a float counts one by one."""
    if total > MOST_RECORDS:
        raise InputError(
            f"The {what} adds up to more than {MOST_RECORDS:,} records, beyond which sums are not exact. Check it."
        )


@dataclass(frozen=True, repr=False)
class Error(Shown):
    """Bias and variance of an estimate after swapping or rounding, given the file.

    `value` is the estimate before, X; `bias` is E X' - X; `variance` is Var X'. `idle` counts the classes that were
    to move one record only, where nothing can move.

    Example
    -------
    >>> import quadrille as qd
    >>> error = qd.theory.Error(value=100.0, bias=-3.0, variance=16.0)
    >>> error.expected, error.sd, error.rmse, error.relative_rmse
    (97.0, 4.0, 5.0, 0.05)
    """

    value: float
    bias: float
    variance: float
    idle: int = 0

    @property
    def expected(self) -> float:
        """The expectation after, E X'."""
        return self.value + self.bias

    @property
    def sd(self) -> float:
        """The standard deviation."""
        return sqrt(self.variance)

    @property
    def rmse(self) -> float:
        """The root of the mean square error, variance + bias^2."""
        return hypot(self.sd, self.bias)

    @property
    def relative_rmse(self) -> float | None:
        """The root mean square error as a share of the estimate before; None when that is 0."""
        return self.rmse / abs(self.value) if self.value else None


EXACT_ENTRIES = 4096
"""Up to this number of entries is added up as exact fractions, whatever their values."""

_LARGEST = 2.0**62


@dataclass(frozen=True, eq=False)
class _Records:
    """The numbers of some records, which of them are in the first group, and how many each entry stands for."""

    a: Floats
    b: Floats
    first: NDArray[np.bool_] | None
    counts: Ints

    @property
    def n(self) -> int:
        return int(self.counts.sum())

    def take(self, rows: Ints | NDArray[np.bool_]) -> _Records:
        first = None if self.first is None else self.first[rows]
        return _Records(self.a[rows], self.b[rows], first, self.counts[rows])

    def spread(self) -> Spread:
        """Return the sums for permutations of one class, or for pairs across two groups."""
        if self.first is not None:
            return self._across(self.first)
        if self.exact:
            m, scale_a, scale_b = self._exact_moments()
            return uniform_spread(m, Fraction(1, scale_a), Fraction(1, scale_b))
        x, y = self._centred(self.a), self._centred(self.b)
        c, a2, b2 = self._sum(x * y), self._sum(x * x), self._sum(y * y)
        return Spread(self._sum(self.a * self.b), (self.n,), c, (self._sum(x * x * y * y), a2 * b2, c * c))

    def _across(self, first: NDArray[np.bool_]) -> Spread:
        exact, shift = self.exact, (self.a.mean(), self.b.mean())
        groups = (self.take(first), self.take(~first))
        one, two = (each._fractions() if exact else each._shifted(*shift) for each in groups)
        bias_sum, parts = cross_parts(one, two)
        value = one[1][1] + two[1][1] if exact else self._sum(self.a * self.b)
        return Spread(value, (int(one[0][0]), int(two[0][0])), bias_sum, parts)

    @property
    def exact(self) -> bool:
        """Whether the sums are made of whole numbers: for few entries, or values that 64 bits hold."""
        if len(self.a) <= EXACT_ENTRIES:
            return True
        most_a, most_b = float(np.abs(self.a).max()), float(np.abs(self.b).max())
        largest = (most_a * most_b) ** 2 + (most_a + most_b) ** 2
        whole_numbers = all(bool((np.rint(values) == values).all()) for values in (self.a, self.b))
        return self.n * largest < _LARGEST and whole_numbers

    def _fractions(self) -> Moments:
        m, scale_a, scale_b = self._exact_moments()
        return tuple(tuple(Fraction(m[i][j], scale_a**i * scale_b**j) for j in range(3)) for i in range(3))

    def _shifted(self, by_a: float, by_b: float) -> Moments:
        """Return the moments around constants that both groups share."""
        x, y = self.a - by_a, self.b - by_b
        return tuple(tuple(self._sum(x**i * y**j) for j in range(3)) for i in range(3))

    def _exact_moments(self) -> tuple[Moments, int, int]:
        """Add up whole numbers, and say which units of a and b they count in."""
        if len(self.a) > EXACT_ENTRIES:
            a, b = self.a.astype(np.int64), self.b.astype(np.int64)
            left, right = (self.counts, self.counts * a, self.counts * a * a), (np.ones_like(b), b, b * b)
            return tuple(tuple(int(np.dot(x, y)) for y in right) for x in left), 1, 1
        (a, scale_a), (b, scale_b) = _whole(self.a), _whole(self.b)
        powers = [[value**j for value in b] for j in range(3)]
        weighted = [[times * value**i for times, value in zip(self.counts.tolist(), a, strict=True)] for i in range(3)]
        m = tuple(tuple(sum(x * y for x, y in zip(row, power, strict=True)) for power in powers) for row in weighted)
        return m, scale_a, scale_b

    def _centred(self, values: Floats) -> Floats:
        """Subtract the mean twice: the second time takes off what rounding left of the first."""
        once = values - self._sum(values) / self.n
        return once - self._sum(once) / self.n

    def _sum(self, values: Floats) -> float:
        products = values * self.counts
        return fsum(products.tolist()) if len(products) <= 1 << 20 else float(products.sum())


def uniform_spread(m: Moments, unit_a: Number, unit_b: Number) -> Spread:
    """Centre exact moments: C, A2, B2 and Q of a - mean a and b - mean b, in whole numbers as far as they go."""
    n = m[0][0]
    mean_a, mean_b = Fraction(m[1][0], n), Fraction(m[0][1], n)
    c = m[1][1] - mean_a * m[0][1]
    a2, b2 = m[2][0] - mean_a * m[1][0], m[0][2] - mean_b * m[0][1]
    q = (
        m[2][2]
        - 2 * mean_b * m[2][1]
        - 2 * mean_a * m[1][2]
        + mean_b**2 * m[2][0]
        + mean_a**2 * m[0][2]
        + 4 * mean_a * mean_b * m[1][1]
        - 3 * n * mean_a**2 * mean_b**2
    )
    unit = unit_a * unit_b
    return Spread(m[1][1] * unit, (n,), c * unit, (q * unit**2, a2 * b2 * unit**2, c**2 * unit**2))


def _whole(values: Floats) -> tuple[list[int], int]:
    """Return floats as whole numbers over a common power of two, exactly."""
    ratios = [value.as_integer_ratio() for value in values.tolist()]
    scale = max((below for _, below in ratios), default=1)
    return [above * (scale // below) for above, below in ratios], scale


_OWNER = "swap_error"
_GROUPS = 2
LARGEST = 1e70
"""The largest size of a number in a or b, and its inverse the smallest of their maxima."""

Amount = int | Mapping[object, int] | Sequence[int]


def swap_error(
    a: ArrayLike,
    b: ArrayLike,
    k: Amount,
    kind: Kind = "pairs",
    *,
    groups: ArrayLike | None = None,
    within: ArrayLike | None = None,
    counts: ArrayLike | None = None,
) -> Error:
    """Return the exact error of X = sum a b after exactly k of the n records are permuted at random.

    X' = sum a_u b_s(u), where s leaves n - k records in place. Bias E X' - X = -k/(n-1) (C - A B / n); the variance is
    that of moments.md, from sums over centred values. Each takes one pass over the records.

    Parameters
    ----------
    a, b : one number per record; a comes from variables that move together, b from those that stay. For the count of
        a domain they are indicators, with the weight on the side where the weight is.
    k : number of records moved. With `within` a mapping from class to number, or one number per class in sorted order.
    kind : "pairs" (uniform pairing), "cycles" (uniform among permutations that leave none of the k in place) or
        "across" (k/2 records of each of two groups, paired across).
    groups : for "across", the group of each record; two of them.
    within : the class of each record; classes are permuted independently.
    counts : number of records each entry stands for, so that a table need not be spread out into records.

    Example
    -------
    >>> import quadrille as qd
    >>> error = qd.theory.swap_error([1, 1, 0, 0, 0], [1, 1, 0, 0, 1], k=2)
    >>> error.value, round(error.bias, 6), round(error.rmse, 6)
    (2.0, -0.4, 0.632456)

    Reference: Boudreau, Statistics Canada, 2005.
    """
    records = _records(a, b, kind, groups=groups, counts=counts)
    if within is None:
        return error_of(kind, records.spread(), checked_amount(kind, k, records.n))
    labels = _labels("within", within)
    _refuse_other_length("within", labels, len(records.a))
    return sum_of_classes(kind, [(records.take(rows).spread(), moved) for rows, moved in _classes(labels, k)])


def spread_of_records(
    a: ArrayLike, b: ArrayLike, kind: Kind, *, groups: ArrayLike | None = None, counts: ArrayLike | None = None
) -> Spread:
    """Check a and b as `swap_error` does, and return their sums."""
    return _records(a, b, kind, groups=groups, counts=counts).spread()


def _records(a: ArrayLike, b: ArrayLike, kind: Kind, *, groups: ArrayLike | None, counts: ArrayLike | None) -> _Records:
    one_of(_OWNER, "kind", kind, KINDS)
    x, y = _sized("a", a), _sized("b", b)
    times = np.ones(len(x), dtype=np.int64) if counts is None else _counts(counts)
    first = _first_group(groups, kind)
    for name, values in (("b", y), ("counts", times), ("groups", first)):
        _refuse_other_length(name, values, len(x))
    return _Records(x, y, first, times)


def _refuse_other_length(name: str, values: NDArray[np.generic] | None, length: int) -> None:
    if values is not None and (values.ndim != 1 or len(values) != length):
        raise InputError(f"The '{name}' of {_OWNER} must have one value per record, as 'a' has.")


def error_of(kind: Kind, spread: Spread, k: int) -> Error:
    """Return the error of one class from its sums, when k records move."""
    if kind == "across":
        _check_halves(spread.sizes, k)
    elif not 0 <= k <= spread.sizes[0]:
        raise ParameterError(f"{k:,} records cannot move in a class of {spread.sizes[0]:,}. Ask for fewer.")
    found = factors(kind, spread.sizes, k)
    # both hold fractions when the sums are exact, and then the result is rounded once, here
    variance = float(found.variance(spread))
    return Error(float(spread.value), float(found.bias * spread.bias_sum), max(variance, 0.0))


def sum_of_classes(kind: Kind, classes: Iterable[tuple[Spread, int]]) -> Error:
    """Add up bias and variance over independent classes; one record alone cannot move."""
    value = bias = variance = 0.0
    idle = 0
    for spread, k in classes:
        idle += k == 1
        if kind != "cycles" and k % 2 and k != 1:
            raise bad_parameter(_OWNER, "k", f"even in every class for kind={kind!r}", k)
        error = error_of(kind, spread, 0 if k == 1 else k)
        value, bias, variance = value + error.value, bias + error.bias, variance + error.variance
    return Error(value, bias, variance, idle)


def checked_amount(kind: Kind, k: object, n: int) -> int:
    """Check a number of moved records for n records without classes."""
    moved = whole(_OWNER, "k", k, least=0)
    if moved > n:
        raise bad_parameter(_OWNER, "k", f"at most the number of records, {n:,}", moved)
    if moved == 1:
        raise bad_parameter(_OWNER, "k", "0 or at least 2, because one record alone cannot move", moved)
    if kind != "cycles" and moved % 2:
        raise bad_parameter(_OWNER, "k", f"even for kind={kind!r}", moved)
    return moved


def _check_halves(sizes: tuple[int, ...], k: int) -> None:
    if k // 2 > min(sizes):
        raise ParameterError(
            f"{k // 2:,} records of each group cannot move: the smaller group has {min(sizes):,}. Ask for fewer."
        )


def _numbers(name: str, values: ArrayLike) -> Floats:
    try:
        text = np.asarray(values).dtype.kind in "SUMm"
        found = np.zeros(0) if text else np.asarray(values, dtype=float)
    except (TypeError, ValueError, OverflowError):
        text, found = True, np.zeros(0)
    if text:
        raise InputError(f"The '{name}' of {_OWNER} must be a list of numbers.")
    if found.ndim != 1 or not len(found):
        raise InputError(f"The '{name}' of {_OWNER} must be a list with one number per record.")
    bad = int((~np.isfinite(found)).sum())
    if bad:
        raise InputError(f"The '{name}' of {_OWNER} is missing or infinite in {bad:,} entries. Fill or drop them.")
    return found


def _sized(name: str, values: ArrayLike) -> Floats:
    """Read numbers whose fourth powers a float can hold, so that variances are neither infinite nor lost."""
    found = _numbers(name, values)
    largest = float(np.abs(found).max())
    if largest and not 1 / LARGEST <= largest <= LARGEST:
        raise InputError(
            f"The '{name}' of {_OWNER} is too {'large' if largest > 1 else 'small'} for its square to be worked with: "
            f"the largest size must lie between {1 / LARGEST:g} and {LARGEST:g}. Change its unit."
        )
    return found


def _counts(values: ArrayLike) -> Ints:
    found = _numbers("counts", values)
    if (found < 0).any() or (np.rint(found) != found).any() or not found.any():
        raise InputError(f"The 'counts' of {_OWNER} must be whole numbers of 0 or more, not all 0.")
    refuse_too_many(float(found.sum()), f"'counts' of {_OWNER}")
    return found.astype(np.int64)


def _labels(name: str, values: ArrayLike) -> NDArray[np.generic]:
    """Read labels that can be told apart and sorted; none may be missing."""
    must = f"The '{name}' of {_OWNER} must hold one label per record, all text or all numbers."
    try:
        labels = np.asarray(values)
    except ValueError:
        raise InputError(must) from None
    lacking = 0
    if labels.dtype == object:
        lacking = sum(each is None or (isinstance(each, float) and isnan(each)) for each in labels.ravel().tolist())
    elif np.issubdtype(labels.dtype, np.floating):
        lacking = int(np.isnan(labels.astype(float)).sum())
    if lacking:
        raise InputError(f"The '{name}' of {_OWNER} is missing in {lacking:,} entries. Give every record a label.")
    try:
        np.unique(labels)
    except TypeError:
        raise InputError(must) from None
    return labels


def _first_group(groups: ArrayLike | None, kind: Kind) -> NDArray[np.bool_] | None:
    if (groups is not None) != (kind == "across"):
        raise ParameterError(f"{_OWNER} needs 'groups' for kind=\"across\", and only then.")
    if groups is None:
        return None
    labels = _labels("groups", groups)
    names = np.unique(labels)
    if len(names) != _GROUPS:
        raise InputError(f"The 'groups' of {_OWNER} must name two groups; there are {len(names):,}.")
    return labels == names[0]


def _classes(labels: NDArray[np.generic], k: Amount) -> list[tuple[Ints, int]]:
    """Return the entries of each class and the number of records to move in it."""
    names, ids = np.unique(labels, return_inverse=True)
    listed = cast("list[object]", names.tolist())
    if isinstance(k, Mapping):
        lacking = [name for name in listed if name not in k]
        if lacking or len(k) != len(listed):
            raise ParameterError(f"The 'k' parameter of {_OWNER} must give one number for each class of 'within'.")
        amounts = [k[name] for name in listed]
    elif isinstance(k, int | np.integer) or len(k) != len(listed):
        raise ParameterError(
            f"The 'k' parameter of {_OWNER} must give one number for each of the {len(listed):,} classes of 'within'."
        )
    else:
        amounts = list(k)
    order = np.argsort(ids, kind="stable")
    ends = np.cumsum(np.bincount(ids, minlength=len(listed)))[:-1]
    rows = np.split(order, ends)
    return [(r, whole(_OWNER, "k", amount, least=0)) for r, amount in zip(rows, amounts, strict=True)]


_LARGE_N = "large_n_error"


def large_n_error(
    n: int, domain: float, moved: float, stayed: float, *, rate: float, kind: Kind = "pairs", weight: float = 1.0
) -> Error:
    """Return the leading terms of bias and variance of a count among n records of equal weight.

    With dD, dP, dF the shares of the domain, of its moved part and of its stayed part, and c = dD - dP dF: bias
    -w k c; variance w^2 n rate { (1-rate) dD (1 - 2 (dF + dP - dD)) + dF dP (1 - rate dF) - rate dP^2 dF (1 - dF) +
    kappa c^2 }, kappa = -(2 - 3 rate) for pairs and -3 (1 - rate) for cycles.

    Accuracy, measured against the exact moments: the relative error of the RMSE falls as 1/n. For dD, dP, dF = 0.1,
    0.3, 0.2 and pairs it is 0.0010 at n = 1,000, 1.0e-05 at n = 100,000 and 1.0e-07 at n = 10,000,000, at rates from
    0.01 to 0.3; that of the standard deviation is as small, for cycles up to 0.0023 at n = 1,000.

    Example
    -------
    >>> import quadrille as qd
    >>> round(qd.theory.large_n_error(100_000, 0.1, 0.3, 0.2, rate=0.05).rmse, 3)
    200.932
    """
    one_of(_LARGE_N, "kind", kind, ("pairs", "cycles"))
    if whole(_LARGE_N, "n", n, least=2) > MOST_RECORDS:
        raise bad_parameter(_LARGE_N, "n", f"at most {MOST_RECORDS:,}", n)
    tau = share(_LARGE_N, "rate", rate)
    if not 0 < as_float(weight) <= LARGEST:
        raise bad_parameter(_LARGE_N, "weight", f"a number above 0, up to {LARGEST:g}", weight)
    for name, value in (("domain", domain), ("moved", moved), ("stayed", stayed)):
        if not 0 <= as_float(value) <= 1:
            raise bad_parameter(_LARGE_N, name, "a share between 0 and 1", value)
    if domain > min(moved, stayed) or domain < moved + stayed - 1:
        raise ParameterError(
            f"The shares given to {_LARGE_N} do not fit together: the domain is where both parts meet."
        )
    c = domain - moved * stayed
    kappa = -3 * (1 - tau) if kind == "cycles" else -(2 - 3 * tau)
    inner = (
        (1 - tau) * domain * (1 - 2 * (stayed + moved - domain))
        + stayed * moved * (1 - tau * stayed)
        - tau * moved**2 * stayed * (1 - stayed)
        + kappa * c**2
    )
    return Error(weight * n * domain, -weight * tau * n * c, max(weight**2 * n * tau * inner, 0.0))


_SPREADS = 12.0
"""Numbers of records that are more standard deviations off their mean have no chance that a float would notice."""


def chance_factors(n: Ints, chance: Floats) -> Factors:
    """Return the factors of the centred sums, class by class, when each of n records is drawn with a chance.

    The moments of cycles of K records are averaged over K; the variance of K adds Var(K) / (n - 1)^2 to that of C^2.
    """
    kinds, where = np.unique(np.stack([n.astype(float), chance]), axis=1, return_inverse=True)
    found = [_factors(int(size), float(p)) for size, p in kinds.T]
    of = where.ravel()
    table = np.array([[each.bias, *each.parts] for each in found]).reshape(-1, 4)[of]
    return Factors(table[:, 0], tuple(table[:, 1:].T))


def _factors(n: int, chance: float) -> Factors:
    if n < 2 or chance == 0:
        return Factors(0.0, (0.0, 0.0, 0.0))
    k, weight = _numbers_moved(n, chance)
    each = factors("cycles", (np.float64(n),), k)
    expected = moved(n, chance)
    q, squares, c = (float(weight @ np.broadcast_to(part, k.shape)) for part in each.parts)
    return Factors(-expected.mean / (n - 1), (q, squares, c + expected.variance / (n - 1) ** 2))


def _numbers_moved(n: int, chance: float) -> tuple[Floats, Floats]:
    """Return the numbers of records that may move, and their chances: binomial, without 1."""
    from scipy.stats import binom

    mean, spread = n * chance, _SPREADS * sqrt(n * chance * (1 - chance)) + _SPREADS
    k = np.arange(max(0, int(mean - spread)), min(n, int(mean + spread) + 1) + 1)
    k = k[k != 1]
    weight = np.asarray(binom.pmf(k, n, chance), dtype=np.float64)
    return k.astype(float), weight / weight.sum()


def chance_of(f: float, n: int) -> float:
    """Return the chance by which records of a class were drawn, from its published factor f = E K / (n - 1).

    >>> from quadrille.swap.private import moved
    >>> from quadrille.theory.moments import chance_of
    >>> round(chance_of(moved(10, 0.3).mean / 9, 10), 9)
    0.3
    """
    if f <= 0 or n < 2:
        return 0.0
    low, high = 0.0, 1.0
    while high - low > 1e-15 and low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if moved(n, middle).mean < f * (n - 1) else (low, middle)
    return high
