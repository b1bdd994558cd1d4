"""Pictures of a result: functions of (result, ax); the only importer of matplotlib."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gammagmm._support.files import write_document

if TYPE_CHECKING:
    from gammagmm.estimator.fit_result import Fit
    from gammagmm.posterior.gamma_posterior import GammaPosterior

__all__ = [
    "plot_calibration",
    "plot_comparison",
    "plot_components",
    "plot_posterior",
    "plot_scores",
    "plot_sensitivity",
    "plot_steps",
    "save_comparison",
    "save_picture",
]

# Okabe and Ito's blue and vermilion: apart for the colour-blind, and in grey print.
_BLUE, _VERMILION, _GREY = "#0072B2", "#D55E00", "#555555"
_LIGHT = "#B4C4D4"


def plot_posterior(posterior: GammaPosterior, ax: Any = None) -> Any:
    """Density of gamma with the atom at 0, the 90 % interval shaded and the mean; returns `ax`."""
    ax = _new_axes() if ax is None else ax
    low, high = posterior.interval()
    if not posterior.is_degenerate:
        grid = posterior.betas.grid()
        right = float(posterior.ppf(0.9999)) or 0.01
        grid = np.unique(np.append(grid[grid <= right], [low, high, right]))
        density = posterior.pdf(grid)
        inside = (grid >= low) & (grid <= high)
        ax.fill_between(grid, density, where=inside, color=_BLUE, alpha=0.2, label="90 % interval")
        ax.plot(grid, density, color=_BLUE)
        ax.set_xlim(-0.03 * right, right)
    ax.axvline(posterior.mean, color=_VERMILION, label=f"mean {posterior.mean:.1%}")
    _mark_atom(posterior, ax)
    ax.set_ylim(bottom=0.0)
    ax.set_xlabel("contamination factor γ (share of anomalies)")
    ax.set_ylabel("posterior density")
    ax.xaxis.set_major_formatter("{x:.0%}")
    ax.legend(frameon=False)
    return ax


def _mark_atom(posterior: GammaPosterior, ax: Any) -> None:
    """A stem at 0 whose height is its probability, in units of the axis."""
    height = posterior.prob_zero
    transform = ax.get_xaxis_transform()
    label = f"P(no anomalies) = {height:.1%}"
    ax.plot([0.0, 0.0], [0.0, height], color=_GREY, lw=3.0, transform=transform, label=label)
    ax.plot(0.0, height, "o", color=_GREY, transform=transform, clip_on=False)


def plot_steps(fit: Fit, axes: Any = None) -> Any:
    """The paper's Figure 1 for a fitted `GammaGMM`; returns the four axes, as an array.

    (1) raw scores of the first two detectors against each other; (2) the same in score space, with
    the components of the first solved run, one standard deviation wide; (3) P(C* = k) of that run;
    (4) the posterior of all runs. Without a solved run, the first run has P(C* = 0) = 1.

    `axes` are four axes in any shape; None makes a figure.
    """
    axes = np.ravel(_new_panels() if axes is None else axes)
    if len(axes) != 4:
        raise ValueError(f"axes must be four, got {len(axes)}.")
    run = next((run for run in fit.runs if run.posterior), fit.runs[0])
    # One detector is drawn against itself.
    plane = [0, min(1, len(fit.detector_names) - 1)]
    names = [fit.detector_names[j] for j in plane]
    pmf = _n_anomalous(run)
    _draw_points(fit.scores[:, plane], axes[0])
    _name(axes[0], "1  Raw scores of two detectors", [f"{name}, raw" for name in names])
    _draw_points(fit.score_space[:, plane], axes[1])
    _draw_components(run.components, pmf, plane, axes[1])
    _name(axes[1], "2  Score space and components", [f"{name}, standardised" for name in names])
    _draw_pmf(pmf, axes[2])
    _name(axes[2], "3  How many components are anomalous", ["k", "P(C* = k)"])
    plot_posterior(fit.posterior, axes[3])
    axes[3].set_title("4  Posterior of the share", loc="left")
    return axes


def plot_components(fit: Fit, detectors: tuple[int, int] = (0, 1), ax: Any = None) -> Any:
    """Rows and components in the plane of two detectors, by P(anomalous); returns `ax`.

    `detectors` are the columns of ``score_space_``; the components are those of the first solved
    run, one standard deviation wide.
    """
    ax = _new_axes() if ax is None else ax
    plane = list(detectors)
    run = next((run for run in fit.runs if run.posterior), fit.runs[0])
    _draw_points(fit.score_space[:, plane], ax)
    _draw_components(run.components, _n_anomalous(run), plane, ax)
    names = [f"{fit.detector_names[j]}, standardised" for j in plane]
    _name(ax, "Components of the mixture", names)
    return ax


def plot_calibration(needed: Any, ax: Any = None) -> Any:
    """Calibration over datasets whose truth is known; returns `ax`.

    `needed` (n,) holds 2 |F(truth) - 1/2| for each posterior's distribution function F: the mass of
    the smallest central interval that holds the truth. Bands of 5 % and 10 % are shaded.
    """
    ax = _new_axes() if ax is None else ax
    levels = np.arange(1, 100) / 100
    frequencies = (np.asarray(needed)[:, None] <= levels).mean(axis=0)
    for band, alpha in ((0.10, 0.15), (0.05, 0.25)):
        ax.fill_between([0, 1], [-band, 1 - band], [band, 1 + band], color=_GREY, alpha=alpha, lw=0)
    ax.plot([0, 1], [0, 1], color="black", ls="--", lw=1)
    ax.plot(levels, frequencies, color=_BLUE)
    ax.set(xlim=(0, 1), ylim=(0, 1))
    _name(ax, f"Calibration over {len(needed)} datasets", ["expected probability", "frequency"])
    return ax


def plot_sensitivity(changes: Any, ax: Any = None) -> Any:
    """Means and 90 % intervals under changed answers, one line each; returns `ax`.

    `changes` are triples (what changed, to what, posterior), as in ``findings.Findings``.
    """
    ax = _new_axes() if ax is None else ax
    names = [f"{what}: {value}" for what, value, _ in changes]
    for i, (_, _, posterior) in enumerate(changes):
        low, high = posterior.interval()
        ax.plot([low, high], [i, i], color=_BLUE, lw=2)
        ax.plot(posterior.mean, i, "o", color=_VERMILION)
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.xaxis.set_major_formatter("{x:.0%}")
    _name(ax, "What the answer hangs on", ["mean and 90 % interval of the share", ""])
    return ax


def plot_scores(fit: Fit, ax: Any = None) -> Any:
    """Histogram of the consensus scores, the threshold, and the band that it may lie in.

    The band is where the threshold falls as gamma goes through its 90 % interval; returns `ax`.
    """
    from gammagmm.posterior.decisions import cut_off

    ax = _new_axes() if ax is None else ax
    scores = fit.decision_scores
    ax.hist(scores, bins=min(60, 10 + len(scores) // 20), color=_LIGHT)
    low, high = fit.posterior.interval()
    band = [float(cut_off(scores, gamma)) for gamma in (high, low)]
    ax.axvspan(*band, color=_VERMILION, alpha=0.2, label="threshold, 90 % interval")
    ax.axvline(fit.threshold, color=_VERMILION, label="threshold at the mean")
    ax.set_yscale("log")
    _name(ax, "Consensus scores", ["mean of the detectors' standardised scores", "rows"])
    ax.legend(frameon=False)
    return ax


def plot_comparison(posteriors: Any, ax: Any = None) -> Any:
    """The densities of several posteriors, given as (name, posterior) pairs; returns `ax`."""
    ax = _new_axes() if ax is None else ax
    styles = ((_BLUE, "-"), (_VERMILION, "--"), ("#009E73", ":"), (_GREY, "-."))
    for (name, posterior), (colour, line) in zip(posteriors, styles, strict=False):
        # A dollar sign begins a formula, and a label with a leading underline is left out.
        label = f"{name}: mean {posterior.mean:.1%}".replace("$", r"\$")
        label = f" {label}" if label.startswith("_") else label
        if posterior.is_degenerate:
            ax.axvline(0.0, color=colour, ls=line, label=label)
            continue
        grid = posterior.betas.grid()
        grid = grid[grid <= float(posterior.ppf(0.9999))]
        ax.plot(grid, posterior.pdf(grid), color=colour, ls=line, label=label)
    ax.set_ylim(bottom=0.0)
    ax.xaxis.set_major_formatter("{x:.0%}")
    _name(ax, "", ["contamination factor γ (share of anomalies)", "posterior density"])
    ax.legend(frameon=False)
    return ax


def _n_anomalous(run: Any) -> Any:
    """P(C* = k) of a run for k = 0, ..., K'."""
    if run.posterior is None:
        return np.ones(1)
    return np.append(run.posterior.prob_zero, run.posterior.betas.weights)


