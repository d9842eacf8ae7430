"""Table 1: seven records of which four move, every permutation enumerated and set beside the formula."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, permutations
from typing import Literal

from quadrille.papers.reproduction import Claim, Listing
from quadrille.theory import Error, swap_error

Kind = Literal["cycles", "pairs"]
KINDS: tuple[Kind, ...] = ("cycles", "pairs")

WEIGHTS = ("5.800281", "9.760256", "6.531695", "8.829931", "9.805243", "8.347917", "5.952525")
IN_P = (0, 1, 1, 0, 0, 1, 1)
IN_F = (1, 1, 0, 0, 1, 1, 1)
MOVED = 4

A = tuple(Fraction(weight) * member for weight, member in zip(WEIGHTS, IN_P, strict=True))
"""The weight moves with the variable of P, so it stands on that side."""

PUBLISHED: dict[str, int] = {
    "12.48422": 4,
    "14.30044": 22,
    "14.87961": 4,
    "15.71278": 22,
    "16.29195": 4,
    "18.10817": 22,
    "20.83214": 30,
    "22.24448": 30,
    "24.06070": 99,
    "24.63987": 30,
    "30.59239": 48,
}
"""X' and how many of the 315 permutations give it."""


@dataclass(frozen=True)
class Enumerated:
    """All values of X' for one kind of permutation, with exact moments, and the same by the formula."""

    kind: Kind
    values: tuple[Fraction, ...]
    formula: Error

    @property
    def mean(self) -> Fraction:
        """The mean of X' over all permutations."""
        return sum(self.values, Fraction(0)) / len(self.values)

    @property
    def variance(self) -> Fraction:
        """The variance of X' over all permutations."""
        mean = self.mean
        return sum(((value - mean) ** 2 for value in self.values), Fraction(0)) / len(self.values)

    @property
    def rmse(self) -> float:
        """The root mean square error of X'."""
        return float(self.variance + (self.mean - before()) ** 2) ** 0.5

    @property
    def off(self) -> float:
        """The largest difference between the formula and the enumeration."""
        pairs = (
            (self.formula.expected, self.mean),
            (self.formula.variance, self.variance),
            (self.formula.rmse, self.rmse),
        )
        return max(abs(ours - float(exact)) for ours, exact in pairs)

    def counts(self) -> Counter[str]:
        """Count the permutations by the value of X', printed with five decimals."""
        return Counter(f"{float(value):.5f}" for value in self.values)


def before() -> Fraction:
    """Return X, the estimate before any swap.

    >>> from quadrille.papers.boudreau2005.small_file import before
    >>> float(before())
    24.060698
    """
    return sum((a for a, b in zip(A, IN_F, strict=True) if b), Fraction(0))


def enumerated(kind: Kind) -> Enumerated:
    """Apply every permutation of a kind that moves exactly four of the seven records.

    >>> from quadrille.papers.boudreau2005.small_file import enumerated
    >>> len(enumerated("cycles").values), len(enumerated("pairs").values)
    (315, 105)
    """
    values = [sum((A[u] for u in range(len(A)) if IN_F[source[u]]), Fraction(0)) for source in _permutations(kind)]
    return Enumerated(kind, tuple(values), swap_error([float(a) for a in A], IN_F, MOVED, kind))


def _permutations(kind: Kind) -> Iterator[list[int]]:
    for chosen in combinations(range(len(A)), MOVED):
        for order in permutations(chosen):
            if any(u == v for u, v in zip(chosen, order, strict=True)):
                continue
            source = list(range(len(A)))
            for u, v in zip(chosen, order, strict=True):
                source[u] = v
            if kind == "cycles" or all(source[source[u]] == u for u in chosen):
                yield source


def listings(found: tuple[Enumerated, ...]) -> list[Listing]:
    """Return the distribution of X' beside the published one, and the moments by both ways."""
    counts = {each.kind: each.counts() for each in found}
    values = sorted({value for each in counts.values() for value in each} | set(PUBLISHED), key=float)
    rows = tuple((value, PUBLISHED.get(value, 0), counts["cycles"][value], counts["pairs"][value]) for value in values)
    moments = tuple(
        (
            f"{each.kind}, {way}",
            len(each.values) if way == "enumerated" else "",
            *(f"{float(number):.5f}" for number in numbers),
        )
        for each in found
        for way, numbers in (
            ("enumerated", (each.mean, each.variance, each.rmse)),
            ("by formula", (each.formula.expected, each.formula.variance, each.formula.rmse)),
        )
    )
    return [
        Listing(
            "Table 1: X' when 4 of 7 records move, number of permutations",
            ("X'", "published", "cycles", "pairs"),
            rows,
            f"Published: kind (a), 315 permutations without a fixed record. X = {float(before()):.6f} before.",
        ),
        Listing(
            "Table 1: moments of X'",
            ("kind", "permutations", "mean", "variance", "RMSE"),
            moments,
            "The paper calls the RMSE of the cycles the MSE, and prints 5.03.",
        ),
    ]


def claims(found: tuple[Enumerated, ...]) -> list[Claim]:
    """Judge the published distribution and the formulas."""
    cycles = next(each for each in found if each.kind == "cycles")
    counts = cycles.counts()
    same = sum(counts[value] == times for value, times in PUBLISHED.items())
    worst = max(each.off for each in found)
    return [
        Claim(
            "Table 1 lists all values of X' with their frequencies",
            dict(counts) == PUBLISHED,
            f"{same} of {len(counts)} values as enumerated; {len(cycles.values)} permutations",
        ),
        Claim(
            "mean, variance and RMSE follow from the closed form",
            worst < 1e-10,
            f"largest difference from the enumeration, both kinds: {worst:.0e}",
        ),
        Claim(
            "the error of the small file is 5.03",
            f"{cycles.rmse:.2f}" == "5.03",
            f"the RMSE is {cycles.rmse:.4f}, which rounds to {cycles.rmse:.2f}; the MSE is {cycles.rmse**2:.4f}",
        ),
    ]
