"""Attacks on standard releases of CPS-8d: right links, genuine uniques, attributes, and a designed swap undone."""

from __future__ import annotations

import json

import numpy as np
import pytest

import quadrille as qd
from effort import tries
from quadrille.attack.attack import Attack
from quadrille.attack.attribute import IN_ALL
from quadrille.attack.genuine import chance_genuine
from quadrille.attack.input import Finding, KeyTable, attack_input
from quadrille.attack.suda import special_uniques
from quadrille.attack.undo import rows
from quadrille.data import Column
from strategies import column

N = 48_842
DESIGNED = '{"method":"DesignedSwap","seed":7,"version":1}'
ALONE = "alone with the other keys, still there and inferred right"


def random_swap(rate: float, seed: int = 1) -> qd.Recipe:
    return qd.RandomSwap(["Edu", "MS"], rate=rate, seed=seed)


RELEASES = {
    "R01": random_swap(0.01),
    "R02": random_swap(0.02),
    "R10": random_swap(0.10),
    "D7": qd.Recipe.from_json(DESIGNED),
}


@pytest.fixture(scope="module")
def found(cps8d: qd.Data) -> dict[str, Attack]:
    return {name: qd.attack(cps8d, recipe) for name, recipe in RELEASES.items()}


def finding(attack: Attack, section: str, quantity: str) -> Finding:
    (one,) = [each for each in attack[section].findings if each.quantity == quantity]
    return one


LINKS = {
    "R01": (1656.96, 528.42, 352, 346),
    "R02": (1617.12, 507.28, 332, 326),
    "R10": (1435.55, 422.97, 283, 253),
    "D7": (1388.59, 267.00, 34, 34),
}


@pytest.mark.parametrize("name", RELEASES)
def test_right_links_by_all_eight_keys(name: str, found: dict[str, Attack]) -> None:
    right, small, single, true, kept, nearest, *_ = found[name]["linkage"].findings
    assert (right.value, small.value) == pytest.approx(LINKS[name][:2], abs=0.005)
    assert (single.value, true.value) == LINKS[name][2:]
    assert (right.before, small.before, single.before, true.before) == (1695, 547, 361, 361)
    assert (right.chance, small.chance, small.count) == (1, pytest.approx(0.015, abs=5e-5), 733)
    assert kept.value == kept.before == (1 if name == "D7" else 254)
    assert nearest.value == pytest.approx(right.value), "a person without a fitting row is not found by the nearest one"


def test_right_links_by_five_keys(cps8d: qd.Data) -> None:
    five = ["Age", "Edu", "MS", "Race", "Sex"]
    links = {name: qd.attack(cps8d, RELEASES[name], keys=five)["linkage"].findings[0] for name in ("R10", "D7")}
    assert links["R10"].before == links["D7"].before == 119
    assert (links["R10"].value, links["D7"].value) == pytest.approx((93.77, 104.10), abs=0.005)


def test_whoever_knows_the_design_links_a_little_better(found: dict[str, Attack]) -> None:
    by_file, by_design = found["R10"]["linkage"].findings[0], found["R10"]["linkage"].findings[6]
    assert by_file.value == pytest.approx(1435.55, abs=0.005)
    assert by_design.value == pytest.approx(1438.10, abs=0.005)
    designed = found["D7"]["linkage"].findings[6]
    assert designed.value is None and "no closed form" in designed.note


SIZES = {
    ("R01", 1): (381, 0.908),
    ("R10", 1): (347, 0.746),
    ("R10", 2): (224, 0.768),
    ("R10", 3): (121, 0.758),
    ("D7", 1): (34, 1.000),
    ("D7", 3): (661, 0.576),
    ("D7", 4): (115, 1.000),
}


@pytest.mark.parametrize(("name", "size"), SIZES)
def test_cells_of_the_release_by_their_size(name: str, size: int, found: dict[str, Attack]) -> None:
    one = finding(found[name], "genuine", f"cells of {size}: records that fit the size before")
    assert (one.count, one.value) == (SIZES[name, size][0], pytest.approx(SIZES[name, size][1], abs=5e-4))


def test_a_designed_swap_leaves_no_cell_of_two(found: dict[str, Attack]) -> None:
    one = finding(found["D7"], "genuine", "cells of 2: records that fit the size before")
    assert (one.value, one.note) == (None, "no such cell")


UNIQUES = {0.01: (0.843, 0.935, 0.938), 0.02: (0.833, 0.905, 0.902), 0.10: (0.825, 0.791, 0.738)}
"""AUC, mean predicted chance, share that is genuine: means of ten seeds."""


