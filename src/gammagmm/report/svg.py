"""Posteriors, rankings, columns, groups and histories -> pictures as SVG.

Every picture is as wide as the place it stands in: places across are percentages, and places down
are pixels. A picture needs no script, style sheet or other file; a page can change its colours by
their classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.text import counted, percent, visible
from gammagmm.monitoring.sentences import state_sentence
from gammagmm.posterior.gamma_posterior import GammaPosterior
from gammagmm.posterior.sentences import sentence
from gammagmm.report.curves import RankCurve, density, share_end, share_ticks
from gammagmm.report.palette import ACCENT, ALARM, FONT, LINE, REFERENCE

if TYPE_CHECKING:
    from gammagmm.estimator.reasons import ColumnShape, Reason
    from gammagmm.labels.recall import AnomaliesLeft
    from gammagmm.monitoring.counts import Period
    from gammagmm.monitoring.history import History

__all__ = [
    "ShareLine",
    "ShareScale",
    "bar_svg",
    "column_svg",
    "found_svg",
    "left_svg",
    "series_axis_svg",
    "series_svg",
    "share_scale",
    "share_svg",
    "strip_svg",
]

Array = NDArray[np.float64]

COLOURS = {
    "accent": ACCENT,
    "alarm": ALARM,
    "reference": REFERENCE,
    "line": LINE,
    "ink": "currentColor",
}
# Pixels.
WORDS_HEIGHT, CURVE_HEIGHT, DENSITY_HEIGHT, BAR_HEIGHT = 20, 102, 62, 32
GAP, WAVE_HEIGHT, MARK = 6, 18, 4.5
FOUND_HEIGHT, SERIES_TOP, SERIES_BOTTOM = 120, 8, 180
STRIP_WIDTH, STRIP_HEIGHT = 76, 24
SERIES_LEFT = 6.0
"""Place of the left edge of a series, in percent: the labels of its shares are beside it."""
N_NAMES, MAX_NAME, MAX_TITLE = 6, 13, 60
"""Most names below a series; most of their characters, as of 2026-03-01T09, there and in titles."""
UNITS = 1000
"""Width of a curve in the units of its own coordinates."""
NARROW = 0.3
"""Words begin at their interval if it begins left of this place, and end with it at the right."""
MOST_ROWS = 0.9
"""Share of the rows whose groups must have their whole intervals in the picture."""
N_TICKS = 4.0
"""Most intervals between round shares on an even scale."""


def share_svg(posterior: GammaPosterior, curve: RankCurve | None = None) -> str:
    """What is known of the share of anomalies and, below the same axis, of the rows.

    Above, the scores of the rows in their order, with the flagged ones filled. Below, what the
    share can be. Without labels, this is what it was in labelled tables, and the model's range is a
    line; with labels it is the posterior, with the labelled tables behind it.
    """
    end, known = share_end(posterior), _known(posterior)
    start, top, drawn = 0, 0, ""
    if curve is not None:
        start, top = WORDS_HEIGHT, WORDS_HEIGHT + CURVE_HEIGHT + GAP
        drawn = _curve(curve, end)
    base = top + WAVE_HEIGHT + DENSITY_HEIGHT
    drawn += _densities(posterior, known, end, base, has_rows=curve is not None)
    if posterior.has_estimate:
        drawn += _cut(posterior, curve, end, base)
    for each, words, name in _bars(posterior, known):
        drawn += _bar(each, words, name, end, base)
        base += BAR_HEIGHT
    drawn += _share_axis(end, base + 6, None if curve is None else curve.n_rows)
    left, right = (100.0 * _place(min(share, end), end) for share in known.interval())
    band = (
        f'<rect class="accent" x="{left:.2f}%" y="{start}" width="{right - left:.2f}%" '
        f'height="{base - start}" fill="{ACCENT}" fill-opacity="0.1"/>'
    )
    data = f' data-end="{end!r}" data-bottom="{base}"'
    height = base + (24 if curve is None else 54)
    return _svg(band + drawn, height, _share_words(posterior, curve), data, "shares")


def _known(posterior: GammaPosterior) -> GammaPosterior:
    """What is known of the share: the labelled tables if there are no labels."""
    return GammaPosterior.reference() if posterior.is_model else posterior


def _densities(
    posterior: GammaPosterior, known: GammaPosterior, end: float, base: float, *, has_rows: bool
) -> str:
    """What is known, filled, and what it is compared with; beside rows, the model is a range."""
    drawn = _density(known, end, base, "accent", is_filled=True)
    if not posterior.is_model:
        drawn += _density(GammaPosterior.reference(), end, base, "reference")
    elif not has_rows:
        drawn += _density(posterior, end, base, "alarm")
    words = "the share, by your answers" if posterior.n_labels else "shares in public tables"
    is_left = _place(min(posterior.mean, end), end) > 0.5  # beside the line of the cut
    at, anchor = (0.0, "start") if is_left else (1.0, "end")
    drawn += _text("wave", at, base - DENSITY_HEIGHT - 5, words, anchor)
    return drawn if has_rows and not posterior.has_estimate else drawn + _atom(posterior, base)


def _bars(
    posterior: GammaPosterior, known: GammaPosterior
) -> list[tuple[GammaPosterior, str, str]]:
    """The intervals below the densities, with their names and colours."""
    tables = "nine of ten public tables"
    if not posterior.is_model:
        reference = GammaPosterior.reference()
        return [(known, posterior.range_name, "accent"), (reference, tables, "reference")]
    model = [(posterior, posterior.range_name, "alarm")] if posterior.has_estimate else []
    return [(known, tables, "accent"), *model]


def _share_words(posterior: GammaPosterior, curve: RankCurve | None) -> str:
    """The picture in words."""
    words = ""
    if curve is not None:
        flagged = f"{curve.n_flagged:,} of {curve.n_rows:,} are flagged"
        words = f"Scores of the rows in their order: {flagged}. "
    low, high = (percent(share) for share in GammaPosterior.reference().interval())
    tables = f"In nine of ten public tables, the share of anomalies was {low} to {high}."
    return f"{words}{tables} {sentence(posterior)}"


def _curve(curve: RankCurve, end: float) -> str:
    """The scores as steps: filled with the alarm colour as far as rows are flagged."""
    top, bottom = float(curve.scores.max()), float(curve.scores.min())
    margin = 0.06 * (top - bottom or 1.0)  # the first row must not look cut off
    top, bottom = top + margin, bottom - margin
    heights = 1.0 - (curve.scores - bottom) / (top - bottom or 1.0)
    across = np.sqrt(np.minimum(curve.edges / end, 1.0))
    is_flagged = curve.edges[:-1] < (curve.n_flagged - 0.5) / curve.n_rows
    drawn = ""
    for chosen, name, opacity in ((~is_flagged, "reference", 0.45), (is_flagged, "alarm", 0.9)):
        if chosen.any():
            first, last = np.flatnonzero(chosen)[[0, -1]]
            edges, steps = across[first : last + 2], heights[first : last + 1]
            path = _path(np.repeat(edges, 2)[1:-1], np.repeat(steps, 2) * CURVE_HEIGHT)
            ends = (f"{UNITS * edge:.1f} {CURVE_HEIGHT}" for edge in (edges[-1], edges[0]))
            drawn += _shape(name, f"{path} L{' L'.join(ends)} Z", opacity)
    parts = _plot(drawn, WORDS_HEIGHT, CURVE_HEIGHT)
    for share, score, label in sorted(curve.known, key=lambda mark: mark[2]):
        y = WORDS_HEIGHT + CURVE_HEIGHT * (1.0 - (score - bottom) / (top - bottom or 1.0))
        place = (
            f'cx="{100.0 * _place(share, end):.2f}%" cy="{min(y, WORDS_HEIGHT + CURVE_HEIGHT):.1f}"'
        )
        kind = "known anomaly" if label else "known normal"
        fill = (
            f'fill="{ALARM}" stroke="#ffffff"' if label else 'fill="#ffffff" stroke="currentColor"'
        )
        parts += f'<circle class="{kind}" {place} r="{MARK - 0.5:g}" {fill} stroke-width="1.2"/>'
    return parts


def _cut(posterior: GammaPosterior, curve: RankCurve | None, end: float, base: float) -> str:
    """A line through the picture at the estimate and, above the rows, how many are flagged."""
    place = _place(min(posterior.mean, end), end)
    x, top = f"{100.0 * place:.2f}%", 0 if curve is None else WORDS_HEIGHT
    line = (
        f'<line class="cut" x1="{x}" y1="{top}" x2="{x}" y2="{base}" stroke="currentColor" '
        'stroke-width="1.5" stroke-dasharray="4 3"/>'
    )
    if curve is None:
        return line
    # It begins at the left edge of the flagged rows, or ends with them.
    anchor, at = ("start", place) if place < 0.6 else ("end", place)
    words = f"{counted(curve.n_flagged, 'row')} flagged"
    return line + _text("flag", at, WORDS_HEIGHT - 6, words, anchor)


def _density(
    posterior: GammaPosterior, end: float, base: float, name: str, *, is_filled: bool = False
) -> str:
    shares, heights = density(posterior, end)
    if not len(shares):
        return ""
    heights = heights * (1.0 if is_filled else 0.55)
    across, down = np.sqrt(shares / end), DENSITY_HEIGHT * (1.0 - 0.96 * heights)
    path = _path(across, down)
    drawn = ""
    if is_filled:
        ends = (f"{UNITS * x:.1f} {DENSITY_HEIGHT}" for x in (across[-1], across[0]))
        drawn = _shape(name, f"{path} L{' L'.join(ends)} Z", 0.3)
    dashes = "" if is_filled else ' stroke-dasharray="5 3"'
    drawn += (
        f'<path class="{name}-line density" d="{path}" fill="none" stroke="{COLOURS[name]}" '
        f'stroke-width="1.5" vector-effect="non-scaling-stroke"{dashes}/>'
    )
    return _plot(drawn, base - DENSITY_HEIGHT, DENSITY_HEIGHT)


def _atom(posterior: GammaPosterior, base: float) -> str:
    """A stem at 0 whose height is the probability, as a fraction of the plot's height."""
    if posterior.prob_zero < 0.02:
        return ""
    top = base - DENSITY_HEIGHT * posterior.prob_zero
    return (
        f'<line class="reference-line" x1="0" y1="{base}" x2="0" y2="{top:.1f}" '
        f'stroke="{REFERENCE}" stroke-width="3"/>'
        f'<circle class="reference atom" cx="0" cy="{top:.1f}" r="{MARK}" fill="{REFERENCE}"/>'
    )


