"""How a rank swap is drawn: ranks within classes, pairs among them, and what the plan remembers of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from quadrille import kernels
from quadrille.data import Column, Data, Floats, Ints
from quadrille.errors import InputError, ParameterError, infeasible
from quadrille.expressions import Rules
from quadrille.plan import Details, Move, Plan
from quadrille.randomness import Stream, Words, draw_until_enough
from quadrille.recipe import random_order
from quadrille.swap.controlled.frame import numbers_of
from quadrille.swap.groups import codes_of, group_ids
from quadrille.swap.rank.expected import (
    Ties,
    expected_correlation,
    possible_share,
    rule_of_thumb,
    smallest_window,
    window_for_correlation,
    window_of_formula,
)
from quadrille.text import Shown

if TYPE_CHECKING:
    from quadrille.swap.rank import RankSwap


Kernel = Literal["window", "buckets", "normal"]
Tails = Literal["swap", "leave", "shuffle"]
Order = NDArray[np.int32]

_WORDS_PER_RANK = {"window": 0.8, "buckets": 1.5, "normal": 6.0}
"""Random words for each rank, as a first guess."""
_MORE_WORDS = 5
"""So many times as many where equal values may not be paired."""


@dataclass(frozen=True, eq=False, repr=False)
class Ranks(Shown):
    """The rows of each class in ascending order of a column, equal values in the order of the file.

    Class c owns the ranks start[c] to start[c+1]; those from low[c] to high[c] are in neither tail. `ends` gives for
    each rank the first one above it that holds another value. Rows without a value have no rank.
    """

    name: str
    order: Order = field(repr=False)
    start: Ints = field(repr=False)
    ends: Order = field(repr=False)
    tail: Ints = field(repr=False)
    missing: int = 0
    tied: bool = False
    ties: Ties | None = None

    @classmethod
    def of(cls, data: Data, name: str, classes: tuple[Ints, int], tail: float) -> Ranks:
        """Sort a column within classes, given as the class of each record and their number."""
        values = scale_of(data[name])
        present = np.flatnonzero(~np.isnan(values)).astype(np.int32)
        missing = data.n - len(present)
        keys, order = kernels.sort_keys(kernels.keys_of(values[present] if missing else values))
        rows, (of, count) = present[order] if missing else order, classes
        start = np.array([0, len(rows)])
        if count > 1:
            start, places = np.zeros(count + 1, dtype=np.int64), np.empty(len(rows), dtype=np.int32)
            kernels.sort_into_groups(of[rows], count, start, places)
            keys, rows = keys[places], rows[places]
        ends, sizes = kernels.runs_end(keys, start), np.diff(start)
        tied, ties = bool((ends[:-1] == ends[1:]).any()), Ties.of(ends) if count == 1 else None
        return cls(name, rows, start, ends, ranks_of_share(tail, sizes), missing, tied, ties)

    @property
    def sizes(self) -> Ints:
        """The ranks of each class."""
        return np.diff(self.start)

    @property
    def low(self) -> Ints:
        """The first rank of each class above its lower tail."""
        return self.start[:-1] + self.tail

    @property
    def high(self) -> Ints:
        """The first rank of each class in its upper tail."""
        return self.start[1:] - self.tail

    def facts(self) -> dict[str, object]:
        """Return what is remembered of them whatever the window."""
        return {
            "ranked": len(self.order),
            "missing": self.missing,
            "classes": int((self.sizes > 0).sum()),
            "in_tails": int(2 * self.tail.sum()),
        }

    def evenly(self, most: int) -> Ranks:
        """Return ranks at equal distances, at most so many."""
        if len(self.order) <= most:
            return self
        taken = np.arange(most) * len(self.order) // most
        ends = np.searchsorted(taken, self.ends[taken]).astype(np.int32)
        share = self.tail / np.maximum(self.sizes, 1)
        start = np.searchsorted(taken, self.start)
        return replace(
            self, order=self.order[taken], start=start, ends=ends, tail=(share * np.diff(start)).astype(np.int64)
        )

    def shuffled(self, stream: Stream) -> Ranks:
        """Return the ranks with equal values in random order."""
        if not self.tied:
            return self

        def attempt(words: Words) -> Order | None:
            order, dice = self.order.copy(), kernels.dice(words)
            kernels.shuffle_ties(order, self.ends, dice)
            return None if dice.cursor[1] else order

        return replace(self, order=draw_until_enough(attempt, stream, guess=len(self.order) + 64))


@dataclass(frozen=True, eq=False)
class Pairing:
    """How ranks find partners: the kernel with its reach in each class, and whom they may not take."""

    kernel: Kernel
    window: float
    buckets: int
    differ: bool
    alike: Ints
    edits: kernels.Edits
    ticks: Ints | None = None

    def widths(self, ranks: Ranks) -> Ints:
        """Return the window of each class in ranks."""
        return ranks_of_share(self.window, ranks.sizes)

    @property
    def windowed(self) -> bool:
        """Whether no rank moves farther than a number of ranks."""
        return self.kernel == "window" and self.ticks is None

    def facts(self, ranks: Ranks) -> dict[str, object]:
        """Return what is remembered of ranks and windows, whatever is drawn."""
        widths = self.widths(ranks)
        known = ranks.facts() | {
            "window": None if self.kernel == "buckets" else self.window,
            "width": int(widths.max(initial=0)) if self.windowed else None,
            "without_window": int((ranks.high - ranks.low)[widths == 0].sum()) if self.windowed else 0,
        }
        if self.windowed and ranks.ties is not None:
            known["possible"] = possible_share(ranks.ends, int(widths[0]))
            if not self.differ:
                known["pairs_that_change_expected"] = ranks.ties.share_changed(self.window)
                known["window_for_half"] = ranks.ties.window_for_half()
        return known

    def expected(self, ranks: Ranks, *, shuffled: bool) -> float | None:
        """Return the expected correlation of ranks; None where the kernel or what partners may hold has no theory."""
        if not self.windowed or self.differ or self.edits.stay.shape[1]:
            return None
        tails = ranks.tail if shuffled else np.zeros_like(ranks.tail)
        return expected_correlation(ranks.sizes, ranks.high - ranks.low, self.widths(ranks), tails)

    def ladder(self, ranks: Ranks) -> kernels.Ladder:
        """Return what the kernels work on."""
        apart = self.differ and not len(self.alike)
        ends = ranks.ends if apart else np.empty(0, dtype=np.int32)
        return kernels.Ladder(ranks.order, ranks.start, ranks.low, ranks.high, ends, self.alike, self.edits)

    def draw(self, ranks: Ranks, stream: Stream) -> Ints:
        """Draw pairs of ranks, the lower one first, in ascending order of the lower ones."""
        ladder = self.ladder(ranks)
        pairs = np.empty((len(ranks.order) // 2, 2), dtype=np.int64)
        widths, reach = self.widths(ranks), self._reach(ranks)
        buckets = np.minimum(self.buckets, np.maximum(ranks.high - ranks.low, 1))

        def attempt(words: Words) -> int | None:
            dice = kernels.dice(words)
            if self.kernel == "window":
                drawn = kernels.pair_in_window(ladder, widths, reach, pairs, dice)
            elif self.kernel == "buckets":
                drawn = kernels.pair_by_buckets(ladder, buckets, pairs, dice)
            else:
                drawn = kernels.pair_by_shift(ladder, self.window, pairs, dice)
            return None if dice.cursor[1] else int(drawn)

        more = _MORE_WORDS if self.differ and ranks.tied else 1
        guess = int(_WORDS_PER_RANK[self.kernel] * more * len(ranks.order)) + 256
        return pairs[: draw_until_enough(attempt, stream, guess=guess)]

    def _reach(self, ranks: Ranks) -> Order:
        """Return the highest rank of each weighted window; nothing where records count alike."""
        if self.ticks is None:
            return np.empty(0, dtype=np.int32)
        total = np.zeros(len(ranks.sizes), dtype=np.int64)
        np.add.at(total, np.repeat(np.arange(len(total)), ranks.sizes), self.ticks[ranks.order])
        share = exact(self.window)
        limit = np.array([floor(share * int(each)) for each in total], dtype=np.int64)
        return kernels.reach_by_weight(ranks.order, ranks.start, self.ticks, limit)


def exact(share: float) -> Fraction:
    """Return a share as the decimal that it is written as."""
    return Fraction(str(float(share)))


def ranks_of_share(share: float, sizes: Ints) -> Ints:
    """Return floor(share * size) for each size; the share counts as the decimal that it is written as."""
    wanted = share * sizes
    ranks = np.floor(wanted).astype(np.int64)
    for i in np.flatnonzero(np.abs(wanted - np.rint(wanted)) < 1e-6):  # where floats and decimals may differ
        ranks[i] = floor(exact(share) * int(sizes[i]))
    return ranks


def scale_of(column: Column) -> Floats:
    """Return numbers in the order of a column's values, NaN where they are missing; refuse categories without order."""
    variable = column.variable
    if not variable.coded:
        return column.values
    if variable.kind != "ordinal" or not variable.ordered:
        raise InputError(
            f"Column {variable.name!r} has categories without an order, so its values have no ranks. Declare it "
            "ordinal in the codebook, with its categories in order, or swap it with RandomSwap."
        )
    scale = np.append(np.arange(column.valid, dtype=np.float64), np.full(max(column.size - column.valid, 1), np.nan))
    return scale[column.values]


