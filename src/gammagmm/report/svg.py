"""A posterior, what two rankings find, or groups -> a picture as SVG; HTML for notebooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.text import percent
from gammagmm.posterior.sentences import NOT_KNOWN, record_sentence, reference_sentence, sentence
from gammagmm.posterior.track_record import load_track_record

if TYPE_CHECKING:
    from gammagmm.posterior.gamma_posterior import GammaPosterior

__all__ = [
    "ShareLine",
    "ShareScale",
    "found_svg",
    "posterior_html",
    "posterior_numbers",
    "posterior_svg",
    "share_scale",
]

Array = NDArray[np.float64]

# Okabe and Ito's blue and vermilion: distinct for colour-blind readers, on white and on black.
BLUE, VERMILION, GREY = "#0072B2", "#D55E00", "#888888"

# Pixels.
WIDTH, HEIGHT = 480, 200
LEFT, RIGHT, TOP, BOTTOM = 16, 464, 28, 164
"""Edges of the plot area."""
TICK_BASELINE, TITLE_BASELINE = BOTTOM + 14, BOTTOM + 30
LEGEND_TOP, LEGEND_BASELINE, LEGEND_SQUARE, LEGEND_INDENT = 5, 13, 9, 14
MARK_STEP, MARK_BASELINE, MARK_GAP = 15.0, 8.0, 4.0
LETTER_WIDTH = 5.5
"""About the width of a letter."""
LINE_WIDTH, LINE_HEIGHT, LINE_LEFT, LINE_RIGHT = 280, 16, 14, 266
"""Size of the picture in a line of a table, and edges of its plot area."""
MOST_ROWS = 0.9
"""Share of the rows whose groups must have their whole intervals in the picture."""
N_CURVE_POINTS = 121
"""Points of a curve, besides those of the posterior's own grid."""


def posterior_html(posterior: GammaPosterior, lines: Sequence[str] | None = None) -> str:
    """The posterior as one HTML element that needs no script, style sheet or other file.

    `lines` are the sentences above the picture. Without them, they tell the estimate and, if it is
    the model's, the shares in labelled tables before it and how often it was right.
    """
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>'
        for name, value in posterior_numbers(posterior).items()
    )
    if lines is None:
        lines, record = [sentence(posterior)], load_track_record()
        if posterior.is_model:
            lines.insert(0, f"{NOT_KNOWN}. {reference_sentence(record)}")
            lines += [record_sentence(record)] if posterior.has_estimate else []
    words = "".join(f"<p>{escape(line)}</p>" for line in lines)
    return (
        f'<div class="gammagmm-posterior">{words}'
        f"{posterior_svg(posterior)}<table><tbody>{rows}</tbody></table></div>"
    )


def posterior_numbers(posterior: GammaPosterior) -> dict[str, str]:
    """The numbers of a posterior in words, by their names; those that do not exist are left out."""
    low, high = posterior.interval()
    numbers = {
        "mean": percent(posterior.mean),
        "median": percent(posterior.median),
        "standard deviation": percent(posterior.std),
        posterior.range_name: f"{percent(low)} to {percent(high)}",
        "P(γ = 0)": percent(posterior.prob_zero),
        "P(γ > 15%)": percent(posterior.prob_above(0.15)),
        "Monte Carlo error of the mean": percent(posterior.standard_error),
        "spread of the mean over runs": percent(posterior.between_runs),
    }
    return {name: words for name, words in numbers.items() if words}


def posterior_svg(posterior: GammaPosterior, marks: Mapping[str, float] | None = None) -> str:
    """The density with the interval shaded, the mean and the atom, on an axis from 0.

    `marks` are shares to mark with dashed lines, by their labels; the axis includes all of them.
    """
    marks = marks or {}
    end = max(_axis_end(posterior), *(1.05 * share for share in marks.values()), 0.0)
    parts = _density(posterior, end) + _mean(posterior, end) + _atom(posterior, end)
    # Left edge, class, words and colour of each entry.
    entries = (
        (16, "density", f"density, {posterior.range_name}", BLUE),
        (156, "mean", "mean", VERMILION),
        (220, "atom", "P(γ = 0)", GREY),
    )
    parts += _axis(end) + _legend(entries) + _marks(marks, end)
    label = f"Posterior density of the share of anomalies. {sentence(posterior)}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="11" '
        f'data-left="{LEFT}" data-right="{RIGHT}" data-top="{TOP}" data-bottom="{BOTTOM}" '
        f'data-end="{end!r}" role="img" aria-label="{escape(label)}">{parts}</svg>'
    )


