"""Raw table and the user's choices -> finite numbers, row ids, truth, and what was done."""

from __future__ import annotations

import difflib
import shlex
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gammagmm.errors import Note, TableError
from gammagmm.readers.raw_table import (
    MAX_SHOWN_CHARACTERS,
    RawTable,
    check_names,
    describe_text,
    is_number,
    shown,
    written,
)

__all__ = [
    "Choices",
    "Prepared",
    "count",
    "features_of",
    "ids_of",
    "listed",
    "option",
    "prepare",
    "truth_of",
]

ALLOWED = {"missing": ("error", "drop", "impute"), "categories": ("error", "encode")}
MAX_LISTED = 20
# What a truth column may hold, in lower case -> 1 for an anomaly. One of these fits as a whole.
VOCABULARIES = (
    {"0": 0, "1": 1},
    {"1": 0, "-1": 1},  # scikit-learn
    {"false": 0, "true": 1},
    {"no": 0, "yes": 1},
    {"n": 0, "o": 1},  # o is an outlier
    {"normal": 0, "anomaly": 1},
    {"inlier": 0, "outlier": 1},
)


@dataclass(frozen=True)
class Choices:
    """What the user decides about a table.

    Attributes
    ----------
    id : str or None
        Column that names the rows; None names them by their numbers.
    drop : tuple of str
        Columns to leave out.
    truth : str or None
        Column that says which rows are anomalies; it is kept out of the data.
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


def features_of(raw: RawTable, choices: Choices) -> list[int]:
    """Columns that no choice takes out of the data."""
    roles = [("--id", choices.id), ("--truth", choices.truth)]
    roles += [("--drop", name) for name in dict.fromkeys(choices.drop)]
    taken: dict[str, str] = {}
    for role, name in roles:
        if name is None:
            continue
        _check_known(raw, name)
        if name in taken:
            raise TableError(
                f"Column {shown(name)} of {raw.source} is given by {taken[name]} and by {role}. "
                "Give it once."
            )
        taken[name] = role
    features = [j for j, name in enumerate(raw.columns) if name not in taken]
    if not features:
        raise TableError(
            f"{raw.source} has no column left after {', '.join(dict.fromkeys(taken.values()))}. "
            "Keep at least one column of numbers."
        )
    return features


def _check_known(raw: RawTable, name: str) -> None:
    if name in raw.columns:
        return
    lowered = {column.lower(): column for column in raw.columns}
    close = [lowered[word] for word in difflib.get_close_matches(name.lower(), lowered)]
    guess = f"; close to it: {listed(close)}" if close else ""
    raise TableError(
        f"{raw.source} has no column {shown(name)}{guess}. Choose among: {listed(raw.columns)}."
    )


def listed(names: Iterable[str]) -> str:
    """Names in quotes; of many the first."""
    all_names = list(names)
    more = len(all_names) - MAX_LISTED
    first = ", ".join(map(shown, all_names[:MAX_LISTED]))
    return f"{first} and {more} more" if more > 0 else first


def count(n: int, thing: str) -> str:
    """A number of things: "1 row", "2 rows"."""
    return f"{n} {thing}" if n == 1 else f"{n} {thing}s"


def option(flag: str, name: str) -> str:
    """An option as it can be typed; a name that cannot be typed well stands as NAME."""
    is_short = name.isprintable() and len(name) <= MAX_SHOWN_CHARACTERS
    return f"{flag} {shlex.quote(name) if is_short else 'NAME'}"


def ids_of(raw: RawTable, name: str | None) -> list[str]:
    """Name of every row of the file: the cell of column `name`, or the number of the row."""
    if name is None:
        return [str(row) for row in range(1, raw.n_rows + 1)]
    return [cell or "" for cell in raw.cells(raw.columns.index(name))]


def truth_of(raw: RawTable, name: str) -> NDArray[np.int64]:
    """1 for an anomaly, 0 for a normal row; what the cells mean must be beyond doubt."""
    where, column = f"{raw.source}, truth column {shown(name)}", raw.columns.index(name)
    gaps = np.flatnonzero(raw.is_gap(column))
    if len(gaps):
        raise TableError(
            f"{where}, {raw.place(gaps[0])}: {count(len(gaps), 'value')} missing, this the first. "
            "Fill them in, or remove those rows."
        )
    data = raw.data[column].tolist()
    texts = data if raw.is_text(column) else written(data)
    cells = [str(text).strip().lower() for text in texts]
    found = set(cells)
    meanings = [words for words in VOCABULARIES if found <= words.keys()]
    if len(meanings) == 1:
        return np.array([meanings[0][cell] for cell in cells], dtype=np.int64)
    if meanings:
        raise TableError(
            f"{where} holds nothing but 1, which is an anomaly beside 0 but normal beside -1. "
            "Leave the column out with --drop, or give one that holds both kinds."
        )
    pairs = ", ".join("/".join(words) for words in VOCABULARIES)
    raise TableError(
        f"{where} holds {listed(dict.fromkeys(cells))}. Write normal rows and anomalies as one of "
        f"{pairs}."
    )


MAX_CATEGORIES = 20
Column = tuple[str, NDArray[np.float64]]
Rows = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Prepared:
    """Numbers that detectors can take, and what is known about their rows.

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
        1 for an anomaly, 0 for a normal row; None where there is no truth column.
    notes : tuple of Note
        What was left out, filled in or encoded.
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
    r"""Finite numbers of a raw table, made as the choices say.

    Parameters
    ----------
    raw : RawTable
        What `tables.read_raw` gives.
    choices : Choices
        What becomes of ids, truth, missing values and text.

    Returns
    -------
    Prepared
        At least two rows and one column.

    Raises
    ------
    TableError
        What stands in the way, where, and which option of the command line helps.

    Examples
    --------
    >>> from gammagmm.readers.csv import read_delimited
    >>> from gammagmm.readers.source import Source
    >>> raw = read_delimited(Source("f.csv", ".csv", b"name,a,c\nu,1,x\nv,,y\nw,3,z\n"))
    >>> prepared = prepare(raw, Choices(id="name", missing="impute", categories="encode"))
    >>> prepared.columns, prepared.ids, prepared.values[1].tolist()
    (('a', 'c=x', 'c=y', 'c=z'), ('u', 'v', 'w'), [2.0, 0.0, 1.0, 0.0])
    """
    features = features_of(raw, choices)
    if raw.n_rows < 2:
        raise TableError(f"{raw.source} has {count(raw.n_rows, 'row')}. Give at least two rows.")
    truth = None if choices.truth is None else truth_of(raw, choices.truth)
    ids = ids_of(raw, choices.id)
    _refuse_infinite(raw, features)
    if choices.categories == "error":
        _refuse_text(raw, features)
    if choices.missing == "error":
        _refuse_missing(raw, features)
    features, rows, notes = _kept(raw, features, choices)
    parts = [_encoded(raw, j, rows) if raw.is_text(j) else _numbers(raw, j, rows) for j in features]
    columns = [column for made, _ in parts for column in made]
    _check_columns(raw, [name for name, _ in columns])
    return Prepared(
        np.column_stack([values for _, values in columns]),
        tuple(name for name, _ in columns),
        tuple(ids[row] for row in rows),
        rows,
        None if truth is None else truth[rows],
        (*notes, *(note for _, told in parts for note in told)),
    )


