"""Pictures of a result: functions of (result, ax); the only importer of matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from gammagmm.posterior import GammaPosterior

__all__ = ["plot_posterior", "save_picture"]

# Okabe and Ito's blue and vermilion: apart for the colour-blind, and in grey print.
_BLUE, _VERMILION, _GREY = "#0072B2", "#D55E00", "#555555"


def plot_posterior(posterior: GammaPosterior, ax: Any = None) -> Any:
    """Density of gamma with the atom at 0, the 90 % interval shaded and the mean; returns `ax`."""
    ax = _new_axes() if ax is None else ax
    low, high = posterior.interval()
    if not posterior.is_degenerate:
        grid = posterior.betas.grid()
        right = float(posterior.ppf(0.9999))
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


def _new_axes() -> Any:
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(6.4, 3.6), layout="constrained")[1]


def save_picture(posterior: GammaPosterior, path: Any) -> None:
    """Write the posterior's picture to `path`; the format follows the suffix."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    plot_posterior(posterior, figure.subplots())
    figure.savefig(path, dpi=150)
