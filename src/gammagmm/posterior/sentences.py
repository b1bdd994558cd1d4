"""A posterior and its evidence -> sentences for readers without statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gammagmm._support.text import percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gammagmm.labels.label_error import Agreement
    from gammagmm.labels.labelled_rows import Precision, ShareIfWrong
    from gammagmm.labels.learned_ranking import Learning
    from gammagmm.labels.recall import AnomaliesLeft, RecallResult
    from gammagmm.posterior.evidence import Evidence
    from gammagmm.posterior.gamma_posterior import GammaPosterior
    from gammagmm.posterior.separate_rows import SeparateRows
    from gammagmm.posterior.track_record import TrackRecord

    Rates = tuple[float, float]
    Lines = dict[str, dict[str, str]]

__all__ = [
    "NOT_KNOWN",
    "agreement_sentence",
    "any_look_sentence",
    "check_sentence",
    "error_sentence",
    "exact_sentence",
    "flagged_sentence",
    "if_wrong_sentence",
    "known_sentence",
    "left_sentence",
    "model_lines",
    "more_sentence",
    "precision_sentence",
    "probability_sentence",
    "ranking_sentence",
    "recall_sentence",
    "record_sentence",
    "reference_sentence",
    "rows_sentence",
    "sentence",
    "separate_words",
    "stop_sentence",
]

NOT_KNOWN = "The share of anomalies is not known yet"
RECALL = 0.8
"""Share of all anomalies that a check is to show."""
N_LABELS = 30
"""Number of labels of the next step, whose track record is known."""


def sentence(posterior: GammaPosterior) -> str:
    """The estimate in one sentence."""
    if not posterior.has_estimate:
        return (
            "The model gives no estimate for these rows, because no start had a solution. "
            "This does not mean that the rows are clean."
        )
    low, high = (percent(end) for end in posterior.interval())
    interval = f"{posterior.range_name} {low} to {high}"
    if posterior.is_model:
        return f"The estimate without labels is {percent(posterior.mean)} ({interval})."
    return f"About {percent(posterior.mean)} of the rows are anomalies ({interval})."


def rows_sentence(n_flagged: int, n_rows: int, n_table: int | None = None) -> str:
    """How many rows are flagged, as a sentence; the rows may be a sample of `n_table` rows."""
    rows = f"{n_rows:,} rows"
    if n_table not in (None, n_rows):
        rows = f"{n_rows:,} sampled rows (of {n_table:,})"
    return f"{n_flagged:,} of {rows} {'is' if n_flagged == 1 else 'are'} flagged."


def flagged_sentence(n_flagged: int, expected: float, reason: str) -> str:
    """Why the number of flagged rows differs from the sum of the rows' probabilities.

    The `reason` is "no labels", "ties" or "label error". The sentence is empty if the two differ by
    less than a row.
    """
    if abs(n_flagged - expected) < 1.0:
        return ""
    words = {
        "no labels": "it follows the other tables, not the estimate without labels",
        "ties": "rows with equal scores are flagged together or not at all",
        "label error": "labelled rows are flagged by their labels, which may be wrong",
    }
    return f"P(anomaly) of all rows adds up to {expected:,.0f}: {words[reason]}."


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


def if_wrong_sentence(shares: Sequence[ShareIfWrong]) -> str:
    """What the share would be if some of the labels were wrong."""
    told = [
        f"{percent(each.mean)} ({percent(each.low)} to {percent(each.high)}) if "
        f"{percent(each.label_error)} of the labels were wrong"
        for each in shares
    ]
    return f"The share would be about {', and about '.join(told)}." if told else ""


def exact_sentence(ends: Rates, any_look: Rates, n_anomalies: int, mass: float = 0.9) -> str:
    """What the labels alone show, by the ends of an exact interval and of one for any look.

    Without an anomaly only the upper end is uncertain, and that of the exact interval holds by
    itself with more confidence.
    """
    low, high = (percent(end) for end in ends)
    looked = " to ".join(percent(end) for end in any_look)
    if n_anomalies == 0:
        fixed = f"at most {high} with {0.5 + 0.5 * mass:.0%} confidence"
        looked = f"at most {percent(any_look[1])} with {mass:.0%} confidence"
    else:
        fixed = f"{low} to {high} with {mass:.0%} confidence"
    return (
        f"By the labels alone, the share is {fixed} if their number was fixed before, and {looked} "
        "if you looked at the answer in between (rows in simple random order)."
    )


def any_look_sentence(ends: tuple[float, float], mass: float = 0.9) -> str:
    """What the labels alone show if one looks after every label."""
    low, high = (percent(end) for end in ends)
    return (
        f"By your answers alone it is {low} to {high}, with {mass:.0%} confidence even if you look "
        "after every answer."
    )


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


def stop_sentence(n_to_certify: int) -> str:
    """What to do after a search: look on, or show that most anomalies are found."""
    return (
        "Next: look on at the top of the ranking, or stop and look at "
        f"{_random_rows(n_to_certify)} (gammagmm label --purpose check; in Python: certify). If "
        f"all are normal, at least {RECALL:.0%} of the anomalies are found (90% confidence)."
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


def _random_rows(n: int) -> str:
    return "1 random row" if n == 1 else f"{n:,} random rows"


def recall_sentence(left: AnomaliesLeft) -> str:
    """Which share of all anomalies is found."""
    low, high = percent(left.low_recall), percent(left.high_recall)
    found = "1 anomaly is" if left.n_found == 1 else f"{left.n_found:,} anomalies are"
    if left.n_rows == 0:
        return f"{found} found, and no row is left."
    found = (
        f"{found} found, and about {left.mean:,.0f} ({left.low:,.0f} to {left.high:,.0f}) are left "
        f"in the {left.n_rows:,} rows without a label"
    )
    if left.n_found == 0:
        return f"{found}."
    return f"{found}: {percent(left.recall)} of all are found ({low} to {high})."


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


def model_lines(
    posterior: GammaPosterior,
    evidence: Evidence,
    n_detectors: int,
    n_rows: int,
    flagged: tuple[str, str],
    *,
    is_file: bool = False,
) -> Lines:
    """What is known without labels: the sentences of four lines that end with what to do next.

    `flagged` says how many rows are flagged and why, and the table has `n_rows` rows. Those of a
    file are labelled by a command, others in Python.
    """
    record, starts = evidence.track_record, ""
    if posterior.has_estimate and 2 * evidence.n_unsolved_starts > evidence.n_starts:
        counts = f"{evidence.n_unsolved_starts:,} of {evidence.n_starts:,} starts"
        starts = f"{counts} of the model had no solution."
    return {
        "share": {"known": f"{NOT_KNOWN}.", "reference": reference_sentence(record)},
        "cut": {"flagged": f"A first guess, not a count: {flagged[0]}", "sum": flagged[1]},
        "model": {
            "value": sentence(posterior),
            "record": record_sentence(record) if posterior.has_estimate else "",
            "others": _others_sentence(evidence),
            "starts": starts,
        },
        "next": _next_sentences(posterior, evidence, n_detectors, n_rows, is_file=is_file),
    }


def reference_sentence(record: TrackRecord) -> str:
    """What the share was in other tables, whose anomalies are known."""
    from gammagmm.posterior.gamma_posterior import GammaPosterior

    low, high = (percent(end) for end in GammaPosterior.reference().interval())
    return (
        f"In nine of ten of {record.n_tables} other tables, whose anomalies are known, it was "
        f"{low} to {high}."
    )


def separate_words(posterior: GammaPosterior, separate: SeparateRows, n_detectors: int) -> str:
    """The rows that are separate from the rest, and how their share compares with the estimate."""
    where = ""
    if posterior.has_estimate:
        low, high = posterior.interval()
        place = "above" if separate.share > high else "below" if separate.share < low else "inside"
        where = f", {place} the {posterior.range_name}"
    kinds = {
        None: "",
        True: " and lie close together, as a second cluster does",
        False: " and lie far from each other",
    }
    return (
        f"{separate.n_rows:,} rows that are separate from the rest in {len(separate.detectors)} of "
        f"{n_detectors} detectors{kinds[separate.is_cluster]} ({percent(separate.share)}{where})"
    )


def probability_sentence(p_first: float, *, has_labels: bool) -> str:
    """What the rows' probabilities rest on; `p_first` is that of the first row of the ranking."""
    if has_labels:
        return "P(anomaly) follows your answers and other tables, whose anomalies are known."
    return (
        f"P(anomaly) of the first row is {percent(p_first)}, because without answers the ranking "
        "may be wrong."
    )


