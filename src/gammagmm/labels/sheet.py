"""Rows in the order in which people label them, and what they answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from gammagmm.labels.labelled_rows import LabelledRows
    from gammagmm.labels.recall import RecallResult

__all__ = ["RECALL", "UNNAMED", "Sheet", "recall_check"]

UNNAMED = "first person"
"""Name of the person whose answers have no name, beside those of a named one."""
RECALL = 0.8
"""Share of all anomalies that the rows of a check are to show."""


@dataclass(frozen=True)
class Sheet:
    """Training rows in the order in which people label them.

    The answer of a row that counts is the last one. If a person who has a name answers, the answers
    of each person are kept as well.
    """

    rows: tuple[int, ...] = ()  # positions among the training rows, from 0
    answers: tuple[int | None, ...] = ()  # None where there is no answer yet
    picked: frozenset[int] = frozenset()  # those that are no random sample of all rows
    checked: frozenset[int] = frozenset()  # of these, random ones to check what was found
    unsure: frozenset[int] = frozenset()  # those that a person looked at and could not answer
    simple: frozenset[int] = frozenset()  # those that were drawn in simple random order
    said: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    """Label of each row that a person answered, by the name of the person."""

    def answered(self, *, picked: bool) -> tuple[list[int], list[int]]:
        """Rows that have an answer, and their labels: those that were picked, or the others."""
        given = [
            (row, label)
            for row, label in zip(self.rows, self.answers, strict=True)
            if label is not None and (row in self.picked) == picked
        ]
        return [row for row, _ in given], [label for _, label in given]

    @property
    def of_check(self) -> list[tuple[int, int | None]]:
        """Rows of a check and their answers."""
        pairs = zip(self.rows, self.answers, strict=True)
        return [(row, answer) for row, answer in pairs if row in self.checked]

    @property
    def n_answers(self) -> int:
        """Number of rows that have an answer."""
        return sum(answer is not None for answer in self.answers)

    @property
    def disputed(self) -> tuple[int, ...]:
        """Rows that two people answered differently."""
        labels = {row: {own[row] for own in self.said.values() if row in own} for row in self.rows}
        return tuple(row for row, found in labels.items() if len(found) > 1)

    @property
    def answered_twice(self) -> list[tuple[int, int]]:
        """Both labels of each row that two people answered; of more people, the first two."""
        found = ([own[row] for own in self.said.values() if row in own] for row in self.rows)
        return [(labels[0], labels[1]) for labels in found if len(labels) > 1]

    def label_of(self, row: int) -> int | None:
        """The answer of a row that counts; None if it has none."""
        return self.answers[self.rows.index(row)]

    def answer(self, row: int, label: int | None, person: str = "") -> Sheet:
        """The sheet with another answer of a person for one row; None takes it back.

        What other people answered is kept, and counts again if the answer is taken back.
        """
        place, said = self.rows.index(row), {name: dict(own) for name, own in self.said.items()}
        before, name = self.answers[place], person or UNNAMED
        if (person or said) and before is not None and not any(row in own for own in said.values()):
            said.setdefault(UNNAMED, {})[row] = before
        if person or said:
            others = [own[row] for other, own in said.items() if row in own and other != name]
            said.setdefault(name, {}).pop(row, None)
            if label is not None:
                said[name][row] = label
            else:
                label = others[-1] if others else None
        return replace(
            self,
            answers=(*self.answers[:place], label, *self.answers[place + 1 :]),
            unsure=self.unsure - {row},
            said={name: own for name, own in said.items() if own},
        )

    def leave_unsure(self, row: int, person: str = "") -> Sheet:
        """The sheet in which a person cannot answer a row."""
        sheet = self.answer(row, None, person)
        return replace(sheet, unsure=sheet.unsure | {row})

    def label(self, rows: LabelledRows, *, at_random: bool = True) -> LabelledRows:
        """The `rows` with the answers; without `at_random`, all are a list of the user's own."""
        answered = (self.answered(picked=p) for p in (False, True))
        (drawn, their_labels), (picked, labels) = (
            (rows.sample.number(np.array(places, dtype=np.intp)), given)
            for places, given in answered
        )
        if not at_random:
            both = np.append(drawn, picked)
            return rows.update(both, [*their_labels, *labels], at_random=False)
        return rows.update(drawn, their_labels).update(picked, labels, purpose="find")

    def purpose(self, row: int) -> str:
        """What a row was chosen for."""
        return "check" if row in self.checked else "find" if row in self.picked else "share"

    def extend(self, rows: Sequence[int], purpose: str, *, is_simple: bool = False) -> Sheet:
        """The sheet with more rows at its end, without answers.

        A row that was picked before, and is drawn at random now, becomes one of those. A row of a
        check belongs to it alone: it has no answer before. With `is_simple`, the rows come in
        simple random order.
        """
        new = [row for row in rows if row not in self.rows]
        own = rows if purpose == "check" else new
        return replace(
            self,
            rows=(*self.rows, *new),
            answers=(*self.answers, *(None,) * len(new)),
            picked=self.picked - set(rows) if purpose == "share" else self.picked | set(own),
            checked=self.checked | set(rows if purpose == "check" else ()),
            simple=self.simple | set(rows if is_simple else ()),
            unsure=self.unsure - set(rows if purpose == "check" else ()),
        )


def recall_check(sheets: Sequence[Sheet], rows: LabelledRows) -> RecallResult | None:
    """What the rows of a check among the `sheets` show, if there are any and all have answers.

    `rows` have the labels of all sheets.
    """
    from gammagmm.labels.recall import RecallCheck

    labels = {row: label for sheet in sheets for row, label in sheet.of_check}
    given = [label for label in labels.values() if label is not None]
    if not labels or len(given) < len(labels):
        return None
    checked, known = np.array([*labels]), rows.known_rows
    before = known[~np.isin(known.rows, checked)]
    n_left, n_found = rows.n_rows - len(before), int(before.labels.sum())
    return RecallCheck(checked, n_left, n_found, RECALL, 0.9).result(given)