def _bar(posterior: GammaPosterior, words: str, name: str, end: float, top: float) -> str:
    """An interval as a line below its words."""
    low, high = posterior.interval()
    left, right = (_place(min(share, end), end) for share in (low, high))
    words = f"{words}: {percent(low)} to {percent(high)}"
    anchor, at = "start", left
    if left > NARROW:
        anchor, at = ("end", right) if right > 1.0 - NARROW else ("middle", 0.5 * (left + right))
    y = top + 25
    return (
        _text("bar", at, top + 15, words, anchor)
        + f'<line class="{name}-line bar" x1="{100.0 * left:.2f}%" y1="{y}" '
        f'x2="{100.0 * right:.2f}%" y2="{y}" stroke="{COLOURS[name]}" stroke-width="4" '
        'stroke-linecap="round"/>'
    )


def _share_axis(end: float, y: float, n_rows: int | None) -> str:
    """Ticks at round shares and, with `n_rows`, the number of rows below them."""
    parts = f'<line class="axis" x1="0" y1="{y}" x2="100%" y2="{y}" stroke="currentColor"/>'
    for share in share_ticks(end):
        place = _place(share, end)
        anchor = "start" if place == 0.0 else "end" if place > 0.97 else "middle"
        parts += _text("tick", place, y + 15, f"{100.0 * share:.5g}%", anchor)
        if n_rows is not None:
            words = f"{share * n_rows:,.0f}" if share else "rows"
            parts += _text("tick rows", place, y + 30, words, anchor, 0.75)
    if n_rows is not None:
        words = "rows, most anomalous first (uneven scale)"
        parts += _text("title", 0.5, y + 46, words, "middle", 0.75)
    return parts


