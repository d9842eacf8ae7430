"""Which records may be paired, how many pairs there can be, and drawing them: shared by methods that pair records."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quadrille import kernels
from quadrille.data import Data
from quadrille.errors import InfeasibleError, infeasible
from quadrille.plan import Pairs
from quadrille.randomness import Stream, Words, draw_until_enough
from quadrille.recipe import Exchange
from quadrille.rules import Rules
from quadrille.swap.groups import Ints, codes_of, group_ids, ranks
from quadrille.swap.plausible import Candidates, Patterns, Told, count_pairs
from quadrille.swap.repair import repair

Differ = Literal["all", "any", "none"]
Sampler = Literal["first-uniform", "pair-uniform"]

_DIFFER_CODE = {"none": 0, "any": 1, "all": 2}
_DIFFER_NAME: dict[int, Differ] = {0: "none", 1: "any", 2: "all"}
_HINTS = 1 << 12
EXACT_GROUPS = 10_000
"""Up to this many value combinations the largest number of pairs is worked out exactly for an error message."""


@dataclass(frozen=True)
class Rule:
    """Who may be paired with whom."""

    swap: tuple[str, ...]
    same: tuple[str, ...]
    different: tuple[str, ...]
    differ: Differ
    forbidden: str = ""
    """What no record may become, in words."""

    def __str__(self) -> str:
        parts = [f"swapping {', '.join(self.swap)}"]
        parts += [f"{', '.join(self.same)} the same"] if self.same else []
        parts += [f"{', '.join(self.different)} different"] if self.different else []
        parts += [f"no record made to meet {self.forbidden}"] if self.forbidden else []
        return " with ".join((parts[0], " and ".join(parts[1:]))) if parts[1:] else parts[0]


class Pairing:
    """The prepared draw of pairs under a rule: cost per draw in proportion to the records drawn.

    `moved` are all columns that the pairs exchange, and `rules` those that the exchange might break.
    """

    def __init__(
        self,
        data: Data,
        rule: Rule,
        sampler: Sampler,
        rules: Rules | None = None,
        moved: tuple[str, ...] = (),
    ) -> None:
        self.rule = rule
        self.rules = rules.about(moved) if rules else None
        self.moved = moved or rule.swap
        self._pair_uniform = sampler == "pair-uniform"
        self._words_per_pair = 6.0  # what the last draw needed
        self._groups = group_records(data, rule, self.rules.edits(moved) if self.rules else None)
        self._pool = pool_of(self._groups, rule, pair_uniform=self._pair_uniform)
        self.bound, self._bound_is_exact = most_pairs(self._pool)

    def draw(self, count: int, stream: Stream) -> Pairs:
        """Draw `count` pairs, or raise the error that names the largest possible number."""
        if count > self.bound:
            raise self._too_many(count, stream)
        pairs, drawn = self._attempt(count, stream)
        if drawn < count:
            raise self._infeasible(count, drawn, exact=True)
        return pairs

    def exchange(self, count: int, stream: str) -> Exchange | None:
        """Describe the draw for the fast lane, if so many pairs may exist."""
        if count > self.bound:
            return None
        return Exchange(self.moved, self._pool, self._pair_uniform, count, stream)

    def bound_without_rules(self) -> int:
        """Return an upper bound of the number of pairs if there were no rules."""
        groups = self._groups._replace(edits=kernels.no_edits(len(self._groups.counts)))
        return most_pairs(pool_of(groups, self.rule))[0]

    @cached_property
    def told(self) -> Told | None:
        """Count the pairs that the rules exclude, of those that the conditions allow."""
        if not self.rules:
            return None
        _, counts, of_class, types, edits = self._groups
        conditions = conditions_of(types, self.rule.differ, len(self.rule.swap))
        return count_pairs(self.rules, self.moved, edits, Candidates(of_class, conditions, counts, counts, both=True))

    def _too_many(self, count: int, stream: Stream) -> InfeasibleError:
        maximum, exact = self.bound, self._bound_is_exact
        if not exact and len(self._pool.unused) <= EXACT_GROUPS:
            _, maximum = self._attempt(self.bound, stream)
            exact = True
        return self._infeasible(count, maximum, exact=exact)

    def _infeasible(self, count: int, maximum: int, *, exact: bool) -> InfeasibleError:
        error = InfeasibleError(count, maximum, exact=exact, where=str(self.rule))
        if not self.rules:
            return error
        without = f"{error} Without the rules at most {self.bound_without_rules():,} are possible."
        return infeasible(without, count, maximum, exact)

    def _attempt(self, count: int, stream: Stream) -> tuple[Pairs, int]:
        pool = self._pool
        pairs = np.empty((count, 2), dtype=np.int64)
        log = np.zeros(2 * count + 2, dtype=np.int64)

        def attempt(words: Words) -> int | None:
            self._words_per_pair = len(words) / max(count, 1)
            dice = kernels.dice(words)
            try:
                drawn = int(kernels.draw_pairs(pairs, self._pair_uniform, pool, log, dice))
                if dice.cursor[1]:
                    return None
                return drawn if drawn == count else repair(pool, log, pairs, drawn, stream.sub("repair"))
            finally:
                kernels.put_back(0, pool, log)

        drawn = draw_until_enough(attempt, stream, guess=int(self._words_per_pair * count))
        return pairs, drawn


class Groups(NamedTuple):
    """The records sorted into groups that are alike in all that matters: class, decisive values, bits of the rules."""

    order: NDArray[np.int32]
    counts: Ints
    of_class: Ints
    types: NDArray[np.int32]
    edits: kernels.Edits


def group_records(data: Data, rule: Rule, edits: kernels.Edits | None = None) -> Groups:
    """Sort the records by class and group."""
    columns = {name: codes_of(data, name) for name in (*rule.same, *rule.swap, *rule.different)}
    class_id, classes = group_ids([columns[name] for name in rule.same], data.n)
    decisive = [columns[name] for name in (*rule.swap, *rule.different)]
    patterns = None if edits is None else Patterns.find(edits)
    refined = [] if patterns is None else [(patterns.of, patterns.count)]
    group_id, groups = group_ids([(class_id, classes), *decisive, *refined], data.n)
    start = np.zeros(groups + 1, dtype=np.int64)
    order = np.empty(data.n, dtype=np.int32)
    kernels.sort_into_groups(group_id, groups, start, order)
    leader = order[start[:-1]]
    types = np.stack([codes[leader] for codes, _ in decisive], axis=1).astype(np.int32)
    bits = kernels.no_edits(groups) if edits is None else edits.take(leader)
    return Groups(order, np.diff(start), class_id[leader], types, bits)


def make_pool(data: Data, rule: Rule, *, pair_uniform: bool = False) -> kernels.Pool:
    """Sort the records that have any admissible partner by class and group."""
    return pool_of(group_records(data, rule), rule, pair_uniform=pair_uniform)


def pool_of(groups: Groups, rule: Rule, *, pair_uniform: bool = False) -> kernels.Pool:
    """Make the pool of the records that have any admissible partner."""
    pool = _pool(groups, rule, pair_uniform=pair_uniform)
    alive = kernels.has_partner(pool)
    if alive.all():
        return pool
    order, counts, of_class, types, edits = groups
    kept = order[np.repeat(alive, counts)]
    left = Groups(kept, counts[alive], of_class[alive], types[alive], edits.take(alive))
    return _pool(left, rule, pair_uniform=pair_uniform)


def _pool(groups: Groups, rule: Rule, *, pair_uniform: bool) -> kernels.Pool:
    order, counts, class_id, types, edits = groups
    bits = [part[:, [w]] for w in range(edits.stay.shape[1]) for part in (edits.stay, edits.move)]
    class_of, classes = ranks(class_id, int(class_id.max(initial=-1)) + 1)
    groups_in = np.bincount(class_of, minlength=classes)
    records_in = np.bincount(class_of, weights=counts, minlength=classes)
    start = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    shift = max(0, (len(order) // max(_HINTS, 4 * len(counts))).bit_length())
    # Counting what is left costs a pass over the groups; for pairs, over the pairs of groups in a class.
    conditions = len(rule.swap) + len(rule.different) + len(bits)
    work = int((groups_in.astype(np.float64) ** 2).sum()) if pair_uniform and conditions > 1 else len(counts)
    return kernels.Pool(
        order=order,
        start=start,
        unused=counts.astype(np.int64),
        used=np.zeros(len(order) // 8 + 1, dtype=np.uint8),
        hint=np.searchsorted(start, np.arange(0, len(order) + 1, 1 << shift), side="right").astype(np.int32) - 1,
        shift=shift,
        class_of=class_of,
        first=np.concatenate(([0], np.cumsum(groups_in))).astype(np.int64),
        types=np.ascontiguousarray(np.hstack((types, *bits), dtype=np.int32)),
        swaps=len(rule.swap),
        decisive=types.shape[1],
        differ=_DIFFER_CODE[rule.differ],
        longest=int(records_in.max(initial=0)),
        patience=256 + work // 4,
    )


def most_pairs(pool: kernels.Pool) -> tuple[int, bool]:
    """Return an upper bound of the number of pairs, and whether it is the maximum.

    Per class of n records at most floor(n / 2), and at most n - m where m is the largest number of records that
    share a value which must differ. With one such condition, or none, and without rules, the bound is reached.
    """
    classes = len(pool.first) - 1
    size = np.bincount(pool.class_of, weights=pool.unused, minlength=classes).astype(np.int64)
    bound = size // 2
    conditions = conditions_of(pool.types[:, : pool.decisive], _DIFFER_NAME[pool.differ], pool.swaps)
    for values in conditions:
        _, cell = np.unique(np.stack((pool.class_of, values)), axis=1, return_inverse=True)
        count = np.bincount(cell, weights=pool.unused).astype(np.int64)
        largest = np.zeros(classes, dtype=np.int64)
        np.maximum.at(largest, pool.class_of, count[cell])
        bound = np.minimum(bound, size - largest)
    return int(bound.sum()), len(conditions) <= 1 and pool.types.shape[1] == pool.decisive


def conditions_of(types: NDArray[np.int32], differ: Differ, swaps: int) -> list[Ints]:
    """Return, per condition, the value of each group that must differ within a pair."""
    columns = [types[:, c].astype(np.int64) for c in range(types.shape[1])]
    swapped, different = columns[:swaps], columns[swaps:]
    if differ == "all":
        return swapped + different
    if differ == "any":
        joint, _ = group_ids([(c, int(c.max(initial=0)) + 1) for c in swapped], len(types))
        return [joint, *different]
    return different
