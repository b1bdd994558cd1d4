"""``gammagmm inspect``: which rows to look at, as a sheet or row by row in the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gammagmm._support.files import write_document
from gammagmm._support.text import one_line, percent
from gammagmm.cli.sheet import Sheet, fill_sheet, read_sheet
from gammagmm.inspection.suggestions import Strategy
from gammagmm.posterior.sentences import sentence
from gammagmm.report.findings import feature_words, outstanding
from gammagmm.report.origin import Origin

__all__ = ["Inspection", "ask_rows", "write_sheet"]

KEYS = {"y": 1, "n": 0}
Echo = Callable[[str], None]


@dataclass(frozen=True)
class Inspection:
    """What is looked at, and how the rows are chosen."""

    estimator: Any
    X: Any
    origin: Origin
    path: Path
    n: int
    strategy: Strategy
    is_new: bool  # whatever sheet there is
    rng: np.random.Generator

    def save(self, sheet: Sheet, overwrite: bool = True) -> None:
        """Write the sheet, whole or not at all."""
        write_document(fill_sheet(sheet, self.X, self.origin), self.path, overwrite)

    def suggested(self, n: int) -> tuple[int, ...]:
        """`n` more rows, or as many as there are."""
        left = len(self.X) - len(self.estimator.known_rows_)
        if min(n, left) < 1:
            return ()
        rows = self.estimator.suggest(min(n, left), self.strategy, self.rng)
        return tuple(rows.tolist())


def write_sheet(inspection: Inspection, overwrite: bool) -> str:
    """The sheet of rows to look at; returns what was done, as a sentence."""
    rows = inspection.suggested(inspection.n)
    inspection.save(Sheet(rows, (None,) * len(rows)), overwrite)
    first, last = (
        inspection.estimator.expected_width(
            n, strategy=inspection.strategy, random_state=inspection.rng
        )
        for n in (1, len(rows))
    )
    return (
        f"{len(rows)} rows to look at: write 1 (anomaly) or 0 in the column anomaly of "
        f"{one_line(str(inspection.path))}, as many as you like from the top, and give it to "
        "gammagmm estimate --inspected. The 90% interval is expected to be "
        f"{percent(first)} wide after the first answer and {percent(last)} after all of them."
    )


def ask_rows(inspection: Inspection, echo: Echo) -> Sheet:
    """Ask for the label of row after row; each answer is saved before the next question."""
    sheet = _begin(inspection, echo)
    for place in range(len(sheet.rows)):
        if sheet.answers[place] is not None:
            continue
        row = sheet.rows[place]
        answer = _ask(_describe(inspection, row, place, len(sheet.rows)), echo)
        if answer == "q":
            break
        if answer == "s":
            continue
        sheet = _answered(inspection, sheet, place, KEYS[answer])
        inspection.save(sheet)
        echo(f"  {sentence(inspection.estimator.posterior_)}")
    return sheet


def _begin(inspection: Inspection, echo: Echo) -> Sheet:
    """The sheet that is there, with its answers taken, or a new one."""
    if inspection.is_new or not inspection.path.exists():
        rows = inspection.suggested(inspection.n)
        sheet = Sheet(rows, (None,) * len(rows))
        inspection.save(sheet, overwrite=inspection.is_new)
    else:
        sheet = read_sheet(inspection.path, inspection.X, inspection.origin)
        inspection.estimator.update(*sheet.answered)
        sheet = _with_more(inspection, sheet, inspection.n - len(sheet.rows))
        echo(f"{len(sheet.answered[0])} of {len(sheet.rows)} rows have an answer already.")
    echo("Is the row an anomaly? y yes, n no, s skip it, q stop here (every answer is saved).")
    return sheet


def _with_more(inspection: Inspection, sheet: Sheet, n: int) -> Sheet:
    """The sheet with up to `n` more rows; those that were skipped are not asked for again."""
    if n < 1:
        return sheet
    seen = set(sheet.rows)
    found = [row for row in inspection.suggested(n + len(seen)) if row not in seen][:n]
    return Sheet((*sheet.rows, *found), (*sheet.answers, *(None,) * len(found)))


def _answered(inspection: Inspection, sheet: Sheet, place: int, label: int) -> Sheet:
    """The sheet with one more answer; "adaptive" chooses anew what comes after it."""
    inspection.estimator.update([sheet.rows[place]], [label])
    answers = (*sheet.answers[:place], label, *sheet.answers[place + 1 :])
    rest = answers[place + 1 :]
    if inspection.strategy == "random" or any(answer is not None for answer in rest):
        return Sheet(sheet.rows, answers)
    begun = Sheet(sheet.rows[: place + 1], answers[: place + 1])
    return _with_more(inspection, begun, len(rest))


def _describe(inspection: Inspection, row: int, place: int, n: int) -> str:
    """What is known of a row: its name, its rank, and where it stands out."""
    scores = inspection.estimator.decision_scores_
    rank = int((scores > scores[row]).sum()) + 1
    name = f"row {inspection.origin.row_number(row)}"
    if inspection.origin.ids is not None:
        name += f" ({inspection.origin.ids[row]})"
    [features] = outstanding(inspection.X, inspection.origin.columns, [row])
    told = feature_words(features)
    return f"{place + 1}/{n}  {name}, rank {rank} of {len(scores)}: {told}"


def _ask(question: str, echo: Echo) -> str:
    """The key that was pressed; the end of the input is q."""
    while True:
        echo(one_line(question))
        line = sys.stdin.readline()
        key = line.strip().lower()[:1] if line else "q"
        if key in {*KEYS, "s", "q"}:
            return key
        echo("  y, n, s or q, please.")
