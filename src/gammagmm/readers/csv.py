"""Delimited text -> raw table; the standard library's parser defines what a file means."""

from __future__ import annotations

import csv
import importlib
import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm.errors import NoRowsError, Note, TableError
from gammagmm.readers.layout import Layout, find_layout, layout_notes, renamed_repeats
from gammagmm.readers.numbers import (
    NO_MARK,
    ReadNumbers,
    are_codes,
    decimal_mark,
    have_groups,
    is_row,
    looks_like_number,
    mark_for,
    missing_words_note,
    number_notes,
    numbers_first_note,
    read_column,
    read_texts,
    shape_mark,
    unusual_words,
)
from gammagmm.readers.raw_table import (
    PLAIN_MISSING,
    NumberForm,
    RawTable,
    check_names,
    complete_names,
    is_missing,
    number_or_none,
    numbered_names,
    text_column,
)
from gammagmm.readers.source import Asked, Source, decode_any

__all__ = ["read_delimited"]

# If two delimiters split the first lines equally well ("1,5;2,5"), the earlier one is chosen:
# commas occur inside cells far more often than the others do.
DELIMITERS = ("\t", ";", "|", ",")
# Excel writes this line, and reads it.
SEP_LINE = re.compile(r"""\s*"?sep=([\t;,|:^~ ])"?[ \t]*(?:\r\n|\r|\n|$)""", re.IGNORECASE)
N_SNIFFED_RECORDS = 50
MIN_SPACED = 5
"""Fewest lines by which it is found that spaces separate cells."""
SPACES = re.compile(" +")
N_EXAMPLES = 1000
"""Rows that are looked at to find columns of codes."""
N_SHOWN_LINES = 3
LEAST_SHARE = 0.5
"""Share of the first records that must have one number of cells."""
MAX_LAID_OUT, N_END_LINES = 2_000_000, 500
"""Characters of a text above which only so many lines at each end can be no data."""
MAX_LINE_BYTES = 20_000_000
MAX_RECORD_LINES = 100
"""Most lines of a record that is no data."""
# The decimal mark where no column shows it, and the reason.
COMMA_LOCALE = (",", "cells separated by semicolons usually have decimal commas")
POINT_LOCALE = (".", NO_MARK)
LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
# Below this size PyArrow saves less time than its import takes.
MIN_QUICK_CHARACTERS = 1_000_000

Record = tuple[int, list[str]]  # 1-based line of the file, cells


@dataclass(frozen=True, repr=False)
class DelimitedText:
    """Text with a known delimiter and known columns."""

    name: str
    text: str
    delimiter: str
    columns: tuple[str, ...]
    has_header: bool
    notes: tuple[Note, ...] = ()
    asked: Asked = field(default_factory=Asked)
    beside: frozenset[int] = frozenset()  # columns of other tables

    @property
    def least_width(self) -> int:
        """Cells that a row needs; it may lack those of a table at the right of this one."""
        if not self.beside:
            return len(self.columns)
        return 1 + max(j for j, name in enumerate(self.columns) if name and j not in self.beside)


@dataclass(frozen=True, eq=False)
class Numbers:
    """The numbers of a table: d columns of n rows."""

    lines: list[int] | range  # line of each row
    values: NDArray[np.float64]  # (d, n), NaN where a cell is missing or text
    text_columns: frozenset[int] = frozenset()
    missing_words: Mapping[int, Counter[str]] = field(default_factory=dict)  # the unusual ones

    @property
    def plain(self) -> set[int]:
        """The columns without text."""
        return set(range(len(self.values))) - self.text_columns


