"""Plausibility rules: how they are read, fair draws under them, what they cost and what a plan says of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chisquare

import quadrille as qd
from oracles import admissible, largest, sequential
from quadrille.data import Column, Data
from quadrille.errors import InfeasibleError, InputError, ParameterError
from quadrille.expressions import IDLE, Condition, Rules, Where
from quadrille.papers.boudreau_2005.run import AGES as AGE_GROUPS
from quadrille.papers.boudreau_2005.run import STATUS as GROUPS
from quadrille.papers.boudreau_2005.run import region
from quadrille.randomness import Stream
from quadrille.study.grid import grid
from quadrille.swap.pairing import Forbidden
from rules_oracle import Record, spoiling
from strategies import column, file_of, numbers

RULE = "Age<16 & MS=widowed"
AGES = (10, 14, 20, 40, 70)
STATUS = ("single", "married", "widowed")
DRAWS = 6_000


def people(ages: list[int], status: list[int], **more: Column) -> Data:
    age = Column(qd.Variable("Age", "ordinal", AGES), np.array([AGES.index(a) for a in ages], np.uint8), "Int64")
    ms = Column(qd.Variable("MS", "nominal", STATUS), np.array(status, np.uint8))
    return Data([age, ms, *more.values()])


def young_and_widowed(record: Record) -> bool:
    return record["Age"] < 16 and record["MS"] == "widowed"


SMALL = people([10, 14, 20, 40, 70, 70, 10, 20], [0, 0, 1, 2, 2, 0, 2, 1])
"""Eight records; the one but last is widowed and under 16 already."""


def test_comparisons_are_read_and_old_conditions_keep_their_meaning() -> None:
    where = Where.parse("Age<16 & Hours >= 40 & `a<b`>'<25' & Age=<25 & Age!=>55 & Over>60=yes & `Age<`=15")
    assert where.conditions == (
        Condition("Age", ("16",), sign="<"),
        Condition("Hours", ("40",), sign=">="),
        Condition("a<b", ("<25",), sign=">"),
        Condition("Age", ("<25",)),
        Condition("Age", (">55",), negated=True),
        Condition("Over>60", ("yes",)),
        Condition("Age<", ("15",)),
    )


@pytest.mark.parametrize("text", ["Age<", "<16", "Age<16|17", "Age<>16", "Age=<", "Age<=", "Age<16 & "])
def test_half_a_comparison_is_refused_or_read_as_the_equality_it_was(text: str) -> None:
    if text == "Age=<":
        assert Where.parse(text).conditions == (Condition("Age", ("<",)),)
        return
    with pytest.raises(InputError, match="not understood"):
        Where.parse(text)


def compared(sign: str) -> dict[str, str]:
    """Five records, the last two missing but for the last number: 1 where the comparison holds."""
    groups = qd.Variable("G", "ordinal", ("low", "middle", "high"), labels=("L", "M", "H"), missing=("?",))
    data = Data(
        [
            Column(groups, np.array([0, 1, 2, 3, 4], np.uint8), nullable=True),
            Column(qd.Variable("Y", "ordinal", (1, 5, 9), missing=(-9,)), np.array([0, 1, 2, 3, 4], np.uint8), "Int64",
                   nullable=True),
            numbers("x", [1.0, 2.5, 4.0, np.nan, -1.0]),
        ]
    )  # fmt: skip
    texts = {"G": f"G{sign}M", "Y": f"Y{sign}5", "between": f"Y{sign}6", "x": f"x{sign}2.5"}
    return {name: "".join(str(int(met)) for met in Where.parse(text).met(data)) for name, text in texts.items()}


def test_comparisons_follow_the_order_of_categories_and_numbers_and_missing_is_on_no_side() -> None:
    assert compared("<") == {"G": "10000", "Y": "10000", "between": "11000", "x": "10001"}
    assert compared("<=") == {"G": "11000", "Y": "11000", "between": "11000", "x": "11001"}
    assert compared(">") == {"G": "00100", "Y": "00100", "between": "00100", "x": "00100"}
    assert compared(">=") == {"G": "01100", "Y": "01100", "between": "00100", "x": "01100"}


def test_numbers_are_named_one_by_one_too_and_an_empty_one_is_empty() -> None:
    data = Data([numbers("x", [1.0, 2.5, np.nan])])
    assert Where.parse("x=1|2.5").met(data).tolist() == [True, True, False]
    assert Where.parse("x!=1").met(data).tolist() == [False, True, True]
    assert Where.parse("x=''").met(data).tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("Aeg<16 & MS=widowed", "no column 'Aeg' in the rule 'Aeg<16 & MS=widowed' of RandomSwap. Did you mean: 'Age'"),
        ("Age<16 & MS=widower", "column 'MS' does not have"),
        ("MS<widowed", "'MS', whose categories have no order"),
        ("Age<old", "holds numbers, with something that is none"),
        ("MS=single|married|widowed", "Every record meets the rule"),
        ("Age<100", "Every record meets the rule"),
    ],
)
def test_a_rule_that_does_not_fit_the_file_is_refused(rule: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        qd.RandomSwap(["MS"], pairs=1, rules=[rule], seed=1).plan(SMALL)
    assert words in str(caught.value)
    with pytest.raises(InputError):
        qd.ControlledSwap(["Age"], targets=0.2, rules=[rule], seed=1).plan(SMALL)


@pytest.mark.parametrize("rules", [[""], ["Age"], [3], 3, None, {"a": 1}, [RULE, f" {RULE} "], ["Age<16 &"]])
@pytest.mark.parametrize("method", [qd.RandomSwap, qd.ControlledSwap, qd.PermutationSwap])
def test_what_is_no_list_of_rules_is_refused_when_the_recipe_is_made(method: type, rules: object) -> None:
    with pytest.raises(ParameterError, match="'rules' parameter"):
        method(["MS"], **{"targets" if method is qd.ControlledSwap else "rate": 0.2}, rules=rules)


@pytest.mark.parametrize("more", [{"kind": "pairs"}, {"kind": "cycles"}, {"kind": "across", "groups": "Age"}])
def test_a_permutation_refuses_rules_and_says_why(more: dict[str, str]) -> None:
    with pytest.raises(ParameterError, match="takes no 'rules': every permutation has the same chance"):
        qd.PermutationSwap(["MS"], rate=0.2, rules=[RULE], **more)


def test_recipes_without_rules_are_what_they_were_and_those_with_some_survive_json() -> None:
    plain = qd.RandomSwap(["Edu"], rate=0.02, seed=7)
    assert plain.to_json() == '{"method":"RandomSwap","rate":0.02,"seed":7,"swap":["Edu"],"version":1}'
    assert qd.RandomSwap(["Edu"], rate=0.02, rules=[], seed=7) == plain
    assert "rules" not in qd.ControlledSwap(["Edu"], targets=0.02, seed=7).to_json()
    assert "rules" not in qd.PermutationSwap(["Edu"], rate=0.02, rules=[], seed=7).to_json()
    one = qd.RandomSwap(["Edu"], rate=0.02, rules=f" {RULE}", seed=7)
    assert one.rules == (RULE,)
    assert qd.Recipe.from_json(one.to_json()) == one


@pytest.mark.parametrize("sampler", ["first-uniform", "pair-uniform"])
@pytest.mark.parametrize("swap", [["Age"], ["MS"], ["Age", "MS"]])
def test_under_rules_plans_occur_with_their_sequential_probabilities(swap: list[str], sampler: str) -> None:
    recipe = qd.RandomSwap(swap, pairs=2, differ="any", sampler=sampler, rules=[RULE], seed=0)
    allowed = admissible(SMALL, recipe, swap) & ~spoiling(SMALL, [young_and_widowed], swap)
    expected = sequential(allowed, 2, sampler)
    drawer = recipe.prepared(SMALL)
    plans = (drawer.draw(Stream.of(seed, recipe.design_json())) for seed in range(DRAWS))
    found = Counter(frozenset(frozenset(pair) for pair in plan.pairs.tolist()) for plan in plans)
    assert set(found) <= set(expected)
    counts = [DRAWS * chance for chance in expected.values()]
    assert min(counts) > 5
    # fixed seeds; 6 tests at p > 1e-3
    assert chisquare([found[plan] for plan in expected], counts).pvalue > 1e-3


def random_people(number: int) -> Data:
    random = np.random.default_rng(number)
    n = int(random.integers(5, 11))
    return people(random.choice(AGES, n).tolist(), random.integers(0, 3, n).tolist())


def test_as_many_pairs_as_the_rules_allow_are_always_found_and_one_more_is_refused() -> None:
    for number in range(90):
        data = random_people(number)
        swap = [["Age"], ["MS"], ["Age", "MS"]][number % 3]
        differ = ["all", "any", "none"][number // 3 % 3]
        recipe = qd.RandomSwap(swap, pairs=1, differ=differ, rules=[RULE], seed=number)
        allowed = admissible(data, recipe, swap) & ~spoiling(data, [young_and_widowed], swap)
        most = largest(allowed)
        if most:
            pairs = replace(recipe, pairs=most).plan(data).pairs
            assert allowed[pairs[:, 0], pairs[:, 1]].all()
        with pytest.raises(InfeasibleError) as caught:
            replace(recipe, pairs=most + 1).plan(data)
        assert (caught.value.maximum, caught.value.exact) == (most, True), number


def test_an_error_names_the_rules_and_tells_what_is_possible_without_them() -> None:
    data = people([10, 10, 40, 40, 40], [0, 0, 2, 2, 2])
    with pytest.raises(InfeasibleError) as caught:
        qd.RandomSwap(["MS"], pairs=2, rules=[RULE], seed=1).plan(data)
    assert f"no record made to meet {RULE}" in str(caught.value)
    assert "the rules exclude every pair. Without them at most 2 pairs are possible" in str(caught.value)
    data = people([10, 10, 40, 40, 40], [0, 0, 2, 2, 1])
    with pytest.raises(InfeasibleError, match=r"maximum is 1\..*Without the rules at most 2 are possible") as caught:
        qd.RandomSwap(["MS"], pairs=2, rules=[RULE], seed=1).plan(data)
    assert caught.value.maximum == 1


def test_records_that_break_a_rule_before_are_counted_and_may_stay() -> None:
    facts = qd.RandomSwap(["MS"], pairs=1, rules=[RULE, "MS=single & Age=70"], seed=3).plan(SMALL).details.facts
    assert [row["broken_before"] for row in facts["rules"]] == [1, 1]
    both = people([10, 10, 10, 14], [2, 2, 0, 0])
    plan = qd.RandomSwap(["MS"], pairs=1, differ="none", rules=[RULE], seed=3).plan(both)
    assert set(map(frozenset, plan.pairs.tolist())) < {frozenset((0, 1)), frozenset((2, 3))}


def test_a_rule_about_columns_that_stay_excludes_nothing_and_says_so() -> None:
    plan = qd.RandomSwap(["MS"], pairs=1, rules=["Age=10"], seed=3).plan(SMALL)
    (row,) = plan.report(SMALL).details["rules"]
    assert row == {"rule": "Age=10", "broken_before": 2, "moved": "", "pairs_excluded": 0, "remark": IDLE}
    assert plan.details.facts["pairs_excluded"] == 0
    controlled = qd.ControlledSwap(["Age"], targets=0.2, rules=["MS=single"], seed=3).plan(SMALL)
    assert controlled.details.facts["rules"][0]["remark"] == IDLE


def test_hundreds_of_rules_are_obeyed() -> None:
    random = np.random.default_rng(5)
    data = file_of(A=random.integers(0, 30, 300), B=random.integers(0, 30, 300))
    cells = random.choice(900, 120, replace=False)
    rules = [f"A=A{cell // 30} & B=B{cell % 30}" for cell in cells]
    plan = qd.RandomSwap(["A"], pairs=60, rules=rules, seed=1).plan(data)
    assert not any(Rules.of(data, rules, "").created(plan))
    free = qd.RandomSwap(["A"], pairs=60, seed=1).plan(data)
    assert sum(Rules.of(data, rules, "").created(free)) > 5
    forbidden = {(cell // 30, cell % 30) for cell in cells.tolist()}
    a, b = data["A"].values.tolist(), data["B"].values.tolist()
    broken = [[(a[j], b[i]) in forbidden and a[i] != a[j] for j in range(300)] for i in range(300)]
    either = np.array(broken) | np.array(broken).T
    assert plan.details.facts["pairs_excluded"] == int(np.triu(either, 1).sum())


def test_one_by_one_each_variable_is_judged_on_what_those_before_it_have_left() -> None:
    random = np.random.default_rng(3)
    data = people(random.choice(AGES, 400).tolist(), random.integers(0, 3, 400).tolist())
    rules, free_violations = Rules.of(data, [RULE], ""), 0
    for seed in range(10):
        recipe = qd.RandomSwap(["Age", "MS"], rate=0.4, order="one-by-one", rules=[RULE], seed=seed)
        plan = recipe.plan(data)
        assert rules.created(plan) == (0,)
        assert recipe.plan(data) == plan
        assert [row["moved"] for row in plan.details.facts["rules"]] == ["Age", "MS"]
        free_violations += rules.created(replace(recipe, rules=[]).plan(data))[0]
    assert free_violations > 100


def region_one() -> Data:
    """Boudreau's Region I, record by record: 907,999 people, none under 16 other than never married."""
    counts = region("I").counts
    age, status = (np.repeat(codes.ravel(), counts.ravel()).astype(np.uint8) for codes in np.indices(counts.shape))
    return Data(
        [Column(qd.Variable("Age", "ordinal", AGE_GROUPS), age), Column(qd.Variable("MS", "nominal", GROUPS), status)]
    )


