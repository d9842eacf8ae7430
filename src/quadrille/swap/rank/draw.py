"""How a rank swap is drawn: variable by variable, with what the plan remembers of windows, ranks and values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from quadrille import kernels
from quadrille.data import Data, Ints
from quadrille.errors import InputError, ParameterError, infeasible
from quadrille.expressions import Rules
from quadrille.plan import Details, Move, Plan
from quadrille.randomness import Stream
from quadrille.recipe import random_order
from quadrille.swap.rank.expected import (
    rule_of_thumb,
    smallest_window,
    window_for_correlation,
    window_of_formula,
)
from quadrille.swap.rank.ranks import Pairing, Ranks, class_ids, numbers_or_positions, scale_of, value_correlation

if TYPE_CHECKING:
    from quadrille.swap.rank import RankSwap

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
        return Plan(moves, data=self._data, details=Details(facts, warnings=self._warnings(rows)))

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
        recipe, data = self._recipe, self._data
        apart, rules = recipe.differ == "any", self._rules.on(now).about(group)
        compared = group if apart and len(group) > 1 else ()
        alike = class_ids(data, compared)[0]
        ticks = data.ticks.values if recipe.weighted and data.ticks is not None else None
        edits = rules.edits(group) if rules else kernels.no_edits(data.n)
        window = self._fixed.get(group[0], 1.0)
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
