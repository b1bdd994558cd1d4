"""Raw table and the user's choices -> finite numbers, row ids, true labels, and notes."""

from __future__ import annotations

import difflib
import shlex
from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gammagmm.errors import Note, TableError
from gammagmm.readers.raw_table import (
    MAX_SHOWN_CHARACTERS,
    RawTable,
    check_names,
    is_number,
    listed,
    shown,
    written,
)

__all__ = ["Choices", "Prepared", "prepare"]

ALLOWED = {"missing": ("error", "drop", "impute"), "categories": ("error", "encode")}
MAX_CATEGORIES = 20
# The words of a truth column in lower case -> 1 for an anomaly. One of these must fit all cells.
VOCABULARIES = (
    {"0": 0, "1": 1},
    {"1": 0, "-1": 1},  # scikit-learn
    {"false": 0, "true": 1},
    {"no": 0, "yes": 1},
    {"n": 0, "o": 1},  # o is an outlier
    {"normal": 0, "anomaly": 1},
    {"inlier": 0, "outlier": 1},
)

Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Choices:
    """The user's decisions about a table.

    Attributes
    ----------
    id : str or None
        Column that names the rows; None names them by their numbers.
    drop : tuple of str
        Columns to leave out.
    truth : str or None
        Column that says which rows are anomalies; it is not part of the data.
    missing : {"error", "drop", "impute"}
        Refuse missing values, leave out their rows, or fill in the column's median.
    categories : {"error", "encode"}
        Refuse columns of text, or turn them into columns of 0 and 1.

    Examples
    --------
    >>> Choices(id="name", missing="drop").categories
    'error'
    """

    id: str | None = None
    drop: tuple[str, ...] = ()
    truth: str | None = None
    missing: str = "error"
    categories: str = "error"

    def __post_init__(self) -> None:
        for name, allowed in ALLOWED.items():
            value = getattr(self, name)
            if value not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {value!r}.")
        if not isinstance(self.drop, tuple):
            raise TypeError(f"drop must be a tuple of column names, got {self.drop!r}.")


@dataclass(frozen=True, eq=False)
class Prepared:
    """Numbers for the detectors, and the ids and labels of their rows.

    Attributes
    ----------
    values : ndarray of shape (n, d)
        Finite float64.
    columns : tuple of str
        Names of the d columns, all different.
    ids : tuple of str
        The cell of the id column of each row, "" where it is missing, or the 1-based number of
        the row in the file.
    rows : ndarray of shape (n,)
        Index of each row among the rows of the file, from 0.
    truth : ndarray of shape (n,) or None
        1 for an anomaly, 0 for a normal row; None without a truth column.
    notes : tuple of Note
        Everything that was left out, filled in or encoded.
    """

    values: NDArray[np.float64]
    columns: tuple[str, ...]
    ids: tuple[str, ...]
    rows: Rows
    truth: NDArray[np.int64] | None
    notes: tuple[Note, ...]

    def __repr__(self) -> str:
        n_rows, n_columns = self.values.shape
        return f"Prepared({n_rows} rows, {n_columns} columns, {len(self.notes)} notes)"


def prepare(raw: RawTable, choices: Choices) -> Prepared:
    r"""Finite numbers of a raw table, according to the user's choices.

    Parameters
    ----------
    raw : RawTable
        The result of `registry.read_raw`.
    choices : Choices
        How to treat ids, labels, missing values and text.

    Returns
    -------
    Prepared
        At least two rows and one column.

    Raises
    ------
    TableError
        The choices do not give such a table. The message says why, where, and which option of
        the command line helps.

    Examples
    --------
    >>> from gammagmm.readers.csv import read_delimited
    >>> from gammagmm.readers.source import Source
    >>> raw = read_delimited(Source("f.csv", ".csv", b"name,a,c\nu,1,x\nv,,y\nw,3,z\n"))
    >>> prepared = prepare(raw, Choices(id="name", missing="impute", categories="encode"))
    >>> prepared.columns, prepared.ids, prepared.values[1].tolist()
    (('a', 'c=x', 'c=y', 'c=z'), ('u', 'v', 'w'), [2.0, 0.0, 1.0, 0.0])
    """
    features = _features(raw, choices)
    if raw.n_rows < 2:
        raise TableError(f"{raw.source} has {_count(raw.n_rows, 'row')}", "Give at least two rows.")
    truth = None if choices.truth is None else _truth(raw, choices.truth)
    ids = _ids(raw, choices.id)
    _refuse_infinite(raw, features)
    if choices.categories == "error":
        _refuse_text(raw, features)
    if choices.missing == "error":
        _refuse_missing(raw, features)
    notes = list[Note]()
    features = _features_with_values(raw, features, notes)
    rows = _rows_to_keep(raw, features, choices, notes)
    names, arrays = list[str](), list[NDArray[np.float64]]()
    for j in features:
        columns = (_encoded if raw.is_text(j) else _imputed)(raw, j, rows, notes)
        names += columns.keys()
        arrays += columns.values()
    if not names:
        raise TableError(
            f"{raw.source} has no usable column: in every column all values are missing or the "
            "same text",
            "Give at least one column of numbers.",
        )
    check_names(f"{raw.source}, with its texts encoded", tuple(names))
    return Prepared(
        np.column_stack(arrays),
        tuple(names),
        tuple(ids[row] for row in rows),
        rows,
        None if truth is None else truth[rows],
        tuple(notes),
    )


