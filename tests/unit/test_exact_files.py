"""Files and parameters that designed swaps with kept tables must cope with, and what they refuse."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import quadrille as qd
from exact_strategies import both
from geography_strategies import area
from oracles import records
from quadrille.data import Column, Data
from quadrille.present.account import rule_facts
from quadrille.release.dossier import ReleaseWarning, SubtractionWarning
from quadrille.swap.designed import lattice
from quadrille.swap.designed.lattice import cube_problem
from strategies import column, file_of

QUICK = {"seed": 1, "effort": 0.01}


def uneven(n: int = 600, names: str = "ABCD", seed: int = 1) -> dict[str, np.ndarray]:
    """Variables of three or four categories with small cells."""
    random = np.random.default_rng(seed)
    return {name: np.minimum(random.geometric(0.5, n) - 1, 2 + i % 2) for i, name in enumerate(names)}


def same_table(data: Data, after: Data, names: str | list[str]) -> bool:
    return Counter(records(data, names)) == Counter(records(after, names))


def facts_of(plan: qd.Plan) -> dict[str, object]:
    assert plan.details is not None
    return dict(plan.details.facts)


def test_a_kept_cell_of_one_record_is_reported_and_stays() -> None:
    codes = uneven()
    codes["A"][0], codes["B"][0] = 5, 5
    data = file_of(**codes)
    plan = qd.DesignedSwap(**QUICK).plan(data)
    pairs = [both(data, data, pair)[0] for pair in ("AB", "AC", "AD", "BC", "BD", "CD")]
    assert facts_of(plan)["small_kept_cells"] == sum(int((counts < 3).sum()) for counts in pairs) > 0
    assert 1 <= facts_of(plan)["cells_in_small_kept"] <= 2 * facts_of(plan)["small_kept_cells"]
    assert same_table(data, plan.apply(data), "AB")


def test_a_file_without_small_cells_is_left_alone_and_says_so() -> None:
    data = file_of(**{name: np.tile(np.repeat([0, 1], 2**i), 80 // 2**i) for i, name in enumerate("ABC")})
    plan = qd.DesignedSwap(**QUICK).plan(data)
    assert not plan.moves
    assert (facts_of(plan)["small_cells"], facts_of(plan)["exposed_before"]) == (0, 0)


def test_a_file_in_which_nobody_may_move_is_left_alone() -> None:
    columns = [column(name, codes) for name, codes in uneven().items()]
    off = Column(qd.Variable("off", "nominal", (False, True)), np.ones(600, dtype=np.int8))
    plan = qd.DesignedSwap(never="off", **QUICK).plan(Data([*columns, off]))
    assert not plan.moves
    assert facts_of(plan)["left"] == {"no way found that keeps the tables": facts_of(plan)["small_cells"]}


def test_a_variable_of_one_category_neither_moves_nor_spoils_a_move() -> None:
    data = file_of(**uneven(), E=np.zeros(600, dtype=int))
    plan = qd.DesignedSwap(**QUICK).plan(data)
    assert plan.moves and "E" not in plan.columns
    staying = qd.DesignedSwap(["A", "B", "C"], **QUICK).plan(data)
    assert staying.moves and same_table(data, staying.apply(data), ["D", "E"])


@pytest.mark.parametrize("keep", ["out*A", ["2-way", "out*A*B"], ["out*A", "logit(B)"]])
def test_a_table_with_a_variable_that_is_not_protected_is_kept(keep: object) -> None:
    data = file_of(**uneven(), out=np.random.default_rng(2).integers(0, 3, 600))
    plan = qd.DesignedSwap(tables=["A*B*C*D"], keep=keep, **QUICK).plan(data)
    assert plan.moves and "out" not in plan.columns
    assert same_table(data, plan.apply(data), ["out", "A"])


def test_variables_that_move_together_are_kept_if_one_of_them_is_named() -> None:
    data = file_of(**uneven())
    recipe = qd.DesignedSwap(together=[["A", "B"]], keep=["A*C", "1-way"], loss="hellinger(A*C*D)", **QUICK)
    plan = recipe.plan(data)
    assert plan.moves and all(len(move.columns) == 2 for move in plan.moves if "A" in move.columns)
    after = plan.apply(data)
    assert same_table(data, after, "AC") and same_table(data, after, "AB")
    scored = qd.score(data, plan, ["hellinger(A*C*D)"])["hellinger(A*C*D)"]
    assert facts_of(plan)["design_loss"] == pytest.approx(scored, abs=1e-7)


@pytest.mark.parametrize("keep", ["1-way", "2-way", "county*A", "state*A"])
def test_levels_of_geography_travel_together_and_kept_tables_may_name_a_carried_one(keep: str) -> None:
    random = np.random.default_rng(3)
    county = random.integers(0, 6, 600)
    areas = [area("state", county // 3, 2, 1), area("county", county, 6, 2)]
    data = Data([*areas, *(column(name, codes) for name, codes in uneven(names="ABC").items())])
    rule = "state=state0 & A=A2"
    plan = qd.DesignedSwap(tables=["county*A*B*C"], keep=keep, rules=[rule], loss="hellinger(state*B)", **QUICK).plan(
        data
    )
    after = plan.apply(data)
    assert plan.moves and same_table(data, after, ["state", "county"])
    assert same_table(data, after, ["county", "A"] if "*" not in keep else keep.split("*")) or keep == "1-way"
    met = [[(row[0], row[1]) == ("state0", "A2") for row in records(file, ["state", "A"])] for file in (data, after)]
    assert not any(now and not before for before, now in zip(*met, strict=True))


def test_tables_are_kept_within_the_classes_of_same() -> None:
    data = file_of(**uneven(2000), region=np.random.default_rng(2).integers(0, 3, 2000))
    plan = qd.DesignedSwap(tables=["A*B*C*D"], same=["region"], **QUICK).plan(data)
    after = plan.apply(data)
    assert plan.moves and "region" not in plan.columns
    assert all(same_table(data, after, [*pair, "region"]) for pair in ("AB", "AC", "AD", "BC", "BD", "CD"))


def test_the_coin_moves_no_more_records_than_allowed() -> None:
    data = file_of(**uneven(2000))
    for most in (2, 4, 20):
        plan = qd.DesignedSwap(keep="1-way", coin=1.0, max_pairs=most, **QUICK).plan(data)
        assert 0 < len(plan.rows) <= most


def test_new_cells_stop_where_room_for_them_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    data, recipe = file_of(**uneven(2000, "ABCDE")), qd.DesignedSwap(new_cells=True, n=5, **QUICK)
    many = recipe.plan(data)
    monkeypatch.setattr(lattice, "NEW_CELLS", 0)
    monkeypatch.setattr(lattice, "MORE_NEW_CELLS", 5)
    few = recipe.prepare(data).draw(recipe.stream())
    assert facts_of(few)["new_cells"] <= 5 < facts_of(many)["new_cells"]
    assert same_table(data, few.apply(data), "AB")


def test_a_chi_square_is_never_made_infinite() -> None:
    data = file_of(**uneven(2000, "ABCDE"))
    plan = qd.DesignedSwap(new_cells=True, loss="chi_square", **QUICK).plan(data)
    assert facts_of(plan)["new_cells"] == 0 and np.isfinite(facts_of(plan)["design_loss"])


def test_more_cells_than_an_index_can_list_are_hashed() -> None:
    random = np.random.default_rng(1)
    others = {f"v{i}": random.integers(0, 3, 600) for i in range(20)}
    data = file_of(**uneven(), **others)
    recipe = qd.DesignedSwap(tables=["A*B*C*D"], keep=["2-way", "*".join(others)], loss="hellinger(A*B*C*D)", **QUICK)
    problem = cube_problem(recipe, data)
    assert problem.first_key[1] > 1 << 31 and 0 < len(problem.cubes.keys) < 1 << 20
    plan = recipe.plan(data)
    assert set(plan.columns) <= set("ABCD") and same_table(data, plan.apply(data), ["A", "v0"])


def test_few_small_cells_move_few_records() -> None:
    plan = qd.DesignedSwap(tables=["Age*Edu*Race*MS"], n=5, seed=1).plan(qd.datasets.cps8d())
    assert facts_of(plan)["small_cells"] == 2 and facts_of(plan)["exposed_after"] == 0
    assert len(plan.rows) <= 60


def test_records_may_come_to_combinations_that_no_protected_table_knows() -> None:
    data = qd.datasets.state(records=3_200)  # nearly every record stands alone in the table of all variables
    plan = qd.DesignedSwap(tables=["county*race*tenure"], n=40, keep="1-way", **QUICK).plan(data)
    f, g = both(data, plan.apply(data), ["county", "race", "tenure"])
    assert len(plan.rows) > 100 and not g[f == 0].any()
    assert facts_of(plan)["exposed_after"] < 0.8 * facts_of(plan)["exposed_before"]


def wide(variables: int, categories: int = 2, n: int = 40) -> Data:
    random = np.random.default_rng(1)
    return file_of(
        **{f"v{i}": np.append(np.arange(categories), random.integers(0, categories, n)) for i in range(variables)}
    )


@pytest.mark.parametrize(
    ("data", "parameters", "words"),
    [
        (file_of(**uneven(names="AB")), {}, "tables of 1 to 1 of the 2 variables"),
        (file_of(**uneven()), {"keep": 4}, "1 to 3 of the 4 variables"),
        (file_of(**uneven()), {"keep": "A*Q"}, "Q"),
        (file_of(**uneven()), {"keep": "logit(Q)"}, "Q"),
        (file_of(**uneven()), {"keep": "A*B*C*D"}, "nothing can move"),
        (file_of(**uneven()), {"keep": "A*A"}, "once"),
        (file_of(**uneven(names="ABCDEFGH")), {"keep": 7}, "no record can move"),
        (wide(63), {"keep": "1-way"}, "up to 62"),
        (wide(30, 10), {}, "cells"),
        (file_of(**uneven()), {"different": ["A"]}, "different"),
        (file_of(**uneven()), {"tables": ["A*B*C", "B*C*D"], "coin": 0.5}, "one protected table"),
        (file_of(**uneven()), {"n": 500}, "more than n = 500"),
    ],
)
def test_what_cannot_be_done_is_refused_in_words(data: Data, parameters: dict[str, object], words: str) -> None:
    with pytest.raises(qd.QuadrilleError) as refused:
        qd.DesignedSwap(**parameters, **QUICK).plan(data)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_rules_are_told_with_the_records_that_meet_them_already(cps8d: qd.Data) -> None:
    plan = qd.DesignedSwap(rules=["Sex=Male & Age=<25"], effort=0.01, seed=1).plan(cps8d)
    told = dict(rule_facts(plan.report(cps8d).details))
    assert told["rules"] == "no record comes to meet one"
    assert re.fullmatch(r"[\d,]+ records meet it already", told["Sex=Male & Age=<25"])


def test_small_cells_of_kept_tables_and_many_exposed_records_are_warned_of(tmp_path: Path) -> None:
    codes = uneven(400, names="ABCDE")
    codes["A"][0] = 5
    with pytest.warns(ReleaseWarning) as told:
        qd.release(file_of(**codes), qd.DesignedSwap(effort=0.01), tmp_path / "r", measures=["exposed"])
    texts = [str(each.message) for each in told]
    assert any("of few records, which anybody can read off" in text for text in texts)
    assert any("records are still exposed" in text for text in texts)


def test_a_kept_table_of_an_earlier_file_can_be_subtracted(cps8d: qd.Data, tmp_path: Path) -> None:
    recipe, first = qd.DesignedSwap(effort=0.01), tmp_path / "first"
    qd.release(cps8d, recipe, first, measures=["exposed"])
    fewer = cps8d.take(np.arange(cps8d.n - 1))
    with pytest.warns(SubtractionWarning, match="subtracting one from the other"):
        qd.release(fewer, recipe, tmp_path / "second", measures=["exposed"], after=first)
