"""A simulated design in its folder: the rows of `simulate`, resumed, refused to a second process, and broken files."""

from __future__ import annotations

import copy
import fcntl
import json
import os
import resource
import signal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import quadrille as qd
from quadrille.errors import InputError, MismatchError, OutputError, ParameterError
from quadrille.simulation import COUNTS, METRICS, run

DESIGN: dict[str, Any] = {
    "design": {"replicates": 60, "seed": 7, "mechanism": ["records", "cells"]},
    "areas": {"equal": ["4 x 300"], "skewed": ["3 x 60", 1020]},
    "levels": {"even": [0.5, 0.5], "uneven": [0.7, 0.2, 0.1]},
    "rates": {"low": 0.02, "high": 0.2},
}
SIZES = {"equal": [300] * 4, "skewed": [60, 60, 60, 1020]}
FILES = {"design.json", "replicates.parquet", "analysis.json"} | {
    f"{name}.csv" for name in ("summary", "settings", "correlations", "strata", "effects")
}


def altered(**settings: Any) -> dict[str, Any]:
    document = copy.deepcopy(DESIGN)
    document["design"].update(settings)
    return document


def test_the_rows_of_a_setting_are_those_of_simulate_with_the_same_seed(tmp_path: Path) -> None:
    done = qd.simulate(design=DESIGN, out=tmp_path / "a")
    frame = done.frame()
    assert frame.columns == ["areas", "levels", "rates", "mechanism", "replicate", *METRICS, *COUNTS]
    assert frame.height == 16 * 60
    for levels, inside in frame.group_by("areas", "levels", "rates", "mechanism", maintain_order=True):
        areas, shares, rate, mechanism = map(str, levels)
        alone = qd.simulate(
            SIZES[areas],
            DESIGN["levels"][shares],
            rate=DESIGN["rates"][rate],
            mechanism=mechanism,  # type: ignore[arg-type]
            replicates=60,
            seed=7,
        )
        assert inside.select(METRICS + COUNTS).rows() == alone.rows()
        assert inside["replicate"].to_list() == list(range(1, 61))
    assert pl.read_parquet(tmp_path / "a" / "replicates.parquet").equals(frame)
    assert {path.name for path in (tmp_path / "a").iterdir()} == FILES