def test_in_region_one_of_boudreau_nobody_under_16_becomes_widowed() -> None:
    """The paper's own table after swapping shows 541 of them."""
    data, rule = region_one(), "Age<16-35 & MS=widowed"
    assert region("I").swapped[0, -1] == 541
    children, widowed = region("I").counts[0].sum(), region("I").counts[1:, -1].sum()
    for swap, sampler in ((["Age"], "first-uniform"), (["MS"], "pair-uniform")):
        recipe = qd.RandomSwap(swap, rate=0.05, sampler=sampler, rules=[rule], seed=1)
        plan, free = recipe.plan(data), replace(recipe, rules=[]).plan(data)
        rules = Rules.of(data, [rule], "")
        assert (rules.before, rules.created(plan)) == ((0,), (0,))
        assert 400 < rules.created(free)[0] < 1000
        assert plan.details.facts["pairs_excluded"] == children * widowed
        scores = [qd.score(data, each, ["hellinger"])["hellinger"] for each in (free, plan)]
        assert 0 < scores[1] < scores[0]


def test_forbidden_tells_of_two_records_whether_they_may_exchange_columns() -> None:
    rules = Rules.of(SMALL, [RULE], "DesignedSwap")
    for moved in (["Age"], ["MS"], ["Age", "MS"]):
        found = Forbidden.of(rules, moved)
        asked = found.table[found.pattern[:, None], found.pattern[None, :]]
        assert np.array_equal(asked, spoiling(SMALL, [young_and_widowed], moved))


