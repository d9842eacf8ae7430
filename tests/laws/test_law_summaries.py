"""Law 6, and the exact half of law 4: counts are whole numbers that add up over any partition of the rows."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles
import quadrille as qd
from quadrille.data import DENSE_LIMIT, Data
from quadrille.delta import Delta
from quadrille.errors import MismatchError
from quadrille.expressions import Where
from quadrille.summary import Table, Tally, Transition
from strategies import Case, cases, coded, column, file_of, files, numbers, restrictions, rows_of


def content(tally: Tally) -> list[tuple[int, int, int]]:
    """Occupied cells with count and ticks."""
    cells = tally.occupied()
    count, ticks = tally.at(cells)
    ticks = np.zeros_like(count) if ticks is None else ticks
    return list(zip(cells.tolist(), count.tolist(), ticks.tolist(), strict=True))


def some(draw: st.DataObject, data: Data, most: int = 8) -> tuple[str, ...]:
    return tuple(draw.draw(st.lists(st.sampled_from(coded(data)), min_size=1, max_size=most, unique=True)))


def parted(draw: st.DataObject, data: Data) -> list[np.ndarray]:
    """A partition of the rows into one to four parts."""
    part = np.array(draw.draw(st.lists(st.integers(0, 3), min_size=data.n, max_size=data.n)))
    return [np.flatnonzero(part == i) for i in range(4) if (part == i).any()]


def merged(tallies: list[Tally]) -> Tally:
    whole = tallies[0]
    for tally in tallies[1:]:
        whole = whole.merge(tally)
    return whole


def perhaps(draw: st.DataObject, data: Data) -> Where | None:
    return Where.parse(draw.draw(restrictions(data)).text) if draw.draw(st.booleans()) else None


@given(files(), st.data())
def test_the_summaries_of_any_partition_merge_to_the_whole(data: Data, draw: st.DataObject) -> None:
    summary = Table(some(draw, data), perhaps(draw, data))
    parts = parted(draw, data)
    whole = merged([summary.of(data.take(rows)) for rows in parts])
    assert content(whole) == content(summary.of(data))
    assert whole.total == summary.of(data).total
    backwards = merged([summary.of(data.take(rows)) for rows in reversed(parts)])
    assert content(backwards) == content(whole)


@given(cases(), st.data())
def test_transitions_merge_like_tables(case: Case, draw: st.DataObject) -> None:
    after = case.plan.apply(case.data)
    summary = Transition(some(draw, case.data, 3))
    parts = [summary.of(after.take(rows), case.data.take(rows)) for rows in parted(draw, case.data)]
    assert content(merged(parts)) == content(summary.of(after, case.data))


def test_weighted_summaries_of_parts_whose_weights_need_different_ticks_merge() -> None:
    data = file_of([1.5, 2.0, 0.25], A=[0, 1, 1])
    whole = merged([Table(("A",)).of(rows_of(data, [i])) for i in range(3)])
    assert content(whole) == content(Table(("A",)).of(data))


@given(files(weights=(None, "integers", "decimals", "zeros")), st.data())
def test_counts_and_weighted_counts_are_exact(data: Data, draw: st.DataObject) -> None:
    names = some(draw, data)
    tally = Table(names).of(data)
    key = {
        record: int(cell) for record, cell in zip(oracles.records(data, names), Table(names).cells(data), strict=True)
    }
    counts, weights = oracles.counts(data, names), oracles.table(data, names)
    assert content(tally) == sorted(
        (key[c], counts[c], int(weights[c] * Fraction(tally.per_unit)) if data.weight else 0) for c in counts
    )


@given(cases(), st.data())
def test_the_tally_after_a_change_is_that_of_the_swapped_file_to_the_tick(case: Case, draw: st.DataObject) -> None:
    after = case.plan.apply(case.data)
    where = perhaps(draw, case.data)
    names = some(draw, case.data)
    table = Table(names, where)
    before = table.of(case.data)
    change = before.change(Delta(case.data, case.plan))
    assert content(before.after(change)) == content(table.of(after))
    assert (change.total_old, change.total_new) == (before.total, table.of(after).total)
    transition = Transition(names[:2], where)
    moved = transition.of(case.data).change(Delta(case.data, case.plan))
    assert content(transition.of(case.data).after(moved)) == content(transition.of(after, case.data))


@given(cases(), st.data())
def test_a_change_lists_only_cells_that_change_in_ascending_order(case: Case, draw: st.DataObject) -> None:
    change = Table(some(draw, case.data)).of(case.data).change(Delta(case.data, case.plan))
    assert (np.diff(change.cells) > 0).all()
    assert ((change.old_count != change.new_count) | (change.old != change.new)).all()
    assert len(change.cells) <= 2 * sum(len(move.rows) for move in case.plan.moves)


def sparse_file(variables: int, categories: int, n: int, *, weighted: bool) -> Data:
    """Many variables, far more possible cells than records; half of the records repeat others."""
    random = np.random.default_rng(variables)
    codes = random.integers(0, categories, (variables, n))
    codes[:, n // 2 :] = codes[:, : n - n // 2]
    columns = [column(f"V{i}", row, categories) for i, row in enumerate(codes)]
    return Data([*columns, numbers("w", random.integers(1, 9, n), role="weight")] if weighted else columns)


SPARSE = pytest.mark.parametrize(
    ("variables", "categories", "exact"), [(20, 6, True), (70, 3, False), (40, 3, False)], ids=["6^20", "3^70", "3^40"]
)


@SPARSE
@pytest.mark.parametrize("weighted", [False, True])
def test_tables_far_beyond_memory_count_merge_and_change_exactly(
    variables: int, categories: int, exact: bool, weighted: bool
) -> None:
    data = sparse_file(variables, categories, 600, weighted=weighted)
    table = Table(data.keys)
    before = table.of(data)
    assert before.cross.possible == categories**variables
    assert before.cross.exact == exact
    assert before.cross.possible > 10**15 > DENSE_LIMIT
    assert len(before.count) == len(oracles.counts(data, data.keys))
    parts = np.array_split(np.random.default_rng(0).permutation(data.n), 7)
    assert content(merged([table.of(rows_of(data, rows)) for rows in parts])) == content(before)
    plan = qd.RandomSwap(["V1", "V7"], pairs=100, order="one-by-one", seed=4).plan(data)
    after = plan.apply(data)
    assert content(before.after(before.change(Delta(data, plan)))) == content(table.of(after))
    scores, files = (
        qd.score(data, plan, list(oracles.TABLE_MEASURES)),
        qd.score(data, after, list(oracles.TABLE_MEASURES)),
    )
    for name, formula in oracles.TABLE_MEASURES.items():
        truth = formula(oracles.table(data, data.keys), oracles.table(after, data.keys))
        assert oracles.close(scores[name], truth, 10)
        assert oracles.close(files[name], truth, 10)


def test_tallies_of_different_tables_do_not_merge() -> None:
    data = sparse_file(3, 4, 50, weighted=False)
    with pytest.raises(MismatchError):
        Table(("V0",)).of(data).merge(Table(("V1",)).of(data))


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=30).filter(any), st.integers(0, 6))
def test_decimal_weights_become_ticks_without_loss(whole: list[int], decimals: int) -> None:
    data = Data([numbers("w", np.array(whole) / 10**decimals, role="weight")])
    ticks = data.ticks
    assert ticks.exact
    assert [Fraction(int(t)) / Fraction(ticks.per_unit) for t in ticks.values] == oracles.weights(data)


@given(st.lists(st.floats(0, 1e300), min_size=1, max_size=30).filter(lambda w: sum(w) > 1e-200))
def test_any_weights_become_ticks_to_the_last_bits_of_the_total(weights: list[float]) -> None:
    ticks = Data([numbers("w", weights, role="weight")]).ticks
    total = sum(map(Fraction, weights))
    assert 0 < int(ticks.values.sum()) < 2**63
    for weight, tick in zip(weights, ticks.values, strict=True):
        assert abs(Fraction(int(tick)) / Fraction(ticks.per_unit) - Fraction(weight)) <= total / 2**52