def found_svg(curves: Sequence[tuple[str, str, Sequence[int]]], words: str) -> str:
    """Anomalies found against rows looked at: `curves` are names, colours, and counts found.

    Entry i of the counts is the number of anomalies among the first i + 1 rows.
    """
    n_rows = max(len(found) for _, _, found in curves)
    n_found = max(max(found[-1] for _, _, found in curves), 1)
    drawn, told = "", []
    for name, colour, found in curves:
        height = np.append(0.0, found) / n_found
        # A step up at each anomaly.
        x = np.repeat(np.arange(len(found) + 1.0), 2)[1:] / n_rows
        path = _path(x, FOUND_HEIGHT * (1.0 - 0.96 * np.repeat(height, 2)[:-1]))
        drawn += (
            f'<path class="{colour}-line found" d="{path}" fill="none" stroke="{COLOURS[colour]}" '
            'stroke-width="2" vector-effect="non-scaling-stroke"/>'
        )
        half = found[(len(found) - 1) // 2]
        told.append(f"the {name} has found {half:,} of {found[-1]:,}")
    parts = _plot(drawn, 0, FOUND_HEIGHT)
    y = FOUND_HEIGHT
    parts += f'<line class="axis" x1="0" y1="{y}" x2="100%" y2="{y}" stroke="currentColor"/>'
    for tick, anchor in ((0, "start"), (n_rows // 2, "middle"), (n_rows, "end")):
        parts += _text("tick", tick / n_rows, y + 15, f"{tick:,}", anchor)
    parts += _text("title", 0.5, y + 31, f"{words} looked at", "middle", 0.75)
    parts += _text(
        "total", 1.0, 22, "1 anomaly" if n_found == 1 else f"{n_found:,} anomalies", "end"
    )
    label = f"Anomalies found among {n_rows:,} {words}. After half of them, {', and '.join(told)}."
    return _svg(parts, y + 36, label, kind="found")


def left_svg(left: AnomaliesLeft) -> str:
    """Anomalies that are found, and those that are probably left, on one line of all anomalies."""
    end = max(left.n_found + left.high, 1.0)
    found, mean, high = (
        count / end for count in (left.n_found, left.n_found + left.mean, left.n_found + left.high)
    )
    y = 16
    parts = (
        f'<rect class="reference" x="{100.0 * found:.2f}%" y="{y}" '
        f'width="{100.0 * (mean - found):.2f}%" height="14" fill="{REFERENCE}" '
        'fill-opacity="0.45"/>'
        f'<rect class="alarm" x="0" y="{y}" width="{100.0 * found:.2f}%" height="14" '
        f'fill="{ALARM}"/>'
        f'<line class="ink" x1="{100.0 * (left.n_found + left.low) / end:.2f}%" y1="{y + 7}" '
        f'x2="{100.0 * high:.2f}%" y2="{y + 7}" stroke="currentColor" stroke-width="1.5"/>'
    )
    parts += _text("found", 0.0, 11, f"{left.n_found:,} found", "start")
    words = f"about {left.mean:,.0f} left ({left.low:,.0f} to {left.high:,.0f})"
    parts += _text("left", 1.0, 11, words, "end")
    label = f"{left.n_found:,} anomalies are found, and {words}."
    return _svg(parts, y + 16, label, kind="left")


def bar_svg(parts: Sequence[tuple[str, str, float]]) -> str:
    """Counts as parts of one bar: names, colours, and counts."""
    total, start, drawn = sum(count for _, _, count in parts) or 1.0, 0.0, ""
    for _, colour, count in parts:
        width = 100.0 * count / total
        drawn += (
            f'<rect class="{colour}" x="{start:.2f}%" y="0" width="{width:.2f}%" height="14" '
            f'fill="{COLOURS[colour]}"/>'
        )
        start += width
    label = ", ".join(f"{name} {count:,.0f}" for name, _, count in parts)
    return _svg(drawn, 14, label)


def series_svg(history: History, n_periods: int, left: float = SERIES_LEFT) -> str:
    """The share of rows above the threshold in the last `n_periods` periods.

    The band is the range in which 90 % of the shares lie if nothing changes. Periods of a change
    are diamonds. A dashed line marks where the series was started again. The labels of the shares
    take the part `left` of the width, in percent; with 0, `series_axis_svg` has them.
    """
    first = max(0, len(history.periods) - n_periods)
    periods, ranges = history.periods[first:], history.usual_ranges[first:]
    end = _series_end(history, first)
    step = (100.0 - left) / max(len(periods), 1)
    places = [left + step * (i + 0.5) for i in range(len(periods))]
    drawn = _grid(end, left)
    if left:
        drawn += _share_labels(end, left / 100.0 - 0.01)
    for x, (low, high) in zip(places, ranges, strict=True):
        if not np.isnan(low):
            drawn += (
                f'<rect class="accent usual" x="{x - 0.5 * step:.3f}%" y="{_down(high, end):.1f}" '
                f'width="{step:.3f}%" height="{_down(low, end) - _down(high, end):.1f}" '
                f'fill="{ACCENT}" fill-opacity="0.18" shape-rendering="crispEdges"/>'
            )
    every = max(1, -(-len(periods) // N_NAMES))
    for t, (x, period) in enumerate(zip(places, periods, strict=True)):
        if t and first + t in history.starts:
            at = f"{x - 0.5 * step:.2f}%"
            drawn += (
                f'<line class="start" x1="{at}" y1="0" x2="{at}" y2="{SERIES_BOTTOM}" '
                'stroke="currentColor" stroke-dasharray="4 3"/>'
            )
        if t % every == 0:
            words = visible(period.name)[:MAX_NAME]
            place, anchor = (x / 100.0, "middle") if t or left else (0.0, "start")
            drawn += _text("tick", place, SERIES_BOTTOM + 18, words, anchor)
        if period.count.n_rows:
            is_changed = first + t in history.changed_places
            drawn += _point(period, x, _down(period.count.share, end), is_changed=is_changed)
    label = f"Share of rows above the threshold by period. {state_sentence(history)}"
    return _svg(drawn, SERIES_BOTTOM + 26, label, kind="history")


def series_axis_svg(history: History, n_periods: int) -> str:
    """The labels of the shares of `series_svg`, which stay in place where that is scrolled."""
    end = _series_end(history, max(0, len(history.periods) - n_periods))
    return _svg(_share_labels(end, 1.0), SERIES_BOTTOM + 26, "", kind="axis")


def _series_end(history: History, first: int) -> float:
    """The largest share in the picture of the periods from the place `first` on."""
    shares = [period.count.share for period in history.periods[first:]]
    highs = [high for _, high in history.usual_ranges[first:]]
    return float(min(1.0, 1.1 * np.nanmax([*shares, *highs, 0.001])))


def _grid(end: float, left: float) -> str:
    """Lines at round shares, from the place `left` on, in percent."""
    return "".join(
        f'<line class="grid" x1="{left:g}%" y1="{_down(share, end):.1f}" x2="100%" '
        f'y2="{_down(share, end):.1f}" stroke="currentColor" stroke-opacity="0.2"/>'
        for share in _round_shares(end)
    )


def _share_labels(end: float, right: float) -> str:
    """The labels of these lines, which end at the place `right`."""
    return "".join(
        _text("tick", right, _down(share, end) + 4.0, f"{100.0 * share:.4g}%", "end")
        for share in _round_shares(end)
    )


def _point(period: Period, x: float, y: float, *, is_changed: bool) -> str:
    """The share of a period: a diamond if it belongs to a change."""
    count = period.count
    words = f"{count.n_above:,} of {count.n_rows:,} rows, {percent(count.share)}"
    title = f"<title>{escape(visible(period.name)[:MAX_TITLE])}: {words}</title>"
    if not is_changed:
        place = f'cx="{x:.2f}%" cy="{y:.1f}" r="4"'
        return f'<circle class="accent quiet" {place} fill="{ACCENT}">{title}</circle>'
    return (
        f'<svg x="{x:.2f}%" y="{y:.1f}" overflow="visible"><path class="alarm changed" '
        f'd="M0 -6 L6 0 L0 6 L-6 0 Z" fill="{ALARM}">{title}</path></svg>'
    )


def _down(share: float, end: float) -> float:
    """Where a share is in the picture of a series, in pixels from the top."""
    return SERIES_BOTTOM - (SERIES_BOTTOM - SERIES_TOP) * share / end


def column_svg(shape: ColumnShape, name: str) -> str:
    """The values of a column as the symbol `name`, which strips show behind their marks."""
    edges = 4.0 + (STRIP_WIDTH - 8.0) * np.asarray(shape.edges)
    heights = np.sqrt(np.asarray(shape.heights))  # a rare value is seen as well
    down = STRIP_HEIGHT - 2.0 - (STRIP_HEIGHT - 4.0) * heights
    pairs = zip(np.repeat(edges, 2)[1:-1].tolist(), np.repeat(down, 2).tolist(), strict=True)
    path = " L".join(f"{x:.1f} {y:.1f}" for x, y in pairs)
    base = STRIP_HEIGHT - 2
    low, high = (4.0 + (STRIP_WIDTH - 8.0) * place for place in (shape.low, shape.high))
    return (
        f'<symbol id="{name}" viewBox="0 0 {STRIP_WIDTH} {STRIP_HEIGHT}">'
        f'<rect class="usual" x="{low:.1f}" y="0" width="{max(high - low, 2.0):.1f}" '
        f'height="{base}" fill="{ACCENT}" fill-opacity="0.14"/>'
        f'<path class="reference" d="M4 {base} L{path} L{STRIP_WIDTH - 4} {base} Z" '
        f'fill="{REFERENCE}"/></symbol>'
    )


def strip_svg(reason: Reason, shape: ColumnShape | None = None, name: str = "") -> str:
    """The value of a row as a mark on the values of its column, which are the symbol `name`.

    A value of a column with only two is the part of the rows that have it. Usual values have no
    colour of an alarm.
    """
    mark, colour = ("alarm", ALARM) if reason.is_odd else ("accent", ACCENT)
    start = (
        f'<svg class="strip" viewBox="0 0 {STRIP_WIDTH} {STRIP_HEIGHT}" width="{STRIP_WIDTH}" '
        f'height="{STRIP_HEIGHT}" aria-hidden="true">'
    )
    if shape is None:
        width = STRIP_WIDTH - 8.0
        own = max((reason.share or 0.0) * width, 2.5)
        bar = f'<rect x="4" y="{STRIP_HEIGHT / 2 - 4:g}" height="8" '
        return (
            f'{start}{bar}class="reference" width="{width:g}" fill="{REFERENCE}" '
            f'fill-opacity="0.45"/>{bar}class="{mark}" width="{own:.1f}" fill="{colour}"/></svg>'
        )
    x = 4.0 + (STRIP_WIDTH - 8.0) * shape.place(reason)
    return (
        f'{start}<use href="#{name}"/>'
        f'<line class="{mark}-line" x1="{x:.1f}" y1="1" x2="{x:.1f}" y2="{STRIP_HEIGHT - 2}" '
        f'stroke="{colour}" stroke-width="2"/>'
        f'<circle class="{mark}" cx="{x:.1f}" cy="4" r="3.5" fill="{colour}"/></svg>'
    )


@dataclass(frozen=True)
class ShareLine:
    """A line of a table of groups: a share of the rows of one group, and its 90 % interval.

    `exact` is the exact interval, where this is that of a posterior.
    """

    group: object
    n_rows: int  # that the share comes from
    n_found: int
    share: float
    low: float
    high: float
    exact: tuple[float, float] | None = None


@dataclass(frozen=True)
class ShareScale:
    """The scale of the pictures in the lines of a table of groups.

    `end` is the share at the right edge. A dashed line marks the share `overall`, if there is one.
    """

    end: float
    overall: float | None

    def axis(self) -> str:
        """The ticks above the pictures."""
        words = [(x / self.end, f"{100.0 * x:.5g}%") for x in _round_shares(self.end)]
        drawn = "".join(
            _text("tick", x, 11, each, "start" if x == 0.0 else "end" if x > 0.97 else "middle")
            for x, each in words
        )
        return _svg(drawn, 16, f"Picture of the shares, from 0% to {percent(self.end)}")

    def picture(self, line: ShareLine) -> str:
        """The share as a point on its interval; an arrow if it continues beyond the right edge."""
        low, high = (f"{self._x(min(share, self.end))}%" for share in (line.low, line.high))
        drawn = (
            f'<line class="accent-line share" x1="{low}" y1="8" x2="{high}" y2="8" '
            f'stroke="{ACCENT}" stroke-width="2"/>'
        )
        if self.overall is not None:
            x = f"{self._x(self.overall)}%"
            drawn += (
                f'<line class="overall" x1="{x}" y1="0" x2="{x}" y2="16" stroke="currentColor" '
                'stroke-opacity="0.6" stroke-dasharray="3 3"/>'
            )
        if line.high > self.end:
            arrow = f'<path class="accent share" d="M-6 4 L1 8 L-6 12 Z" fill="{ACCENT}"/>'
            drawn += f'<svg x="100%" overflow="visible">{arrow}</svg>'
        if line.share <= self.end:
            drawn += (
                f'<circle class="accent share" cx="{self._x(line.share)}%" cy="8" r="4" '
                f'fill="{ACCENT}"/>'
            )
        return _svg(drawn, 16, "")

    def _x(self, share: float) -> float:
        return round(100.0 * share / self.end, 2)


def share_scale(lines: Sequence[ShareLine], overall: float | None = None) -> ShareScale:
    """The scale for the pictures of `lines`.

    Small groups have wide intervals, which would leave little room for the others. So the scale
    ends where the intervals of groups with `MOST_ROWS` of the rows end.
    """
    lines = sorted(lines, key=lambda line: line.high)
    n_rows = np.cumsum([line.n_rows for line in lines])
    last = int(np.searchsorted(n_rows, MOST_ROWS * n_rows[-1]))
    return ShareScale(max(lines[last].high, 1.05 * (overall or 0.0), 1e-6), overall)


def _round_shares(end: float) -> list[float]:
    """Round shares from 0 to `end`, for an even scale."""
    steps = [step * 10.0**k for k in range(-6, 1) for step in (1.0, 2.0, 5.0)]
    step = next((step for step in steps if end / step <= N_TICKS), 1.0)
    return (step * np.arange(int(end / step * (1.0 + 1e-9)) + 1)).tolist()


def _place(share: float, end: float) -> float:
    """Where a share is on an axis to `end`, from 0 to 1."""
    return float(np.sqrt(share / end))


def _path(x: Array, y: Array) -> str:
    """Lines through points whose `x` go from 0 to 1; `y` are pixels from the top."""
    pairs = zip((UNITS * x).tolist(), y.tolist(), strict=True)
    return "M" + " L".join(f"{across:.1f} {down:.1f}" for across, down in pairs)


def _shape(name: str, path: str, opacity: float) -> str:
    return f'<path class="{name}" d="{path}" fill="{COLOURS[name]}" fill-opacity="{opacity}"/>'


def _plot(drawn: str, top: float, height: float) -> str:
    """Curves, whose own units are stretched to the width of the picture."""
    return (
        f'<svg x="0" y="{top}" width="100%" height="{height}" viewBox="0 0 {UNITS} {height}" '
        f'preserveAspectRatio="none">{drawn}</svg>'
    )


def _text(
    name: str, x: float, y: float, words: str, anchor: str, opacity: float | None = None
) -> str:
    pale = "" if opacity is None else f' fill-opacity="{opacity}"'
    place = f'x="{100.0 * x:.2f}%" y="{y:g}" text-anchor="{anchor}" fill="currentColor"{pale}'
    return f'<text class="{name}" {place}>{escape(words)}</text>'


def _svg(drawn: str, height: float, label: str, data: str = "", kind: str = "") -> str:
    """A picture with the words that stand for it; without words it only repeats what is written."""
    role = f'role="img" aria-label="{escape(label)}"' if label else 'aria-hidden="true"'
    name = f' class="{kind}"' if kind else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg"{name} width="100%" height="{height:g}" '
        f'overflow="visible" font-family="{FONT}" font-size="12"{data} {role}>'
        f"{drawn}</svg>"
    )
