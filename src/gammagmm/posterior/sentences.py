"""A posterior and its evidence -> sentences for readers without statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gammagmm._support.text import percent

if TYPE_CHECKING:
    from gammagmm.posterior.evidence import Evidence
    from gammagmm.posterior.gamma_posterior import GammaPosterior
    from gammagmm.posterior.separate_rows import SeparateRows
    from gammagmm.posterior.track_record import TrackRecord

    Lines = dict[str, dict[str, str]]

__all__ = [
    "NOT_KNOWN",
    "below_half_sentence",
    "first_row_words",
    "flagged_sentence",
    "how_sentence",
    "model_lines",
    "probability_sentence",
    "record_sentence",
    "reference_sentence",
    "rows_sentence",
    "sentence",
    "separate_words",
]

NOT_KNOWN = "The share of anomalies is not known yet"
N_LABELS = 30
"""Number of labels of the next step, whose track record is known."""


def sentence(posterior: GammaPosterior) -> str:
    """The estimate in one sentence."""
    if not posterior.has_estimate:
        return (
            "The model gives no estimate for these rows, because no start had a solution. "
            "This does not mean that the rows are clean."
        )
    low, high = posterior.interval()
    interval = f"{posterior.range_name} {percent(low)} to {percent(high)}"
    if posterior.is_model:
        return f"The estimate without labels is {percent(posterior.mean)} ({interval})."
    if low == high:  # every row has a label
        return f"{percent(low)} of the rows are anomalies."
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
        "no labels": "it follows the public tables, not the estimate without labels",
        "ties": "rows with equal scores are flagged together or not at all",
        "label error": "labelled rows are flagged by their labels, which may be wrong",
    }
    return f"P(anomaly) of all rows adds up to {expected:,.0f}: {words[reason]}."


def how_sentence(command: str = "") -> str:
    """How a person labels rows: by this `command` of a shell, or in Python."""
    return f"Use {command or 'label(), or suggest and update'}."


def model_lines(
    posterior: GammaPosterior,
    evidence: Evidence,
    n_detectors: int,
    n_rows: int,
    flagged: tuple[str, str],
    command: str = "",
) -> Lines:
    """What is known without labels: the sentences of four lines that end with what to do next.

    `flagged` says how many rows are flagged and why, and the table has `n_rows` rows. Those of a
    file are labelled by a `command`, others in Python.
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
        "next": _next_sentences(posterior, evidence, n_detectors, n_rows, command),
    }


def reference_sentence(record: TrackRecord) -> str:
    """What the share was in public tables with known anomalies."""
    from gammagmm.posterior.gamma_posterior import GammaPosterior

    low, high = (percent(end) for end in GammaPosterior.reference().interval())
    return (
        f"It was {low} to {high} in nine of ten of {record.n_tables} public tables with known "
        "anomalies."
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


def probability_sentence(*, has_labels: bool) -> str:
    """What the rows' probabilities rest on."""
    answers = "your answers and " if has_labels else ""
    return f"P(anomaly) follows {answers}public tables with known anomalies."


def below_half_sentence(n_below: int, n_flagged: int) -> str:
    """Why `n_below` of the flagged rows are probably no anomalies; empty if there are none."""
    if not n_below:
        return ""
    rows = "all" if n_below == n_flagged else f"{n_below:,} of {n_flagged:,}"
    return f"P(anomaly) is below 50% for {rows} flagged rows, because the ranking may be wrong."


def first_row_words(has_header: bool) -> str:
    """What the numbers of rows count."""
    return f"row 1 is the first row{' below the header' * has_header}"


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
    return f"Model ranges were right in {record.held():.0%} of {record.n_tables} public tables."


def _next_sentences(
    posterior: GammaPosterior,
    evidence: Evidence,
    n_detectors: int,
    n_rows: int,
    command: str,
) -> dict[str, str]:
    """What to do next, with what, and what it buys."""
    record, first = evidence.track_record, ""
    if evidence.separate_rows is not None:
        words = separate_words(posterior, evidence.separate_rows, n_detectors)
        some = "some of " * (evidence.separate_rows.n_rows > N_LABELS)
        first = f"look first at {some}the {words}, then "
    how = how_sentence(command)
    if n_rows <= N_LABELS:
        rows = f"look at all {n_rows} rows and say which are anomalies, to know the share"
        return {"what": f"Next: {first}{rows}.", "how": how, "gain": ""}
    return {
        "what": f"Next: {first}look at {N_LABELS} rows and say which are anomalies.",
        "how": how,
        "gain": f"After {N_LABELS} answers, the range is about "
        f"{100.0 * record.width_30_labels:.0f} percentage points wide, and was right in "
        f"{record.held_30_labels:.0%} of these tables.",
    }