def read_delimited(source: Source) -> RawTable:
    """Raw table of a file with cells separated by commas, semicolons, tabs or pipes."""
    table = open_text(source)
    numbers = parse_quickly(table) if len(table.text) > MIN_QUICK_CHARACTERS else None
    numbers = numbers or parse(table)
    if not numbers.lines:
        raise NoRowsError(
            f"{table.name} contains column names but no rows",
            "Add the rows below them.",
            tuple(table.columns),
        )
    examples = _texts(table, numbers.plain, N_EXAMPLES).items()
    first = {j: _without_missing(cells) for j, cells in examples}
    codes = {j for j, cells in first.items() if are_codes(cells)}
    numbers = replace(numbers, text_columns=numbers.text_columns | codes)
    data: list[NDArray[Any]] = list(numbers.values)
    missing_words = dict(numbers.missing_words)
    texts = dict[int, list[str | None]]()
    for j, cells in _texts(table, numbers.text_columns).items():
        missing_words[j] = unusual_words(cell for cell in cells if is_missing(cell))
        texts[j] = _without_missing(cells)
        data[j] = text_column(texts[j])
    notes, forms = dict[int, ReadNumbers](), _plain_forms(first, numbers)
    for j, column in _written_numbers(table, numbers, texts).items():
        data[j], notes[j], forms[j] = column.values, column, column.form
    own = [j for j in range(len(table.columns)) if j not in table.beside]
    kept = [j for j in own if table.columns[j] or not _is_empty(data[j])]
    columns, named = complete_names([table.columns[j] for j in kept])
    check_names(table.name, columns)

    def cells_of(j: int) -> list[str | None]:
        return _without_missing(_texts(table, {kept[j]})[kept[j]])

    found = [*table.notes, *named]
    for name, j in zip(columns, kept, strict=True):
        found += number_notes(name, notes[j]) if j in notes else []
        found += [missing_words_note(name, missing_words[j])] if missing_words.get(j) else []
    kept_data = tuple(data[j] for j in kept)
    return RawTable(
        table.name,
        columns,
        kept_data,
        numbers.lines,
        cells_of,
        notes=tuple(found),
        forms={i: forms[j] for i, j in enumerate(kept) if j in forms},
    )


def _is_empty(values: NDArray[Any]) -> bool:
    return values.dtype != object and bool(np.isnan(values).all())


def _written_numbers(
    table: DelimitedText, numbers: Numbers, texts: Mapping[int, list[str | None]]
) -> dict[int, ReadNumbers]:
    """Columns of numbers in other than plain form, by position.

    If numbers have commas, and these are decimal marks, the points of plain numbers such as
    "1.185" are thousands. All columns that do not show their decimal mark have the same one.
    """

    @cache
    def plain() -> dict[int, list[str | None]]:
        return {j: _without_missing(cells) for j, cells in _texts(table, numbers.plain).items()}

    def marks_of_plain_columns() -> set[str]:
        return set(map(decimal_mark, plain().values()))

    usual = COMMA_LOCALE if table.delimiter == ";" else POINT_LOCALE
    asked = table.asked
    found = read_texts(texts, marks_of_plain_columns, usual, asked=asked)
    if asked.decimal == ".":
        return found
    marks = {column.decimal for column in found.values()}
    assumed = {column.assumed for column in found.values()}
    has_commas = "," in {*marks, *assumed, asked.decimal}
    if not has_commas and ("." in marks or not _may_have_thousands(table, numbers)):
        return found
    marks |= marks_of_plain_columns()
    if "." in marks and not has_commas:
        return found
    is_usual = table.delimiter == "," and not has_commas and "." not in assumed
    shapes = {shape_mark(cells) for cells in plain().values() if have_groups(cells)} - {""}
    marks = marks if marks - {""} else shapes
    for j, cells in plain().items():
        has_points = any("." in cell for cell in cells if cell is not None)
        if has_points and not decimal_mark(cells) and not (is_usual and not shape_mark(cells)):
            is_likely = "," in assumed or ("." not in marks and have_groups(cells))
            likely = usual if is_likely else POINT_LOCALE
            column = read_column(cells, *mark_for(cells, asked.decimal, marks, likely))
            found |= {} if column is None else {j: column}
    return found


