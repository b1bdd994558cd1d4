"""The user's choices -> which column of a raw table plays which part."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gammagmm.errors import TableError
from gammagmm.readers.raw_table import MAX_SHOWN_CHARACTERS, RawTable, shown, written

__all__ = ["Choices", "count", "features_of", "ids_of", "listed", "option", "truth_of"]

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
