"""Which records may be paired, also by plausibility rules, how many pairs there can be, and drawing them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from quadrille import kernels
from quadrille.data import Data, Flags, Ints
from quadrille.errors import InfeasibleError, infeasible
from quadrille.expressions import BITS, IDLE, Rules
from quadrille.plan import Pairs
from quadrille.randomness import Chooser, Stream, Words, draw_until_enough
from quadrille.recipe import Exchange
from quadrille.swap.groups import Grouping, Roster, codes_of, group_ids, ranks

if TYPE_CHECKING:
    from scipy.sparse import csr_array


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
        >>> from quadrille.swap.pairing import Forbidden
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


Kind = tuple[int, int]
_FREE = -1
_WORDS = 256
_PARTING_WORDS = 40_000
_AT_ONCE = 8
"""Of the pairs still missing, one in this many may follow the same path."""


def repair(pool: kernels.Pool, log: Ints, pairs: Pairs, drawn: int, stream: Stream) -> int:
    """Extend the first `drawn` pairs of places to all of `pairs`, or as far as possible; return how many there are."""
    drawn = _part_pairs(pool, log, pairs, drawn, Chooser(stream.sub("parting")))
    chooser = Chooser(stream.sub("choices"))
    classes = _classes(pool, pairs, drawn) if drawn < len(pairs) else {}
    turn = 0
    while drawn < len(pairs) and classes:
        number = list(classes)[chooser.below(len(classes))]
        path = _find_path(pool, number, classes[number], stream.sub(f"order {turn}"))
        turn += 1
        if path is None:
            del classes[number]
            continue
        for _ in range(min(path.most, max(1, (len(pairs) - drawn) // _AT_ONCE))):
            _follow(path, pool, log, pairs, drawn, classes[number], chooser)
            drawn += 1
    return drawn


def _part_pairs(pool: kernels.Pool, log: Ints, pairs: Pairs, drawn: int, chooser: Chooser) -> int:
    """Take the shortest paths first, which part one pair only, as long as they are easily found."""
    before = -1
    while before < drawn < len(pairs):
        before = drawn
        words = chooser.words(_PARTING_WORDS + 80 * min(len(pairs) - drawn, 1 << 16))
        drawn = int(kernels.part_pairs(pairs, drawn, pool, log, kernels.dice(words)))
    return drawn


def _classes(pool: kernels.Pool, pairs: Pairs, drawn: int) -> dict[int, dict[Kind, list[int]]]:
    """Sort the pairs drawn by class and kind; only classes with two unused records can gain a pair."""
    left = np.bincount(pool.class_of, weights=pool.unused)
    classes: dict[int, dict[Kind, list[int]]] = {int(c): defaultdict(list) for c in np.flatnonzero(left >= 2)}
    groups = np.searchsorted(pool.start, pairs[:drawn], side="right") - 1
    for i, (g, h) in enumerate(groups.tolist()):
        number = int(pool.class_of[g])
        if number in classes:
            if g > h:
                pairs[i] = pairs[i, ::-1]
            classes[number][min(g, h), max(g, h)].append(i)
    return classes


class _Vertex(NamedTuple):
    """A record of the small graph: its group, and which copy of a pair it is which side of; copy -1 is unused."""

    group: int
    copy: int
    side: int


class _Path(NamedTuple):
    """One augmentation: kinds of pair to take apart, groups to draw from, ends to join, how often it can be done.

    In `joins` a vertex names its place in `kinds` (copy) or, with copy -1, its place in `free` (side).
    """

    kinds: list[Kind]
    free: list[int]
    joins: list[tuple[_Vertex, _Vertex]]
    most: int


def _find_path(pool: kernels.Pool, number: int, kinds: dict[Kind, list[int]], stream: Stream) -> _Path | None:
    """Find an augmenting path in one class, the vertices in random order; None when there is none."""
    copies = [kind for kind, members in kinds.items() for _ in range(min(2, len(members)))]
    groups = range(int(pool.first[number]), int(pool.first[number + 1]))
    vertices = [_Vertex(g, _FREE, 0) for g in groups for _ in range(min(2, int(pool.unused[g])))]
    vertices += [_Vertex(kind[side], copy, side) for copy, kind in enumerate(copies) for side in (0, 1)]
    order: list[int] = np.argsort(stream.words(len(vertices)), kind="stable").tolist()
    vertices = [vertices[v] for v in order]
    place = {(vertex.copy, vertex.side): v for v, vertex in enumerate(vertices)}
    before = np.array([_FREE if v.copy == _FREE else place[v.copy, 1 - v.side] for v in vertices], dtype=np.int64)
    mate = before.copy()
    if not kernels.augment(np.array([v.group for v in vertices], dtype=np.int64), mate, pool):
        return None
    touched: list[int] = np.flatnonzero(before != mate).tolist()
    free = [v for v in touched if before[v] == _FREE]
    used = sorted({vertices[v].copy for v in touched} - {_FREE})

    def end(v: int) -> _Vertex:
        group, copy, side = vertices[v]
        return _Vertex(group, _FREE, free.index(v)) if copy == _FREE else _Vertex(group, used.index(copy), side)

    joins = [(end(v), end(int(mate[v]))) for v in touched if v < mate[v]]
    path = _Path([copies[copy] for copy in used], [vertices[v].group for v in free], joins, 0)
    return path._replace(most=_most(path, pool, kinds))


def _most(path: _Path, pool: kernels.Pool, kinds: dict[Kind, list[int]]) -> int:
    """Return how often a path can be followed with the pairs and unused records there are."""
    taken = [len(kinds[kind]) // times for kind, times in Counter(path.kinds).items()]
    return min(taken + [int(pool.unused[g]) // times for g, times in Counter(path.free).items()])


def _follow(
    path: _Path,
    pool: kernels.Pool,
    log: Ints,
    pairs: Pairs,
    drawn: int,
    kinds: dict[Kind, list[int]],
    chooser: Chooser,
) -> None:
    """Take pairs of the right kinds apart, draw two unused records, and join them along the path."""
    slots = [kinds[kind].pop() for kind in path.kinds]
    record = {(copy, side): int(pairs[slot, side]) for copy, slot in enumerate(slots) for side in (0, 1)}
    for i, g in enumerate(path.free):
        record[_FREE, i] = int(kernels.take_any(g, pool, log, kernels.dice(chooser.words(_WORDS))))
    for slot, join in zip([*slots, drawn], path.joins, strict=True):
        first, second = sorted(join)
        pairs[slot] = record[first.copy, first.side], record[second.copy, second.side]
        kinds[first.group, second.group].append(slot)


Differ = Literal["all", "any", "none"]
Sampler = Literal["first-uniform", "pair-uniform"]

_DIFFER_CODE = {"none": 0, "any": 1, "all": 2}
_DIFFER_NAME: dict[int, Differ] = {0: "none", 1: "any", 2: "all"}
_HINTS = 1 << 12
_FEW_GROUPS = 128
"""Of so many groups each two are compared beforehand."""
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
        self._pool, self._roster = pool_of(self._groups, rule, pair_uniform=self._pair_uniform)
        self.bound, self._bound_is_exact = most_pairs(self._pool)

    def draw(self, count: int, stream: Stream) -> Pairs:
        """Draw `count` pairs, or raise the error that names the largest possible number."""
        if count > self.bound:
            raise self._too_many(count, stream)
        pairs, drawn = self._attempt(count, stream)
        if drawn < count:
            raise self._infeasible(count, drawn, exact=True)
        return self._roster.rows(pairs)

    def exchange(self, count: int, stream: str) -> Exchange | None:
        """Describe the draw for the fused scorer, if so many pairs may exist."""
        if count > self.bound:
            return None
        return Exchange(self.moved, self._pool, lambda: self._roster.order, self._pair_uniform, count, stream)

    def bound_without_rules(self) -> int:
        """Return an upper bound of the number of pairs if there were no rules."""
        groups = self._groups._replace(edits=kernels.no_edits(len(self._groups.counts)))
        return most_pairs(pool_of(groups, self.rule)[0])[0]

    @cached_property
    def rule_counts(self) -> RuleCounts | None:
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
        without = f"Without the rules at most {self.bound_without_rules():,} are possible."
        return infeasible(error.reason, count, maximum, exact, hint=f"{error.hint} {without}")

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
    """Records that are alike in all that matters, as groups: class, decisive values, bits of the rules."""

    grouping: Grouping
    counts: Ints
    of_class: Ints
    types: NDArray[np.int32]
    edits: kernels.Edits


def group_records(data: Data, rule: Rule, edits: kernels.Edits | None = None) -> Groups:
    """Group the records by class and by what decides within a class."""
    columns = {name: codes_of(data, name) for name in (*rule.same, *rule.swap, *rule.different)}
    patterns = None if edits is None else Patterns.find(edits)
    refined = [] if patterns is None else [(patterns.of, patterns.count)]
    grouping = Grouping([*columns.values(), *refined], data)
    first = grouping.first
    of_class, _ = group_ids([(columns[name][0][first], columns[name][1]) for name in rule.same], len(first))
    types = np.stack([columns[name][0][first] for name in (*rule.swap, *rule.different)], axis=1).astype(np.int32)
    bits = kernels.no_edits(len(first)) if edits is None else edits.take(first)
    return Groups(grouping, grouping.counts, of_class, types, bits)


def pool_of(groups: Groups, rule: Rule, *, pair_uniform: bool = False) -> tuple[kernels.Pool, Roster]:
    """Make the pool of the records that have any admissible partner."""
    pool = _pool(groups, rule, pair_uniform=pair_uniform)
    alive = kernels.has_partner(pool)
    if alive.all():
        return pool, groups.grouping.roster()
    grouping, counts, of_class, types, edits = groups
    left = Groups(grouping, counts[alive], of_class[alive], types[alive], edits.take(alive))
    return _pool(left, rule, pair_uniform=pair_uniform), grouping.roster(alive)


def _pool(groups: Groups, rule: Rule, *, pair_uniform: bool) -> kernels.Pool:
    _, counts, class_id, types, edits = groups
    size = int(counts.sum())
    bits = [part[:, [w]] for w in range(edits.stay.shape[1]) for part in (edits.stay, edits.move)]
    class_of, classes = ranks(class_id, int(class_id.max(initial=-1)) + 1)
    groups_in = np.bincount(class_of, minlength=classes)
    records_in = np.bincount(class_of, weights=counts, minlength=classes)
    start = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    shift = max(0, (size // max(_HINTS, 4 * len(counts))).bit_length())
    # Counting what is left costs a pass over the groups; for pairs, over the pairs of groups in a class.
    conditions = len(rule.swap) + len(rule.different) + len(bits)
    work = int((groups_in.astype(np.float64) ** 2).sum()) if pair_uniform and conditions > 1 else len(counts)
    pool = kernels.Pool(
        start=start,
        unused=counts.astype(np.int64),
        used=np.zeros(size // 8 + 1, dtype=np.uint8),
        hint=np.searchsorted(start, np.arange(0, size + 1, 1 << shift), side="right").astype(np.int32) - 1,
        shift=shift,
        class_of=class_of,
        first=np.concatenate(([0], np.cumsum(groups_in))).astype(np.int64),
        types=np.ascontiguousarray(np.hstack((types, *bits), dtype=np.int32)),
        swaps=len(rule.swap),
        decisive=types.shape[1],
        differ=_DIFFER_CODE[rule.differ],
        longest=int(records_in.max(initial=0)),
        patience=256 + work // 4,
        fits=np.zeros((0, 0), dtype=np.uint8),
    )
    return pool._replace(fits=kernels.fitting_groups(pool)) if len(counts) <= _FEW_GROUPS else pool


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
