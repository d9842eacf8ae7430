"""Controlled swapping once more, from its definition: exact fractions, plain loops, every random tie enumerated."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import floor

HALF = Fraction(1, 2)
Pair = tuple[int, int, int]  # target, donor, round (from 1)


# ---- targets ----


def exact(number: float) -> Fraction:
    """The shortest decimal that names a float: 0.145 means 145/1000."""
    return Fraction(repr(float(number)))


def target_count(share: float, records: int) -> int:
    """Round half up of share * records, on the decimal as written."""
    return floor(exact(share) * records + HALF)


def inclusion(sizes: Sequence[float], m: int) -> list[Fraction]:
    """The probability of each record to be among m targets: 1 for certainties, else m * size / T over the others."""
    size = [Fraction(s) for s in sizes]
    total, sure = sum(size, Fraction(0)), set[int]()
    for i in sorted(range(len(size)), key=lambda i: -size[i]):
        if m == 0 or m * size[i] < total:
            break
        sure.add(i)
        total -= size[i]
        m -= 1
    return [Fraction(1) if i in sure else m * s / total for i, s in enumerate(size)]


def systematic_draw(shares: Sequence[Fraction], start: Fraction) -> list[int]:
    """The places whose cumulated share reaches start, start + 1, ..."""
    taken, reach, total = [], start, Fraction(0)
    for i, share in enumerate(shares):
        total += share
        if total >= reach:
            taken.append(i)
            reach += 1
    return taken


# ---- partners ----


@dataclass(frozen=True)
class DonorIndex:
    """What the search for partners knows of each record: zone, cell (category orders), bias value, weight, role."""

    zone: Sequence[Hashable]
    cell: Sequence[tuple[int, ...]]
    x: Sequence[Fraction]
    weight: Sequence[Fraction]
    targets: frozenset[int]
    donors: frozenset[int]

    def bias(self, t: int, d: int) -> Fraction:
        return abs(self.weight[t] - self.weight[d]) * abs(self.x[t] - self.x[d])


def _nearest(market: DonorIndex, t: int, free: Iterable[int]) -> list[list[int]]:
    """Left and right: the donors of the nearest cell with free ones whose weight is closest."""
    sides: list[list[int]] = []
    here = [d for d in free if market.zone[d] == market.zone[t] and market.cell[d] != market.cell[t]]
    for left in (True, False):
        side = [d for d in here if (market.cell[d] < market.cell[t]) == left]
        if side:
            cell = (max if left else min)(market.cell[d] for d in side)
            inside = [d for d in side if market.cell[d] == cell]
            gap = min(abs(market.weight[d] - market.weight[t]) for d in inside)
            sides.append([d for d in inside if abs(market.weight[d] - market.weight[t]) == gap])
    return sides


def choices(market: DonorIndex, t: int, free: Iterable[int]) -> dict[int, Fraction]:
    """The donors a target may ask for in a round, with probabilities; empty when there is none."""
    sides = _nearest(market, t, free)
    if len(sides) < 2:
        return {d: Fraction(1, len(side)) for side in sides for d in side}
    chances: Counter[int] = Counter()
    each = Fraction(1, len(sides[0]) * len(sides[1]))
    for left, right in product(*sides):
        one, other = market.bias(t, left), market.bias(t, right)
        if one <= other:
            chances[left] += each * (HALF if one == other else 1)
        if other <= one:
            chances[right] += each * (HALF if one == other else 1)
    return dict(chances)


def _rounds(market: DonorIndex, wishes: Mapping[int, int]) -> Iterator[tuple[frozenset[tuple[int, int]], Fraction]]:
    """The ways in which one round's conflicts end: smallest bias wins, equal ones have equal chances."""
    wanted: dict[int, list[int]] = defaultdict(list)
    for t, d in wishes.items():
        wanted[d].append(t)
    winners = []
    for d, asking in wanted.items():
        least = min(market.bias(t, d) for t in asking)
        winners.append([(t, d) for t in asking if market.bias(t, d) == least])
    share = Fraction(1)
    for tied in winners:
        share /= len(tied)
    for won in product(*winners):
        yield frozenset(won), share


def outcomes(market: DonorIndex) -> dict[frozenset[Pair], Fraction]:
    """Every result of the search and its probability. Without ties there is exactly one."""
    result: Counter[frozenset[Pair]] = Counter()

    def search(open_: frozenset[int], free: frozenset[int], done: frozenset[Pair], p: Fraction, number: int) -> None:
        wishes = {t: options for t in open_ if (options := choices(market, t, free))}
        if not wishes:
            result[done] += p
            return
        for combination in product(*(options.items() for options in wishes.values())):
            chance = p
            for _, share in combination:
                chance *= share
            asked = {t: d for t, (d, _) in zip(wishes, combination, strict=True)}
            for won, share in _rounds(market, asked):
                search(
                    open_ - {t for t, _ in won},
                    free - {d for _, d in won},
                    done | {(t, d, number) for t, d in won},
                    chance * share,
                    number + 1,
                )

    search(market.targets, market.donors, frozenset(), Fraction(1), 1)
    return dict(result)


def replay(market: DonorIndex, pairs: Iterable[Pair]) -> None:
    """Assert that a recorded search breaks no rule in any round, whatever its ties."""
    by_round: dict[int, dict[int, int]] = defaultdict(dict)
    for t, d, number in pairs:
        assert t in market.targets and d in market.donors and t not in by_round[number]
        by_round[number][t] = d
    assert sorted(by_round) == list(range(1, len(by_round) + 1)), "rounds are numbered without a gap"
    open_, free = set(market.targets), set(market.donors)
    for number in sorted(by_round):
        won = by_round[number]
        owner = {d: t for t, d in won.items()}
        assert len(owner) == len(won), "a donor is used once"
        for t in sorted(open_):
            options = choices(market, t, free)
            if t in won:
                assert won[t] in options, f"target {t} of round {number} is not entitled to its partner"
            elif options:
                lost = [d for d in options if d in owner and market.bias(owner[d], d) <= market.bias(t, d)]
                assert lost, f"target {t} loses round {number} to nobody"
        open_ -= set(won)
        free -= set(owner)
    assert not any(choices(market, t, free) for t in open_), "the search ends too early"
