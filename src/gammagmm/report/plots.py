"""Pictures of results by matplotlib, which only this module imports; same colours as the report."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.files import write_document
from gammagmm._support.text import counted, percent, visible
from gammagmm.posterior.gamma_posterior import GammaPosterior
from gammagmm.report.curves import rank_curve, share_end, share_ticks
from gammagmm.report.palette import ACCENT, ALARM, INK, LINE, MUTED, REFERENCE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gammagmm.estimator.fit_result import Fit
    from gammagmm.labels.group_shares import GroupShares
    from gammagmm.labels.labelled_rows import LabelledRows
    from gammagmm.monitoring.history import History

__all__ = [
    "STYLE",
    "plot_comparison",
    "plot_groups",
    "plot_history",
    "plot_labels",
    "plot_posterior",
    "plot_ranking",
    "save_picture",
]

Array = NDArray[np.float64]

FIGURE_SIZE = (6.4, 3.6)
"""Width and height of a figure with one plot, in inches."""
MAX_GROUPS = 30
"""Most groups in a picture."""
STYLE: dict[Any, Any] = {
    "text.color": INK,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "xtick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.color": MUTED,
    "ytick.labelcolor": INK,
    "legend.edgecolor": "none",
    "legend.framealpha": 0.85,
}
"""Settings of matplotlib that every picture is drawn with."""


def _styled(draw: Callable[[Any, Axes], None]) -> Callable[..., Axes]:
    """`draw` in the style of all pictures, on new axes unless some are given, which it returns."""

    @wraps(draw)
    def styled(result: Any, ax: Axes | None = None) -> Axes:
        from matplotlib import rc_context

        with rc_context(STYLE):
            if ax is None:
                import matplotlib.pyplot as plt

                ax = plt.subplots(figsize=FIGURE_SIZE, layout="constrained")[1]
            draw(result, ax)
            for side in ("top", "right"):
                ax.spines[side].set_visible(False)
        return ax

    return styled


@_styled
def plot_posterior(posterior: GammaPosterior, ax: Axes) -> None:
    """Density of gamma with the atom at 0, the interval shaded and the mean; returns `ax`."""
    low, high = posterior.interval()
    if not posterior.is_degenerate:
        grid = posterior.betas.grid()
        right = float(posterior.ppf(0.9999)) or 0.01
        grid = np.unique(np.append(grid[grid <= right], [low, high, right]))
        density = posterior.pdf(grid)
        inside = ((grid >= low) & (grid <= high)).tolist()
        label = posterior.range_name
        ax.fill_between(grid, density, where=inside, color=ACCENT, alpha=0.25, lw=0.0, label=label)
        ax.plot(grid, density, color=ACCENT)
        ax.set_xlim(-0.03 * right, right)
        if posterior.is_model or posterior.n_labels:
            tables = GammaPosterior.reference()
            _, top = ax.get_ylim()
            heights, label = tables.pdf(grid[1:]), "public tables"
            ax.plot(grid[1:], heights, color=REFERENCE, ls="--", lw=1.2, label=label)
            ax.set_ylim(top=top)  # that of the posterior
    label = f"mean {posterior.mean:.1%}"
    ax.axvline(posterior.mean, color=INK, ls=(0, (4, 3)), lw=1.2, label=label)
    # The atom is a stem whose height is its probability, as a fraction of the axis.
    height, transform = posterior.prob_zero, ax.get_xaxis_transform()
    label = f"P(no anomalies) = {height:.1%}"
    ax.plot([0.0, 0.0], [0.0, height], color=REFERENCE, lw=3.0, transform=transform, label=label)
    ax.plot(0.0, height, "o", color=REFERENCE, transform=transform, clip_on=False)
    _finish_density(ax)


@_styled
def plot_comparison(posteriors: Sequence[tuple[str, GammaPosterior]], ax: Axes) -> None:
    """The densities of up to four posteriors, given as (name, posterior) pairs; returns `ax`."""
    styles = ((ACCENT, "-"), (ALARM, "--"), (INK, ":"), (REFERENCE, "-."))
    for (name, posterior), (colour, line) in zip(posteriors, styles, strict=False):
        label = _plain(f"{name}: mean {posterior.mean:.1%}")
        if posterior.is_degenerate:
            ax.axvline(0.0, color=colour, ls=line, label=label)
            continue
        grid = posterior.betas.grid()
        grid = grid[grid <= float(posterior.ppf(0.9999))]
        ax.plot(grid, posterior.pdf(grid), color=colour, ls=line, label=label)
    _finish_density(ax)


@_styled
def plot_ranking(fit: Fit, ax: Axes) -> None:
    """The scores of the rows in their order, the cut, and where it can be; returns `ax`.

    The band is the 90 % interval of the share or, without labels, the shares in nine of ten
    public tables.
    """
    posterior = fit.posterior
    end = share_end(posterior)
    curve = rank_curve(fit, end)
    known = GammaPosterior.reference() if posterior.is_model else posterior
    low, high = known.interval()
    words = "in nine of ten public tables" if posterior.is_model else known.range_name
    label = f"{percent(low)} to {percent(high)}: {words}"
    ax.axvspan(low, min(high, end), color=ACCENT, alpha=0.12, lw=0.0, label=label)
    bottom = float(curve.scores.min())
    bottom -= 0.06 * (float(curve.scores.max()) - bottom)
    is_flagged = curve.edges[:-1] < (curve.n_flagged - 0.5) / curve.n_rows
    flagged = f"{counted(curve.n_flagged, 'row')} flagged"
    for chosen, colour, alpha, name in (
        (is_flagged, ALARM, 0.9, flagged),
        (~is_flagged, REFERENCE, 0.45, None),
    ):
        if chosen.any():
            first, last = np.flatnonzero(chosen)[[0, -1]]
            ax.stairs(
                curve.scores[first : last + 1],
                curve.edges[first : last + 2],
                baseline=bottom,
                fill=True,
                color=colour,
                alpha=alpha,
                lw=0.0,
                label=name,
            )
    for is_anomaly, fill, edge in ((False, "white", INK), (True, ALARM, "white")):
        places = [(share, score) for share, score, own in curve.known if own == is_anomaly]
        if places:
            name = "known anomaly" if is_anomaly else "known normal"
            x, y = zip(*places, strict=True)
            ax.plot(x, y, "o", ms=5.0, mfc=fill, mec=edge, ls="none", label=name, zorder=3)
    if posterior.has_estimate:
        ax.axvline(posterior.mean, color=INK, ls=(0, (4, 3)), lw=1.2)
    ax.set_xscale("function", functions=(_root, np.square))
    ax.set_xlim(0.0, end)
    ax.set_xticks(share_ticks(end))
    ax.xaxis.set_major_formatter(_tick)
    ax.set_ylim(bottom=bottom)
    ax.set_xlabel("share of the rows, most anomalous first")
    ax.set_ylabel("score")
    _legend_below(ax)


@_styled
def plot_labels(rows: LabelledRows, ax: Axes) -> None:
    """Anomalies found against labelled rows looked at in the ranking's order; returns `ax`."""
    found = np.append(0, rows.found_in_order)
    n_rows, n_found = len(found) - 1, int(found[-1])
    ax.step(np.arange(n_rows + 1), found, where="post", color=ACCENT, label="ranking")
    ax.plot([0, n_rows], [0, n_found], color=REFERENCE, ls="--", label="random order")
    left = rows.left
    ax.set_title(
        f"{left.n_found:,} found, about {left.mean:,.0f} left ({left.low:,.0f} to {left.high:,.0f})"
    )
    ax.set_xlabel("random labelled rows looked at")
    ax.set_ylabel("anomalies found")
    ax.locator_params(integer=True)
    ax.set_xlim(0, max(n_rows, 1))
    ax.set_ylim(0, max(1.05 * n_found, 1.0))
    ax.legend(loc="lower right")
    if n_rows and not n_found:
        words = f"None of the {n_rows:,} random labelled rows is an anomaly."
        ax.text(0.5, 0.5, words, transform=ax.transAxes, ha="center", wrap=True)


