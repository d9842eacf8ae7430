"""Choosing a candidate: every rule gives what it promises, and the choice explains itself."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import quadrille as qd
from quadrille.errors import InputError, ParameterError, QuadrilleError
from quadrille.study.choose import clouds, seed_warning

MEASURES = ["small_cells", "exposed", "hellinger", "cramers_v_change", "conditional_entropy"]


@pytest.fixture(scope="module")
def study(cps8d: qd.Data, tmp_path_factory: pytest.TempPathFactory) -> qd.Study:
    swaps = [["Age"], ["Edu"], ["MS"], ["Race", "Sex"], ["Edu", "AvgHrs"]]
    grid = qd.grid(qd.RandomSwap, swap=swaps, pairs=[100, 400, 1600], seed=range(4))
    return qd.search(cps8d, grid, MEASURES, out=tmp_path_factory.mktemp("study") / "study")


def test_the_frontier_is_sorted_by_risk_and_nobody_in_the_study_dominates_it(study: qd.Study) -> None:
    front = study.frontier(risk="small_cells", loss="hellinger")
    assert front["small_cells"].is_sorted()
    every = study.frame()
    for row in front.to_dicts():
        better = every.filter(
            (pl.col("small_cells") <= row["small_cells"])
            & (pl.col("hellinger") <= row["hellinger"])
            & ((pl.col("small_cells") < row["small_cells"]) | (pl.col("hellinger") < row["hellinger"]))
        )
        assert len(better) == 0


def test_a_signed_measure_enters_by_its_size_and_a_higher_is_better_one_negated(study: qd.Study) -> None:
    points, rows = study.objectives(["cramers_v_change", "conditional_entropy"])
    frame = study.frame()[rows.tolist()]
    assert points[:, 0].tolist() == [abs(v) for v in frame["cramers_v_change"]]
    assert points[:, 1].tolist() == [-v for v in frame["conditional_entropy"]]


def test_least_loss_and_least_risk_keep_their_limit(study: qd.Study) -> None:
    frame = study.frame()
    limit = float(frame["small_cells"].median())
    choice = study.pick(max_risk=limit)
    allowed = frame.filter(pl.col("small_cells") <= limit)
    assert (choice.rule, choice.loss) == ("least loss", allowed["hellinger"].min())
    limit = float(frame["hellinger"].median())
    choice = study.pick(max_loss=limit)
    assert (choice.rule, choice.risk) == ("least risk", frame.filter(pl.col("hellinger") <= limit)["small_cells"].min())


@pytest.mark.parametrize(("limit", "measure"), [("max_risk", "small_cells"), ("max_loss", "hellinger")])
def test_a_candidate_exactly_at_the_limit_keeps_it(study: qd.Study, limit: str, measure: str) -> None:
    least = study.frame()[measure].min()
    choice = study.pick(**{limit: least})
    assert study.frame().filter(pl.col("id") == choice.candidate)[measure].item() == least


def test_of_signed_measures_the_one_nearest_to_0_is_best(tmp_path: Path) -> None:
    """A and B are independent, so that every swap raises their association and the change is negative."""
    data = qd.from_frame(pl.DataFrame({"A": [0, 0, 1, 1] * 25, "B": [0, 1] * 50}))
    recipes = qd.grid(qd.RandomSwap, swap="A", pairs=[3, 10, 20], seed=range(3))
    found = qd.search(data, recipes, ["exposed", "cramers_v_change"], out=tmp_path / "study", workers=1)
    values = found.frame()["cramers_v_change"]
    assert values.max() < 0 or values.min() < values.max() == 0
    assert found.pick("least loss").loss == -values.max()


@pytest.mark.parametrize("trade", [0.0, 0.01, 0.1, 1.0, 100.0])
def test_the_linear_rule_minimises_its_objective_within_the_range_it_states(study: qd.Study, trade: float) -> None:
    frame = study.frame()
    choice = study.pick(trade=trade)
    assert choice.risk + trade * choice.loss == pytest.approx((frame["small_cells"] + trade * frame["hellinger"]).min())
    assert choice.trades is not None
    assert choice.trades[0] <= trade <= choice.trades[1]


@pytest.mark.parametrize("rule", ["knee", "ideal", "lexicographic"])
def test_other_rules_choose_from_the_frontier_and_explain_themselves(study: qd.Study, rule: str) -> None:
    choice = study.pick(rule)
    assert choice.candidate in study.frontier()["id"].to_list()
    text = choice.explain()
    assert f"Candidate {choice.candidate}" in text
    assert "It dominates" in text
    assert "safer" in text
    assert "gentler" in text
    assert json.loads(json.dumps(choice.as_dict()))["candidate"] == choice.candidate


def test_the_neighbours_are_the_next_ones_up_and_down_the_frontier(study: qd.Study) -> None:
    choice = study.pick("knee")
    ids = study.frontier()["id"].to_list()
    place = ids.index(choice.candidate)
    assert choice.safer is None or choice.safer.candidate == ids[place - 1]
    assert choice.gentler is None or choice.gentler.candidate == ids[place + 1]
    frame = study.frame()
    dominated = frame.filter((pl.col("small_cells") >= choice.risk) & (pl.col("hellinger") >= choice.loss))
    assert choice.dominates == len(dominated) - 1


def test_the_recipe_of_a_choice_makes_its_scores(cps8d: qd.Data, study: qd.Study) -> None:
    choice = study.pick("knee")
    scores = qd.score(cps8d, choice.recipe.plan(cps8d), list(choice.axes))
    assert scores["small_cells"] == pytest.approx(choice.risk, abs=1e-12)
    assert scores["hellinger"] == pytest.approx(choice.loss, abs=1e-12)


def test_limits_that_nobody_keeps_and_rules_that_do_not_exist_are_refused(study: qd.Study) -> None:
    with pytest.raises(QuadrilleError, match="No candidate keeps the limits; the least small_cells is"):
        study.pick(max_risk=0.0)
    with pytest.raises(ParameterError, match="'rule' parameter of pick"):
        study.pick("best")
    with pytest.raises(ParameterError, match="needs 'trade'"):
        study.pick("linear")
    with pytest.raises(InputError, match="Did you mean: 'hellinger'"):
        study.pick(loss="helinger")


def test_a_study_without_a_risk_measure_says_so(cps8d: qd.Data, tmp_path: Path) -> None:
    found = qd.search(cps8d, [qd.RandomSwap(["MS"], pairs=10, seed=1)], ["hellinger"], out=tmp_path / "study")
    with pytest.raises(InputError, match="has no risk measure"):
        found.frontier()


def test_clouds_are_means_and_spreads_over_seeds(study: qd.Study) -> None:
    frame = study.frame()
    for cloud in study.clouds():
        own = frame.filter(pl.col("design") == cloud.design)
        assert cloud.seeds == len(own) == 4
        assert cloud.mean_risk == pytest.approx(own["small_cells"].mean())
        assert cloud.sd_loss == pytest.approx(own["hellinger"].std())
        assert 0 <= cloud.share <= 1


def test_seed_noise_is_called_seed_noise_and_design_is_not() -> None:
    random = np.random.default_rng(1)
    designs, seeds = np.repeat(np.arange(8), 20), np.tile(np.arange(20), 8)
    noise = clouds(random.normal(size=(160, 2)), designs, seeds)
    assert "seed noise" in seed_warning(noise)
    apart = np.stack((designs.astype(float), 8.0 - designs), axis=1)
    assert seed_warning(clouds(apart + 0.01 * random.normal(size=(160, 2)), designs, seeds)) == ""
    single = clouds(apart[:8], np.arange(8), np.zeros(8, dtype=np.int64))
    assert "one seed only" in seed_warning(single)


def test_a_named_candidate_is_described_like_a_chosen_one(study: qd.Study) -> None:
    knee = study.pick("knee")
    named = study.choice(knee.candidate)
    assert (named.rule, named.risk, named.loss, named.safer) == ("named", knee.risk, knee.loss, knee.safer)
    assert named.dominates == knee.dominates
    with pytest.raises(InputError, match=r"Candidate 999 .* does not exist"):
        study.choice(999)


def test_dominated_by_is_0_on_the_frontier_and_nowhere_else(study: qd.Study) -> None:
    counts = study.dominated_by()
    assert len(counts) == len(study)
    assert set(counts.filter(pl.col("dominated_by") == 0)["id"]) == set(study.frontier()["id"])


def test_trade_offs_cover_every_trade_off_and_agree_with_the_linear_rule(study: qd.Study) -> None:
    winners = study.trade_offs()
    assert winners["from"][0] == 0
    assert winners["to"][-1] == float("inf")
    assert winners["from"][1:].to_list() == winners["to"][:-1].to_list()
    for row in winners.to_dicts():
        middle = row["from"] + 1 if row["to"] == float("inf") else (row["from"] + row["to"]) / 2
        choice = study.pick(trade=middle)
        assert (choice.risk, choice.loss) == (row["risk"], row["loss"])


def test_a_measure_that_is_better_when_higher_is_told_with_its_own_sign(cps8d: qd.Data, tmp_path: Path) -> None:
    recipes = qd.grid(qd.RandomSwap, swap=[["Edu"]], rate=[0.01, 0.02, 0.05], seed=range(2))
    measures = ["conditional_entropy", "hellinger"]
    study = qd.search(cps8d, recipes, measures, out=tmp_path / "study", progress=False)
    choice = study.pick("knee")
    value = qd.score(cps8d, choice.recipe.plan(cps8d), measures)["conditional_entropy"]
    text = choice.explain()
    assert f"Candidate {choice.candidate}: conditional_entropy {value:.6g}, hellinger" in text
    assert "raises hellinger" not in text and "(1 - conditional_entropy) + t * hellinger" in text
    assert "lowers conditional_entropy by" in text.split("gentler")[1]


CURVE = np.linspace(0.05, 1, 40)
CLOUDS = {
    "convex": np.stack(((1 - CURVE) ** 3, CURVE), axis=1),
    "concave": np.stack((1 - CURVE**3, CURVE), axis=1),
    "straight": np.stack((1 - CURVE, CURVE), axis=1),
    "noisy": np.stack((np.abs(1 - CURVE + 0.1 * np.sin(37 * CURVE)), CURVE + 0.05 * np.cos(91 * CURVE)), axis=1),
    "a lone risky end of hardly any loss": np.array([[0.99, 1e-9], [0.45, 0.5], [0.05, 0.9], [0.4, 0.48]]),
}


def made_up(tmp_path: Path, points: np.ndarray, unswapped: float | None = 1.0) -> qd.Study:
    """Return a study whose candidates have these scores."""
    data = qd.from_frame(pl.DataFrame({"A": [0, 0, 1, 1] * 10, "B": [0, 1] * 20}))
    recipes = qd.grid(qd.RandomSwap, swap="A", pairs=[1], seed=range(len(points)))
    study = qd.search(data, recipes, ["exposed", "hellinger"], out=tmp_path / "study", workers=1, progress=False)
    study.__dict__["scores"] = points
    study.__dict__["unswapped"] = None if unswapped is None else {"exposed": unswapped, "hellinger": 0.0}
    return study


@pytest.mark.parametrize("cloud", CLOUDS)
def test_the_default_choice_halves_the_risk_whatever_the_shape_of_the_cloud(tmp_path: Path, cloud: str) -> None:
    points = CLOUDS[cloud]
    study = made_up(tmp_path, points)
    choice = study.pick()
    halved = points[points[:, 0] <= 0.5]
    assert choice.rule == "balanced"
    assert choice.risk <= 0.5 < points[:, 0].max()
    assert (1 - choice.risk) / choice.loss == pytest.approx(((1 - halved[:, 0]) / halved[:, 1]).max())


@pytest.mark.parametrize("cloud", CLOUDS)
def test_gentle_balanced_and_safe_keep_what_they_promise(tmp_path: Path, cloud: str) -> None:
    points = CLOUDS[cloud]
    found = made_up(tmp_path, points).recommended()
    assert list(found) == ["gentle", "balanced", "safe"]
    assert found["gentle"].loss == points[points[:, 0] <= 0.75, 1].min()
    assert found["safe"].loss == points[points[:, 0] <= 0.1, 1].min()
    assert all(choice.protects for choice in found.values())


def test_where_nobody_takes_away_nine_tenths_the_safe_one_has_the_least_risk(tmp_path: Path) -> None:
    found = made_up(tmp_path, np.array([[0.7, 0.1], [0.3, 0.5], [0.2, 2.0]])).recommended()
    assert found["safe"].risk == 0.2


def test_a_candidate_that_hardly_lowers_the_risk_is_never_recommended(tmp_path: Path) -> None:
    study = made_up(tmp_path, np.array([[0.99, 0.01], [0.8, 0.5], [0.76, 0.9]]))
    assert study.recommended() == {}
    with pytest.raises(QuadrilleError, match=r"No candidate lowers exposed .* by 50 % or more; the safest one by 24 %"):
        study.pick()
    knee = study.pick("knee")
    assert not knee.protects and "It is not recommended" in knee.explain()


def test_a_concave_frontier_has_its_knee_at_an_end_and_the_explanation_says_what_that_means(tmp_path: Path) -> None:
    points = CLOUDS["concave"]
    choice = made_up(tmp_path, points).pick("knee")
    assert choice.candidate in (1, len(points))
    assert choice.explain().startswith("The file as it is: exposed 1, hellinger 0.")
    assert ("It is not recommended" in choice.explain()) == (choice.risk > 0.75)


def test_limits_apply_to_the_recommended_ones_too(tmp_path: Path) -> None:
    study = made_up(tmp_path, CLOUDS["convex"])
    choice = study.pick("safe", max_loss=0.3)
    assert choice.loss <= 0.3 and choice.risk == CLOUDS["convex"][CURVE <= 0.3, 0].min()


def test_a_study_that_does_not_know_the_file_as_it_is_recommends_nobody_until_it_sees_the_data(
    cps8d: qd.Data, tmp_path: Path
) -> None:
    study = made_up(tmp_path, CLOUDS["convex"], unswapped=None)
    with pytest.raises(QuadrilleError, match="made by an earlier version"):
        study.pick()
    assert study.recommended() == {} and study.pick(max_risk=0.5).unswapped is None
    assert "as it is" not in study.pick("knee").explain()
    with pytest.raises(QuadrilleError, match="other data"):
        study.compare_with(cps8d)


def test_the_file_as_it_is_has_the_scores_of_a_plan_that_changes_nothing(cps8d: qd.Data, study: qd.Study) -> None:
    fresh = qd.Study(study.path)
    assert fresh.unswapped is not None
    expected = qd.score(cps8d, qd.Plan([], data=cps8d), MEASURES)
    assert fresh.unswapped == {address: expected[address] for address in MEASURES}
    assert fresh.unswapped["hellinger"] == 0 and fresh.unswapped["exposed"] == 733 / cps8d.n


def test_a_limit_on_a_risk_that_is_better_when_higher_is_the_least_value_allowed(study: qd.Study) -> None:
    values = study.frame()["conditional_entropy"]
    limit = float(values.median())
    choice = study.pick(risk="conditional_entropy", max_risk=limit)
    assert -choice.risk >= limit
    assert choice.loss == study.frame().filter(values >= limit)["hellinger"].min()
    assert f"conditional_entropy at least {limit:g}" in choice.reason
    with pytest.raises(QuadrilleError, match="the largest conditional_entropy is"):
        study.pick(risk="conditional_entropy", max_risk=float(values.max()) + 1)
    assert study.pick("least risk", risk="conditional_entropy").reason == "largest conditional_entropy"


@pytest.mark.parametrize("rule", ["knee", "least loss", "balanced", "ideal"])
@pytest.mark.parametrize("trade", [float("nan"), 0.5])
def test_a_trade_that_the_rule_does_not_look_at_is_refused(study: qd.Study, rule: str, trade: float) -> None:
    with pytest.raises(ParameterError, match=f"'trade' parameter of pick is for the rule 'linear', not for '{rule}'"):
        study.pick(rule, trade=trade)
    with pytest.raises(ParameterError, match="'weights' parameter of pick is for the rule 'ideal', not for 'linear'"):
        study.pick(trade=1.0, weights=(1.0, 1.0))


@pytest.mark.parametrize("given", [{"max_risk": "few"}, {"max_loss": True}, {"trade": "x"}, {"weights": "ab"}])
def test_a_limit_or_weight_that_is_no_number_is_refused_in_words(study: qd.Study, given: dict[str, object]) -> None:
    with pytest.raises(ParameterError, match=next(iter(given))):
        study.pick(**given)


@pytest.mark.parametrize("trade", [float("nan"), float("inf"), -1.0])
def test_a_trade_that_is_no_number_of_0_or_more_is_refused(study: qd.Study, trade: float) -> None:
    with pytest.raises(ParameterError, match="needs 'trade', a number of 0 or more"):
        study.pick(trade=trade)


def test_a_pick_is_kept_and_a_later_one_replaces_it(study: qd.Study) -> None:
    assert study.picked is None
    study.keep_pick(study.pick("knee"))
    study.keep_pick(last := study.pick("lexicographic"))
    assert study.picked is not None
    assert (study.picked.candidate, study.picked.rule, study.picked.axes) == (last.candidate, last.rule, last.axes)