@pytest.mark.parametrize("rate", UNIQUES)
def test_an_intruder_can_tell_which_uniques_are_genuine(rate: float, cps8d: qd.Data) -> None:
    rows: list[tuple[float | None, ...]] = []
    for seed in range(1, 11):
        attack = qd.attack(cps8d, random_swap(rate, seed), target="AnnSal")
        quantities = ("uniques: genuine ones told apart (AUC)", "uniques: mean chance of being genuine")
        truth = finding(attack, "genuine", "cells of 1: cells occupied before").value
        rows.append((*(finding(attack, "genuine", quantity).value for quantity in quantities), truth))
    auc, predicted, true = np.array(rows).mean(axis=0)
    assert auc > 0.8 and abs(predicted - true) < 0.06
    assert (auc, predicted, true) == pytest.approx(UNIQUES[rate], abs=0.004)  # printed with first-order flows


def test_the_surest_uniques_of_the_tenth_are_nearly_all_genuine(found: dict[str, Attack]) -> None:
    sure = finding(found["R10"], "genuine", "uniques claimed at a chance above 0.95: genuine")
    assert sure.count == 104 and sure.value == pytest.approx(0.97, abs=0.005)
    assert sure.chance == pytest.approx(0.746, abs=5e-4)


ATTRIBUTED = {
    "R01": (0.1452, 0.9994, 0.973, 0.941, 0.9605),
    "R02": (0.1387, 0.9990, 0.957, 0.941, 0.946),
    "R10": (0.1397, 0.9977, 0.898, 0.839, 0.852),
    "D7": (0.1510, 1, 1, 1, 1),
}


@pytest.mark.parametrize("name", RELEASES)
def test_values_inferred_from_seven_keys(name: str, found: dict[str, Attack]) -> None:
    attributed, right, alone, education, every = (
        finding(found[name], "attribute", quantity)
        for quantity in (
            "AnnSal: attributed",
            "AnnSal: right among claims",
            *(f"{target}: {ALONE}" for target in ("AnnSal", "Edu", "all targets")),
        )
    )
    values = [each.value for each in (attributed, right, alone, education, every)]
    assert values[:2] == pytest.approx(ATTRIBUTED[name][:2], abs=5e-5)
    assert values[2:] == pytest.approx(ATTRIBUTED[name][2:], abs=5e-4)
    assert attributed.before == pytest.approx(0.1510, abs=5e-5)
    assert (alone.count, education.count, every.count) == (170, 45, 953)
    chances = (alone.chance, education.chance, every.chance)  # on the same base: to be still there, and guessed
    assert chances == pytest.approx((0.653, 0.196, 0.545), abs=5e-4 if name == "D7" else 0.06)
    in_all = finding(found[name], "attribute", f"all targets: alone with the other keys, {IN_ALL}")
    assert (in_all.value or 0) >= (every.value or 1) and in_all.chance == pytest.approx(0.638, abs=5e-4)
    assert right.chance == pytest.approx(0.75, abs=0.01), "the mode has .76, and nearly all claims are of it"
    assert "one value makes" in right.note


BEFORE = {
    **{"Age": 0.01355, "EmpTyp": 0.00319, "Edu": 0.00162, "MS": 0.02999},
    **{"Race": 0.03906, "Sex": 0.03368, "AvgHrs": 0.00360},
}


@pytest.mark.parametrize("target", BEFORE)
def test_a_designed_swap_leaves_attribute_disclosure_as_it_was(target: str, found: dict[str, Attack]) -> None:
    one = finding(found["D7"], "attribute", f"{target}: attributed")
    assert one.value == one.before == pytest.approx(BEFORE[target], abs=1e-5)
    assert target in found["D7"]["attribute"].advice


def test_a_swap_of_race_spoils_the_inference_of_race(cps8d: qd.Data) -> None:
    attack = qd.attack(cps8d, qd.RandomSwap(["Race"], rate=0.10, seed=1))
    assert finding(attack, "attribute", f"all targets: {ALONE}").value == pytest.approx(0.737, abs=5e-4)


def test_a_designed_swap_is_undone_to_half_of_its_distance(found: dict[str, Attack]) -> None:
    unique, small, surest, _, distance = found["D7"]["undo"].findings
    assert (unique.value, small.value) == pytest.approx((0.713, 0.790), abs=0.001)
    assert distance.value == pytest.approx(0.0269, abs=0.001) and distance.chance == pytest.approx(0.0475, abs=5e-5)
    assert (unique.count, surest.count) == (661, 50)
    assert surest.value == pytest.approx(0.80) and surest.chance == pytest.approx(0.495, abs=5e-4)
    assert surest.note == "standard error 0.05657"


