"""The state of a history, and what to do about it, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from gammagmm._support.text import one_line, percent
from gammagmm.monitoring.alarms import PER_PERIODS, WINDOWS
from gammagmm.monitoring.variation import LEARNING_PERIODS, MEASURED_ICC

if TYPE_CHECKING:
    from gammagmm.monitoring.history import History
    from gammagmm.monitoring.label_shares import LabelShare
    from gammagmm.monitoring.states import State

__all__ = [
    "METHOD",
    "NOT_ANOMALIES",
    "column_words",
    "label_sentence",
    "next_sentence",
    "promise_sentence",
    "state_reason",
    "state_sentence",
    "state_title",
    "state_words",
]

NOT_ANOMALIES = (
    "A row above the threshold is unusual, which does not make it an anomaly. To know the share of "
    "anomalies, label rows with `gammagmm label`."
)
METHOD = (
    f"the newest {WINDOWS[0]}, {WINDOWS[1]} and {WINDOWS[2]} periods are compared with the quiet "
    "periods before them, by Fisher's exact test and by a Beta-binomial test with the variation "
    "between quiet periods, and with the differences between weekdays if the periods are days; "
    "both must show the change; with groups, they share half of the level of a period equally "
    f"(Bonferroni); that {PER_PERIODS} periods have a false alarm with a probability of at most "
    "alpha is proved for independent rows, except for the comparison with training rows in the "
    f"first {LEARNING_PERIODS} periods; for periods whose shares differ, the measured probability "
    f"is about alpha if two rows of a period have a correlation of at most {MEASURED_ICC}, and "
    "higher if it is larger"
)
VERBS = {"raised": "risen", "fallen": "fallen"}
DIRECTIONS = (("lower", "higher"), ("less often", "more often"))
"""Words for a column that moved: of numbers and of a text, each less and more."""
MAX_NAMED = 5
"""Most columns that a sentence names."""


def state_words(history: History, state: State) -> str:
    """A state of a history in a few words, such as "raised since 2026-03-04"."""
    if state.kind in ("learning", "quiet"):
        return state.kind
    return f"{state.kind} since {one_line(history.periods[state.since].name)}"


def state_title(history: History) -> str:
    """The state of all rows in a few words, as a title."""
    words = state_words(history, history.state)
    return words[:1].upper() + words[1:]


def state_sentence(history: History) -> str:
    """The state of all rows."""
    return f"{state_title(history)}: {state_reason(history)}"


def state_reason(history: History) -> str:
    """What the state of all rows comes from."""
    state = history.state
    learning = (
        f"{state.n_quiet} of {state.n_learning} quiet periods. Until then, the "
        "variation between periods is assumed, and only large changes raise an alarm."
    )
    if state.kind == "learning":
        return learning
    change = state.change
    if change is None:
        return f"no change of the share is visible in {state.n_quiet:,} periods."
    if state.kind == "back":
        changed = one_line(history.periods[cast("int", state.changed)].name)
        back = f"the share had {VERBS[change.direction]} in {changed}."
        return f"{back} Learning: {learning}" if state.is_learning else back
    own = [period.count for period in history.periods[state.since :]]
    n_rows, n_above = sum(c.n_rows for c in own), sum(c.n_above for c in own)
    return (
        f"{percent(n_above / n_rows)} of the rows since then lie above the threshold, and "
        f"{percent(change.base.share)} of the rows before (p = {change.p_value:.1g})."
    )


def next_sentence(history: History) -> str:
    """What to do now; empty where nothing is to be done."""
    if history.state.is_alarm or history.changed_groups():
        return (
            "Look at the columns that differ and at the rows above the threshold. If the new level "
            "is the usual one now, start again with `--acknowledge`."
        )
    return ""


def label_sentence(share: LabelShare) -> str:
    """The share of anomalies in a period, by labels."""
    return (
        f"Of {share.n_labels:,} labelled rows in {one_line(share.period)}, {share.n_anomalies:,} "
        f"are anomalies: the share of anomalies is about {percent(share.mean)} (90% interval "
        f"{percent(share.low)} to {percent(share.high)})."
    )


def column_words(history: History) -> str:
    """The columns that differ between the quiet periods and those of the change; may be empty."""
    if not history.all_columns:
        return ""
    moved = history.moved_columns
    if not moved:
        return "No single column differs clearly from before."
    named = ", ".join(
        f"{one_line(column.name)} ({DIRECTIONS[column.is_text][column.is_higher]})"
        for column in moved[:MAX_NAMED]
    )
    more = f" and {len(moved) - MAX_NAMED} more" if len(moved) > MAX_NAMED else ""
    return f"Columns that differ most from before: {named}{more}."


def promise_sentence(history: History) -> str:
    """How often an alarm is false."""
    alpha = percent(history.alpha)
    return (
        f"If nothing changes, the probability of a false alarm in {PER_PERIODS} periods is at most "
        f"{alpha} for independent rows (proved after the first {history.state.n_learning} periods) "
        f"and about {alpha} if two rows of a period have a correlation of at most {MEASURED_ICC} "
        "(measured). If periods vary more, it is higher."
    )
