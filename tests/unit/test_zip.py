"""Zip archives: one data file inside is read as if it lay beside them; bombs, damage and choices are refused."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import polars as pl
import pytest

import quadrille as qd
import quadrille.io.raw
from quadrille.data import Data
from quadrille.errors import InputError
from xlsx_files import write_xlsx

SECRET = "Zebedee"


def _zip(folder: Path, **files: bytes | str) -> Path:
    path = folder / "archive.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in files.items():
            file.writestr(name.replace("__", "."), text)
    return path


def _refused(path: Path, match: str, **options: object) -> str:
    with pytest.raises(InputError, match=match) as caught:
        qd.read(path, **options)  # pyright: ignore[reportArgumentType]
    assert SECRET not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def data() -> Data:
    return qd.from_frame(pl.DataFrame({"a": ["x", "y"] * 30, "b": range(60), "c": [0.5, 1.25] * 30}))


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "tsv", "parquet", "sav", "dta", "xpt"])
def test_the_file_inside_is_read_as_if_it_lay_beside(tmp_path: Path, data: Data, ending: str) -> None:
    inside = tmp_path / f"people.{ending}"
    qd.write(data, inside)
    path = tmp_path / "archive.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.write(inside, f"folder/people.{ending}")
        file.writestr("folder/readme.txt", "about")
        file.writestr("__MACOSX/folder/._people.csv", "junk")
    read = qd.read(path)
    assert read == qd.read(inside)
    assert read.read_as[0] == f"people.{ending} of the archive"


def test_a_workbook_inside_is_read_with_its_sheet(tmp_path: Path) -> None:
    book = write_xlsx(tmp_path / "book.xlsx", {"A": [["x"], [1]], "B": [["y", "z"], [1, 2], [3, 4]]})
    path = _zip(tmp_path, book__xlsx=book.read_bytes())
    assert qd.read(path, sheet="B").columns == ["y", "z"]


def test_settings_reach_the_file_inside(tmp_path: Path) -> None:
    path = _zip(tmp_path, a__csv="a;b,c\n1;2,3\n")
    assert qd.read(path, separator=";").columns == ["a", "b,c"]
    _refused(path, "A sheet is part of an Excel workbook", sheet=1)


@pytest.mark.parametrize(
    ("files", "match"),
    [
        ({"a__csv": "a,b\n1,2\n", "b__csv": SECRET}, "holds 2 data files, and one is read"),
        ({"a__csv": "a,b\n1,2\n", "b__parquet": SECRET}, "holds 2 data files, and one is read"),
        ({"a__txt": SECRET}, "holds no data file"),
        ({"a__zip": SECRET}, "holds no data file"),
        ({}, "holds no data file"),
    ],
)
def test_none_or_several_data_files_are_refused(tmp_path: Path, files: dict[str, str], match: str) -> None:
    _refused(_zip(tmp_path, **files), match)


def test_messages_name_the_archive_and_not_the_folder_it_was_unpacked_to(tmp_path: Path) -> None:
    message = _refused(_zip(tmp_path, a__csv=f"a,b\n{SECRET}\n"), r"archive\.zip: a\.csv': 1 rows have fewer")
    assert "quadrille-" not in message


def test_nothing_stays_behind_in_the_folder_for_temporary_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    assert qd.read(_zip(tmp_path, a__csv="a,b\nx,1\ny,2\n")).frame()["a"].to_list() == ["x", "y"]
    _refused(_zip(tmp_path, a__csv="a,b\n"), "no records")
    assert list(scratch.iterdir()) == []


def test_cut_off_and_damaged_archives_are_refused(tmp_path: Path) -> None:
    path = _zip(tmp_path, a__csv="a,b\n" + f"{SECRET},1\n" * 500)
    whole = path.read_bytes()
    for at in (0, 1, 20, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:at])
        _refused(path, "not an intact zip archive")
    broken = bytearray(whole)
    broken[45] ^= 0xFF
    path.write_bytes(bytes(broken))
    _refused(path, "not an intact zip archive")
    _refused(tmp_path / "nowhere.zip", "No such file")


def test_a_password_is_told(tmp_path: Path) -> None:
    path = _zip(tmp_path, a__csv="a,b\n1,2\n")
    raw = bytearray(path.read_bytes())
    raw[6] |= 1
    raw[raw.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(bytes(raw))
    _refused(path, "protected by a password")


@pytest.mark.parametrize("name", ["bomb.zip", "bomb.xlsx"])
def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quadrille.io.raw, "SMALL", 1 << 20)
    path = tmp_path / name
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("a.csv", b"a,b\n" + b"0,0\n" * (1 << 20))
    opened: list[object] = []
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda *words, **_: opened.append(words))
    _refused(path, "unpacks to more than 200 times its size")
    assert not opened


def test_a_size_that_is_a_lie_does_not_help_a_bomb(tmp_path: Path) -> None:
    """The header says 10 bytes: no more are unpacked, and the check sum tells."""
    path = _zip(tmp_path, a__csv="a,b\n" + "0,0\n" * 100_000)
    raw = bytearray(path.read_bytes())
    for mark, place in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        at = raw.index(mark) + place
        raw[at : at + 4] = (10).to_bytes(4, "little")
    path.write_bytes(bytes(raw))
    _refused(path, "not an intact zip archive")


def test_an_archive_may_have_any_order_and_comments(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.comment = b"made by hand"
        file.writestr("note.md", "about")
        file.writestr("A.CSV", "a,b\nx,1\n")
    path = tmp_path / "archive.ZIP"
    path.write_bytes(buffer.getvalue())
    assert qd.read(path).columns == ["a", "b"]