def survey(seed: int, n: int = 120) -> Data:
    random = np.random.default_rng(seed)
    zone = column("Zone", random.integers(0, 2, n), 2, kind="ordinal")
    years = column("Years", random.integers(0, 3, n), 3, kind="ordinal")
    weight = numbers("w", random.integers(1, 6, n), role="weight")
    return people(random.choice(AGES, n).tolist(), random.integers(0, 3, n).tolist(), z=zone, y=years, w=weight)


def young_and_long(record: Record) -> bool:
    return record["Age"] < 16 and record["Years"] == "Years2"


CONTROLLED: dict[str, tuple[list[str], dict[str, list[str]] | None]] = {
    "one variable": (["Age"], None),
    "with a linked one": (["Age"], {"Age": ["Years"]}),
    "linked to another that may agree": (["Years", "Age"], {"Years": ["MS"]}),
}


@pytest.mark.parametrize("matching", ["greedy", "optimal"])
@pytest.mark.parametrize("name", CONTROLLED)
def test_targets_and_donors_that_the_rules_exclude_are_counted_and_never_paired(name: str, matching: str) -> None:
    swap, linked = CONTROLLED[name]
    rules, tests = [RULE, "Age<16 & Years=Years2"], [young_and_widowed, young_and_long]
    for seed in range(4):
        data = survey(seed)
        recipe = qd.ControlledSwap(
            swap, targets=0.2, boundary=["Zone"], linked=linked, matching=matching, rules=rules, seed=seed
        )
        plan = recipe.plan(data)
        assert Rules.of(data, rules, "").created(plan) == (0, 0)
        spoils = spoiling(data, tests, swap, linked)
        assert not spoils[plan.pairs[:, 0], plan.pairs[:, 1]].any()
        target = np.isin(np.arange(data.n), plan.details.rows["targets"])
        zone = data["Zone"].values
        elsewhere = np.logical_or.reduce([data[v].values[:, None] != data[v].values for v in swap])
        could = target[:, None] & ~target & (zone[:, None] == zone) & elsewhere
        assert plan.details.facts["pairs_without_rules"] == int(could.sum())
        assert plan.details.facts["pairs_excluded"] == int((could & spoils).sum()) > 0
        for row, test in zip(plan.details.facts["rules"], tests, strict=True):
            assert row["pairs_excluded"] == int((could & spoiling(data, [test], swap, linked)).sum())


