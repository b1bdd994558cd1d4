"""What each column of a file is used for: the user's choices, and guesses about the others."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from numbers import Real
from typing import Any

from gammagmm._support.dates import NUMBER_FORMS
from gammagmm._support.text import listed, shown
from gammagmm.errors import TableError
from gammagmm.readers.raw_table import RawTable, written
from gammagmm.table.guesses import Guess, guess, guess_notes
from gammagmm.table.words import Words

__all__ = [
    "Choices",
    "Roles",
    "assign_roles",
    "check_features",
    "named_columns",
    "used_as_they_are",
]

KEYS = ("id", "truth", "drop", "use", "dates", "missing_codes")
"""What ``columns=`` can have."""
ALLOWED = {
    "missing": ("error", "drop", "impute"),
    "categories": ("error", "encode"),
    "unusable": ("error", "drop"),
    "dates": ("drop", "encode"),
}


@dataclass(frozen=True)
class Choices:
    """The user's decisions about a table.

    `of` takes them as the parameters of `GammaGMM`, and `columns` gives one of these back.

    Attributes
    ----------
    id : str or None
        Column that names the rows; None names them by their numbers.
    drop, use : tuple of str
        Columns to leave out, and columns to use even if they look like ids, labels or dates. Each
        text is a name, a shell pattern (``x_*``), or several of them separated by commas; a column
        with exactly this name comes first.
    truth : str or None
        Column that says which rows are anomalies; it is not part of the data.
    missing : {"error", "drop", "impute"}
        Refuse missing values, leave out their rows, or fill in the column's median.
    categories : {"error", "encode"}
        Refuse columns of text, or turn them into columns of 0 and 1.
    unusable : {"error", "drop"}
        Refuse columns that cannot be used as they are, or leave them out with a note; infinite
        numbers are then missing values. A column in `use` is refused.
    missing_codes : tuple of str or None
        Values that mark a gap, such as "-999"; "auto" for those that `likely_codes` finds. If None,
        those of them that are clear, unless missing values are refused.
    dates : {"drop", "encode"}
        Leave out columns of dates, or turn them into numbers.

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
    use: tuple[str, ...] = ()
    dates: str = "drop"
    unusable: str = "error"
    missing_codes: tuple[str, ...] | None = None

    @classmethod
    def of(cls, columns: Any, *, strict: bool) -> Choices:
        """The choices of ``GammaGMM(columns=..., strict=...)``."""
        given = {} if columns is None else columns
        if not isinstance(given, Mapping) or set(given) - set(KEYS):
            raise ValueError(
                f"columns must be None or a dict with the keys {listed(KEYS)}, got {columns!r}."
            )
        codes = given.get("missing_codes")
        codes = codes if isinstance(codes, list | tuple | None) else [codes]
        for name in ("id", "truth"):
            if not isinstance(given.get(name), str | None):
                raise TypeError(f"columns[{name!r}] must be the name of a column.")
        return cls(
            id=given.get("id"),
            truth=given.get("truth"),
            dates=given.get("dates", "drop"),
            drop=tuple(_texts("drop", given.get("drop"))),
            use=tuple(_texts("use", given.get("use"))),
            missing_codes=None if codes is None else tuple(map(_code_text, codes)),
        ).with_strict(strict)

    def with_strict(self, strict: bool) -> Choices:
        """The same, where a table that is not plain numbers is refused, or answered."""
        if strict:
            return replace(self, missing="error", categories="error", unusable="error")
        return replace(self, missing="impute", categories="encode", unusable="drop")

    @property
    def columns(self) -> dict[str, Any] | None:
        """The parameter ``columns`` that says what is said here; None if it is nothing."""
        given = {
            "id": self.id,
            "truth": self.truth,
            "drop": list(self.drop),
            "use": list(self.use),
            "dates": None if self.dates == "drop" else self.dates,
        }
        named = {name: value for name, value in given.items() if value}
        if self.missing_codes is not None:
            named["missing_codes"] = list(self.missing_codes)
        return named or None

    def __post_init__(self) -> None:
        for name, allowed in ALLOWED.items():
            if (value := getattr(self, name)) not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {value!r}.")


def _code_text(code: Any) -> str:
    """A value that marks a gap as a text."""
    if isinstance(code, bool) or not isinstance(code, str | Real):
        raise TypeError(f"columns['missing_codes'] must have numbers or texts, got {code!r}.")
    return code if isinstance(code, str) else written([float(code)])[0] or ""


def _texts(name: str, given: Any) -> list[str]:
    """A name or several of them as a list."""
    names = [] if given is None else [given] if isinstance(given, str) else given
    if not isinstance(names, list | tuple) or not all(isinstance(each, str) for each in names):
        raise TypeError(f"columns[{name!r}] must be a list of names of columns, got {given!r}.")
    return list(names)


