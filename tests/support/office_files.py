"""Ordinary files of offices with their truth, drawn from a seed.

`office_files` gives tables of ten kinds of offices in six countries as their programs export them:
text files in several encodings, workbooks, Parquet and JSON; with titles, units, totals, footers
and blank lines around the data. Each `OfficeFile` knows what every data cell means and which rows
are odd; `OfficeFile.clean_table` has the same rows as a reader should find them.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tests.support.office_columns import ColumnTruth, Plan, Rows, draw_columns
from tests.support.office_styles import (
    WORKBOOKS,
    Style,
    deal,
    draw_hotline_styles,
    draw_styles,
    number_cell,
)
from tests.support.office_tables import (
    FOOTERS,
    GROUPS,
    HOTLINE,
    LEGEND,
    LOCALES,
    OFFICES,
    OTHER_SHEETS,
    SHEET,
    SUBTOTAL,
    TITLES,
    TOTAL,
    Number,
    in_language,
)
from tests.support.workbooks import Cell, ods, xlsx

__all__ = ["CleanTable", "ColumnTruth", "OfficeFile", "Style", "office_files"]

Line = tuple[str, list[Cell]]  # what it is, as in OfficeFile.other_lines or "data", and its cells


@dataclass(frozen=True, eq=False)
class CleanTable:
    """The true numbers and categories of a file, without totals, codes, ids and dates."""

    names: tuple[str, ...]  # of the columns of `numbers`
    numbers: NDArray[np.float64]  # (n_rows, n_names); NaN is a gap
    categories: dict[str, tuple[str, ...]]  # "" is a gap


@dataclass(frozen=True, eq=False)
class OfficeFile:
    """A file and its truth; lines are counted from 0, in Parquet and JSON the records."""

    kind: str
    locale: str
    name: str
    content: bytes
    style: Style
    sheet: str  # of the data; "" where a file has no sheets
    first_column: int  # of the table in its sheet
    columns: tuple[ColumnTruth, ...]
    data_lines: Rows
    other_lines: dict[int, str]  # title, groups, names, units, subtotal, total, footer, blank
    anomalies: Rows  # counted among the data rows

    def clean_table(self) -> CleanTable:
        """The table that a reader should find."""
        numbers = [column for column in self.columns if column.kind == "number"]
        return CleanTable(
            tuple(column.name for column in numbers),
            np.column_stack([column.values for column in numbers]),
            {column.name: column.texts for column in self.columns if column.kind == "category"},
        )


def office_files(seed: int = 0) -> list[OfficeFile]:
    """72 files of every kind of office in every locale, and 12 of a hotline; no style is twice."""
    rng = np.random.default_rng(seed)
    pairs = deal(rng, list(itertools.product(OFFICES, LOCALES)))
    files: list[OfficeFile] = []
    styles: set[Style] = set()
    hotline = [("hotline", locale) for locale in (*LOCALES, *LOCALES[1:], LOCALES[0])]
    drawn = zip(draw_styles(rng), pairs, strict=False)
    for draw_style, (kind, locale) in itertools.chain(
        drawn, zip(draw_hotline_styles(rng), hotline, strict=True)
    ):
        style = draw_style(locale)
        while style in styles:
            style = draw_style(locale)
        styles.add(style)
        n_rows = int(rng.integers(200, 601))
        n_anomalies = int(rng.integers(5, 16))
        anomalies = np.sort(rng.choice(n_rows, n_anomalies, replace=False)).tolist()
        plan = Plan(OFFICES.get(kind, HOTLINE), locale, style, n_rows, tuple(anomalies), rng)
        files.append(_make_file(kind, len(files), plan))
    return files


def _make_file(kind: str, number: int, plan: Plan) -> OfficeFile:
    style = plan.style
    columns = draw_columns(plan)
    if style.container == "csv" or style.container in WORKBOOKS:
        lines = _lay_out(columns, plan)
        roles = [role for role, _ in lines]
    else:
        lines, roles = [], ["data"] * plan.n_rows
    sheet, content = _write(lines, columns, plan)
    return OfficeFile(
        kind=kind,
        locale=plan.locale.name,
        name=f"{number:02d}_{_stem(plan)}_{plan.locale.name}.{_suffix(style)}",
        content=content,
        style=style,
        sheet=sheet,
        first_column=_n_before(style),
        columns=tuple(columns),
        data_lines=tuple(i for i, role in enumerate(roles) if role == "data"),
        other_lines={i: role for i, role in enumerate(roles) if role != "data"},
        anomalies=plan.anomalies,
    )


def _stem(plan: Plan) -> str:
    return in_language(plan.office.title, 1).lower().replace(" ", "_")


def _n_before(style: Style) -> int:
    """Number of columns before the table."""
    return len(LEGEND) if "left" in style.structure else 2 if "offset" in style.structure else 0


def _suffix(style: Style) -> str:
    """What Excel and others give; Excel's "Unicode text" is UTF-16 with tabs."""
    if style.suffix:
        return style.suffix
    if style.separator == "\t":
        return "txt" if style.encoding == "utf-16" else "tsv"
    return style.container


