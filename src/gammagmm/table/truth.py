"""The column with known labels, which the estimate is compared with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.text import counted, listed, shown
from gammagmm.errors import Problem
from gammagmm.readers.raw_table import RawTable, written

__all__ = ["YES_NO", "looks_like_labels", "read_truth"]

N_NAMED = 8
"""Vocabularies that a message names."""

YES_NO = (
    *(("yes", "no"), ("ja", "nein"), ("oui", "non"), ("sí", "no"), ("si", "no"), ("sim", "não")),
    *(("sim", "nao"), ("ja", "nee"), ("tak", "nie"), ("ja", "nej"), ("ja", "nei"), ("ano", "ne")),
    *(("kyllä", "ei"), ("igen", "nem"), ("evet", "hay\u0131r"), ("да", "нет"), ("是", "否")),
    *(("はい", "いいえ"), ("wahr", "falsch"), ("vrai", "faux"), ("verdadero", "falso")),
    *(("auffällig", "normal"), ("anomal", "normal")),
    *(("y", "n"), ("j", "n"), ("s", "n"), ("t", "n")),
)
"""Words for an anomaly and for a normal row in several languages, in lower case."""
# The words of a truth column in lower case -> 1 for an anomaly. One of these must fit all cells.
VOCABULARIES = (
    {"0": 0, "1": 1},
    {"1": 0, "-1": 1},  # scikit-learn
    {"false": 0, "true": 1},
    {"n": 0, "o": 1},  # o is an outlier
    *({no: 0, yes: 1} for yes, no in YES_NO),
    {"normal": 0, "anomaly": 1},
    {"inlier": 0, "outlier": 1},
)


def read_truth(raw: RawTable, name: str) -> NDArray[np.int64] | Problem:
    """1 for an anomaly, 0 for a normal row; or why the meaning of the cells is not clear."""
    column = raw.columns.index(name)
    raw.check_column(column)
    gaps = np.flatnonzero(raw.is_gap(column))
    where = f"truth column {shown(name)}"
    if len(gaps):
        what = f"{where}: {counted(len(gaps), 'missing value')}, the first in {raw.place(gaps[0])}"
        return Problem(name, "truth", what, ("fill by hand",))
    cells = _label_words(raw, column)
    meanings = [words for words in VOCABULARIES if set(cells) <= words.keys()]
    if meanings and all(own[cell] == meanings[0][cell] for own in meanings for cell in set(cells)):
        return np.array([meanings[0][cell] for cell in cells], dtype=np.int64)
    if meanings:
        what = (
            f"{where} contains only 1, which is ambiguous: it means anomaly in labels 0 and 1, but "
            "normal in labels 1 and -1"
        )
        return Problem(name, "truth", what, ("words", "drop"))
    pairs = ", ".join("/".join(words) for words in VOCABULARIES[:N_NAMED])
    what = f"{where} contains {listed(dict.fromkeys(cells))}, and not one of {pairs}"
    return Problem(name, "truth", what, ("words", "drop"))


def looks_like_labels(raw: RawTable, column: int) -> bool:
    """Whether the values of a column are those of a truth column; some may be missing."""
    found = set(_label_words(raw, column))
    return any(found <= words.keys() for words in VOCABULARIES)


def _label_words(raw: RawTable, column: int) -> list[str]:
    """The cells of a column that are not missing, in lower case."""
    data = raw.data[column][~raw.is_gap(column)].tolist()
    texts = data if raw.is_text(column) else written(data)
    return [str(text).strip().lower() for text in texts]
