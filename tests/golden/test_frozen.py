"""Recipes, scores, studies and files written by version 0.1.0, which every later version must read and redraw.

A release can only be checked, repeated or undone as long as its recipe draws the same plan: what lies in `frozen/` is
never adapted to a new version. Each function that is not a test says what is compared; `tools/freeze.py` wrote the
files with these same functions.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import shutil
import struct
from collections.abc import Iterable, Mapping, Sequence
from contextlib import chdir
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import polars.selectors as cs
import pytest
from typer.testing import CliRunner

import quadrille as qd
from quadrille.swap.designed.pairs import DesignedPairs

FROZEN = Path(__file__).parent / "frozen"
METHODS = (qd.RandomSwap, qd.PermutationSwap, qd.ControlledSwap, DesignedPairs)
"""Named so that their recipes can be read back; `DesignedSwap` was `DesignedPairs` when the files were written."""
OLD_VERSION = (r'^(method = "(?:Designed|Random|Permutation)Swap")$', r"\1\nversion = 1")
"""A job file says no version of itself and gets the designs of today; with this line it goes on as it began."""
ANYWAY = "--allow-contradictions"
"""Version 0.1.0 did not look for contradictions, and its jobs move columns that others of the file give away."""


@cache
def frozen(name: str) -> Any:
    """Return what a file of the folder says; nothing as long as it is not written."""
    path = FROZEN / name
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else []


@cache
def dataset(name: str) -> qd.Data:
    """Return the data that a recipe is for."""
    if name == "survey":
        return qd.read(FROZEN / "survey.csv", codebook=FROZEN / "survey.toml")
    if name == "state":
        return qd.datasets.state(records=3_200)
    return {"cps8d": qd.datasets.cps8d, "adult": qd.datasets.adult}[name]()


def sha256(*parts: bytes) -> str:
    """Hash parts, each with its length, so that none can run into the next."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(struct.pack("<q", len(part)) + part)
    return digest.hexdigest()


def rows_as_bytes(rows: np.ndarray) -> bytes:
    return np.ascontiguousarray(rows).astype("<i8").tobytes()


def plan_hash(plan: qd.Plan) -> str:
    """Hash every move: its columns, the rows that receive, the rows that give, and the pairs in their order."""
    parts: list[bytes] = []
    for move in plan.moves:
        pairs = b"none" if move.pairs is None else rows_as_bytes(move.pairs)
        parts += ["\0".join(move.columns).encode(), rows_as_bytes(move.rows), rows_as_bytes(move.source), pairs]
    return sha256(*parts)


def design_text(recipe: qd.Recipe) -> str:
    """Return the canonical JSON without the seed, by either of its names."""
    named = getattr(recipe, "design_json", None) or recipe.identity
    return named()


def drawn(text: str, name: str) -> dict[str, object]:
    """Redraw a recipe."""
    recipe = qd.Recipe.from_json(text)
    data = dataset(name)
    plan = recipe.plan(data)
    return {
        "recipe": recipe.to_json(),
        "data": name,
        "design": sha256(design_text(recipe).encode()),
        "plan": plan_hash(plan),
        "touched": len(plan.rows),
        "columns": list(plan.columns),
        "after": plan.after,
    }


def titles(cases: list[dict[str, Any]]) -> list[str]:
    """Number the cases, so that a failure names the recipe."""
    return [f"{number}-{case['data']}-{json.loads(case['recipe'])['method']}" for number, case in enumerate(cases)]


# Scores