@pytest.mark.parametrize(("coin", "near", "apart"), [(0.0, (0.058, 0.047), 0.77), (0.5, (0.060, 0.048), 0.81)])
def test_a_designed_swap_that_empties_is_undone_by_simulating_it(
    coin: float, near: tuple[float, float], apart: float, cps8d: qd.Data
) -> None:
    """Measured at full effort; a quick swap is a little farther from the original and undone as well."""
    attack = qd.attack(cps8d, qd.DesignedSwap(effort=0.1, seed=7, coin=coin), target="AnnSal")
    distance = finding(attack, "undo", "distance of the undone table from the original (Hellinger)")
    assert (distance.chance, distance.value) == pytest.approx(near, abs=0.006)
    assert distance.value < 0.86 * distance.chance
    assert finding(attack, "undo", "cells of 3: the 50 surest were small").value >= 0.8
    emptied = finding(attack, "undo", "empty cells: those that were emptied (AUC)")
    assert emptied.value == pytest.approx(apart, abs=0.05)


def test_the_surest_uniques_of_a_coin_are_no_surer_than_others(cps8d: qd.Data) -> None:
    """Over seeds 1 to 5 and 11 to 20 of effort 1 the area is .51 (standard error .015)."""
    told = []
    for seed in (7, 8, 10):
        attack = qd.attack(cps8d, qd.DesignedSwap(coin=0.5, effort=0.05, seed=seed), target="AnnSal")
        apart = finding(attack, "genuine", "uniques: genuine ones told apart (AUC)")
        sure = finding(attack, "genuine", "uniques: the 30 surest were genuine")
        assert sure.note.startswith("standard error") and sure.chance == pytest.approx(0.5, abs=0.13)
        told.append((apart.value, sure.value))
    assert np.mean(told, axis=0) == pytest.approx((0.5, 0.5), abs=0.11)


def cells_of(data: qd.Data, recipe: qd.Recipe) -> KeyTable:
    return attack_input(data, recipe, None, None, 3, "design", None, None).table


def designed(seed: int, **settings: object) -> qd.Recipe:
    return qd.Recipe.from_json(json.dumps({"method": "DesignedSwap", "seed": seed, "version": 1, **settings}))


def test_sizes_of_filled_cells_give_the_method_away(cps8d: qd.Data) -> None:
    """Cells of one to five rows; and what those of three were before."""
    table = cells_of(cps8d, RELEASES["D7"])
    assert [int((table.g == size).sum()) for size in range(1, 6)] == [34, 0, 661, 115, 80]
    assert [int((table.f[table.g == 3] == size).sum()) for size in range(1, 5)] == [327, 186, 118, 30]


def test_small_cells_that_pairs_leave_are_genuine_and_the_most_special_ones(cps8d: qd.Data) -> None:
    left: set[frozenset[tuple[int, ...]]] = set()
    for seed in range(1, tries(4, 10)):
        table = cells_of(cps8d, designed(seed))
        assert (table.f[(table.g > 0) & (table.g < 3)] == table.g[(table.g > 0) & (table.g < 3)]).all()
        left.add(frozenset(map(tuple, table.codes[:, table.g == 1].T.tolist())))
    assert len(left) == 1 and len(next(iter(left))) == 34, "the same with every seed"
    score = np.zeros(table.cells)
    np.maximum.at(score, table.before, special_uniques(cps8d).scores)
    alone, stays = table.f == 1, table.g == 1
    assert score[stays].mean() == pytest.approx(16.6, abs=0.05)
    assert score[alone & ~stays].mean() == pytest.approx(5.5, abs=0.05)
    assert score[stays].sum() / score[alone].sum() == pytest.approx(0.24, abs=0.005)


def test_a_share_of_the_cells_leaves_genuine_ones(cps8d: qd.Data) -> None:
    table = cells_of(cps8d, designed(7, share=0.5))
    for size, cells in ((1, 187), (2, 86)):
        assert (table.f[table.g == size] == size).all() and int((table.g == size).sum()) == cells


