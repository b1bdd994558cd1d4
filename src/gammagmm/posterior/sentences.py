"""A posterior and its evidence -> sentences for readers without statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gammagmm._support.text import percent

if TYPE_CHECKING:
    from gammagmm.labels.labelled_rows import Precision
    from gammagmm.labels.learned_ranking import Learning
    from gammagmm.labels.recall import AnomaliesLeft
    from gammagmm.posterior.evidence import Evidence
    from gammagmm.posterior.gamma_posterior import GammaPosterior
    from gammagmm.posterior.track_record import TrackRecord

__all__ = [
    "any_look_sentence",
    "basis_sentence",
    "evidence_lines",
    "exact_sentence",
    "known_sentence",
    "left_sentence",
    "more_sentence",
    "next_sentence",
    "precision_sentence",
    "ranking_sentence",
    "record_sentence",
    "rows_sentence",
    "sentence",
    "separate_rows_sentence",
]


def sentence(posterior: GammaPosterior) -> str:
    """The estimate in one sentence."""
    if not posterior.has_estimate:
        return (
            "There is no estimate: all posterior probability is at 0, which happens if no mixture "
            "of the scores agrees with p_high. This does not mean that the data are clean."
        )
    low, high = (percent(end) for end in posterior.interval())
    return (
        f"About {percent(posterior.mean)} of the rows are anomalies (90% interval {low} to {high})."
    )


def rows_sentence(n_flagged: int, n_rows: int, n_table: int | None = None) -> str:
    """How many rows are flagged, as a sentence; the rows may be a sample of `n_table` rows."""
    rows = f"{n_rows:,} rows"
    if n_table not in (None, n_rows):
        rows = f"{n_rows:,} sampled rows (of {n_table:,})"
    if n_flagged == 0:
        return f"None of {rows} is flagged."
    return f"{n_flagged:,} of {rows} {'is' if n_flagged == 1 else 'are'} flagged."


def known_sentence(n_known: int, n_anomalies: int, fitted: GammaPosterior) -> str:
    """How many labelled rows the estimate uses, and what it was without them."""
    rows = "1 labelled row" if n_known == 1 else f"{n_known:,} labelled rows"
    anomalies = "1 anomaly" if n_anomalies == 1 else f"{n_anomalies:,} anomalies"
    uses = f"This estimate uses {rows} ({anomalies})."
    if not fitted.has_estimate:
        return f"{uses} Without labels, there was no estimate."
    low, high = (percent(end) for end in fitted.interval())
    return f"{uses} Without labels, it was {percent(fitted.mean)} ({low} to {high})."


def exact_sentence(ends: tuple[float, float], n_anomalies: int, mass: float = 0.9) -> str:
    """What the labels alone show, by the two ends of an exact interval of probability `mass`.

    Without an anomaly only the upper end is uncertain, and it holds by itself with more confidence.
    """
    low, high = (percent(end) for end in ends)
    if n_anomalies == 0:
        return (
            f"By the labels alone, it is at most {high} with {0.5 + 0.5 * mass:.0%} confidence, if "
            "their number was fixed before."
        )
    return (
        f"By the labels alone, it is {low} to {high} with {mass:.0%} confidence, if their number "
        "was fixed before."
    )


def any_look_sentence(ends: tuple[float, float], mass: float = 0.9) -> str:
    """What the labels alone show if one looks after every label."""
    low, high = (percent(end) for end in ends)
    return (
        f"By the labels alone, it is {low} to {high} with {mass:.0%} confidence, however often you "
        "look."
    )


def left_sentence(left: AnomaliesLeft, recall: float, n_to_certify: int | None) -> str:
    """How many anomalies are left, and how many random rows would show a `recall`."""
    found = (
        f"{left.n_found:,} found; about {left.mean:,.0f} are left ({left.low:,.0f} to "
        f"{left.high:,.0f})"
    )
    if n_to_certify is None:
        return f"{found}."
    rows = "1 random row" if n_to_certify == 1 else f"{n_to_certify:,} random rows"
    return f"{found}; looking at {rows} more, all normal, would show that {recall:.0%} are found."


def precision_sentence(precision: Precision) -> str:
    """How many of the flagged rows are anomalies."""
    n_labels, n_flagged = precision.n_labels, precision.n_flagged
    found = f"{precision.n_anomalies:,} of the {n_labels:,} labelled rows among the flagged rows"
    found += f" {'is an anomaly' if precision.n_anomalies == 1 else 'are anomalies'}"
    if n_labels == n_flagged:
        return f"{found}."
    low, high = percent(precision.low), percent(precision.high)
    return (
        f"{found}: {low} to {high} of all {n_flagged:,} (90% confidence, if those were picked at "
        "random)."
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
            "The rows are ranked by the detectors and by what the labels teach. Fewer than two "
            "anomalies or two normal rows were chosen at random, so this ranking cannot be checked."
        )
    areas = f"{check.auc_learned:.2f} instead of {check.auc_consensus:.2f}"
    gain = f"{check.gain:+.2f} ± {check.standard_error:.2f}".replace("-", "−")
    found = (
        "on the random labelled rows, each ranked without its label, the area under the ROC curve "
        f"is {areas} ({gain})"
    )
    if learning.ranking is None:
        return (
            "The rows are still ranked by the consensus of the detectors, because learning from "
            f"the labels makes the ranking worse: {found}."
        )
    return f"The rows are ranked by the detectors and by what the labels teach: {found}."


def more_sentence(n_more: int, n_left: int) -> str:
    """How many more labels make the interval half as wide."""
    if n_left == 0:
        return "Every row has a label."
    if n_left == 1:
        return "Next: label the last row to know the share."
    if n_more >= n_left:
        return f"Next: label the other {n_left:,} rows to know the share."
    if n_more == 0:
        return f"The interval has no width, although {n_left:,} rows have no label."
    more = "1 more label" if n_more == 1 else f"{n_more:,} more labels"
    return f"Next: about {more} would make this interval half as wide."


def evidence_lines(posterior: GammaPosterior, evidence: Evidence, n_detectors: int) -> list[str]:
    """What an estimate without labels rests on, in three lines that end with what to do next."""
    basis = basis_sentence(posterior, evidence)
    if posterior.has_estimate:
        basis = f"{basis} {record_sentence(evidence.track_record)}"
    separate = separate_rows_sentence(posterior, evidence, n_detectors)
    return [separate, basis, next_sentence(evidence)]


def separate_rows_sentence(posterior: GammaPosterior, evidence: Evidence, n_detectors: int) -> str:
    """The rows that are separate from the rest, and how the estimate compares with them."""
    separate, answers = evidence.separate_rows, evidence.constraints
    if n_detectors < 2:
        return "A single detector cannot show whether rows are separate from the rest."
    if separate is None:
        return "No rows are separate from the rest."
    found = (
        f"{separate.n_rows:,} rows ({percent(separate.share)}) are separate from the rest in "
        f"{len(separate.detectors)} of {n_detectors} detectors"
    )
    if not posterior.has_estimate:
        return f"{found}."
    low, high = posterior.interval()
    if separate.share > high:
        because = ""
        if separate.share >= answers.high_gamma and not posterior.n_labels:
            because = (
                f", because p_high = {percent(answers.p_high)} makes a share of "
                f"{percent(answers.high_gamma)} or more unlikely"
            )
        return f"{found}; the estimate excludes some of them{because}."
    if separate.share < low:
        return f"{found}; the estimate also includes rows that are not separate."
    return f"{found}; their share lies inside the interval."


def basis_sentence(posterior: GammaPosterior, evidence: Evidence) -> str:
    """Whether the estimate rests on the data or on assumptions."""
    low, high = evidence.means
    questions = "other values of p0, p_high and high_gamma"
    if np.isnan(low):
        return f"The result rests on assumptions: {questions} give no estimate either."
    ends = dict.fromkeys([percent(low), percent(high)])  # one of them where they are the same
    others = " to ".join(ends)
    if evidence.rests_on == "data":
        return f"The estimate rests on the data: {questions} give nearly the same ({others})."
    if any(np.isnan(other.mean) for other in evidence.assumptions):
        others += ", or no estimate"
    what = "estimate" if posterior.has_estimate else "result"
    return f"The {what} rests on assumptions: {questions} give {others}."


def record_sentence(record: TrackRecord) -> str:
    """How often intervals of this method contained the truth."""
    return (
        f"On {record.n_tables} labelled tables, {record.held():.0%} of the 90% intervals of "
        "default fits contained the true share."
    )


def next_sentence(evidence: Evidence) -> str:
    """What to do next."""
    record, first = evidence.track_record, ""
    if evidence.separate_rows is not None:
        first = f"look at these {evidence.separate_rows.n_rows:,} rows, and "
    elif evidence.rests_on == "assumptions":
        first = "set p0, p_high and high_gamma to what you know, and "
    return (
        f"Next: {first}label 30 rows (gammagmm label; in Python: suggest, update). With 30 "
        f"labels, {record.held_30_labels:.0%} of the intervals on {record.n_tables} tables "
        f"contained the true share; their mean width was "
        f"{100.0 * record.width_30_labels:.0f} percentage points."
    )
