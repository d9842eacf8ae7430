"""Exact bias and variance of an estimate after a random permutation of the moved variables (derivations/moments.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quadrille.errors import InputError, ParameterError, bad_parameter
from quadrille.recipe import one_of, whole
from quadrille.theory.error import Error
from quadrille.theory.labelled import refuse_too_many
from quadrille.theory.spread import KINDS, Floats, Kind, Spread, factors
from quadrille.theory.sums import Ints, spread_across, spread_of

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
    that of derivations/moments.md, from sums over centred values. Each takes one pass over the records.

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


@dataclass(frozen=True, eq=False)
class _Records:
    """The numbers of some records, which of them are in the first group, and how many each entry stands for."""

    a: Floats
    b: Floats
    first: NDArray[np.bool_] | None
    counts: Ints | None

    @property
    def n(self) -> int:
        return len(self.a) if self.counts is None else int(self.counts.sum())

    def take(self, rows: Ints) -> _Records:
        first = None if self.first is None else self.first[rows]
        return _Records(self.a[rows], self.b[rows], first, None if self.counts is None else self.counts[rows])

    def spread(self) -> Spread:
        if self.first is None:
            return spread_of(self.a, self.b, self.counts)
        return spread_across(self.a, self.b, self.first, self.counts)


def _records(a: ArrayLike, b: ArrayLike, kind: Kind, *, groups: ArrayLike | None, counts: ArrayLike | None) -> _Records:
    one_of(_OWNER, "kind", kind, KINDS)
    x, y = _sized("a", a), _sized("b", b)
    times = None if counts is None else _counts(counts)
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
    # both lists hold fractions when the sums are exact, and then the result is rounded once, here
    variance = float(sum(f * p for f, p in zip(found.parts, spread.parts, strict=True)))
    return Error(float(spread.value), float(found.bias * spread.lean), max(variance, 0.0))


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


def checked_amount(kind: Kind, k: object, n: int, *, owner: str = _OWNER) -> int:
    """Check a number of moved records for n records without classes."""
    moved = whole(owner, "k", k, least=0)
    if moved > n:
        raise bad_parameter(owner, "k", f"at most the number of records, {n:,}", moved)
    if moved == 1:
        raise bad_parameter(owner, "k", "0 or at least 2, because one record alone cannot move", moved)
    if kind != "cycles" and moved % 2:
        raise bad_parameter(owner, "k", f"even for kind={kind!r}", moved)
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