BLAS = ("r_ased", "ased_reg")
"""Measures of sums of products and solved equations, whose last digits depend on the library of linear algebra."""
ADDRESSES = {
    "cps8d": (
        "hellinger(Age*Sex)",
        "total_variation(2-way)",
        "entropy_change(MS*Race*Edu)",
        "cramers_v_change(2-way)",
        "contingency_change(Edu*MS)",
        "small_cells(Age*Edu*Race, n=5)",
        "exposed(n=2)",
        "confidence(n=10)",
        "hellinger(Edu*MS, where=Sex=Male & Age!=<25)",
        "chi_square(Edu*MS, infinite=1)",
        "deviance(Edu*Race)",
        "r_ased(max_levels=4)",
        "hd2(min_cell=10)",
        "conditional_entropy(Edu)",
        "ordinal_shift(Age)",
    ),
    "adult": (
        "ased_reg(`hours-per-week` ~ age + C(sex) + `education-num`)",
        "r_ased(education*`hours-per-week`*age)",
        "hd1(education*sex)",
        "small_cells(sex*race*education, n=10)",
        "hellinger(education*workclass, where=workclass!=?)",
    ),
    "state": (
        "effective_swap_rate(county*race)",
        "chi_square(tract*race, infinite=1)",
        "renyi_difference(county*age)",
        "shannon_difference(tract*tenure)",
        "small_cells(county*age*race, n=5)",
        "deviance(county*income, where=age=15-24|25-34)",
    ),
    "survey": (
        "ased_reg(hours ~ C(sex) + Größe; degree ~ education)",
        "hd3(education)",
        "hd4_norm(MS*Größe, min_cell=5)",
        "c_ard(sex*education)",
        "v_ard(MS*Größe*occupation)",
        "hellinger(Größe*sex, where=Größe>=3)",
        "gini_difference(region*education)",
        "total_variation(occupation, where=occupation=?)",
    ),
}


def scored(text: str, name: str) -> dict[str, list[str | None]]:
    """Score a recipe by every measure and some addresses: the value in all its digits, and its note."""
    data = dataset(name)
    addresses = [*frozen_measures(), *ADDRESSES[name]]
    scores = qd.score(data, qd.Recipe.from_json(text).plan(data), addresses)
    return {each: [hexadecimal(scores[each]), scores.note(each)] for each in addresses}


def scored_by_area(text: str, name: str) -> dict[str, list[list[str | None]]]:
    """Score a recipe by area, in all digits."""
    data = dataset(name)
    plan = qd.Recipe.from_json(text).plan(data)
    scores = qd.score(data, plan, ["effective_swap_rate(race)", "hellinger(age)"], by=["county", "county*sex"])
    rows = scores.by("effective_swap_rate(race)").rows()
    tables = {"by": rows[:40], "spread": scores.spread().rows()}
    return {key: [[plain(value) for value in row] for row in table] for key, table in tables.items()}


def plain(value: object) -> Any:
    """Return a value that JSON gives back as it is, floats in all their digits."""
    return hexadecimal(value) if isinstance(value, float) else value


def hexadecimal(value: float | None) -> str | None:
    return None if value is None else value.hex()


def frozen_measures() -> list[str]:
    return [row["name"] for row in frozen("measures.json")]


def listed_measures() -> list[dict[str, str]]:
    return qd.measures().select("name", "side", "better", "range").to_dicts()


# Studies

RULES: dict[str, dict[str, Any]] = {
    "knee": {"rule": "knee"},
    "risk": {"max_risk": 0.0142},
    "loss": {"max_loss": 0.02},
    "trade": {"trade": 0.1},
    "ideal": {"rule": "ideal", "weights": (2.0, 1.0)},
    "lexicographic": {"rule": "lexicographic"},
    "other axes": {"rule": "knee", "risk": "small_cells", "loss": "cramers_v_change(Edu*MS)"},
}
MEASURES = ["exposed", "hellinger", "small_cells", "cramers_v_change(Edu*MS)"]
THEN = ["v_ard(Age*Edu*MS)", "entropy_change(2-way)"]
HEX = "00112233445566778899aabbccddeeff0123456789abcdeffedcba9876543210"