@_styled
def plot_groups(groups: GroupShares, ax: Axes) -> None:
    """The share of flagged rows of the largest groups with its exact range; returns `ax`."""
    shown = groups[:MAX_GROUPS]
    shares = np.array([each.share_flagged for each in shown])
    ends = np.array([(each.low_flagged, each.high_flagged) for each in shown]).reshape(-1, 2).T
    overall = sum(each.n_flagged for each in groups) / max(sum(each.n_rows for each in groups), 1)
    label = f"all rows {percent(overall)}"
    ax.axvline(overall, color=REFERENCE, ls="--", lw=1.0, label=label)
    places = np.arange(len(shown))
    label = "flagged rows, exact range (90%)"
    ax.errorbar(
        shares, places, xerr=np.abs(ends - shares), fmt="o", color=ACCENT, ms=4.0, label=label
    )
    ax.set_yticks(places, [_plain(f"{each.group}")[:24] for each in shown])
    ax.set_xlim(left=0.0)
    ax.set_xlabel("share of the rows that are flagged")
    ax.xaxis.set_major_formatter("{x:.1%}")
    ax.set_ylim(len(shown) - 0.5, -0.5)
    _legend_below(ax)


@_styled
def plot_history(history: History, ax: Axes) -> None:
    """The share of rows above the threshold by period, with exact ranges (90 %); returns `ax`.

    The band is the range in which 90 % of the shares lie if nothing changes. Periods of a change
    are marked, and those of groups above.
    """
    counts = [period.count for period in history.periods]
    places, shares = np.arange(len(counts)), np.array([count.share for count in counts])
    ends = np.array([count.interval() for count in counts]).reshape(-1, 2).T
    reference = history.reference
    low, high = np.array(history.usual_ranges).reshape(-1, 2).T.repeat(2, axis=1)
    edges = np.arange(len(counts) + 1).repeat(2)[1:-1] - 0.5
    ax.fill_between(edges, low, high, color=LINE, alpha=0.6, lw=0.0, label="usual range")
    label = f"training rows {percent(reference.share)}"
    ax.axhline(reference.share, color=REFERENCE, ls="--", lw=1.0, label=label)
    label = "new rows, exact range (90%)"
    ax.errorbar(
        places, shares, np.abs(ends - shares), fmt="o", color=ACCENT, ms=4.0, lw=1.2, label=label
    )
    if alarms := sorted(history.changed_places):
        ax.plot(alarms, shares[alarms], "D", color=ALARM, ms=6.0, label="changed", zorder=3)
    changed = [t for t in places.tolist() if history.changed_groups(t)]
    if changed:
        top = ax.get_xaxis_transform()
        heights = np.full(len(changed), 0.97)
        ax.plot(changed, heights, "v", color=ALARM, transform=top, label="a group changed")
    _name_periods(ax, [period.name for period in history.periods])
    ax.set_ylim(bottom=0.0)
    ax.set_ylabel("rows above the threshold")
    ax.yaxis.set_major_formatter("{x:.1%}")
    ax.legend(loc="upper left")