def _features(raw: RawTable, choices: Choices) -> list[int]:
    """Columns that are data: no option of the command line names them."""
    named = [("--id", choices.id), ("--truth", choices.truth)]
    named += [("--drop", name) for name in dict.fromkeys(choices.drop)]
    taken: dict[str, str] = {}
    for flag, name in named:
        if name is None:
            continue
        if name not in raw.columns:
            lowered = {column.lower(): column for column in raw.columns}
            close = [lowered[word] for word in difflib.get_close_matches(name.lower(), lowered)]
            similar = f"; similar names: {listed(close)}" if close else ""
            raise TableError(
                f"{raw.source} has no column {shown(name)}{similar}",
                f"Choose one of: {listed(raw.columns)}.",
            )
        if name in taken:
            raise TableError(
                f"Column {shown(name)} of {raw.source} is given by {taken[name]} and by {flag}",
                "Give it once.",
            )
        taken[name] = flag
    features = [j for j, name in enumerate(raw.columns) if name not in taken]
    if not features:
        flags = ", ".join(dict.fromkeys(taken.values()))
        raise TableError(
            f"{raw.source} has no column left after {flags}", "Keep at least one column of numbers."
        )
    return features


def _truth(raw: RawTable, name: str) -> NDArray[np.int64]:
    """1 for an anomaly, 0 for a normal row; cells with an ambiguous meaning are refused."""
    column = raw.columns.index(name)
    gaps = np.flatnonzero(raw.is_gap(column))
    if len(gaps):
        raise TableError(
            f"{raw.source} contains {_count(len(gaps), 'missing value')} in truth column "
            f"{shown(name)}; the first is in {raw.place(gaps[0])}",
            "Fill them in, or remove those rows.",
        )
    data = raw.data[column].tolist()
    texts = data if raw.is_text(column) else written(data)
    cells = [str(text).strip().lower() for text in texts]
    found = set(cells)
    meanings = [words for words in VOCABULARIES if found <= words.keys()]
    if len(meanings) == 1:
        return np.array([meanings[0][cell] for cell in cells], dtype=np.int64)
    where = f"{raw.source}, truth column {shown(name)}"
    if meanings:
        raise TableError(
            f"{where} contains only 1, which is ambiguous: it means anomaly in labels 0 and 1, but "
            "normal in labels 1 and -1",
            "Leave the column out with --drop, or give one that contains both kinds.",
        )
    pairs = ", ".join("/".join(words) for words in VOCABULARIES)
    raise TableError(
        f"{where} contains {listed(dict.fromkeys(cells))}",
        f"Write normal rows and anomalies as one of {pairs}.",
    )


def _ids(raw: RawTable, name: str | None) -> list[str]:
    """Name of every row of the file: the cell of column `name`, or the number of the row."""
    if name is None:
        return [str(row) for row in range(1, raw.n_rows + 1)]
    return [cell or "" for cell in raw.cells(raw.columns.index(name))]


def _refuse_infinite(raw: RawTable, features: list[int]) -> None:
    for j in features:
        if raw.is_text(j):
            continue
        rows = np.flatnonzero(np.isinf(raw.data[j]))
        if len(rows):
            name = raw.columns[j]
            raise TableError(
                f"{raw.source} contains {_count(len(rows), 'infinite value')} in column "
                f"{shown(name)}; the first is in {raw.place(rows[0])}",
                f"Correct them, or leave the column out with {_option('--drop', name)}.",
            )


def _refuse_text(raw: RawTable, features: list[int]) -> None:
    for j in features:
        if not raw.is_text(j):
            continue
        name, cells = raw.columns[j], raw.data[j].tolist()
        present = [(row, cell) for row, cell in enumerate(cells) if cell is not None]
        # A column of a binary file may be text though all its cells look like numbers.
        row, cell = next((pair for pair in present if not is_number(pair[1])), present[0])
        is_decimal = "," in cell and is_number(cell.replace(",", ".", 1))
        hint = "Write decimals with a point, or use" if is_decimal else "Use"
        raise TableError(
            f"{raw.source}, column {shown(name)}, {raw.place(row)}: found {shown(cell)}, which is "
            "not a number",
            f"{hint} --categories encode or {_option('--drop', name)}.",
        )