def numbers_or_positions(column: Column) -> Floats:
    """Return the values of a column as numbers: those of its categories, else their positions."""
    numbers = numbers_of(column)
    return scale_of(column) if numbers is None else numbers


def class_ids(data: Data, names: Sequence[str]) -> tuple[Ints, int]:
    """Number the classes of a file; a missing value is a category of its own."""
    if not names:
        return np.zeros(0, dtype=np.int64), 1
    return group_ids([codes_of(data, name) for name in names], data.n)


def value_correlation(held: Floats, pairs: Ints, steps: tuple[Ints, Ints] | None = None) -> tuple[int, float | None]:
    """Return how many records change, and the correlation of values before and after; None where there is none.

    `held` are the values by rank; each pair of ranks is exchanged, and the ranks steps[0] receive from steps[1]. The
    values stay the same as a whole, so r = 1 - sum (x'_i - x_i)^2 / (2 sum (x_i - mean)^2).
    """
    unlike, squares, spread = kernels.compare_pairs(held, pairs)
    changed, squares = 2 * int(unlike), 2 * float(squares)
    if steps is not None and len(steps[0]):
        more, further, _ = kernels.compare_pairs(held, np.column_stack(steps))
        changed, squares = changed + int(more), squares + float(further)
    return changed, 1 - squares / (2 * float(spread)) if spread > 0 else None