@dataclass(frozen=True)
class Roles:
    """The use of each column of a file.

    Attributes
    ----------
    features : tuple of int
        The columns that are used, in their order.
    dates : tuple of pairs
        Name and form of those of them that are dates, see `DATE_FORMS`.
    chosen : tuple of pairs
        Name of each column that the user decided about, and "id", "truth", "drop" or "use".
    guesses : tuple of Guess
        What is said about columns that the user did not decide about.
    """

    features: tuple[int, ...]
    dates: tuple[tuple[str, str], ...]
    chosen: tuple[tuple[str, str], ...]
    guesses: tuple[Guess, ...]


def assign_roles(raw: RawTable, choices: Choices) -> Roles:
    """The use of each column; names and patterns without a column are a `TableError`."""
    chosen = named_columns(raw.source, raw.columns, choices)
    features, dates, guesses = list[int](), list[tuple[str, str]](), list[Guess]()
    for j, name in enumerate(raw.columns):
        option = chosen.get(name)
        if option not in (None, "use"):
            continue
        own = guess(raw, j)
        is_date = own is not None and own.kind == "date"
        if own is not None and own.kind == "empty":
            guesses.append(own)
        elif option == "use" or (is_date and choices.dates == "encode"):
            features.append(j)
            is_plain = own is None or not is_date or (option == "use" and own.form in NUMBER_FORMS)
            dates += [] if own is None or is_plain else [(name, own.form)]
        elif own is None or not own.is_left_out:
            features.append(j)
            is_text = own is not None and own.is_text
            guesses += [] if own is None or (is_text and choices.categories == "error") else [own]
        else:
            guesses.append(own)
    return Roles(tuple(features), tuple(dates), tuple(chosen.items()), tuple(guesses))


def used_as_they_are(raw: RawTable) -> Roles:
    """All columns are used, without a guess about any."""
    return Roles(tuple(range(len(raw.columns))), (), (), ())


def check_features(raw: RawTable, roles: Roles, words: Words) -> None:
    """Refuse a table without a column that is used."""
    if roles.features:
        return
    if not roles.guesses:
        raise TableError(
            f"{raw.source} has no column left to use", "Keep at least one column of numbers."
        )
    said = guess_notes(raw.source, roles.guesses, words)
    notes = "; ".join(f"{shown(note.subject)}: {note.message}" for note in said)
    raise TableError(
        f"{raw.source} has no usable column. {notes}", "Give at least one column of numbers."
    )


def named_columns(source: str, columns: tuple[str, ...], choices: Choices) -> dict[str, str]:
    """The columns that an option names, and that option.

    An option with the exact name of a column overrides one with a pattern. A name or pattern
    without a column, and a column in two options, are a `TableError`.
    """
    exact, by_pattern = dict[str, str](), dict[str, str]()
    singles = [("id", choices.id), ("truth", choices.truth)]
    given = [(flag, [name]) for flag, name in singles if name is not None]
    given += [("drop", _split(columns, choices.drop)), ("use", _split(columns, choices.use))]
    unknown = []
    for flag, names in given:
        for name in dict.fromkeys(names):
            if name in columns:
                _assign(source, exact, name, flag)
                continue
            is_pattern = flag in ("drop", "use")
            matches = [own for own in columns if is_pattern and fnmatchcase(own, name)]
            unknown += [] if matches else [name]
            for own in matches:
                _assign(source, by_pattern, own, flag)
    if unknown:
        raise _unknown_columns(source, columns, unknown)
    return by_pattern | exact


def _assign(source: str, taken: dict[str, str], name: str, flag: str) -> None:
    if taken.setdefault(name, flag) != flag:
        raise TableError(
            f"Column {shown(name)} of {source} is given for {taken[name]!r} and for {flag!r}",
            "Give it once.",
        )


def _split(columns: tuple[str, ...], given: Iterable[str]) -> list[str]:
    """Names and patterns of a list; a text that is itself a name is not split at its commas."""
    words = []
    for text in given:
        words += [text] if text in columns or "," not in text else text.split(",")
    return [word if word in columns else word.strip() for word in words if word.strip()]


def _unknown_columns(source: str, columns: tuple[str, ...], names: list[str]) -> TableError:
    lowered = {column.lower(): column for column in columns}
    close = [
        lowered[word]
        for name in names
        for word in difflib.get_close_matches(name.lower().strip("*?"), lowered)
    ]
    similar = f"; similar names: {listed(dict.fromkeys(close))}" if close else ""
    is_pattern = any(character in name for name in names for character in "*?[")
    noun = "column that matches" if is_pattern else "column"
    return TableError(
        f"{source} has no {noun} {listed(names)}{similar}",
        f"Choose one of: {listed(columns)}.",
    )
