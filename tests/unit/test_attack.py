"""The intruder's view of a release: what is asked, what is refused, and small files worked out by hand."""

from __future__ import annotations

import json
import sys
from itertools import product

import numpy as np
import polars as pl
import pytest
from scipy.stats import poisson

import quadrille as qd
from quadrille.attack.attack import Attack
from quadrille.attack.attribute import IN_ALL
from quadrille.attack.channel import FAR, Draft, Rehearsal, channel_of, rehearse, size_class
from quadrille.attack.genuine import chance_genuine, chance_left
from quadrille.attack.input import (
    FEW_ROUNDS,
    ROUNDS,
    Finding,
    KeyTable,
    attack_input,
    auc,
    feasible_way,
    guessing_fit,
    hellinger,
    moves_of,
    released_fit,
    surest,
)
from quadrille.attack.linkage import linkage
from quadrille.attack.undo import kept_places, rows, undo_simulated, undo_table, weight_scores
from quadrille.errors import InputError, ParameterError, QuadrilleError
from quadrille.measure.population import all_margins, fit
from quadrille.present import Alert, Text
from quadrille.present.scores import attack as blocks
from strategies import column, file_of, numbers, rows_of

DESIGNED = qd.Recipe.from_json('{"method":"DesignedSwap","seed":7,"version":1}')
SWAP = qd.RandomSwap(["Edu", "MS"], rate=0.1, seed=1)


def findings(attack: Attack, section: str) -> dict[str, Finding]:
    return {finding.quantity: finding for finding in attack[section].findings}


@pytest.fixture(scope="module")
def found(cps8d: qd.Data) -> Attack:
    return qd.attack(cps8d, SWAP)


def exchange(data: qd.Data, column: str, *pairs: tuple[int, int]) -> qd.Plan:
    return qd.Plan.of_pairs(data, [column], np.array(pairs))


def test_a_recipe_its_plan_and_its_file_in_order_are_the_same_release(cps8d: qd.Data, found: Attack) -> None:
    plan = SWAP.plan(cps8d)
    for release in (plan, plan.apply(cps8d)):
        assert qd.attack(cps8d, release, recipe=SWAP).frame().equals(found.frame())


def test_a_file_in_another_order_leaves_out_what_needs_to_know_whose_row_is_which(
    cps8d: qd.Data, found: Attack
) -> None:
    order = np.random.default_rng(1).permutation(cps8d.n)
    other = qd.attack(cps8d, rows_of(SWAP.plan(cps8d).apply(cps8d), order), recipe=SWAP.changed(seed=2))
    assert other["linkage"].findings == () and "not aligned" in other["linkage"].reason
    for section in ("genuine", "attribute"):
        assert other[section] == found[section]
    row = other.frame().filter(attack="linkage").to_dicts()
    assert [(each["quantity"], each["value"]) for each in row] == [("not made", None)]


def test_the_recipe_of_a_shuffled_file_tells_whose_row_is_which(cps8d: qd.Data, found: Attack) -> None:
    order = np.random.default_rng(1).permutation(cps8d.n)
    assert qd.attack(cps8d, rows_of(SWAP.plan(cps8d).apply(cps8d), order), recipe=SWAP).frame().equals(found.frame())


def test_a_recipe_that_does_not_fit_the_file_tells_nothing_of_its_rows(cps8d: qd.Data) -> None:
    order = np.random.default_rng(1).permutation(cps8d.n)
    too_many = qd.RandomSwap(["Edu"], pairs=cps8d.n, seed=1)
    with pytest.raises(qd.QuadrilleError):
        too_many.plan(cps8d)
    other = qd.attack(cps8d, rows_of(cps8d, order), ["Edu", "Sex"], recipe=too_many)
    assert "not aligned" in other["linkage"].reason


def test_the_result_is_a_frame_a_dictionary_for_json_and_a_text(found: Attack) -> None:
    assert found.frame().columns == ["attack", "quantity", "value", "before", "chance", "count", "note"]
    document = json.loads(json.dumps(found.as_dict()))
    assert [section["attack"] for section in document["sections"]] == [section.attack for section in found.sections]
    assert document["sections"][0]["findings"][0]["value"] == pytest.approx(1435.55, abs=0.005)
    assert document["version"] == qd.__version__ and f"Quadrille {qd.__version__}" in str(blocks(found))
    assert str(found).startswith("Attack on 48,842 persons by 8 keys; the intruder knows")
    assert "expected right links: 1,435.6 (before 1,695.0, chance 1)" in str(found)
    with pytest.raises(InputError, match=r"no attack 'linkag'.*Did you mean: 'linkage'"):
        found["linkag"]


def test_every_attack_that_was_made_has_a_story_and_advice(cps8d: qd.Data) -> None:
    for section in qd.attack(cps8d, DESIGNED).sections:
        assert section.title and section.story.endswith(".")
        assert bool(section.findings) != bool(section.reason)
        assert not section.findings or section.advice.endswith(".")


