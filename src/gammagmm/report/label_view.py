"""A session of labelling -> what a page or a widget shows, as plain values for JSON."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast, get_args

from gammagmm._support.text import percent, visible
from gammagmm.estimator.label_session import Asking
from gammagmm.labels.sentences import any_look_sentence, check_sentence, left_sentence
from gammagmm.posterior.sentences import N_LABELS
from gammagmm.report.label_cards import Cards

if TYPE_CHECKING:
    from gammagmm.estimator.label_session import LabelSession, Progress
    from gammagmm.labels.sheet import Sheet

__all__ = ["LabelView", "MessageError"]

N_CARDS = 3
"""Cards that the page has in advance, so that the next one is there at once."""
FOR = {"share": "for the share", "find": "to find anomalies", "check": "for the check"}
"""What the answers to each kind of rows are for."""
N_MORE = 10
"""Rows that are added if a person goes on."""


class MessageError(ValueError):
    """A message that no page of ours sends."""


class LabelView:
    """The answers to the messages of a page: each is a dictionary, and so is its answer.

    Parameters
    ----------
    session : LabelSession
        The session.
    asking : "share", "find" or "again", default="share"
        What rows are asked for at first.
    save : callable
        Keeps the sheet of the session after each change; an `OSError` takes the change back.
    title : str, default=""
        Name of the table.
    place : str, default=""
        Where the answers are kept.
    command : str, default=""
        The command that uses the answers.
    """

    def __init__(
        self,
        session: LabelSession,
        asking: Asking = "share",
        *,
        save: Callable[[LabelSession], None],
        title: str = "",
        place: str = "",
        command: str = "",
    ) -> None:
        self.session = session
        self.asking: Asking = "check" if session.sheet.checked and asking != "again" else asking
        self._is_check = asking == "check"  # and nothing else
        self._save, self._fixed = save, {"title": title, "place": place, "command": command}
        self._cards = Cards(session.fit)
        self._version, self._first = 0, -1
        self.is_finished = False

    def handle(self, message: Any) -> dict[str, Any]:
        """The answer to a message."""
        kind = message.get("kind") if isinstance(message, dict) else None
        if kind == "look" and message.get("version") == self._version:
            return {"version": self._version}
        if kind == "open":
            return {**self._state(), **self._fixed, "columns": self._cards.columns()}
        before, asking = copy.copy(self.session), self.asking
        try:
            self._change(kind, message)
        except OSError as error:
            vars(self.session).update(vars(before))
            self.asking = asking
            return {**self._state(), "error": f"{error.strerror}: {error.filename}"}
        return self._state()

    def _change(self, kind: Any, message: dict[str, Any]) -> None:
        session, sheet = self.session, self.session.sheet
        changes: dict[Any, Callable[[], object]] = {
            "answer": lambda: session.answer(self._row(message), _label(message.get("label"))),
            "skip": lambda: session.skip(self._row(message)),
            "undo": self._undo,
            "ask": lambda: self._ask(message.get("asking")),
            "more": self._more,
            "skipped": session.ask_skipped,
            "finish": self._finish,
            "look": lambda: None,
        }
        if kind not in changes:
            raise MessageError(f"There is no message {kind!r}.")
        self._first = -1
        changes[kind]()
        if self._first < 0 and kind != "look":
            self.extend()
        if session.sheet is not sheet:
            self._save(session)
        self._version += kind != "look"

    def _undo(self) -> None:
        row = self.session.undo()
        self._first = -1 if row is None else row

    def _ask(self, asking: Any) -> None:
        session = self.session
        if asking not in get_args(Asking) or self._is_check:
            raise MessageError(f"Rows cannot be asked for {asking!r}.")
        if asking == "check" and not (session.sheet.checked or _can_check(session.progress)):
            raise MessageError("Nothing can be checked yet.")
        if asking in ("share", "find") and session.sheet.checked:
            raise MessageError("The rows of the check come last.")
        self.asking = cast("Asking", asking)

    def _more(self) -> None:
        self.session.n[self.asking] += N_MORE

    def _finish(self) -> None:
        self.is_finished = True

    def extend(self) -> None:
        """Have rows in advance: few from the top of the ranking, which the next answers change."""
        if self.asking == "share" and not self.session.waiting("share"):
            self.session.extend("share", N_MORE)
        elif self.asking == "find":
            self.session.extend("find", max(0, N_CARDS - len(self.session.waiting("find"))))
        elif self.asking == "check":
            self.session.extend("check", 0)
        if self._cards.fit is not self.session.fit:  # more rows of a large table are held
            self._cards = Cards(self.session.fit)

    def _row(self, message: dict[str, Any]) -> int:
        row = message.get("row")
        if not isinstance(row, int) or row not in self.session.sheet.rows:
            raise MessageError(f"The row {row!r} is not in the sheet.")
        return row

    def _state(self) -> dict[str, Any]:
        """What the page shows now."""
        session = self.session
        waiting = session.waiting(self.asking)
        if self._first >= 0:  # what was undone is asked for next
            waiting = [self._first, *(row for row in waiting if row != self._first)]
        progress = session.progress
        may_stop, stop = _stop_words(progress, self.asking, session.sheet)
        return {
            "version": self._version,
            "asking": self.asking,
            "is_finished": self.is_finished,
            "person": visible(session.person),
            "switches": self._switches(progress),
            "cards": [self._cards.card(row) for row in waiting[:N_CARDS]],
            "n_waiting": len(waiting),
            "n_skipped": self._n_skipped(),
            "counter": self._counter(),
            "can_repeat": bool(session.person and progress.n_answers),
            "progress": _words_of(progress),
            "may_stop": may_stop,
            "stop": stop,
            "disputed": [self._dispute(row) for row in progress.disputed],
        }

    def _switches(self, progress: Progress) -> list[str]:
        """What a person can ask for instead; the rows of a check come last."""
        if self._is_check:
            return []
        if self.session.sheet.checked:
            return ["check"]
        return ["share", "find", *["check"] * _can_check(progress)]

    def _counter(self) -> str:
        """How far the person is."""
        session, sheet = self.session, self.session.sheet
        if self.asking == "again":
            return f"{len(session.waiting('again')):,} left"
        answers = [sheet.label_of(row) for row in sheet.rows if sheet.purpose(row) == self.asking]
        n_answers = sum(answer is not None for answer in answers)
        n_asked = len(answers) if self.asking == "check" else session.n[self.asking]
        return f"{n_answers:,} of {n_asked:,} answered {FOR[self.asking]}"

    def _n_skipped(self) -> int:
        """Rows of this kind that were asked for and have no answer."""
        session = self.session
        waiting, purpose = set(session.waiting(self.asking)), session.sheet.purpose
        return sum(
            answer is None and purpose(row) == self.asking and row not in waiting
            for row, answer in zip(session.sheet.rows, session.sheet.answers, strict=True)
        )

    def _dispute(self, row: int) -> dict[str, Any]:
        said = self.session.sheet.said
        answers = [[visible(name), own[row]] for name, own in said.items() if row in own]
        return {"number": self.session.fit.table.row_number(row), "answers": answers}


def _label(label: Any) -> int | None:
    if label is not None and (isinstance(label, bool) or label not in (0, 1)):
        raise MessageError(f"{label!r} is no label.")
    return None if label is None else int(label)


def _words_of(progress: Progress) -> dict[str, Any]:
    """What the answers show, in numbers and words."""
    left = progress.left
    shown: dict[str, Any] = {
        "n_answers": progress.n_answers,
        "n_anomalies": progress.n_anomalies,
        "n_unsure": progress.n_unsure,
        "n_drawn": progress.n_drawn,
        "found": list(progress.found),
        "searched": list(progress.searched),
        "share": None,
        "share_words": "Answers to random rows will show it.",
        "left": None,
        "left_words": "Label some rows for the share first: only they show how many are left.",
    }
    if progress.n_drawn:
        low, high = progress.interval
        ends = f"{percent(low)} to {percent(high)}"
        share = {"mean": progress.mean, "low": low, "high": high, "ends": ends, "any_look": None}
        shown["share_words"] = "90% interval, by your answers and public tables."
        if progress.any_look is not None:
            low, high = progress.any_look
            looked = {"low": low, "high": high, "ends": f"{percent(low)} to {percent(high)}"}
            share["any_look"] = looked
            shown["share_words"] = any_look_sentence()
            share["words"] = (
                f"With public tables: about {percent(progress.mean)} (90% interval {ends})."
            )
        shown["share"] = share
        shown["left"] = {
            "words": _about(left.recall),
            "recall": left.recall,
            "low": left.low_recall,
            "high": left.high_recall,
        }
        shown["left_words"] = left_sentence(left, None)
    return shown


def _can_check(progress: Progress) -> bool:
    """Whether a check can show something: an anomaly is found, and rows are left."""
    return bool(progress.left.n_found and progress.left.n_rows and progress.n_to_certify)


def _stop_words(progress: Progress, asking: Asking, sheet: Sheet) -> tuple[bool, str]:
    """Whether the person may stop, and why."""
    if (check := progress.check) is not None:
        verdict = "You may stop" if check.is_certified else "Not yet"
        words = f"{verdict}. {check_sentence(check.n_labels, check, check.n_labels)}"
        return check.is_certified, words
    if n_check := len(sheet.checked):
        return False, f"Not yet: the check needs answers to all of its {n_check:,} rows."
    if not progress.left.n_rows:
        return True, "You may stop: every row has an answer."
    if asking == "find":
        if not _can_check(progress):
            return False, "Not yet: no anomaly is found."
        return False, (
            "Not yet shown that most are found. When you find no more, check with "
            f"{progress.n_to_certify:,} random rows, which then come last."
        )
    n_more = N_LABELS - progress.n_drawn
    if n_more > 0:
        return False, f"Not yet: label {n_more:,} more random row{'s' * (n_more > 1)}."
    return True, "You may stop: more answers only make the range narrower."


def _about(share: float) -> str:
    """A share in whole per cent, which are 100 only if it is all."""
    return f"about {min(100.0 * share, 99.0):.0f}%" if share < 1.0 else "100%"
