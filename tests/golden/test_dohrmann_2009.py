"""The evaluation study of Dohrmann, Krenzke, Roey & Russell (2009): design, files, runs, report."""

from __future__ import annotations

import io
import json
import re
from math import prod

import numpy as np
import pytest
from rich.console import Console

import quadrille as qd
from quadrille.errors import QuadrilleError
from quadrille.papers import PAPERS, get
from quadrille.papers import dohrmann_2009 as paper
from quadrille.papers.dohrmann_2009 import all_claims, files, run
from quadrille.papers.dohrmann_2009.files import METHODS, RATES, SHAPES, SIZES, SOURCES, Method, Scenario, Source
from quadrille.papers.dohrmann_2009.run import analyse
from quadrille.papers.reproduction import Reproduction
from quadrille.recipe import Recipe
from quadrille.swap.random import RandomSwap

PUBLISHED = {
    1: (4, 192, 6),
    2: (4, 960, 37),
    3: (4, 96, 9),
    4: (5, 192, 11),
    5: (5, 576, 9),
    6: (5, 384, 8),
    7: (3, 32, 6),
    8: (3, 144, 4),
    9: (2, 72, 2),
    10: (2, 180, 30),
    11: (2, 12, 2),
    12: (2, 36, 0),
}
"""Variables, possible cells and nominal categories of each scenario."""


@pytest.mark.parametrize("source", SOURCES)
def test_scenarios_have_the_published_numbers_of_variables_cells_and_nominal_categories(source: Source) -> None:
    found = {each.number: (len(each.variables), each.cells, each.nominal) for each in files.scenarios(source)}
    assert found == PUBLISHED


def test_the_design_has_1920_runs_per_source() -> None:
    settings = list(files.settings())
    assert len(settings) == len(set(settings)) == 192
    assert len(settings) * paper.DEFAULT_SEEDS == 1920


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("size", SIZES)
def test_files_have_the_sizes_and_the_variables_of_every_scenario(source: Source, size: int) -> None:
    for scenario, shape in zip(files.scenarios(source), SHAPES, strict=True):
        data = files.file_for(source, size, scenario)
        assert data.n == size
        kinds = [f"{data[name].size}{data.codebook[name].kind[0].upper()}" for name in scenario.variables]
        assert " ".join(kinds) == shape
        assert prod(data[name].size for name in scenario.variables) == scenario.cells
        assert data.keys == scenario.variables
        outcomes = [v.name for v in data.codebook if v.role == "outcome"]
        assert tuple(outcomes) == files.OUTCOMES[source]
        assert data.ticks is not None and data.ticks.exact


@pytest.mark.parametrize("size", SIZES)
def test_simulated_files_look_like_a_literacy_survey(size: int) -> None:
    data = files.simulated(size)
    scores = np.stack([data[name].values for name in files.OUTCOMES["simulated"]])
    error = 4 / np.sqrt(size)  # four standard errors of a standardised mean
    assert np.abs(scores.mean(axis=1) - 270).max() < 60 * error
    assert np.abs(scores.std(axis=1) / 60 - 1).max() < error
    assert np.abs(np.corrcoef(scores)[np.triu_indices(3, 1)] - 0.95**2).max() < error
    assert scores.min() >= 0 and scores.max() <= 500
    weight = data["weight"].values
    assert 0.55 < weight.std() / weight.mean() < 0.85
    assert weight.min() > 0
    for name in ("O6a", "O6b"):
        assert np.corrcoef(data[name].values, scores[0])[0, 1] > 0.2
    assert abs(np.corrcoef(weight, data["O6a"].values)[0, 1]) < 0.3, "weights depend on the variables, but weakly"


def test_files_are_the_same_each_time_and_differ_between_sizes() -> None:
    assert files.simulated(1156) == files.simulated(1156)
    assert files.sample(1156) == files.sample(1156)
    small, large = files.simulated(1156), files.simulated(3648)
    assert not np.array_equal(small["prose"].values, large["prose"].values[:1156])


def test_adult_samples_are_drawn_without_replacement_and_every_class_is_described() -> None:
    whole = files.recoded()
    assert whole.n == 48_842
    names = {name for scenario in files.scenarios("adult") for name in scenario.variables}
    assert names == set(files.DESCRIPTIONS) == set(whole.keys)
    for name, described in files.DESCRIPTIONS.items():
        kind = whole.codebook[name].kind[0].upper()
        assert described.startswith(f"{whole[name].size}{kind},")
        empty = int((np.bincount(whole[name].values, minlength=whole[name].size) == 0).sum())
        assert empty == (name == "jobsex"), "all classes occur but women in the armed forces"
    share = np.bincount(whole["sex"].values)[0] / whole.n
    drawn = np.bincount(files.sample(8153)["sex"].values)[0]
    assert abs(drawn - 8153 * share) < 4 * np.sqrt(8153 * share * (1 - share))


@pytest.fixture(scope="module")
def small() -> run.Runs:
    """The smallest file of Adult, all scenarios, rates and methods, four seeds."""
    return run.run_source("adult", 4, workers=1, sizes=[1156])