def found_svg(consensus: Sequence[int], learned: Sequence[int]) -> str:
    """Anomalies found against labelled rows looked at, in the order of two rankings.

    Entry i of each sequence is the number of anomalies among the first i + 1 rows.
    """
    n_rows, n_anomalies = len(learned), max(learned[-1], 1)
    x = np.arange(n_rows + 1.0)
    curves = ""
    for name, found, colour in (("consensus", consensus, VERMILION), ("learned", learned, BLUE)):
        height = np.append(0.0, found) / n_anomalies
        # A step up at each anomaly.
        path = _path(np.repeat(x, 2)[1:], np.repeat(height, 2)[:-1], n_rows)
        curves += (
            f'<path class="{name}" d="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
        )
    line = _line("axis", (LEFT, BOTTOM), (RIGHT, BOTTOM), 'stroke="currentColor"')
    ticks = sorted({0, n_rows // 2, n_rows})
    labels = "".join(_text("tick", _x(tick, n_rows), TICK_BASELINE, f"{tick}") for tick in ticks)
    title = _text("title", 0.5 * (LEFT + RIGHT), TITLE_BASELINE, "labelled rows looked at")
    words = "1 anomaly" if learned[-1] == 1 else f"{learned[-1]} anomalies"
    title += _text("total", RIGHT, TOP + MARK_STEP, words, "end")
    legend = _legend(
        (
            (16, "learned", "anomalies found, learned ranking", BLUE),
            (226, "consensus", "consensus of the detectors", VERMILION),
        )
    )
    label = (
        f"Anomalies found among {n_rows} labelled rows. After half of them, the learned ranking "
        f"has found {learned[(n_rows - 1) // 2]} of {learned[-1]} and the consensus "
        f"{consensus[(n_rows - 1) // 2]}."
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="11" '
        f'role="img" aria-label="{escape(label)}">{curves}{line}{labels}{title}{legend}</svg>'
    )


@dataclass(frozen=True)
class ShareLine:
    """A line of a table of groups: a share of the rows of one group, and its 90 % interval."""

    group: object
    n_rows: int  # that the share comes from
    n_found: int
    share: float
    low: float
    high: float


@dataclass(frozen=True)
class ShareScale:
    """The scale of the pictures in the lines of a table of groups.

    `end` is the share at the right edge. A dashed line marks the share `overall`.
    """

    end: float
    overall: float

    def axis(self) -> str:
        """The ticks above the pictures."""
        ticks = _ticks(self.end, 4.0)
        labels = [_text("tick", self._x(x), 11, f"{100.0 * x:.5g}%") for x in ticks]
        label = f"Picture of the shares, from 0% to {percent(self.end)}"
        return self._svg("".join(labels), f'role="img" aria-label="{label}"')

    def picture(self, line: ShareLine) -> str:
        """The share as a point on its interval; an arrow if it continues beyond the right edge."""
        x, y = f"{self._x(self.overall):.1f}", LINE_HEIGHT // 2
        style = 'stroke="currentColor" stroke-dasharray="3 3"'
        drawn = _line("mark", (x, 0), (x, LINE_HEIGHT), style)
        low, high = (f"{self._x(min(end, self.end)):.1f}" for end in (line.low, line.high))
        drawn += _line("share", (low, y), (high, y), f'stroke="{BLUE}" stroke-width="2"')
        if line.high > self.end:
            arrow = f"M{LINE_RIGHT} {y - 4} L{LINE_RIGHT + 7} {y} L{LINE_RIGHT} {y + 4} Z"
            drawn += f'<path class="share" d="{arrow}" fill="{BLUE}"/>'
        if line.share <= self.end:
            place = f'cx="{self._x(line.share):.1f}" cy="{y}" r="4"'
            drawn += f'<circle class="share" {place} fill="{BLUE}"/>'
        return self._svg(drawn, 'aria-hidden="true"')

    def _x(self, share: float) -> float:
        return LINE_LEFT + (LINE_RIGHT - LINE_LEFT) * share / self.end

    @staticmethod
    def _svg(drawn: str, label: str) -> str:
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LINE_WIDTH} {LINE_HEIGHT}" '
            f'width="{LINE_WIDTH}" height="{LINE_HEIGHT}" font-family="sans-serif" font-size="11" '
            f"{label}>{drawn}</svg>"
        )


