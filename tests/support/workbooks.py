"""Small .xlsx and .ods workbooks, written here with the standard library alone."""

from __future__ import annotations

import datetime
import io
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape, quoteattr

Cell = str | float | bool | datetime.date | None
Sheets = Mapping[str, Sequence[Sequence[Cell]]]

EPOCH = datetime.datetime(1899, 12, 30)  # day 0 of Excel
MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'
ODS_NAMES = " ".join(
    f'xmlns:{short}="urn:oasis:names:tc:opendocument:xmlns:{short}:1.0"'
    for short in ("office", "table", "text", "style")
)


def zipped(parts: Mapping[str, str | bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A .zip with these parts, always the same bytes."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, part in parts.items():
            archive.writestr(zipfile.ZipInfo(name), part, compress_type=method)
    return file.getvalue()


def xlsx(sheets: Sheets) -> bytes:
    """A workbook as Excel writes it: texts are shared, dates are numbers with a format."""
    return zipped(xlsx_parts(sheets))


def xlsx_parts(sheets: Sheets) -> dict[str, str]:
    """The parts of a workbook by their names."""
    shared: dict[str, int] = {}
    parts = {
        f"xl/worksheets/sheet{i}.xml": xlsx_sheet(rows, shared)
        for i, rows in enumerate(sheets.values(), start=1)
    }
    numbers = range(1, len(sheets) + 1)
    listed = "".join(
        f'<sheet name={quoteattr(name)} sheetId="{i}" r:id="rId{i}"/>'
        for i, name in zip(numbers, sheets, strict=True)
    )
    links = "".join(
        f'<Relationship Id="rId{i}" Type="{OFFICE}/worksheet" Target="worksheets/sheet{i}.xml"/>'
        for i in numbers
    )
    n = len(sheets)
    links += (
        f'<Relationship Id="rId{n + 1}" Type="{OFFICE}/styles" Target="styles.xml"/>'
        f'<Relationship Id="rId{n + 2}" Type="{OFFICE}/sharedStrings" Target="sharedStrings.xml"/>'
    )
    texts = "".join(f'<si><t xml:space="preserve">{escape(text)}</t></si>' for text in shared)
    formats = "".join(f'<xf numFmtId="{number}"/>' for number in (0, 14, 22))
    return {
        "[Content_Types].xml": f'{HEAD}<Types xmlns="{PACKAGE}/content-types"/>',
        "_rels/.rels": f'{HEAD}<Relationships xmlns="{PACKAGE}/relationships">'
        f'<Relationship Id="rId1" Type="{OFFICE}/officeDocument" Target="xl/workbook.xml"/>'
        "</Relationships>",
        "xl/workbook.xml": f'{HEAD}<workbook {MAIN} xmlns:r="{OFFICE}"><sheets>{listed}</sheets>'
        "</workbook>",
        "xl/_rels/workbook.xml.rels": f'{HEAD}<Relationships xmlns="{PACKAGE}/relationships">'
        f"{links}</Relationships>",
        "xl/styles.xml": f"{HEAD}<styleSheet {MAIN}><cellXfs>{formats}</cellXfs></styleSheet>",
        "xl/sharedStrings.xml": f"{HEAD}<sst {MAIN}>{texts}</sst>",
        **parts,
    }


def xlsx_sheet(rows: Sequence[Sequence[Cell]], shared: dict[str, int]) -> str:
    written = []
    for i, row in enumerate(rows, start=1):
        cells = "".join(_xlsx_cell(f"{letters(j)}{i}", c, shared) for j, c in enumerate(row))
        if cells:
            written.append(f'<row r="{i}">{cells}</row>')
    data = "".join(written)
    return f"{HEAD}<worksheet {MAIN}><sheetData>{data}</sheetData></worksheet>"


def letters(column: int) -> str:
    """Name of a column, counted from 0: "A", "Z", "AA"."""
    name = ""
    column += 1
    while column:
        column, rest = divmod(column - 1, 26)
        name = chr(ord("A") + rest) + name
    return name


def _xlsx_cell(place: str, cell: Cell, shared: dict[str, int]) -> str:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return f'<c r="{place}" t="b"><v>{cell:d}</v></c>'
    if isinstance(cell, str) and cell.startswith("#"):
        return f'<c r="{place}" t="e"><v>{escape(cell)}</v></c>'
    if isinstance(cell, str):
        return f'<c r="{place}" t="s"><v>{shared.setdefault(cell, len(shared))}</v></c>'
    if isinstance(cell, datetime.datetime):
        return f'<c r="{place}" s="2"><v>{(cell - EPOCH) / datetime.timedelta(days=1)!r}</v></c>'
    if isinstance(cell, datetime.date):
        return f'<c r="{place}" s="1"><v>{(cell - EPOCH.date()).days}</v></c>'
    return f'<c r="{place}"><v>{cell!r}</v></c>'


def ods(sheets: Sheets, padding: bool = True) -> bytes:
    """A workbook as LibreOffice writes it, which fills the sheet with repeated empty cells."""
    return zipped(ods_parts(sheets, padding))


def ods_parts(sheets: Sheets, padding: bool = True) -> dict[str, str]:
    """The parts of a workbook by their names."""
    tables = "".join(
        f"<table:table table:name={quoteattr(name)}>{_ods_rows(rows, padding)}</table:table>"
        for name, rows in sheets.items()
    )
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    return {
        "mimetype": kind,
        "META-INF/manifest.xml": f'{HEAD}<manifest:manifest xmlns:manifest="urn:m"/>',
        "content.xml": f"{HEAD}<office:document-content {ODS_NAMES}><office:body>"
        f"<office:spreadsheet>{tables}</office:spreadsheet></office:body>"
        "</office:document-content>",
    }


def _ods_rows(rows: Sequence[Sequence[Cell]], padding: bool) -> str:
    empty = '<table:table-cell table:number-columns-repeated="16000"/>' if padding else ""
    written = "".join(
        f"<table:table-row>{''.join(map(_ods_cell, row))}{empty}</table:table-row>" for row in rows
    )
    if not padding:
        return written
    return (
        f'{written}<table:table-row table:number-rows-repeated="1048000">{empty}</table:table-row>'
    )


def _ods_cell(cell: Cell) -> str:
    if cell is None:
        return "<table:table-cell/>"
    kind, attribute, value = _ods_value(cell)
    given = f"office:{attribute}={quoteattr(value)}" if attribute else ""
    return (
        f'<table:table-cell office:value-type="{kind}" {given}><text:p>{escape(value)}</text:p>'
        "</table:table-cell>"
    )


def _ods_value(cell: Any) -> tuple[str, str, str]:
    if isinstance(cell, bool):
        return "boolean", "boolean-value", str(cell).lower()
    if isinstance(cell, str):
        return "string", "", cell
    if isinstance(cell, datetime.date):
        return "date", "date-value", cell.isoformat()
    return "float", "value", repr(cell)
