"""Pictures of posteriors and histories, by matplotlib, which only this module imports."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.files import write_document
from gammagmm._support.text import percent, visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gammagmm.monitoring.history import History
    from gammagmm.posterior.gamma_posterior import GammaPosterior

__all__ = [
    "plot_comparison",
    "plot_history",
    "plot_posterior",
    "save_picture",
]

Array = NDArray[np.float64]

# Okabe and Ito's colours: distinct for colour-blind readers, and in grey print.
BLUE, VERMILION, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#555555"
LIGHT = "#B4C4D4"
FIGURE_SIZE = (6.4, 3.6)
"""Width and height of a figure with one plot, in inches."""
SHARE_LABEL = "contamination factor γ (share of anomalies)"


def plot_posterior(posterior: GammaPosterior, ax: Axes | None = None) -> Axes:
    """Density of gamma with the atom at 0, the interval shaded and the mean; returns `ax`."""
    ax = _new_axes() if ax is None else ax
    low, high = posterior.interval()
    if not posterior.is_degenerate:
        grid = posterior.betas.grid()
        right = float(posterior.ppf(0.9999)) or 0.01
        grid = np.unique(np.append(grid[grid <= right], [low, high, right]))
        density = posterior.pdf(grid)
        inside = ((grid >= low) & (grid <= high)).tolist()
        label = posterior.range_name
        ax.fill_between(grid, density, where=inside, color=BLUE, alpha=0.2, label=label)
        ax.plot(grid, density, color=BLUE)
        ax.set_xlim(-0.03 * right, right)
    ax.axvline(posterior.mean, color=VERMILION, label=f"mean {posterior.mean:.1%}")
    # The atom is a stem whose height is its probability, as a fraction of the axis.
    height, transform = posterior.prob_zero, ax.get_xaxis_transform()
    label = f"P(no anomalies) = {height:.1%}"
    ax.plot([0.0, 0.0], [0.0, height], color=GREY, lw=3.0, transform=transform, label=label)
    ax.plot(0.0, height, "o", color=GREY, transform=transform, clip_on=False)
    _finish_density(ax)
    return ax


def plot_comparison(
    posteriors: Sequence[tuple[str, GammaPosterior]], ax: Axes | None = None
) -> Axes:
    """The densities of up to four posteriors, given as (name, posterior) pairs; returns `ax`."""
    ax = _new_axes() if ax is None else ax
    styles = ((BLUE, "-"), (VERMILION, "--"), (GREEN, ":"), (GREY, "-."))
    for (name, posterior), (colour, line) in zip(posteriors, styles, strict=False):
        # Matplotlib reads a dollar sign as a formula and omits labels that start with "_".
        label = f"{name}: mean {posterior.mean:.1%}".replace("$", r"\$")
        label = f" {label}" if label.startswith("_") else label
        if posterior.is_degenerate:
            ax.axvline(0.0, color=colour, ls=line, label=label)
            continue
        grid = posterior.betas.grid()
        grid = grid[grid <= float(posterior.ppf(0.9999))]
        ax.plot(grid, posterior.pdf(grid), color=colour, ls=line, label=label)
    _finish_density(ax)
    return ax


def plot_history(history: History, ax: Axes | None = None) -> Axes:
    """The share of rows above the threshold by period, with exact 90 % intervals; returns `ax`.

    The band is the interval of the reference share. Periods with a changed share are marked, and
    those of groups above.
    """
    ax = _new_axes() if ax is None else ax
    counts = [period.count for period in history.periods]
    places, shares = np.arange(len(counts)), np.array([count.share for count in counts])
    ends = np.array([count.interval() for count in counts]).reshape(-1, 2).T
    reference = history.reference
    ax.axhspan(*reference.interval(), color=LIGHT, alpha=0.5, lw=0.0)
    label = f"training rows {percent(reference.share)}"
    ax.axhline(reference.share, color=GREY, ls="--", lw=1.0, label=label)
    label = "new rows, 90 % interval"
    ax.errorbar(
        places, shares, np.abs(ends - shares), fmt="o", color=BLUE, ms=4.0, lw=1.2, label=label
    )
    alarms = np.array([state.is_alarm for state in history.states], dtype=bool)
    if alarms.any():
        ax.plot(
            places[alarms], shares[alarms], "D", color=VERMILION, ms=6.0, label="changed", zorder=3
        )
    changed = [t for t in places.tolist() if history.changed_groups(t)]
    if changed:
        top = ax.get_xaxis_transform()
        heights = np.full(len(changed), 0.97)
        ax.plot(changed, heights, "v", color=VERMILION, transform=top, label="a group changed")
    _name_periods(ax, [period.name for period in history.periods])
    ax.set_ylim(bottom=0.0)
    ax.set_ylabel("rows above the threshold")
    ax.yaxis.set_major_formatter("{x:.1%}")
    ax.legend(frameon=False, loc="upper left")
    return ax


def _name_periods(ax: Axes, names: list[str]) -> None:
    """At most a dozen of the names below the axis."""
    step = max(1, -(-len(names) // 12))
    # Matplotlib reads a dollar sign as a formula.
    words = [visible(name).replace("$", r"\$")[:24] for name in names[::step]]
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
    ax.set_xlabel(SHARE_LABEL)
    ax.set_ylabel("posterior density")
    ax.xaxis.set_major_formatter("{x:.0%}")
    ax.legend(frameon=False)


def _new_axes() -> Axes:
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=FIGURE_SIZE, layout="constrained")[1]
