"""Posterior -> a small piece of HTML for notebooks: sentence, picture and table."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from gammagmm.posterior import GammaPosterior

__all__ = ["posterior_html", "sentence"]

Array = NDArray[np.float64]

# Okabe and Ito's blue and vermilion: apart for the colour-blind, on white and on black.
_BLUE, _VERMILION, _GREY = "#0072B2", "#D55E00", "#888888"
_WIDTH, _HEIGHT = 480, 200
# The plot's left, right, top and bottom in pixels.
_LEFT, _RIGHT, _TOP, _BOTTOM = 16, 464, 28, 164


def posterior_html(posterior: GammaPosterior) -> str:
    """The answer as one HTML element that needs no script, style sheet or file."""
    words = f"<p>{escape(sentence(posterior))}</p>"
    return f'<div class="gammagmm-posterior">{words}{_svg(posterior)}{_table(posterior)}</div>'


def sentence(posterior: GammaPosterior) -> str:
    """The answer in one sentence, and one more where the density has several humps."""
    if posterior.is_degenerate:
        return (
            "All probability lies at 0: the estimate is that there are no anomalies, as where no "
            "mixture of the scores agrees with p_high."
        )
    low, high = (_percent(end) for end in posterior.interval())
    answer = (
        f"About {_percent(posterior.mean)} of the rows are anomalies (90% interval {low} to "
        f"{high}; none at all: {_percent(posterior.prob_zero)}; more than 15%: "
        f"{_percent(posterior.prob_above(0.15))})."
    )
    modes = [_percent(mode) for mode in posterior.modes()]
    if len(modes) < 2:
        return answer
    places = f"{', '.join(modes[:-1])} and {modes[-1]}"
    return f"{answer} The density has {len(modes)} humps, at {places}."


def _table(posterior: GammaPosterior) -> str:
    """The numbers behind the sentence; those that do not exist are left out."""
    low, high = posterior.interval()
    numbers = {
        "mean": _percent(posterior.mean),
        "median": _percent(posterior.median),
        "standard deviation": _percent(posterior.std),
        "90% interval": f"{_percent(low)} to {_percent(high)}",
        "P(γ = 0)": _percent(posterior.prob_zero),
        "P(γ > 15%)": _percent(posterior.prob_above(0.15)),
        "Monte Carlo error of the mean": _percent(posterior.standard_error),
        "spread of the mean over runs": _percent(posterior.between_runs),
    }
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>'
        for name, value in numbers.items()
        if value
    )
    return f"<table><tbody>{rows}</tbody></table>"


def _svg(posterior: GammaPosterior) -> str:
    """The density with the interval shaded, the mean and the atom, on an axis from 0."""
    end = _axis_end(posterior)
    parts = _density(posterior, end) + _mean(posterior, end) + _atom(posterior, end)
    parts += _axis(end) + _legend()
    label = f"Posterior density of the share of anomalies. {sentence(posterior)}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'width="{_WIDTH}" height="{_HEIGHT}" style="max-width:100%" font-family="sans-serif" '
        f'font-size="11" role="img" aria-label="{escape(label)}">{parts}</svg>'
    )


def _axis_end(posterior: GammaPosterior) -> float:
    """Where the axis ends: beyond it lies 1 / 10,000 of what lies above 0."""
    # An atom of nearly 1 leaves no quantile above 0.
    end = float(posterior.ppf(1.0 - 1e-4 * (1.0 - posterior.prob_zero)))
    return end or posterior.betas.high if not posterior.is_degenerate else 0.25


def _density(posterior: GammaPosterior, end: float) -> str:
    if posterior.is_degenerate:
        return ""
    low, high = posterior.interval()
    x, density = _curve(posterior, (posterior.betas.low, end), end)
    peak = density.max()
    shaded, shade = _curve(posterior, (max(low, posterior.betas.low), min(high, end)), end)
    outline = _points(x, density / peak, end)
    base = f"{_across(shaded[-1], end):.1f} {_BOTTOM} L{_across(shaded[0], end):.1f} {_BOTTOM}"
    inside = f"{_points(shaded, np.minimum(shade / peak, 1.0), end)} L{base} Z"
    return (
        f'<path class="interval" d="{inside}" fill="{_BLUE}" fill-opacity="0.25"/>'
        f'<path class="density" d="{outline}" fill="none" stroke="{_BLUE}" stroke-width="1.5"/>'
    )


def _curve(
    posterior: GammaPosterior, ends: tuple[float, float], axis_end: float
) -> tuple[Array, Array]:
    """Points between `ends` and their densities, the highest of each half pixel."""
    grid = posterior.betas.grid()
    inside = grid[(grid >= ends[0]) & (grid <= ends[1])]
    x = np.union1d(inside, np.linspace(*ends, 121))
    density = posterior.pdf(x)
    # The density of a part with a < 1 or b < 1 has no bound.
    density[~np.isfinite(density)] = density[np.isfinite(density)].max(initial=1.0)
    column = np.floor(2.0 * (_RIGHT - _LEFT) * x / axis_end)
    by_height = np.lexsort((-density, column))
    _, first = np.unique(column[by_height], return_index=True)
    kept = np.union1d(by_height[first], [0, len(x) - 1])
    return x[kept], density[kept]


def _mean(posterior: GammaPosterior, end: float) -> str:
    x = f"{_across(posterior.mean, end):.1f}"
    return _line("mean", (x, _TOP), (x, _BOTTOM), f'stroke="{_VERMILION}" stroke-width="1.5"')


def _atom(posterior: GammaPosterior, end: float) -> str:
    """A stem at 0: its probability is its share of the plot's height."""
    if posterior.prob_zero == 0.0:
        return ""
    x, top = f"{_across(0.0, end):.1f}", f"{_up(posterior.prob_zero):.1f}"
    stem = _line("atom", (x, _BOTTOM), (x, top), f'stroke="{_GREY}" stroke-width="3"')
    return stem + f'<circle class="atom" cx="{x}" cy="{top}" r="4" fill="{_GREY}"/>'


