"""Rows that a person labels one after the other, and what the labels show so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from gammagmm.labels.sheet import UNNAMED, Sheet, recall_check

if TYPE_CHECKING:
    from gammagmm.estimator.fit_result import Fit
    from gammagmm.labels.labelled_rows import LabelledRows
    from gammagmm.labels.recall import AnomaliesLeft, RecallResult

__all__ = ["Asking", "LabelSession", "Progress"]

Asking = Literal["share", "find", "check", "again"]
"""What rows are asked for: the share of anomalies, anomalies, what is found, or second answers."""

N_AHEAD = 40
"""Rows at the top of a learned ranking that are kept for the next questions."""


@dataclass(frozen=True)
class Progress:
    """What the answers of a session show.

    Attributes
    ----------
    n_answers : int
        Number of rows with an answer.
    n_anomalies : int
        Number of anomalies among them.
    n_unsure : int
        Number of rows that a person looked at and could not answer.
    n_drawn : int
        Number of rows with an answer that were chosen at random, which show the share.
    mean : float
        Posterior mean of the share of anomalies.
    interval : tuple of two floats
        The 90 % interval of the posterior.
    any_look : tuple of two floats or None
        The 90 % confidence interval that is valid however often it is checked; None if the rows
        are not in simple random order.
    left : AnomaliesLeft
        How many anomalies are left.
    n_to_certify : int or None
        Number of random rows which, all normal, would show that 80 % of the anomalies are found;
        None if that cannot be said.
    check : RecallResult or None
        What the rows of a check show, once all of them have an answer.
    found : tuple of int
        Number of anomalies among the first 1, 2, ... rows with an answer.
    searched : tuple of bool
        Whether each of these rows comes from the top of the ranking.
    disputed : tuple of int
        Rows that two people answered differently.
    """

    n_answers: int
    n_anomalies: int
    n_unsure: int
    n_drawn: int
    mean: float
    interval: tuple[float, float]
    any_look: tuple[float, float] | None
    left: AnomaliesLeft
    n_to_certify: int | None
    check: RecallResult | None
    found: tuple[int, ...]
    searched: tuple[bool, ...]
    disputed: tuple[int, ...]


class LabelSession:
    """Rows of a fit that people label, in the order in which they are asked for.

    It is the same for a page, a dialogue and a notebook, so that the same answers give the same
    posterior. Each answer belongs to a row, so that several windows can answer at the same time.

    Parameters
    ----------
    fit : Fit
        The fit whose rows are labelled. Labels that it has stay.
    sheet : Sheet, default=Sheet()
        The rows so far, and their answers.
    n : int, default=30
        Number of rows for the share, and of rows to find anomalies.
    earlier : sequence of Sheet, default=()
        Other sheets with labels.
    person : str, default=""
        Name of the person who answers.
    rng : Generator, default=None
        Chooses the rows for the share.

    Attributes
    ----------
    sheet : Sheet
        The rows and all answers.
    fit : Fit
        The fit, which holds all rows of the sheet.
    """

    def __init__(
        self,
        fit: Fit,
        sheet: Sheet | None = None,
        *,
        n: int = 30,
        earlier: Sequence[Sheet] = (),
        person: str = "",
        rng: np.random.Generator | None = None,
    ) -> None:
        self.fit, self.sheet = fit, Sheet() if sheet is None else sheet
        self.n: dict[Asking, int] = {"share": n, "find": n, "check": n, "again": n}
        self.person = person
        self.earlier = tuple(earlier)
        self._rng = np.random.default_rng() if rng is None else rng
        # Rows in the order in which they are asked for; those before `_at` have been.
        answers = zip(self.sheet.rows, self.sheet.answers, strict=True)
        self._order = [row for row, _ in sorted(answers, key=lambda pair: pair[1] is None)]
        self._at = self.sheet.n_answers
        self._ranked: list[int] = []
        self.before = self._labelled_before()

    def _has_answer(self, row: int) -> bool:
        return self.sheet.label_of(row) is not None

    def _labelled_before(self) -> LabelledRows:
        rows = self.fit.labelled_rows
        for each in self.earlier:
            rows = each.label(rows)
        return rows

    def rest_on(self, fit: Fit) -> None:
        """Go on with another fit of the same rows, which has more labels."""
        self.fit = fit
        self.before = self._labelled_before()

    @property
    def labelled_rows(self) -> LabelledRows:
        """The rows with all answers."""
        return self.sheet.label(self.before)

    @property
    def labelled(self) -> Fit:
        """The fit with all answers, which teach its ranking."""
        return self.fit.with_labels(self.labelled_rows)

    def waiting(self, asking: Asking) -> list[int]:
        """The rows to ask for next, in this order."""
        if asking == "again":
            mine = self.sheet.said.get(self.person or UNNAMED, {})
            return [r for r in self.sheet.rows if self._has_answer(r) and r not in mine]
        seen, purpose = self.sheet.unsure, self.sheet.purpose
        rows = self._order[self._at :]
        return [row for row in rows if purpose(row) == asking and row not in seen]

    @property
    def is_simple(self) -> bool:
        """Whether all random rows with labels come in simple random order.

        Sheets know it of their rows. How others were drawn is not known.
        """
        known, own = self.before.known_rows, self.sheet.answered(picked=False)[0]
        simple = {row for each in self._sheets for row in each.simple}
        return simple.issuperset([*known.rows[known.at_random].tolist(), *own])

    @property
    def _sheets(self) -> tuple[Sheet, ...]:
        return (*self.earlier, self.sheet)

    @property
    def n_asked(self) -> int:
        """Number of rows that have been asked for."""
        return self._at

    def answer(self, row: int, label: int | None) -> None:
        """Keep the answer for a row of the sheet; None if the person is not sure."""
        if label is None:
            self.sheet = self.sheet.leave_unsure(row, self.person)
        else:
            self.sheet = self.sheet.answer(row, label, self.person)
        self._pass(row)

    def skip(self, row: int) -> None:
        """Ask for this row once the others have been asked for."""
        self._pass(row)

    def _pass(self, row: int) -> None:
        at = self._at - (row in self._order[: self._at])
        others = [each for each in self._order if each != row]
        self._order, self._at = [*others[:at], row, *others[at:]], at + 1

    def undo(self) -> int | None:
        """The row that was asked for last, which has no answer of this person now."""
        if not self._at:
            return None
        self._at -= 1
        row = self._order[self._at]
        self.sheet = self.sheet.answer(row, None, self.person)
        return row

    def ask_skipped(self) -> None:
        """Ask again for the rows that have been asked for and have no answer."""
        self.sheet = replace(self.sheet, unsure=frozenset())
        asked = self._order[: self._at]
        given = [row for row in asked if self._has_answer(row)]
        self._order = [*given, *(r for r in asked if r not in given), *self._order[self._at :]]
        self._at = len(given)

    def learn(self, sheet: Sheet | None = None) -> Fit:
        """The fit with the answers of a `sheet`, by default all, whose ranking is used from now on.

        It changes nothing else, so that another thread can call it.
        """
        sheet = self.sheet if sheet is None else sheet
        fit = self.fit.with_labels(sheet.label(self.before))
        n_waiting = len(sheet.rows) - sheet.n_answers
        n_ranked = min(N_AHEAD + n_waiting, fit.sample.n_rows - len(fit.known))
        self._ranked = fit.rows_to_find(n_ranked, self._rng).tolist() if n_ranked > 0 else []
        return fit

    def extend(self, asking: Asking, n_at_once: int) -> int:
        """Number of rows that were added to the sheet: at most `n_at_once` to find anomalies.

        There are `n` rows for the same purpose, or as many as the table has. Rows to find anomalies
        are those of the ranking that was learned last. The rows of a check stay, whatever they
        look like, and no others come after them: only then does the check hold.
        """
        n_rows = len(self.sheet.rows)
        if self.sheet.checked:
            return 0
        if asking == "find":
            self._pick(min(self.n["find"] - len(self.sheet.picked), n_at_once))
        elif asking == "share":
            self._draw()
        elif asking == "check":
            labelled = self.labelled_rows
            if labelled.n_for_recall is not None:
                self._add(labelled.certify(random_state=self._rng).rows.tolist(), "check")
        return len(self.sheet.rows) - n_rows

    def _add(self, rows: list[int], purpose: str) -> None:
        is_simple = purpose == "share" and self.fit.table.groups is None
        self.sheet = self.sheet.extend(rows, purpose, is_simple=is_simple)
        self._order = [*self._order, *(row for row in rows if row not in self._order)]

    def _pick(self, n_more: int) -> None:
        if n_more < 1:
            return
        if not (numbers := self._top()[:n_more]):
            self.learn()
            numbers = self._top()[:n_more]
        top = np.array(numbers, dtype=np.intp)
        held = self.fit.holding(np.sort(top))
        if held is not self.fit:
            self.fit = held
            self.before = self._labelled_before()
        self._add(self.fit.sample.places(top).tolist(), "find")

    def _top(self) -> list[int]:
        """Numbers of the rows at the top of the ranking that are not in the sheet."""
        rows = self.fit.sample.number(np.array(self.sheet.rows, dtype=np.intp))
        return [number for number in self._ranked if number not in set(rows.tolist())]

    def _draw(self) -> None:
        n_more = self.n["share"] - len(self.sheet.rows) + len(self.sheet.picked)
        if not self.sheet.picked:
            self._add(self._sample(n_more), "share")
            return
        # A row that was picked before may be drawn. It counts as drawn once those drawn before it
        # have been asked for: otherwise the answers so far would come from the top of the ranking.
        while n_more > 0 and not self.waiting("share") and (new := self._sample(1)):
            self._add(new, "share")
            n_more -= 1

    def _sample(self, n_more: int) -> list[int]:
        """Places of more rows that are chosen at random, outside the samples before."""
        sample, rows = self.fit.sample, self.fit.labelled_rows
        # Rows that were picked can be chosen again: without them, this would be no random sample.
        before = {row for each in self._sheets for row in each.rows if row not in each.picked}
        # Known with any label, these rows are not suggested again.
        known = rows.known_rows.add(
            list(before), [0] * len(before), at_random=False, n_rows=sample.n_held
        )
        n_more = min(n_more, len(known[~known.picked].unknown(sample.n_sampled)))
        if n_more < 1:
            return []
        groups = self.fit.table.sampled.groups
        by = None if groups is None else groups.values
        chosen = replace(rows, known_rows=known).suggest(
            n_more, spread=by is not None, by=by, random_state=self._rng
        )
        return sample.places(chosen).tolist()

    @property
    def progress(self) -> Progress:
        """What the answers show."""
        rows, sheet = self.labelled_rows, self.sheet
        pairs = zip(sheet.rows, sheet.answers, strict=True)
        answers = [(answer, sheet.purpose(row)) for row, answer in pairs if answer is not None]
        given, known = [answer for answer, _ in answers], rows.known_rows
        return Progress(
            n_answers=sheet.n_answers,
            n_anomalies=sum(given),
            n_unsure=len(sheet.unsure),
            n_drawn=int(known.at_random.sum()),
            mean=rows.posterior.mean,
            interval=rows.posterior.interval(),
            any_look=rows.interval_at_any_look() if self.is_simple else None,
            left=rows.left,
            n_to_certify=rows.n_for_recall,
            check=recall_check(self._sheets, rows),
            found=tuple(np.cumsum(given, dtype=int).tolist()),
            searched=tuple(purpose == "find" for _, purpose in answers),
            disputed=sheet.disputed,
        )
