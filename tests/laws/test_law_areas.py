"""Measures by area: plan and files agree, each area is as if it were alone, and the areas add up to the whole."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.special import rel_entr, xlogy

import oracles
import quadrille as qd
from effort import examples
from oracles import close
from quadrille import measure
from quadrille.data import Data
from quadrille.measure.areas import Areas
from quadrille.measure.base import NOTHING_CHANGED
from quadrille.score.by_area import NO_AREA
from quadrille.summary import Table
from strategies import Case, cases, coded, restrictions, rows_of

CELLS = ("chi_square", "effective_swap_rate", "deviance")
DIVERSITY = ("gini_difference", "shannon_difference", "renyi_difference")
SIX = (*CELLS, *DIVERSITY)
OTHERS = (
    "hellinger",
    "total_variation",
    "entropy_change",
    "exposed",
    "confidence",
    "small_cells",
    "hd1",
    "hd3",
    "worst_cell",
)
EXACT = (None, None, "integers", "decimals", "zeros")
EVEN = (*EXACT, "floats")  # a weight of 1e-8 next to one of 1e8 is rounded visibly, anew in a file of other rows
"""Weights that are whole numbers of ticks; others are rounded before anything is counted."""


def values_of(data: Data, area: str) -> dict[str, str]:
    """The value of each label, as a condition names it."""
    column = data[area]
    values = [*column.variable.values, *([""] if column.nullable else [])]
    return dict(zip(column.labels, map(str, values), strict=True))


def by(scores: qd.Scores, address: str) -> dict[str, dict[str, object]]:
    """The rows by area; that of the records without one is told from the others by its note."""
    return {row["area"]: row for row in scores.by(address).to_dicts()}


def plain(row: dict[str, object]) -> str:
    """The note of a row, but for that of records without an area."""
    return str(row["note"]).removeprefix(NO_AREA).removeprefix("; ")


def is_area(row: dict[str, object]) -> bool:
    return not str(row["note"]).startswith(NO_AREA)


def two(draw: st.DataObject, data: Data) -> tuple[str, str]:
    area, level = draw.draw(st.permutations(coded(data)))[:2]
    return area, level


def definitions(f: np.ndarray, g: np.ndarray) -> dict[str, tuple[float, float]]:
    """The six measures of one area by their definitions, each with the size of what is added up."""
    kept = f > 0
    squares, deviances = (g - f)[kept] ** 2 / f[kept], 2 * rel_entr(g[kept], f[kept])
    r, s = f / f.sum(), g / g.sum()
    return {
        "chi_square": (squares.sum(), squares.sum() + 1),
        "effective_swap_rate": (np.abs(g - f).sum() / 2 / f.sum(), 1.0 + g.sum() / f.sum()),
        "deviance": (deviances.sum(), np.abs(deviances).sum() + g.sum() + f.sum()),
        "gini_difference": ((s**2 - r**2).sum(), 1.0),
        "shannon_difference": ((xlogy(s, s) - xlogy(r, r)).sum(), 1.0 - xlogy(s, s).sum() - xlogy(r, r).sum()),
        "renyi_difference": (np.log((s**3).sum() / (r**3).sum()) / 2, 1.0 + (r**3).sum() / (s**3).sum()),
    }


@examples(24)
@given(cases(least=2, most=4, weights=EXACT), st.data())
def test_the_six_follow_their_definitions_in_every_area(case: Case, draw: st.DataObject) -> None:
    area, level = two(draw, case.data)
    condition = draw.draw(st.one_of(st.none(), restrictions(case.data)))
    after = case.plan.apply(case.data)
    where = condition.text if condition else None
    addresses = [f"{name}(`{level}`)" for name in SIX]
    plan = qd.score(case.data, case.plan, addresses, by=[area], where=where)
    files = qd.score(case.data, after, addresses, by=[area], where=where)
    keep = [condition and oracles.meets(data, condition.allowed) for data in (case.data, after)]
    tables = [oracles.table(data, (area, level), some) for data, some in zip((case.data, after), keep, strict=True)]
    counts = [oracles.counts(data, (area, level), some) for data, some in zip((case.data, after), keep, strict=True)]
    found = {address: (by(plan, address), by(files, address)) for address in addresses}
    labels = dict(zip([*case.data[area].variable.values, None], case.data[area].labels, strict=False))
    areas = {cell[0] for table in counts for cell in table}
    for name, address in zip(SIX, addresses, strict=True):
        assert set(found[address][0]) == {labels[a] for a in areas}
        for a in areas:
            levels = sorted({cell[1] for table in counts for cell in table if cell[0] == a}, key=str)
            f, g = (np.array([float(table[a, each]) for each in levels]) for table in tables)
            mine, theirs = (rows[labels[a]] for rows in found[address])
            assert mine == theirs
            assert mine["before"] == sum(n for cell, n in counts[0].items() if cell[0] == a)
            assert mine["after"] == sum(n for cell, n in counts[1].items() if cell[0] == a)
            if not f.sum() or not g.sum():
                assert mine["value"] is None
                assert plain(mine)
                continue
            truth, scale = definitions(f, g)[name]
            assert close(mine["value"], truth, scale), address
            assert (plain(mine) == "nothing changed") == np.array_equal(f, g)
            assert is_area(mine) == (a in case.data[area].variable.categories)
            assert mine["zero_cells"] == (((f == 0) & (g > 0)).sum() if name in ("chi_square", "deviance") else None)


@examples(30)
@given(cases(least=2, most=4), st.data())
def test_an_area_is_scored_as_if_only_its_records_counted(case: Case, draw: st.DataObject) -> None:
    area, *rest = draw.draw(st.permutations(coded(case.data)))
    margin = "*".join(f"`{name}`" for name in rest[:2])
    names = [*CELLS, *OTHERS, *(["cramers_v_change", "c_ard"] if len(rest) > 1 else [])]
    name = draw.draw(st.sampled_from(names))
    address = f"{name}({margin})"
    after = case.plan.apply(case.data)
    swapped = np.isin(np.arange(case.data.n), case.plan.rows)
    plan = qd.score(case.data, case.plan, [address], by=[area])
    files = qd.score(case.data, after, [address], by=[area], swapped=swapped, moved=case.plan.columns)
    value = values_of(case.data, area)
    for label, row in by(plan, address).items():
        alone = f"{name}({margin}, where=`{area}`='{value[label]}')"
        expected = qd.score(case.data, case.plan, [alone])
        scale = expected.results[alone][1].scale
        assert (row["value"] is None) == (expected[alone] is None), (address, row, expected.note(alone))
        again = by(files, address)[label]["value"]
        if row["value"] is not None:
            assert close(row["value"], expected[alone], max(scale, 1.0)), address
            assert close(again, row["value"], max(scale, 1.0)), address
        else:
            assert again is None


@examples(30)
@given(cases(least=2, most=3, weights=EXACT, wide=False), st.data())
def test_the_areas_add_up_to_the_whole(case: Case, draw: st.DataObject) -> None:
    area, level = two(draw, case.data)
    addresses = {name: f"{name}(`{level}`)" for name in SIX}
    scores = qd.score(case.data, case.plan, list(addresses.values()), by=[area])
    joint = {name: f"{name}(`{area}`*`{level}`)" for name in SIX}
    together = qd.score(case.data, case.plan, list(joint.values()))
    spread = {row["measure"]: row for row in scores.spread().to_dicts()}
    weight = oracles.table(case.data, (area,))
    labels = dict(zip(case.data[area].labels, [*case.data[area].variable.values, None], strict=False))
    total = float(sum(weight.values()))
    for name in SIX:
        whole = together[joint[name]]
        assert (spread[name]["whole"] is None) == (whole is None)
        if whole is None:
            continue
        size = max(total, abs(whole)) if name in CELLS else 10.0 * len(weight)
        assert close(spread[name]["whole"], whole, size)
        rows = by(scores, addresses[name])
        if any(row["value"] is None for row in rows.values()) or name == "renyi_difference":
            continue  # an area that comes or goes has no score of its own; and a log of a sum is no sum
        share = {label: float(weight[(labels[label],)]) / total for label in rows}
        added = sum(row["value"] * (share[label] if name == CELLS[1] else 1) for label, row in rows.items())
        assert close(added, whole, size), name
        zero = together.results[joint[name]][1].detail.get("zero_cells")
        if zero is None:
            assert spread[name]["zero_cells"] is None
            continue
        assert sum(int(row["zero_cells"]) for row in rows.values()) == int(zero)
        assert spread[name]["zero_cells"] == sum(int(row["zero_cells"]) for row in rows.values() if is_area(row))
        assert spread[name]["areas"] == sum(is_area(row) for row in rows.values())


@examples(24)
@given(cases(least=2, most=3, weights=EVEN), st.data())
def test_neither_the_order_of_rows_nor_areas_that_one_file_lacks_change_the_others(
    case: Case, draw: st.DataObject
) -> None:
    area, level = two(draw, case.data)
    after = case.plan.apply(case.data)
    gone = draw.draw(st.sampled_from(sorted(set(after[area].values.tolist()))))
    kept = np.flatnonzero(after[area].values != gone)
    assume(len(kept))
    assume(case.data.weight is None or after[case.data.weight].values[kept].any())
    random = np.random.default_rng(draw.draw(st.integers(0, 99)))
    addresses = [f"{name}(`{level}`)" for name in (*SIX, "hellinger")]
    full = qd.score(case.data, after, addresses, by=[area])
    fewer = qd.score(
        rows_of(case.data, random.permutation(case.data.n)),
        rows_of(after, random.permutation(kept)),
        addresses,
        by=[area],
    )
    lost = case.data[area].labels[gone]
    for address in addresses:
        mine, theirs = by(full, address), by(fewer, address)
        for label, row in mine.items():
            if label != lost:
                # Weights that are no whole ticks are rounded anew in a file of other rows: a change of its own.
                value, other = row.pop("value"), theirs[label].pop("value")
                if case.data.weight is not None and NOTHING_CHANGED in (plain(row), plain(theirs[label])):
                    del row["note"], theirs[label]["note"]
                assert theirs[label] == row
                assert (value is None) == (other is None)
                assert value is None or close(other, value, max(abs(value), 1.0))
            elif label in theirs:
                assert theirs[label]["value"] is None
                assert plain(theirs[label]) in ("no record, or no weight, after", "no weight before or after")
                assert theirs[label]["after"] == 0


@examples(24)
@given(cases(least=2, most=3, weights=EXACT), st.data())
def test_tables_of_parts_of_the_file_merge_into_the_areas_of_the_whole(case: Case, draw: st.DataObject) -> None:
    assume(case.data.n >= 4)
    area, level = two(draw, case.data)
    after = case.plan.apply(case.data)
    cut = draw.draw(st.integers(1, case.data.n - 1))
    parts = np.arange(cut), np.arange(cut, case.data.n)
    table = Table((area, level))
    halves = [[table.of(data.take(rows)) for rows in parts] for data in (case.data, after)]
    merged = [first.merge(second) for first, second in halves]
    whole = [table.of(data) for data in (case.data, after)]
    for name in (*SIX, "hellinger", "total_variation", "entropy_change"):
        kind = measure.get(name)
        both = [kind.grouped(Areas.of(before, before.against(now), 1)) for before, now in (merged, whole)]
        for mine, theirs in zip(*both, strict=True):
            assert (mine is None and theirs is None) or np.array_equal(mine, theirs)