def _refuse_missing(raw: RawTable, features: list[int]) -> None:
    gaps = np.column_stack([raw.is_gap(j) for j in features])
    if gaps.any():
        row, j = np.argwhere(gaps)[0]
        name = raw.columns[features[j]]
        raise TableError(
            f"{raw.source} contains {_count(int(gaps.sum()), 'missing value')}; the first is in "
            f"column {shown(name)}, {raw.place(row)}",
            f"Use --missing drop, --missing impute or {_option('--drop', name)}.",
        )


def _features_with_values(raw: RawTable, features: list[int], notes: list[Note]) -> list[int]:
    """The columns with at least one value."""
    kept = []
    for j in features:
        if raw.is_gap(j).all():
            notes.append(_note(raw.columns[j], "left out: all its values are missing"))
        else:
            kept.append(j)
    return kept


def _rows_to_keep(raw: RawTable, features: list[int], choices: Choices, notes: list[Note]) -> Rows:
    """Indices of all rows, or of those without missing values if the others are dropped."""
    is_kept = np.ones(raw.n_rows, dtype=bool)
    if choices.missing == "drop":
        for j in features:
            is_kept &= ~raw.is_gap(j)
    rows = np.flatnonzero(is_kept)
    if len(rows) < 2:
        raise TableError(
            f"{raw.source} has {_count(len(rows), 'row')} without missing values, and at least two "
            "rows are needed",
            "Use --missing impute, or --drop the columns with the most missing values.",
        )
    n_dropped = raw.n_rows - len(rows)
    if n_dropped:
        dropped = f"dropped {n_dropped} of {_count(raw.n_rows, 'row')}"
        message = f"{dropped} because they have missing values"
        notes.append(_note(raw.source, message))
    return rows


def _imputed(
    raw: RawTable, j: int, rows: Rows, notes: list[Note]
) -> dict[str, NDArray[np.float64]]:
    """A column of numbers; missing values are filled with the median of the others."""
    name, values = raw.columns[j], raw.data[j][rows]
    gaps = np.isnan(values)
    if not gaps.any():
        return {name: values}
    present = values[~gaps]
    with np.errstate(over="ignore"):
        median = float(np.median(present))
    if not np.isfinite(median):  # the sum of the two middle values overflows, their mean does not
        median = 2.0 * float(np.median(present / 2.0))
    filled = f"{_count(int(gaps.sum()), 'missing value')} filled with the median {median:.6g}"
    notes.append(_note(name, filled))
    return {name: np.where(gaps, median, values)}


def _encoded(
    raw: RawTable, j: int, rows: Rows, notes: list[Note]
) -> dict[str, NDArray[np.float64]]:
    """Columns of 0 and 1, one for each text of a column; two texts need only one column."""
    name, cells, gaps = raw.columns[j], raw.data[j][rows], raw.is_gap(j)[rows]
    counts = Counter(cell for cell in cells if cell is not None)
    texts = sorted(counts)
    if len(texts) > MAX_CATEGORIES:
        raise TableError(
            f"{raw.source}, column {shown(name)} contains {len(texts)} different texts, and at "
            f"most {MAX_CATEGORIES} can be encoded",
            f"Use {_option('--drop', name)}, or {_option('--id', name)} if it names the rows.",
        )
    if gaps.any():
        usual = max(texts, key=lambda text: counts[text])
        cells = np.where(gaps, usual, cells)
        filled = f"{_count(int(gaps.sum()), 'missing value')} filled with the most frequent text"
        notes.append(_note(name, f"{filled} {shown(usual)}"))
    if len(texts) == 1:
        notes.append(_note(name, f"left out: its only text is {shown(texts[0])}"))
        return {}
    encoded = texts[1:] if len(texts) == 2 else texts
    made = f"encoded as {_count(len(encoded), 'column')} of 0 and 1 for its texts {listed(texts)}"
    notes.append(_note(name, made))
    return {f"{name}={text}": (cells == text).astype(np.float64) for text in encoded}


def _note(subject: str, message: str) -> Note:
    return Note("tables", subject, message)


def _count(n: int, thing: str) -> str:
    """A number with its noun: "1 row", "2 rows"."""
    return f"{n} {thing}" if n == 1 else f"{n} {thing}s"


def _option(flag: str, name: str) -> str:
    """An option as the user can type it; NAME stands for a name that is hard to type."""
    is_short = name.isprintable() and len(name) <= MAX_SHOWN_CHARACTERS
    return f"{flag} {shlex.quote(name) if is_short else 'NAME'}"