def searched(path: Path) -> qd.Study:
    """Search what the study of the folder holds: grids of all methods, a single recipe, secret seeds."""
    recipes = [
        qd.grid(qd.RandomSwap, swap=[["Edu"], ["MS", "Race"]], pairs=[244, 8000], same=[[], ["Sex"]], seed=range(2)),
        qd.grid(qd.RandomSwap, swap=[["MS"], ["Race"]], rate=0.02, order="one-by-one", seeds=2),
        qd.grid(qd.PermutationSwap, swap=["Age"], rate=[0.01, 0.02], kind=["pairs", "cycles"], seed=[5]),
        qd.grid(qd.ControlledSwap, swap=["Edu", "MS"], targets=0.01, method=["standard", "balanced"], seed=[6, 7]),
        qd.grid(DesignedPairs, share=[0.5, 1.0], choose="cheapest", seed=8),
        qd.RandomSwap(["Race"], pairs=100, rules=["Age=<25 & MS=Married"], seed=HEX),
    ]
    return qd.search(dataset("cps8d"), recipes, MEASURES, then=THEN, out=path, workers=1, progress=False)


def why(choice: qd.Choice) -> str:
    """Explain a choice without the lines that compare it with the file as it is: studies did not know that."""
    added = ("The file as it is: ", "It is not recommended: ")
    return "\n".join(line for line in choice.explain().splitlines() if not line.startswith(added))


def seen(study: qd.Study) -> dict[str, Any]:
    """Return what a study shows: candidates, recipes, frontier and choices."""
    chosen = {name: study.pick(**how) for name, how in RULES.items()}
    return {
        "measures": list(study.measures),
        "counts": study.counts(),
        "rows": [{key: plain(value) for key, value in row.items()} for row in study.frame().to_dicts()],
        "recipes": [study.recipe(number).to_json() for number in study.ids.tolist()],
        "frontier": study.frontier()["id"].to_list(),
        "frontier of others": study.frontier("small_cells", "hellinger", "cramers_v_change(Edu*MS)")["id"].to_list(),
        "dominated by": study.dominated_by()["dominated_by"].to_list(),
        "trade-offs": [[plain(value) for value in row] for row in study.trade_offs().rows()],
        "picks": {name: [each.candidate, each.rule, why(each)] for name, each in chosen.items()},
    }


def copied(folder: Path, name: str) -> Path:
    """Copy a file or a folder, as its owner keeps it."""
    source, path = FROZEN / name, folder / name
    if source.is_dir():
        return Path(shutil.copytree(source, path))
    shutil.copyfile(source, path)
    path.chmod(0o600)
    return path


# The command line

JOBS = ("job-words.toml", "job-survey.toml", "job-guessed.toml")
DESIGNS = ("design-all.toml", "design-plain.toml")
POLICIES = {
    "all": ("policy-all.toml", "--format", "parquet"),
    "all, in order and with f": ("policy-all.toml", "--format", "dta", "--keep-order", "--publish-f"),
    "few": ("policy-few.toml",),
}
JUDGED = [
    *((policy, number) for policy in ("all", "few") for number in (0, 1, 10, 21, 34, 47)),
    *(("all, in order and with f", number) for number in (20, 21)),
]
"""Which policy judges which of the recipes; all of these are for cps8d, and permutations have a factor f."""


CHECK = ("release", "dataset:cps8d", "--check", "--policy")
"""Was the command `policy`: the documents are those of before."""


def command(folder: Path, *words: str) -> tuple[int, Any]:
    """Run the program in a folder and return its exit code and the JSON it prints."""
    (program,) = entry_points(group="console_scripts", name="quadrille")
    with chdir(folder):
        done = CliRunner().invoke(import_module(program.module).app, [*words, "--json"], env={"QUADRILLE_POLICY": ""})
    assert done.stdout.startswith("{"), done.output
    return done.exit_code, json.loads(done.stdout)


def holds(new: Any, old: Any) -> bool:
    """Tell whether a document says all that an older one says; it may say more."""
    if isinstance(old, Mapping):
        return isinstance(new, Mapping) and all(key in new and holds(new[key], old[key]) for key in old)
    if isinstance(old, list):
        return isinstance(new, list) and len(new) == len(old) and all(map(holds, new, old))
    if isinstance(old, float):
        return isinstance(new, float | int) and math.isclose(new, old, rel_tol=1e-9, abs_tol=1e-12)
    return type(new) is type(old) and new == old


