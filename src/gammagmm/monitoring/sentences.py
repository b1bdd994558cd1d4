"""The state of a history, and what to do about it, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from gammagmm._support.text import one_line, percent

if TYPE_CHECKING:
    from gammagmm.monitoring.history import History

__all__ = ["NOT_ANOMALIES", "column_words", "next_sentence", "promise_sentence", "state_sentence"]

NOT_ANOMALIES = (
    "A row above the threshold is unusual, which does not make it an anomaly. To know the share of "
    "anomalies, label rows with `gammagmm label`."
)
VERBS = {"raised": "risen", "fallen": "fallen"}
MAX_NAMED = 5
"""Most columns that a sentence names."""


def state_sentence(history: History) -> str:
    """The state of all rows."""
    state = history.state
    if state.kind == "learning":
        return (
            f"Learning: {state.n_quiet} of {state.n_learning} quiet periods. Until then, the "
            "variation between periods is assumed, and only large changes raise an alarm."
        )
    change = state.change
    if change is None:
        return f"Quiet: the share has not changed in {state.n_quiet:,} periods."
    since = one_line(history.periods[state.since].name)
    if state.kind == "back":
        changed = one_line(history.periods[cast("int", state.changed)].name)
        return f"Back since {since}: the share had {VERBS[change.direction]} in {changed}."
    own = [period.count for period in history.periods[state.since :]]
    n_rows, n_beyond = sum(c.n_rows for c in own), sum(c.n_beyond for c in own)
    return (
        f"{state.kind.capitalize()} since {since}: {percent(n_beyond / n_rows)} of the rows since "
        f"then lie above the threshold, and {percent(change.base.share)} of the rows before (p = "
        f"{change.p_value:.1g})."
    )


def next_sentence(history: History) -> str:
    """What to do now; empty where nothing is to be done."""
    if history.state.is_alarm or history.changed_groups():
        return (
            "Look at the columns that differ and at the rows above the threshold. If the new level "
            "is the usual one now, start again with --acknowledge."
        )
    return ""


def column_words(history: History) -> str:
    """The columns that differ between the quiet periods and those of the change; may be empty."""
    if not history.all_columns:
        return ""
    moved = history.moved_columns
    if not moved:
        return "No single column differs clearly from before."
    named = ", ".join(
        f"{one_line(column.name)} ({'higher' if column.is_higher else 'lower'})"
        for column in moved[:MAX_NAMED]
    )
    more = f" and {len(moved) - MAX_NAMED} more" if len(moved) > MAX_NAMED else ""
    return f"Columns that differ most from before: {named}{more}."


def promise_sentence(history: History) -> str:
    """How often an alarm is false."""
    return (
        "If nothing changes, the probability of a false alarm in 100 periods is at most "
        f"{percent(history.alpha)} (measured; proved for independent rows after the first "
        f"{history.state.n_learning} periods)."
    )
