"""Draw docs/images/steps.png: the four steps of the method on the toy data of Figure 1."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import EllipseCollection
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from gammagmm import GammaGMM
from gammagmm.estimator.fit_result import Fit
from gammagmm.posterior.runs import Run, first_solved
from gammagmm.report.palette import ACCENT, ALARM, LINE, REFERENCE


def toy_data() -> np.ndarray:
    """Array of 180 points from 0.7 . N(0, I) in the plane and 20 points uniform on [-5, 5]^2."""
    rng = np.random.default_rng(0)
    return np.vstack([0.7 * rng.normal(size=(180, 2)), rng.uniform(-5.0, 5.0, (20, 2))])


def draw_steps(fit: Fit, axes: np.ndarray) -> None:
    """Draw the steps of a fit, and of its first solved run, on four axes."""
    raw, space, pmf, posterior = axes.ravel()
    run = first_solved(fit.runs)
    x, y = fit.detector_names[:2]
    draw_points(fit.scores, raw)
    set_labels(raw, "1  Raw scores of two detectors", f"{x}, raw", f"{y}, raw")
    draw_points(fit.score_space, space)
    draw_components(run, space)
    labels = f"{x}, standardised", f"{y}, standardised"
    set_labels(space, "2  Score space and components", *labels)
    draw_pmf(run.n_anomalous_pmf, pmf)
    set_labels(pmf, "3  How many components are anomalous", "k", "P(C* = k)")
    fit.posterior.plot(posterior)
    posterior.set_title("4  Posterior of the share", loc="left")


def draw_points(points: np.ndarray, ax: Axes) -> None:
    """Draw the scores of the first two detectors against each other."""
    ax.scatter(points[:, 0], points[:, 1], s=14.0, color=REFERENCE, alpha=0.6, linewidths=0.0)


def draw_components(run: Run, ax: Axes) -> None:
    """Ellipses of one standard deviation; components more likely anomalous are drawn on top."""
    probability = run.p_anomalous
    order = np.argsort(probability, kind="stable")
    covariances = run.components.covariances[order][:, :2, :2]
    variances, directions = np.linalg.eigh(covariances)
    widths = 2.0 * np.sqrt(np.maximum(variances, 0.0))
    ellipses = EllipseCollection(
        widths[:, 0],
        widths[:, 1],
        np.degrees(np.arctan2(directions[:, 1, 0], directions[:, 0, 0])),
        units="xy",
        offsets=run.components.means[order][:, :2],
        offset_transform=ax.transData,
        facecolors="none",
        linewidths=1.0 + probability[order],
    )
    ellipses.set(array=probability[order], clim=(0.0, 1.0))
    ellipses.set_cmap(LinearSegmentedColormap.from_list("anomalous", [LINE, ALARM]))
    ax.add_collection(ellipses)
    ax.figure.colorbar(ellipses, ax=ax, label="P(component is anomalous)")


def draw_pmf(pmf: np.ndarray, ax: Axes) -> None:
    """A bar for each k up to the last visible one; the bar of k = 0 is grey."""
    shown = pmf[: 1 + max(int(np.flatnonzero(pmf >= 0.002)[-1]), 1)]
    colours = [REFERENCE] + [ACCENT] * (len(shown) - 1)
    ax.bar(np.arange(len(shown)), shown, color=colours)
    ax.locator_params(axis="x", integer=True)


def set_labels(ax: Axes, title: str, x_label: str, y_label: str) -> None:
    """Set the title and the names of both axes."""
    ax.set_title(title, loc="left")
    ax.set_xlabel(x_label)
    ax.set_ylabel(y_label)


if __name__ == "__main__":
    figure = Figure(figsize=(9.0, 7.0), layout="constrained")
    draw_steps(GammaGMM(random_state=0).fit(toy_data()).fit_, figure.subplots(2, 2))
    figure.savefig(Path(__file__).with_suffix(".png"), dpi=150, metadata={"Software": None})