def _plain_forms(
    examples: Mapping[int, list[str | None]], numbers: Numbers
) -> dict[int, NumberForm]:
    """How columns of plain numbers are written, by position; only the first rows are looked at."""
    forms = {}
    for j in sorted(numbers.plain):
        first = examples[j][:N_SNIFFED_RECORDS]
        has_points = any("." in cell for cell in first if cell is not None)
        if has_points or len(_fractions(numbers.values[j])):
            forms[j] = NumberForm(".", is_certain=bool(decimal_mark(first)))
    return forms


def _may_have_thousands(table: DelimitedText, numbers: Numbers) -> bool:
    """Whether plain numbers have points and, by their values and first rows, all in thousands."""
    fractions = _fractions(numbers.values)
    if not np.array_equal(fractions, np.round(fractions, 3)):
        return False
    first = _texts(table, numbers.plain, N_SNIFFED_RECORDS).values()
    cells = [cell for column in first for cell in column if "." in cell and not is_missing(cell)]
    return (len(fractions) > 0 or len(cells) > 0) and not decimal_mark(cells)


def _fractions(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The numbers that are finite and not whole."""
    finite = values[np.isfinite(values)]
    return finite[finite % 1.0 != 0.0]


def open_text(source: Source) -> DelimitedText:
    """Text of a file, with the delimiter and the columns that its first lines show."""
    _check_lines(source)
    text, notes = decode_any(source)
    declared = SEP_LINE.match(text)
    if declared:  # a blank line in its place keeps the numbers of the lines
        text = "\n" + text[declared.end() :]
    delimiter = declared[1] if declared else "\t" if source.suffix == ".tsv" else ""
    delimiter = delimiter or _sniff_delimiter(text)
    if not delimiter:
        text, delimiter = _with_single_spaces(text), " "
    text, layout, notes = _laid_out(source, text, delimiter, notes)
    sample = _sample(source.name, text, delimiter)
    if not sample:
        raise NoRowsError(
            f"{source.name} is empty", "Give a file with at least one row of numbers."
        )
    line, cells = sample[0]
    beside = frozenset[int]() if layout is None else layout.beside
    if is_row(cells) if layout is None else layout.header is None:
        columns = numbered_names(len(cells))
        notes = (*notes, numbers_first_note(source.name, "line", columns))
        return DelimitedText(
            source.name, text, delimiter, columns, False, notes, source.asked, beside
        )
    names = [cell.strip() for cell in cells]
    if layout is not None and len(layout.names) >= len(names):
        found, renamed = renamed_repeats(layout.names)
        names, notes = list(found), (*notes, *renamed)
    elif _is_header_short(sample) and _has_empty_ends(sample):
        names = [*names, ""]
    elif _is_header_short(sample):
        names = ["x1" if "index" in names else "index", *names]
        notes = (*notes, Note.of("tables.row names", names[0], name=names[0]))
    check_names(f"{source.name}, line {line}", tuple(name for name in names if name))
    return DelimitedText(
        source.name, text, delimiter, tuple(names), True, notes, source.asked, beside
    )


def _check_lines(source: Source) -> None:
    """Refuse a line of many megabytes, whose cells would take gigabytes."""
    content = source.content
    for start in range(0, len(content) - MAX_LINE_BYTES, MAX_LINE_BYTES):
        window = (start, start + MAX_LINE_BYTES)
        if content.find(b"\n", *window) < 0 and content.find(b"\r", *window) < 0:
            raise TableError(
                f"{source.name} has a line of more than {MAX_LINE_BYTES:,} bytes",
                "Write one row a line.",
            )


def _laid_out(
    source: Source, text: str, delimiter: str, notes: tuple[Note, ...]
) -> tuple[str, Layout | None, tuple[Note, ...]]:
    """The text with blank lines in the place of those that are neither names nor data.

    A blank line keeps the numbers of the lines.
    """
    if source.asked.is_strict:
        return text, None, notes
    starts = [match.start() for match in LINE.finditer(text)]
    try:
        records = _records_to_lay_out(text, delimiter, starts)
    except csv.Error:
        return text, None, notes
    rows = [[cell.strip() for cell in cells] for _, cells in records]
    lines = [line for line, _ in records]
    is_whole = len(text) <= MAX_LAID_OUT or len(starts) <= 2 * N_END_LINES
    layout = find_layout(rows, lines, source.asked, is_whole=is_whole)
    if layout is None:
        return text, None, notes
    kept = {*layout.body} if layout.header is None else {layout.header, *layout.body}
    pieces, place = list[str](), 0
    for i, (line, end) in enumerate(zip(lines, [*lines[1:], len(starts) + 1], strict=True)):
        if i not in kept and end - line <= MAX_RECORD_LINES:
            first, last = starts[line - 1], starts[end - 1] if end <= len(starts) else len(text)
            pieces += [text[place:first], "".join(c for c in text[first:last] if c in "\r\n")]
            place = last
    said = layout_notes(source.name, layout, rows, lines, "line")
    blanked, notes = "".join([*pieces, text[place:]]), (*notes, *said)
    if layout.header is None:
        return blanked, layout, notes
    is_shifted = len(rows[layout.header]) + 1 == max(len(rows[i]) for i in (0, *layout.body))
    return blanked, None if is_shifted else layout, notes


def _records_to_lay_out(text: str, delimiter: str, starts: list[int]) -> list[Record]:
    """The records of a text; of a large one, whose lines have these `starts`, those at its ends."""
    if len(text) <= MAX_LAID_OUT or len(starts) <= 2 * N_END_LINES:
        return list(_split(text, delimiter))
    first, last = starts[N_END_LINES], starts[-N_END_LINES]
    n_before = len(starts) - N_END_LINES
    tail = ((line + n_before, cells) for line, cells in _split(text[last:], delimiter))
    return [*_split(text[:first], delimiter), *tail]


def _is_header_short(sample: list[Record]) -> bool:
    """Whether the first record has one cell less, for a known reason, than each of the others.

    R writes no name for the column of row names; other programs end each row by a delimiter. A
    third reason is an error: decimal commas without quotation marks in a file with commas.
    """
    width = len(sample[0][1])
    if width < 2 or {len(cells) for _, cells in sample[1:]} != {width + 1}:
        return False
    return _has_empty_ends(sample) or _are_row_names([row[0].strip() for _, row in sample[1:]])


def _has_empty_ends(sample: list[Record]) -> bool:
    return {row[-1].strip() for _, row in sample[1:]} == {""}


def _are_row_names(cells: list[str]) -> bool:
    """Whether cells are different texts, or count the rows from 0 or 1."""
    n = len(cells)
    if cells in ([str(i) for i in range(n)], [str(i) for i in range(1, n + 1)]):
        return n > 1
    is_text = not any(is_missing(cell) or looks_like_number(cell) for cell in cells)
    return is_text and len(set(cells)) == n


def _sniff_delimiter(text: str) -> str:
    """Delimiter that splits each of the first records into the same number of cells, above one.

    It is empty where runs of spaces do.
    """
    shifted, shares = "", dict[str, float]()
    for delimiter in DELIMITERS:
        try:
            sample = list(islice(_split(text, delimiter), N_SNIFFED_RECORDS))
        except csv.Error:
            continue
        widths = {len(cells) for _, cells in sample}
        if len(widths) == 1 and widths != {1}:
            return delimiter
        shifted = shifted or (delimiter if sample and _is_header_short(sample) else "")
        shares[delimiter] = _share_of_one_width([cells for _, cells in sample])
    if shifted:
        return shifted
    # Titles and remarks around a table have other numbers of cells.
    best = max(shares, key=lambda delimiter: shares[delimiter], default="")
    if best and shares[best] >= LEAST_SHARE:
        return best
    if _are_spaced(text):
        return ""
    # No delimiter fits: the most frequent one on the first line gives the best error message.
    first_line = text.lstrip().partition("\n")[0]
    return max(reversed(DELIMITERS), key=first_line.count)


def _are_spaced(text: str) -> bool:
    """Whether runs of spaces split each of the first lines into the same number of cells."""
    lines = [match[0] for match in islice(LINE.finditer(text), N_SNIFFED_RECORDS)]
    try:
        sample = list(_split(_with_single_spaces("".join(lines)), " "))
    except csv.Error:
        return False
    widths = {len(cells) for _, cells in sample}
    are_alike = (len(widths) == 1 and widths != {1}) or (
        len(widths) == 2 and _is_header_short(sample)
    )
    # "1 234,50" is one number.
    are_single = all(looks_like_number(line.strip()) for line in lines[1:] if line.strip())
    return len(sample) >= MIN_SPACED and are_alike and not are_single


def _with_single_spaces(text: str) -> str:
    """The text with one space between the cells of a line; one with quotation marks stays."""
    if '"' in text:
        return text
    return "".join(SPACES.sub(" ", match[0].strip(" ")) for match in LINE.finditer(text))


def _share_of_one_width(sample: list[list[str]]) -> float:
    """Share of the records that have the most frequent number of cells above one."""
    widths = Counter(len(cells) for cells in sample)
    most = max((n for width, n in widths.items() if width > 1), default=0)
    return most / max(len(sample), 1)


def _split(text: str, delimiter: str) -> Iterator[Record]:
    """Line and cells of every record that is not blank."""
    lines = (match[0] for match in LINE.finditer(text))
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    line = 1
    for cells in reader:
        if len(cells) > 1 or (cells and cells[0].strip()):
            yield line, cells
        line = reader.line_num + 1


def _records(name: str, text: str, delimiter: str) -> Iterator[Record]:
    """Line and cells of every record that is not blank; broken quotes are a `TableError`."""
    line = 0
    try:
        for line, cells in _split(text, delimiter):
            yield line, cells
    except csv.Error as error:
        raise TableError(
            f"{name} is not well-formed CSV after line {line}: {error}",
            "Look for a quotation mark that is not closed.",
        ) from error


def _sample(name: str, text: str, delimiter: str) -> list[Record]:
    """The first records; those up to the first fault if there is one after the first record."""
    sample = list[Record]()
    try:
        sample.extend(islice(_records(name, text, delimiter), N_SNIFFED_RECORDS))
    except TableError:
        if not sample:
            raise
    return sample


def _rows(table: DelimitedText) -> Iterator[Record]:
    """Line and cells of every row below the column names; all must have a cell for each column."""
    records = _records(table.name, table.text, table.delimiter)
    width, least = len(table.columns), table.least_width
    rows = islice(records, int(table.has_header), None)
    for line, cells in rows:
        if len(cells) != width:
            if len(cells) < least or any(map(str.strip, cells[width:])):
                raise _ragged(table, (line, cells), rows)
            cells = [*cells[:width], *[""] * (width - len(cells))]
        yield line, cells


def _ragged(table: DelimitedText, first: Record, rest: Iterator[Record]) -> TableError:
    """The error for a row with too many or too few cells, which counts those after it."""
    width, (line, cells) = len(table.columns), first
    lines = [line]
    lines += [line for line, cells in rest if len(cells) != width]
    shown_lines = ", ".join(map(str, lines[:N_SHOWN_LINES]))
    count = f"; {len(lines)} lines differ, the first are {shown_lines}" if len(lines) > 1 else ""
    return TableError(
        f"{table.name}, line {line}: found {len(cells)} cells separated by {table.delimiter!r} "
        f"where the first line has {width}{count}",
        "Give every line the same number of cells and quote cells that contain the delimiter.",
    )


def parse(table: DelimitedText) -> Numbers:
    """Numbers of every row, by the standard library; a column with any text is a text column."""
    lines, values, text_columns = list[int](), array("d"), set[int]()
    missing_words = defaultdict[int, Counter[str]](Counter)
    for line, cells in _rows(table):
        for j in text_columns:
            cells[j] = "nan"  # known to be text, so that it does not send each row the slow way
        try:
            numbers = list(map(float, cells))
        except ValueError:
            numbers = []
        if not numbers or "_" in "".join(cells):
            found = list(map(number_or_none, cells))
            for j, value in enumerate(found):
                if value is None:
                    text_columns.add(j)
                elif value != value and cells[j].strip().lower() not in PLAIN_MISSING:
                    missing_words[j][cells[j].strip()] += 1
            numbers = [np.nan if value is None else value for value in found]
        values.extend(numbers)
        lines.append(line)
    rows = np.array(values, dtype=np.float64).reshape(len(lines), len(table.columns))
    values_by_column = np.ascontiguousarray(rows.T)
    return Numbers(lines, values_by_column, frozenset(text_columns), missing_words)


def _texts(
    table: DelimitedText, columns: Collection[int], n_rows: int | None = None
) -> dict[int, list[str]]:
    """Cells of some columns as they are written, without the space around them."""
    texts: dict[int, list[str]] = {j: [] for j in sorted(columns)}
    if not texts:
        return texts
    for _, cells in islice(_rows(table), n_rows):
        for j, column in texts.items():
            column.append(cells[j].strip())
    return texts


def _without_missing(cells: Iterable[str]) -> list[str | None]:
    # No marker of a missing value ends with a digit.
    return [cell if cell[-1:].isdigit() or not is_missing(cell) else None for cell in cells]


def parse_quickly(table: DelimitedText) -> Numbers | None:
    """The result of `parse`, by PyArrow; None if PyArrow is missing or might read it differently.

    The two agree if every cell is a finite number that PyArrow accepts, if no quotation mark,
    blank line or lone carriage return changes the lines, and if no cell is longer than the
    standard library allows.
    """
    content = table.text.encode()
    n_lines = _count_lines(content)
    if n_lines is None or '"' in table.text:
        return None
    try:
        values = _arrow_values(table, content)
    except (ImportError, ValueError, OSError):  # pyarrow.ArrowInvalid is a ValueError
        return None
    n_rows = n_lines - int(table.has_header)
    if values.shape != (len(table.columns), n_rows) or not np.isfinite(values).all():
        return None
    return Numbers(range(1 + int(table.has_header), n_lines + 1), values)


def _count_lines(content: bytes) -> int | None:
    """Number of lines, None if parsers may split them differently or if one is very long."""
    if content.count(b"\r") != content.count(b"\r\n"):
        return None
    ends = np.flatnonzero(np.frombuffer(content, dtype=np.uint8) == ord("\n"))
    ends = np.concatenate([[-1], ends, [len(content)] if content[-1:] != b"\n" else []])
    return len(ends) - 1 if np.diff(ends).max() < csv.field_size_limit() else None


def _arrow_values(table: DelimitedText, content: bytes) -> NDArray[np.float64]:
    """Columns (d, n) as PyArrow reads them; with no null values a missing cell is an error."""
    arrow: Any = importlib.import_module("pyarrow")
    arrow_csv: Any = importlib.import_module("pyarrow.csv")
    names = [str(j) for j in range(len(table.columns))]
    read = arrow_csv.read_csv(
        arrow.BufferReader(content),
        arrow_csv.ReadOptions(column_names=names, skip_rows=int(table.has_header)),
        arrow_csv.ParseOptions(delimiter=table.delimiter, quote_char=False),
        arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(names, arrow.float64()), null_values=[]
        ),
    )
    return np.array([column.to_numpy() for column in read.columns], dtype=np.float64)
