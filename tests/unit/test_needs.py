"""What a file takes is said before it is read, and what this machine does not have is refused with the number."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

import quadrille as qd
from quadrille.cli import app
from quadrille.errors import InputError
from quadrille.io import needs
from quadrille.io.space import MEMORY

GB = 10**9


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("needs")
    frame = qd.datasets.cps8d().frame().with_columns(pl.int_range(pl.len()).mul(0.37).alias("amount"))
    for ending, write in (("parquet", frame.write_parquet), ("csv", frame.write_csv)):
        write(made / f"people.{ending}")
    (made / "none.parquet").write_bytes(b"PAR1 and nothing else")
    return made


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_records_and_widths_are_those_of_the_file(folder: Path, ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = qd.read(folder / f"people.{ending}")
    width = sum(data[name].values.itemsize for name in data.columns)
    found = needs.needs_of(folder / f"people.{ending}")
    assert (found.records, found.width, found.columns) == (data.n, width, data.n * width)
    monkeypatch.setattr(needs, "_SAMPLE_BYTES", 100_000)
    assert needs.needs_of(folder / f"people.{ending}").records == pytest.approx(data.n, rel=0.02)
    assert [stage.name for stage in found.stages] == ["read", "draw", "measure", "release"]
    assert found.refusal == ""


def test_what_does_not_fit_into_memory_or_on_the_disk_is_refused_with_the_number(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(needs, "free_memory", lambda: 300_000_000)
    with pytest.raises(
        InputError, match=r"about 3[56]\d MB of memory \(read\), and 300 MB is free\. Convert it to Parquet"
    ):
        needs.refuse_too_large(folder / "people.csv", "parquet")
    monkeypatch.setattr(needs, "free_memory", lambda: GB)
    monkeypatch.setenv(MEMORY, "100KB")
    assert 1_400_000 < needs.needs_of(folder / "people.parquet").paged < 1_600_000
    assert needs.needs_of(folder / "people.parquet", "sav").paged < 700_000
    monkeypatch.setattr(needs.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 1000}))
    with pytest.raises(InputError, match=r"may take 1 MB of memory, and the other \d MB do not fit into"):
        needs.refuse_too_large(folder / "people.parquet", "parquet")


def test_the_program_refuses_before_it_reads(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "free_memory", lambda: 300_000_000)
    monkeypatch.setattr(qd, "read", lambda *_, **__: pytest.fail("was read"))
    for words in (["doctor"], ["release", "--swap", "Edu"], ["release", "--dry-run"]):
        done = CliRunner().invoke(app, [words[0], str(folder / "people.csv"), *words[1:]])
        assert done.exit_code == 2
        assert "300 MB is free" in done.stderr


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("none.parquet", "is not intact Parquet"),
        ("missing.csv", "No such file"),
        ("people.sav", "No such file"),
        ("dataset:cps8d", "Bundled data sets are small"),
    ],
)
def test_what_is_no_file_is_refused(folder: Path, name: str, message: str) -> None:
    done = CliRunner().invoke(app, ["doctor", name if ":" in name else str(folder / name)])
    assert done.exit_code == 2
    assert message in done.stderr


def test_a_file_that_is_intact_is_refused_for_what_it_holds(tmp_path: Path) -> None:
    pl.DataFrame({"a": [[1, 2], [3]], "b": [1, 2]}).write_parquet(tmp_path / "lists.parquet")
    for read in (qd.read, needs.needs_of):
        with pytest.raises(InputError) as caught:
            read(tmp_path / "lists.parquet")
        assert "'a'" in str(caught.value) and "not intact" not in str(caught.value)
