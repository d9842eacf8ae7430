"""What plausibility rules do to a swap: which pairs they exclude, how many of them, and what a plan says of it.

Records are alike to the rules when they have the same pattern of bits. Pairs are counted by pattern and not one by
one: those that differ in all of some conditions are, by inclusion and exclusion, sums over sets of conditions of those
that agree on the set, and these are products of counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from quadrille import kernels
from quadrille.expressions import BITS, IDLE, Rules
from quadrille.swap.groups import Ints, group_ids

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Patterns:
    """The pattern of every record, and the bits of each pattern."""

    of: Ints
    edits: kernels.Edits

    @classmethod
    def find(cls, edits: kernels.Edits) -> Patterns:
        """Number the patterns that occur."""
        n = len(edits.stay)
        words = [*edits.stay.T, *edits.move.T, *(word for layer in edits.linked for word in layer.T), *edits.parent]
        codes = [np.unique(word, return_inverse=True)[1] for word in words]
        of, count = group_ids([(code, int(code.max(initial=0)) + 1) for code in codes], n)
        leader = np.zeros(count, dtype=np.int64)
        leader[of] = np.arange(n)
        return cls(of, edits.take(leader))

    @property
    def count(self) -> int:
        """Number of patterns."""
        return len(self.edits.stay)

    def broken(self, p: Ints, q: Ints) -> Ints:
        """Return, as bits, the rules that a record of pattern p breaks anew with the values of one of pattern q."""
        stay, move, linked, parent = self.edits
        was: Ints = stay[p] & move[p]
        now: Ints = stay[p] & move[q]
        for layer, value in zip(linked, parent, strict=True):
            was = was & layer[p]
            differs: Flags = value[p] != value[q]
            now = now & cast("Ints", np.where(differs[:, None], layer[q], layer[p]))
        return now & ~was


@dataclass(frozen=True, eq=False)
class Forbidden:
    """Which exchanges of some columns the rules forbid: `table[pattern[a], pattern[b]]` tells it of records a and b.

    `creates[p, q]` tells it of one side: a record of pattern p would break a rule anew with the values of pattern q.
    """

    pattern: Ints
    creates: Flags

    @classmethod
    def of(cls, rules: Rules, moved: Sequence[str]) -> Forbidden:
        """Find the patterns of a file for pairs that exchange the columns `moved`.

        >>> import quadrille as qd
        >>> from quadrille.expressions import Rules
        >>> from quadrille.swap.rules import Forbidden
        >>> data = qd.datasets.cps8d()
        >>> found = Forbidden.of(Rules.of(data, ["Age=<25 & MS=Married"], "RandomSwap"), ["MS"])
        >>> found.table.shape, int(found.table.sum())
        ((4, 4), 4)
        """
        found = Patterns.find(rules.edits(moved))
        p, q = (each.ravel() for each in np.indices((found.count, found.count)))
        return cls(found.of, found.broken(p, q).any(axis=1).reshape(found.count, found.count))

    @property
    def table(self) -> Flags:
        """Whether records of two patterns must not be paired."""
        return self.creates | self.creates.T


@dataclass(frozen=True, eq=False)
class Candidates:
    """Who could be paired but for the rules: rows of one class that differ in every condition, one of either side.

    A row stands for `first` records on one side and `second` on the other; `both` tells that the sides are the same.
    """

    of_class: Ints
    conditions: Sequence[Ints]
    first: Ints
    second: Ints
    both: bool


@dataclass(frozen=True)
class RuleCounts:
    """What the rules do in one search for pairs: pairs that could be formed without them, and that they exclude."""

    columns: tuple[str, ...]
    possible: int
    excluded: int
    by_rule: Mapping[str, int] = field(default_factory=dict[str, int])


def count_pairs(rules: Rules, columns: Sequence[str], edits: kernels.Edits, candidates: Candidates) -> RuleCounts:
    """Count the pairs that the rules exclude; the rules are those that `edits` are about."""
    found = Patterns.find(edits)
    pairs = _pairs_by_pattern(found, candidates).tocoo()
    times, (p, q) = pairs.data.astype(np.int64), (np.asarray(axis, dtype=np.int64) for axis in pairs.coords)
    alone = int(np.minimum(candidates.first, candidates.second).sum()) if not candidates.conditions else 0
    sides = 2 if candidates.both else 1
    broken = found.broken(p, q) | found.broken(q, p)
    by_rule = {
        text: int(times[(broken[:, r // BITS] >> (r % BITS)) & 1 == 1].sum()) // sides
        for r, text in enumerate(rules.texts)
    }
    possible = (int(times.sum()) - (alone if candidates.both else 0)) // sides
    return RuleCounts(tuple(columns), possible, int(times[broken.any(axis=1)].sum()) // sides, by_rule)


def _pairs_by_pattern(found: Patterns, candidates: Candidates) -> csr_array[Any]:
    """Count ordered pairs by the patterns of the two."""
    from scipy.sparse import coo_array

    rows, shape = len(found.of), (found.count, found.count)
    alone = coo_array((candidates.first * candidates.second, (found.of, found.of)), shape=shape).tocsr()
    total = cast("csr_array[Any]", coo_array(shape, dtype=np.int64).tocsr())
    apart: list[frozenset[int]] = []
    for chosen in _subsets(len(candidates.conditions)):
        agreeing = alone  # no two rows agree on these conditions
        if not any(fewer <= chosen for fewer in apart):
            agreed = [candidates.of_class, *(candidates.conditions[c] for c in sorted(chosen))]
            key, keys = group_ids([(each, int(each.max(initial=0)) + 1) for each in agreed], rows)
            first, second = (
                coo_array((side, (key, found.of)), shape=(keys, found.count)).tocsr()
                for side in (candidates.first, candidates.second)
            )
            agreeing = first.T @ second
            if keys == rows:
                apart.append(chosen)
        total = total + (-1) ** len(chosen) * agreeing
    return cast("csr_array[Any]", total)


def _subsets(count: int) -> Iterable[frozenset[int]]:
    return (frozenset(chosen) for size in range(count + 1) for chosen in combinations(range(count), size))


def rules_facts(rules: Rules, counts: Sequence[RuleCounts]) -> dict[str, object]:
    """Return what a plan remembers of its rules: nothing if there are none."""
    if not rules:
        return {}
    rows: list[dict[str, object]] = []
    for text, before in zip(rules.texts, rules.before, strict=True):
        about = [each for each in counts if text in each.by_rule]
        row: dict[str, object] = {"rule": text, "broken_before": before}
        rows += [{**row, "moved": ", ".join(each.columns), "pairs_excluded": each.by_rule[text]} for each in about]
        if not about:
            rows.append({**row, "moved": "", "pairs_excluded": 0, "remark": IDLE})
    possible = sum(each.possible for each in counts)
    facts: dict[str, object] = {"rules": rows, "pairs_excluded": sum(each.excluded for each in counts)}
    return facts | {"pairs_without_rules": possible} if any(each.by_rule for each in counts) else facts