def without(document: Any, *keys: str) -> Any:
    """Leave out what depends on the machine."""
    if isinstance(document, Mapping):
        return {key: without(value, *keys) for key, value in document.items() if key not in keys}
    return [without(each, *keys) for each in document] if isinstance(document, list) else document


def in_folder(folder: Path, names: Iterable[str]) -> Path:
    for name in names:
        copied(folder, name)
    return folder


def job_done(folder: Path, job: str) -> dict[str, Any]:
    """Run a job: how many candidates, which recipes (of secret seeds the design), which measures and which file.

    Where the version of a method has gone up since, the job is told to stay with the one it was written for. The
    risk of a sample has joined `exposed` by itself since, and is left out.
    """
    in_folder(folder, [job, "survey.csv", "survey.toml"])
    text = (folder / job).read_text(encoding="utf-8")
    (folder / job).write_text(re.sub(*OLD_VERSION, text, flags=re.MULTILINE), encoding="utf-8")
    before = set(folder.iterdir())
    code, dry = command(folder, "search", job, ANYWAY, "--dry-run")
    assert code == 0
    assert set(folder.iterdir()) == before
    code, done = command(folder, "search", job, ANYWAY, "--workers", "1")
    assert code == 0
    (made,) = set(folder.iterdir()) - before
    study = qd.Study(made)
    return {
        "out": made.name,
        "dry": {key: dry[key] for key in ("candidates", "designs", "measures", "then")},
        "counts": done["counts"],
        "measures": [address for address in done["measures"] if not address.startswith("population_risk")],
        "recipes": [public(study.recipe(number)) for number in study.ids.tolist()],
    }


def public(recipe: qd.Recipe) -> str:
    """Return a recipe as JSON, without a seed that differs from run to run."""
    seed = recipe.parameters()["seed"]
    return recipe.to_json() if isinstance(seed, int) or seed.startswith("0f1e2d3c") else design_text(recipe)


def judged(folder: Path, policy: Sequence[str], number: int) -> dict[str, Any]:
    """Judge a recipe by a policy: the exit code and the lines of the verdict."""
    in_folder(folder, policy[:1])
    (folder / "recipe.json").write_text(PLANS[number]["recipe"], encoding="utf-8")
    code, found = command(folder, *CHECK, *policy, "--recipe", "recipe.json")
    return {"code": code, **found}


def frontier_judged(folder: Path) -> dict[str, Any]:
    """Judge the frontier of the study by a policy."""
    in_folder(folder, ["study.db", "policy-few.toml"])
    code, found = command(folder, *CHECK, "policy-few.toml", "--study", "study.db")
    return {"code": code, **found}


def study_shown(folder: Path) -> dict[str, Any]:
    """Show the frontier and a choice on the command line."""
    in_folder(folder, ["study.db"])
    code, frontier = command(folder, "frontier", "study.db")
    other, pick = command(folder, "pick", "study.db", "--max-risk", "0.0142")
    return {"codes": [code, other], "frontier": frontier, "pick": without(pick, "seconds")}


def simulated(folder: Path, design: str) -> dict[str, Any]:
    """Simulate a design, or go on with what the folder holds: its settings, seed and replicates in all digits."""
    in_folder(folder, [design])
    code, found = command(folder, "simulate", design, "--out", simulation(design), "--workers", "1")
    assert code == 0
    rows = pl.read_parquet(folder / simulation(design) / "replicates.parquet")
    texts = rows.with_columns(cs.enum().cast(pl.String))
    return {
        "analysis": found,
        "columns": rows.columns,
        "runs": len(rows),
        "first": [[plain(value) for value in row] for row in texts.rows()[:12]],
        "all": sha256(*(repr([plain(value) for value in row]).encode() for row in texts.rows())),
    }


def simulation(design: str) -> str:
    return design.replace("design", "simulated").removesuffix(".toml")


