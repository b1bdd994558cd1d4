"""``gammagmm label``: rows for a person to label, in a sheet or one by one in the terminal."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING

import numpy as np

from gammagmm._support.checks import as_generator
from gammagmm._support.files import write_document
from gammagmm._support.text import one_line
from gammagmm.cli.estimate import check_agreement
from gammagmm.cli.fitting import kept_fit
from gammagmm.cli.options import Request
from gammagmm.cli.output import answer_text
from gammagmm.cli.request import UsageError, check_label
from gammagmm.cli.sheet import Sheet, checked_words, fill_sheet, read_answers, read_sheet
from gammagmm.cli.terminal import Echo, print_answer, warnings_as_lines
from gammagmm.cli.training_rows import cluster_of, read_training_rows
from gammagmm.posterior.sentences import (
    RECALL,
    any_look_sentence,
    left_sentence,
    sentence,
)

if TYPE_CHECKING:
    from gammagmm.estimator.fit_result import Fit
    from gammagmm.labels.labelled_rows import LabelledRows

__all__ = ["Inspection", "ask_rows", "run_label"]

KEYS = {"y": 1, "n": 0}
QUESTION = (
    "Is the row an anomaly? y yes, n no, s skip the row, u undo, q quit. Every answer is saved at "
    "once."
)
MIN_WIDTH = 40  # of the terminal, in characters
N_AT_ONCE = 10
"""Rows that are picked from the top of the ranking before it is learned again."""
END = "There are no more rows to ask about: u undo, q quit."


def run_label(request: Request, echo: Echo) -> int:
    """Exit code of ``gammagmm label``: write the rows to a sheet, or ask for their labels."""
    check_label(request)
    with cluster_of(request, echo):
        return _inspect_rows(request, echo)


def _inspect_rows(request: Request, echo: Echo) -> int:
    """The same while the cluster of the rows, if they are on Dask, is there."""
    inspecting, force = request.inspecting, request.running.force
    path = inspecting.sheet
    labelled = request.labelling.labels or ()
    sheets = [*labelled, path] if path.exists() else labelled
    table = read_training_rows(request, sheets, keep_raw=True)
    table = replace(table, notes=(*request.running.notes, *table.notes))
    is_continued = inspecting.ask and not force and path.exists()
    # Before the fit, so that a bad sheet is refused at once.
    sheet = read_sheet(path, table) if is_continued else None
    earlier = [(each, read_answers(each, table)) for each in labelled]
    given = [*earlier, *([] if sheet is None else [(path, sheet)])]
    check_agreement(given, table)
    purpose = inspecting.purpose
    if sheet is not None:
        _check_purposes(sheet, purpose, path)
    with warnings_as_lines(echo):
        fit = kept_fit(table, request, [*labelled, path], echo, keep=None if is_continued else path)
    inspection = Inspection(
        fit=fit,
        path=path,
        earlier=tuple(each for _, each in earlier),
        purpose=purpose,
        n=inspecting.n,
        shows_rank=inspecting.show_rank,
        rng=as_generator(request.method.seed),
        is_asked=inspecting.ask,
    )
    n_at_once = N_AT_ONCE if inspecting.ask else inspecting.n
    with warnings_as_lines(echo):
        _ = inspection.labelled_before
        if sheet is None:
            inspection, sheet = inspection.extend(Sheet((), ()), n_at_once)
            inspection.save(sheet, overwrite=force)
        elif not (inspection.is_find and None in sheet.answers):
            # Rows to find anomalies are added once those of before have been asked for.
            inspection, sheet = inspection.extend(sheet, N_AT_ONCE)
    if not inspecting.ask:
        print_answer(_what_to_do(inspection, sheet))
        return 0
    inspection, sheet = ask_rows(inspection, sheet, echo)
    with warnings_as_lines(echo):
        fit = inspection.labelled(sheet)
        print_answer(answer_text(fit, inspection.checked(sheet)))
    return 0


def _check_purposes(sheet: Sheet, purpose: str, path: Path) -> None:
    """Refuse to continue a sheet whose rows were chosen for another purpose."""
    others = {sheet.purpose(row) for row in sheet.rows} - {purpose}
    if purpose == "find" and "check" not in others:
        return  # rows for the share may come first
    if others:
        raise UsageError(
            f"{path} has rows with --purpose {min(others)}, and rows with --purpose {purpose} must "
            "be a random sample of their own",
            "Give another --out, and pass this file with --labels.",
        )


@dataclass(frozen=True)
class Inspection:
    """A fit without labels, and what is needed to choose, show and save rows to label."""

    fit: Fit
    path: Path  # of the sheet
    n: int  # rows of the sheet that are chosen for the same purpose
    shows_rank: bool
    rng: np.random.Generator
    earlier: tuple[Sheet, ...] = ()  # with labels from before
    purpose: str = "share"  # what rows are chosen for: share, find or check
    is_asked: bool = False  # whether a person sees the answer after each label

    def save(self, sheet: Sheet, overwrite: bool = True) -> None:
        """Write the sheet to its file, completely or not at all."""
        write_document(fill_sheet(sheet, self.fit.table), self.path, overwrite)

    def labelled_rows(self, sheet: Sheet) -> LabelledRows:
        """The rows with all answers."""
        return sheet.label(self.labelled_before)

    @cached_property
    def labelled_before(self) -> LabelledRows:
        """The rows with the answers of the earlier sheets; a warning about them is given once."""
        rows = self.fit.labelled_rows
        for each in self.earlier:
            rows = each.label(rows)
        return rows

    def labelled(self, sheet: Sheet) -> Fit:
        """The fit with all answers."""
        return self.fit.with_labels(self.labelled_rows(sheet))

    @property
    def is_find(self) -> bool:
        """Whether rows are chosen to find anomalies."""
        return self.purpose == "find"

    def checked(self, sheet: Sheet) -> list[str]:
        """What the rows of a check show."""
        return checked_words([*self.earlier, sheet], self.labelled_rows(sheet))

    def extend(self, sheet: Sheet, n_at_once: int) -> tuple[Inspection, Sheet]:
        """The inspection and the sheet with more suggested rows.

        There are `n` rows for the same purpose, or as many as the table has.
        Rows to find anomalies are the first of the ranking that was learned from the answers so
        far; at most `n_at_once` of them are added.
        """
        if self.is_find:
            fit = self.labelled(sheet)
            waiting = [row for row, a in zip(sheet.rows, sheet.answers, strict=True) if a is None]
            n_more = min(self.n - len(sheet.picked), n_at_once)
            n_ranked = min(n_more + len(waiting), fit.sample.n_rows - len(fit.known))
            if n_more < 1 or n_ranked < 1:
                return self, sheet
            numbers = fit.first_rows(n_ranked)
            holding = replace(self, fit=self.fit.holding(np.sort(numbers)))
            ranked = holding.fit.sample.places(numbers).tolist()
            found = [row for row in ranked if row not in waiting][:n_more]
            return holding, sheet.extend(found, self.purpose)
        if self.purpose == "check":
            return self, self._check(sheet)
        # Rows that were picked can be chosen again: without them, this would be no random sample.
        sheets = (*self.earlier, sheet)
        before = [row for each in sheets for row in each.rows if row not in each.picked]
        n_more = min(self.n - len(sheet.rows), self.fit.n_rows - len(set(before)))
        if n_more < 1:
            return self, sheet
        # Known with any label, these rows are not suggested again.
        sample, rows = self.fit.sample, self.fit.labelled_rows
        numbers = sample.number(np.array(before, dtype=np.intp))
        rows = rows.update(numbers, [0] * len(before), at_random=False)
        groups = self.fit.table.sampled.groups
        by = None if groups is None else groups.values
        # The interval at any look needs rows in simple random order.
        is_spread = not self.is_asked or by is not None
        suggested = rows.suggest(n_more, spread=is_spread, by=by, random_state=self.rng)
        return self, sheet.extend(sample.places(suggested).tolist(), self.purpose)

    def _check(self, sheet: Sheet) -> Sheet:
        """The sheet with the rows of a check, unless it has them."""
        rows = self.labelled_before
        if sheet.rows:
            return sheet
        if rows.n_for_recall is None:
            raise UsageError(
                "--purpose check needs all rows in memory and labels that are right",
                "Leave out --label-error and --engine.",
            )
        chosen = rows.certify(random_state=self.rng).rows
        return sheet.extend(chosen.tolist(), self.purpose)

    def describe(self, row: int) -> list[str]:
        """Lines with the number of a row and all its columns."""
        name = f"row {self.fit.table.row_number(row)}"
        if self.shows_rank:
            scores = self.fit.decision_scores
            rank = int((scores > self.fit.space.decision_scores[row]).sum()) + 1
            name += f", rank {rank} of {len(scores)} by the consensus"
        cells = self.fit.table.cells(row)
        pairs = [f"{one_line(column)}: {one_line(cell)}" for column, cell in cells.items()]
        return [name, *_side_by_side(pairs, max(get_terminal_size().columns, MIN_WIDTH))]


def _side_by_side(words: list[str], width: int) -> list[str]:
    """Indented lines of at most `width` characters, unless one of the `words` is longer."""
    lines = [""]
    for word in words:
        if lines[-1] and len(lines[-1]) + 3 + len(word) > width:
            lines.append("")
        lines[-1] += ("   " if lines[-1] else "  ") + word
    return lines


def _what_to_do(inspection: Inspection, sheet: Sheet) -> str:
    """What to do with the sheet, once it is written."""
    n_rows, path = len(sheet.rows), one_line(str(inspection.path))
    if inspection.is_find:
        return (
            f"{n_rows} rows from the top of the ranking: write 1 (anomaly) or 0 (normal) in the "
            f"column anomaly of {path}, and pass the file to gammagmm estimate --labels, with "
            "the sheets you have labelled before. These rows find anomalies and teach the ranking. "
            "They do not show the share of anomalies: label rows with --purpose share for that. "
            "When you stop, --purpose check shows how many of all anomalies are found."
        )
    if inspection.purpose == "check":
        return (
            f"{n_rows} random rows without a label: write 1 (anomaly) or 0 (normal) in the column "
            f"anomaly of {path}, for all of them, and pass the file to gammagmm estimate --labels, "
            "with the sheets you have labelled before. If all are normal, at least "
            f"{RECALL:.0%} of all anomalies are found (90% confidence)."
        )
    rows = inspection.labelled_before
    some = (n for n in (10, n_rows) if n <= n_rows)
    widths = [
        f"{100.0 * rows.expected_width(n):.0f} percentage points wide after {n} "
        f"label{'s' * (n > 1)}"
        for n in dict.fromkeys(some)
    ]
    return (
        f"{n_rows} rows to label: write 1 (anomaly) or 0 (normal) in the column anomaly of "
        f"{path}, for as many rows as you like from the top, and pass the file to gammagmm "
        f"estimate --labels. The 90% interval is expected to be {' and '.join(widths)}."
    )


def ask_rows(inspection: Inspection, sheet: Sheet, echo: Echo) -> tuple[Inspection, Sheet]:
    """Ask for the labels of the rows without one, and save each answer before the next question."""
    # Rows with an answer come first: those before `at` can be undone.
    places = sorted(range(len(sheet.rows)), key=lambda place: sheet.answers[place] is None)
    at, n_rows = sheet.n_answers, len(places)
    if at > 0:
        echo(f"{at} of {n_rows} rows have an answer already.")
    if at < n_rows:
        echo(QUESTION)
    while True:
        if at == n_rows:
            inspection, sheet = _learn(inspection, sheet, echo)
            places += range(n_rows, len(sheet.rows))
            n_rows = len(places)
        key = _ask_place(inspection, sheet, places, at, echo)
        if key == "q":
            return inspection, sheet
        if key == "s":
            at += 1
        elif key == "u":
            at, sheet = _undo(inspection, sheet, places[:at], echo)
        else:
            sheet = _answer(inspection, sheet, places[at], KEYS[key], echo)
            at += 1


def _learn(inspection: Inspection, sheet: Sheet, echo: Echo) -> tuple[Inspection, Sheet]:
    """The sheet with the next rows of the ranking, if it is learned from the answers."""
    if not inspection.is_find:
        return inspection, sheet
    with warnings_as_lines(echo):
        inspection, longer = inspection.extend(sheet, N_AT_ONCE)
    if n_more := len(longer.rows) - len(sheet.rows):
        inspection.save(longer)
        rows = "row is the first" if n_more == 1 else f"{n_more} rows are the first"
        echo(f"  The next {rows} of the ranking after your answers so far.")
    return inspection, longer


def _undo(inspection: Inspection, sheet: Sheet, before: list[int], echo: Echo) -> tuple[int, Sheet]:
    """The place to go on from, and the sheet without the answer at the last place `before` it."""
    if not before:
        echo("  There is nothing to undo.")
        return 0, sheet
    return len(before) - 1, _answer(inspection, sheet, before[-1], None, echo)


def _answer(
    inspection: Inspection, sheet: Sheet, place: int, label: int | None, echo: Echo
) -> Sheet:
    """The sheet with another answer at one place, saved; what it means is told."""
    sheet = sheet.answer(place, label)
    inspection.save(sheet)
    if label is None:
        echo(f"  Row {inspection.fit.table.row_number(sheet.rows[place])} has no answer now.")
        return sheet
    with warnings_as_lines(echo):
        rows = inspection.labelled_rows(sheet)
    known = rows.known_rows
    if inspection.purpose == "check":
        for words in inspection.checked(sheet):
            echo(f"  {words}")
        return sheet
    if inspection.is_find:
        echo(f"  {int(known.labels.sum())} of the {len(known)} labelled rows are anomalies.")
        if known.at_random.any():
            echo(f"  {left_sentence(rows.left, rows.n_for_recall)}")
        return sheet
    told = sentence(rows.posterior)
    if inspection.fit.table.groups is None:  # the rows are in simple random order
        told += f" {any_look_sentence(rows.interval_at_any_look())}"
    echo(f"  {told}")
    return sheet


def _ask_place(inspection: Inspection, sheet: Sheet, places: list[int], at: int, echo: Echo) -> str:
    """The key that is the answer for the row at the place `places[at]`, or after the last one."""
    if at == len(places):
        return _ask([END], "uq", echo)
    name, *columns = inspection.describe(sheet.rows[places[at]])
    return _ask([f"{places[at] + 1}/{len(places)}  {name}", *columns], "ynsuq", echo)


def _ask(lines: list[str], keys: str, echo: Echo) -> str:
    """The one of the `keys` that was given as the answer; q at the end of the input."""
    for line in lines:
        echo(line)
    while True:
        line = sys.stdin.readline()
        key = line.strip().lower() if line else "q"
        if len(key) == 1 and key in keys:
            return key
        echo(f"  Please answer {', '.join(keys[:-1])} or {keys[-1]}.")
