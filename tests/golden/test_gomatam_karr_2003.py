"""The published numbers of NISS Technical Report 131."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from rich.console import Console

from quadrille.papers import get
from quadrille.papers.gomatam_karr_2003 import MEASURES
from quadrille.papers.reproduction import Reproduction


@pytest.fixture(scope="module", params=["first-uniform", "pair-uniform"])
def reproduced(request: pytest.FixtureRequest) -> Reproduction:
    return get("gomatam-karr-2003").reproduce(seeds=60, sampler=request.param)


def test_all_280_cells_of_tables_3_to_7_are_compared(reproduced: Reproduction) -> None:
    assert len(reproduced.cells) == 280
    assert len({(cell.table, cell.row, cell.column) for cell in reproduced.cells}) == 280


def test_the_published_numbers_lie_within_the_spread_of_seeds(reproduced: Reproduction) -> None:
    # One published draw per cell: mean z^2 is 1 if the method is the same, and the cells of a column are correlated.
    assert 1 <= reproduced.figures["mean z^2 over all cells"] <= 2


def test_each_table_fits_by_itself(reproduced: Reproduction) -> None:
    for table in {cell.table for cell in reproduced.cells}:
        z = np.array([cell.z for cell in reproduced.cells if cell.table == table])
        assert (z**2).mean() < 2.5, table
        assert (np.abs(z) <= 2).mean() > 0.8, table


def test_without_the_erratum_table_3_does_not_fit(reproduced: Reproduction) -> None:
    cells = [cell for cell in reproduced.cells if "hellinger" in cell.table]
    off = [abs(cell.published - 2 * cell.mean**2) / (4 * cell.mean * cell.sd) for cell in cells]
    assert min(off) > 4


def test_cells_beyond_two_standard_deviations_come_mostly_from_five_pairs_and_are_lower_in_print(
    reproduced: Reproduction,
) -> None:
    known = {("AvgHrs", "Race"), ("Age", "MS"), ("MS", "Age"), ("Edu", "Race"), ("AnnSal", "EmpTyp")}
    far = [cell for cell in reproduced.cells if abs(cell.z) > 2]
    named = [cell for cell in far if (cell.column, cell.row) in known]
    assert len(named) > len(far) / 2
    assert all(cell.z < 0 for cell in named)


def test_every_claim_has_a_verdict_with_evidence_and_holds(reproduced: Reproduction) -> None:
    assert len(reproduced.claims) == 2 * len(MEASURES) + 6
    for claim in reproduced.claims:
        assert claim.evidence
        assert claim.holds, claim.text


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
    assert len(document["cells"]) == 280
    assert len(document["errata"]) == 5