def _refuse_infinite(raw: RawTable, features: list[int]) -> None:
    for j in (j for j in features if not raw.is_text(j)):
        rows = np.flatnonzero(np.isinf(raw.data[j]))
        if len(rows):
            name = raw.columns[j]
            raise TableError(
                f"{raw.source}, column {shown(name)}, {raw.place(rows[0])}: "
                f"{count(len(rows), 'infinite value')}, this the first. Correct them, or leave "
                f"the column out with {option('--drop', name)}."
            )


def _refuse_text(raw: RawTable, features: list[int]) -> None:
    for j in features:
        if raw.is_text(j):
            sentence, cell = describe_text(raw, j)
            drop = option("--drop", raw.columns[j])
            decimal = is_number(cell.replace(",", ".", 1)) and "," in cell
            hint = "Write decimals with a point, or use" if decimal else "Use"
            raise TableError(f"{sentence} {hint} --categories encode or {drop}.")


def _refuse_missing(raw: RawTable, features: list[int]) -> None:
    gaps = np.column_stack([raw.is_gap(j) for j in features])
    if gaps.any():
        row, j = np.argwhere(gaps)[0]
        name = raw.columns[features[j]]
        raise TableError(
            f"{raw.source} holds {count(int(gaps.sum()), 'missing value')}; the first is in "
            f"column {shown(name)}, {raw.place(row)}. Use --missing drop, --missing impute or "
            f"{option('--drop', name)}."
        )


