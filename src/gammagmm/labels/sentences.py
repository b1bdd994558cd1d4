"""What labels show -> sentences for readers without statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gammagmm._support.text import percent
from gammagmm.labels.sheet import RECALL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gammagmm.labels.label_error import Agreement
    from gammagmm.labels.labelled_rows import ShareIfWrong
    from gammagmm.labels.learned_ranking import Learning
    from gammagmm.labels.precision import Precision
    from gammagmm.labels.recall import AnomaliesLeft, RecallResult
    from gammagmm.posterior.gamma_posterior import GammaPosterior

    Rates = tuple[float, float]

__all__ = [
    "agreement_sentence",
    "any_look_sentence",
    "check_sentence",
    "error_sentence",
    "exact_sentence",
    "find_sentence",
    "found_sentence",
    "if_wrong_sentence",
    "known_sentence",
    "left_sentence",
    "more_sentence",
    "precision_sentence",
    "ranking_sentence",
    "recall_sentence",
    "stop_sentence",
]


def known_sentence(n_known: int, n_anomalies: int, fitted: GammaPosterior) -> str:
    """How many labelled rows the estimate uses, and what it was without them."""
    rows = "1 labelled row" if n_known == 1 else f"{n_known:,} labelled rows"
    anomalies = "1 anomaly" if n_anomalies == 1 else f"{n_anomalies:,} anomalies"
    uses = f"This estimate uses {rows} ({anomalies})."
    if not fitted.has_estimate:
        return f"{uses} Without labels, there was no estimate."
    low, high = (percent(end) for end in fitted.interval())
    value = f"{percent(fitted.mean)} ({fitted.range_name} {low} to {high})"
    return f"{uses} Without labels, the estimate was {value}."


def error_sentence(error: Rates) -> str:
    """How often labels are taken to be wrong; empty if never."""
    false_alarm, miss = (percent(rate) for rate in error)
    if not any(error):
        return ""
    if false_alarm == miss:
        return f"Each label is taken to be wrong with a probability of {miss}."
    return (
        f"Labels are taken to be wrong with a probability of {false_alarm} for normal rows and "
        f"{miss} for anomalies."
    )


def agreement_sentence(found: Agreement) -> str:
    """How often second labels agree with the first ones, and what this implies."""
    low, high = percent(found.low), percent(found.high)
    return (
        f"Two labels of the same row agree in {found.n_agree:,} of {found.n_rows:,} rows: about "
        f"{percent(found.label_error)} of the labels are wrong ({low} to {high}, 90% confidence), "
        "if both are wrong equally often and independently (see --label-error)."
    )


def if_wrong_sentence(shares: Sequence[ShareIfWrong], *, has_list: bool = False) -> str:
    """What the share would be if some of the labels were wrong."""
    told = [
        f"{percent(each.mean)} ({percent(each.low)} to {percent(each.high)}) if "
        f"{percent(each.label_error)} of the labels were wrong"
        for each in shares
    ]
    where = "The share outside the list" if has_list else "The share"
    return f"{where} would be about {', and about '.join(told)}." if told else ""


def exact_sentence(ends: Rates, any_look: Rates, n_anomalies: int, mass: float = 0.9) -> str:
    """Which interval to report, and what the labels alone show by two intervals.

    These are an exact one, and one for any look, with their ends.

    Without an anomaly only the upper end is uncertain, and that of the exact interval holds by
    itself with more confidence. It is empty if the share is known.
    """
    if any_look[0] == any_look[1]:
        return ""
    low, high = (percent(end) for end in ends)
    looked = " to ".join(percent(end) for end in any_look)
    if n_anomalies == 0:
        fixed = f"at most {high} with {0.5 + 0.5 * mass:.0%} confidence"
        looked = f"at most {percent(any_look[1])} with {mass:.0%} confidence"
    else:
        fixed = f"{low} to {high} with {mass:.0%} confidence"
    return (
        f"The interval to report is the {mass:.0%} interval of the estimate. Two other intervals "
        "use only the labels, and not the public tables. If you decided how many rows to label "
        f"before the first answer, the share is {fixed}. If the answers decided when you stopped, "
        f"it is {looked}. This is proved for rows in random order, and was measured for rows that "
        "are spread over the ranking."
    )


def any_look_sentence(ends: tuple[float, float] | None = None, mass: float = 0.9) -> str:
    """What the labels alone show if one looks after every label; without `ends`, beside them."""
    looked = f"{mass:.0%} confidence even if you look after every answer"
    if ends is None:
        return f"By your answers alone, with {looked}."
    low, high = (percent(end) for end in ends)
    return f"By your answers alone it is {low} to {high}, with {looked}."


def left_sentence(left: AnomaliesLeft, n_to_certify: int | None) -> str:
    """How many anomalies are left, and how many random rows would show that most are found."""
    found = (
        f"{left.n_found:,} found, about {left.mean:,.0f} left ({left.low:,.0f} to {left.high:,.0f})"
    )
    if n_to_certify is None:
        return f"{found}."
    return (
        f"{found}. To show that {RECALL:.0%} are found: {_random_rows(n_to_certify)} more, if all "
        "are normal."
    )


def stop_sentence(n_to_certify: int, command: str = "") -> str:
    """What to do after a search: look on, or show that most anomalies are found."""
    return (
        "Next: look on at the top of the ranking, or stop and look at "
        f"{_random_rows(n_to_certify)} ({command or 'certify'}). If all are normal, at least "
        f"{RECALL:.0%} of the anomalies are found (90% confidence)."
    )


def check_sentence(n_rows: int, result: RecallResult | None, n_answers: int) -> str:
    """What the labels of a check of `n_rows` random rows show; None if some are missing."""
    if result is None:
        return (
            f"{n_answers:,} of the {_random_rows(n_rows)} of the check have a label; it needs all "
            "of them."
        )
    few = ("none is an anomaly", "1 is an anomaly")
    n = result.n_anomalies
    anomalies = few[n] if n < len(few) else f"{n:,} are anomalies"
    return (
        f"Of the {_random_rows(n_rows)} of the check, {anomalies}: at most "
        f"{result.most_left:,} are left in the other rows, so at least "
        f"{percent(result.recall)} of all anomalies are found (90% confidence)."
    )


def find_sentence(command: str = "") -> str:
    """How to look for anomalies, by this `command` of a shell or in Python."""
    how = command or 'suggest(purpose="find")'
    return f"To find anomalies, {how} shows the rows that are most likely anomalies."


def _random_rows(n: int) -> str:
    return "1 random row" if n == 1 else f"{n:,} random rows"


def recall_sentence(left: AnomaliesLeft) -> str:
    """How many anomalies are found and left, and which share of all is found."""
    found = "1 anomaly is" if left.n_found == 1 else f"{left.n_found:,} anomalies are"
    if left.n_rows == 0:
        return f"{found} found, and no row is left."
    found = (
        f"{found} found, and about {left.mean:,.0f} ({left.low:,.0f} to {left.high:,.0f}) are left "
        f"in the {left.n_rows:,} rows without a label"
    )
    if left.n_found == 0:
        return f"{found}."
    return f"{found}. {found_sentence(left)}"


def found_sentence(left: AnomaliesLeft) -> str:
    """Which share of all anomalies is found, alone."""
    low, high = percent(left.low_recall), percent(left.high_recall)
    return f"You have found about {percent(left.recall)} of all anomalies ({low} to {high})."


def precision_sentence(precision: Precision) -> str:
    """How many of the flagged rows are anomalies."""
    n_labels, n_flagged, n_found = precision.n_labels, precision.n_flagged, precision.n_anomalies
    anomalies = "1 is an anomaly" if n_found == 1 else f"{n_found:,} are anomalies"
    if n_labels == n_flagged:
        return f"Of the flagged rows, all of which have labels, {anomalies}."
    rows = "row that was" if n_labels == 1 else "rows that were"
    low, high = percent(precision.low), percent(precision.high)
    return (
        f"Of the {n_labels:,} flagged {rows} drawn at random, {anomalies}: {low} to {high} of all "
        f"{n_flagged:,} (90% confidence)."
    )


def ranking_sentence(learning: Learning) -> str:
    """Which ranking of the rows is used after labels, and why."""
    check = learning.check
    if check is None:
        if learning.ranking is None:
            return (
                "All labels are of one kind, so the rows are still ranked by the consensus of the "
                "detectors."
            )
        return (
            "The rows are ranked by the detectors and by what was learned from the labels. Two "
            "anomalies and two normal rows, chosen at random, are needed to check this ranking."
        )
    found = (
        "among the random labelled rows, each ranked without its label, an anomaly is above a "
        f"normal row in {check.auc_learned:.0%} of the pairs ({check.auc_consensus:.0%} by the "
        "detectors alone)."
    )
    if learning.ranking is None:
        return (
            "The rows are still ranked by the consensus of the detectors, because learning from "
            f"the labels makes the ranking worse: {found}"
        )
    return f"The rows are ranked by the detectors and by what was learned from the labels: {found}"


def more_sentence(n_more: int | None, n_left: int) -> str:
    """How many more labels make the interval half as wide; None if that is not known."""
    if n_left == 0:
        return "Every row has a label."
    if n_more is None:
        return "Next: more labels make this interval narrower."
    if n_left == 1:
        return "Next: label the last row to know the share."
    if n_more >= n_left:
        return f"Next: label the other {n_left:,} rows to know the share."
    if n_more == 0:
        return f"The interval has no width, although {n_left:,} rows have no label."
    more = "1 more label" if n_more == 1 else f"{n_more:,} more labels"
    return f"Next: about {more} would make this interval half as wide."
