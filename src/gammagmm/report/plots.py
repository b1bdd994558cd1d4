"""Pictures of a posterior and of a fit, by matplotlib, which only this module imports."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.files import write_document
from gammagmm._support.text import percent, visible
from gammagmm.posterior.runs import first_solved

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gammagmm.estimator.fit_result import Fit
    from gammagmm.monitoring.history import History
    from gammagmm.posterior.gamma_posterior import GammaPosterior
    from gammagmm.posterior.runs import Run

__all__ = [
    "plot_comparison",
    "plot_history",
    "plot_posterior",
    "plot_steps",
    "save_comparison",
    "save_history_picture",
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
    """Density of gamma with the atom at 0, the 90 % interval shaded and the mean; returns `ax`."""
    ax = _new_axes() if ax is None else ax
    low, high = posterior.interval()
    if not posterior.is_degenerate:
        grid = posterior.betas.grid()
        right = float(posterior.ppf(0.9999)) or 0.01
        grid = np.unique(np.append(grid[grid <= right], [low, high, right]))
        density = posterior.pdf(grid)
        inside = ((grid >= low) & (grid <= high)).tolist()
        ax.fill_between(grid, density, where=inside, color=BLUE, alpha=0.2, label="90 % interval")
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
    """The share of rows beyond the cut in each period, with its exact 90 % interval; returns `ax`.

    The band is the interval of the reference share. Alarms are marked, and those of groups above.
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
    alarms = np.array([ring is not None for ring in history.rings], dtype=bool)
    if alarms.any():
        ax.plot(
            places[alarms], shares[alarms], "D", color=VERMILION, ms=8.0, label="alarm", zorder=3
        )
    rung = {t for rings in history.group_rings.values() for t, ring in enumerate(rings) if ring}
    if rung:
        top = ax.get_xaxis_transform()
        heights = np.full(len(rung), 0.97)
        ax.plot(
            sorted(rung), heights, "v", color=VERMILION, transform=top, label="alarm in a group"
        )
    _name_periods(ax, [period.name for period in history.periods])
    ax.set_ylim(bottom=0.0)
    ax.set_ylabel("rows beyond the cut")
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


def plot_steps(fit: Fit, axes: Any = None) -> NDArray[np.object_]:
    """The paper's Figure 1 for a fit; returns the four axes, as an array.

    (1) raw scores of the first two detectors against each other; (2) the same in score space, with
    the components of the first solved run, one standard deviation wide; (3) P(C* = k) of that run;
    (4) the posterior of all runs. Without a solved run, the first run has P(C* = 0) = 1.

    `axes` are four axes in any shape; None makes a figure.
    """
    axes = np.ravel(_new_panels() if axes is None else axes)
    if len(axes) != 4:
        raise ValueError(f"axes must contain four axes, got {len(axes)}.")
    raw, space, pmf, posterior = axes
    run = first_solved(fit.runs)
    # A single detector is drawn against itself.
    plane = [0, min(1, len(fit.detector_names) - 1)]
    names = [fit.detector_names[j] for j in plane]
    _draw_points(fit.scores[:, plane], raw)
    _set_labels(raw, "1  Raw scores of two detectors", *(f"{name}, raw" for name in names))
    _draw_points(fit.score_space[:, plane], space)
    _draw_components(run, plane, space)
    labels = (f"{name}, standardised" for name in names)
    _set_labels(space, "2  Score space and components", *labels)
    _draw_pmf(run.n_anomalous_pmf, pmf)
    _set_labels(pmf, "3  How many components are anomalous", "k", "P(C* = k)")
    plot_posterior(fit.posterior, posterior)
    posterior.set_title("4  Posterior of the share", loc="left")
    return axes


def save_picture(posterior: GammaPosterior, path: Any, overwrite: bool = False) -> None:
    """Write the picture of a posterior to `path`; the file extension selects the format.

    The file is written completely or not at all.
    """
    _save(lambda ax: plot_posterior(posterior, ax), path, overwrite)


def save_comparison(
    posteriors: Sequence[tuple[str, GammaPosterior]], path: Any, overwrite: bool = False
) -> None:
    """Write the picture of several posteriors, (name, posterior) pairs, to `path`."""
    _save(lambda ax: plot_comparison(posteriors, ax), path, overwrite)


def save_history_picture(history: History, path: Any, overwrite: bool = False) -> None:
    """Write the picture of a history to `path`; the file extension selects the format."""
    _save(lambda ax: plot_history(history, ax), path, overwrite)


def _save(draw: Callable[[Axes], Axes], path: Any, overwrite: bool) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=FIGURE_SIZE, layout="constrained")
    draw(figure.subplots())
    content = io.BytesIO()
    figure.savefig(content, dpi=150, format=Path(path).suffix[1:].lower())
    write_document(content.getvalue(), path, overwrite)


def _draw_points(points: Array, ax: Axes) -> None:
    ax.scatter(points[:, 0], points[:, 1], s=14.0, color=GREY, alpha=0.6, linewidths=0.0)


def _draw_components(run: Run, plane: list[int], ax: Axes) -> None:
    """Ellipses of one standard deviation in the plane of two detectors.

    Components that are more likely anomalous are drawn on top.
    """
    from matplotlib.collections import EllipseCollection
    from matplotlib.colors import LinearSegmentedColormap

    probability = run.p_anomalous
    order = np.argsort(probability, kind="stable")
    covariances = run.components.covariances[order][:, plane][:, :, plane]
    variances, directions = np.linalg.eigh(covariances)
    widths = 2.0 * np.sqrt(np.maximum(variances, 0.0))
    ellipses = EllipseCollection(
        widths[:, 0],
        widths[:, 1],
        np.degrees(np.arctan2(directions[:, 1, 0], directions[:, 0, 0])),
        units="xy",
        offsets=run.components.means[order][:, plane],
        offset_transform=ax.transData,
        facecolors="none",
        linewidths=1.0 + probability[order],
    )
    ellipses.set(array=probability[order], clim=(0.0, 1.0))
    ellipses.set_cmap(LinearSegmentedColormap.from_list("anomalous", [LIGHT, VERMILION]))
    ax.add_collection(ellipses)
    ax.figure.colorbar(ellipses, ax=ax, label="P(component is anomalous)")


def _draw_pmf(pmf: Array, ax: Axes) -> None:
    """A bar for each k up to the last visible one; the bar of k = 0 is grey."""
    shown = pmf[: 1 + max(int(np.flatnonzero(pmf >= 0.002)[-1]), 1)]
    colours = [GREY] + [BLUE] * (len(shown) - 1)
    ax.bar(np.arange(len(shown)), shown, color=colours)
    ax.locator_params(axis="x", integer=True)


def _finish_density(ax: Axes) -> None:
    ax.set_ylim(bottom=0.0)
    ax.set_xlabel(SHARE_LABEL)
    ax.set_ylabel("posterior density")
    ax.xaxis.set_major_formatter("{x:.0%}")
    ax.legend(frameon=False)


def _set_labels(ax: Axes, title: str, x_label: str, y_label: str) -> None:
    ax.set_title(title, loc="left")
    ax.set_xlabel(x_label)
    ax.set_ylabel(y_label)


def _new_axes() -> Axes:
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=FIGURE_SIZE, layout="constrained")[1]


def _new_panels() -> Any:
    import matplotlib.pyplot as plt

    return plt.subplots(2, 2, figsize=(9.0, 7.0), layout="constrained")[1]