def test_what_he_does_not_know_he_cannot_use(cps8d: qd.Data) -> None:
    attack = qd.attack(cps8d, SWAP, knows="file", target="AnnSal")
    links = findings(attack, "linkage")["expected right links, by the chances of the design"]
    assert links.value is None and "who knows the design" in links.note
    plan = qd.attack(cps8d, SWAP.plan(cps8d), target="AnnSal")
    assert "needs the recipe" in findings(plan, "genuine")["uniques: genuine ones told apart (AUC)"].note
    assert "who knows the design" in qd.attack(cps8d, DESIGNED, knows="file")["undo"].reason
    assert "designed swaps" in attack["undo"].reason and "designed swaps" in attack["rows"].reason


def test_a_swap_without_closed_form_falls_back_to_the_file(cps8d: qd.Data) -> None:
    one_by_one = qd.RandomSwap(["Edu", "MS"], rate=0.02, order="one-by-one", seed=1)
    links = findings(qd.attack(cps8d, one_by_one), "linkage")
    assert links["expected right links"].value is not None
    last = links["expected right links, by the chances of the design"]
    assert last.value is None and "one by one" in last.note


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 1}, "'n' parameter of attack must be a whole number of 2 or more"),
        ({"knows": "seed"}, "'knows' parameter of attack must be"),
        ({"keys": ["Educ"]}, "no column 'Educ' in 'keys' of attack.*Did you mean: 'Edu'"),
        ({"target": "Salary"}, "no column 'Salary' in 'target' of attack"),
        ({"keys": ["Edu"], "target": "Edu"}, "only key"),
        ({"keys": ["Edu", "MS"], "columns": ["Edu"]}, "both in 'keys' and in 'columns'"),
        ({"recipe": SWAP}, "two recipes"),
    ],
)
def test_bad_wishes_are_refused(options: dict[str, object], message: str, cps8d: qd.Data) -> None:
    with pytest.raises(QuadrilleError, match=message):
        qd.attack(cps8d, SWAP, **options)  # type: ignore[arg-type]


def test_a_frame_or_a_file_without_the_keys_is_refused(cps8d: qd.Data) -> None:
    with pytest.raises(QuadrilleError, match="needs Data"):
        qd.attack(cps8d, cps8d.frame())  # type: ignore[arg-type]
    fewer = qd.from_frame(cps8d.frame().drop("Edu"))
    with pytest.raises(InputError, match="no column 'Edu' in the second file"):
        qd.attack(cps8d, fewer)
    with pytest.raises(ParameterError, match="only key"):
        qd.attack(cps8d, SWAP, keys=["Edu"], target=["Edu"])


def test_numbers_are_no_keys() -> None:
    with pytest.raises(InputError, match="'age' is numeric, and an attack needs categories"):
        qd.attack(qd.datasets.adult(), qd.RandomSwap(["race"], rate=0.01, seed=1), keys=["age", "race"])


def test_no_value_of_the_data_is_in_any_message() -> None:
    random = np.random.default_rng(1)
    data = qd.Data([column(f"V{i}", random.integers(0, 3, 300)) for i in range(4)])
    recipe = qd.DesignedSwap(tables=[["V0", "V1", "V2", "V3"]], n=3, seed=1)
    for attack in (qd.attack(data, qd.RandomSwap(["V0"], rate=0.1, seed=1)), qd.attack(data, recipe)):
        text = json.dumps(attack.as_dict()) + repr(attack) + str(attack) + str(blocks(attack))
        assert not any(f"V{i}{value}" in text for i, value in product(range(4), range(3)))
        assert isinstance(blocks(attack)[1], Alert) and "confidential" in blocks(attack)[1].text


def test_the_blocks_show_what_was_not_made(cps8d: qd.Data, found: Attack) -> None:
    texts = [block.text for block in blocks(found) if isinstance(block, Text)]
    assert any(text.startswith("Not made: is an attack on designed swaps") for text in texts)


def test_a_person_without_a_fitting_row_is_given_the_nearest_one() -> None:
    scale = column("A", [0, 1, 3, 3, 0, 1], 4, kind="ordinal")
    data = qd.Data([scale, column("B", [0, 1, 0, 1, 1, 0])])
    plan = exchange(
        data, "A", (0, 4), (2, 1)
    )  # A0 B0 <-> A0 B1 changes nothing; A3 B0 and A1 B1 become A1 B0 and A3 B1
    links = findings(qd.attack(data, plan, keys=["A", "B"]), "linkage")
    # After: rows 0 and 4 as before, row 1 is (3, 1), row 2 is (1, 0), row 3 (3, 1), row 5 (1, 0).
    assert links["expected right links"].value == pytest.approx(1 + 1 + 1 / 2 + 1 / 2)
    # (1, 1) of row 1 is gone; nearest by 1/3 is (0, 1), that of row 4. (3, 0) of row 2 is gone; nearest are the two
    # rows (1, 0), 2/3 away, row 2 among them.
    nearest = links["expected right links, the nearest row where none fits"]
    assert (nearest.value, nearest.count) == (pytest.approx(3 + 0 + 1 / 2), 2)


