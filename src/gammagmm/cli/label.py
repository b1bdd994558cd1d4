"""``gammagmm label``: rows for a person to label, in a sheet or one by one in the terminal."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, cast

from gammagmm._support.checks import as_generator
from gammagmm._support.files import write_document
from gammagmm._support.text import counted, one_line, visible
from gammagmm.cli.commands import estimate_command, label_commands
from gammagmm.cli.estimate import check_agreement
from gammagmm.cli.fitting import kept_fit
from gammagmm.cli.options import Request
from gammagmm.cli.output import answer_text
from gammagmm.cli.request import UsageError, check_label
from gammagmm.cli.sheet import checked_words, fill_sheet, read_answers, read_sheet
from gammagmm.cli.terminal import Echo, print_answer, warnings_as_lines
from gammagmm.cli.training_rows import cluster_of, read_training_rows
from gammagmm.estimator.label_session import Asking, LabelSession
from gammagmm.labels.sentences import any_look_sentence, left_sentence
from gammagmm.labels.sheet import RECALL
from gammagmm.posterior.sentences import first_row_words, sentence

if TYPE_CHECKING:
    from gammagmm.estimator.fit_result import Fit
    from gammagmm.estimator.reasons import Reason, UsualValues
    from gammagmm.labels.sheet import Sheet

__all__ = ["Dialogue", "SheetFile", "run_label"]

KEYS = {"y": 1, "n": 0}
QUESTION = (
    "Is the row an anomaly? y yes, n no, u unsure, s skip the row, z undo, q quit. Every answer is "
    "saved at once."
)
MAX_COLUMNS = 12
"""Most columns of a row that are all shown; of more columns, those that are odd are."""
MIN_WIDTH = 40  # of the terminal, in characters
N_AT_ONCE = 10
"""Rows that are picked from the top of the ranking before it is learned again."""
END = "There are no more rows to ask about: z undo, q quit."


def run_label(request: Request, echo: Echo) -> int:
    """Exit code of ``gammagmm label``: write the rows to a sheet, or ask for their labels."""
    check_label(request)
    with cluster_of(request, echo):
        return _inspect_rows(request, echo)


def _inspect_rows(request: Request, echo: Echo) -> int:
    """The same while the cluster of the rows, if they are on Dask, is there."""
    inspecting, force = request.inspecting, request.running.force
    path, asks = inspecting.sheet, not inspecting.sheet_only
    labelled = request.labelling.labels or ()
    sheets = [*labelled, path] if path.exists() else labelled
    table = read_training_rows(request, sheets, keep_raw=True)
    table = replace(
        table,
        notes=(*request.running.notes, *table.notes),
        commands=label_commands(_with_sheet(request), table.name),
    )
    is_continued = asks and not force and path.exists()
    # Before the fit, so that a bad sheet is refused at once.
    sheet = read_sheet(path, table) if is_continued else None
    earlier = [(each, read_answers(each, table)) for each in labelled]
    check_agreement([*earlier, *([] if sheet is None else [(path, sheet)])], table)
    asking = cast("Asking", inspecting.purpose)
    if sheet is not None:
        _check_purposes(sheet, asking, path)
    with warnings_as_lines(echo):
        fit = kept_fit(table, request, [*labelled, path], echo, keep=None if is_continued else path)
        session = LabelSession(
            fit,
            sheet,
            n=inspecting.n,
            earlier=[each for _, each in earlier],
            person=inspecting.person,
            rng=as_generator(request.method.seed),
        )
        if not session.waiting(asking) or asking == "share":
            # Rows to find anomalies are added once those of before have been asked for.
            session.extend(asking, N_AT_ONCE if asks else inspecting.n)
    if not session.sheet.rows and asking == "check":
        raise UsageError(
            "--purpose check needs all rows in memory and labels that are right",
            "Leave out --label-error and --engine.",
        )
    file = SheetFile(path)
    file.save(session, overwrite=force or is_continued)
    if inspecting.sheet_only:
        print_answer(f"{_what_to_do(session, path, asking)} {_numbers(session)}")
        return 0
    if inspecting.terminal:
        Dialogue(session, file, echo, asking, shows_rank=inspecting.show_rank).run()
    else:
        _serve(request, session, file, echo)
    with warnings_as_lines(echo):
        checked = checked_words([*session.earlier, session.sheet], session.labelled_rows)
        command = estimate_command(request, path)
        print_answer(answer_text(session.labelled, checked, command=command))
    return 0


def _with_sheet(request: Request) -> Request:
    """The request after the rows have been labelled."""
    labels = [*(request.labelling.labels or ()), request.inspecting.sheet]
    return replace(request, labelling=replace(request.labelling, labels=labels))


def _check_purposes(sheet: Sheet, asking: Asking, path: Path) -> None:
    """Refuse to continue a sheet with rows of a check for another purpose."""
    if sheet.checked and asking != "check":
        raise UsageError(
            f"{path} has rows with --purpose check, which come last",
            "Continue with --purpose check, or give another --out and pass this file with "
            "--labels.",
        )


def _serve(request: Request, session: LabelSession, file: SheetFile, echo: Echo) -> None:
    """Show the page until the person has finished."""
    from gammagmm.cli.label_page import LabelServer, open_browser
    from gammagmm.report.label_view import LabelView

    inspecting, paths = request.inspecting, request.reading.paths
    name = one_line(str(file.path))
    view = LabelView(
        session,
        cast("Asking", inspecting.purpose),
        save=file.save,
        title=visible(", ".join(paths)),
        place=visible(name),
        command=estimate_command(request, file.path),
    )
    with warnings_as_lines(echo):
        view.extend()
        server = LabelServer(view, learns=request.method.learn)
        echo(f"Label the rows on this page: {server.address}")
        echo(f"Every answer is saved in {name} at once. End with Finish on the page, or Ctrl-C.")
        if not inspecting.no_browser:
            open_browser(server.address)
        server.run()


class SheetFile:
    """The file of a sheet, written completely or not at all after each answer."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._cells: dict[int, Mapping[str, str]] = {}

    def save(self, session: LabelSession, overwrite: bool = True) -> None:
        """Write the sheet of a session."""
        table = session.fit.table

        def cells_of(row: int) -> Mapping[str, str]:
            if row not in self._cells:
                self._cells[row] = table.cells(row)
            return self._cells[row]

        write_document(fill_sheet(session.sheet, table, cells_of), self.path, overwrite)


