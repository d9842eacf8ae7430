"""Sheets of Excel: values and types as they stand there, one sheet told from several, damaged workbooks refused."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from datetime import date, datetime
from pathlib import Path

import pytest

import quadrille as qd
from quadrille.codebook import Codebook, Variable
from quadrille.data import Data
from quadrille.errors import InputError, OutputError
from xlsx_files import Cell, write_xlsx

SECRET = "Zebedee"
HEAD = ["id", "sex", "age", "pay", "born", "seen", "ok", "code"]


def _rows(count: int = 60) -> list[list[Cell]]:
    return [
        [
            1000 + i,
            "fm"[i % 2],
            20 + i % 30,
            None if i % 7 == 0 else 10.5 + i,
            date(1980, 1, 1 + i % 28),
            datetime(2020, 1, 1, 12, i % 60),
            i % 3 == 0,
            f"{i % 5:03}",
        ]
        for i in range(count)
    ]


def _book(folder: Path, rows: list[list[Cell]] | None = None, **sheets: list[list[Cell]]) -> Path:
    return write_xlsx(folder / "people.xlsx", {"Data": [list(HEAD), *(rows or _rows())], **sheets})


def _refused(path: Path, match: str, **options: object) -> None:
    with pytest.raises(InputError, match=match) as caught:
        qd.read(path, **options)  # pyright: ignore[reportArgumentType]
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


def test_values_and_types_are_those_of_the_sheet(tmp_path: Path) -> None:
    data = qd.read(_book(tmp_path))
    assert data.frame().rows() == [tuple(row) for row in _rows()]
    kinds = {name: data[name].variable.kind for name in data.columns}
    assert kinds["sex"] == "nominal" and kinds["age"] == "ordinal" and kinds["pay"] == "numeric"
    assert data["id"].variable.role == "id"
    assert data["born"].dtype == "Date" and data["seen"].dtype.startswith("Datetime") and data["ok"].dtype == "Boolean"
    assert data.read_as == ()


def test_words_for_missing_values_among_numbers_are_missing(tmp_path: Path) -> None:
    rows: list[list[Cell]] = [["x", "flag", "mixed"], [1.5, 1, "a"], ["NA", None, 2], [2, 0, 2.5], [".", 1, True]]
    data = qd.read(write_xlsx(tmp_path / "a.xlsx", {"S": rows}))
    assert data.frame().to_dict(as_series=False)["x"] == [1.5, None, 2.0, None]
    assert data["flag"].variable.categories == (0, 1) and data["flag"].nullable
    assert data.frame()["mixed"].to_list() == ["a", "2", "2.5", "true"]
    assert data.read_as == ("NA, NaN, . and blanks are missing in: x",)


def test_true_among_numbers_is_no_number(tmp_path: Path) -> None:
    data = qd.read(write_xlsx(tmp_path / "a.xlsx", {"S": [["x", "y"], [1, 2], [True, 3]]}))
    assert data.frame()["x"].to_list() == ["1", "true"]


def test_cells_with_an_error_are_missing_and_that_is_told(tmp_path: Path) -> None:
    path = write_xlsx(tmp_path / "a.xlsx", {"S": [["x", "y"], [1, 2.5], [77, 3], [2, 4]]})
    parts = {name: zipfile.ZipFile(path).read(name) for name in zipfile.ZipFile(path).namelist()}
    with zipfile.ZipFile(path, "w") as file:
        for name, text in parts.items():
            file.writestr(name, text.replace(b'<c r="A3"><v>77</v>', b'<c r="A3" t="e"><v>#DIV/0!</v>'))
    data = qd.read(path)
    assert data.frame()["x"].to_list() == [1, None, 2]
    assert data.read_as == ("cells in which Excel shows an error are missing",)


def test_codebook_weight_and_roles_hold_as_for_other_files(tmp_path: Path) -> None:
    book = Codebook((Variable("sex", categories=("m", "f")), Variable("age", bands=(0, 30))))
    data = qd.read(_book(tmp_path), codebook=book, weight="id")
    assert data["sex"].labels == ("m", "f") and data["age"].labels == ("0-29", "30+") and data.weight == "id"


def test_one_sheet_with_data_is_read_and_one_of_several_must_be_named(tmp_path: Path) -> None:
    assert qd.read(_book(tmp_path, Empty=[])).n == 60
    path = _book(tmp_path, Other=[["z", "y"], [1, SECRET], [2, "b"]])
    _refused(path, r'has 2 sheets with data\. Say which: --layout "sheet=1" or --layout "sheet=2"')
    for sheet in ("Other", 2):
        data = qd.read(path, sheet=sheet)
        assert data.columns == ["z", "y"] and data.read_as == ("sheet 'Other'",)
    _refused(path, "has no sheet 'other'", sheet="other")
    _refused(path, "has no sheet 3: it has 2", sheet=3)


@pytest.mark.parametrize(
    ("rows", "match"),
    [
        ([], "is empty"),
        ([["a", "b"]], "column names but no records"),
        ([["a", "a"], [1, 2]], "'a' occurs more than once"),
        ([["a", None, "c"], [SECRET, 1, 2]], "column 2 has no name"),
        ([["a", " "], [SECRET, 1]], "column 2 has no name"),
    ],
)
def test_a_sheet_that_is_no_table_is_refused(tmp_path: Path, rows: list[list[Cell]], match: str) -> None:
    _refused(write_xlsx(tmp_path / "a.xlsx", {"S": rows}), match)


def test_cut_off_and_damaged_workbooks_are_refused_whole(tmp_path: Path) -> None:
    path = _book(tmp_path, [[SECRET, "a", 1, 2, None, None, True, "x"]] * 50)
    whole = path.read_bytes()
    for at in (0, 1, 10, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:at])
        _refused(path, "not an intact zip archive")
    for at in range(40, len(whole), len(whole) // 25):
        broken = bytearray(whole)
        broken[at] ^= 0xFF
        path.write_bytes(bytes(broken))
        try:
            assert qd.read(path).n == 50
        except InputError as error:
            assert SECRET not in str(error)
    path.write_text(f"a,b\n{SECRET},1\n")
    _refused(path, "not an intact zip archive")
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("xl/workbook.xml", f"<workbook>{SECRET}")
    _refused(path, "not an intact Excel workbook")


def test_a_workbook_with_broken_tables_inside_is_refused(tmp_path: Path) -> None:
    path = _book(tmp_path)
    parts = {name: zipfile.ZipFile(path).read(name) for name in zipfile.ZipFile(path).namelist()}
    sheet = parts["xl/worksheets/sheet1.xml"]
    with zipfile.ZipFile(path, "w") as file:
        for name, text in parts.items():
            file.writestr(name, sheet[: len(sheet) // 2] if name.endswith("sheet1.xml") else text)
    _refused(path, "not an intact Excel workbook")


def test_without_the_library_the_message_says_what_to_install(tmp_path: Path) -> None:
    path = _book(tmp_path)
    code = (
        "import sys; sys.modules['fastexcel'] = None\nimport quadrille as qd\n"
        f"try:\n    qd.read({str(path)!r})\nexcept Exception as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'quadrille[excel]'" in done.stdout


def test_the_library_is_imported_only_when_it_is_needed() -> None:
    code = "import sys, quadrille as qd; qd.read; import quadrille.io.csv; print('fastexcel' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_workbooks_are_read_and_not_written(tmp_path: Path) -> None:
    data: Data = qd.read(_book(tmp_path))
    with pytest.raises(OutputError, match=r"Cannot write 'out\.xlsx'"):
        qd.write(data, tmp_path / "out.xlsx")