def test_who_finds_no_row_learns_how_few_there_were() -> None:
    data = file_of(A=[0, 1, 1, 2, 2, 2, 2], B=[0, 0, 0, 1, 1, 1, 0])
    attack = qd.attack(data, exchange(data, "B", (0, 3)), keys=["A", "B"], n=2)  # (0, 0) is gone, (0, 1) new
    gone = findings(attack, "linkage")["combinations that no row has any more: those of one person"]
    assert (gone.value, gone.chance, gone.count) == (1, 2 / 4, 1), "(0, 0) and (2, 0) were alone"
    attack = qd.attack(data, exchange(data, "A", (1, 3), (2, 4)), keys=["A", "B"], n=2)  # (1, 0) had two
    gone = findings(attack, "linkage")["combinations that no row has any more: those of fewer than 2 persons"]
    assert (gone.value, gone.count, gone.note) == (0, 1, "2 persons are in these combinations")
    assert "Finding no row tells something" in attack["linkage"].story
    nothing = qd.attack(data, qd.Plan([], data=data), keys=["A", "B"])
    assert not any("no row has" in quantity for quantity in findings(nothing, "linkage"))


def test_the_best_row_by_the_design_is_that_of_the_largest_chance_per_row(cps8d: qd.Data) -> None:
    recipe = qd.PermutationSwap(["Edu"], rate=0.6, within=["Sex"], seed=1)
    keys = ("Age", "Sex", "Edu")
    given = attack_input(cps8d, recipe, keys, None, 3, "design", None, None)
    known = moves_of(given)
    assert not isinstance(known, str)
    table, right = given.table, 0.0
    matrix = known.reach[known.source][:, known.goal] * (known.stay[:, None] == known.stay)
    assert matrix.sum(axis=1) == pytest.approx(1), "everybody is released as something"
    for x in range(table.cells):
        score = matrix[x] / table.g
        best = np.flatnonzero(np.isclose(score, score.max(), rtol=1e-12))
        moved = sum(int(((table.before == x) & (table.after == z)).sum()) for z in best)
        right += moved / table.g[best].sum()
    links = findings(qd.attack(cps8d, recipe, keys=list(keys)), "linkage")
    assert links["expected right links, by the chances of the design"].value == pytest.approx(right)
    arrivals = matrix.T @ table.g - np.diag(matrix) * table.g
    assert known.arrivals(table) == pytest.approx(arrivals)


def test_arrivals_agree_with_draws(cps8d: qd.Data) -> None:
    keys, draws = ("Edu", "MS", "Sex"), 40
    came = []
    for seed in range(draws):
        recipe = qd.RandomSwap(["Edu", "MS"], rate=0.2, seed=seed)
        table = attack_input(cps8d, recipe, keys, None, 3, "design", None, None).table
        came.append(table.g - table.stayed)
    known = moves_of(
        attack_input(cps8d, qd.RandomSwap(["Edu", "MS"], rate=0.2, seed=0), keys, None, 3, "design", None, None)
    )
    assert not isinstance(known, str)
    matrix = known.reach[known.source][:, known.goal] * (known.stay[:, None] == known.stay)
    expected = matrix.T @ table.f - np.diag(matrix) * table.f
    mean, error = np.mean(came, axis=0), np.std(came, axis=0, ddof=1) / draws**0.5
    assert (np.abs(mean - expected) <= 4 * error + 0.005 * expected).all()  # the flows are those of a mean field


def test_the_chance_of_a_unique_needs_no_original(cps8d: qd.Data) -> None:
    released = SWAP.plan(cps8d).apply(cps8d)
    given = attack_input(cps8d, released, None, None, 3, "design", None, SWAP)
    alone = attack_input(released, released, None, None, 3, "design", None, SWAP)
    mine, theirs = chance_genuine(given), chance_genuine(alone)
    assert isinstance(mine, np.ndarray) and np.allclose(mine, theirs)


def test_persons_still_there_and_gone_are_told_apart() -> None:
    data = file_of(A=[0, 1, 2, 2, 2, 2], B=[0, 1, 0, 0, 1, 1], T=[0, 1, 0, 1, 0, 1])
    plan = exchange(data, "A", (0, 4))  # (0, 0) goes to (0, 1), so the keys of person 0 are gone
    alone = "T: alone with the other keys"
    found = findings(qd.attack(data, plan, keys=["A", "B"], target=["T"]), "attribute")
    values = [
        found[f"{alone}, {what}"].value for what in ("still there and inferred right", "still there and not", "gone")
    ]
    assert values == pytest.approx([1 / 2, 0, 1 / 2]), "person 1 is inferred right"
    assert found[f"{alone}, right among those still there"].value == 1
    claims = found["T: right among claims"]  # of persons 1, 4 and 5; that of 4 is of another's value
    assert (claims.count, claims.value) == (3, pytest.approx(2 / 3)) and "all targets" not in " ".join(found)