def books(folder: Path) -> dict[str, str]:
    """Write codebooks again: one read by Python, one by the command line, and one that is guessed."""
    in_folder(folder, ["survey.csv", "survey.toml"])
    read, guessed = ("inspect", "survey.csv", "--codebook", "survey.toml"), ("inspect", "survey.csv", "--weight", "w")
    command(folder, *read, "--full", "--write-codebook", "read.toml")
    command(folder, *guessed, "--geography", "region,district", "--full", "--write-codebook", "guessed.toml")
    names = ("read.toml", "guessed.toml")
    written = {name: (folder / name).read_text(encoding="utf-8") for name in names}
    return {"codebook.toml": qd.Codebook.read(FROZEN / "codebook.toml").to_toml(), **written}


def inspected(folder: Path) -> dict[str, Any]:
    """Inspect the survey with and without its codebook."""
    in_folder(folder, ["survey.csv", "survey.toml"])
    _, read = command(folder, "inspect", "survey.csv", "--codebook", "survey.toml")
    _, guessed = command(folder, "inspect", "survey.csv", "--weight", "w", "--geography", "region,district")
    return {"read": read, "guessed": guessed}


DATA = frozen("data.json")
PLANS = frozen("plans.json")
EXACT_PLANS = frozen("exact-plans.json")
"""Designed swaps that keep tables: version 2 of the method, written when it came."""
WRITTEN = frozen("written.json")
SCORES = frozen("scores.json")


def test_no_frozen_recipe_is_lost() -> None:
    assert (len(DATA), len(PLANS), len(EXACT_PLANS), len(WRITTEN), len(SCORES)) == (4, 58, 13, 8, 11)


@pytest.mark.parametrize("name", DATA)
def test_the_data_of_the_recipes_are_the_same(name: str) -> None:
    assert dataset(name).fingerprint == DATA[name]


@pytest.mark.parametrize("case", [*PLANS, *EXACT_PLANS], ids=titles([*PLANS, *EXACT_PLANS]))
def test_a_recipe_is_read_written_and_drawn_as_it_was(case: dict[str, Any]) -> None:
    assert drawn(case["recipe"], case["data"]) == case


@pytest.mark.parametrize("case", WRITTEN, ids=[case["why"] for case in WRITTEN])
def test_a_recipe_written_in_other_words_is_the_same_recipe(case: dict[str, Any]) -> None:
    assert drawn(case["text"], case["drawn"]["data"]) == case["drawn"]


@pytest.mark.parametrize(
    "text",
    [
        '{"method":"RandomSwap","rate":0.02,"seed":7,"swap":["Edu"],"version":3}',
        '{"method":"RandomSwap","pace":0.02,"seed":7,"swap":["Edu"],"version":1}',
        '{"method":"ControlledSwap","seed":7,"swap":["Edu"],"targets":0.01,"variant":"other","version":1}',
        '{"method":"PermutationSwap","rate":0.1,"rules":["MS=Other"],"seed":7,"swap":["Edu"],"version":1}',
        '{"method":"OtherSwap","seed":7,"swap":["Edu"],"version":1}',
    ],
)
def test_a_recipe_that_was_refused_is_refused(text: str) -> None:
    with pytest.raises(qd.QuadrilleError):
        qd.Recipe.from_json(text)


def test_a_recipe_without_a_version_was_refused_and_is_now_that_of_today() -> None:
    text = '{"method":"RandomSwap","rate":0.02,"seed":7,"swap":["Edu"]}'
    assert qd.Recipe.from_json(text) == qd.RandomSwap(["Edu"], rate=0.02, seed=7)


def test_every_measure_has_its_name_side_direction_and_range() -> None:
    now = {row["name"]: row for row in listed_measures()}
    assert [now[row["name"]] for row in frozen("measures.json")] == frozen("measures.json")


@pytest.mark.parametrize("case", SCORES, ids=titles(SCORES))
def test_a_plan_has_the_scores_it_had_to_the_last_digit(case: dict[str, Any]) -> None:
    found = scored(case["recipe"], case["data"])
    assert set(found) == set(case["scores"])
    for address, (value, note) in case["scores"].items():
        now, says = found[address]
        assert says == note, address
        if now != value and address.partition("(")[0] in BLAS and None not in (now, value):
            assert float.fromhex(now) == pytest.approx(float.fromhex(value), rel=1e-12, abs=0), address
        else:
            assert now == value, address


