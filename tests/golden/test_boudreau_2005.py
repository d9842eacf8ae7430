"""Boudreau (2005): Table 1 by enumeration, Tables 2 to 4, the worked cell, claims, draws, charts, text."""

from __future__ import annotations

import inspect
import io
import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from quadrille.errors import QuadrilleError
from quadrille.papers import PAPERS, get
from quadrille.papers import boudreau_2005 as paper
from quadrille.papers.boudreau_2005 import exponents, run, worked
from quadrille.papers.reproduction import Reproduction
from quadrille.theory import large_n_error, swap_error


@pytest.fixture(scope="module")
def reproduced() -> Reproduction:
    return paper.reproduce(seeds=60)


def verdict(found: Reproduction, words: str) -> tuple[bool, str]:
    (claim,) = [each for each in found.claims if words in each.text]
    return claim.holds, claim.evidence


@pytest.mark.parametrize(
    ("kind", "permutations", "mean", "variance"),
    [("cycles", 315, 22.58804, 23.20468), ("pairs", 105, 22.58804, 21.61678)],
)
def test_the_small_file_has_the_published_moments_by_enumeration_and_by_formula(
    kind: run.Kind, permutations: int, mean: float, variance: float
) -> None:
    found = run.enumerated(kind)
    assert len(found.values) == permutations
    assert round(float(found.mean), 5) == round(found.formula.expected, 5) == mean
    assert round(float(found.variance), 5) == round(found.formula.variance, 5) == variance
    assert found.off < 1e-10
    assert float(run.before()) == 24.060698 == round(found.formula.value, 12)


def test_the_distribution_of_table_1_is_the_enumerated_one() -> None:
    found = run.enumerated("cycles")
    assert dict(found.counts()) == run.PUBLISHED
    assert sum(run.PUBLISHED.values()) == 315
    assert f"{found.rmse:.4f}" == "5.0372"
    for kind in run.KINDS:
        for source in run._permutations(kind):
            assert sorted(source) == list(range(7)) and sum(u != v for u, v in enumerate(source)) == 4


def test_regions_have_the_published_sizes_and_the_rate_gives_whole_pairs() -> None:
    one, two = (run.region(name) for name in run.REGIONS)
    assert (one.n, two.n) == (907_999, 89)
    assert (one.moved("pairs"), two.moved("pairs")) == (45_400, 4)
    assert (one.moved("cycles"), two.moved("cycles")) == (45_400, 4)
    for region in (one, two):
        for number, table in ((2, region.counts), (3, region.swapped)):
            assert (table.sum(axis=1) == region.totals[number]).all()
        assert (region.rounded % 5 == 0).all() and (abs(region.rounded - region.counts) < 5).all()


@pytest.mark.parametrize("name", run.REGIONS)
def test_biases_of_a_table_are_those_of_independence_and_add_up_to_nothing(name: str) -> None:
    region = run.region(name)
    found = run.cells(region, "pairs")
    bias = np.array([cell.swap.bias for cell in found]).reshape(region.counts.shape)
    independent = np.outer(region.counts.sum(axis=1), region.counts.sum(axis=0)) / region.n
    expected = region.moved("pairs") / (region.n - 1) * (independent - region.counts)
    assert bias == pytest.approx(expected, rel=1e-12)
    assert abs(bias.sum(axis=0)).max() < 1e-8 and abs(bias.sum(axis=1)).max() < 1e-8
    for cell in found:
        residue = cell.count % 5
        assert cell.rounding.bias == 0 and cell.rounding.variance == pytest.approx(residue * (5 - residue))


def test_the_worked_cell_has_the_error_of_equal_weights_and_not_5800(reproduced: Reproduction) -> None:
    cell = worked(run.cells(run.region("I"), "pairs"))
    assert cell.count == 294_438
    assert [round(x, 2) for x in (cell.swap.bias, cell.swap.sd, cell.swap.rmse)] == [-5397.22, 73.75, 5397.72]
    assert cell.rounding.rmse == pytest.approx(6**0.5)
    holds, evidence = verdict(reproduced, "Region I: error is 5,800")
    assert not holds and "-5,397.22" in evidence and "-5,410" in evidence


