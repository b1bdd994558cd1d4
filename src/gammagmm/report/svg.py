"""Posterior -> a small piece of HTML for notebooks: sentence, picture and table."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.text import percent
from gammagmm.posterior.sentences import sentence

if TYPE_CHECKING:
    from gammagmm.posterior.gamma_posterior import GammaPosterior

__all__ = ["posterior_html", "posterior_svg"]

Array = NDArray[np.float64]

# Okabe and Ito's blue and vermilion: apart for the colour-blind, on white and on black.
_BLUE, _VERMILION, _GREY = "#0072B2", "#D55E00", "#888888"
_WIDTH, _HEIGHT = 480, 200
# The plot's left, right, top and bottom in pixels.
_LEFT, _RIGHT, _TOP, _BOTTOM = 16, 464, 28, 164


def posterior_html(posterior: GammaPosterior) -> str:
    """The answer as one HTML element that needs no script, style sheet or file."""
    words = f"<p>{escape(sentence(posterior))}</p>"
    picture = posterior_svg(posterior)
    return f'<div class="gammagmm-posterior">{words}{picture}{_table(posterior)}</div>'


def _table(posterior: GammaPosterior) -> str:
    """The numbers behind the sentence; those that do not exist are left out."""
    low, high = posterior.interval()
    numbers = {
        "mean": percent(posterior.mean),
        "median": percent(posterior.median),
        "standard deviation": percent(posterior.std),
        "90% interval": f"{percent(low)} to {percent(high)}",
        "P(γ = 0)": percent(posterior.prob_zero),
        "P(γ > 15%)": percent(posterior.prob_above(0.15)),
        "Monte Carlo error of the mean": percent(posterior.standard_error),
        "spread of the mean over runs": percent(posterior.between_runs),
    }
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>'
        for name, value in numbers.items()
        if value
    )
    return f"<table><tbody>{rows}</tbody></table>"


def posterior_svg(posterior: GammaPosterior, marks: Mapping[str, float] | None = None) -> str:
    """The density with the interval shaded, the mean and the atom, on an axis from 0.

    `marks` are further shares to show, by what they are; the axis reaches to all of them.
    """
    marks = marks or {}
    end = max(_axis_end(posterior), *(1.05 * share for share in marks.values()), 0.0)
    parts = _density(posterior, end) + _mean(posterior, end) + _atom(posterior, end)
    parts += _axis(end) + _legend() + _marks(marks, end)
    label = f"Posterior density of the share of anomalies. {sentence(posterior)}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'width="{_WIDTH}" height="{_HEIGHT}" font-family="sans-serif" font-size="11" '
        f'data-left="{_LEFT}" data-right="{_RIGHT}" data-end="{end!r}" '
        f'role="img" aria-label="{escape(label)}">{parts}</svg>'
    )


def _axis_end(posterior: GammaPosterior) -> float:
    """Where the axis ends: beyond it lies 1 / 10,000 of what lies above 0."""
    # An atom of nearly 1 leaves no quantile above 0.
    end = float(posterior.ppf(1.0 - 1e-4 * (1.0 - posterior.prob_zero)))
    if posterior.is_degenerate:
        return 0.25
    return end or posterior.betas.support[1] or 0.25


def _density(posterior: GammaPosterior, end: float) -> str:
    if posterior.is_degenerate or posterior.betas.span == 0.0:
        return ""
    low, high = posterior.interval()
    x, density = _curve(posterior, (posterior.betas.support[0], end), end)
    peak = density.max()
    shaded, shade = _curve(posterior, (max(low, posterior.betas.support[0]), min(high, end)), end)
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


def _marks(marks: Mapping[str, float], end: float) -> str:
    """A dashed line for each share, its words beside its upper end, one below the other.

    The words go to the right if there is room beside the last, else to the left; they begin with
    the share on the other side, so that none crosses the line of another.
    """
    last = max(marks, key=lambda words: marks[words], default="")
    is_right = bool(marks) and _across(marks[last], end) + _length(last) < _WIDTH
    ordered = sorted(marks.items(), key=lambda mark: mark[1], reverse=not is_right)
    drawn = ""
    for i, (words, share) in enumerate(ordered):
        x, y = _across(share, end), _TOP + 15.0 * i
        style = 'stroke="currentColor" stroke-dasharray="3 3"'
        drawn += _line("mark", (f"{x:.1f}", f"{y:.1f}"), (f"{x:.1f}", _BOTTOM), style)
        side, shift = ("start", 4.0) if is_right or x < _length(words) else ("end", -4.0)
        drawn += _text("mark", x + shift, y + 8.0, words, side)
    return drawn


def _length(words: str) -> float:
    """About how many pixels a line of words takes, with room beside it."""
    return 8.0 + 5.5 * len(words)


def _legend() -> str:
    """What the colours mean, above the plot."""
    entries = (
        (16, "density", "density, 90% interval", _BLUE),
        (156, "mean", "mean", _VERMILION),
        (220, "atom", "P(γ = 0)", _GREY),
    )
    return "".join(
        f'<rect class="{kind}" x="{x}" y="5" width="9" height="9" fill="{colour}"/>'
        + _text("legend", x + 14, 13, words, "start")
        for x, kind, words, colour in entries
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


def _text(name: str, x: float, y: float, words: str, anchor: str = "middle") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="currentColor"'
    return f'<text class="{name}" {place}>{escape(words)}</text>'