# ---- lines


def _lay_out(columns: Sequence[ColumnTruth], plan: Plan) -> list[Line]:
    """The lines of the sheet: what stands above the data, the data, and what stands below."""
    structure = plan.style.structure
    table = [*_names(columns, plan), *_body(columns, plan)]
    above: list[Line] = []
    if "title" in structure:
        above = [("title", [plan.words(plan.office.title)])]
    if "offset" in structure:  # the table starts at C4
        table = [(role, [None, None, *cells]) for role, cells in table]
        above += [("blank", [])] * (3 - len(above))
    elif above:
        facts = TITLES[: int(plan.rng.integers(len(TITLES) + 1))]
        above += [("title", list(plan.words(fact).split(": "))) for fact in facts]
        above += [("blank", [])] * int(plan.rng.integers(2))
    below: list[Line] = []
    if "footer" in structure:
        footers = FOOTERS[: int(plan.rng.integers(1, len(FOOTERS) + 1))]
        below = [("blank", [])] * int(plan.rng.integers(2))
        below += [("footer", [plan.words(footer)]) for footer in footers]
    lines = [*above, *table, *below]
    return _with_legend(lines, len(columns), plan) if "beside" in structure else lines


def _with_legend(lines: Sequence[Line], n_columns: int, plan: Plan) -> list[Line]:
    """The lines with another table at the left or the right, from about the names on."""
    first = next(i for i, (role, _) in enumerate(lines) if role == "names")
    first += int(plan.rng.integers(3))
    made = []
    for i, (role, cells) in enumerate(lines):
        words = LEGEND[i - first] if 0 <= i - first < len(LEGEND) else ()
        own = [plan.words(cell) if isinstance(cell, str) else cell for cell in words]
        own += [None] * (len(LEGEND[0]) - len(own))
        padded = [*cells, *[None] * (n_columns - len(cells))]
        beside = [*own, None, *cells] if "left" in plan.style.structure else [*padded, None, *own]
        made.append((role, beside))
    return made


def _names(columns: Sequence[ColumnTruth], plan: Plan) -> list[Line]:
    """The names, with the headings of groups above them and the units below."""
    lines: list[Line] = [("names", [column.name for column in columns])]
    if "two_headers" in plan.style.structure:
        is_number = [column.kind == "number" for column in columns]
        starts = [True, *(one != next_ for one, next_ in itertools.pairwise(is_number))]
        groups = [plan.words(words) for words in GROUPS]
        heads = [groups[n] if s else None for s, n in zip(starts, is_number, strict=True)]
        lines.insert(0, ("groups", list(heads)))
    if "units" in plan.style.structure:
        shape = "[{}]" if plan.rng.random() < 0.5 else "{}"
        units = [shape.format(column.unit) if column.unit else None for column in columns]
        lines.append(("units", list(units)))
    return lines


