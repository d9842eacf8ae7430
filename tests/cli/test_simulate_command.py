"""`quadrille simulate`: what it writes, shows and refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from quadrille.cli.app import app

REPLICATES = 40
EXAMPLE = Path(__file__).parents[2] / "examples" / "simulate.toml"
runner = CliRunner()


@pytest.fixture
def design(tmp_path: Path) -> Path:
    path = tmp_path / "design.toml"
    path.write_text(EXAMPLE.read_text().replace("replicates = 200", f"replicates = {REPLICATES}"))
    return path


def test_the_folder_is_written_and_the_tables_fit_the_terminal(design: Path, tmp_path: Path) -> None:
    out, charts = tmp_path / "out", tmp_path / "charts"
    done = runner.invoke(app, ["simulate", str(design), "--out", str(out), "--charts", str(charts), "--workers", "1"])
    assert done.exit_code == 0, done.output
    for words in (
        f"16, each with {REPLICATES} replicates",
        "Spearman correlations",
        "Main effects",
        "n.s.: not selected",
    ):
        assert words in " ".join(done.output.split())
    assert " HD" not in done.output
    assert max(map(len, done.output.replace(str(tmp_path), "").splitlines())) <= 80
    assert {"replicates.parquet", "analysis.json", "effects.csv"} <= {path.name for path in out.iterdir()}
    assert sorted(path.name for path in charts.iterdir()) == ["correlations.png", "distributions.png", "effects.png"]


SINGLE = """
[design]
replicates = {replicates}
seed = 1
mechanism = {mechanism}
[areas]
a = [{areas}]
[levels]
b = [0.999, 0.001]
[rates]
c = 0.1
"""


@pytest.mark.parametrize(("replicates", "drawn"), [(1, ["distributions"]), (9, ["correlations", "distributions"])])
def test_charts_that_have_nothing_to_show_are_told_and_the_result_is_printed(
    replicates: int, drawn: list[str], tmp_path: Path
) -> None:
    design, out, charts = tmp_path / "design.toml", tmp_path / "out", tmp_path / "charts"
    design.write_text(SINGLE.format(replicates=replicates, mechanism='"records"', areas='"3 x 4000"'))
    words = ["simulate", str(design), "--out", str(out), "--charts", str(charts), "--workers", "1"]
    done = runner.invoke(app, words)
    assert done.exit_code == 0, done.output
    text = " ".join(done.stdout.split())
    assert "chi_square" in text and "no chart effects: the design has one setting" in text
    assert sorted(path.stem for path in charts.iterdir()) == drawn
    document = json.loads(runner.invoke(app, [*words, "--json"]).stdout)
    assert [Path(each).stem for each in document["charts"]] == drawn
    assert {*drawn, *document["charts_without_content"]} == {"correlations", "distributions", "effects"}


def test_a_folder_for_charts_that_cannot_be_made_is_told_before_anything_is_simulated(
    design: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("x")
    words = ["simulate", str(design), "--out", str(tmp_path / "out"), "--charts", str(tmp_path / "file")]
    done = runner.invoke(app, words)
    assert done.exit_code == 2 and "Cannot write the folder" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_setting_whose_cells_are_nearly_all_empty_is_named(tmp_path: Path) -> None:
    design = tmp_path / "design.toml"
    design.write_text(SINGLE.format(replicates=2, mechanism='["records", "cells"]', areas='"20000 x 1", 2000'))
    done = runner.invoke(app, ["simulate", str(design), "--out", str(tmp_path / "out"), "--workers", "1"])
    assert done.exit_code == 2
    assert "design.toml, setting cells: The mechanism 'cells' of simulate" in done.stderr


def test_json_is_one_document_and_a_second_run_prints_the_same(design: Path, tmp_path: Path) -> None:
    words = ["simulate", str(design), "--out", str(tmp_path / "out"), "--json"]
    first, second = (runner.invoke(app, words) for _ in range(2))
    assert first.exit_code == 0
    assert first.output == second.output
    document = json.loads(first.output)
    assert document["settings"] == 16 and document["charts"] == []
    assert document["factors"][0] == {"factor": "areas", "levels": ["equal", "skewed"], "baseline": "equal"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("8000]", "0]", "design.toml, [areas] skewed[2]: must be a whole number of 1 or more"),
        ('"4 x 500", 8000', "10000", "design.toml, [areas] skewed: there is one area only"),
        ("0.8, 0.2", "0, 0", "design.toml, [levels] uneven: the shares sum to zero"),
        ("0.8, 0.2", "1e308, 1e308", "design.toml, [levels] uneven: the shares are too large to be added up"),
        ("0.1\n", "1.1\n", "design.toml, [rates] 10 %: must be a number in (0, 1]"),
        ('"cells"', '"cell"', 'design.toml, [design] mechanism[2]: must be "records" or "cells"'),
        (f"replicates = {REPLICATES}", "replicates = 1_000_000_000", "which would take about"),
        ("[rates]", "[rate]", "There is no section 'rate'. Did you mean: 'rates'?"),
    ],
)
def test_bad_designs_end_with_code_2_and_one_line(
    old: str, new: str, message: str, design: Path, tmp_path: Path
) -> None:
    text = design.read_text()
    assert old in text
    design.write_text(text.replace(old, new))
    done = runner.invoke(app, ["simulate", str(design), "--out", str(tmp_path / "out")])
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_bad_options_end_with_code_2(design: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for words in (["--workers", "0", "--out", "a"], ["--out", str(tmp_path / "file")], []):
        done = runner.invoke(app, ["simulate", str(design), *words])
        assert done.exit_code == 2
        assert "Traceback" not in done.stderr
    missing = runner.invoke(app, ["simulate", str(tmp_path / "none.toml"), "--out", str(tmp_path / "a")])
    assert missing.exit_code == 2 and "Cannot read the design" in missing.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_rights_is_told(design: Path, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    done = runner.invoke(app, ["simulate", str(design), "--out", str(closed / "out")])
    assert done.exit_code == 2 and "Permission denied" in done.stderr


def test_a_pipe_sees_no_progress(design: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "quadrille", "simulate", str(design), "--out", str(tmp_path / "out"), "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert json.loads(done.stdout)["replicates"] == REPLICATES