def _name_periods(ax: Axes, names: list[str]) -> None:
    """At most a dozen of the names below the axis."""
    step = max(1, -(-len(names) // 12))
    words = [_plain(name)[:24] for name in names[::step]]
    ax.set_xticks(range(0, len(names), step), words, rotation=45.0, ha="right")
    ax.set_xlim(-0.5, max(len(names), 1) - 0.5)


def save_picture(draw: Callable[[Axes], Axes], path: Any, overwrite: bool = False) -> None:
    """Write what `draw` draws on its axes to `path`; the file extension selects the format.

    The file is written completely or not at all.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=FIGURE_SIZE, layout="constrained")
    draw(figure.subplots())
    content = io.BytesIO()
    figure.savefig(content, dpi=150, format=Path(path).suffix[1:].lower())
    write_document(content.getvalue(), path, overwrite)


def _finish_density(ax: Axes) -> None:
    ax.set_ylim(bottom=0.0)
    ax.set_xlabel("share of anomalies γ")
    ax.set_ylabel("posterior density")
    ax.xaxis.set_major_formatter(_tick)
    ax.legend()


def _plain(name: str) -> str:
    """Words as matplotlib draws them.

    It reads a dollar sign as a formula and omits labels that start with "_".
    """
    words = visible(name).replace("$", r"\$")
    return f" {words}" if words.startswith("_") else words


def _legend_below(ax: Axes) -> None:
    """A legend that covers neither the picture nor its title."""
    ax.legend(loc="upper left", bbox_to_anchor=(0.0, -0.17), ncols=2, borderaxespad=0.2)


def _tick(share: float, _: float) -> str:
    """The label of a tick, without rounding."""
    return f"{100.0 * share:.5g}%"


def _root(share: Array) -> Array:
    return np.sqrt(np.maximum(share, 0.0))
