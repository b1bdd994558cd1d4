"""A history of `monitor` -> one HTML page that needs no other file and sends no request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gammagmm._support.files import write_document
from gammagmm._support.text import percent, visible
from gammagmm.monitoring.columns import LEVEL
from gammagmm.monitoring.sentences import (
    NOT_ANOMALIES,
    column_words,
    next_sentence,
    promise_sentence,
    state_reason,
    state_title,
    state_words,
)
from gammagmm.report.page import asset, template
from gammagmm.report.svg import ShareLine, series_axis_svg, series_svg, share_scale

if TYPE_CHECKING:
    from gammagmm.monitoring.columns import MovedColumn
    from gammagmm.monitoring.history import History
    from gammagmm.monitoring.watched_row import WatchedRow

__all__ = ["render_watch", "write_watch"]

MAX_DRAWN = 100
"""Most periods in the picture and in the table, the newest ones."""
MAX_COLUMNS, MAX_ROWS, MAX_GROUPS = 20, 50, 30
"""Most columns, rows and groups on the page."""
MAX_NAME = 60
"""Most characters of a name."""
BAR, BARS_HEIGHT = 14, 34
"""Width of a bar of the small picture of a column, and its height, in pixels."""


def write_watch(
    history: History, path: Any, rows: Sequence[WatchedRow] = (), overwrite: bool = False
) -> None:
    """Write the page to `path`, completely or not at all."""
    write_document(render_watch(history, rows), path, overwrite)


def render_watch(history: History, rows: Sequence[WatchedRow] = ()) -> str:
    """The page as HTML; `rows` are the first rows above the threshold."""
    first = max(0, len(history.periods) - MAX_DRAWN)
    columns = history.all_columns[:MAX_COLUMNS]
    labels = [
        ShareLine(_cut(own.period), own.n_labels, own.n_anomalies, own.mean, own.low, own.high)
        for own in history.label_shares[-MAX_DRAWN:][::-1]
    ]
    changed = list(history.changed_groups().items())
    has_filled = any(period.n_filled for period in history.periods)
    filled = {"filled values": "n"} if has_filled else {}
    heads = {"period": "", "rows": "n", "above the threshold": "n", "share": "n"}
    return template("watch.html").render(
        history=history,
        title=state_title(history),
        state=_lead(history),
        why=column_words(history),
        following=next_sentence(history),
        promise=promise_sentence(history),
        not_anomalies=NOT_ANOMALIES,
        axis=series_axis_svg(history, MAX_DRAWN),
        series=series_svg(history, MAX_DRAWN, 0.0),
        lines=_lines(history, first)[::-1],
        has_filled=has_filled,
        heads=heads | {"usual range": ""} | filled | {"state": ""},
        columns=[ColumnLine.of(column) for column in columns],
        rows=rows[:MAX_ROWS],
        groups=[(_cut(name), state_words(history, own)) for name, own in changed[:MAX_GROUPS]],
        n_groups=len(changed),
        labels=labels,
        overall=_overall(history),
        scale=share_scale(labels, _overall(history)) if labels else None,
        style=asset("style.css") + asset("page.css") + asset("watch.css"),
    )


@dataclass(frozen=True)
class ColumnLine:
    """A line of the table of columns."""

    name: str
    is_moved: bool
    words: str
    deviations: float
    picture: str

    @classmethod
    def of(cls, column: MovedColumn) -> ColumnLine:
        """The line of a column."""
        was, now = column.below
        what, is_binary = "rows", len(column.ends) == 1
        if is_binary:
            was, now = 1.0 - was, 1.0 - now
        if not column.is_text:
            side = "above" if is_binary else "at most"
            what = f"values were {side} {column.ends[column.end]:,.6g}"
        return cls(
            _cut(column.name),
            column.p_value <= LEVEL,
            f"{percent(was)} of the {what}, now {percent(now)}",
            column.deviations,
            bars_svg(column.before, column.now),
        )


def _cut(name: str) -> str:
    return visible(name if len(name) <= MAX_NAME else f"{name[:MAX_NAME]}…")


def _lead(history: History) -> str:
    """The sentence about the state without the words of the title."""
    words = state_reason(history)
    return words[:1].upper() + words[1:]


def _lines(history: History, first: int) -> list[dict[str, Any]]:
    """The newest periods, with the usual range of each."""
    found = []
    for t in range(first, len(history.periods)):
        count, (low, high) = history.periods[t].count, history.usual_ranges[t]
        found.append(
            {
                "name": _cut(history.periods[t].name),
                "n_rows": count.n_rows,
                "n_above": count.n_above,
                "share": percent(count.share) if count.n_rows else "",
                "usual": "" if np.isnan(low) else f"{percent(low)} to {percent(high)}",
                "state": history.states[t].kind,
                "n_filled": history.periods[t].n_filled,
                "is_changed": t in history.changed_places,
            }
        )
    return found


def _overall(history: History) -> float:
    """The share of anomalies among all labelled rows; 0 without labels."""
    labels = [period.labels for period in history.periods if period.labels is not None]
    n_labels = sum(own.n_labels for own in labels)
    return sum(own.n_anomalies for own in labels) / n_labels if n_labels else 0.0


def bars_svg(before: Sequence[float], now: Sequence[float]) -> str:
    """The shares of the rows in each part of a column: before as bars, now as a line."""
    top, n = max(*before, *now, 1e-9), len(before)
    height = [(BARS_HEIGHT - 2) * share / top for share in (*before, *now)]
    bars = "".join(
        f'<rect class="before" x="{BAR * j + 1}" y="{BARS_HEIGHT - h:.1f}" width="{BAR - 2}" '
        f'height="{h:.1f}"/>'
        for j, h in enumerate(height[:n])
    )
    steps = " ".join(
        f"L{BAR * j} {BARS_HEIGHT - h:.1f} L{BAR * (j + 1)} {BARS_HEIGHT - h:.1f}"
        for j, h in enumerate(height[n:])
    )
    line = f'<path class="now" d="M0 {BARS_HEIGHT} {steps} L{BAR * n} {BARS_HEIGHT}" fill="none"/>'
    size = f'viewBox="-1 0 {BAR * n + 2} {BARS_HEIGHT}" width="{BAR * n + 2}"'
    xmlns = 'xmlns="http://www.w3.org/2000/svg"'
    return f'<svg {xmlns} {size} height="{BARS_HEIGHT}" aria-hidden="true">{bars}{line}</svg>'