def _others_sentence(evidence: Evidence) -> str:
    """How far other answers move the estimate without labels."""
    low, high = evidence.means
    if np.isnan(low):
        return "Under other assumptions, there is none either."
    others = " to ".join(dict.fromkeys([percent(low), percent(high)]))  # one if they are the same
    if any(np.isnan(other.mean) for other in evidence.assumptions):
        others += ", or there is none"
    return f"Under other assumptions, it is {others}."


def record_sentence(record: TrackRecord) -> str:
    """How often model ranges contained the truth."""
    return f"Model ranges were right in {record.held():.0%} of {record.n_tables} other tables."


def _next_sentences(
    posterior: GammaPosterior,
    evidence: Evidence,
    n_detectors: int,
    n_rows: int,
    *,
    is_file: bool,
) -> dict[str, str]:
    """What to do next, with what, and what it buys."""
    record, first = evidence.track_record, ""
    if evidence.separate_rows is not None:
        words = separate_words(posterior, evidence.separate_rows, n_detectors)
        first = f"look first at the {words}, then "
    how = f"Use {'gammagmm label' if is_file else 'suggest and update'}."
    if n_rows <= N_LABELS:
        rows = f"look at all {n_rows} rows and say which are anomalies, to know the share"
        return {"what": f"Next: {first}{rows}.", "how": how, "gain": ""}
    return {
        "what": f"Next: {first}look at {N_LABELS} rows and say which are anomalies.",
        "how": how,
        "gain": f"With {N_LABELS} answers, ranges of about "
        f"{100.0 * record.width_30_labels:.0f} percentage points were right in "
        f"{record.held_30_labels:.0%} of the other tables.",
    }
