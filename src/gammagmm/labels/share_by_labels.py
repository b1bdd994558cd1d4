"""Counts of labels, which may be wrong -> posterior and confidence intervals of the share."""

from __future__ import annotations

import numpy as np

from gammagmm.labels.any_look import interval_at_any_look, share_at_any_look
from gammagmm.labels.exact_interval import Side, binomial_interval, exact_interval
from gammagmm.labels.label_error import posterior_with_errors, without_errors
from gammagmm.labels.labelled_share import LabelCounts, labelled_posterior, prior_of
from gammagmm.posterior.gamma_posterior import GammaPosterior
from gammagmm.posterior.track_record import load_label_prior

__all__ = ["any_look_shares", "exact_shares", "has_errors", "posterior_by_labels"]

Error = tuple[float, float]


def has_errors(counts: LabelCounts, error: Error) -> bool:
    """Whether errors matter: they do as soon as one of the rows was chosen at random."""
    return any(error) and counts.n_drawn > 0


def posterior_by_labels(counts: LabelCounts, error: Error) -> GammaPosterior:
    """The posterior of the share from the labels alone."""
    if has_errors(counts, error):
        return posterior_with_errors(counts.n_drawn, counts.n_found, load_label_prior(), error)
    return labelled_posterior(counts, prior_of(counts))


def exact_shares(
    counts: LabelCounts, error: Error, mass: float, side: Side = "both"
) -> tuple[float, float]:
    """Ends of the exact interval of the share, for a number of labels that was fixed before."""
    if not has_errors(counts, error):
        n_rows = counts.n_rows - counts.n_told
        ends = exact_interval(n_rows, counts.n_drawn, counts.n_found, mass, side)
        return _shares_between(counts, ends)
    # With the whole 1 - mass on one side, both ends have it.
    tails = mass if side == "both" else 2.0 * mass - 1.0
    low, high = map(float, binomial_interval(counts.n_drawn, counts.n_found, tails))
    ends_called = 0.0 if side == "upper" else low, 1.0 if side == "lower" else high
    return _anomalies_of(ends_called, error)


def any_look_shares(counts: LabelCounts, error: Error, mass: float) -> tuple[float, float]:
    """Ends of the interval of the share that holds at any look."""
    labels, prior = (counts.n_drawn, counts.n_found), load_label_prior()
    if has_errors(counts, error):
        return _anomalies_of(share_at_any_look(*labels, mass, prior), error)
    n_rows = counts.n_rows - counts.n_told
    return _shares_between(counts, interval_at_any_look(n_rows, *labels, mass, prior))


def _anomalies_of(called: tuple[float, float], error: Error) -> tuple[float, float]:
    """The shares of anomalies if these shares would be called anomalies, right or wrong.

    Where no share explains the labels, they refute the rate of false alarms, or of misses: then
    the interval goes as far as it does if there are none.
    """
    low, high = (without_errors(end, error) for end in called)
    if low < high:
        return low, high
    false_alarm, miss = error
    if high == 0.0:
        return 0.0, without_errors(called[1], (0.0, miss))
    return without_errors(called[0], (false_alarm, 0.0)), 1.0


def _shares_between(counts: LabelCounts, ends: tuple[int, int]) -> tuple[float, float]:
    """The share in the table if the anomalies outside lists have a number between these `ends`."""
    # Rows that were picked are known, so that the interval need not contain what they exclude.
    least = counts.n_anomalies - counts.n_told_anomalies
    most = least + counts.n_left
    low, high = np.clip(ends, least, most).tolist()
    # Where they exclude all of it, or all but one end, it is what they leave.
    if low == high and (low, high) != ends:
        low, high = least, most
    told = counts.n_told_anomalies
    return (told + low) / counts.n_rows, (told + high) / counts.n_rows