_CALIBRATED = 200_000
"""Trial draws for a wanted correlation work on so many ranks at most, at equal distances."""

_FEW = 5.0
"""Windows that leave fewer others in expectation leave many persons alone."""


class RankDraw:
    """A rank swap prepared for one file."""

    def __init__(self, recipe: RankSwap, data: Data) -> None:
        self._recipe, self._data = recipe, data
        for group in recipe.groups:
            _refuse_unranked(data, group)
        if recipe.weighted and data.ticks is None:
            raise InputError(
                "The 'weighted' parameter of RankSwap needs a weight, and the file has none. Name it with weight=, or "
                "leave the parameter out."
            )
        classes = class_ids(data, recipe.within)
        self._ranks = {
            group[0]: Ranks.of(data, group[0], classes, recipe.tail if recipe.tails != "swap" else 0.0)
            for group in recipe.groups
        }
        self._rules = Rules.of(data, recipe.rules, "RankSwap")
        for ranks in self._ranks.values():
            _refuse_few(ranks)
        self._fixed = self._windows()
        self._known: dict[str, dict[str, object]] = {}

    def windows(self) -> dict[str, float]:
        """Return the window of each variable that has ranks, where it does not depend on the seed."""
        return self._fixed

    def _windows(self) -> dict[str, float]:
        recipe = self._recipe
        if recipe.correlation is not None or recipe.kernel == "buckets":
            return {}
        if recipe.window is not None:
            return dict.fromkeys(self._ranks, recipe.window)
        return {
            name: window_of_formula(
                numbers_or_positions(self._data[name])[ranks.order], recipe.tail, recipe.r0, recipe.k0, name
            )
            for name, ranks in self._ranks.items()
        }

    def expected(self) -> list[dict[str, object]]:
        """Return what is known of the ranks of each variable before any draw."""
        rows: list[dict[str, object]] = []
        for group in self._recipe.groups:
            ranks, pairing = self._ranks[group[0]], self._pairing(group, self._data)
            if self._recipe.correlation is None:
                rows.append({"variable": group[0], **self._facts(ranks, pairing)})
            else:
                rows.append({"variable": group[0], **ranks.facts()})
            rows.extend({"variable": name, "moves_with": group[0]} for name in group[1:])
        return rows

    def _facts(self, ranks: Ranks, pairing: Pairing) -> dict[str, object]:
        """Return what follows from the window, whatever is drawn; once, unless the window is found by trial."""
        recipe = self._recipe
        if ranks.name in self._known:
            return self._known[ranks.name]
        if recipe.kernel == "window" and not recipe.weighted:
            _refuse_no_window(ranks, pairing, recipe)
        expected = pairing.expected(ranks, shuffled=recipe.tails == "shuffle")
        known = pairing.facts(ranks) | {"rank_correlation_expected": expected}
        if recipe.correlation is None:
            self._known[ranks.name] = known
        return known

    def draw(self, stream: Stream) -> Plan:
        """Draw the plan of a stream."""
        moves: list[Move] = []
        rows: list[dict[str, object]] = []
        for group in self._recipe.groups:
            now = self._data
            if self._rules.about(group) and moves:
                now = Plan(moves, data=now).apply(now)
            drawn = self._one(group, now, stream)
            moves.append(drawn.move(group))
            rows += [drawn.facts(name) for name in group]
        if not any(len(move.given[0]) for move in moves):
            raise infeasible(
                "No rank finds a partner: no two records within the window meet the conditions.",
                1,
                0,
                exact=True,
                hint="Widen the window, or relax 'within', 'differ' or the rules.",
            )
        facts: dict[str, object] = {"kernel": self._recipe.kernel, "ranks": rows}
        if self._rules:
            pairs = zip(self._rules.texts, self._rules.before, strict=True)
            facts["rules"] = [{"rule": text, "broken_before": before} for text, before in pairs]
        return Plan(moves, data=self._data, details=Details(facts | {"warnings": self._warnings(rows)}))

    def _one(self, group: tuple[str, ...], now: Data, stream: Stream) -> Drawn:
        name, recipe = group[0], self._recipe
        sorted_ranks = self._ranks[name]
        pairing = self._pairing(group, now)
        if recipe.correlation is not None:
            trials = stream.sub(f"calibration {name}")
            pairing = replace(pairing, window=self._calibrated(sorted_ranks, pairing, trials))
        known = self._facts(sorted_ranks, pairing)
        ranks = sorted_ranks.shuffled(stream.sub(f"ties {name}"))
        pairs = pairing.draw(ranks, stream.sub(f"pairs {name}"))
        tails = self._shuffled_tails(ranks, stream.sub(f"tails {name}"))
        return Drawn(self._data, ranks, known, pairs, tails)

    def _pairing(self, group: tuple[str, ...], now: Data) -> Pairing:
        recipe, data, lead = self._recipe, self._data, group[0]
        apart, rules = recipe.differ == "any", self._rules.on(now).about(group)
        compared: tuple[str, ...] = group if apart and len(group) > 1 else ()
        alike = class_ids(data, compared)[0]
        ticks = data.ticks.values if recipe.weighted and data.ticks is not None else None
        edits = rules.edits(group) if rules else kernels.no_edits(data.n)
        window = self._fixed.get(lead, 1.0)
        return Pairing(recipe.kernel, window, recipe.buckets or 1, apart, alike, edits, ticks)

    def _calibrated(self, ranks: Ranks, pairing: Pairing, stream: Stream) -> float:
        """Find the window at which values correlate as wanted, by two trial draws for each window that is tried."""
        wanted = self._recipe.correlation
        assert wanted is not None
        few = ranks.evenly(_CALIBRATED)
        values = numbers_or_positions(self._data[ranks.name])
        held = values[few.order]
        if value_correlation(held, np.empty((0, 2), dtype=np.int64))[1] is None:
            raise InputError(
                f"Column {ranks.name!r} has a single value or infinite ones, so that no correlation can be reached. "
                "Give a window, or leave the column out."
            )

        def realised(window: float) -> float:
            found = 0.0
            for trial in range(2):
                pairs = replace(pairing, window=window).draw(few, stream.sub(f"{window!r} {trial}"))
                found += value_correlation(held, pairs)[1] or 0.0
            return found / 2

        return window_for_correlation(wanted, realised, least=1 / int(few.sizes.max()))

    def _shuffled_tails(self, ranks: Ranks, stream: Stream) -> tuple[Ints, Ints]:
        """Permute each tail at random; return the ranks that change and where they get their values from."""
        nothing = np.empty(0, dtype=np.int64)
        if self._recipe.tails != "shuffle":
            return nothing, nothing
        ends = [(ranks.start[:-1], ranks.low), (ranks.high, ranks.start[1:])]
        spans = [(int(a), int(b)) for low, high in ends for a, b in zip(low, high, strict=True) if b > a]
        order = [a + random_order(b - a, stream.sub(f"at {a}")) for a, b in spans]
        places = np.concatenate([nothing, *(np.arange(a, b) for a, b in spans)])
        source = np.concatenate([nothing, *order])
        moved = places != source
        return places[moved], source[moved]

    def _warnings(self, rows: list[dict[str, object]]) -> tuple[str, ...]:
        idle = [str(row["variable"]) for row in rows if not row["changed"]]
        warned = [f"Column {name!r} is swapped, and no record gets another value." for name in idle]
        shares = [row["possible"] for row in rows if isinstance(row.get("possible"), float)]
        others = rule_of_thumb(self._data.n, np.array(shares))
        if len(shares) > 1 and others < _FEW:
            some = f"{others:.1f}" if others >= 0.1 else "less than 0.1"
            warned.append(
                f"Windows of ranks can be intersected: somebody who knows the {len(shares)} true values of a person "
                f"and the window is left with that person's row and {some} others, were the variables independent. "
                "Swap fewer variables, widen the window, or move them together; `attack` measures it."
            )
        return tuple(warned)


