"""Searching, looking at the frontier, choosing and releasing a candidate from the command line."""

from __future__ import annotations

import json
import sqlite3
import stat
from contextlib import closing
from pathlib import Path
from time import sleep
from typing import Any

import pytest
from cli_files import JOB, Run
from typer.testing import Result

import quadrille as qd

RELEASE = "release good.csv --codebook book.toml --study small.study"


def shown(result: Result) -> str:
    assert result.exit_code == 0, result.output
    return " ".join(result.stdout.split())


def document(result: Result) -> dict[str, Any]:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def listing(folder: Path) -> dict[str, bytes | None]:
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def seeds_in(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as db:
        return [row[0] for row in db.execute("SELECT seed FROM seeds")]


def results(path: Path) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as db:
        return db.execute("SELECT id, status, m0, m1, m2 FROM results ORDER BY id").fetchall()


# Searching


def test_search_scores_every_candidate_of_the_job(run: Run, folder: Path) -> None:
    found = document(run("search job.toml --json"))
    study = qd.Study(folder / "new.study")
    assert found["study"] == "new.study"
    # 6 sets of variables x 2 rates, and Sex at 5 and 21 pairs with and without a constraint, three seeds each
    assert found["candidates"] == len(study) == 3 * (6 * 2 + 2 * 2)
    assert found["counts"] == study.counts() == {"pending": 0, "done": 42, "infeasible": 6, "failed": 0}
    assert [(each["status"], each["candidates"]) for each in found["reasons"]] == [("infeasible", 3), ("infeasible", 3)]
    assert all("21 pairs cannot be drawn" in each["reason"] for each in found["reasons"])
    assert found["axes"] == ["small_cells", "hellinger"]
    assert found["frontier"] == len(study.frontier())
    assert found["knee"]["candidate"] == study.pick("knee").candidate
    assert found["unswapped"] == study.unswapped
    three = {word: choice.candidate for word, choice in study.recommended().items()}
    assert {word: choice["candidate"] for word, choice in found["recommended"].items()} == three
    assert found["picked"] is None, "nobody has picked yet"
    assert stat.S_IMODE((folder / "new.study").stat().st_mode) == 0o600


def test_search_says_what_it_found_and_what_to_do_next(run: Run) -> None:
    text = shown(run("search job.toml"))
    assert "48: 42 done, 6 infeasible" in text
    assert "3 candidates 21 pairs cannot be drawn" in text
    assert "Three candidates to look at; the limit is the agency's to set" in text
    assert "the file as it is" in text
    assert "quadrille pick new.study --max-risk" in text
    assert "quadrille release" not in text, "what nobody picked is not released"


def test_what_search_suggests_works(run: Run) -> None:
    lines = [line.strip() for line in run("search job.toml").stdout.splitlines()]
    suggested = [line.removeprefix("quadrille ") for line in lines if line.startswith("quadrille ")]
    assert suggested[0].startswith("pick new.study --max-risk") and suggested[-1] == "frontier new.study"
    for words in suggested:
        assert run(words).exit_code == 0, words


def test_a_second_search_goes_on_with_the_first(run: Run, folder: Path) -> None:
    assert run("search job.toml").exit_code == 0
    seeds, first = seeds_in(folder / "new.study"), results(folder / "new.study")
    with closing(sqlite3.connect(folder / "new.study")) as db, db:
        db.execute("DELETE FROM results WHERE id % 2 = 0")
    assert document(run("search job.toml --dry-run --json"))["results"] == 24
    assert run("search job.toml").exit_code == 0
    assert seeds_in(folder / "new.study") == seeds
    assert results(folder / "new.study") == first


def test_options_override_the_job(run: Run, folder: Path) -> None:
    found = document(run("search job.toml --out other --workers 1 --seeds 1 --json"))
    assert (found["study"], found["candidates"]) == ("other", 16)
    assert len(seeds_in(folder / "other")) == 1
    assert not (folder / "new.study").exists()


def test_secret_seeds_take_the_place_of_given_ones(run: Run, folder: Path) -> None:
    (folder / "job.toml").write_text(JOB.replace("seeds = 3", "seed = [1, 2]"))
    assert run("search job.toml --seeds 2").exit_code == 0
    assert all(len(seed) == 64 for seed in seeds_in(folder / "new.study"))


def test_the_same_numbers_as_seeds_give_the_same_study(run: Run, folder: Path) -> None:
    (folder / "job.toml").write_text(JOB.replace("seeds = 3", "seed = [11, 12]"))
    for name in ("one", "two"):
        assert run(f"search job.toml --out {name}").exit_code == 0
    assert results(folder / "one") == results(folder / "two")


def test_a_search_that_is_stopped_says_how_to_go_on(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    import quadrille.study.run

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(quadrille.study.run, "search", stop)
    result = run("search job.toml")
    assert (result.exit_code, result.stdout) == (130, "")
    assert "The results so far are in 'new.study'; the same command goes on from there." in result.stderr


@pytest.mark.parametrize(("measure", "side"), [("hellinger", "risk"), ("exposed", "loss")])
def test_a_search_without_two_sides_has_no_frontier(measure: str, side: str, run: Run, folder: Path) -> None:
    (folder / "job.toml").write_text(JOB.replace('"small_cells", "exposed", "hellinger"', f'"{measure}"'))
    found = document(run("search job.toml --json"))
    assert (found["axes"], found["frontier"], found["knee"]) == (None, None, None)
    assert f"has no {side} measure" in found["warnings"][0]
    assert f"has no {side} measure" in shown(run("search job.toml"))


def test_a_search_in_which_nothing_can_be_drawn_says_so(run: Run, folder: Path) -> None:
    text = JOB.split("[[grid]]")[0] + '[[grid]]\nmethod = "RandomSwap"\nswap = ["Sex"]\npairs = 21\nseeds = 2\n'
    (folder / "job.toml").write_text(text)
    told = shown(run("search job.toml"))
    assert "2: 2 infeasible" in told
    assert "nothing to choose from" in told
    assert document(run("frontier new.study --json"))["frontier"] == []
    assert "no candidate to draw" in run("frontier new.study").stdout
    assert "none can be done" in run("pick new.study").stderr


# Dry runs


def test_a_dry_run_counts_times_and_tries_but_writes_nothing(run: Run, folder: Path) -> None:
    before = listing(folder)
    found = document(run("search job.toml --dry-run --json"))
    assert (found["candidates"], found["designs"], found["checked"], found["timed"]) == (48, 16, 16, 14)
    assert found["seconds"] > 48 * found["seconds_each"] > 0
    assert [each["design"] for each in found["refused"]] == ["swap Sex, pairs 21", "swap Sex, pairs 21, same Age"]
    assert all("21 pairs cannot be drawn" in each["reason"] for each in found["refused"])
    assert listing(folder) == before


def test_a_dry_run_reads_like_this(run: Run, folder: Path) -> None:
    before = listing(folder)
    text = shown(run("search job.toml --dry-run --workers 3"))
    for part in (
        "Dry run: nothing is written",
        "48: 16 designs with 3 seeds each",
        "new.study (new)",
        "about 1 s with 3 workers, an estimate from 14 candidates of",
        "2 designs (all 16 were checked)",
        "1 design 21 pairs cannot be drawn for",
    ):
        assert part in text
    assert "small.study (exists with 48 results" in shown(run("search job.toml --dry-run --out small.study"))
    assert listing(folder) == before


def test_a_dry_run_of_many_designs_checks_some_and_says_how_many(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from quadrille.study import forecast

    monkeypatch.setattr(forecast, "MOST_CHECKED", 5)
    found = document(run("search job.toml --dry-run --json"))
    assert (found["designs"], found["checked"]) == (16, 5)
    assert "(5 of the 16 were checked)" in shown(run("search job.toml --dry-run"))
    monkeypatch.setattr(forecast, "MOST_SECONDS", 0.0)
    assert document(run("search job.toml --dry-run --json"))["checked"] == 1


def test_candidates_that_two_grids_share_count_once(run: Run, folder: Path) -> None:
    head, grid, _ = JOB.split("[[grid]]")
    twice = head + 2 * ("[[grid]]" + grid.replace("seeds = 3", "seed = [1, 2]"))
    (folder / "job.toml").write_text(twice)
    assert document(run("search job.toml --dry-run --json"))["candidates"] == 24
    assert document(run("search job.toml --json"))["candidates"] == 24


# The frontier


def test_frontier_lists_what_no_other_candidate_dominates(run: Run, folder: Path) -> None:
    study = qd.Study(folder / "small.study")
    found = document(run("frontier small.study --json"))
    assert [row["id"] for row in found["frontier"]] == study.frontier()["id"].to_list()
    assert (found["candidates"], found["left_out"]) == (42, 6)
    assert found["knee"]["candidate"] == study.pick("knee").candidate
    best = found["frontier"][0]
    assert best["scores"].keys() == {"small_cells", "exposed", "population_risk", "hellinger"}
    assert best["pairs"] in (3, 5, 9)
    assert "seed" not in best


def test_the_chart_of_the_frontier_shows_what_theory_predicts(run: Run, folder: Path) -> None:
    assert run("search job.toml --seeds 2").exit_code == 0
    found = document(run("frontier new.study --risk exposed --chart made.svg --json"))
    assert found["chart"] == "made.svg"
    picture = (folder / "made.svg").read_text(encoding="utf-8")
    known = [each for each in found["predicted"]["points"] if each["loss"] is not None]
    assert bool(known) == ("predicted (white diamonds)" in picture)
    text = shown(run("frontier new.study --chart other.png"))
    assert "Drew other.png." in text
    assert "predicted curve" in text or "frontier that theory predicts" in text
    assert run("frontier new.study --chart other.png").exit_code == 2
    assert "add --chart FILE" in run("frontier new.study --data good.csv").stderr
    assert "made for other data" in run("frontier new.study --chart new.png --data dataset:cps8d").stderr
    (folder / "good.csv").rename(folder / "moved.csv")
    assert "There is no predicted curve: " in shown(run("frontier new.study --chart alone.png"))
    assert (folder / "alone.png").read_bytes().startswith(b"\x89PNG")


def test_frontier_on_other_axes(run: Run, folder: Path) -> None:
    study = qd.Study(folder / "small.study")
    found = document(run("frontier small.study --risk exposed --json"))
    assert found["axes"] == ["exposed", "hellinger"]
    assert [row["id"] for row in found["frontier"]] == study.frontier("exposed", "hellinger")["id"].to_list()


def test_the_n_rule_is_never_shown_without_exposed(run: Run, folder: Path) -> None:
    assert "small_cells hellinger exposed" in shown(run("frontier small.study"))
    assert run("search n_rule_job.toml").exit_code == 0
    swap = "swap good.csv --swap Sex --pairs 5 --seed 1 --measures small_cells"
    for words in ("search n_rule_job.toml", "frontier new.study", "pick new.study", swap):
        assert "exposed" in shown(run(words)), words


def test_designs_with_one_seed_are_warned_of(run: Run) -> None:
    assert run("search job.toml --seeds 1").exit_code == 0
    for words in ("search job.toml --seeds 1", "frontier new.study", "pick new.study"):
        assert "Some designs have one seed only" in shown(run(words)), words


def test_what_all_candidates_ask_for_is_said_once(run: Run, folder: Path) -> None:
    (folder / "job.toml").write_text(JOB.replace("seeds = 3", 'sampler = "pair-uniform"\nseeds = 3'))
    assert run("search job.toml").exit_code == 0
    assert shown(run("frontier new.study")).count("sampler pair-uniform") == 1


def test_a_long_frontier_is_thinned_but_keeps_its_ends_and_the_knee() -> None:
    from quadrille.cli.study_show import thinned

    rows: list[dict[str, Any]] = [{"id": number} for number in range(1000)]
    kept = [row["id"] for row in thinned(rows, 50, keep=501)]
    assert (kept[0], kept[-1], len(kept)) == (0, 999, 51)
    assert 501 in kept and kept == sorted(kept)
    assert thinned(rows[:50], 50, keep=None) == rows[:50]


# Choosing


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ("--criterion gentle", {"rule": "gentle"}),
        ("--criterion knee", {"rule": "knee"}),
        ("--criterion least-loss --max-risk 0.9", {"rule": "least loss", "max_risk": 0.9}),
        ("--criterion least-risk --max-loss 0.3", {"rule": "least risk", "max_loss": 0.3}),
        ("--max-risk 0.9", {"max_risk": 0.9}),
        ("--max-loss 0.3", {"max_loss": 0.3}),
        ("--trade 2", {"trade": 2.0}),
        ("--criterion linear --trade 0.5", {"rule": "linear", "trade": 0.5}),
        ("--criterion ideal --weights 3,1", {"rule": "ideal", "weights": (3.0, 1.0)}),
        ("--criterion lexicographic", {"rule": "lexicographic"}),
        (
            "--risk exposed --loss hellinger --criterion safe",
            {"rule": "safe", "risk": "exposed", "loss": "hellinger"},
        ),
    ],
)
def test_pick_is_the_pick_of_the_library(words: str, asked: dict[str, Any], run: Run, folder: Path) -> None:
    chosen = qd.Study(folder / "small.study").pick(**asked)
    found = document(run(f"pick small.study {words} --json"))
    assert found["candidate"] == chosen.candidate
    assert found["explanation"] == chosen.explain()
    assert found["design"] == json.loads(chosen.recipe.design_json())
    text = shown(run(f"pick small.study {words}"))
    assert " ".join(chosen.explain().split()) in text
    assert f"quadrille release FILE --study small.study --candidate {chosen.candidate}" in text
    assert "exposed risk lower" in text


def test_pick_pins_a_note_that_the_frontier_shows(run: Run, folder: Path) -> None:
    found = document(run(["pick", "small.study", "--criterion", "knee", "--note", "for the board", "--json"]))
    assert found["note"] == "for the board"
    frame = qd.Study(folder / "small.study").frame()
    assert dict(zip(frame["id"], frame["note"], strict=True))[found["candidate"]] == "for the board"
    assert "Notes" in (text := shown(run("frontier small.study"))) and "for the board" in text


def test_pick_saves_the_recipe_for_its_owner_alone(run: Run, folder: Path) -> None:
    found = document(run("pick small.study --criterion knee --save-recipe new.json --json"))
    recipe = qd.Recipe.from_json((folder / "new.json").read_text())
    assert recipe == qd.Study(folder / "small.study").recipe(found["candidate"])
    assert stat.S_IMODE((folder / "new.json").stat().st_mode) == 0o600
    assert run("pick small.study --criterion knee --save-recipe new.json").exit_code == 2
    assert run("pick small.study --criterion knee --save-recipe new.json --overwrite").exit_code == 0


def test_the_criteria_are_those_of_the_library() -> None:
    from quadrille.cli.commands.study import CRITERIA
    from quadrille.study import choose

    assert [word.replace("-", " ") for word in CRITERIA] == list(choose.RULES)


# Releasing


@pytest.mark.parametrize("which", ["--candidate 7", "--pick"])
def test_a_candidate_is_released_by_its_recipe(which: str, run: Run, folder: Path) -> None:
    study = qd.Study(folder / "small.study")
    recipe = study.recipe(7) if which == "--candidate 7" else study.pick("knee").recipe
    found = document(run(f"{RELEASE} {which} --out new --json"))
    assert qd.Recipe.from_json((folder / "new/confidential/recipe.json").read_text()) == recipe
    number = 7 if which == "--candidate 7" else study.pick("knee").candidate
    row = study.frame()[number - 1].to_dicts()[0]
    for measure in study.measures:
        assert found["scores"][measure]["value"] == row[measure]
    assert "entropy_change" in found["scores"], "the default measures are there too"


def test_measures_named_for_a_release_are_the_only_ones(run: Run) -> None:
    found = document(run(f"{RELEASE} --pick --out new --measures hellinger --json"))
    assert list(found["scores"]) == ["hellinger"]


def test_other_data_than_those_of_the_study_are_refused_and_nothing_is_written(run: Run, folder: Path) -> None:
    lines = (folder / "good.csv").read_text().splitlines()
    (folder / "good.csv").write_text("\n".join([lines[0], *reversed(lines[1:])]) + "\n")
    before = listing(folder)
    result = run(f"{RELEASE} --pick --out new")
    assert result.exit_code == 2
    assert "The study 'small.study' was made for other data." in result.stderr
    assert listing(folder) == before


def test_an_infeasible_candidate_is_not_released(run: Run, folder: Path) -> None:
    frame = qd.Study(folder / "small.study").frame()
    number = next(i for i, status in zip(frame["id"], frame["status"], strict=True) if status == "infeasible")
    result = run(f"{RELEASE} --candidate {number} --out new")
    assert result.exit_code == 2
    assert "21 pairs cannot be drawn" in result.stderr
    assert not (folder / "new").exists()


# Secrets


COMMANDS = (
    "search job.toml --out small.study",
    "search job.toml --out small.study --dry-run",
    "frontier small.study",
    "pick small.study",
    "pick small.study --criterion knee --save-recipe new.json --note x --overwrite",
    f"{RELEASE} --pick --out new --overwrite",
)


@pytest.mark.parametrize("words", COMMANDS)
def test_no_command_prints_a_seed(words: str, run: Run, folder: Path) -> None:
    assert run("search job.toml --out small.study").exit_code == 0
    assert run("pick small.study --criterion knee").exit_code == 0
    seeds = seeds_in(folder / "small.study")
    assert len(seeds) == 3 and all(len(seed) == 64 for seed in seeds), "the grids share secrets, also when resumed"
    for result in (run(words), run(words + " --json")):
        assert result.exit_code == 0, result.output
        for seed in seeds:
            assert seed not in result.output


def test_no_command_prints_a_number_that_serves_as_seed(run: Run, folder: Path) -> None:
    (folder / "job.toml").write_text(JOB.replace("seeds = 3", "seed = [918273645, 546372819]"))
    for words in ("search job.toml", "search job.toml --dry-run", "frontier new.study", "pick new.study"):
        for result in (run(words), run(words + " --json")):
            assert result.exit_code == 0, result.output
            assert "918273645" not in result.output and "546372819" not in result.output


def test_a_dry_run_says_how_many_seeds_designs_have(run: Run, folder: Path) -> None:
    first, second = (folder / "job.toml").read_text().rsplit("seeds = 3", 1)
    (folder / "job.toml").write_text(f"{first}seeds = 2{second}")
    assert "16 designs with 2 to 3 seeds each" in " ".join(run("search job.toml --dry-run").stdout.split())


def test_a_forecast_does_not_count_what_is_compiled_at_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, seen, real = qd.read(folder / "good.csv"), set[str](), qd.RandomSwap.prepare

    def slow_at_first(recipe: qd.RandomSwap, data: qd.Data) -> object:
        if recipe.design_json() not in seen:
            seen.add(recipe.design_json())
            sleep(0.2)
        return real(recipe, data)

    monkeypatch.setattr(qd.RandomSwap, "prepare", slow_at_first)
    recipes = qd.grid(qd.RandomSwap, swap=[["Sex"], ["Age"]], pairs=[3, 5], seed=1)
    ahead = qd.forecast(data, recipes, ["hellinger"])
    assert ahead.timed == 4
    assert (ahead.seconds_each or 1) < 0.1


def test_the_designs_of_a_study_are_listed_with_their_numbers(run: Run) -> None:
    designs = json.loads(run("frontier small.study --json").stdout)["designs"]
    assert designs[13] == {"design": 14, "words": "Sex, 5 pairs, same Age"}
    assert run("frontier small.study --runs --design 14").exit_code == 0


def test_times_have_no_powers_of_ten() -> None:
    from quadrille.present.numbers import pace

    assert [pace(each) for each in (0.00019, 0.0996, 2.9, 120.0)] == ["0.19 ms", "100 ms", "2.9 s", "120.0 s"]