def share_scale(lines: Sequence[ShareLine], overall: float) -> ShareScale:
    """The scale for the pictures of `lines`.

    Small groups have wide intervals, which would leave little room for the others. So the scale
    ends where the intervals of groups with `MOST_ROWS` of the rows end.
    """
    lines = sorted(lines, key=lambda line: line.high)
    n_rows = np.cumsum([line.n_rows for line in lines])
    last = int(np.searchsorted(n_rows, MOST_ROWS * n_rows[-1]))
    return ShareScale(max(lines[last].high, 1.05 * overall), overall)


def _axis_end(posterior: GammaPosterior) -> float:
    """The share at the end of the axis: 1 / 10,000 of the probability above 0 lies beyond it."""
    if posterior.is_degenerate:
        return 0.25
    end = float(posterior.ppf(1.0 - 1e-4 * (1.0 - posterior.prob_zero)))
    # With an atom of nearly 1, no quantile is above 0.
    return end or posterior.betas.support[1] or 0.25


def _density(posterior: GammaPosterior, end: float) -> str:
    start, last = posterior.betas.support
    if posterior.is_degenerate or start == last:
        return ""
    low, high = posterior.interval()
    x, density = _curve(posterior, (start, end), end)
    shaded, shade = _curve(posterior, (max(low, start), min(high, end)), end)
    peak = density.max()
    outline = _path(x, density / peak, end)
    base = f"{_x(shaded[-1], end):.1f} {BOTTOM} L{_x(shaded[0], end):.1f} {BOTTOM}"
    inside = f"{_path(shaded, np.minimum(shade / peak, 1.0), end)} L{base} Z"
    return (
        f'<path class="interval" d="{inside}" fill="{BLUE}" fill-opacity="0.25"/>'
        f'<path class="density" d="{outline}" fill="none" stroke="{BLUE}" stroke-width="1.5"/>'
    )


def _curve(
    posterior: GammaPosterior, ends: tuple[float, float], axis_end: float
) -> tuple[Array, Array]:
    """Points between `ends` and their densities; of each half pixel, the highest point is kept."""
    grid = posterior.betas.grid()
    inside = grid[(grid >= ends[0]) & (grid <= ends[1])]
    x = np.union1d(inside, np.linspace(*ends, N_CURVE_POINTS))
    density = posterior.pdf(x)
    # The density of a Beta with a < 1 or b < 1 is infinite at an end.
    density[~np.isfinite(density)] = density[np.isfinite(density)].max(initial=1.0)
    column = np.floor(2.0 * (RIGHT - LEFT) * x / axis_end)
    by_height = np.lexsort((-density, column))
    _, first = np.unique(column[by_height], return_index=True)
    kept = np.union1d(by_height[first], [0, len(x) - 1])
    return x[kept], density[kept]


def _mean(posterior: GammaPosterior, end: float) -> str:
    x = f"{_x(posterior.mean, end):.1f}"
    return _line("mean", (x, TOP), (x, BOTTOM), f'stroke="{VERMILION}" stroke-width="1.5"')