def test_uniques_that_an_intruder_doubts_are_mostly_false(cps8d: qd.Data) -> None:
    """Printed are 36 of them, with chances of first order; the flows of the design give 34."""
    given = attack_input(cps8d, RELEASES["R10"], None, None, 3, "design", None, None)
    chance = chance_genuine(given)
    assert isinstance(chance, np.ndarray)
    genuine = given.table.f[given.table.g == 1] > 0
    assert int((chance < 0.5).sum()) == 34 and genuine[chance < 0.5].mean() == pytest.approx(0.11, abs=0.01)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("target", "hellinger", "inferred"), [("AnnSal", 0.045, 0.83), ("Edu", 0.033, 0.53), ("EmpTyp", 0.036, 0.67)]
)
def test_a_target_outside_of_table_and_loss_is_inferred_less(
    target: str, hellinger: float, inferred: float, cps8d: qd.Data
) -> None:
    """Means of seeds 1 to 5; the printed ones are of a prototype with other random numbers."""
    keys = [name for name in cps8d.columns if name != target]
    measures = ["hellinger", f"attributed_unique(target={target})"]
    found = [
        [qd.score(cps8d, recipe.plan(cps8d), measures)[measure] for measure in measures]
        for recipe in (designed(seed, tables=[keys], loss=f"hellinger({'*'.join(keys)})") for seed in range(1, 6))
    ]
    assert np.mean(found, axis=0) == pytest.approx((hellinger, inferred), abs=0.02)
    assert np.mean(found, axis=0)[0] == pytest.approx(hellinger, abs=0.001)


@pytest.mark.nightly
def test_pairs_that_fill_or_empty_leave_less_to_infer(cps8d: qd.Data) -> None:
    """Means of three seeds; the printed .0505, .91 and .78 are of a prototype with other random numbers."""
    measures = ["hellinger", "attributed_unique(target=AnnSal)", "attributed_unique(target=Edu)"]
    plans = [designed(seed, treatment="either").plan(cps8d) for seed in (1, 2, 3)]
    found = np.mean([[qd.score(cps8d, plan, measures)[measure] for measure in measures] for plan in plans], axis=0)
    assert found == pytest.approx((0.0505, 0.91, 0.78), abs=0.02) and found[0] == pytest.approx(0.0505, abs=2e-4)


MARRIED = ("Married-civ-spouse", "Married-AF-spouse", "Married-spouse-absent")


def full_file(cps8d: qd.Data) -> qd.Data:
    """The eight variables, made from Adult in the order of its records, and five columns more."""
    adult = qd.datasets.adult()
    work = {"Private": 1, "Self-emp-not-inc": 2, "Self-emp-inc": 2, "Without-pay": 3, "Never-worked": 3, "?": 3}
    school = {"HS-grad": 1, "Assoc-voc": 2, "Assoc-acdm": 2, "Bachelors": 2, "Some-college": 4}
    school |= dict.fromkeys(("Masters", "Prof-school", "Doctorate"), 3)

    def recoded(name: str, codes: dict[str, int], other: int) -> np.ndarray:
        return np.array([codes.get(label, other) for label in adult[name].labels])[adult[name].values]

    eight = {
        "Age": np.searchsorted([25, 55], adult["age"].values, side="right"),
        "EmpTyp": recoded("workclass", work, 0),
        "Edu": recoded("education", school, 0),
        "MS": recoded("marital-status", dict.fromkeys(MARRIED, 0), 1),
        "Race": np.minimum(adult["race"].values, 1),
        "Sex": adult["sex"].values if adult["sex"].labels[0] == "Male" else 1 - adult["sex"].values,
        "AvgHrs": np.searchsorted([40, 41], adult["hours-per-week"].values, side="right"),
        "AnnSal": adult["income-per-year"].values,
    }
    columns = [Column(cps8d[name].variable, codes.astype(np.uint8)) for name, codes in eight.items()]
    born = recoded("native-country", {"United-States": 0}, 1)
    others = {"born": born, "gain": adult["capital-gain"].values > 0, "loss": adult["capital-loss"].values > 0}
    others |= {name: adult[name].values for name in ("occupation", "relationship")}
    return qd.Data([*columns, *(column(name, codes) for name, codes in others.items())])


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("columns", "area", "picked"),
    [(("occupation", "relationship", "born", "gain", "loss"), 0.685, 0.47), (("occupation",), 0.614, 0.42)],
)
def test_other_columns_tell_who_came_in(columns: tuple[str, ...], area: float, picked: float, cps8d: qd.Data) -> None:
    """At least as well as is printed; how gains and countries were coded there is not said."""
    data, keys = full_file(cps8d), list(cps8d.columns)
    recipe = designed(7, tables=[keys], loss=f"hellinger({'*'.join(keys)})")
    given = attack_input(data, recipe, keys, None, 3, "design", columns, None)
    assert sorted(given.table.f) == sorted(cells_of(cps8d, RELEASES["D7"]).f), "the same table"
    came, right = rows(given).findings
    assert came.value is not None and area - 0.001 < came.value < area + 0.02
    assert right.value is not None and picked < right.value < picked + 0.07