def test_the_equivalent_swap_is_the_first_to_reach_the_error_of_rounding() -> None:
    region = run.region("II")
    for place, cell in zip(np.ndindex(*region.counts.shape), run.cells(region, "pairs"), strict=True):
        age, status = (np.repeat(codes.ravel(), region.counts.ravel()) for codes in np.indices(region.counts.shape))
        a, b = age == place[0], status == place[1]
        last = 88 if cell.equivalent is None else cell.equivalent
        errors = [swap_error(a, b, k).rmse for k in range(0, last + 1, 2)]
        assert (errors[-1] >= cell.rounding.rmse - 1e-9) == (cell.equivalent is not None)
        assert all(error < cell.rounding.rmse for error in errors[:-1])


def test_equivalent_swaps_of_the_worked_cell_and_those_that_never_get_there() -> None:
    one, two = (run.cells(run.region(name), "pairs") for name in run.REGIONS)
    assert (worked(one).equivalent, worked(two).equivalent) == (18, 28)
    assert all(cell.equivalent is not None for cell in one)
    assert [cell.label for cell in two if cell.equivalent is None] == [
        "36-65 separated",
        "65+ married",
        "65+ separated",
        "65+ divorced",
        "65+ widowed",
    ]
    assert all((cell.equivalent == 0) == (cell.count % 5 == 0) for cell in one + two)


def test_the_figures_of_the_text_stand_next_to_ours_with_their_verdict_and_the_likely_reason(
    reproduced: Reproduction,
) -> None:
    shown = {check.key[1:]: check.shown for check in reproduced.checks}
    assert shown == {
        ("small file", "error"): ("5.03", "5.037", "", "differs"),
        ("worked cell, Region I", "error"): ("5,800", "5,398", "", "differs"),
        ("worked cell, Region I", "equivalent k"): ("2", "18", "", "differs"),
        ("worked cell, Region II", "error"): ("0.66", "0.661", "", "agrees"),
        ("worked cell, Region II", "bias, % of the error"): ("42", "42.2", "", "agrees"),
        ("worked cell, Region II", "equivalent k"): ("30", "28", "", "differs"),
    }
    assert all(check.reason for check in reproduced.checks if not check.agrees)
    assert "each counts 4.5 or more" in verdict(reproduced, "Region I: equivalent k is 2")[1]
    assert "gives 30" in verdict(reproduced, "Region II: equivalent k is 30")[1]


def test_two_heavy_records_are_as_much_as_rounding_and_the_formula_for_large_n_gives_30() -> None:
    """A file of records that count w each: the error of k of them is w times that of the cell's count / w."""
    one, two = (run.region(name) for name in run.REGIONS)
    least = run.weight_for_two(one, worked(run.cells(one, "pairs")))
    kinds = [294_438, 443_922 - 294_438, 381_455 - 294_438, one.n - 443_922 - 381_455 + 294_438]
    for weight, enough in ((least * 0.99, False), (least * 1.01, True), (5.0, True)):
        lighter = [round(count / weight) for count in kinds]
        error = weight * swap_error([1, 1, 0, 0], [1, 0, 1, 0], 2, counts=lighter).rmse
        assert (error >= 6**0.5) is enough
    assert run.equivalent_for_large_n(two, worked(run.cells(two, "pairs")), "pairs") == 30
    shares = 18 / 89, 48 / 89, 22 / 89
    assert large_n_error(89, *shares, rate=28 / 89).rmse < 6**0.5 < large_n_error(89, *shares, rate=30 / 89).rmse


def test_the_page_and_the_notes_say_that_f_is_the_domain_of_the_fixed_variables() -> None:
    page = (Path(__file__).parents[2] / "docs" / "boudreau-2005.md").read_text(encoding="utf-8")
    words = "P is the domain of the permuted variables"
    assert words in page and any(words in note for note in paper.ERRATA)


@pytest.mark.parametrize(
    ("words", "holds"),
    [
        ("Table 1 lists all values", True),
        ("follow from the closed form", True),
        ("small file: error is 5.03", False),
        ("grows with the cell", True),
        ("in proportion", False),
        ("same share of every cell", False),
        ("rounding's error does not grow", True),
        ("too much for large cells", True),
        ("too little for small cells", True),
        ("Table 3, Region I,", False),
        ("Table 3, Region II,", True),
        ("Table 4 is one of the two nearest", True),
    ],
)
def test_verdicts(reproduced: Reproduction, words: str, holds: bool) -> None:
    found, evidence = verdict(reproduced, words)
    assert found is holds, evidence


