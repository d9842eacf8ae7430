"""Designed swapping by pairs: the first version of the method, whose recipes still draw their plans; and the draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from math import ceil, inf
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from quadrille import kernels
from quadrille.data import Data, Ints
from quadrille.errors import OverlapError, ParameterError
from quadrille.kernels.designed import Fillers, Rows, State, Treatments
from quadrille.kernels.designed.design import (
    BUDGET,
    CAMOUFLAGE_ONLY,
    CAMOUFLAGED,
    CHEAPER,
    EITHER,
    EMPTIED,
    EMPTY_ONLY,
    NO_NEIGHBOUR,
    NO_PARTNER,
    NOT_CHOSEN,
    TOO_DEAR,
)
from quadrille.params import (
    NOT_INFINITE,
    SEED,
    ColumnName,
    Columns,
    ColumnSets,
    Count,
    Flag,
    Losses,
    Number,
    RuleList,
    Share,
    Word,
)
from quadrille.plan import Details, Move, Pairs, Plan
from quadrille.randomness import Seed, Stream, Words, draw_until_enough
from quadrille.recipe import Movement, Prepared, Recipe, carried_fact, random_order
from quadrille.swap.designed.problem import DesignedProblem, movers_of, problem_of, protected_tables
from quadrille.swap.groups import sorted_by


@dataclass(frozen=True)
class DesignedPairs(Recipe, earlier_version_of="DesignedSwap"):
    """Hide the small cells of a table by pairs of records, without regard to other tables: the first version.

    Recipes of that version are read as this. `DesignedSwap` keeps tables exactly; it uses these pairs where columns
    must differ within a pair.

    Each pair exchanges one variable, or one set of `together`. A small cell gets a record from a neighbouring cell that
    differs in that variable only; its partner moves the other way between cells that are large. No other cell becomes
    small. Moves are chosen by what they cost in `loss`; then cells are treated anew while that lowers the loss.

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.cps8d()
    >>> plan = qd.Recipe.from_json('{"method":"DesignedSwap","seed":7,"version":1}').plan(data)
    >>> scores = qd.score(data, plan, ["exposed", "hellinger"])
    >>> scores["exposed"] < 0.001, scores["hellinger"] < 0.049
    (True, True)
    """

    swap: Annotated[
        Sequence[str],
        Columns("variables that may move", otherwise="those of the protected tables", moves=True),
    ] = ()
    _: KW_ONLY
    tables: Annotated[
        Sequence[Sequence[str]],
        ColumnSets(
            "tables whose small cells are protected",
            otherwise="one, of the key variables",
            option="protect",
            moves=True,
        ),
    ] = ()
    n: Annotated[int, Count("cells of 1 to n - 1 records are small", least=2, unit="records")] = 3
    share: Annotated[float, Share("share of the small cells to treat", unit="share of the small cells")] = 1.0
    choose: Annotated[
        Literal["random", "cheapest"],
        Word("which ones: random or cheapest. Those that are not treated stay as they are, and genuine, either way"),
    ] = "random"
    treatment: Annotated[
        Literal["cheaper", "camouflage", "empty", "either"],
        Word(
            "cheaper, either, camouflage or empty. Cheaper: camouflage, or empty a cell where that costs less, and "
            "leave one that cannot be camouflaged; either: empty such a cell where that can be done; camouflage, "
            "empty: only that"
        ),
    ] = "cheaper"
    loss: Annotated[
        str | Mapping[str, float],
        Losses(
            'what to keep low, as in "hellinger=1,hellinger(Age*Sex)=5". A loss of a table, such as "hellinger", '
            '"total_variation(Age*Sex)" or "chi_square", or several with their weights',
            option="keep-low",
        ),
    ] = field(default="hellinger", hash=False)
    spread: Annotated[
        float,
        Share(
            "how much dearer than the cheapest a way may be; one of these is drawn, with 0 always the cheapest",
            within="[0, 1]",
            must="a number from 0 to 1",
            unit="share of the cost",
        ),
    ] = 0.1
    price: Annotated[
        float | None,
        Number(
            "treat where loss + price * exposed falls; Hellinger distances are squared in it",
            must=NOT_INFINITE,
            otherwise="at any cost",
        ),
    ] = None
    improve: Annotated[bool, Flag("treat cells anew; round by round, while that lowers the loss")] = True
    together: Annotated[Sequence[Sequence[str]], ColumnSets("sets of swap variables that move as one: Age*MS")] = ()
    same: Annotated[Sequence[str], Columns("columns that must agree within a pair; never swap variables")] = ()
    different: Annotated[Sequence[str], Columns("columns that must differ within a pair; never swap variables")] = ()
    never: Annotated[
        str | None, ColumnName("column that is true for records that must not be touched", steers=True)
    ] = None
    rules: Annotated[
        Sequence[str],
        RuleList('no pair may make a record meet it: "Age<16 & MS=Widowed"', option="rule"),
    ] = ()
    max_pairs: Annotated[int | None, Count("most pairs", unit="pairs")] = None
    seed: Annotated[Seed, SEED] = field(default=None, repr=False)

    @classmethod
    def moved(cls, parameters: Mapping[str, object]) -> frozenset[str]:
        """Return the swap variables, or those of the tables."""
        return super().moved({"swap": parameters.get("swap", ())}) or super().moved(parameters)

    @property
    def left_out(self) -> tuple[str, ...]:
        """Columns that are in no table unless it names them."""
        return self.steering_columns

    def movement(self, data: Data) -> Movement:
        """Return the movers; every record stays in a cell of the protected tables that was occupied."""
        tables = protected_tables(self, data)
        return Movement(movers_of(self, data, tables)[1], tuple(self.same), tuple(tables))

    def prepare(self, data: Data) -> Prepared:
        """Tabulate the file and find out which cells neighbour which."""
        problem, never = problem_of(self, data)
        return Prepared(DesignedDraw(self, data, problem, never).draw)

    def check(self) -> None:
        """Refuse columns with two parts."""
        part: dict[str, str] = {}
        lists = {"swap": self.swap, "same": self.same, "different": self.different, "never": self.steering_columns}
        for parameter, columns in lists.items():
            for name in columns:
                if name in part:
                    raise OverlapError(
                        f"Column {name!r} is in both '{part[name]}' and '{parameter}' of DesignedSwap. "
                        "A column can be swapped, kept the same, kept different or say who takes no part: one of these."
                    )
                part[name] = parameter
        grouped = [name for group in self.together for name in group]
        if len(set(grouped)) != len(grouped):
            raise ParameterError("A column is in two sets of 'together' of DesignedSwap. Name it in one.")
        for name in grouped if self.swap else ():
            if name not in self.swap:
                raise ParameterError(f"'together' of DesignedSwap names {name!r}, which is not a swap variable.")


SPOILT = BUDGET + 1
REASONS = {
    NOT_CHOSEN: "not chosen",
    NO_NEIGHBOUR: "no neighbouring cell can give or take a record and stay large enough",
    NO_PARTNER: "no records can move the other way",
    TOO_DEAR: "dearer than the price",
    BUDGET: "no pairs left",
    SPOILT: "treated, and undone for the sake of a cell of another table",
}
_NEAR = 3
"""Cells of n to n + 2 records are looked at: so many sizes."""


def facts(problem: DesignedProblem, drawn: Drawn) -> dict[str, object]:
    """Account for a draw, in counts only."""
    f, g = _counts(drawn)
    n = problem.task.small
    status = np.bincount(_outcome(problem, drawn), minlength=max(REASONS) + 1)
    carried = [
        name
        for mover, columns in zip(problem.task.movers, problem.task.columns, strict=True)
        for name in columns
        if name not in mover
    ]
    return {
        "small_cells": len(problem.small),
        "camouflaged": int(status[CAMOUFLAGED]),
        "emptied": int(status[EMPTIED]),
        "left": {reason: int(status[code]) for code, reason in REASONS.items() if status[code]},
        "exposed_before": int(f[f < n].sum()),
        "exposed_after": int(np.minimum(f, g)[(g > 0) & (g < n)].sum()),
        "by_size": [of_size(f, g, size, n) for size in range(1, n)],
        "just_large": [just_large(f, g, size) for size in range(n, n + _NEAR)],
        "design_loss": float(kernels.loss_now(drawn.state.lattice)),
        "rounds": drawn.rounds,
        **carried_fact(carried),
        **problem.rules,
    }


def _outcome(problem: DesignedProblem, drawn: Drawn) -> Ints:
    """Return the outcome of each small cell: with several tables, moves for one cell may also fill or empty another."""
    held = drawn.state.lattice.cells["count"][problem.small]
    status = drawn.state.treatments.small_cells["status"]
    left = np.where(np.isin(status, (CAMOUFLAGED, EMPTIED)), SPOILT, status)
    return np.where(held >= problem.task.small, CAMOUFLAGED, np.where(held == 0, EMPTIED, left))


def _counts(drawn: Drawn) -> tuple[Ints, Ints]:
    """Return the records of the cells of all protected tables, before and after."""
    lattice = drawn.state.lattice
    protected = lattice.cells[lattice.tables["protected"][lattice.cells["table"]] > 0]
    return protected["before"], protected["count"]


def of_size(f: Ints, g: Ints, size: int, n: int) -> dict[str, object]:
    """Return the outcome of the cells that held a number of records."""
    held, after = f == size, g[f == size]
    small = (after > 0) & (after < n)
    return {
        "records": size,
        "cells": int(held.sum()),
        "camouflaged": int((after >= n).sum()),
        "emptied": int((after == 0).sum()),
        "left": int(small.sum()),
        "exposed": int(np.minimum(size, after)[small].sum()),
    }


def just_large(f: Ints, g: Ints, size: int) -> dict[str, object]:
    """Tell how many of the cells that hold so many records in the release are what they seem to be."""
    shown = g == size
    records = size * int(shown.sum())
    genuine = int(np.minimum(f, g)[shown].sum())
    return {
        "records": size,
        "cells_before": int((f == size).sum()),
        "cells_after": int(shown.sum()),
        "unchanged": int((shown & (f == size)).sum()),
        "genuine_share": genuine / records if records else None,
    }


ROUNDS, FEW_ROUNDS, MANY_CELLS = 6, 1, 50_000
"""How often, at most, every treated cell is treated anew; fewer times where small cells are many."""
TREATMENTS = {"cheaper": CHEAPER, "camouflage": CAMOUFLAGE_ONLY, "empty": EMPTY_ONLY, "either": EITHER}
_UNBOUNDED = 1 << 40


@dataclass(frozen=True, eq=False)
class Drawn:
    """The state at the end of a draw, and the rounds of improvement."""

    state: State
    rounds: int


class DesignedDraw:
    """A designed swap prepared for one file."""

    def __init__(self, recipe: DesignedPairs, data: Data, problem: DesignedProblem, never: NDArray[np.bool_]) -> None:
        self._recipe, self._data, self._problem = recipe, data, problem
        rows = np.flatnonzero(~never)
        order, self._start = sorted_by(problem.base[rows], len(problem.state.lattice.bases))
        self._order = rows[order]

    def draw(self, stream: Stream) -> Plan:
        """Draw the plan of a stream."""
        drawn = draw_until_enough(lambda words: self._treat(words, stream), stream.sub("design"), self._guess())
        moves = self._moves(drawn, stream)
        details = Details(facts(self._problem, drawn))
        return Plan(moves, data=self._data, asked=self._recipe.max_pairs, details=details)

    def _guess(self) -> int:
        """Guess how many words a draw takes."""
        steps = self._recipe.n * len(self._problem.small)
        return 4096 + 4 * steps * (1 + (ROUNDS if self._recipe.improve else 0))

    def _treat(self, words: Words, stream: Stream) -> Drawn | None:
        """Treat the small cells with these words; None when they run out."""
        recipe, state, dice = self._recipe, kernels.fresh(self._problem.state), kernels.dice(words)
        treatment = TREATMENTS[recipe.treatment]
        chosen = self._chosen(state, treatment, stream, dice)
        price = inf if recipe.price is None else recipe.price / self._data.n
        most = _UNBOUNDED if recipe.max_pairs is None else recipe.max_pairs
        kernels.treat_all(chosen, treatment, price, most, state, dice)
        rounds = 0
        if recipe.improve and not dice.cursor[1]:
            most_rounds = ROUNDS if len(self._problem.small) <= MANY_CELLS else FEW_ROUNDS
            rounds = kernels.improve(most_rounds, recipe.share == 1, treatment, price, most, state, dice)
        return None if dice.cursor[1] else Drawn(state, rounds)

    def _chosen(self, state: State, treatment: int, stream: Stream, dice: kernels.Dice) -> Ints:
        """Return the small cells to treat: the dearest first, because they have the fewest ways."""
        size = len(self._problem.small)
        price = np.empty(size)
        kernels.price_cells(price, treatment, without_spread(state), dice)
        order = random_order(size, stream.sub("cells"))
        order = order[np.isfinite(price[order])]
        if self._recipe.choose == "cheapest":
            order = order[np.argsort(price[order], kind="stable")]
        chosen = order[: ceil(self._recipe.share * size - 1e-9)]
        return chosen[np.argsort(-price[chosen], kind="stable")]

    def _moves(self, drawn: Drawn, stream: Stream) -> list[Move]:
        """Pair the moves that balance each other and draw the records that make them."""
        mover, one, other = self._paired(drawn.state, stream)
        bases = np.concatenate((one, other))

        def attempt(words: Words) -> Ints | None:
            dice, places = kernels.dice(words), np.empty(len(bases), dtype=np.int64)
            kernels.draw_places(bases, self._start, np.diff(self._start), places, dice)
            return None if dice.cursor[1] else places

        places = draw_until_enough(attempt, stream.sub("records"), 2 * len(bases) + 64)
        pairs: Pairs = self._order[places].reshape(2, -1).T
        return [
            Move.exchange(columns, np.ascontiguousarray(pairs[mover == m]))
            for m, columns in enumerate(self._problem.task.columns)
        ]

    def _paired(self, state: State, stream: Stream) -> tuple[Ints, Ints, Ints]:
        """Return mover and base cells of each pair: at random among the moves that balance each other."""
        lattice, fillers, treatments = state
        needed = _needed(treatments)
        if len(fillers.different):
            return needed["mover"], needed["base"], needed["partner"]
        moves = np.stack([needed["mover"], needed["base"], needed["to"]], axis=1)
        moves = np.concatenate((moves, _fillers(fillers)))
        mover, base, to = moves[random_order(len(moves), stream.sub("partners"))].T
        start = lattice.base_levels["level"][mover, base].astype(np.int64)
        klass = lattice.bases["class_"][base]
        down, low, high = start > to, np.minimum(start, to), np.maximum(start, to)
        order = np.lexsort((down, high, low, klass, mover))
        key, base, down = np.stack((mover, klass, low, high))[:, order], base[order], down[order]
        key, one, other = key[:, ~down], base[~down], base[down]
        kept = _without_returns(self._problem.rest, key[0], key, one, other)
        gone = np.concatenate((one[~kept], other[~kept]))
        back = np.concatenate((key[3, ~kept], key[2, ~kept]))
        kernels.take_back(np.tile(key[0, ~kept], 2), gone, back, lattice)
        return key[0, kept], one[kept], other[kept]


def without_spread(state: State) -> State:
    """Return the state (not a copy) with the cheapest way taken always, as prices are found."""
    return state._replace(treatments=state.treatments._replace(spread=0.0))


def _needed(treatments: Treatments) -> Rows:
    """List the moves made for small cells."""
    made, most = treatments.small_cells["made"], treatments.moves.shape[1]
    return treatments.moves[np.arange(most)[None, :] < made[:, None]]


def _fillers(fillers: Fillers) -> Ints:
    """List the fillers in use: mover, base cell, level."""
    blocks, slots, newest = fillers.blocks, fillers.slots, fillers.buckets["newest"].copy()
    listed: list[Ints] = [np.empty((0, 3), dtype=np.int64)]
    bucket = np.flatnonzero(newest >= 0)
    while len(bucket):
        block = blocks[np.searchsorted(blocks["buckets_to"], bucket, side="right")]
        mover = block["key"] // (fillers.classes * fillers.levels)
        filler = slots[newest[bucket]]
        listed.append(np.stack((mover, filler["base"], bucket - block["buckets_from"]), axis=1))
        newest[bucket] = filler["older"]
        bucket = bucket[newest[bucket] >= 0]
    return np.concatenate(listed)


def _without_returns(rest: Ints, mover: Ints, key: Ints, one: Ints, other: Ints) -> NDArray[np.bool_]:
    """Repair pairs whose records would only change places between two cells; return which pairs do more than that.

    Partners are exchanged with another pair of the same levels.
    """
    first = np.flatnonzero(np.concatenate(([True], (np.diff(key, axis=1) != 0).any(axis=0)))[: len(one)])
    for i in np.flatnonzero(rest[mover, one] == rest[mover, other]):
        m, group = mover[i], int(np.searchsorted(first, i, side="right"))
        for j in range(first[group - 1], first[group] if group < len(first) else len(one)):
            if rest[m, one[i]] != rest[m, other[j]] and rest[m, one[j]] != rest[m, other[i]]:
                other[i], other[j] = other[j], other[i]
                break
    return rest[mover, one] != rest[mover, other]