@dataclass(frozen=True, eq=False)
class Drawn:
    """The pairs of ranks of one variable, and the ranks of its tails that change, with their sources.

    `known` are facts that follow from the window, whatever is drawn.
    """

    data: Data
    ranks: Ranks
    known: dict[str, object]
    pairs: Ints
    tails: tuple[Ints, Ints]

    def move(self, columns: tuple[str, ...]) -> Move:
        """Return the move of these columns."""
        rows = self.ranks.order
        if not len(self.tails[0]):
            return Move.exchange(columns, rows[self.pairs].astype(np.int64))
        to = np.concatenate((self.pairs[:, 0], self.pairs[:, 1], self.tails[0]))
        of = np.concatenate((self.pairs[:, 1], self.pairs[:, 0], self.tails[1]))
        return Move(columns, (rows[to].astype(np.int64), rows[of].astype(np.int64)))

    def facts(self, name: str) -> dict[str, object]:
        """Return what is remembered of a variable: of one that moves along with another its values only.

        A record that has a rank and lacks the value of such a variable counts with the mean in the correlation.
        """
        column, own = self.data[name], name == self.ranks.name
        variable = column.variable
        if variable.coded and not (variable.kind == "ordinal" and variable.ordered):
            held = column.values[self.ranks.order].astype(np.float64)
            changed, correlation = value_correlation(held, self.pairs, self.tails)[0], None
        else:
            held = numbers_or_positions(column)[self.ranks.order]
            if not own and np.isnan(held).any():
                held = np.nan_to_num(held, nan=0.0 if np.isnan(held).all() else float(np.nanmean(held)))
            changed, correlation = value_correlation(held, self.pairs, self.tails)
        known: dict[str, object] = {"variable": name, "changed": changed, "correlation": correlation}
        return known | (self._rank_facts() if own else {"moves_with": self.ranks.name})

    def _rank_facts(self) -> dict[str, object]:
        ranks, pairs = self.ranks, self.pairs
        distance, far = pairs[:, 1] - pairs[:, 0], self.tails[1] - self.tails[0]
        sizes = ranks.sizes.astype(np.float64)
        total = float((sizes * (sizes**2 - 1)).sum())
        square = 2 * float(distance.astype(np.float64) @ distance) + float(far.astype(np.float64) @ far)
        return {
            **self.known,
            "pairs": len(pairs),
            "left_over": int((ranks.high - ranks.low).sum()) - 2 * len(pairs),
            "farthest": max(int(distance.max(initial=0)), int(np.abs(far).max(initial=0))),
            "rank_correlation": 1 - 6 * square / total if total else None,
        }