def test_powers_are_those_of_the_same_cell_in_both_regions() -> None:
    one, two = (run.cells(run.region(name), "pairs") for name in run.REGIONS)
    found = exponents(one, two)
    both = [(x, y) for x, y in zip(one, two, strict=True) if x.count and y.count]
    assert len(found) == len(both) == 11
    for power, (x, y) in zip(found, both, strict=True):
        assert y.swap.rmse * (x.count / y.count) ** power == pytest.approx(x.swap.rmse)


@pytest.mark.parametrize("kind", run.KINDS)
def test_draws_on_the_small_region_agree_with_theory_within_four_standard_errors(kind: run.Kind) -> None:
    region = run.region("II")
    found = run.draw(region, run.cells(region, kind), kind, 3000)
    assert max(abs(each.z_mean) for each in found) < 4
    assert max(abs(each.z_variance) for each in found) < 4


def test_a_region_as_records_has_the_table_of_the_region() -> None:
    region = run.region("II")
    data = run.file_of(region)
    table = np.zeros_like(region.counts)
    np.add.at(table, (data["age"].values, data["status"].values), 1)
    assert data.n == 89 and (table == region.counts).all()


def test_points_hold_every_cell_and_the_charts_are_drawn_from_them(reproduced: Reproduction, tmp_path: Path) -> None:
    assert len(reproduced.points) == 40
    frames = paper.figures(reproduced)
    sizes, changes = frames["error-by-size"], frames["table-3-region-I"]
    assert sizes.height == 40 and changes.height == 20
    assert sizes.filter("named")["count"].to_list() == [294_438, 18]
    assert changes["realised"].sum() == 0
    pytest.importorskip("altair")
    written = paper.write_figures(reproduced, tmp_path / "new" / "figures")
    assert [path.name for path in written] == ["error-by-size.png", "table-3-region-I.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in written)


@pytest.mark.parametrize("width", [80, 100])
def test_the_text_fits_and_holds_every_table_claim_and_note(width: int, reproduced: Reproduction) -> None:
    console = Console(file=io.StringIO(), width=width, markup=False, highlight=False)
    reproduced.render(console)
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    flat = " ".join(text.split())
    for claim in reproduced.claims:
        assert claim.text in flat and claim.evidence in flat
    for words in (*reproduced.errata, *(listing.title for listing in reproduced.listings)):
        assert words in flat
    assert "12.48422 4 4 2" in flat and "cycles, enumerated 315 22.58804 23.20468 5.03720" in flat


def test_the_json_is_complete_and_plain(reproduced: Reproduction) -> None:
    document = json.loads(json.dumps(reproduced.as_dict(), allow_nan=False))
    assert document["paper"] == "boudreau-2005"
    assert len(document["points"]) == 40 and len(document["listings"]) == 2 + 2 * 3
    empty = [point for point in document["points"] if point["rmse_by_count"] is None]
    assert all(point["count"] == 0 for point in empty) and len(empty) == 4 + 9


def test_the_same_seeds_give_the_same_numbers_progress_runs_to_the_end_and_the_kind_can_be_chosen() -> None:
    seen: list[tuple[int, int]] = []
    one = paper.reproduce(seeds=3, sampler="cycles", progress=lambda done, total: seen.append((done, total)))
    assert seen == [(i, 6) for i in range(1, 7)]
    assert paper.reproduce(seeds=3, sampler="cycles") == one
    assert one.setting["kind"] == "cycles"
    pairs, cycles = (worked(run.cells(run.region("I"), kind)).swap for kind in ("pairs", "cycles"))
    assert pairs.bias == cycles.bias and pairs.sd > cycles.sd


def test_the_paper_is_known_by_name_and_refuses_what_it_cannot_do() -> None:
    assert "boudreau-2005" in PAPERS and get("boudreau-2005") is paper
    parameters = inspect.signature(paper.reproduce).parameters
    assert parameters["seeds"].default == paper.DEFAULT_SEEDS == 1000
    assert parameters["sampler"].default == paper.DEFAULT_SAMPLER
    with pytest.raises(QuadrilleError, match="sampler"):
        paper.reproduce(sampler="pair-uniform")
    with pytest.raises(QuadrilleError, match="seeds"):
        paper.reproduce(seeds=1)
