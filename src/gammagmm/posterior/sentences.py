"""A posterior -> sentences for readers without statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gammagmm._support.text import percent

if TYPE_CHECKING:
    from gammagmm.posterior.gamma_posterior import GammaPosterior

__all__ = ["known_sentence", "rows_sentence", "sentence", "shape_words"]


def sentence(posterior: GammaPosterior) -> str:
    """The estimate in two sentences, and a third if the density has several humps."""
    if posterior.is_degenerate:
        return (
            "There is no estimate: all posterior probability is at 0, which happens if no mixture "
            "of the scores agrees with p_high. This does not mean that the data are clean."
        )
    low, high = (percent(end) for end in posterior.interval())
    answer = (
        f"About {percent(posterior.mean)} of the rows are anomalies (90% interval {low} to "
        f"{high}). The probability of no anomalies is {percent(posterior.prob_zero)}; the "
        f"probability of more than 15% anomalies is {percent(posterior.prob_above(0.15))}."
    )
    modes = [percent(mode) for mode in posterior.modes()]
    if len(modes) < 2:
        return answer
    places = f"{', '.join(modes[:-1])} and {modes[-1]}"
    return f"{answer} The posterior density has {len(modes)} humps, at {places}."


def shape_words(posterior: GammaPosterior) -> str:
    """What the shape of the posterior means for a reader; empty for one narrow hump.

    An interval wider than the mean is called wide: its ends differ by a factor of three or more.
    """
    if posterior.is_degenerate:
        return (
            "There is no estimate: no mixture of these scores agrees with the prior assumptions. "
            "This does not mean that the data are clean."
        )
    modes = [f"about {percent(mode)}" for mode in posterior.modes()]
    if len(modes) > 1:
        return (
            f"The data allow more than one answer: either {' or '.join(modes)}. The mean lies "
            "between these values and describes none of them well; use what you know about the "
            "data to choose."
        )
    low, high = posterior.interval()
    if high - low > posterior.mean:
        return (
            f"The interval is wide: any share from {percent(low)} to {percent(high)} is plausible. "
            "Report the interval together with the mean."
        )
    return ""


def rows_sentence(n_flagged: int, n_rows: int) -> str:
    """How many rows are flagged, as a sentence."""
    if n_flagged == 0:
        return f"None of {n_rows:,} rows is flagged."
    return f"{n_flagged:,} of {n_rows:,} rows {'is' if n_flagged == 1 else 'are'} flagged."


def known_sentence(n_known: int, n_anomalies: int, fitted: GammaPosterior) -> str:
    """How many labelled rows the estimate uses, and what it was without them."""
    rows = "1 labelled row" if n_known == 1 else f"{n_known:,} labelled rows"
    anomalies = "1 anomaly" if n_anomalies == 1 else f"{n_anomalies:,} anomalies"
    uses = f"This estimate uses {rows} ({anomalies})."
    if fitted.is_degenerate:
        return f"{uses} Without labels, there was no estimate."
    low, high = (percent(end) for end in fitted.interval())
    return f"{uses} Without labels, it was {percent(fitted.mean)} ({low} to {high})."