def _name_of(fit: Fit, row: int, *, shows_rank: bool) -> str:
    """The number of a row and, if it is asked for, its rank."""
    name = f"row {fit.table.row_number(row)}"
    if shows_rank:
        scores = fit.decision_scores
        rank = int((scores > fit.space.decision_scores[row]).sum()) + 1
        name += f", rank {rank} of {len(scores)} by the consensus"
    return name


def _all_columns(cells: Mapping[str, str]) -> list[str]:
    """Lines with all columns of a row."""
    pairs = [f"{one_line(column)}: {one_line(cell)}" for column, cell in cells.items()]
    return _side_by_side(pairs, max(get_terminal_size().columns, MIN_WIDTH))


def _odd_columns(reasons: Sequence[Reason], cells: Mapping[str, str]) -> list[str]:
    """Lines with the columns in which a row is unusual, and with those that are not used.

    `reasons` are what there is to say about the row in each column that is used.
    """
    odd = sorted((each for each in reasons if each.is_odd), key=lambda r: -abs(r.deviations))
    shown = {each.column: each for each in reversed(odd)}  # the farthest text of each column
    lines = []
    for each in sorted(shown.values(), key=lambda r: -abs(r.deviations))[:MAX_COLUMNS]:
        usual = f" {each.usual_words}" if each.share is None else ""
        lines.append(f"  {one_line(each.value_words)}, {each.side_words}{usual}")
    used = {each.column for each in reasons}
    lines += _all_columns({name: cell for name, cell in cells.items() if name not in used})
    n_left = len(used) - min(len(shown), MAX_COLUMNS)
    return [*filter(None, lines), f"  {counted(n_left, 'other column')}: a shows all."]


def _side_by_side(words: list[str], width: int) -> list[str]:
    """Indented lines of at most `width` characters, unless one of the `words` is longer."""
    lines = [""]
    for word in words:
        if lines[-1] and len(lines[-1]) + 3 + len(word) > width:
            lines.append("")
        lines[-1] += ("   " if lines[-1] else "  ") + word
    return lines


def _numbers(session: LabelSession) -> str:
    """What the numbers of rows count."""
    words = first_row_words(session.fit.preparation.columns is not None)
    return f"{words.capitalize()}."