def _body(columns: Sequence[ColumnTruth], plan: Plan) -> list[Line]:
    """The data in one block, or in one for each value of the first category."""
    structure, n_rows = plan.style.structure, plan.n_rows
    data: list[Line] = [("data", [column.cells[i] for column in columns]) for i in range(n_rows)]
    if not {"totals", "blocks"} & set(structure):
        return data
    groups = next(column for column in columns if column.kind == "category").texts
    place = int(plan.rng.integers(2))  # of the words for totals
    ends = [i + 1 for i in range(n_rows - 1) if groups[i] != groups[i + 1]]
    lines: list[Line] = []
    for start, end in itertools.pairwise([0, *ends, n_rows]):
        lines += data[start:end]
        if "totals" in structure:
            words = f"{plan.words(SUBTOTAL)} {groups[start]}"
            lines.append(("subtotal", _sums(columns, slice(start, end), words, place, plan)))
        if "blocks" in structure and end < n_rows:
            lines.append(("blank", []))
    if "totals" in structure:
        lines.append(("total", _sums(columns, slice(None), plan.words(TOTAL), place, plan)))
    return lines


def _sums(
    columns: Sequence[ColumnTruth], rows: slice, words: str, place: int, plan: Plan
) -> list[Cell]:
    """A line with the sums of the columns of numbers, written like the numbers."""
    specs = iter([spec for spec in plan.office.columns if isinstance(spec, Number)])
    cells: list[Cell] = [None] * len(columns)
    for j, column in enumerate(columns):
        if column.kind == "number":
            spec = next(specs)
            total = round(float(np.nansum(column.values[rows])), spec.digits)
            cells[j] = number_cell(total, spec.digits, spec.unit, plan.style)
    cells[place] = words
    return cells


# ---- files


def _write(lines: Sequence[Line], columns: Sequence[ColumnTruth], plan: Plan) -> tuple[str, bytes]:
    """The name of the sheet, if any, and the file."""
    container = plan.style.container
    if container in WORKBOOKS:
        return _workbook(lines, plan)
    if container == "csv":
        return "", _text(lines, len(columns), plan.style)
    table = {column.name: [_or_none(cell) for cell in column.cells] for column in columns}
    if container == "parquet":
        return "", _parquet(table)
    records = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    if container == "json":
        return "", json.dumps(records, ensure_ascii=False, indent=1).encode()
    return "", "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in records).encode()


def _or_none(cell: Cell) -> Cell:
    return None if cell == "" else cell


def _workbook(lines: Sequence[Line], plan: Plan) -> tuple[str, bytes]:
    write = xlsx if plan.style.container == "xlsx" else ods
    rows = [[_or_none(cell) for cell in cells] for _, cells in lines]
    if "sheets" not in plan.style.structure:
        name = plan.words(SHEET)
        return name, write({name: rows})
    cover, name = (plan.words(sheet) for sheet in OTHER_SHEETS)
    return name, write({cover: [plan.words(fact).split(": ") for fact in TITLES], name: rows})


def _text(lines: Sequence[Line], n_columns: int, style: Style) -> bytes:
    file = io.StringIO()
    quoting = csv.QUOTE_ALL if style.quote_all else csv.QUOTE_MINIMAL
    writer = csv.writer(
        file, delimiter=style.separator, quoting=quoting, lineterminator=style.newline
    )
    width = n_columns + (2 if "offset" in style.structure else 0)
    for _, cells in lines:
        missing = width - len(cells) if style.padded else 0
        writer.writerow([*cells, *[""] * missing])
    return file.getvalue().encode(style.encoding)


def _parquet(table: dict[str, list[Cell]]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = io.BytesIO()
    arrays = {
        name: pa.nulls(len(cells), pa.string()) if not any(cells) else pa.array(cells)
        for name, cells in table.items()
    }
    pq.write_table(pa.table(arrays), file)
    return file.getvalue()
