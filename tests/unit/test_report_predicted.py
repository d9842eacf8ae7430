"""The report draws what theory predicts beside the candidates, says why where it cannot, and warns of traces."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import quadrille as qd
from quadrille.data import Data
from quadrille.report import write_readers, write_report
from quadrille.report.frontier_chart import draw_frontier, predictions_of, rows_of, scored
from quadrille.study.study import Study
from quadrille.theory import predict

AXES = ("small_cells", "hellinger")


def searched(data: Data, out: Path, *grids: object) -> Study:
    return qd.search(data, list(grids), ["small_cells", "exposed", "hellinger"], out=out, progress=False)  # type: ignore[arg-type]


def test_the_predicted_curve_holds_the_prediction_of_every_design(cps8d: Data, tmp_path: Path) -> None:
    together = qd.grid(qd.RandomSwap, swap=[["Edu"], ["MS"]], pairs=[244, 488], seeds=2)
    apart = qd.grid(qd.RandomSwap, swap=[["Race", "Sex"]], pairs=[244], order="one-by-one", seeds=2)
    study = searched(cps8d, tmp_path / "s", together, apart)
    found = scored(study, AXES, rows_of(study))
    predicted = predictions_of(study, cps8d, AXES, found)
    assert (predicted.designs, len(predicted.known)) == (5, 4)
    row = next(row for row in predicted.rows if row["label"].startswith("MS, 488 pairs"))
    expected = predict(cps8d, qd.RandomSwap(["MS"], pairs=488), ["small_cells", "exposed", "hellinger"])
    assert (row["risk"], row["companion"], row["loss"]) == tuple(expected[name] for name in expected.found)
    assert "4 of 5 designs have a prediction. The others have none: several variables" in predicted.text
    assert "predicted (white diamonds)" in str(draw_frontier(study, AXES, found, None, predicted).to_dict())
    assert "predicted (white diamonds)" not in str(draw_frontier(study, AXES, found, None).to_dict())
    page = write_report(study, cps8d, tmp_path / "report.html").read_text(encoding="utf-8")
    assert predicted.text in page
    assert "predicted (white diamonds)" in page


def test_a_method_without_closed_form_has_no_curve_and_the_report_says_why(cps8d: Data, tmp_path: Path) -> None:
    study = searched(cps8d, tmp_path / "s", qd.grid(qd.ControlledSwap, swap=[["Edu"]], targets=[0.01], seeds=2))
    page = write_report(study, cps8d, tmp_path / "report.html").read_text(encoding="utf-8")
    assert "There is no predicted curve: ControlledSwap has no closed form (1 design)." in page
    assert "predicted (white diamonds)" not in page


@pytest.mark.parametrize(("swap", "warned"), [("S", True), ("A", False)])
def test_the_reports_warn_of_a_trace(tmp_path: Path, swap: str, warned: bool) -> None:
    rng = np.random.default_rng(1)
    s = rng.integers(0, 3, 300)
    frame = pl.DataFrame({"A": rng.integers(0, 2, 300), "S": s, "w": np.array([1.5, 2.25, 8.0])[s]})
    book = qd.Codebook(
        (
            qd.Variable("A", "nominal", (0, 1)),
            qd.Variable("S", "nominal", (0, 1, 2), role="stratum"),
            qd.Variable("w", "numeric", role="weight"),
        )
    )
    data = qd.from_frame(frame, codebook=book)
    recipes = qd.grid(qd.RandomSwap, swap=[[swap]], pairs=[20], seeds=2)
    measures = ["small_cells(A*S)", "hellinger(A*S)"]
    study = qd.search(data, recipes, measures, out=tmp_path / "s", progress=False, allow_contradictions=True)
    page = write_report(study, data, tmp_path / "report.html").read_text(encoding="utf-8")
    assert ("shows that the record was swapped" in page) is warned
    write_readers(data, study.recipe(1), tmp_path / "readers")
    assert (
        "shows that the record was swapped" in (tmp_path / "readers" / "analyst.html").read_text(encoding="utf-8")
    ) is warned
