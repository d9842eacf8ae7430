"""Public batteries: what every recipe and every measure must obey, on any data you give them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from quadrille.codebook import Variable
from quadrille.data import Column, Data, Rows, unequal
from quadrille.errors import QuadrilleError
from quadrille.expressions import Rules
from quadrille.measure.base import NOTHING_CHANGED, Measure
from quadrille.measure.moments import Moments
from quadrille.plan import Move, Plan
from quadrille.randomness import is_secret
from quadrille.recipe import Recipe
from quadrille.score.evaluator import Evaluator, Scores
from quadrille.summary import Table

_PARTS = 3
_TOLERANCE = 1e-12


class LawError(QuadrilleError):
    """A recipe or a measure broke a law of the battery."""


def check_recipe(recipe: Recipe, data: Data) -> Plan:
    """Check that a recipe obeys the laws on these data; return its plan or raise `LawError`.

    The plan is the same whenever and wherever it is drawn, also from the recipe's JSON; no record is in two pairs of a
    move; a column is in one move at most; margins, the joint of the columns moved together and the joint of
    the others are exactly as before, weighted on the side where the weight is; the inverse restores the file;
    constraints hold in every pair. Where whole units move, this holds for the table of units, the members of a unit
    agree after as before, and records are counted as before when the partners are of one size.

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.cps8d().take(range(0, 48842, 100))
    >>> qd.testing.check_recipe(qd.RandomSwap(["Edu"], pairs=5, seed=1), data)
    Plan(10 records, columns Edu)
    """
    plan = recipe.plan(data)
    _law(Recipe.from_json(recipe.to_json()) == recipe, "its JSON does not give the same recipe back")
    _law(
        not is_secret(seed := recipe.parameters()["seed"]) or seed not in repr(recipe), "its text shows the secret seed"
    )
    _law(recipe.prepare(data).draw(recipe.stream()) == plan, "a fresh preparation draws another plan")
    design = Recipe.from_json(recipe.design_json())
    _law(design.prepare(data).draw(design.stream_of(seed)) == plan, "a search, by design and seed, draws another plan")
    _law(recipe.plan(data) == plan, "a second draw gives another plan")
    _law(len(set(plan.columns)) == len(plan.columns), "a column is in two moves")
    fixed = [name for name in plan.columns if data.codebook[name].role == "id"]
    _law(not fixed, "an identifier moves")
    _law(data.weight not in plan.columns or "weight" in recipe.params(), "the weight moves, and no parameter says so")
    after = plan.apply(data)
    for move in plan.moves:
        _check_move(move, data, after)
        _check_constraints(recipe, move, data)
        still = tuple(name for name in data.keys if name not in plan.columns)
        was, now = data, after
        if (units := move.units) is not None and not _same_sizes(move):
            was, now = data.take(units.first), after.take(units.first)
        for kept in ((name,) for name in move.columns):
            _law(_same_table(was, now, kept), f"the margin of {kept[0]!r} changed")
        with_weight = data.weight in move.columns
        joint = _same_table(was, now, move.columns, weighted=with_weight)
        _law(joint, f"the joint of {', '.join(move.columns)} changed")
        weight_stays = data.weight is not None and data.weight not in plan.columns
        _law(
            not still or _same_table(data, after, still, weighted=weight_stays),
            "the joint of the columns not moved changed",
        )
    rules = Rules.of(data, recipe.parameters().get("rules", ()), recipe.method_name)
    _law(not any(rules.created(plan)), "a record breaks a rule that it did not break before")
    _law(plan.after == after.fingerprint, "the fingerprint after is not that of the swapped data")
    _law(plan.inverse().apply(after) == data, "the inverse does not restore the data")
    return plan


def check_measure(kind: str | Measure, data: Data, plan: Plan) -> Scores:
    """Check that a measure obeys the laws on these data and this plan; return its scores or raise `LawError`.

    The score from the change equals the score recomputed from the two files; the order of rows does not matter; no
    change gives 0 and says so; summaries of parts add up to the whole; weight 2 counts as the record twice.

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.cps8d().take(range(0, 48842, 100))
    >>> plan = qd.RandomSwap(["Edu"], pairs=5, seed=1).plan(data)
    >>> list(qd.testing.check_measure("hellinger", data, plan))
    ['hellinger']
    """
    address = kind if isinstance(kind, str) else kind.name
    evaluator = Evaluator(data, [kind])
    scores = evaluator.score(plan)
    scale = scores.results[address][1].scale
    _check_range(address, scores)
    rows = np.arange(data.n)
    after = plan.apply(data)
    again = _from_files(kind, data, after, plan, rows)
    _law(_close(scores[address], again, scale), "the change and the two files give different scores")
    turned = _from_files(kind, data, after, plan, rows[::-1].copy())
    _law(_close(scores[address], turned, scale), "the order of rows changes the score")
    nothing = evaluator.score(Plan([], data=data))
    fine = nothing[address] is None or (nothing[address] == 0 and nothing.note(address) == NOTHING_CHANGED)
    _law(fine or scores.results[address][0].side == "risk", "no change is not scored 0")
    if scores.results[address][0].weight_linear and data.weight is None:
        times = 1 + rows % 2
        repeated = _from_files(kind, data, after, plan, np.repeat(rows, times))
        weighted = _from_files(kind, _weighted(data, times), _weighted(after, times), plan, rows)
        _law(_close(repeated, weighted, scale), "weight 2 does not count as the record twice")
    _check_merge(data)
    for summary in evaluator.summaries(plan.columns):
        if isinstance(summary, Moments):
            _check_merged_moments(summary, data)
    return scores


def _from_files(kind: str | Measure, data: Data, after: Data, plan: Plan, rows: Rows) -> float | None:
    """Score two files, reduced to some rows, with no knowledge of the plan but who took part and what moved."""
    evaluator = Evaluator(data.take(rows), [kind])
    scores = evaluator.compare(after.take(rows), np.isin(rows, plan.rows), moved=plan.columns)
    return next(iter(scores.values()))


def _weighted(data: Data, times: Rows) -> Data:
    weight = Column(Variable("(weight)", "numeric", role="weight"), times.astype(np.float64), "Float64")
    return Data([*(data[name] for name in data.columns), weight])


def _law(holds: bool, broken: str) -> None:
    if not holds:
        raise LawError(f"Broken law: {broken}.")


def _check_move(move: Move, data: Data, after: Data) -> None:
    _law(bool((move.rows != move.source).all()), "a record receives its own values")
    _law(len(np.unique(move.rows)) == len(move.rows), "a record is in two pairs of one move")
    receivers, givers = np.sort(move.given[0]), np.sort(move.given[1])
    _law(np.array_equal(givers, receivers), "the move is no permutation of its rows")
    inside = not len(move.rows) or (move.rows[0] >= 0 and move.rows[-1] < data.n)
    _law(bool(inside), "the move names rows outside the file")
    if move.units is not None:
        torn = [name for name in move.columns if move.units.mixed(after[name].values).any()]
        _law(not torn, "the members of a unit no longer agree on what moved with it")


def _same_sizes(move: Move) -> bool:
    assert move.units is not None
    sizes = move.units.sizes
    return bool((sizes[move.given[0]] == sizes[move.given[1]]).all())


def _check_constraints(recipe: Recipe, move: Move, data: Data) -> None:
    parameters = recipe.parameters()
    rows, source = move.expanded

    def agree(names: Sequence[str]) -> list[np.ndarray]:
        return [~unequal(data[name].values[rows], data[name].values[source]) for name in names]

    for equal in agree(parameters.get("same", ())):
        _law(bool(equal.all()), "a pair differs on a `same` column")
    for equal in agree(parameters.get("different", ())):
        _law(not equal.any(), "a pair agrees on a `different` column")
    for equal in agree(parameters.get("within", ())):
        _law(bool(equal.all()), "a record receives values from outside its class of `within`")
    for equal in agree([parameters["groups"]] if parameters.get("groups") else ()):
        _law(not equal.any(), "a record receives values from its own group of `groups`")
    # Columns that are carried along need not differ.
    swapped = agree([name for name in move.columns if name in parameters.get("swap", move.columns)])
    if parameters.get("differ") == "all":
        _law(not any(equal.any() for equal in swapped), "a pair agrees on a swap variable")
    if parameters.get("differ") == "any":
        _law(not np.logical_and.reduce(swapped).any(), "a pair agrees on every swap variable")


def _check_range(address: str, scores: Scores) -> None:
    kind, result = scores.results[address]
    low, high = kind.range
    inside = result.value is None or low - _TOLERANCE <= result.value <= high + _TOLERANCE
    _law(inside, f"the score is outside [{low:g}, {high:g}]")
    _law(result.value is not None or bool(result.note), "an undefined score does not say why")


def _check_merge(data: Data) -> None:
    """Tally three parts of the rows and add them up."""
    table = Table(data.keys)
    whole = table.of(data)
    if data.n < _PARTS:
        return
    parts = [table.of(data.take(np.arange(i, data.n, _PARTS))) for i in range(_PARTS)]
    merged = parts[0].merge(parts[1]).merge(parts[2])
    cells = whole.occupied()
    equal = np.array_equal(merged.occupied(), cells) and np.array_equal(merged.at(cells)[0], whole.at(cells)[0])
    _law(equal, "the summaries of parts do not add up to the whole")


def _check_merged_moments(summary: Moments, data: Data) -> None:
    """Add up the moments of three parts of the rows."""
    if data.n < _PARTS:
        return
    parts = [summary.of(data.take(np.arange(i, data.n, _PARTS))) for i in range(_PARTS)]
    merged = parts[0].merge(parts[1]).merge(parts[2])
    whole = summary.of(data)
    beyond = whole.out_of_range or merged.out_of_range  # no score rests on such sums
    same = beyond or whole.against(merged).nothing_changed
    _law(same, "the moments of parts do not add up to the whole")


def _same_table(before: Data, after: Data, variables: Sequence[str], *, weighted: bool = False) -> bool:
    coded = tuple(name for name in variables if before.codebook[name].coded)
    if len(coded) < len(variables):
        numbers = [name for name in chain(variables) if name not in coded]
        if not all(
            np.array_equal(np.sort(before[n].values), np.sort(after[n].values), equal_nan=True) for n in numbers
        ):
            return False
    if not coded:
        return True
    was, now = Table(coded).of(before), Table(coded).of(after)
    cells = was.occupied()
    (count, ticks), (count_after, ticks_after) = was.at(cells), now.at(cells)
    same = np.array_equal(cells, now.occupied()) and np.array_equal(count, count_after)
    if not weighted or ticks is None or ticks_after is None:
        return same and not weighted
    return same and np.array_equal(ticks, ticks_after)


def _close(one: float | None, other: float | None, scale: float) -> bool:
    if one is None or other is None:
        return one is other
    if one == other:  # also where both are infinite
        return True
    return abs(one - other) <= _TOLERANCE * max(1.0, abs(one), abs(other), scale)


__all__ = ["check_measure", "check_recipe"]
