"""A history with new periods -> the text and the JSON of ``gammagmm monitor``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from gammagmm._support.text import aligned, listed, one_line, percent
from gammagmm.cli.output import MAX_GROUPS
from gammagmm.errors import Note
from gammagmm.monitoring.periods import order_notes
from gammagmm.monitoring.sentences import (
    METHOD,
    NOT_ANOMALIES,
    column_words,
    label_sentence,
    next_sentence,
    promise_sentence,
    state_sentence,
    state_words,
)

if TYPE_CHECKING:
    from gammagmm.monitoring.counts import Count, Period
    from gammagmm.monitoring.history import History
    from gammagmm.monitoring.states import State

__all__ = ["Counted", "history_data", "monitor_json", "monitor_text"]

MAX_PERIODS = 14
"""Most periods in the text."""
START_AGAIN = "Start a new history: the periods before were counted by other scores."


@dataclass(frozen=True)
class Counted:
    """What a call has counted.

    Attributes
    ----------
    before : History or None
        The history before the call; None if there was none.
    history : History
        The history with the counted periods.
    names : set of str
        Names of the counted periods.
    """

    before: History | None
    history: History
    names: set[str]

    @property
    def newest(self) -> Period:
        """The last of the counted periods, or of all if none was counted."""
        own = [period for period in self.history.periods if period.name in self.names]
        return (own or self.history.periods)[-1]

    @property
    def is_news(self) -> bool:
        """Whether this is the first call of a history, or a state has changed."""
        if self.before is None:
            return True
        pairs = [
            ({"": one.state} | one.changed_groups()).items() for one in (self.before, self.history)
        ]
        was, now = ({(name, s.kind, s.since) for name, s in own} for own in pairs)
        return was != now

    @property
    def late(self) -> list[Note]:
        """Notes about counted periods that are earlier than those before, or of another length."""
        known = () if self.before is None else self.before.periods
        return order_notes([period.name for period in known], self.names)

    @property
    def changes(self) -> list[Note]:
        """The periods of the history before the call that were replaced or dropped."""
        now = {period.name: period for period in self.history.periods}
        notes = []
        for was in () if self.before is None else self.before.periods:
            what, own = "", now.get(was.name)
            if own is None:
                what = "dropped"
            elif was.name in self.names:
                what = "replaced"
            subject, groups = f"Period {was.name}", ""
            if own is not None and (lost := sorted(was.groups.keys() - own.groups.keys())):
                reason = "" if own.groups else ", because --by is missing"
                own_note = Note.of("history.groups", subject, reason=reason, groups=listed(lost))
                groups = f" {own_note.message}"
                notes += [] if what else [own_note]
            if what:
                had = {"what": what, "had": _above(was.count), "groups": groups}
                notes.append(Note.of("history.period", subject, **had))
        return notes


def _above(count: Count) -> str:
    return f"{count.n_above:,} of {count.n_rows:,} rows above the threshold"


def monitor_text(counted: Counted, fit_notes: Sequence[Note]) -> str:
    """The new periods as a table, the groups of the newest one, what changed, and the state."""
    history, new, newest = counted.history, counted.names, counted.newest
    records, own = history.to_records(), new or {newest.name}
    of_all = [line for line in records if line["period"] in own and not line["group"]]
    tables = [aligned(_table("period", of_all[-MAX_PERIODS:]), n_words=1)]
    if len(of_all) > MAX_PERIODS:
        tables[0] += f"\nThese are the newest {MAX_PERIODS} of {len(of_all):,} periods."
    of_groups = [r for r in records if r["period"] == newest.name and r["group"] in newest.groups]
    if newest.groups:
        largest = sorted(of_groups, key=lambda line: -line["n_rows"])[:MAX_GROUPS]
        table = aligned(_table("group", largest), n_words=1)
        tables.append(f"Groups in {one_line(newest.name)}:\n{table}")
        if len(of_groups) > MAX_GROUPS:
            tables[-1] += f"\nThese are the {MAX_GROUPS} largest of {len(of_groups):,} groups."
            tables[-1] += " --json prints all."
    changes = [f"{one_line(note.subject)} {one_line(note.message)}" for note in counted.changes]
    changed_detectors = [
        f"Detector {one_line(note.subject)} {one_line(note.message)}. {START_AGAIN}"
        for note in fit_notes
        if note.step == "load"
    ]
    lines = [*changes, *changed_detectors]
    return "\n\n".join([*tables, "\n".join([*lines, *_sentences(counted)])])


def _table(first: str, records: Sequence[dict[str, Any]]) -> list[list[str]]:
    """Head and lines of a table; its first column is the period or the group."""
    table = [[first, "rows", "above the threshold", "share", "exact range (90%)", "state"]]
    for line in records:
        counts = [f"{line['n_rows']:,}", f"{line['n_above']:,}"]
        share = percent(line["share"]) if line["n_rows"] else ""
        interval = f"{percent(line['low'])} to {percent(line['high'])}" if line["n_rows"] else ""
        table.append([one_line(line[first]), *counts, share, interval, line["state"]])
    return table


def _sentences(counted: Counted) -> list[str]:
    """What the answer says below the tables."""
    history, newest = counted.history, counted.newest
    reference = history.reference
    n_above, n_rows = newest.count.n_above, newest.count.n_rows
    if n_rows:
        low, high = (percent(end) for end in newest.count.interval())
        lines = [
            f"In {one_line(newest.name)}, {n_above:,} of {n_rows:,} rows lie above the threshold "
            f"({percent(newest.count.share)}, exact range (90%) {low} to {high}). Of the "
            f"training rows, {reference.n_above:,} of {reference.n_rows:,} do "
            f"({percent(reference.share)})."
        ]
    else:
        lines = [f"{one_line(newest.name)} has no rows."]
    if newest.n_filled:
        lines.append(f"{newest.n_filled:,} missing values of it were filled in.")
    if history.label_shares and history.label_shares[-1].period in counted.names:
        lines.append(label_sentence(history.label_shares[-1]))
    groups = [
        f"Group {one_line(name)!r}: {state_words(history, state)}."
        for name, state in history.changed_groups().items()
    ]
    lines += [state_sentence(history), column_words(history), *groups, next_sentence(history)]
    if counted.is_news:
        divided = " It covers all rows and every group (Bonferroni)." if newest.groups else ""
        lines += [f"{promise_sentence(history)}{divided}", NOT_ANOMALIES]
    return [line for line in lines if line]


def history_data(history: History) -> dict[str, Any]:
    """What every answer says of the history, for JSON."""
    reference = history.reference
    return {
        "reference": {
            "n_rows": reference.n_rows,
            "n_above": reference.n_above,
            "share": reference.share,
            "exact_range_90": list(reference.interval()),
        },
        "n_periods": len(history.periods),
        "alpha": history.alpha,
        "method": METHOD,
        "state": _state_data(history, history.state),
        "columns": [
            {
                "name": column.name,
                "distance": column.distance,
                "deviations": column.deviations,
                "p_value": column.p_value,
                "is_higher": column.is_higher,
            }
            for column in history.moved_columns
        ],
        "labels": [asdict(share) for share in history.label_shares],
        "groups": {
            name: _state_data(history, state) for name, state in history.changed_groups().items()
        },
    }


def _state_data(history: History, state: State) -> dict[str, Any]:
    names = [period.name for period in history.periods]
    change = state.change
    return {
        "kind": state.kind,
        "is_alarm": state.is_alarm,
        "since": names[state.since] if state.since < len(names) else None,
        "changed": None if state.changed is None else names[state.changed],
        "n_quiet": state.n_quiet,
        "n_learning": state.n_learning,
        "is_learning": state.is_learning,
        "window": change and change.window,
        "p_value": change and change.p_value,
        "level": change and change.level,
        "share_before": change and change.base.share,
    }


def monitor_json(counted: Counted, notes: Sequence[Note]) -> str:
    """The new periods, the state and the notes as JSON."""
    history = counted.history
    records = [line for line in history.to_records() if line["period"] in counted.names]
    data = history_data(history) | {
        "periods": [
            {name: None if value != value else value for name, value in line.items()}
            for line in records
        ],
        "notes": [note.to_data() for note in notes],
    }
    return json.dumps(data, indent=2, allow_nan=False)