def _kept(
    raw: RawTable, features: list[int], choices: Choices
) -> tuple[list[int], Rows, list[Note]]:
    """Columns that hold anything, rows to keep, and what was left out."""
    gaps = {j: raw.is_gap(j) for j in features}
    empty = [j for j in features if gaps[j].all()]
    notes = [_note(raw.columns[j], "left out: all its values are missing") for j in empty]
    kept = [j for j in features if j not in empty]
    is_kept = np.ones(raw.n_rows, dtype=bool)
    if choices.missing == "drop":
        is_kept = ~np.any([gaps[j] for j in kept], axis=0) & is_kept
    rows = np.flatnonzero(is_kept)
    n_dropped = raw.n_rows - len(rows)
    if len(rows) < 2:
        raise TableError(
            f"{raw.source} has {count(len(rows), 'row')} without missing values, and at least two "
            "rows are needed. Use --missing impute, or --drop the columns with the most gaps."
        )
    if n_dropped:
        message = f"left out {n_dropped} of {count(raw.n_rows, 'row')}: values are missing there"
        notes.append(_note(raw.source, message))
    return kept, rows, notes


def _note(subject: str, message: str) -> Note:
    return Note("tables", subject, message)


def _numbers(raw: RawTable, j: int, rows: Rows) -> tuple[list[Column], list[Note]]:
    """A column of numbers, its gaps filled with the median of the rest."""
    name, values = raw.columns[j], raw.data[j][rows]
    gaps = np.isnan(values)
    if not gaps.any():
        return [(name, values)], []
    median = _median(values[~gaps])
    message = f"{count(int(gaps.sum()), 'missing value')} filled with the median {median:.6g}"
    return [(name, np.where(gaps, median, values))], [_note(name, message)]


def _median(values: NDArray[np.float64]) -> float:
    with np.errstate(over="ignore"):
        median = float(np.median(values))
    # The sum of the two in the middle may be more than a float holds, their mean is not.
    return median if np.isfinite(median) else 2.0 * float(np.median(values / 2.0))


def _encoded(raw: RawTable, j: int, rows: Rows) -> tuple[list[Column], list[Note]]:
    """Columns of 0 and 1, one for each text of a column; two texts need only one."""
    name, cells = raw.columns[j], raw.data[j][rows]
    numbers = Counter(cell for cell in cells if cell is not None)
    texts, n_gaps = sorted(numbers), int(raw.is_gap(j)[rows].sum())
    if len(texts) > MAX_CATEGORIES:
        raise TableError(
            f"{raw.source}, column {shown(name)} holds {len(texts)} different texts, and at most "
            f"{MAX_CATEGORIES} can be encoded. Use {option('--drop', name)}, or "
            f"{option('--id', name)} if it names the rows."
        )
    notes = []
    if n_gaps:
        usual = max(texts, key=lambda text: numbers[text])
        cells = np.where(raw.is_gap(j)[rows], usual, cells)
        told = f"{count(n_gaps, 'missing value')} filled with the most frequent text {shown(usual)}"
        notes.append(_note(name, told))
    if len(texts) == 1:
        return [], [*notes, _note(name, f"left out: its only text is {shown(texts[0])}")]
    encoded = texts[1:] if len(texts) == 2 else texts
    message = f"encoded as {count(len(encoded), 'column')} of 0 and 1 for its texts {listed(texts)}"
    columns = [(f"{name}={text}", (cells == text).astype(np.float64)) for text in encoded]
    return columns, [*notes, _note(name, message)]


def _check_columns(raw: RawTable, names: list[str]) -> None:
    """Refuse what encoding and leaving out may have come to: no column, or two of one name."""
    if not names:
        raise TableError(
            f"{raw.source} has no column left that tells rows apart: all values are missing or the "
            "same text. Give at least one column of numbers."
        )
    check_names(f"{raw.source}, with its texts encoded", tuple(names))