def _draw_points(points: Any, ax: Any) -> None:
    ax.scatter(*points.T, s=14.0, color=_GREY, alpha=0.6, linewidths=0.0)


def _draw_components(components: Any, pmf: Any, plane: list[int], ax: Any) -> None:
    """Ellipses of one standard deviation in the plane of two detectors, likely anomalies on top."""
    from matplotlib.collections import EllipseCollection
    from matplotlib.colors import LinearSegmentedColormap

    # Component k is anomalous when at least k are.
    p_anomalous = np.zeros(len(components))
    p_anomalous[: len(pmf) - 1] = np.cumsum(pmf[:0:-1])[::-1]
    order = np.argsort(p_anomalous, kind="stable")
    spread, directions = np.linalg.eigh(components.covariances[order][:, plane][:, :, plane])
    widths = 2.0 * np.sqrt(np.maximum(spread, 0.0))
    angles = np.degrees(np.arctan2(directions[:, 1, 0], directions[:, 0, 0]))
    drawn = EllipseCollection(
        widths[:, 0],
        widths[:, 1],
        angles,
        units="xy",
        offsets=components.means[order][:, plane],
        offset_transform=ax.transData,
        facecolors="none",
        linewidths=1.0 + p_anomalous[order],
    )
    drawn.set(array=p_anomalous[order], clim=(0.0, 1.0))
    drawn.set_cmap(LinearSegmentedColormap.from_list("anomalous", [_LIGHT, _VERMILION]))
    ax.add_collection(drawn)
    ax.figure.colorbar(drawn, ax=ax, label="P(component is anomalous)")