def _atom(posterior: GammaPosterior, end: float) -> str:
    """A stem at 0 whose height, as a fraction of the plot's height, is the probability."""
    if posterior.prob_zero == 0.0:
        return ""
    x, top = f"{_x(0.0, end):.1f}", f"{_y(posterior.prob_zero):.1f}"
    stem = _line("atom", (x, BOTTOM), (x, top), f'stroke="{GREY}" stroke-width="3"')
    return stem + f'<circle class="atom" cx="{x}" cy="{top}" r="4" fill="{GREY}"/>'


def _axis(end: float) -> str:
    """The axis with ticks at round shares, six intervals at most, and its title."""
    line = _line("axis", (LEFT, BOTTOM), (RIGHT, BOTTOM), 'stroke="currentColor"')
    ticks = _ticks(end, 6.0)
    labels = [_text("tick", _x(x, end), TICK_BASELINE, f"{100.0 * x:.5g}%") for x in ticks]
    title = "contamination factor γ (share of anomalies)"
    return line + "".join(labels) + _text("title", 0.5 * (LEFT + RIGHT), TITLE_BASELINE, title)


def _ticks(end: float, n_intervals: float) -> Array:
    """Round shares from 0 to `end`, with at most `n_intervals` intervals."""
    steps = [step for k in range(-6, 1) for step in np.array([1.0, 2.0, 5.0]) * 10.0**k]
    step = next((step for step in steps if end / step <= n_intervals), 1.0)
    return np.asarray(step * np.arange(int(end / step * (1.0 + 1e-9)) + 1))


def _legend(entries: Sequence[tuple[int, str, str, str]]) -> str:
    """The meaning of the colours, above the plot: left edge, class, words, colour."""
    return "".join(
        f'<rect class="{kind}" x="{x}" y="{LEGEND_TOP}" width="{LEGEND_SQUARE}" '
        f'height="{LEGEND_SQUARE}" fill="{colour}"/>'
        + _text("legend", x + LEGEND_INDENT, LEGEND_BASELINE, words, "start")
        for x, kind, words, colour in entries
    )


def _marks(marks: Mapping[str, float], end: float) -> str:
    """A dashed line at each share, with its label at its upper end, one below the other.

    The labels are on the right if the label of the last line fits there, otherwise on the left.
    The first label belongs to the line on the opposite side, so that no label crosses a line.
    """
    last = max(marks, key=lambda label: marks[label], default="")
    is_right = bool(marks) and _x(marks[last], end) + _text_width(last) < WIDTH
    ordered = sorted(marks.items(), key=lambda mark: mark[1], reverse=not is_right)
    drawn = ""
    for i, (label, share) in enumerate(ordered):
        x, y = _x(share, end), TOP + MARK_STEP * i
        style = 'stroke="currentColor" stroke-dasharray="3 3"'
        drawn += _line("mark", (f"{x:.1f}", f"{y:.1f}"), (f"{x:.1f}", BOTTOM), style)
        if is_right or x < _text_width(label):
            drawn += _text("mark", x + MARK_GAP, y + MARK_BASELINE, label, "start")
        else:
            drawn += _text("mark", x - MARK_GAP, y + MARK_BASELINE, label, "end")
    return drawn


def _text_width(words: str) -> float:
    """About the width of the words, with a gap on both sides."""
    return 2.0 * MARK_GAP + LETTER_WIDTH * len(words)


def _x(share: float, end: float) -> float:
    return LEFT + (RIGHT - LEFT) * share / end


def _y(height: float) -> float:
    return BOTTOM - (BOTTOM - TOP) * height


def _path(x: Array, height: Array, end: float) -> str:
    pairs = zip(x.tolist(), height.tolist(), strict=True)
    return "M" + " L".join(f"{_x(share, end):.1f} {_y(h):.1f}" for share, h in pairs)


def _line(name: str, start: tuple[object, object], stop: tuple[object, object], style: str) -> str:
    places = f'x1="{start[0]}" y1="{start[1]}" x2="{stop[0]}" y2="{stop[1]}"'
    return f'<line class="{name}" {places} {style}/>'


def _text(name: str, x: float, y: float, words: str, anchor: str = "middle") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="currentColor"'
    return f'<text class="{name}" {place}>{escape(words)}</text>'
