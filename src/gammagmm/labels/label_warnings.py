"""New labels -> warnings that the rows were not chosen as they are said to be."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.checks import warn_user
from gammagmm.errors import LabelsWarning
from gammagmm.labels.exact_interval import binomial_interval, p_between
from gammagmm.labels.known_rows import KnownRows
from gammagmm.labels.labelled_share import LabelCounts
from gammagmm.labels.top_rows import p_top_rows

__all__ = ["check_list", "check_not_top", "check_rates"]

RARE = 0.05
"""Probability below which chance does not explain that two lists of rows have no row in common."""
VERY_RARE = 1e-4
"""Probability below which chance does not explain that rows come from the top of a ranking.

Of 2,000 sessions that test simple random rows of 300, 1,000 or 10,000 after each of 30 labels, at
most one had less. Seven rows from the top beside 30 random ones always had less, and five from
1,000 rows on.
"""


def check_list(counts: LabelCounts, n_new: int, n_given: int) -> None:
    """Warn if rows chosen at random are missing in a list of `n_given` other rows.

    The `counts` are those before the list, of which `n_new` rows had no label.
    """
    n_rows = counts.n_rows - counts.n_told
    if n_new < n_given or p_between(0, 0, n_new, counts.n_drawn, n_rows) > RARE:
        return
    n_expected = counts.n_drawn * n_new / n_rows
    warn_user(
        f"None of the {counts.n_drawn} rows that were chosen at random is among these "
        f"{n_new} rows, although about {n_expected:.0f} are expected. If some of them belong "
        "to the list, pass their labels with it (at_random=False; --known on the command "
        "line); otherwise the estimate is biased. Pass rows that suggest(purpose='find') chose "
        "with purpose='find'.",
        LabelsWarning,
    )


def check_rates(n: int, k: int, error: tuple[float, float]) -> None:
    """Warn if no share of anomalies explains `k` anomalies by `n` random labels with this `error`.

    Fewer of them say "anomaly" than false alarms alone would, or more than anomalies alone: with a
    probability below 5 %, so that the exact 90 % interval without an exception has no width.
    """
    low, high = binomial_interval(n, k, 1.0 - 2.0 * RARE)
    false_alarm, miss = error
    if high < false_alarm:
        explained = f"at least {n * false_alarm:.1f} are expected from false alarms alone"
    elif low > 1.0 - miss:
        explained = f"at most {n * (1.0 - miss):.1f} are expected, because anomalies are missed"
    else:
        return
    warn_user(
        f"{k} of the {n} labels of random rows say that the row is an anomaly, although "
        f"{explained}: the labels contradict the label_error. Give a smaller one (--label-error on "
        "the command line).",
        LabelsWarning,
    )


def check_not_top(
    before: KnownRows, known: KnownRows, scores: NDArray[np.float64], n_sampled: int
) -> None:
    """Warn if the rows that count as random ones come from too far up in the ranking.

    The rows of `known` that did not count as such `before` are tested alone, and with the others.
    """
    drawn = known.rows[known.at_random]
    new = np.setdiff1d(drawn, before.rows[before.at_random])
    if not len(new):
        return
    left = known[~known.picked].unknown(n_sampled)  # neither drawn nor listed
    p = 1.0
    for rows in (new, drawn):
        rising = np.sort(scores[np.union1d(left, rows)])
        ranks = len(rising) - np.searchsorted(rising, scores[rows])
        p = min(p, 2.0 * p_top_rows(ranks, len(rising)))
    if p >= VERY_RARE:
        return
    warn_user(
        f"Of the {len(drawn)} rows that count as chosen at random, too many come from the top "
        f"of the ranking (p = {p:.1g}). Pass rows that suggest(purpose='find') chose with "
        "purpose='find', and other rows that were chosen for what they are with "
        "at_random=False; otherwise the estimate is biased.",
        LabelsWarning,
    )
