"""The least loss at a given exposure: against every table with the same margins, and against the full programme."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations, pairwise, product
from math import inf, isnan, sqrt

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import quadrille as qd
from quadrille.errors import InputError, ParameterError, QuadrilleError
from quadrille.theory import Bound, bound_for, least_loss
from quadrille.theory import bound as bounds
from quadrille.theory import bound as certificates
from quadrille.theory.bound import LOSSES, certify, counts_of, total_only

Cell = tuple[int, ...]
Table = frozenset[tuple[Cell, int]]
KINDS = ("hellinger", "total_variation", "chi_square")
POWER = {"hellinger": 2, "total_variation": 1, "chi_square": 1}


def file_of(records: list[Cell]) -> qd.Data:
    columns = {f"v{i}": [f"c{code}" for code in codes] for i, codes in enumerate(zip(*records, strict=True))}
    return qd.from_frame(pl.DataFrame(columns))


def from_counts(counts: list[list[int]]) -> list[Cell]:
    return [(i, j) for i, row in enumerate(counts) for j, count in enumerate(row) for _ in range(count)]


def every_table(records: list[Cell]) -> set[Table]:
    """All tables that exchanges of one variable between two records lead to."""
    start = frozenset(Counter(records).items())
    seen, todo = {start}, [start]
    while todo:
        counts = dict(todo.pop())
        for (a, b), v in product(combinations(counts, 2), range(len(records[0]))):
            one, other = (*a[:v], b[v], *a[v + 1 :]), (*b[:v], a[v], *b[v + 1 :])
            moved = Counter(counts)
            moved.subtract([a, b])
            moved.update([one, other])
            found = frozenset((+moved).items())
            if found not in seen:
                seen.add(found)
                todo.append(found)
    return seen


def exposed_of(before: dict[Cell, int], after: dict[Cell, int], n: int) -> float:
    return sum(min(before.get(cell, 0), g) for cell, g in after.items() if g < n) / sum(before.values())


def loss_of(before: dict[Cell, int], after: dict[Cell, int], loss: str) -> float:
    pairs = [(before.get(cell, 0), after.get(cell, 0)) for cell in {*before, *after}]
    total = sum(before.values())
    if loss == "hellinger":
        return sqrt(sum((sqrt(f / total) - sqrt(g / total)) ** 2 for f, g in pairs) / 2)
    if loss == "total_variation":
        return sum(abs(f - g) for f, g in pairs) / 2 / total
    return sum((g - f) ** 2 / f for f, g in pairs if f)


def at(cell: Cell, part: tuple[int, ...]) -> Cell:
    """Return the cell of a smaller table."""
    return tuple(cell[v] for v in part)


def every_table_with(records: list[Cell], kept: tuple[tuple[int, ...], ...]) -> list[dict[Cell, int]]:
    """Fill the cells one after the other with all that the kept tables have left."""
    cells = list(product(*(sorted(set(codes)) for codes in zip(*records, strict=True))))
    left = Counter((part, at(record, part)) for record in records for part in kept)
    found: list[dict[Cell, int]] = []

    def fill(place: int, table: dict[Cell, int]) -> None:
        if place == len(cells):
            if not any(left.values()):
                found.append(dict(table))
            return
        mine = [(part, at(cells[place], part)) for part in kept]
        for count in range(min(left[each] for each in mine) + 1):
            left.subtract(dict.fromkeys(mine, count))
            fill(place + 1, table | {cells[place]: count} if count else table)
            left.update(dict.fromkeys(mine, count))

    fill(0, {})
    return found


def full_programme(
    records: list[Cell], n: int, exposed: float, loss: str, kept: tuple[tuple[int, ...], ...] | None = None
) -> float | None:
    """Formula (2) of bound.md, written out: every cell, every count, no column left out."""
    tables = kept or tuple((v,) for v in range(len(records[0])))
    before = Counter(records)
    levels = [sorted(set(codes)) for codes in zip(*records, strict=True)]
    columns = [(cell, g) for cell in product(*levels) for g in range(len(records) + 1)]
    cells = list(product(*levels))
    margins = [(part, cell) for part in tables for cell in product(*(levels[v] for v in part))]
    whole = [[float(cell == other) for cell, _ in columns] for other in cells]
    sums = [[float(g) * (at(cell, part) == where) for cell, g in columns] for part, where in margins]
    held = [float(sum(at(record, part) == where for record in records)) for part, where in margins]
    cost = {
        "hellinger": lambda f, g: (sqrt(f) - sqrt(g)) ** 2 / 2 / len(records),
        "total_variation": lambda f, g: abs(f - g) / 2 / len(records),
        "chi_square": lambda f, g: (g - f) ** 2 / f if f else 0.0,
    }[loss]
    # A cell has no more records than its smallest margin.
    most = {cell: min(held[margins.index((part, at(cell, part)))] for part in tables) for cell in cells}
    found = linprog(
        [cost(before[cell], g) for cell, g in columns],
        A_ub=[[float(min(before[cell], g)) if g < n else 0.0 for cell, g in columns]],
        b_ub=[exposed * len(records)],
        A_eq=whole + sums,
        b_eq=[1.0] * len(cells) + held,
        bounds=[(0, None if g <= most[cell] else 0) for cell, g in columns],
    )
    return None if found.status == 2 else max(0.0, found.fun) ** (1 / POWER[loss])


records_of = st.integers(2, 3).flatmap(
    lambda variables: st.lists(
        st.tuples(*[st.integers(0, 2 if variables == 2 else 1)] * variables), min_size=2, max_size=7
    )
)


@given(records_of, st.integers(2, 4), st.sampled_from(KINDS), st.floats(0, 1), st.booleans(), st.booleans())
def test_the_bound_is_below_every_table_with_the_same_margins(
    records: list[Cell], n: int, loss: str, share: float, listed: bool, total: bool
) -> None:
    before = Counter(records)
    asked = share * exposed_of(before, before, n)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(certificates, "MOST_EMPTY", 1 << 14 if listed else 0)
        bound = least_loss(file_of(records), asked, n=n, loss=loss, margins="total" if total else "1-way")
    for table in every_table(records):
        after = dict(table)
        assert loss_of(before, after, loss) >= bound.at(exposed_of(before, after, n)) - 1e-9


three_of = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 2)), min_size=3, max_size=9)
KEPT = {
    "2-way": ((0, 1), (0, 2), (1, 2)),
    "v2*v0": ((0, 2), (1,)),
    ("v0*v1", "v1*v2"): ((0, 1), (1, 2)),
    "logit(v0)": ((0, 1), (0, 2), (1, 2)),
}
keeps = st.sampled_from(sorted(KEPT, key=str))


@given(three_of, st.integers(2, 4), st.sampled_from(KINDS), st.floats(0, 1), keeps, st.booleans())
def test_the_bound_is_below_every_table_that_keeps_the_same_tables(
    records: list[Cell], n: int, loss: str, share: float, keep: str | tuple[str, ...], listed: bool
) -> None:
    before = Counter(records)
    asked = share * exposed_of(before, before, n)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(certificates, "MOST_EMPTY", 1 << 14 if listed else 0)
        bound = least_loss(file_of(records), asked, n=n, loss=loss, margins=keep)
    assert bound.kept == tuple(tuple(f"v{v}" for v in part) for part in KEPT[keep])
    tables = every_table_with(records, KEPT[keep])
    assert dict(before) in tables
    for after in tables:
        assert loss_of(before, after, loss) >= bound.at(exposed_of(before, after, n)) - 1e-9


@given(three_of, st.integers(2, 4), st.sampled_from(KINDS), st.floats(0, 1), keeps, st.booleans())
def test_it_is_the_minimum_of_the_full_programme_with_tables_kept(
    records: list[Cell], n: int, loss: str, share: float, keep: str | tuple[str, ...], few: bool
) -> None:
    """Also where empty cells become columns only as they are needed."""
    before = Counter(records)
    asked = share * exposed_of(before, before, n)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(certificates, "_FEW_EMPTY", 1 if few else 1 << 12)
        (point,) = least_loss(file_of(records), asked, n=n, loss=loss, margins=keep).points
    expected = full_programme(records, n, asked, loss, KEPT[keep])
    if point.status == "unreachable":
        assert expected is None or full_programme(records, n, max(0.0, asked - 1e-5), loss, KEPT[keep]) is None
    else:
        assert expected is not None
        assert point.loss is not None
        assert point.loss ** POWER[loss] == pytest.approx(expected ** POWER[loss], rel=2e-4, abs=1e-7)


def test_the_least_of_a_cube_is_found() -> None:
    """With all two-way tables kept only the whole cube can move, by as many records in each corner."""
    before = {cell: 1 if cell == (0, 0, 0) else 40 for cell in product((0, 1), repeat=3)}
    data = file_of([cell for cell, count in before.items() for _ in range(count)])
    moved = [{cell: f + by * (-1) ** sum(cell) for cell, f in before.items()} for by in range(-1, 41)]
    least = min(loss_of(before, after, "hellinger") for after in moved if exposed_of(before, after, 3) == 0)
    bound = least_loss(data, 0.0, margins="2-way")
    assert bound.points[0].loss == pytest.approx(least, rel=1e-4)
    assert bound.points[0].status == "bound"


@pytest.mark.parametrize("loss", ["chi_square", "hellinger", "total_variation"])
def test_a_value_below_the_least_of_all_tables_is_called_a_bound(loss: str) -> None:
    # Every cell has a record. The programme mixes counts within a cell; a table of whole numbers cannot.
    records = from_counts([[5, 4], [3, 2]])
    data = file_of(records)
    before = Counter(records)
    bound = least_loss(data, [0.04, 2 / 14], table=data.columns, n=3, margins="total", loss=loss)
    least = min(
        loss_of(before, after, loss)
        for g in product(range(15), repeat=3)
        if sum(g) <= 14
        if exposed_of(before, after := Counter(dict(zip(sorted(before), (*g, 14 - sum(g)), strict=True))), 3) <= 0.04
    )
    near, here = bound.points
    assert near.loss is not None and near.loss < 0.95 * least and near.status == "bound"
    assert (here.loss, here.status) == (0.0, "optimal")


def test_what_is_kept_beyond_can_only_cost(cps8d: qd.Data) -> None:
    """Loss at exposed <= .002 of a table of five variables: each set of kept tables contains the one before."""
    table = ("Age", "Edu", "Sex", "Race", "MS")
    keeps = ["total", "1-way", "Age*Edu", ["Age*Edu", "2-way"], ["2-way", "Age*Edu*Sex"], 3, "4-way"]
    start = least_loss(cps8d, 0.0, table=table, margins="total").exposed
    losses = [float(least_loss(cps8d, start / 3, table=table, margins=keep).at(start / 3)) for keep in keeps]
    assert all(more >= less * (1 - 1e-4) for less, more in pairwise(losses))
    assert losses[-1] > 1.1 * losses[1]


def test_what_does_not_move_is_a_table_that_is_kept() -> None:
    data = file_of([(0, 0, 1), (0, 1, 1), (1, 0, 0), (1, 1, 2), (1, 1, 1), (0, 0, 0)] * 2 + [(0, 0, 2)])
    for margins, same in (("1-way", "v0*v2"), ("v0*v1", ["v0*v1", "v0*v2"])):
        moved = least_loss(data, 0.01, margins=margins, swap=["v1"])
        assert moved.kept == least_loss(data, 0.01, margins=same).kept
        assert moved.points == least_loss(data, 0.01, margins=same).points
    assert least_loss(data, 0.01, swap=("v0", "v1", "v2")).points == least_loss(data, 0.01).points


def test_the_bound_of_a_recipe_holds_what_it_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    records = [(0, 0, 1, 0), (0, 1, 1, 0), (1, 0, 0, 0), (1, 1, 2, 1), (1, 1, 1, 1), (0, 0, 0, 1)]
    data = file_of(records * 2 + [(0, 0, 2, 0)])
    assert bound_for(None, data, 0.01) == least_loss(data, 0.01)
    assert bound_for(None, data, 0.01, n=2).n == 2
    assert bound_for(qd.DesignedSwap(), data, 0.01) == least_loss(data, 0.01, margins="2-way")
    moved = qd.DesignedSwap(["v1"], n=2, keep="1-way")
    assert bound_for(moved, data, 0.01, loss="total_variation") == least_loss(
        data, 0.01, n=2, loss="total_variation", swap=["v1"]
    )
    together = qd.DesignedSwap(together=[["v0", "v1"]], keep="1-way")
    assert bound_for(together, data, 0.01).kept == (("v0", "v1"), ("v2",), ("v3",))
    together = qd.DesignedSwap(together=[["v0", "v1"]])
    assert bound_for(together, data, 0.01).kept == (("v0", "v1", "v2"), ("v0", "v1", "v3"), ("v2", "v3"))
    part = bound_for(qd.DesignedSwap(tables=[["v0", "v1", "v2"]], keep="v2*v3"), data, 0.01)
    assert (part.table, part.kept) == (("v0", "v1", "v2"), (("v0",), ("v1",), ("v2",)))
    with pytest.raises(ParameterError, match=r"'table' parameter of bound_for keeps the table of all its variables"):
        bound_for(qd.DesignedSwap(), data, 0.01, table="v0*v1")
    monkeypatch.setattr(certificates, "FEW_MARGINS", 9)
    assert bound_for(qd.DesignedSwap(), data, 0.01).margins == "1-way"
    monkeypatch.setattr(certificates, "FEW_CELLS", 3)
    assert bound_for(qd.DesignedSwap(), data, 0.01) == least_loss(data, 0.01, margins="total")


def test_a_full_table_has_no_empty_cell_to_go_to() -> None:
    """Chi-square counts no record in an empty cell: with the total held, two records must come from large cells."""
    table = [[1, 8], [9, 6]]
    bound = least_loss(file_of(from_counts(table)), 0.0, loss="chi_square", margins="total")
    counts = [1, 8, 9, 6]
    tables = [(a, b, c, 24 - a - b - c) for a, b, c in product(range(25), repeat=3) if a + b + c <= 24]
    least = min(
        sum((g - f) ** 2 / f for f, g in zip(counts, table, strict=True))
        for table in tables
        if not any(0 < g < 3 for g in table)
    )
    assert 0.9 * least < bound.points[0].loss <= least  # type: ignore[operator]
    assert least_loss(file_of(from_counts([[1, 8], [9, 0]])), 0.0, loss="chi_square", margins="total").at(0.0) <= least


weights = st.lists(st.floats(-2, 2), min_size=9, max_size=9)


held = st.sampled_from(["each", "each, empty cells not listed", "total"])


@given(records_of, st.integers(2, 4), st.sampled_from(KINDS), st.floats(0, 50), weights, held)
def test_any_price_and_any_multipliers_prove_a_true_inequality(
    records: list[Cell], n: int, loss: str, price: float, weights: list[float], held: str
) -> None:
    data = file_of(records)
    counts = total_only(data, data.keys) if held == "total" else counts_of(data, data.keys)
    if held != "each":
        counts = replace(counts, empty=None)
    line, _ = certify(counts, LOSSES[loss], n, price, np.array(weights[: counts.starts[-1]]))
    before = Counter(records)
    for table in every_table(records):
        after = dict(table)
        assert loss_of(before, after, loss) ** POWER[loss] >= line.at(exposed_of(before, after, n)) - 1e-12


@pytest.mark.parametrize("listed", [True, False])
def test_multipliers_that_favour_empty_cells_are_lowered(listed: bool) -> None:
    """Two records in opposite corners can only both move, to the empty corners: then hellinger is 1, exposed 0."""
    data = file_of([(0, 0), (1, 1)])
    counts = counts_of(data, data.keys)
    counts = counts if listed else replace(counts, empty=None)
    for steep in ((1.0, 0.0, 0.0, 1.0), (0.7, 0.2, -0.1, 3.0), (5.0, 5.0, 5.0, 5.0)):
        line, _ = certify(counts, LOSSES["hellinger"], 2, 50.0, np.array(steep))
        assert line.at(0.0) <= 1
        assert line.at(1.0) <= 0
    assert least_loss(data, 0.0, n=2).at(0.0) == pytest.approx(1, abs=1e-4)


large = st.lists(st.lists(st.integers(1, 200), min_size=2, max_size=2), min_size=2, max_size=3)


@given(large, st.integers(2, 6), st.sampled_from(KINDS), st.floats(0, 5), st.lists(st.floats(-0.6, 0.2), min_size=5))
def test_each_cell_is_at_its_minimum_over_all_whole_numbers(
    table: list[list[int]], n: int, loss: str, price: float, weights: list[float]
) -> None:
    """No empty cell, so that the multipliers stay as they are; every count up to the smaller margin is tried."""
    data = file_of(from_counts(table))
    counts = counts_of(data, data.keys)
    line, _ = certify(counts, LOSSES[loss], n, price, np.array(weights[: counts.starts[-1]]))
    total, cells = sum(map(sum, table)), 0.0
    for (i, row), j in product(enumerate(table), range(2)):
        f, s = row[j], weights[i] + weights[len(table) + j]
        g = np.arange(min(sum(row), sum(other[j] for other in table)) + 1)
        term = {
            "hellinger": (np.sqrt(f) - np.sqrt(g)) ** 2 / 2,
            "total_variation": np.abs(f - g) / 2,
            "chi_square": (g - f) ** 2 / f,
        }[loss]
        cells += (term + price * np.where(g < n, np.minimum(f, g), 0) - s * (g - f)).min()
    unit = 1 if loss == "chi_square" else total
    assert line.height == pytest.approx(cells / unit, rel=1e-9, abs=1e-9)


@given(records_of, st.integers(2, 4), st.sampled_from(KINDS), st.floats(0, 1))
def test_it_is_the_minimum_of_the_full_programme(records: list[Cell], n: int, loss: str, share: float) -> None:
    before = Counter(records)
    asked = share * exposed_of(before, before, n)
    bound = least_loss(file_of(records), asked, n=n, loss=loss)
    expected = full_programme(records, n, asked, loss)
    (point,) = bound.points
    if point.status == "unreachable":
        assert point.loss is None
        # The solver of the oracle has a tolerance of its own.
        assert expected is None or full_programme(records, n, max(0.0, asked - 1e-5), loss) is None
    else:
        assert expected is not None
        # Solved to a share of 1e-4 of loss^power.
        assert point.loss is not None
        assert point.loss ** POWER[loss] == pytest.approx(expected ** POWER[loss], rel=2e-4, abs=1e-7)


def test_tight_where_one_table_is_the_best_mixture() -> None:
    """One unique among large cells: two records come in, and no mixture does better."""
    bound = least_loss(file_of(from_counts([[1, 100], [100, 50]])), 0.0)
    best = loss_of(
        {(0, 0): 1, (0, 1): 100, (1, 0): 100, (1, 1): 50}, {(0, 0): 3, (0, 1): 98, (1, 0): 98, (1, 1): 52}, "hellinger"
    )
    assert bound.points[0].loss == pytest.approx(best, rel=1e-4)
    assert bound.points[0].status == "bound"


def test_tight_and_loose_on_four_uniques() -> None:
    """The only other tables are the two diagonals; half way there the mixture costs half, and no table does."""
    data = file_of([(0, 0), (0, 1), (1, 0), (1, 1)])
    bound = least_loss(data, [0.0, 0.5], n=2)
    whole = ((sqrt(2) - 1) ** 2 + 1) / 4
    assert bound.points[0].loss == pytest.approx(sqrt(whole), rel=1e-4)
    assert bound.points[1].loss == pytest.approx(sqrt(whole / 2), rel=1e-4)


def test_unreachable_is_said_and_infinite() -> None:
    """With n = 3 each diagonal leaves two of the four records exposed."""
    bound = least_loss(file_of([(0, 0), (0, 1), (1, 0), (1, 1)]), [0.5, 0.3], n=3)
    assert [point.status for point in bound.points] == ["bound", "unreachable"]
    assert bound.frame()["least_loss"].to_list()[1] is None
    assert bound.at(0.3) == inf
    assert bound.at(0.5) == pytest.approx(sqrt((sqrt(2) - 1) ** 2 + 1) / 2, rel=1e-3)


def test_nothing_need_be_lost_at_the_exposure_of_the_file() -> None:
    data = file_of(from_counts([[1, 5], [7, 2]]))
    bound = least_loss(data, 0.2)
    assert bound.exposed == 0.2
    assert (bound.points[0].loss, bound.points[0].status) == (0.0, "optimal")
    assert least_loss(file_of(from_counts([[4, 5], [7, 6]])), 0).points[0].loss == 0.0
    assert bound.at([0.2, 0.3, 1.0]).tolist() == [0.0, 0.0, 0.0]


def test_in_between_the_best_line_counts_and_gaps_are_ratios() -> None:
    data = file_of(from_counts([[1, 60, 2], [40, 50, 1], [30, 2, 25]]))
    bound = least_loss(data, [0.0, 0.01, 0.02])
    at = np.linspace(0, bound.exposed, 9)
    lines = [[point.certificate.at(each) for each in at] for point in bound.points]
    assert bound.at(at) == pytest.approx(np.sqrt(np.maximum(np.max(lines, axis=0), 0)))
    for each in (0.005, 0.015):
        assert bound.at(each) <= least_loss(data, each).at(each) + 1e-5
    assert bound.gap([0.01, 0.01], [0.2, 2 * bound.at(0.01)]) == pytest.approx([0.2 / bound.at(0.01), 2])
    assert isnan(float(bound.gap(0.5, 0.1)))


def test_the_price_is_the_slope() -> None:
    data = file_of(from_counts([[1, 60, 2], [40, 50, 1], [30, 2, 25]]))
    middle, left, right = 0.0137, 0.0136, 0.0138
    point, low, high = least_loss(data, [middle, left, right]).points
    assert low.loss is not None
    assert high.loss is not None
    assert (low.loss**2 - high.loss**2) / (right - left) == pytest.approx(point.price, rel=0.02)


def test_categories_that_do_not_occur_and_the_order_of_variables_do_not_matter() -> None:
    data = file_of(from_counts([[1, 8], [9, 2], [3, 3], [0, 7]]))
    fewer = data.take(np.flatnonzero(data["v0"].values != 2))
    plain = file_of(from_counts([[1, 8], [9, 2], [0, 7]]))
    assert least_loss(fewer, 0.01).frame().equals(least_loss(plain, 0.01).frame())
    one, other = least_loss(data, 0.02, table="v0 * v1"), least_loss(data, 0.02, table=["v1", "v0"])
    assert one.at(0.02) == pytest.approx(other.at(0.02), rel=1e-4)


def test_effective_swap_rate_is_total_variation() -> None:
    data = file_of(from_counts([[1, 8], [9, 2]]))
    assert least_loss(data, 0.0, loss="effective_swap_rate").at(0.0) == least_loss(
        data, 0.0, loss="total_variation"
    ).at(0.0)


def bad(message: str, error: type[QuadrilleError] = ParameterError, exposed: object = 0.0, **given: object) -> None:
    data = file_of(from_counts([[1, 8], [9, 2]]))
    with pytest.raises(error, match=message):
        least_loss(data, exposed, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("exposed", [-0.01, 0.16, 1.0, float("nan"), inf, "much", None, True, [], [0.1, float("nan")]])
def test_exposures_that_cannot_be(exposed: object) -> None:
    bad(
        "'exposed' parameter of least_loss must be numbers from 0 to 0.15, which the file itself exposes",
        exposed=exposed,
    )


def test_parameters_that_cannot_be() -> None:
    bad("'n' parameter of least_loss must be a whole number of 2 or more. Got 1", n=1)
    bad("'loss' parameter of least_loss must be one of 'hellinger'", loss="deviance")
    bad("no variable 'two' in 'margins' of least_loss", margins="two")
    bad("no column 'v7' in 'table' of least_loss", InputError, table=["v0", "v7"])
    bad("at least two variables", table=["v0"])
    bad("at least two variables", table="v1")
    bad("without repetitions", table=["v0", "v0"])
    bad("'table' parameter of least_loss must be a list", table=7)
    with pytest.raises(InputError, match="least_loss needs Data"):
        least_loss(pl.DataFrame({"a": [1]}), 0.0)  # type: ignore[arg-type]


def test_numbers_and_weights_are_refused() -> None:
    frame = pl.DataFrame({"a": ["x", "y"] * 40, "b": ["u", "v", "v", "u"] * 20, "w": [k + 0.5 for k in range(80)]})
    with pytest.raises(InputError, match="'w' is numeric, and a table needs categories"):
        least_loss(qd.from_frame(frame), 0.0, table=["a", "w"])
    with pytest.raises(InputError, match=r"has the weight 'w'.*bounds losses of counts only"):
        least_loss(qd.from_frame(frame, weight="w"), 0.0)


def test_tables_too_large_are_refused_with_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MOST_CELLS", 3)
    bad('has 4 occupied cells, and least_loss solves programmes of up to 3.*margins="total"')
    total = least_loss(file_of(from_counts([[1, 8], [9, 2]])), 0.0, margins="total")
    assert isinstance(total, Bound)
    assert total.points[0].status == "bound"
