"""What each column of a file is taken for: the user's choices."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from gammagmm._support.text import listed, shown
from gammagmm.errors import TableError
from gammagmm.readers.raw_table import RawTable

__all__ = ["Choices", "check_choice", "feature_columns"]

ALLOWED = {"missing": ("error", "drop", "impute"), "categories": ("error", "encode")}


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
        for name in ALLOWED:
            check_choice(name, getattr(self, name))
        if not isinstance(self.drop, tuple):
            raise TypeError(f"drop must be a tuple of column names, got {self.drop!r}.")


def check_choice(name: str, value: str) -> None:
    """Refuse an unknown value of a choice."""
    if value not in ALLOWED[name]:
        raise ValueError(f"{name} must be one of {', '.join(ALLOWED[name])}, got {value!r}.")


def feature_columns(raw: RawTable, choices: Choices) -> list[int]:
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