def _what_to_do(session: LabelSession, path: Path, asking: Asking) -> str:
    """What to do with the sheet, once it is written."""
    n_rows, name = len(session.sheet.rows), one_line(str(path))
    if asking == "find":
        return (
            f"{n_rows} rows from the top of the ranking: write 1 (anomaly) or 0 (normal) in the "
            f"column anomaly of {name}, and pass the file to gammagmm estimate --labels, with "
            "the sheets you have labelled before. These rows find anomalies, and the ranking "
            "learns from them. They do not show the share of anomalies: label rows with --purpose "
            "share for that. When you stop, --purpose check shows how many of all anomalies are "
            "found."
        )
    if asking == "check":
        return (
            f"{n_rows} random rows without a label: write 1 (anomaly) or 0 (normal) in the column "
            f"anomaly of {name}, for all of them, and pass the file to gammagmm estimate --labels, "
            "with the sheets you have labelled before. If all are normal, at least "
            f"{RECALL:.0%} of all anomalies are found (90% confidence)."
        )
    told = (
        f"{n_rows} rows to label: write 1 (anomaly) or 0 (normal) in the column anomaly of "
        f"{name}, for as many rows as you like from the top, and pass the file to gammagmm "
        "estimate --labels."
    )
    if any(session.before.label_error):  # the expected width is that with right labels
        return told
    some = (n for n in (10, n_rows) if n <= n_rows)
    widths = [
        f"{100.0 * session.before.expected_width(n):.0f} percentage points wide after {n} "
        f"label{'s' * (n > 1)}"
        for n in dict.fromkeys(some)
    ]
    return f"{told} The 90% interval is expected to be {' and '.join(widths)}."


class Dialogue:
    """Questions in the terminal for the labels of the rows without one."""

    def __init__(
        self,
        session: LabelSession,
        file: SheetFile,
        echo: Echo,
        asking: Asking = "share",
        *,
        shows_rank: bool = False,
    ) -> None:
        self.session, self.file, self.echo = session, file, echo
        self.asking, self.shows_rank = asking, shows_rank
        self.is_find = asking == "find"

    @cached_property
    def _usual(self) -> UsualValues:
        return self.session.fit.usual_values()

    def run(self) -> None:
        """Ask, and save each answer before the next question, until the person quits."""
        session, echo = self.session, self.echo
        if session.n_asked > 0:
            echo(f"{session.n_asked} of {len(session.sheet.rows)} rows have an answer already.")
        if session.waiting(self.asking):
            echo(f"{QUESTION} {_numbers(session)}")
        while (key := self._ask_next()) != "q":
            if key == "z":
                self._undo()
            elif key == "s":
                session.skip(session.waiting(self.asking)[0])
            elif key == "u":
                session.answer(session.waiting(self.asking)[0], None)
                self.file.save(session)
            else:
                self._answer(session.waiting(self.asking)[0], KEYS[key])

    def _ask_next(self) -> str:
        """The key that is the answer for the next row, or after the last one."""
        session = self.session
        if not session.waiting(self.asking):
            self._extend()
        if not (waiting := session.waiting(self.asking)):
            return _ask([END], "zq", self.echo)
        row, n_rows = waiting[0], len(session.sheet.rows)
        name = _name_of(session.fit, row, shows_rank=self.shows_rank)
        place, cells = session.sheet.rows.index(row) + 1, session.fit.table.cells(row)
        first = f"{place}/{n_rows}  {name}"
        if len(cells) <= MAX_COLUMNS:
            return _ask([first, *_all_columns(cells)], "ynuszq", self.echo)
        (reasons,) = self._usual.columns_of(session.fit.rows[[row]])
        key = _ask([first, *_odd_columns(reasons, cells)], "ynuszaq", self.echo)
        return _ask(_all_columns(cells), "ynuszq", self.echo) if key == "a" else key

    def _extend(self) -> None:
        """Add the next rows of the ranking, which is learned from the answers."""
        with warnings_as_lines(self.echo):
            if self.is_find:
                self.session.learn()
            n_more = self.session.extend(self.asking, N_AT_ONCE)
        if n_more:
            self.file.save(self.session)
        if n_more and self.is_find:
            rows = "row is the first" if n_more == 1 else f"{n_more} rows are the first"
            self.echo(f"  The next {rows} of the ranking after your answers so far.")

    def _undo(self) -> None:
        if (row := self.session.undo()) is None:
            self.echo("  There is nothing to undo.")
            return
        self.file.save(self.session)
        self.echo(f"  Row {self.session.fit.table.row_number(row)} has no answer now.")

    def _answer(self, row: int, label: int) -> None:
        """Save an answer, and tell what all of them mean."""
        session, echo = self.session, self.echo
        session.answer(row, label)
        self.file.save(session)
        with warnings_as_lines(echo):
            rows = session.labelled_rows
        known = rows.known_rows
        if self.asking == "check":
            for words in checked_words([*session.earlier, session.sheet], rows):
                echo(f"  {words}")
        elif self.is_find:
            echo(f"  {int(known.labels.sum())} of the {len(known)} labelled rows are anomalies.")
            if known.at_random.any():
                echo(f"  {left_sentence(rows.left, rows.n_for_recall)}")
        else:
            told = sentence(rows.posterior)
            if session.is_simple:
                told += f" {any_look_sentence(rows.interval_at_any_look())}"
            echo(f"  {told}")


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