def _draw_pmf(pmf: Any, ax: Any) -> None:
    """A bar for each k up to the last that can be seen; the atom k = 0 in grey."""
    shown = pmf[: 1 + max(int(np.flatnonzero(pmf >= 0.002)[-1]), 1)]
    colours = [_GREY] + [_BLUE] * (len(shown) - 1)
    ax.bar(np.arange(len(shown)), shown, color=colours)
    ax.xaxis.get_major_locator().set_params(integer=True)


def _name(ax: Any, title: str, labels: list[str]) -> None:
    ax.set_title(title, loc="left")
    ax.set_xlabel(labels[0])
    ax.set_ylabel(labels[1])


def _new_panels() -> Any:
    import matplotlib.pyplot as plt

    return plt.subplots(2, 2, figsize=(9.0, 7.0), layout="constrained")[1]


def _new_axes() -> Any:
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(6.4, 3.6), layout="constrained")[1]


def save_picture(posterior: GammaPosterior, path: Any, overwrite: bool = False) -> None:
    """Write the posterior's picture to `path`, whole or not at all; the suffix says the format."""
    _save(lambda ax: plot_posterior(posterior, ax), path, overwrite)


def save_comparison(posteriors: Any, path: Any, overwrite: bool = False) -> None:
    """Write the picture of several posteriors, (name, posterior) pairs, to `path`."""
    _save(lambda ax: plot_comparison(posteriors, ax), path, overwrite)


def _save(draw: Any, path: Any, overwrite: bool) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    draw(figure.subplots())
    content = io.BytesIO()
    figure.savefig(content, dpi=150, format=Path(path).suffix[1:].lower())
    write_document(content.getvalue(), path, overwrite)
