"""A posterior -> sentences for readers without statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gammagmm._support.text import percent

if TYPE_CHECKING:
    from gammagmm.posterior.gamma_posterior import GammaPosterior

__all__ = ["known_sentence", "rows_sentence", "sentence", "shape_words"]


def sentence(posterior: GammaPosterior) -> str:
    """The answer in one sentence, and one more where the density has several humps."""
    if posterior.is_degenerate:
        return (
            "All probability lies at 0: there is no estimate, as where no mixture of the scores "
            "agrees with p_high. This does not mean that the data are clean."
        )
    low, high = (percent(end) for end in posterior.interval())
    answer = (
        f"About {percent(posterior.mean)} of the rows are anomalies (90% interval {low} to "
        f"{high}; none at all: {percent(posterior.prob_zero)}; more than 15%: "
        f"{percent(posterior.prob_above(0.15))})."
    )
    modes = [percent(mode) for mode in posterior.modes()]
    if len(modes) < 2:
        return answer
    places = f"{', '.join(modes[:-1])} and {modes[-1]}"
    return f"{answer} The density has {len(modes)} humps, at {places}."


def shape_words(posterior: GammaPosterior) -> str:
    """What the shape of the posterior means for a reader; nothing where it is one narrow hump.

    An interval wider than the mean is called wide: its ends differ by a factor of three or more.
    """
    if posterior.is_degenerate:
        return (
            "There is no answer: no mixture of these scores agrees with what was held likely "
            "beforehand. This does not mean that the data are clean."
        )
    modes = [f"about {percent(mode)}" for mode in posterior.modes()]
    if len(modes) > 1:
        return (
            f"The data leave it open: either {' or '.join(modes)}. The mean lies between the "
            "humps and describes neither; use what you know to choose."
        )
    low, high = posterior.interval()
    if high - low > posterior.mean:
        return (
            f"The answer is wide: anything from {percent(low)} to {percent(high)} is plausible. "
            "Give the interval along with the mean."
        )
    return ""


def rows_sentence(n_flagged: int, n_rows: int) -> str:
    """How many rows are flagged, as a sentence."""
    if n_flagged == 0:
        return f"None of {n_rows:,} rows is flagged."
    return f"{n_flagged:,} of {n_rows:,} rows {'is' if n_flagged == 1 else 'are'} flagged."


def known_sentence(n_known: int, n_anomalies: int, fitted: GammaPosterior) -> str:
    """What the answer rests on where a person has labelled rows, and what it was before."""
    rows = "1 row that was" if n_known == 1 else f"{n_known:,} rows that were"
    rests = f"This rests on {rows} looked at, {n_anomalies:,} anomalous."
    if fitted.is_degenerate:
        return f"{rests} Without them there was no answer."
    low, high = (percent(end) for end in fitted.interval())
    return f"{rests} Without them it was {percent(fitted.mean)} ({low} to {high})."