def _axis(end: float) -> str:
    """The base line, round values below it, and what they are."""
    shares = [step for k in range(-6, 1) for step in np.array([1.0, 2.0, 5.0]) * 10.0**k]
    step = next((s for s in shares if end / s <= 6.0), 1.0)
    ticks = step * np.arange(int(end / step * (1.0 + 1e-9)) + 1)
    base = _line("axis", (_LEFT, _BOTTOM), (_RIGHT, _BOTTOM), 'stroke="currentColor"')
    labels = [_text("tick", _across(x, end), _BOTTOM + 14, f"{100.0 * x:.5g}%") for x in ticks]
    middle = 0.5 * (_LEFT + _RIGHT)
    title = _text("title", middle, _BOTTOM + 30, "contamination factor γ (share of anomalies)")
    return base + "".join(labels) + title


def _legend() -> str:
    """What the colours mean, above the plot."""
    entries = {"density, 90% interval": _BLUE, "mean": _VERMILION, "P(γ = 0)": _GREY}
    places = ((150, 62), (260, 20), (340, 30))  # middle and half length of the words
    return "".join(
        f'<rect x="{x - half - 12}" y="5" width="9" height="9" fill="{colour}"/>'
        + _text("legend", x, 13, name)
        for (x, half), (name, colour) in zip(places, entries.items(), strict=True)
    )


def _across(x: float, end: float) -> float:
    return _LEFT + (_RIGHT - _LEFT) * x / end


def _up(share: float) -> float:
    return _BOTTOM - (_BOTTOM - _TOP) * share


def _points(x: Array, height: Array, end: float) -> str:
    pairs = zip(x.tolist(), height.tolist(), strict=True)
    return "M" + " L".join(f"{_across(at, end):.1f} {_up(share):.1f}" for at, share in pairs)


def _line(name: str, start: tuple[object, object], stop: tuple[object, object], style: str) -> str:
    places = f'x1="{start[0]}" y1="{start[1]}" x2="{stop[0]}" y2="{stop[1]}"'
    return f'<line class="{name}" {places} {style}/>'


def _text(name: str, x: float, y: float, words: str) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="middle" fill="currentColor"'
    return f'<text class="{name}" {place}>{escape(words)}</text>'


def _percent(share: float) -> str:
    """The share in per cent, with more digits where it is small; nothing for NaN."""
    if np.isnan(share):
        return ""
    if 0.0 < share < 5e-6:
        return "below 0.001%"
    return f"{share:.1%}" if share == 0.0 or share >= 1e-3 else f"{100.0 * share:.1g}%"
