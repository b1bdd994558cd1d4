"""What the rows of a sheet or a text are: names, data, or titles, units, sums and remarks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import chain, takewhile
from typing import Any, Literal, TypeAlias

from gammagmm._support.dates import date_form
from gammagmm._support.text import listed
from gammagmm.errors import Note, TableError
from gammagmm.readers.numbers import has_one_number, is_row, looks_like_number
from gammagmm.readers.raw_table import is_missing, numbered_names
from gammagmm.readers.source import Asked
from gammagmm.readers.sums import figure_rows

__all__ = ["Layout", "find_layout", "layout_notes", "renamed_repeats"]

Role: TypeAlias = Literal[
    "asked", "title", "headings", "units", "names again", "total", "remark", "other table"
]
Row: TypeAlias = Sequence[Any]
"""Cells of a row: texts without space around them, "" or None where blank, or numbers and dates."""

MAX_WIDTH = 1_000
"""Columns that decide what the rows of a wider table are."""
MAX_HEAD = 40
"""Rows from the first one among which the names are looked for."""
MOST = 0.6
"""Share of the cells of a column that are numbers or dates where the column holds such values."""
N_SHAPES = 0.2
"""Share of the cells of a column that have the shape of a cell that belongs there."""
N_FOLLOWING, FITTING = 20, 0.75
"""Rows that show whether a table goes on, and the share of their cells that fits then."""
MAX_SHORT = 5
"""Most lines at the end that are too short for data, if they are no data by their values."""
N_SHOWN = 3
FRACTION = re.compile(r"\d[.,]\d")
MIN_LABELLED = 10
"""Fewest rows by which it is found that the last one has sums, or is too short for data."""
MIN_ROWS = 5
"""Fewest rows of data by which it is found that there are no names."""
MAX_BESIDE = 20
"""Most rows of a table beside another one, which has at least twice as many."""
RULE = re.compile(r"[-=_:+]{3,}")
YEAR = re.compile(r"(?:19|20)\d\d")


@dataclass(frozen=True)
class Layout:
    """What the rows of a table are, by their places from 0.

    Attributes
    ----------
    names : tuple of str
        Names of the columns; empty for a column without one.
    header : int or None
        The row that has them; None if the first row is data.
    body : tuple of int
        The rows of data.
    others : dict of int to str
        What each other row is that is not blank.
    beside : set of int
        The columns of small tables to the left or the right of this one.
    """

    names: tuple[str, ...]
    header: int | None
    body: tuple[int, ...]
    others: dict[int, Role] = field(default_factory=dict)
    beside: frozenset[int] = frozenset()


def find_layout(
    rows: Sequence[Row], numbers: Sequence[int], asked: Asked, *, is_whole: bool = True
) -> Layout | None:
    """What the rows are, which have these `numbers` in the file; None if no names are found.

    If they are not all rows of the file, or the line of the names is asked for, tables beside the
    largest one are not looked for.
    """
    skipped = {i for i, number in enumerate(numbers) if number in asked.skip}
    finder = _Finder(rows, numbers, skipped, is_whole and asked.header is None)
    header = None
    if asked.header is not None:
        header = next((i for i, n in enumerate(numbers) if n == asked.header), None)
        if header is None or not finder.filled[header]:
            raise TableError(
                f"line {asked.header} has no names of columns", "Give the line of the names."
            )
    return finder.layout(header)


class _Finder:
    """Figures of the rows that decide what each of them is."""

    def __init__(
        self, rows: Sequence[Row], numbers: Sequence[int], skipped: set[int], is_whole: bool
    ) -> None:
        self.numbers, self.skipped = numbers, skipped
        blank: list[Any] = []
        self.whole = [blank if i in self.skipped else list(row) for i, row in enumerate(rows)]
        filled = [
            [j for j, cell in enumerate(row[:MAX_WIDTH]) if not _is_blank(cell)]
            for row in self.whole
        ]
        self.beside = _tables_beside(filled) if is_whole else frozenset[int]()
        self.filled = [[j for j in own if j not in self.beside] for own in filled]
        for row in self.whole if self.beside else []:
            row[:] = ["" if j in self.beside else cell for j, cell in enumerate(row)]
        self.rows = [row[:MAX_WIDTH] for row in self.whole]
        counts = sorted(len(own) for own in self.filled if len(own) > 1)
        self.usual = counts[len(counts) // 2] if counts else 0
        wide = [i for i, own in enumerate(self.filled) if 2 * len(own) >= self.usual > 0]
        self.n_cells = Counter(j for i in wide for j in self.filled[i])
        held = Counter(j for i in wide for j in self.filled[i] if _is_value(self.rows[i][j]))
        self.values = {
            j for j, n in held.items() if n >= MOST * self.n_cells[j] and 10 * n >= len(wide)
        }
        self.n_wide = len(wide)
        widths = Counter(len(self.whole[i]) for i in wide)
        is_known = self.n_wide >= MIN_LABELLED
        self.width = max(widths, key=lambda width: widths[width]) if is_known else 0
        pairs = ((i, j) for i in wide[:MAX_HEAD] for j in self.values.intersection(self.filled[i]))
        self.dates = {j for i, j in pairs if _is_day(self.rows[i][j])}

    def layout(self, header: int | None) -> Layout | None:
        """The layout; `header` is the row of the names where the user gave it."""
        head = self._head() if header is None else (header, self._body_after(header))
        if head is None:
            return self._without_names() if header is None else None
        names_row, start = head
        others: dict[int, Role] = dict.fromkeys(self.skipped, "asked")
        others |= dict.fromkeys(self._present(range(names_row)), "title")
        groups = self._groups(names_row)
        others |= dict.fromkeys(groups, "headings")
        others |= dict.fromkeys(self._present(range(names_row + 1, start)), "units")
        below = self._present(range(start, len(self.rows)))
        others |= self._below(below, [*groups, names_row, *range(names_row + 1, start)])
        body = tuple(i for i in below if i not in others)
        width = max(len(self.whole[i]) for i in (names_row, *body))
        names = self._names(names_row, groups, width)
        return Layout(names, names_row, body, others, self.beside)

    def _without_names(self) -> Layout | None:
        """The layout of rows that all are data, of which the first has texts and numbers.

        It is found by a number that no name has: one with a fraction.
        """
        present = self._present(range(len(self.rows)))
        if len(present) < MIN_ROWS or not all(map(self._is_data, present[:MIN_ROWS])):
            return None
        first = [_as_text(cell) for cell in self._cells(present[0])]
        if is_row(first) or not any(FRACTION.search(cell) for cell in first):
            return None
        others: dict[int, Role] = dict.fromkeys(self.skipped, "asked")
        others |= self._below(present, [])
        body = tuple(i for i in present if i not in others)
        names = numbered_names(max(len(self.whole[i]) for i in body))
        return Layout(names, None, body, others, self.beside)

    def _present(self, places: Iterable[int]) -> list[int]:
        return [i for i in places if self.filled[i]]

    def _head(self) -> tuple[int, int] | None:
        """The row of the names, and the first row of data."""
        head = self._present(range(len(self.rows)))[:MAX_HEAD]
        for k, i in enumerate(head):
            if not self._are_names(i):
                continue
            end = next((m for m in range(k + 1, len(head)) if self._is_data(head[m])), None)
            if end is None or end - k > 4:
                return None
            above = [m for m in head[k:end] if self._are_names(m)]
            # Headings of groups repeat, or are fewer than the names below them.
            most = max(map(self._n_names, above))
            best = [m for m in above if self._n_names(m) == most]
            names = best[0 if most == len(self.filled[best[0]]) else -1]
            units = [m for m in head[k:end] if m > names]
            start = next((m for m in units if self._is_row_of_data(m)), head[end])
            return names, start
        return None

    def _n_names(self, i: int) -> int:
        return len({*map(str, self._cells(i))})

    def _is_row_of_data(self, i: int) -> bool:
        """Whether a row above the first complete one is data: it has a number, or only labels."""
        own = [j for j in self.filled[i] if j in self.values]
        if own:
            return any(_is_value(self.rows[i][j]) for j in own)
        return len(self.filled[i]) > 1 or self._belongs(i, self.filled[i][0])

    def _body_after(self, header: int) -> int:
        below = self._present(range(header + 1, len(self.rows)))
        return next((i for i in below if self._is_data(i)), below[0] if below else len(self.rows))

    def _cells(self, i: int) -> list[Any]:
        return [self.rows[i][j] for j in self.filled[i]]

    def _are_names(self, i: int) -> bool:
        """Whether a row has enough texts to name the columns, and no values but years."""
        cells = self._cells(i)
        if len(cells) < max(2, 0.75 * self.usual):
            return False
        texts = [cell for cell in cells if isinstance(cell, str) and not _is_value(cell)]
        years = [int(_as_text(cell)) for cell in cells if _is_year(cell)]
        are_rising = years == list(range(years[0], years[0] + len(cells))) if years else False
        return (bool(texts) or are_rising) and len(texts) + len(years) == len(cells)

    def _is_data(self, i: int) -> bool:
        """Whether at least half of the cells in columns of values are values."""
        cells = [self.rows[i][j] for j in self.filled[i] if j in self.values]
        n_values = sum(map(_is_value, cells))
        return 2 * len(self.filled[i]) >= self.usual and n_values > 0 and 2 * n_values >= len(cells)

    def _groups(self, header: int) -> list[int]:
        """The rows of headings directly above the names, from the top, which have no values."""
        found = list[int]()
        while header - len(found) > 0 and self._are_headings(header - len(found) - 1, header):
            found.insert(0, header - len(found) - 1)
        return found

    def _are_headings(self, i: int, header: int) -> bool:
        """Whether a row has headings of the groups of columns."""
        if len(self.filled[i]) < 2 or any(_is_value(c) and not _is_year(c) for c in self._cells(i)):
            return False
        return 2 * len(self.filled[i]) >= len(self.filled[header]) or self._spans(i, header)

    def _spans(self, i: int, header: int) -> bool:
        """Whether headings stand over names, and not only at the left, as a title does."""
        return len(self.filled[header]) > 3 and max(self.filled[i]) > 1

    def _names(self, header: int, groups: list[int], width: int) -> tuple[str, ...]:
        """The names; with the headings of their groups where they would be the same."""
        row = [*map(_as_text, self.whole[header]), *[""] * (width - len(self.whole[header]))]
        counts = Counter(name for name in row if name)
        for i in reversed(groups):
            heads, last = list[str](), ""
            above = [*map(_as_text, self.whole[i]), *[""] * width]
            for name in above[:width]:
                last = name or last
                heads.append(last)
            row = [
                head if not name and above[j] else f"{head} {name}" if counts[name] > 1 else name
                for j, (name, head) in enumerate(zip(row, heads, strict=True))
            ]
            counts = Counter(name for name in row if name)
        return tuple(row)

    def _below(self, below: list[int], head: list[int]) -> dict[int, Role]:
        """What rows below the names are that are no data."""
        found: dict[int, Role] = {}
        texts = [self._cells(i) for i in head if self.filled[i]]
        figures = self._figures(below)
        short = self._short_end([i for i in below if i not in figures])
        rows = (i for i in below if self._is_data(i) and i not in figures | short)
        last = max(rows, default=-1)
        for place, i in enumerate(below):
            if any(self._is_same(self._cells(i), own) for own in texts):
                found[i] = "names again"
            elif i in figures:
                found[i] = "total"
            elif i in short or self._is_remark(i, i > last) or self._is_rule(i):
                found[i] = "remark"
            elif self._begins_table(below, place):
                return found | dict.fromkeys(below[place:], "other table")
        return found

    def _short_end(self, below: list[int]) -> set[int]:
        """The last line if it is too short for data, and the few above it of another kind."""
        short = [*takewhile(lambda i: len(self.whole[i]) < self.width, reversed(below))]
        other = [*takewhile(lambda i: not self._is_like_data(i), short)]
        if len(other) < len(short) and len(short) > 1:
            return set()
        return set(short) if len(short) <= MAX_SHORT else set()

    def _is_like_data(self, i: int) -> bool:
        """Whether most cells of the columns of values are values."""
        own = [j for j in self.filled[i] if j in self.values]
        n_values = sum(_is_value(self.rows[i][j]) for j in own)
        return n_values > 0 and 2 * n_values > len(own)

    def _is_same(self, cells: list[Any], names: list[Any]) -> bool:
        return len(cells) > 1 and cells == names

    def _figures(self, below: list[int]) -> set[int]:
        """The rows of sums and of other figures."""
        keys = {j for j, n in self.n_cells.items() if n >= 0.9 * self.n_wide}
        labels = self.dates | (self.n_cells.keys() - self.values)
        nameless = self._nameless(below, keys & labels)
        columns = sorted(self.values - self.dates)
        rows = [self.rows[i] for i in below]
        found = {below[k] for k in figure_rows(rows, keys, labels, columns, nameless)}
        return found | {i for i in below[-1:] if self._lacks_labels(i)}

    def _nameless(self, below: list[int], labels: set[int]) -> list[int]:
        """Places of the rows of numbers without a text or a date, where the others have several."""
        if len(labels) < 2 or self.n_wide < MIN_LABELLED:
            return []
        filled = [set(self.filled[i]) for i in below]
        return [k for k, own in enumerate(filled) if own & self.values and not own & labels]

    def _is_rule(self, i: int) -> bool:
        """Whether a row is a line of dashes."""
        return all(isinstance(c, str) and RULE.fullmatch(c.strip()) for c in self._cells(i))

    def _lacks_labels(self, i: int) -> bool:
        """Whether a row of numbers has no text and no date, and all others have them."""
        labels = self.dates | (self.n_cells.keys() - self.values)
        usual = {j for j in labels if self.n_cells[j] >= self.n_wide - 1}
        own = set(self.filled[i])
        is_long = self.n_wide >= MIN_LABELLED
        return is_long and len(usual) > 1 and bool(own & self.values) and not usual & own

    def _is_remark(self, i: int, is_last: bool) -> bool:
        """Whether a row has a text alone, or is below the data and has few cells."""
        own = self.filled[i]
        if any(_is_value(self.rows[i][j]) for j in own if j in self.values):
            return False
        if is_last and 2 * len(own) <= self.usual + 1 and len(own) < self.usual:
            return not self._belongs(i, own[0])
        return len(own) == 1 and self.usual > 2 and not self._belongs(i, own[0])

    def _belongs(self, i: int, j: int) -> bool:
        """Whether the cell has the shape of the other cells of its column, as an id has."""
        counts, shape = self._shapes(j), _shape(self.rows[i][j])
        return counts[shape] >= N_SHAPES * counts.total() and any(c.isdigit() for c in shape)

    @cache  # noqa: B019
    def _shapes(self, j: int) -> Counter[str]:
        return Counter(
            _shape(row[j]) for row in self.rows if len(row) > j and not _is_blank(row[j])
        )

    def _begins_table(self, below: list[int], place: int) -> bool:
        """Whether names of another table stand here: after a blank row, and above its data."""
        i = below[place]
        if place == 0 or not self._is_gap_before(i):
            return False
        cells = self._cells(i)
        are_texts = len(cells) > 1 and not any(map(_is_value, cells))
        has_values = any(j in self.values for j in self.filled[i])
        return are_texts and has_values and not self._goes_on(below[:place], below[place + 1 :])

    def _goes_on(self, above: list[int], below: list[int]) -> bool:
        """Whether most of the next rows have the columns of those above, and values in the same."""
        above, below = [[i for i in rows if self._is_data(i)] for rows in (above, below)]
        kinds = Counter(key for i in above for key in self._kinds(i))
        usual = {key for key, n in kinds.items() if n >= MOST * len(above)}
        following = [self._kinds(i) for i in below[:N_FOLLOWING]]
        fitting = [k for k in following if len(k & usual) >= FITTING * max(len(k), len(usual))]
        return 2 * len(fitting) > len(following)

    def _kinds(self, i: int) -> set[tuple[int, bool]]:
        """The columns of a row, and whether they hold values there."""
        return {(j, _is_value(self.rows[i][j])) for j in self.filled[i]}

    def _is_gap_before(self, i: int) -> bool:
        """Whether a blank row stands above, which a text may have lost."""
        n_lines = 1 + sum(str(cell).count("\n") for cell in self.rows[i - 1])
        is_lost = self.numbers[i] - self.numbers[i - 1] > n_lines
        return is_lost or (not self.filled[i - 1] and i - 1 not in self.skipped)


def _tables_beside(filled: Sequence[Sequence[int]]) -> frozenset[int]:
    """The columns of small tables that a blank column separates from the largest one.

    `filled` has the columns with a cell of each row. A small table has at least two columns, and
    two cells in each of its rows, which follow one another: labels, remarks and columns with few
    values do not look so.
    """
    n_cells = Counter(chain.from_iterable(filled))
    blocks = list[list[int]]()
    for j in sorted(n_cells):
        if blocks and j == blocks[-1][-1] + 1:
            blocks[-1].append(j)
        else:
            blocks.append([j])
    n_rows = max(n_cells.values(), default=0)
    found = set[int]()
    for own in map(set, blocks if len(blocks) > 1 else []):
        if len(own) > 1 and max(n_cells[j] for j in own) <= min(MAX_BESIDE, n_rows // 2):
            sizes = {i: len(own.intersection(places)) for i, places in enumerate(filled)}
            rows = [i for i, size in sizes.items() if size]
            is_closed = rows[-1] - rows[0] == len(rows) - 1 > 0
            found |= own if is_closed and all(sizes[i] > 1 for i in rows) else set()
    return frozenset(found)


def _is_blank(cell: Any) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())


def _as_text(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell).strip()


def _is_value(cell: Any) -> bool:
    """Whether a cell holds a number or a date, or a word for a missing one."""
    return _is_value_text(cell) if isinstance(cell, str) else not isinstance(cell, bool)


@lru_cache(maxsize=100_000)
def _is_value_text(cell: str) -> bool:
    return looks_like_number(cell) or has_one_number(cell) or is_missing(cell) or is_date(cell)


def _is_day(cell: Any) -> bool:
    return is_date(cell) if isinstance(cell, str) else not isinstance(cell, int | float)


def is_date(cell: str) -> bool:
    """Whether a text is a date in any form."""
    return date_form([cell]) is not None


def _is_year(cell: Any) -> bool:
    return YEAR.fullmatch(_as_text(cell)) is not None


def _shape(cell: Any) -> str:
    """The text with 9 for each run of digits and a for each run of letters."""
    return re.sub(r"[^\W\d_]+", "a", re.sub(r"\d+", "9", _as_text(cell)))


def renamed_repeats(names: Sequence[str]) -> tuple[tuple[str, ...], list[Note]]:
    """The names, of which a repeated one gets a number, and notes about these."""
    taken, counts = set(names), Counter[str]()
    found, notes = list[str](), list[Note]()
    for name in names:
        counts[name] += 1
        new = name
        while name and counts[name] > 1 and new in taken:
            new = f"{name} {counts[name]}"
            counts[name] += new in taken
        if new != name:
            taken.add(new)
            notes.append(Note.of("tables.renamed", new, name=name))
        found.append(new)
    return tuple(found), notes


def layout_notes(
    source: str, layout: Layout, rows: Sequence[Row], numbers: Sequence[int], unit: str
) -> list[Note]:
    """A note for each kind of rows that are left out, and for tables beside this one."""
    notes = []
    if layout.beside:
        cells = [[row[j] for j in sorted(layout.beside) if j < len(row)] for row in rows]
        places = [i for i, own in enumerate(cells) if not all(map(_is_blank, own))]
        first = (next(c for c in cells[i] if not _is_blank(c)) for i in places[:N_SHOWN])
        values = {"n_columns": len(layout.beside), "lines": _ranges([numbers[i] for i in places])}
        texts = listed(dict.fromkeys(map(_as_text, first)))
        notes.append(Note.of("tables.beside", source, unit=unit, texts=texts, **values))
    kinds = dict.fromkeys(layout.others[i] for i in sorted(layout.others))
    for role in kinds:
        places = [i for i in sorted(layout.others) if layout.others[i] == role]
        first = (next((c for c in rows[i] if not _is_blank(c)), "") for i in places[:N_SHOWN])
        values = {"n_rows": len(places), "lines": _ranges([numbers[i] for i in places])}
        texts = listed(dict.fromkeys(map(_as_text, first)))
        notes.append(Note.of("tables.rows", source, kind=role, unit=unit, texts=texts, **values))
    return notes


def _ranges(numbers: Sequence[int]) -> str:
    """Numbers in words: "1 to 3, 7"; the first ones if they are many."""
    ends: list[list[int]] = []
    for number in numbers:
        if ends and number == ends[-1][1] + 1:
            ends[-1][1] = number
        else:
            ends.append([number, number])
    parts = [str(a) if a == b else f"{a} to {b}" for a, b in ends[: 2 * N_SHOWN]]
    return ", ".join(parts) + (", ..." if len(ends) > 2 * N_SHOWN else "")
