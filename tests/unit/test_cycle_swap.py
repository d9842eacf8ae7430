"""Cyclic swapping: exact laws of small files, borrowed partners, units, bad input."""

from __future__ import annotations

from collections import Counter

import numpy as np
import polars as pl
import pytest
from scipy.stats import chisquare

import quadrille as qd
from effort import tries
from quadrille.data import Data
from quadrille.errors import InfeasibleError, InputError, OverlapError, ParameterError
from quadrille.present.account import account
from quadrille.present.render import as_markdown

RECKONED = 1e-4
"""A chi-square test with fixed seeds fails below this chance."""


def areas_of(*counts: int) -> Data:
    """Flagged records, so many in each area."""
    area = [f"a{i}" for i, count in enumerate(counts) for _ in range(count)]
    frame = pl.DataFrame({"area": area, "flag": [True] * len(area)})
    return qd.from_frame(frame).with_roles(geography=["area"])


def drawn(data: Data, draws: int, **options: object) -> Counter[tuple[tuple[int, int], ...]]:
    recipe = qd.CycleSwap(flag="flag", seed=1, **options)
    prepared, found = recipe.prepared(data), Counter[tuple[tuple[int, int], ...]]()
    for seed in range(draws):
        (move,) = prepared.draw(recipe.stream_of(seed)).moves
        found[tuple(zip(move.rows.tolist(), move.source.tolist(), strict=True))] += 1
    return found


@pytest.mark.parametrize(
    ("counts", "n", "outcomes", "lengths"),
    [
        ((1, 1, 1), 3, 2, {3: 1}),
        ((2, 1, 1), 3, 2, {2: 2}),
        ((3, 1), 3, 3, {2: 1}),
        ((1, 1, 1, 1), 2, 3, {2: 2}),
        ((1, 1, 1, 1), 4, 6, {4: 1}),
        ((2, 2, 2), 3, 16, {3: 2}),
        ((2, 2, 2), 2, 8, {2: 3}),
        ((2, 2, 1), 3, 8, {2: 1, 3: 1}),
        ((1, 1, 1, 1, 1), 3, 20, {2: 1, 3: 1}),
    ],
)
def test_small_files_have_equally_likely_outcomes(
    counts: tuple[int, ...], n: int, outcomes: int, lengths: dict[int, int]
) -> None:
    data, draws = areas_of(*counts), tries(1_000, nightly=20_000)
    plan = qd.testing.check_recipe(qd.CycleSwap(flag="flag", n=n, leftover="leave", seed=1), data)
    assert plan.details is not None and plan.details.facts["cycles"] == lengths
    found = drawn(data, draws, n=n, leftover="leave")
    assert len(found) == outcomes and chisquare(list(found.values())).pvalue > RECKONED