def test_the_value_of_somebody_who_is_gone_is_guessed_from_a_fit_to_the_release() -> None:
    """T follows A, so the fit knows T of (1, 0, 0), whom no row shows any more; the commonest value is wrong."""
    data = file_of(
        A=[1, 1, 1, 0, 0, 0, 0, 0, 0],
        B=[0, 1, 1, 0, 0, 0, 0, 1, 1],
        C=[0, 0, 1, 0, 0, 1, 1, 1, 0],
        T=[1, 1, 1, 0, 0, 0, 0, 0, 0],
    )
    attack = qd.attack(data, exchange(data, "C", (0, 5)), keys=["A", "B", "C"], target="T")
    found, alone = findings(attack, "attribute"), "T: alone with the other keys"
    gone, guessed = found[f"{alone}, gone"], found[f"{alone}, gone: guessed right"]
    assert (gone.value, guessed.value, guessed.chance, guessed.count) == (1 / 5, 1, 0, 1)
    there, in_all = found[f"{alone}, still there and inferred right"], found[f"{alone}, {IN_ALL}"]
    assert (there.value, in_all.value, in_all.chance) == pytest.approx((4 / 5, 1, 2 / 5))
    assert there.chance == pytest.approx((2 * 3 / 9 + 2 * 6 / 9) / 5), "on the same base: to be there, and guessed"
    assert found["gone: the 1 surest guesses right"].value == 1
    assert "a fit to the release guesses 1 right" in attack["attribute"].story


