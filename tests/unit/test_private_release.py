"""Releases with a guarantee: the public note, the ledger, policies, and all that voids it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import quadrille as qd
from quadrille.cli import app
from quadrille.data import Data
from quadrille.release.dossier import ReleaseWarning, VoidGuaranteeWarning, read_published
from quadrille.release.judge import PolicyError
from quadrille.swap.private import GIVEN_SEED, NUMBER_SEED

pytestmark = pytest.mark.filterwarnings("ignore::quadrille.release.dossier.ReleaseWarning")
MEASURES = ("hellinger",)


def table(n: int = 900) -> pl.DataFrame:
    random = np.random.default_rng(4)
    where = random.choice(["north", "south"], n, p=[0.7, 0.3])
    job = np.where(random.random(n) < 0.4, random.integers(0, 4, n), (where == "north") * 2)
    return pl.DataFrame(
        {"region": where, "job": job, "sex": random.choice(["f", "m"], n), "age": random.integers(1, 6, n)}
    )


@pytest.fixture(scope="module")
def data() -> Data:
    return qd.from_frame(table())


def swap(**given: object) -> qd.PrivateSwap:
    return qd.PrivateSwap(["job"], within=["region"], **({"epsilon": 6} | given))  # type: ignore[arg-type]


def note_of(made: qd.release) -> str:  # type: ignore[valid-type]
    (path,) = made.public.glob("methods*.md")
    return path.read_text(encoding="utf-8")


def test_the_note_says_the_promise_and_neither_seed_nor_what_was_drawn(data: Data, tmp_path: Path) -> None:
    made = qd.release(data, swap(), tmp_path / "made", measures=MEASURES)
    note = " ".join(note_of(made).split())
    assert made.guarantee is not None and made.guarantee.holds
    assert not any("guarantee" in warning for warning in made.warnings)
    for part in (
        "## What is guaranteed",
        "Within each group of region, job was permuted among records drawn with a chance of its own for each group",
        "no release is more than exp(2 epsilon) = 162,755 times as likely",
        "epsilon is 6 per record",
        "does not hold for further releases of the same data unless their epsilons are added",
        "Which records took part, and how many, stays confidential",
    ):
        assert part in note, part
    recipe = qd.Recipe.from_json((made.confidential / "recipe.json").read_text())
    realised = {str(made.account.records), f"{made.account.records:,}", str(made.account.changed)}
    numbers = set(re.findall(r"\d[\d,.]*\d|\d", note))
    assert not realised & numbers
    assert str(recipe.parameters()["seed"]) not in note
    dossier = (made.confidential / "dossier.md").read_text(encoding="utf-8")
    assert "## What is guaranteed" in dossier and "No formal guarantee" not in dossier


LOST: dict[str, tuple[Callable[[], qd.PrivateSwap], dict[str, object], str]] = {
    "rows in order": (swap, {"shuffle": False}, "order of the original"),
    "a number as seed": (lambda: swap(seed=5), {"insecure": True}, NUMBER_SEED),
    "a recipe from a file": (lambda: qd.Recipe.from_json(swap().to_json()), {}, GIVEN_SEED),
}


@pytest.mark.parametrize("name", LOST)
def test_what_voids_the_guarantee_leaves_no_epsilon_in_the_note(name: str, data: Data, tmp_path: Path) -> None:
    make, options, reason = LOST[name]
    with pytest.warns(VoidGuaranteeWarning, match="Nothing is guaranteed"):
        made = qd.release(data, make(), tmp_path / "made", measures=MEASURES, **options)  # type: ignore[arg-type]
    assert made.guarantee is not None and any(reason in each for each in made.guarantee.void)
    assert "epsilon" not in note_of(made) and "guarantee" not in note_of(made)
    assert "Nothing is guaranteed" in (made.confidential / "dossier.md").read_text(encoding="utf-8")
    assert "No formal guarantee" in (made.confidential / "dossier.md").read_text(encoding="utf-8")


def test_a_candidate_of_a_study_and_a_draw_that_was_looked_at_are_void(data: Data, tmp_path: Path) -> None:
    study = qd.search(
        data, qd.grid(qd.PrivateSwap, swap=["job"], chance=[0.1, 0.2], seeds=2), MEASURES, out=tmp_path / "s"
    )
    picked = qd.release(data, study.recipe(2), tmp_path / "picked", measures=MEASURES)
    assert picked.guarantee is not None and picked.guarantee.void == (GIVEN_SEED,)
    looked = swap()
    qd.score(data, looked.plan(data), ["hellinger"])
    seen = qd.release(data, looked, tmp_path / "seen", measures=MEASURES)
    assert seen.guarantee is not None and not seen.guarantee.holds
    done = CliRunner().invoke(
        app,
        ["release", str(_csv(tmp_path)), "--study", str(study.path), "--candidate", "1", "--out", str(tmp_path / "c")],
    )
    assert done.exit_code in (0, 2)
    if done.exit_code == 0:
        assert "Nothing is guaranteed for this draw" in " ".join(done.output.split())


def _csv(folder: Path) -> Path:
    path = folder / "survey.csv"
    table().write_csv(path)
    return path


def test_epsilons_of_releases_of_the_same_data_add_up_in_the_ledger(data: Data, tmp_path: Path) -> None:
    first = qd.release(data, swap(), tmp_path / "1", measures=MEASURES)
    second = qd.release(data, swap(epsilon=7), tmp_path / "2", measures=MEASURES, after=tmp_path / "1")
    third = qd.release(data, swap(chance=0.3, epsilon=None), tmp_path / "3", measures=MEASURES, after=tmp_path / "2")
    assert first.guarantee and second.guarantee and third.guarantee
    own = third.guarantee.epsilon
    assert second.guarantee.total == pytest.approx(13, abs=1e-6) and second.guarantee.releases == 2
    assert third.guarantee.total == pytest.approx(13 + own, abs=1e-6) and third.guarantee.releases == 3
    kept = json.loads((third.confidential / "guarantee.json").read_text())
    assert [round(each["epsilon"], 6) for each in kept["releases"][:2]] == [6, 7] and len(kept["releases"]) == 3
    assert "13 per record, 7 of it by this release" in " ".join(note_of(second).split())
    both = qd.release(data, swap(), tmp_path / "4", measures=MEASURES, after=[tmp_path / "1", tmp_path / "3"])
    assert both.guarantee and both.guarantee.releases == 4, "each earlier release counts once"
    other = qd.from_frame(table(700))
    fresh = qd.release(other, swap(), tmp_path / "5", measures=MEASURES, after=tmp_path / "3")
    assert fresh.guarantee and fresh.guarantee.releases == 1, "of other data"


def test_the_same_plan_again_adds_nothing_and_keeps_its_promise(data: Data, tmp_path: Path) -> None:
    qd.release(data, swap(), tmp_path / "1", measures=MEASURES)
    again = qd.Recipe.from_json((tmp_path / "1/confidential/recipe.json").read_text())
    made = qd.release(data, again, tmp_path / "2", measures=MEASURES, after=tmp_path / "1")
    assert made.guarantee and made.guarantee.holds and made.guarantee.releases == 1
    assert made.guarantee.total == pytest.approx(6, abs=1e-6)


def test_an_earlier_release_without_a_guarantee_voids_this_one(data: Data, tmp_path: Path) -> None:
    qd.release(data, qd.RandomSwap(["job"], rate=0.1), tmp_path / "1", measures=MEASURES)
    made = qd.release(data, swap(), tmp_path / "2", measures=MEASURES, after=tmp_path / "1")
    assert made.guarantee and "has no guarantee, so both together have none" in made.guarantee.void[0]
    third = qd.release(data, swap(), tmp_path / "3", measures=MEASURES, after=tmp_path / "2")
    assert third.guarantee and not third.guarantee.holds, "and so are all that come after"
    (tmp_path / "2/confidential/guarantee.json").write_text('{"releases": [{"epsilon": "x"}]}')
    with pytest.raises(qd.QuadrilleError, match=r"guarantee\.json.* is damaged"):
        qd.release(data, swap(), tmp_path / "4", measures=MEASURES, after=tmp_path / "2")
    assert not (tmp_path / "4").exists()


GUARANTEED = "[swap]\nmax_epsilon = 8\nrequire_guarantee = true\n"


def judged(data: Data, recipe: qd.Recipe, text: str, tmp_path: Path, **options: object) -> dict[str, tuple[str, str]]:
    path = tmp_path / "policy.toml"
    path.write_text(text)
    verdict = qd.check_policy(data, recipe, path, **options)  # type: ignore[arg-type]
    return {line.rule: (line.verdict, line.found) for line in verdict.lines}


def test_a_policy_limits_epsilon_and_asks_for_a_guarantee(data: Data, tmp_path: Path) -> None:
    rules = ("[swap] max_epsilon", "[swap] require_guarantee")
    good = judged(data, swap(), GUARANTEED, tmp_path)
    assert [good[rule] for rule in rules] == [("pass", "6"), ("pass", "epsilon 6")]
    large = judged(data, swap(epsilon=9), GUARANTEED, tmp_path)
    assert [large[rule][0] for rule in rules] == ["fail", "pass"]
    none = judged(data, qd.RandomSwap(["job"], rate=0.1), GUARANTEED, tmp_path)
    assert [none[rule][0] for rule in rules] == ["fail", "fail"]
    void = judged(data, swap(), GUARANTEED, tmp_path, shuffle=False)
    assert [void[rule] for rule in rules] == [("fail", "void"), ("fail", "void")]
    qd.release(data, swap(), tmp_path / "1", measures=MEASURES)
    both = judged(data, swap(), GUARANTEED, tmp_path, after=tmp_path / "1")
    assert both["[swap] max_epsilon"] == ("fail", "12, of 2 releases")
    with pytest.raises(PolicyError, match=r"max_epsilon \(asked at most 8, found 12, of 2 releases\)"):
        qd.release(data, swap(), tmp_path / "2", policy=tmp_path / "policy.toml", after=tmp_path / "1")
    assert not (tmp_path / "2").exists()


def test_checking_draws_another_plan_so_the_release_can_follow(data: Data, tmp_path: Path) -> None:
    recipe = swap()
    judged(data, recipe, GUARANTEED, tmp_path)
    made = qd.release(data, recipe, tmp_path / "made", measures=MEASURES, policy=tmp_path / "policy.toml")
    assert made.guarantee and made.guarantee.holds and made.verdict and made.verdict.outcome == "pass"


@pytest.mark.parametrize(
    "rule",
    [
        "[measures]\nhellinger = {most = 0.9}",
        "[cells]\nsmallest = 3\nexposed = {most = 0.9}",
        '[published]\ntables = ["job*sex"]\npercent = {most = 1e9}',
        "[swap]\nrate = {most = 1.0}",
        "[swap]\nchanged = {most = 1.0}",
    ],
)
def test_a_policy_that_judges_the_draw_picks_among_draws(rule: str, data: Data, tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(rule)
    made = qd.release(data, swap(), tmp_path / "made", measures=MEASURES, policy=path)
    assert made.guarantee and "judges the draw" in made.guarantee.void[0]
    assert "epsilon" not in note_of(made)


def test_no_verdict_depends_on_what_was_drawn(tmp_path: Path) -> None:
    """Small cells that are left are warned of after the verdict, else a strict policy would pick among draws."""
    random = np.random.default_rng(1)
    sparse = qd.from_frame(pl.DataFrame({name: random.integers(0, 9, 200) for name in "abcd"}))
    path = tmp_path / "policy.toml"
    path.write_text("[release]\nwarnings = 'fail'")
    for method, outcome in ((qd.PrivateSwap("a", chance=0.3), "pass"), (qd.RandomSwap("a", rate=0.3), "fail")):
        assert qd.check_policy(sparse, method, path).outcome == outcome
    with pytest.warns(ReleaseWarning, match="stand in cells of one or two"):
        made = qd.release(sparse, qd.PrivateSwap("a", chance=0.3), tmp_path / "made", measures=MEASURES, policy=path)
    assert made.guarantee and made.guarantee.holds


def test_weights_that_do_not_count_are_refused_whoever_is_drawn(tmp_path: Path) -> None:
    """A refusal only where such a record happens to move would let whoever tries again pick among draws."""
    columns = {"a": [1, 1, 2, 2] * 2, "b": list("xyxy") * 2, "w": [1e12] * 7 + [1e-9]}
    lopsided = qd.from_frame(pl.DataFrame(columns), weight="w")
    with pytest.raises(qd.QuadrilleError, match=r"counts as 0 in 'w'.*the swap may move 1 of these records"):
        qd.release(lopsided, qd.PrivateSwap("a", chance=1e-6), tmp_path / "made", measures=MEASURES)
    assert not (tmp_path / "made").exists()


def test_a_draw_that_moves_nothing_is_released_because_refusing_it_would_be_picking(tmp_path: Path) -> None:
    small = qd.from_frame(pl.DataFrame({"a": [1, 1, 2, 2], "b": ["x", "y", "x", "y"]}))
    with pytest.warns(ReleaseWarning, match="are expected to move: the public file is nearly the original"):
        made = qd.release(small, qd.PrivateSwap("a", epsilon=12), tmp_path / "made")
    assert made.account.records == 0 and made.guarantee and made.guarantee.holds
    public = pl.read_csv(made.public / "data.csv")
    assert sorted(public.rows()) == sorted(small.frame().rows())


def test_users_correct_by_the_published_factor_of_each_group(data: Data, tmp_path: Path) -> None:
    recipe = swap(chance=0.2, epsilon=None)
    made = qd.release(data, recipe, tmp_path / "made", measures=MEASURES, publish_f=True)
    said = read_published(note_of(made), "the note")
    strata = recipe.strata(data)
    assert (
        said.kind == "private"
        and said.swapped == ("job",)
        and said.sizes == dict(zip(strata.labels, strata.n.tolist(), strict=True))
    )
    known = dict(zip(strata.labels, strata.expected / (strata.n - 1), strict=True))
    assert said.f == pytest.approx(known, rel=1e-11)
    public = pl.read_csv(made.public / "data.csv")
    counts = (
        public.group_by("region", "sex", "job").len().pivot("job", index=["region", "sex"], values="len").fill_null(0)
    )
    path = tmp_path / "table.csv"
    counts.sort("region", "sex").select("sex", "region", pl.exclude("sex", "region")).write_csv(path)
    note = str(made.public / "methods.md")
    words = ["correct", str(path), "--methods-note", note, "--class-column", "region", "--json"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert sum(cell["corrected"] for cell in json.loads(done.stdout)["cells"]) == pytest.approx(data.n)


def test_a_report_on_a_private_candidate_says_that_its_draw_promises_nothing(data: Data, tmp_path: Path) -> None:
    grid = qd.grid(qd.PrivateSwap, swap=[["job"]], chance=[0.1, 0.3], seeds=1)
    study = qd.search(data, grid, ["small_cells", "exposed", "hellinger"], out=tmp_path / "study")
    page = qd.report.write_report(study, data, tmp_path / "report.html", candidate=1).read_text(encoding="utf-8")
    assert "What is guaranteed" in page and "Nothing is guaranteed for this draw" in page
