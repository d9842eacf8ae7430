"""The published numbers of NISS Technical Report 131."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from quadrille.papers import get
from quadrille.papers.gomatam_karr_2003 import MEASURES
from quadrille.papers.reproduction import Reproduction

PAGE = Path(__file__).parents[2] / "docs" / "errata-gomatam-karr-2003.md"


@pytest.fixture(scope="module", params=["first-uniform", "pair-uniform"])
def reproduced(request: pytest.FixtureRequest) -> Reproduction:
    return get("gomatam-karr-2003").reproduce(seeds=60, sampler=request.param)


def test_all_280_cells_of_tables_3_to_7_are_compared(reproduced: Reproduction) -> None:
    assert len(reproduced.checks) == 280
    assert len({check.key for check in reproduced.checks}) == 280


def test_the_published_numbers_lie_within_the_spread_of_seeds(reproduced: Reproduction) -> None:
    # One published draw per cell: mean z^2 is 1 if the method is the same, and the cells of a column are correlated.
    assert 1 <= reproduced.figures["mean z^2 over all cells"] <= 2


def test_each_table_fits_by_itself(reproduced: Reproduction) -> None:
    for table in {cell.table for cell in reproduced.checks}:
        z = np.array([cell.z for cell in reproduced.checks if cell.table == table])
        assert (z**2).mean() < 2.5, table
        assert (np.abs(z) <= 2).mean() > 0.8, table


def test_without_the_erratum_table_3_does_not_fit(reproduced: Reproduction) -> None:
    cells = [cell for cell in reproduced.checks if "hellinger" in cell.table]
    off = [abs(cell.published - 2 * cell.ours**2) / (4 * cell.ours * cell.error) for cell in cells]
    assert min(off) > 4


def test_cells_beyond_two_standard_deviations_come_mostly_from_five_pairs_and_are_lower_in_print(
    reproduced: Reproduction,
) -> None:
    known = {("AvgHrs", "Race"), ("Age", "MS"), ("MS", "Age"), ("Edu", "Race"), ("AnnSal", "EmpTyp")}
    far = [cell for cell in reproduced.checks if abs(cell.z or 0) > 2]
    named = [cell for cell in far if (cell.row, cell.column) in known]
    assert len(named) > len(far) / 2
    assert all((cell.z or 0) < 0 for cell in named)


def test_every_claim_is_judged_also_those_that_fail(reproduced: Reproduction) -> None:
    assert len(reproduced.claims) == 5 + 2 * len(MEASURES) + 3 + 6 + 2
    assert all(claim.evidence for claim in reproduced.claims)
    failing = [claim.text for claim in reproduced.claims if not claim.holds]
    tables = [text for text in failing if text.startswith("Table ")]
    if reproduced.setting["sampler"] == "first-uniform":
        assert tables == ["Table 3: hellinger, as sqrt(H/2): all cells"]
    failing = [text for text in failing if text not in (*tables, "adV lies between 0 and 1")]
    assert failing == [
        "8-way hellinger is approximately proportionate to the swap rate (within 15%, every variable)",
        "the ordering of swap variables by 8-way entropy_change is exactly the same over all three swap rates",
        "adV ranges from .005 to .046 at 5 %",
    ]


def test_the_one_cell_that_differs_is_named_where_the_others_are_said_to_agree() -> None:
    found = get("gomatam-karr-2003").reproduce(seeds=60)
    (far,) = [check for check in found.checks if not check.agrees]
    assert (far.row, far.column, far.printed) == ("AvgHrs", "Race", "0.0266")
    (claim,) = [claim for claim in found.claims if claim.text.startswith("Table 3:")]
    assert "55 of 56 agree; farthest AvgHrs, Race: published 0.0266" in claim.evidence
    page = PAGE.read_text(encoding="utf-8")
    assert (
        "every cell fits" not in page.lower() and "AvgHrs with Race" in page and "AvgHrs with Race" in found.errata[0]
    )


def test_the_ordering_and_the_proportion_are_counted(reproduced: Reproduction) -> None:
    order = next(claim.evidence for claim in reproduced.claims if "ordering" in claim.text)
    assert "by means 0 of 3 measures" in order and "AnnSal, AnnSal, MS at 1 %, 5 %, 10 %" in order
    growth = next(claim.evidence for claim in reproduced.claims if "proportionate" in claim.text)
    assert growth.startswith("5 times the rate: hellinger 2.")


@pytest.mark.nightly
def test_the_page_has_the_counts_of_the_default_run() -> None:
    found = get("gomatam-karr-2003").reproduce()
    order = next(claim.evidence for claim in found.claims if "ordering" in claim.text)
    assert "entropy_change in 22 of 100" in order and "22 of 100" in PAGE.read_text(encoding="utf-8")
    assert found.figures["cells that agree"] == 279


def test_the_rendering_and_the_json_hold_every_cell_claim_and_erratum(reproduced: Reproduction) -> None:
    console = Console(file=io.StringIO(), width=100)
    reproduced.render(console)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert text.count("0.0763") == 1
    for number in range(3, 8):
        assert f"Table {number}:" in text
    for claim in reproduced.claims:
        assert claim.text in " ".join(text.split())
    document = json.loads(json.dumps(reproduced.as_dict()))
    assert len(document["checks"]) == 280
    assert len(document["errata"]) == 5