def test_a_target_whom_the_rules_leave_nobody_is_left_as_it_is_and_listed_apart() -> None:
    must = column("must", [1, 0, 0, 0], 2)
    must = Column(qd.Variable("must", "nominal", (0, 1)), must.values, "Int64")
    data = people([10, 40, 40, 70], [0, 2, 2, 2], must=must)
    recipe = qd.ControlledSwap(["Age"], targets=0.0, must="must", rules=["Age<16 & MS=widowed"], seed=1)
    plan = recipe.plan(data)
    assert plan.details.facts["reasons"] == {"the rules exclude every donor in another cell of its zone": 1}
    assert plan.pairs is None or not len(plan.pairs)
    with pytest.raises(InfeasibleError, match="The rules, Age<16 & MS=widowed, leave 1 of them nobody"):
        replace(recipe, strict=True).plan(data)


def test_a_grid_takes_rules_as_one_list_or_several_and_checks_their_columns_first(tmp_path: object) -> None:
    assert len(grid(qd.RandomSwap, swap=[["MS"]], pairs=[1, 2], rules=[RULE, "Age=10"], seed=1)) == 2
    assert len(grid(qd.RandomSwap, swap=[["MS"]], pairs=1, rules=[[RULE], [RULE, "Age=10"], []], seed=1)) == 3
    with pytest.raises(InputError, match="no column 'Aeg' in 'rules' of RandomSwap"):
        qd.search(
            SMALL, grid(qd.RandomSwap, swap=[["MS"]], pairs=1, rules=["Aeg=10"], seed=1), ["hellinger"],
            out=f"{tmp_path}/study", progress=False,
        )  # fmt: skip
