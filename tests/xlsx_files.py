"""Workbooks of Excel for tests, written by hand: the parts of the format that its readers need, and no more."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from xml.sax.saxutils import escape

Cell = str | int | float | bool | date | datetime | None

_TYPES = """<?xml version="1.0" encoding="UTF-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>
<Default Extension="xml" ContentType="application/xml"/>
<Override PartName="/xl/workbook.xml"
 ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/>
<Override PartName="/xl/styles.xml"
 ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.styles+xml"/>
{sheets}</Types>"""
_SHEET_TYPE = (
    '<Override PartName="/xl/worksheets/sheet{n}.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/>'
)
_RELATIONS = """<?xml version="1.0" encoding="UTF-8"?>
<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{inside}</Relationships>"""
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_STYLES = f"""<?xml version="1.0" encoding="UTF-8"?>
<styleSheet xmlns="{_MAIN}"><cellXfs count="3"><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="22"/></cellXfs>
</styleSheet>"""
_EPOCH = datetime(1899, 12, 30)


def write_xlsx(path: Path, sheets: Mapping[str, Sequence[Sequence[Cell]]]) -> Path:
    """Write a workbook: the rows of each sheet, the header among them."""
    numbers = range(1, len(sheets) + 1)
    workbook = "".join(
        f'<sheet name="{escape(name)}" sheetId="{n}" r:id="rId{n}"/>' for n, name in zip(numbers, sheets, strict=True)
    )
    links = "".join(
        f'<Relationship Id="rId{n}" Type="{_OFFICE}/worksheet" Target="worksheets/sheet{n}.xml"/>' for n in numbers
    )
    links += f'<Relationship Id="rId{len(sheets) + 1}" Type="{_OFFICE}/styles" Target="styles.xml"/>'
    top = f'<Relationship Id="rId1" Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/>'
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("[Content_Types].xml", _TYPES.format(sheets="".join(_SHEET_TYPE.format(n=n) for n in numbers)))
        file.writestr("_rels/.rels", _RELATIONS.format(inside=top))
        file.writestr(
            "xl/workbook.xml", f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets>{workbook}</sheets></workbook>'
        )
        file.writestr("xl/_rels/workbook.xml.rels", _RELATIONS.format(inside=links))
        file.writestr("xl/styles.xml", _STYLES)
        for n, rows in zip(numbers, sheets.values(), strict=True):
            file.writestr(f"xl/worksheets/sheet{n}.xml", _sheet(rows))
    return path


def _sheet(rows: Sequence[Sequence[Cell]]) -> str:
    lines = "".join(
        f'<row r="{r}">' + "".join(_cell(value, f"{chr(65 + c)}{r}") for c, value in enumerate(row)) + "</row>"
        for r, row in enumerate(rows, start=1)
    )
    return f'<worksheet xmlns="{_MAIN}"><sheetData>{lines}</sheetData></worksheet>'


def _cell(value: Cell, place: str) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return f'<c r="{place}" t="b"><v>{int(value)}</v></c>'
    if isinstance(value, datetime):
        return f'<c r="{place}" s="2"><v>{(value - _EPOCH).total_seconds() / 86400!r}</v></c>'
    if isinstance(value, date):
        return f'<c r="{place}" s="1"><v>{(datetime(value.year, value.month, value.day) - _EPOCH).days}</v></c>'
    if isinstance(value, str):
        return f'<c r="{place}" t="inlineStr"><is><t xml:space="preserve">{escape(value)}</t></is></c>'
    return f'<c r="{place}"><v>{value!r}</v></c>'