def test_runs_of_the_smallest_file_confirm_rate_and_method(small: run.Runs) -> None:
    defined = ~np.isnan(small.values).all(axis=(1, 2, 3, 4, 5))
    assert list(defined) == [False, False, False, True]
    verdicts = {claim.text.split(" (")[0]: claim for claim in all_claims(small, analyse(small))}
    for words in ("utility falls as the rate rises", "the standard method usually loses less than the balanced one"):
        assert verdicts[f"adult: {words}"].holds, verdicts[f"adult: {words}"].evidence
    spread = verdicts["adult: run-to-run variability falls with the rate"].evidence
    assert re.findall(r"(\w+) -\d+%", spread) == list(run.NAMES), "the signs; a quarter of the design is beyond chance"


def test_scores_are_undefined_only_where_no_cell_is_large_and_are_counted(small: run.Runs) -> None:
    missing = np.isnan(small.values[3]).sum(axis=(0, 1, 2, 3))
    assert [int(count) for count in missing] == [0, small.reasons["HD2: no cell has more than 45 records"], 0, 0, 0]
    data = files.file_of("adult", 1156)
    for s, scenario in enumerate(files.scenarios("adult")):
        codes = np.stack([data[name].values for name in scenario.variables])
        largest = np.unique(codes, axis=1, return_counts=True)[1].max()
        assert np.isnan(small.values[3, s, ..., 1]).all() == (largest <= 45)


def test_workers_find_what_one_process_finds(small: run.Runs) -> None:
    found = run.run_source("adult", 2, workers=2, sizes=[1156])
    assert np.array_equal(found.values[3], small.values[3, ..., :2, :], equal_nan=True)


def test_a_run_is_the_controlled_swap_scored_on_its_own(small: run.Runs) -> None:
    scenario = files.scenarios("adult")[1]
    data = files.file_for("adult", 1156, scenario)
    plan = qd.ControlledSwap(scenario.variables, targets=0.15, method="balanced", seed=3).plan(data)
    assert abs(len(plan.pairs) / data.n - 0.15) < 0.01  # type: ignore[arg-type]
    scores = qd.score(data, plan, run.utility("adult", scenario))
    assert list(scores.values()) == [float(value) for value in small.values[3, 1, 1, 1, 3]]
    assert any("max_levels=32" in address for address in scores), "the variable with 32 categories takes part"


def test_progress_counts_runs() -> None:
    heard: list[int] = []
    run.run_source("simulated", 2, heard.append, workers=1, sizes=[1156], make=by_chance, addresses=stand_ins)
    assert heard == [2 * 2 * 2] * len(SHAPES)


def by_chance(swap: tuple[str, ...], targets: float, method: Method, seed: int) -> Recipe:
    """Stand in for the controlled swap: quick, random pairs."""
    return RandomSwap(swap, rate=2 * targets, differ="any", seed=seed)


def stand_ins(source: Source, scenario: Scenario) -> list[str]:
    """Stand in for the five measures."""
    first, last = scenario.variables[0], scenario.variables[-1]
    return [
        f"{name}({margin})" for name in ("hellinger", "total_variation") for margin in (f"{first}*{last}", last)
    ] + [f"hellinger({first})"]


@pytest.fixture(scope="module")
def report() -> Reproduction:
    """A report on made-up runs of both sources: quick, and every branch of it is used."""
    rng = np.random.default_rng(5)
    found: list[run.Runs] = []
    for source in SOURCES:
        values = rng.gamma(4, size=(len(SIZES), len(SHAPES), len(RATES), len(METHODS), 3, len(run.NAMES)))
        values[3, 1, ..., 1] = np.nan
        found.append(run.Runs(source, values, {"HD2: no cell has more than 45 records": 12}))
    return paper.assemble(found)


def test_the_report_sets_every_published_coefficient_beside_ours(report: Reproduction) -> None:
    for source in SOURCES:
        for table in ("A-1 and A-3", "A-2 and A-4"):
            (signs,) = [x for x in report.listings if "Signs" in x.title and table in x.title and source in x.title]
            assert len(signs.rows) == 33
            assert signs.headings == ("term", *run.NAMES)
        assert report.figures[f"{source}, coefficients considered"] == 242
    assert len(report.claims) == 2 * 5
    assert len(report.points) == 2 * 192
    assert all(claim.evidence for claim in report.claims)


def test_the_report_is_readable_in_80_columns_and_as_json(report: Reproduction) -> None:
    console = Console(file=io.StringIO(), width=80)
    report.render(console)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text, "nothing is cut off"
    for words in ("34.2 (5.2-186.3)", "61.0 (9.6-178.3)", "R-square published", "Undefined scores, adult", "HD2 12"):
        assert words in " ".join(text.split()) or words in text
    document = json.loads(json.dumps(report.as_dict(), allow_nan=False))
    assert document["points"][0]["size"] == 18102
    assert any(row["HD2"] is None for row in document["points"])


def test_the_paper_is_known_by_name_and_refuses_what_it_cannot_do() -> None:
    assert "dohrmann-2009" in PAPERS
    assert get("dohrmann-2009") is paper
    with pytest.raises(QuadrilleError, match="sampler"):
        paper.reproduce(sampler="pair-uniform")
    with pytest.raises(QuadrilleError, match="seeds"):
        paper.reproduce(seeds=1)