def test_claims_are_sorted_by_what_a_fit_to_the_release_makes_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten combinations of 12 persons each; the fit is surest of the first. A person of the last four is another's."""
    data = file_of(A=np.repeat(np.arange(10), 12), B=np.zeros(120, int), T=np.repeat([0, 1], 60))
    codes = data["A"].values.copy()
    codes[[72, 84, 96, 108]] = [0, 1, 2, 3]  # of T = 1 to combinations of T = 0, from which as many come
    codes[[0, 12, 24, 36]] = [6, 7, 8, 9]
    mixed = data.with_values({"A": (np.arange(120), codes)})
    fitted = np.stack([np.linspace(0.1, 1, 10), np.linspace(0.1, 1, 10)[::-1]], axis=1)[:, None, :]
    monkeypatch.setattr(sys.modules["quadrille.attack.attribute"], "guessing_fit", lambda _: fitted)
    found = findings(qd.attack(mixed, data, keys=["A", "B"], target=["T"], knows="file"), "attribute")
    claims = found["T: right among claims"]
    assert (claims.count, claims.value) == (120, pytest.approx(112 / 120))
    half = found["claims of one value, the surest half: right"]
    # The fit calls 0 and 9, 1 and 8, ... the likeliest where it has most of their value: T = 0 of 4, T = 1 of 5, ...
    order = sorted(range(10), key=lambda a: (-fitted[a, 0, a // 5] / fitted[a, 0].sum(), a))
    right = {a: 11 if a in (0, 1, 2, 3, 6, 7, 8, 9) else 12 for a in range(10)}
    assert (half.count, half.value) == (60, pytest.approx(sum(right[a] for a in order[:5]) / 60))
    tenth = found["claims of one value, the least sure tenth: right"]
    assert (tenth.count, tenth.value, tenth.chance) == (12, pytest.approx(right[order[-1]] / 12), 0.5)
    assert "of all claims 93.33 % are right" in tenth.note


def test_doubt_is_not_shared_by_all_claims(found: Attack) -> None:
    claims = {quantity: each.value or 0 for quantity, each in findings(found, "attribute").items()}
    sure, doubtful = (claims[f"claims of one value, the {part}: right"] for part in ("surest half", "least sure tenth"))
    assert sure > 0.999 and doubtful < 0.96
    assert "That is no doubt that all claims share" in found["attribute"].story


def test_one_value_that_makes_nearly_all_claims_is_pointed_out() -> None:
    data = file_of(A=[*range(20), 20, 20], T=[0] * 20 + [0, 1])
    found = findings(qd.attack(data, qd.Plan([], data=data), keys=["A"], target=["T"]), "attribute")
    assert found["T: right among claims"].note.startswith("one value makes 100 % of the claims")


def test_a_target_that_a_designed_swap_keeps_is_pointed_out(cps8d: qd.Data) -> None:
    keys = [name for name in cps8d.columns if name != "AnnSal"]
    margin = "*".join(keys)
    outside = qd.DesignedSwap(tables=[keys], effort=0.02, seed=1)
    kept_by_loss = qd.DesignedSwap(tables=[keys], loss=f"hellinger({margin}*AnnSal)", effort=0.02, seed=1)
    for recipe, inside in ((outside, False), (kept_by_loss, True)):
        advice = qd.attack(cps8d, recipe, keys=keys, target="AnnSal")["attribute"].advice
        assert ("AnnSal is inside the tables or the loss" in advice) == inside


def test_a_fit_has_the_margins_and_no_more() -> None:
    random = np.random.default_rng(1)
    table = random.integers(1, 20, (3, 2, 4)).astype(float)
    pairs = all_margins(3, 2)
    fitted = fit(table, pairs, 200)
    for axes in ((0,), (1,), (2,)):
        assert fitted.sum(axis=axes) == pytest.approx(table.sum(axis=axes))
    log = np.log(fitted)
    third = log[1:, 1:, 1:] - log[:-1, 1:, 1:] - log[1:, :-1, 1:] - log[1:, 1:, :-1]
    third += log[:-1, :-1, 1:] + log[:-1, 1:, :-1] + log[1:, :-1, :-1] - log[:-1, :-1, :-1]
    assert third == pytest.approx(0, abs=1e-8)
    assert fit(table, [(0, 1, 2)], 1) == pytest.approx(table)


def test_scores_that_tell_apart() -> None:
    truth = np.array([True, False, True, False])
    assert auc(np.array([3.0, 1.0, 3.0, 2.0]), truth) == 1
    assert auc(np.array([1.0, 1.0, 1.0, 1.0]), truth) == 0.5
    assert auc(np.array([1.0, 2.0, 3.0, 2.0]), truth) == 0.5
    assert auc(np.array([1.0, 2.0]), np.array([True, True])) is None
    assert surest(np.array([1.0, 4.0, 3.0, 2.0]), truth, 2) == 0.5


def test_undoing_keeps_the_total_the_kept_tables_and_what_is_surely_genuine(cps8d: qd.Data) -> None:
    table = attack_input(cps8d, DESIGNED, None, None, 3, "design", None, None).table
    released, before = table.spread(table.g), table.spread(table.f)
    plain = undo_table(released, 3)
    assert plain.table.sum() == pytest.approx(released.sum())
    assert (plain.table[released < 3] == released[released < 3]).all()
    assert plain.chances.sum(axis=1) == pytest.approx(1)
    kept = undo_table(before, 3, kept=all_margins(8, 2), rounds=2)  # of a file that kept all of them
    for one, other in ((0, 1), (2, 6)):
        away = tuple(axis for axis in range(8) if axis not in (one, other))
        assert kept.table.sum(axis=away) == pytest.approx(before.sum(axis=away), rel=0.01)
    some = undo_table(released, 3, emptied=0.2, rounds=2)
    assert some.table[released == 0].sum() > 0 and some.table.sum() == pytest.approx(released.sum())


def test_the_chances_of_a_simulated_design_are_those_of_bayes() -> None:
    """Independent columns, so that the fit of one margin each is the table; cells of one go to 0 or 3, half of them."""
    before, after = np.array([0, 1, 1, 2, 3, 3, 6]), np.array([0, 0, 3, 3, 3, 4, 6])
    channel = channel_of(before, after, 3)
    released = np.array([[0.0, 3.0], [6.0, 3.0]])
    mean = np.array([[0.5, 1.5], [5.0, 3.0]])
    undone = undo_simulated(released, 3, channel, mean, way=2)
    for cell, row in ((1, 0), (3, 1)):
        fitted = undone.fitted.ravel()[cell]  # of two variables all of the table: what the last round expects
        sizes = np.arange(25)
        weight = channel.of(sizes, np.full(25, 3)) * poisson.pmf(sizes, fitted)
        assert undone.chances[row] == pytest.approx((weight / weight.sum())[1:5], abs=0.05)
    assert undone.chances.sum(axis=1) == pytest.approx(1, abs=0.1) and undone.emptied.shape == (1,)
    assert 0 < undone.emptied[0] < 0.5 and undone.table[1, 0] == pytest.approx(6, abs=0.5)


def test_a_size_that_no_simulated_cell_came_to_is_taken_as_it_is() -> None:
    channel = channel_of(np.array([0, 1, 5]), np.array([0, 3, 5]), 3)
    undone = undo_simulated(np.array([[2.0, 9.0], [9.0, 9.0]]), 3, channel, np.full((2, 2), 7.0), way=1)
    assert undone.table[0, 0] == pytest.approx(2)


def test_a_simulated_design_needs_neither_the_seed_nor_the_original(cps8d: qd.Data) -> None:
    recipe = qd.DesignedSwap(["Age", "Edu", "Race", "MS"], effort=0.1, seed=1)
    released = recipe.plan(cps8d).apply(cps8d)
    found = []
    for data, design in ((cps8d, recipe), (released, recipe.changed(seed=5))):
        given = attack_input(data, released, None, None, 3, "design", None, design)
        table = given.table_of(given.protected[0])
        assert isinstance(design, qd.DesignedSwap)
        found.append(rehearse(given.released, table, design, np.ones(table.sizes)))
    assert found[0] is not None and found[1] is not None
    assert (found[0].channel.chance == found[1].channel.chance).all()


def test_where_persons_went_whose_cell_nobody_has_any_more_is_counted_row_by_row() -> None:
    """Two drafts of a table of 3 x 2 x 2 cells, counted one pair of a person and a row at a time."""
    random, sizes, n = np.random.default_rng(3), (3, 2, 2), 2
    drafts = tuple(Draft(*random.integers(0, 12, (2, 25)).clip(low, 11)) for low in (0, 3))
    table = KeyTable(("A", "B", "C"), sizes, np.zeros((3, 0), int), np.zeros(0, int), np.zeros(0, int))
    went, rows = np.zeros((2, FAR + 1, 7))
    for draft in drafts:
        g = np.bincount(draft.after, minlength=12)
        for i in np.flatnonzero(g[draft.before] == 0):
            for j, goal in enumerate(draft.after):
                levels = np.array(np.unravel_index([draft.before[i], goal], sizes))
                at = (levels[:, 0] != levels[:, 1]).sum(), size_class(g[[goal]], n)[0]
                rows[at] += 1
                went[at] += i == j
    goals = Rehearsal(table, np.ones(sizes), n, drafts).goals
    assert rows.sum() > 0 and goals == pytest.approx((went + 10 * went.sum() / rows.sum()) / (rows + 10))


@pytest.fixture(scope="module")
def emptied(cps8d: qd.Data) -> Attack:
    return qd.attack(cps8d, qd.DesignedSwap(effort=0.05, seed=1))


def test_whoever_is_gone_is_looked_for_where_the_design_sends_such_persons(emptied: Attack, cps8d: qd.Data) -> None:
    links = findings(emptied, "linkage")
    picked = links["persons whom no row fits: the row picked is theirs"]
    assert picked.value is not None and picked.chance is not None and picked.value > 1.5 * picked.chance
    right, nearest, design = (
        links[f"expected right links{which}"].value or 0
        for which in ("", ", the nearest row where none fits", ", by the chances of the design")
    )
    assert design - right == pytest.approx(picked.value * (picked.count or 0))
    assert "are looked for where swaps of made-up files send such persons" in emptied["linkage"].story
    assert nearest - right == pytest.approx(picked.chance * (picked.count or 0))
    nothing, recipe = qd.Plan([], data=cps8d), qd.DesignedSwap()
    other = linkage(attack_input(cps8d, nothing, ["Age", "Edu"], None, 3, "design", None, recipe)).findings
    assert other[6].quantity.endswith("chances of the design") and other[6].value is None


def test_who_is_gone_is_found_by_a_key_that_stays_with_the_record(cps8d: qd.Data) -> None:
    """A ninth column of twelve values leans on education and salary; with effort 1 .50, surest .90, nearest .21."""
    noise = np.random.default_rng(2).integers(0, 6, cps8d.n)
    job = column("job", (cps8d["Edu"].values * 2 + cps8d["AnnSal"].values + noise) % 12, 12)
    data = qd.Data([*(cps8d[name] for name in cps8d.columns), job])
    recipe = qd.DesignedSwap(tables=["*".join(cps8d.columns)], effort=0.05, seed=7)
    links = linkage(attack_input(data, recipe, None, None, 3, "design", None, None)).findings
    picked, surest_of_them = (each for each in links if each.quantity.startswith("persons whom no row fits"))
    assert picked.value is not None and picked.chance is not None and picked.value > max(0.4, 1.7 * picked.chance)
    assert surest_of_them.value is not None and surest_of_them.value > 0.75


def test_who_is_gone_is_guessed_by_three_variables_together(emptied: Attack, cps8d: qd.Data) -> None:
    """A fit of two variables has .63 on such releases."""
    guessed = findings(emptied, "attribute")["all targets: alone with the other keys, gone: guessed right"]
    assert guessed.value is not None and guessed.value > 0.64 and guessed.chance == pytest.approx(0.6, abs=0.02)
    table = attack_input(cps8d, qd.Plan([], data=cps8d), ["Age", "Edu", "Sex"], None, 3, "file", None, None).table
    assert guessing_fit(table) == pytest.approx(table.spread(table.g), rel=1e-6)


def test_a_table_of_half_a_million_cells_is_undone_by_simulation() -> None:
    table = KeyTable(tuple("ABCDEFGH"), (6, 9, 16, 7, 5, 2, 4, 2), *np.zeros((3, 1), int))
    assert (feasible_way(table, FEW_ROUNDS), feasible_way(table, ROUNDS)) == (2, None)


def test_weights_near_the_median_tell_who_came_in(cps8d: qd.Data) -> None:
    def weighted(weights: np.ndarray) -> qd.Data:
        return qd.Data([*(cps8d[name] for name in cps8d.columns), numbers("w", weights, role="weight")])

    data = weighted(np.random.default_rng(1).lognormal(-0.125, 0.5, cps8d.n))
    recipe = qd.DesignedSwap(effort=0.05, seed=7)
    given = attack_input(data, recipe, None, None, 3, "design", None, None)
    section = rows(given)
    assert "by the weight" in section.story and "near the median" in section.advice
    came, picked = section.findings
    assert came.value is not None and came.value > 0.6 and picked.value is not None and picked.value > 0.45
    assert given.rehearsal is not None
    alike = weight_scores(weighted(np.full(cps8d.n, 2.5)), given.rehearsal, np.arange(9))
    assert len(set(alike.tolist())) == 1, "weights that are all the same tell nothing"


@pytest.mark.parametrize("moves", [[0, 1, 2], [1]])
def test_the_chance_of_a_record_left_by_the_coin_cell_by_cell(moves: list[int]) -> None:
    random = np.random.default_rng(1)
    shape, coin = (3, 2, 4), 0.4
    released, fitted = random.integers(0, 3, shape).astype(float), random.uniform(0.1, 3, shape)

    def neighbours(cell: tuple[int, ...]) -> list[tuple[int, ...]]:
        return [
            (*cell[:axis], level, *cell[axis + 1 :])
            for axis in moves
            for level in range(shape[axis])
            if level != cell[axis]
        ]

    cells = list(product(*map(range, shape)))
    chance = dict.fromkeys(cells, 0.5)
    for _ in range(3):
        empty = {
            c: {0: 1 / (1 + fitted[c] / 2), 1: 1 - chance[c]}.get(int(released[c]), 0.0) for c in cells
        }  # the chance that nobody was there
        coming = dict.fromkeys(cells, 0.0)
        for origin in (c for c in cells if released[c] == 0):
            gave = fitted[origin] * coin / 2 / (1 + fitted[origin] / 2)
            room = sum(fitted[c] * empty[c] for c in neighbours(origin))
            for goal in neighbours(origin):
                coming[goal] += gave * fitted[goal] / room if room else 0.0
        chance = {c: fitted[c] * coin / 2 / (fitted[c] * coin / 2 + coming[c]) for c in cells}
    found = chance_left(released, fitted, coin, moves)
    assert [found[cell] for cell in cells] == pytest.approx([chance[cell] for cell in cells])


def test_emptied_cells_stand_out_among_the_empty_ones(cps8d: qd.Data) -> None:
    empties = qd.Recipe.from_json('{"method":"DesignedSwap","seed":7,"treatment":"empty","version":1}')
    found = findings(qd.attack(cps8d, empties), "undo")
    told = found["empty cells: those that were emptied (AUC)"]
    assert told.value is not None and told.value > 0.8 and told.chance == 0.5
    assert found["empty cells: the 50 surest were emptied"].value == pytest.approx(0.9, abs=0.1)


@pytest.mark.parametrize(
    ("options", "places"),
    [
        ({"keep": "1-way"}, []),
        ({}, [(0, 1), (0, 2), (1, 2)]),
        ({"keep": 2}, [(0, 1), (0, 2), (1, 2)]),
        ({"keep": ["A*C", "B*D"]}, [(0, 2)]),
        ({"keep": "1-way", "swap": ["C"]}, [(0, 1)]),
        ({"tables": [["A", "B"], ["B", "C", "D"]], "keep": "3-way"}, [(0, 1, 2)]),
    ],
)
def test_tables_that_a_designed_swap_keeps_are_found_by_place(options: dict[str, object], places: object) -> None:
    data = file_of(A=[0, 1], B=[0, 1], C=[0, 1], D=[0, 1])
    recipe = qd.DesignedSwap(**({"tables": [["A", "B", "C"]]} | options), seed=1)  # type: ignore[arg-type]
    given = attack_input(data, qd.Plan([], data=data), ["A", "B", "C"], None, 3, "design", None, recipe)
    assert kept_places(given, recipe, ("A", "B", "C")) == places


def incoming_file() -> qd.Data:
    """A file whose other columns depend on its keys, of which many combinations are rare."""
    random = np.random.default_rng(5)
    n = 8_000
    keys = {name: np.minimum(random.geometric(0.4, n) - 1, 5) for name in "KLMO"}
    other = {
        name: np.where(random.random(n) < 0.8, keys[key], random.integers(0, 6, n))
        for name, key in (("job", "K"), ("home", "L"), ("car", "M"), ("pet", "O"))
    }
    return qd.Data([column(name, codes, 6) for name, codes in (keys | other).items()])


def test_other_columns_tell_who_came_in() -> None:
    data, keys, columns = incoming_file(), ["K", "L", "M", "O"], ["job", "home", "car", "pet"]
    recipe = qd.Recipe.from_json(
        '{"loss":"hellinger(K*L*M*O)","method":"DesignedSwap","seed":3,"tables":[["K","L","M","O"]],'
        '"treatment":"camouflage","version":1}'
    )
    came, picked = qd.attack(data, recipe, keys=keys, columns=columns)["rows"].findings
    assert came.value is not None and came.value > 0.7 and came.chance == 0.5
    assert picked.value is not None and picked.value > 0.5 and picked.chance == pytest.approx(1 / 3)
    assert "needs other columns" in qd.attack(data, recipe, keys=keys)["rows"].reason
    mixed = rows_of(recipe.plan(data).apply(data), np.random.default_rng(1).permutation(data.n))
    assert (
        "not aligned"
        in qd.attack(data, mixed, keys=keys, columns=columns, recipe=recipe.changed(seed=4))["rows"].reason
    )


def test_the_distance_is_that_of_the_measure(cps8d: qd.Data) -> None:
    table = attack_input(cps8d, SWAP, None, None, 3, "design", None, None).table
    score = qd.score(cps8d, SWAP.plan(cps8d), ["hellinger"])["hellinger"]
    assert hellinger(table.spread(table.f), table.spread(table.g)) == pytest.approx(score)


def test_a_designed_swap_that_makes_no_cell_tells_the_truth_about_everybody_still_there(emptied: Attack) -> None:
    together = {quantity: finding.value for quantity, finding in findings(emptied, "attribute").items()}
    assert together["all targets: alone with the other keys, right among those still there"] == 1
    assert together["all targets: alone with the other keys, gone"] > 0.3  # type: ignore[operator]
    story = emptied["attribute"].story
    assert "everybody who is still there is inferred right" in story and "more is inferred right than before" in story
    undone = findings(emptied, "undo")
    assert 0.6 < undone["cells of 3: those of one record before (AUC)"].value < 0.7  # type: ignore[operator]
    assert 0.65 < undone["empty cells: those that were emptied (AUC)"].value < 0.85  # type: ignore[operator]


def test_after_the_coin_of_version_2_a_fit_tells_nothing_but_expected_arrivals_do(cps8d: qd.Data) -> None:
    """Displaced records go where the fit expects them; who asks where they may have come from sees more."""
    recipe = qd.Recipe.from_json('{"coin":0.5,"effort":0.05,"method":"DesignedSwap","seed":1,"version":2}')
    given = attack_input(cps8d, recipe, None, None, 3, "design", None, None)
    table, fitted = given.table, released_fit(given.table)
    assert fitted is not None
    single = table.g == 1
    plain = auc(fitted.reshape(-1)[table.number[single]], table.f[single] > 0)
    error = (1 / (3 * single.sum())) ** 0.5  # of an area under the curve of one half, groups of the same size
    assert plain is not None and abs(plain - 0.5) < 4 * error
    attack = qd.attack(cps8d, given.released, recipe=recipe, target="AnnSal")
    apart = findings(attack, "genuine")["uniques: genuine ones told apart (AUC)"]
    assert apart.value is not None and 0.5 + 2 * error < apart.value < 0.85 and "arrivals" in apart.note
    assert "believes in most" in attack["genuine"].story


def test_further_attacks_are_made_when_they_can_be(cps8d: qd.Data) -> None:
    bare = qd.attack(cps8d, SWAP)
    assert "share of the population" in bare["population"].reason and "earlier=" in bare["releases"].reason
    assert "no numeric column" in bare["rank"].reason
    full = qd.attack(cps8d, SWAP, sampling=0.1, earlier=[SWAP.changed(seed=2), SWAP.changed(seed=3).plan(cps8d)])
    assert full["population"].findings[0].value == pytest.approx(72.6, abs=0.1)
    one, three = full["releases"].findings[:2]
    assert (round(one.value or 0, 3), round(three.value or 0, 3)) == (0.9, 0.973)
    everybody = qd.attack(cps8d, SWAP, population=cps8d)
    assert everybody["population"].findings[0].before == 361
    assert "who knows the design" in qd.attack(cps8d, SWAP, sampling=0.1, knows="file")["population"].reason
    without = qd.attack(cps8d, SWAP.changed(order="one-by-one"), sampling=1)["population"].findings[0]
    assert "counted with the plan" in without.note and 200 < (without.value or 0) < 361
    with pytest.raises(ParameterError, match="'sampling' parameter of attack"):
        qd.attack(cps8d, SWAP, sampling=2)


def test_weights_that_count_more_persons_than_the_file_has_give_the_share_of_the_population(cps8d: qd.Data) -> None:
    frame = cps8d.frame()
    for weight, made in ((10.0, True), (1.0, False)):
        data = qd.from_frame(frame.with_columns(w=pl.lit(weight)), codebook=None, weight="w")
        swap = qd.RandomSwap(["Edu"], rate=0.05, seed=1)
        assert bool(qd.attack(data, swap, keys=["Age", "Edu", "MS", "Race"])["population"].findings) == made


def test_swapped_numbers_are_attacked_by_the_least_windows_that_hold() -> None:
    random = np.random.default_rng(1)
    income = random.normal(size=300).round(6)
    data = qd.from_frame(pl.DataFrame({"key": random.integers(0, 3, 300).astype(str), "income": income}))
    order = np.argsort(income)
    plan = qd.Plan.of_pairs(data, ["income"], order.reshape(-1, 2))  # each with its neighbour by rank
    found = {finding.quantity: finding.value for finding in qd.attack(data, plan, keys=["key"])["rank"].findings}
    assert found["true row among the possible"] == 1 and 1 < found["possible rows, mean"] <= 3  # type: ignore[operator]
    assert "knows the design" in qd.attack(data, plan, keys=["key"], knows="file")["rank"].reason