def _refuse_unranked(data: Data, group: Sequence[str]) -> None:
    """Refuse levels of geography, and categories without an order where ranks are taken of them."""
    for name in group:
        if data.codebook[name].role == "geography":
            raise InputError(
                f"Column {name!r} is a level of geography, and areas have no ranks. Swap areas with RandomSwap, "
                "TargetedSwap or CycleSwap."
            )
    scale_of(data[group[0]])


def _refuse_few(ranks: Ranks) -> None:
    most = int(ranks.sizes.max(initial=0))
    if most < 2:
        found = "no value at all" if not len(ranks.order) else "no class with two values or more"
        raise InputError(f"Column {ranks.name!r} has {found}, so nothing can change places. Leave it out of 'swap'.")


def _refuse_no_window(ranks: Ranks, pairing: Pairing, recipe: RankSwap) -> None:
    """Refuse a window of no rank at all, and say which is the smallest."""
    if pairing.widths(ranks).any():
        return
    most = int(ranks.sizes.max())
    what = next(name for name in ("window", "correlation", "r0", "k0") if getattr(recipe, name) is not None)
    raise ParameterError(
        f"The '{what}' parameter of RankSwap gives a window of 0 ranks for the {most:,} values of {ranks.name!r}"
        f"{' in the largest class' if recipe.within else ''}. The smallest window that gives one is "
        f"{smallest_window(most)}."
    )