def test_a_plan_has_the_scores_by_area_that_it_had() -> None:
    case = frozen("areas.json")
    assert scored_by_area(case["recipe"], case["data"]) == case["scores"]


def test_a_study_shows_what_it_showed(tmp_path: Path) -> None:
    assert holds(seen(qd.Study(copied(tmp_path, "study.db"))), frozen("study.json"))


def test_a_finished_study_is_resumed_without_new_work(tmp_path: Path) -> None:
    path = copied(tmp_path, "study.db")
    assert holds(seen(searched(path)), frozen("study.json"))  # the seconds that each candidate took are part of it


def test_a_study_of_an_old_version_is_not_mixed_with_a_new_one(tmp_path: Path) -> None:
    path = copied(tmp_path, "study.db")
    new = [qd.RandomSwap(["Age"], pairs=9, seed=1), qd.grid(qd.DesignedSwap, share=[0.5, 1.0], seeds=2)]
    with pytest.raises(qd.QuadrilleError, match="holds DesignedSwap of version 1") as caught:
        qd.search(dataset("cps8d"), new, MEASURES, then=THEN, out=path, workers=1, progress=False)
    assert "write version = 1 next to its method in the job file" in str(caught.value)
    assert "quadrille.swap.designed.pairs.DesignedPairs" in str(caught.value)
    assert holds(seen(qd.Study(path)), frozen("study.json")), "nothing was added before it was refused"


def test_a_study_of_the_same_recipes_has_the_same_scores(tmp_path: Path) -> None:
    old = frozen("study.json")
    recipes = [qd.Recipe.from_json(text) for text in old["recipes"]]
    study = qd.search(dataset("cps8d"), recipes, MEASURES, then=THEN, out=tmp_path / "new", workers=1, progress=False)
    study.note(3, "for the board")
    assert holds(seen(study), without(old, "seconds"))


def test_a_study_shows_its_frontier_and_choice_on_the_command_line(tmp_path: Path) -> None:
    assert holds(study_shown(tmp_path), frozen("shown.json"))


@pytest.mark.parametrize("job", JOBS)
def test_a_job_gives_the_candidates_that_it_gave(job: str, tmp_path: Path) -> None:
    assert holds(job_done(tmp_path, job), frozen("jobs.json")[job])


@pytest.mark.parametrize(("policy", "number"), JUDGED)
def test_a_policy_has_the_verdict_that_it_had(policy: str, number: int, tmp_path: Path) -> None:
    assert holds(judged(tmp_path, POLICIES[policy], number), frozen("verdicts.json")[f"{policy}: {number}"])


def test_a_policy_judges_the_frontier_of_a_study_as_it_did(tmp_path: Path) -> None:
    assert holds(frontier_judged(tmp_path), frozen("frontier.json"))


@pytest.mark.parametrize("design", DESIGNS)
def test_a_design_is_simulated_as_it_was(design: str, tmp_path: Path) -> None:
    assert holds(simulated(tmp_path, design), frozen("simulations.json")[design])


@pytest.mark.parametrize("design", DESIGNS)
def test_a_finished_simulation_is_opened_without_new_work(design: str, tmp_path: Path) -> None:
    results = copied(tmp_path, simulation(design)) / "replicates.parquet"
    before = results.stat().st_mtime_ns
    assert holds(simulated(tmp_path, design), frozen("simulations.json")[design])
    assert results.stat().st_mtime_ns == before


def test_a_codebook_is_read_and_written_as_it_was(tmp_path: Path) -> None:
    assert books(tmp_path) == frozen("codebooks.json")


def test_a_codebook_that_was_written_is_read_back(tmp_path: Path) -> None:
    for name, text in frozen("codebooks.json").items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        assert qd.Codebook.read(tmp_path / name).to_toml() == text


def test_a_file_is_inspected_as_it_was(tmp_path: Path) -> None:
    assert holds(inspected(tmp_path), frozen("inspected.json"))