def test_workers_and_the_size_of_parts_do_not_change_a_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    qd.simulate(design=DESIGN, out=tmp_path / "alone", workers=1)
    monkeypatch.setattr(run, "IN_PROCESS_SECONDS", 0.0)
    monkeypatch.setattr(run, "PART", 7)
    seen: list[tuple[int, int]] = []
    qd.simulate(design=DESIGN, out=tmp_path / "two", workers=2, progress=lambda *each: seen.append(each))
    for name in FILES:
        assert (tmp_path / "alone" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    assert seen[0] == (0, 960) and seen[-1] == (960, 960)
    assert seen == sorted(seen)


class Stopped(Exception):
    pass


def test_what_is_done_is_not_simulated_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(done: int, _total: int) -> None:
        if done >= 300:
            raise Stopped

    with pytest.raises(Stopped):
        qd.simulate(design=DESIGN, out=tmp_path / "a", workers=1, progress=stop)
    assert {path.name for path in (tmp_path / "a").iterdir()} >= {"design.json", "unfinished.sqlite"}
    assert not (tmp_path / "a" / "replicates.parquet").exists()
    simulated: list[int] = []
    real = run.Simulator.run

    def counted(desk: run.Simulator, part: run.Part) -> run.Floats:
        simulated.append(part.trial)
        return real(desk, part)

    monkeypatch.setattr(run.Simulator, "run", counted)
    first = qd.simulate(design=DESIGN, out=tmp_path / "a", workers=1)
    assert set(simulated) == set(range(5, 16))
    simulated.clear()
    again = qd.simulate(design=altered(title="another", strata=["rates"]), out=tmp_path / "a")
    assert simulated == []
    assert again.frame().equals(first.frame())
    assert len(again.analysis.strata) == 2
    monkeypatch.undo()
    whole = qd.simulate(design=DESIGN, out=tmp_path / "b")
    assert whole.frame().equals(first.frame())


def test_a_secret_seed_is_kept_in_the_folder(tmp_path: Path) -> None:
    secret = altered()
    del secret["design"]["seed"]
    one = qd.simulate(design=secret, out=tmp_path / "a")
    (tmp_path / "a" / "replicates.parquet").unlink()
    assert qd.simulate(design=secret, out=tmp_path / "a").frame().equals(one.frame())
    assert not qd.simulate(design=secret, out=tmp_path / "b").frame().equals(one.frame())
    assert json.loads((tmp_path / "a" / "analysis.json").read_text())["seed"] == one.seed


def test_a_folder_belongs_to_one_design(tmp_path: Path) -> None:
    qd.simulate(design=DESIGN, out=tmp_path / "a")
    for other in (altered(seed=8), altered(replicates=61)):
        with pytest.raises(MismatchError, match="holds another design"):
            qd.simulate(design=other, out=tmp_path / "a")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("x")
    with pytest.raises(OutputError, match="is not empty and holds no simulation"):
        qd.simulate(design=DESIGN, out=tmp_path / "full")
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["letter.txt"]


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    handle = os.open(tmp_path / "a", os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    with pytest.raises(OutputError, match="Another simulation is working on the folder"):
        qd.simulate(design=DESIGN, out=tmp_path / "a")
    os.close(handle)
    qd.simulate(design=DESIGN, out=tmp_path / "a")


def test_files_that_are_not_intact_are_told_and_deleting_them_helps(tmp_path: Path) -> None:
    whole = qd.simulate(design=DESIGN, out=tmp_path / "a").frame()
    parquet = tmp_path / "a" / "replicates.parquet"
    parquet.write_bytes(parquet.read_bytes()[:2000])
    with pytest.raises(InputError, match=r"replicates.parquet' is not intact. Delete it and run again"):
        qd.simulate(design=DESIGN, out=tmp_path / "a")
    whole.head(100).write_parquet(parquet)
    with pytest.raises(InputError, match="is not intact"):
        qd.simulate(design=DESIGN, out=tmp_path / "a")
    parquet.unlink()
    ledger = tmp_path / "a" / "unfinished.sqlite"
    ledger.write_bytes(b"not a data base, but long enough to be read as the head of one" * 20)
    with pytest.raises(InputError, match=r"unfinished.sqlite' .* is not intact. Delete it"):
        qd.simulate(design=DESIGN, out=tmp_path / "a")
    ledger.unlink()
    assert qd.simulate(design=DESIGN, out=tmp_path / "a").frame().equals(whole)
    (tmp_path / "a" / "design.json").write_text("{}")
    with pytest.raises(InputError, match=r"design.json' is not intact"):
        qd.simulate(design=DESIGN, out=tmp_path / "a")


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for place in (tmp_path / "file", tmp_path / "file" / "a"):
        with pytest.raises(OutputError, match="a file stands in its place"):
            qd.simulate(design=DESIGN, out=place)


def test_a_full_disk_is_told_and_what_is_stored_is_kept(tmp_path: Path) -> None:
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, before[1]))
        with pytest.raises(OutputError, match=r"Cannot write to .*make room"):
            qd.simulate(design=altered(replicates=300), out=tmp_path / "a", workers=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    done = qd.simulate(design=altered(replicates=300), out=tmp_path / "a", workers=1)
    assert done.frame().equals(qd.simulate(design=altered(replicates=300), out=tmp_path / "b").frame())


def test_too_many_replicates_are_refused_with_how_long_they_would_take(tmp_path: Path) -> None:
    with pytest.raises(
        ParameterError, match=r"16,000,000,000 in all, .* about [\d,]+ (hours|days) on 2 cores and 1,024 GB"
    ):
        qd.simulate(design=altered(replicates=10**9), out=tmp_path / "a", workers=2)
    assert not (tmp_path / "a").exists()
    assert run.MOST_REPLICATES == 10**7


@pytest.mark.parametrize("workers", [0, -1, 1.5])
def test_bad_workers_are_refused(workers: Any, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="workers"):
        qd.simulate(design=DESIGN, out=tmp_path / "a", workers=workers)


def test_the_tables_and_the_document_hold_the_analysis(tmp_path: Path) -> None:
    done = qd.simulate(design=DESIGN, out=tmp_path / "a")
    assert done.table("summary").height == 6 * (1 + 4 * 2)
    assert done.table("settings").height == 16
    assert done.table("correlations").height == 15
    assert done.table("strata").height == 16
    with pytest.raises(ParameterError, match="There is no table 'x'"):
        done.table("x")
    document = json.loads((tmp_path / "a" / "analysis.json").read_text())
    assert document["settings"] == 16 and document["replicates"] == 60
    assert document["zero_cells"] == int(done.frame()["zero_cells"].sum())
    assert document["models"]["chi_square"]["r2"] == done.analysis.models["chi_square"].r2  # type: ignore[union-attr]


def test_one_replicate_of_one_setting_has_no_spread_and_no_effects(tmp_path: Path) -> None:
    single = {
        "design": {"replicates": 1, "seed": 1},
        "areas": {"a": [100, 100]},
        "levels": {"b": [1, 1]},
        "rates": {"c": 0.1},
    }
    document = qd.simulate(design=single, out=tmp_path / "a").as_dict()
    text = json.dumps(document, allow_nan=False)
    assert '"sd": null' in text
    assert set(document["models"].values()) == {None}  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "words",
    [
        {"design": DESIGN},
        {"out": "a"},
        {"design": DESIGN, "out": "a", "rate": 0.1},
        {"design": DESIGN, "out": "a", "seed": 1},
        {"areas": [10, 10], "shares": [1, 1], "rate": 0.1, "out": "a"},
    ],
)
def test_a_design_and_one_setting_are_not_mixed(words: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="simulate takes 'design' and 'out', or"):
        qd.simulate(**words)