def test_who_receives_from_whom_has_the_printed_chances() -> None:
    """Of areas with 2, 2 and 1 a record of the first receives from the second with 3/4, from the third with 1/4."""
    draws = tries(1_000, nightly=20_000)
    found = drawn(areas_of(2, 2, 1), draws, n=3, leftover="leave")
    giver = Counter(dict(outcome)[0] // 2 for outcome in found.elements())
    assert chisquare([giver[1], giver[2]], [draws * 0.75, draws * 0.25]).pvalue > RECKONED


def test_a_partner_is_borrowed_uniformly_from_the_other_areas_of_the_cell() -> None:
    """Record 0 alone is flagged. Records 1 and 2 are of its area, 6 of another key cell, 3 to 5 may lend."""
    frame = pl.DataFrame(
        {
            "area": ["a", "a", "a", "b", "b", "c", "b"],
            "kind": ["x"] * 6 + ["y"],
            "flag": [1, 0, 0, 0, 0, 0, 0],
        }
    )
    data, draws = qd.from_frame(frame).with_roles(geography=["area"]), tries(1_000, nightly=20_000)
    plan = qd.testing.check_recipe(qd.CycleSwap(flag="flag", same=["kind"], seed=1), data)
    assert plan.details.facts["borrowed"] == 1 and plan.steering_columns == ("flag",)
    found = Counter(dict(outcome)[0] for outcome in drawn(data, draws, same=["kind"]).elements())
    assert chisquare([found[row] for row in (3, 4, 5)]).pvalue > RECKONED
    with pytest.raises(InfeasibleError, match=r"None of the 1 flagged records can move \(alone in the key cell: 1\)"):
        qd.CycleSwap(flag="flag", same=["kind"], leftover="leave", seed=1).plan(data)


def test_reasons_of_those_left_are_counted_and_listed() -> None:
    """Cell x: one area only; cell y: alone; cell z: four of one area and one of another, so that three are too many."""
    frame = pl.DataFrame(
        {
            "area": ["a", "a", "b", *"aaaab"],
            "kind": ["x", "x", "y", *"zzzzz"],
            "flag": [1] * 8,
        }
    )
    data = qd.from_frame(frame).with_roles(geography=["area"])
    report = (plan := qd.CycleSwap(flag="flag", same=["kind"], seed=1).plan(data)).report(data)
    assert report.details["set_aside"] == {
        "alone in the key cell": 1,
        "one area only in the key cell": 2,
        "the own area dominates the key cell": 3,
    }
    assert (report.details["moved_in_cycles"], report.details["borrowed"], report.details["left"]) == (2, 0, 6)
    assert {name: len(rows) for name, rows in plan.details.rows.items()} == {
        "left, alone in the key cell": 1,
        "left, one area only in the key cell": 2,
        "left, the own area dominates the key cell": 3,
    }
    said = as_markdown(account(report))
    assert report.warnings[0].startswith("6 of 8 flagged records stay where they are; the account has the reasons.")
    for part in ("8 records in 3 key cells", "2 records in cycles", "6 left where they were"):
        assert part in said


def households(random: np.random.Generator, count: int) -> Data:
    """Persons of households in 6 tracts of 3 counties, rows scattered, with ids of 64 bits."""
    size = random.integers(1, 5, count)
    of = random.permutation(np.repeat(np.arange(count), size))
    tract, tenure = random.integers(0, 6, count), random.integers(0, 3, count)
    frame = pl.DataFrame(
        {
            "hh": (of + (1 << 62)).tolist(),
            "county": [f"c{t // 2}" for t in tract[of]],
            "tract": [f"t{t}" for t in tract[of]],
            "size": [f"s{s}" for s in size[of]],
            "tenure": [f"k{k}" for k in tenure[of]],
            "age": [f"g{a}" for a in random.integers(0, 6, len(of))],
        }
    )
    return qd.from_frame(frame).with_roles(unit="hh", geography=["county", "tract"])


def test_households_at_risk_move_whole_and_nobody_else() -> None:
    data = households(np.random.default_rng(1), 900)
    recipe = qd.CycleSwap(risk=["age"], k=200, same=["size"], carry=["tenure"], area="county", seed=2)
    plan = qd.testing.check_recipe(recipe, data)
    (move,) = plan.moves
    assert move.columns == ("county", "tract", "tenure") and move.units is not None
    units, county = data.units("hh"), data["county"].values
    counts = Counter(zip(county.tolist(), data["age"].values.tolist(), strict=True))
    flagged = {
        int(units.of[row]) for row in range(data.n) if counts[int(county[row]), int(data["age"].values[row])] < 200
    }
    assert plan.details.facts["flagged"] == len(flagged)
    movers = set(move.given[0].tolist())
    assert len(movers - flagged) == plan.details.facts["borrowed"]
    first = units.first
    assert (county[first[move.given[0]]] != county[first[move.given[1]]]).all()


def test_the_printed_case_moves_all_at_risk_and_nobody_else() -> None:
    data = qd.datasets.census(10_000)
    recipe = qd.CycleSwap(risk=["hincome", "ageGroup", "gender"], k=3, same=["hsize"], area="nuts3", n=3, seed=1)
    plan = recipe.plan(data)
    known = plan.details.facts
    assert (known["flagged"], known["moved_in_cycles"], known["borrowed"], known["left"]) == (8_837, 8_837, 0, 0)
    assert len(plan.units) == 8_837 and set(known["cycles"]) <= {2, 3, 4}
    nuts3 = data["nuts3"].values[data.units("hid").first]
    assert (nuts3[plan.moves[0].given[0]] != nuts3[plan.moves[0].given[1]]).all()


def test_a_flag_of_any_member_flags_the_household() -> None:
    frame = pl.DataFrame({"hh": ["p", "q", "p", "r", "q"], "area": ["a", "b", "a", "a", "b"], "flag": [0, 0, 1, 0, 1]})
    data = qd.from_frame(frame).with_roles(unit="hh", geography=["area"])
    plan = qd.testing.check_recipe(qd.CycleSwap(flag="flag", seed=1), data)
    assert plan.units.tolist() == [0, 1] and plan.apply(data).frame()["area"].to_list() == ["b", "a", "b", "a", "a"]


def test_units_without_an_area_take_no_part_and_are_counted() -> None:
    frame = pl.DataFrame({"area": ["a", "b", None, "a"], "flag": [1, 1, 1, 0]})
    data = qd.from_frame(frame).with_roles(geography=["area"])
    plan = qd.testing.check_recipe(qd.CycleSwap(flag="flag", seed=1), data)
    assert plan.rows.tolist() == [0, 1]
    assert plan.details.facts["set_aside"]["no area"] == plan.details.facts["left"] == 1


def test_the_attack_and_measures_take_cycles() -> None:
    data = households(np.random.default_rng(3), 300)
    recipe = qd.CycleSwap(risk=["tenure", "age"], k=5, same=["size"], seed=1)
    keys = ["tract", "size", "age"]
    assert qd.attack(data, recipe, keys)["linkage"].findings
    scores = qd.score(data, recipe.plan(data), ["hellinger(tract*age)", "hellinger(tract*size)"])
    assert scores["hellinger(tract*age)"] > 0


BAD: list[tuple[dict[str, object], str]] = [
    ({}, "needs one of 'flag' .* Got neither"),
    ({"flag": "f", "risk": ["a"]}, "Got both"),
    ({"flag": "f", "n": 1}, "'n' parameter of CycleSwap must be a whole number of 2 or more"),
    ({"risk": ["a"], "k": 0}, "'k' parameter of CycleSwap"),
    ({"flag": "f", "leftover": "lend"}, "one of 'borrow', 'leave'"),
    ({"flag": "f", "rules": ["a=1"]}, "takes no 'rules'"),
    ({"risk": ["a"], "carry": ["a"]}, "in both 'carry' and 'risk'"),
    ({"flag": "f", "same": ["a"], "carry": ["a"]}, "in both 'carry' and 'same'"),
]


@pytest.mark.parametrize(("options", "said"), BAD)
def test_bad_parameters_are_refused(options: dict[str, object], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        qd.CycleSwap(**options)


def test_bad_files_are_refused() -> None:
    data = households(np.random.default_rng(1), 40)

    def refuses(said: str, kind: type[Exception] = InputError, file: Data = data, **options: object) -> None:
        with pytest.raises(kind, match=said):
            qd.CycleSwap(**options).plan(file)

    refuses("no column 'flug'", flag="flug")
    refuses("'age', given as 'flag' of CycleSwap, must hold true or false", flag="age")
    refuses("Nobody is at risk: in every area of 'tract' .* at least", risk=["tenure"], k=1)
    refuses("'area' of CycleSwap names 'size', which is no level", ParameterError, risk=["age"], area="size")
    refuses("'tract' in 'same' of CycleSwap is the level", OverlapError, risk=["age"], same=["tract"])
    refuses("'tract' in 'same' .* lies in it", OverlapError, risk=["age"], area="county", same=["tract"])
    refuses("'county' in 'carry' of CycleSwap is a level of geography", OverlapError, risk=["age"], carry=["county"])
    refuses("'hh' numbers the units, which move", risk=["age"], carry=["hh"])
    refuses("'county' says who is at risk in CycleSwap and moves", OverlapError, risk=["county", "age"])
    refuses(r"'age' differs within \d+ of 40 households", risk=["tenure"], k=99, same=["age"])
    refuses("no levels of geography", flag="f", file=qd.from_frame(pl.DataFrame({"f": [1, 0]})))
    none = qd.from_frame(pl.DataFrame({"f": [0, 0], "area": ["a", "b"]})).with_roles(geography=["area"])
    refuses("'f', given as 'flag' of CycleSwap, is true for nobody", flag="f", file=none)
    one = qd.from_frame(pl.DataFrame({"f": [1, 0], "area": ["a", "a"]})).with_roles(geography=["area"])
    refuses("All records lie in one area", InfeasibleError, flag="f", file=one)
    numbers = qd.datasets.households()
    refuses("'age' is numeric, and 'risk' of CycleSwap needs categories", risk=["age"], file=numbers)
    refuses("'weight' is the weight", risk=["status"], carry=["weight"], file=numbers)


def test_cells_that_keep_the_county_swap_within_it() -> None:
    data = households(np.random.default_rng(5), 500)
    plan = qd.testing.check_recipe(qd.CycleSwap(risk=["tenure", "age"], k=6, same=["county"], seed=1), data)
    assert plan.columns == ("tract",)
