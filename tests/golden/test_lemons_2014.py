"""The study of Lemons, Dajani, You & Jordan (2014): targets, closed forms, verdicts and the page."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from quadrille.errors import QuadrilleError
from quadrille.papers import PAPERS
from quadrille.papers import lemons_2014 as paper
from quadrille.papers.lemons_2014 import errata, selected, selection, selections
from quadrille.papers.reproduction import Reproduction
from quadrille.simulation import METRICS

REPLICATES = 150
PAGE = Path(__file__).parents[2] / "docs" / "lemons-2014.md"


@pytest.fixture(scope="module")
def values() -> paper.Floats:
    return paper.simulated(paper.design("cells", REPLICATES), lambda _done: None)


@pytest.fixture(scope="module")
def reproduced() -> Reproduction:
    return paper.reproduce(seeds=paper.LEAST_SEEDS)


def of_levels(values: paper.Floats, word: str) -> paper.Floats:
    design = paper.design("cells", REPLICATES)
    position = [factor.name for factor in design.factors].index("levels")
    chosen = [design.factors[position].levels[trial.levels[position]] == word for trial in design.trials]
    return values[np.array(chosen)]


def error(inside: paper.Floats) -> paper.Floats:
    """Standard errors of means over settings."""
    return np.sqrt(inside.var(axis=1, ddof=1).sum(axis=0) / inside.shape[1]) / len(inside)


@pytest.mark.parametrize("word", ["two", "five"])
def test_means_are_the_closed_forms_within_4_standard_errors(word: str, values: paper.Floats) -> None:
    inside = of_levels(values, word)
    mean, spread = inside.mean(axis=(0, 1)), error(inside)
    for metric, value in zip(
        ("chi_square", "gini_difference"), paper.expected(paper.design("cells", 1), word), strict=True
    ):
        m = METRICS.index(metric)
        assert abs(mean[m] - value) < 4 * spread[m]


@pytest.mark.parametrize(("word", "square"), [("two", 14.84), ("five", 39.12)])
def test_expected_chi_square_is_the_published_mean_within_a_tenth_of_a_per_cent(word: str, square: float) -> None:
    assert paper.expected(paper.design("cells", 1), word)[0] == pytest.approx(square, rel=0.001)


def test_the_swap_rate_of_cells_is_the_root_that_theory_gives(values: paper.Floats) -> None:
    """E effective_swap_rate is close to sqrt(rate T J / (pi N)); the normal approximation is good to 1 %."""
    design = paper.design("cells", REPLICATES)
    for trial, rows in zip(design.trials, values, strict=True):
        theory = np.sqrt(trial.rate * len(trial.areas) * len(trial.shares) / (np.pi * sum(trial.areas)))
        assert rows[:, 1].mean() == pytest.approx(theory, rel=0.01 + 4 * rows[:, 1].std() / rows[:, 1].mean() / 12)


def test_the_numbers_that_the_sizes_of_tracts_do_not_touch_agree_with_fewer_replicates_too(
    values: paper.Floats,
) -> None:
    checks = {check.key: check for check in paper.compare(paper.design("cells", REPLICATES), values)}
    for word in ("two", "five"):
        for column in ("mean", "sd"):
            assert checks["Table 2", f"chi_square, {word}", column].agrees
    for one, other in paper.ELEVEN:
        assert checks["Table 3", one, other].agrees is ((one, other) != ("chi_square", "deviance"))
    for term in paper.TERMS:
        off = checks["Table 5", term, "chi_square"]
        assert off.agrees is (term != "tract sizes skewed"), term
    differing = [check for check in checks.values() if not check.agrees]
    assert all(check.reason for check in differing)
    assert len(differing) < 30


def test_the_error_of_a_difference_allows_for_the_replicates_of_both_studies(values: paper.Floats) -> None:
    key = "Table 2", "chi_square, two", "mean"
    (check,) = [each for each in paper.compare(paper.design("cells", REPLICATES), values) if each.key == key]
    ours = error(of_levels(values, "two"))[0]
    assert check.error == pytest.approx(ours * np.sqrt(1 + REPLICATES / 1000), rel=0.4), "from 15 batches"


def test_all_published_numbers_are_compared_and_misprints_corrected() -> None:
    found = paper.numbers()
    assert len(found) == 40 + 15 + 72 + 59
    assert found["Table 5", "perturbation low", "renyi_difference"] == "-0.000053"
    assert not any("HD" in " ".join(key) for key in found)
    assert len(paper.ELEVEN) == 11


def test_effects_that_the_table_withholds_are_those_of_the_text() -> None:
    found = paper.numbers()
    assert found["Table 5", "tract sizes skewed", "effective_swap_rate"] == "-0.0000038"
    assert found["Table 5", "level shares skewed", "effective_swap_rate"] == "-0.0000012"
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    (note,) = [note for note in paper.PRINT if "< -0.01" in note]
    for text in (note, page):
        assert all(words in text for words in ("< -0.01", "-0.0038", "-0.0012"))


def test_the_described_mechanism_does_not_give_the_published_tables(reproduced: Reproduction) -> None:
    (claim,) = [each for each in reproduced.claims if "as the paper describes it" in each.text]
    assert not claim.holds
    figures = reproduced.figures
    assert figures["records, mean chi_square, two levels"] < 5
    assert figures["cells, mean chi_square, two levels"] > 14
    by = [[each for each in reproduced.claims if each.text.startswith(word)] for word in ("cells:", "records:")]
    assert [len(found) for found in by] == [5 + 1 + 4 + 6, 1 + 4 + 6]
    both = {each.text for each in reproduced.claims if "raise chi_square" in each.text and each.holds}
    assert both == {"cells: skewed tracts and skewed levels both raise chi_square"}


def test_errata_have_the_figures_of_the_run_and_only_what_it_speaks_to(
    reproduced: Reproduction, values: paper.Floats
) -> None:
    design = paper.design("cells", REPLICATES)
    entries = paper.compare(design, values)
    by = {entry.key: entry.ours for entry in entries}
    said = " ".join(errata({"cells": (design, values, entries)}))
    sd = by["Table 2", "shannon_difference, five", "sd"]
    low = by["Table 5", "perturbation low", "renyi_difference"]
    for number in (f"{sd:.4f}", f"{low:.6f}", f"{by['Table 2', 'chi_square, five', 'mean']:.2f}"):
        assert number in said
    assert "randomly chosen households" not in said
    both = " ".join(reproduced.errata)
    assert "randomly chosen households" in both and "equal chances" in both
    other = {
        (point["mechanism"], *(str(point[k]) for k in ("table", "row", "column"))): point["ours"]
        for point in reproduced.points
    }
    assert f"{other['cells', 'Table 2', 'shannon_difference, five', 'sd']:.4f}" in both
    part = {"records": (design, values, entries)}
    assert "equal chances" not in " ".join(errata(part)) and ".00460" not in " ".join(errata(part))


def test_verdicts_tell_every_metric_and_the_limits(reproduced: Reproduction) -> None:
    for mechanism in ("cells", "records"):
        (rises,) = [each for each in reproduced.claims if each.text.startswith(f"{mechanism}: every metric rises")]
        assert all(metric in rises.evidence for metric in METRICS)
        (apart,) = [each for each in reproduced.claims if each.text.startswith(f"{mechanism}: with skewed tracts")]
        assert f"the limit is {paper.UNRELATED:.2f}" in apart.evidence


def test_a_metric_that_does_not_rise_from_low_to_medium_is_no_rise(values: paper.Floats) -> None:
    design = paper.design("cells", REPLICATES)
    position = [factor.name for factor in design.factors].index("perturbation")
    levels = np.array([trial.levels[position] for trial in design.trials])
    low, medium = (design.factors[position].levels.index(word) for word in ("low", "medium"))
    turned = values.copy()
    turned[levels == low], turned[levels == medium] = values[levels == medium], values[levels == low]
    for given, holds in ((values, True), (turned, False)):
        found: paper.Found = {"cells": (design, given, paper.compare(design, given))}
        (rises,) = [each for each in paper.all_claims(found) if "every metric rises" in each.text]
        assert rises.holds is holds


def test_the_selection_is_stepwise_and_shown_beside_the_model_of_all_factors(values: paper.Floats) -> None:
    chosen = selected(paper.design("cells", REPLICATES), values)
    assert [each.full.metric for each in chosen] == list(METRICS)
    rate = chosen[METRICS.index("effective_swap_rate")]
    assert set(rate.left_out) == {"tract sizes", "level shares"}  # printed as below .00001 in size
    assert chosen[0].left_out == ()
    for each in chosen:
        assert len(each.full.factors) == 5 and each.selected.r2 <= each.full.r2
        for term in each.selected.terms[1:]:
            assert term.effect == pytest.approx(each.full.effect(term.factor, term.level), rel=1e-9)
    rows = selection("cells", chosen).rows
    assert ("effective_swap_rate", "tract sizes", "left out", "") in rows
    assert ("chi_square", "perturbation", "enters 1.", "p < .0001") in rows


def test_the_claim_on_the_selection_is_judged_metric_by_metric_as_section_3_2_has_it(values: paper.Floats) -> None:
    chosen = selected(paper.design("cells", REPLICATES), values)
    judged = selections("cells", chosen)
    assert [claim.text.split(" for ")[1] for claim in judged] == list(METRICS)
    rate = judged[METRICS.index("effective_swap_rate")]
    assert "removes tract sizes and level shares" in rate.text and rate.holds
    assert not judged[METRICS.index("gini_difference")].holds
    assert all("keeps all five factors" in claim.text for claim in judged if claim is not rate)
    assert judged[0].holds and judged[METRICS.index("deviance")].holds
    page = PAGE.read_text(encoding="utf-8")
    assert "does not hold with either mechanism" not in page and "section 3.2" in page


def test_records_in_equal_tracts_have_the_known_mean_of_chi_square() -> None:
    design = paper.design("records", 100)
    equal = [trial for trial in design.trials if len(set(trial.areas)) == 1][::5]
    assert len(equal) > 5
    for trial in equal:
        setting = trial.setting()
        found = setting.swapping().replicates(setting.stream(1), range(100))[:, 0]
        areas, levels = setting.before.shape
        turned = trial.rate * areas
        theory = (levels - 1) * turned * (2 - turned / (areas - 1)) / 1.0
        assert abs(found.mean() - theory) < 4 * found.std(ddof=1) / 10 + 0.01 * theory


def test_the_report_fits_80_columns_and_names_the_measures(reproduced: Reproduction) -> None:
    console = Console(file=io.StringIO(), width=80)
    reproduced.render(console)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 80
    assert "shannon_difference" in text and "HD" not in text.replace("HD3", "HD")
    json.dumps(reproduced.as_dict(), allow_nan=False)


def test_figures_are_written(reproduced: Reproduction, tmp_path: Path) -> None:
    written = paper.write_figures(reproduced, tmp_path)
    assert sorted(path.name for path in written) == ["correlations-cells.png", "correlations-records.png"]
    assert all(path.stat().st_size > 10_000 for path in written)


def test_progress_runs_to_the_end_and_the_same_seeds_give_the_same_numbers(reproduced: Reproduction) -> None:
    seen: list[tuple[int, int]] = []
    again = paper.reproduce(paper.LEAST_SEEDS, "cells", lambda done, total: seen.append((done, total)))
    total = 72 * paper.LEAST_SEEDS
    assert seen[-1] == (total, total) and seen == sorted(seen)
    assert again.points == reproduced.points[: len(again.points)]
    assert len(again.points) * 2 == len(reproduced.points)


@pytest.mark.parametrize("bad", [{"seeds": 1}, {"seeds": 2.5}, {"sampler": "fast"}])
def test_bad_parameters_are_refused(bad: dict[str, object]) -> None:
    with pytest.raises(QuadrilleError, match=next(iter(bad))):
        paper.reproduce(**bad)  # type: ignore[arg-type]


def test_the_paper_is_listed_and_the_page_has_its_errata() -> None:
    assert "lemons-2014" in PAPERS
    page = PAGE.read_text(encoding="utf-8")
    for words in ("quadrille reproduce lemons-2014", "14.84", "-.000053", ".00460", "pooled"):
        assert words in page
