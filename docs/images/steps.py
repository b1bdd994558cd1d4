"""Draw docs/images/steps.png: the four steps of the method on the toy data of Figure 1."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from gammagmm import GammaGMM
from gammagmm.report.plots import plot_steps


def toy_data() -> np.ndarray:
    """Array of 180 points from 0.7 . N(0, I) in the plane and 20 points uniform on [-5, 5]^2."""
    rng = np.random.default_rng(0)
    return np.vstack([0.7 * rng.normal(size=(180, 2)), rng.uniform(-5.0, 5.0, (20, 2))])


if __name__ == "__main__":
    figure = Figure(figsize=(9.0, 7.0), layout="constrained")
    plot_steps(GammaGMM(random_state=0).fit(toy_data()).fit_, figure.subplots(2, 2))
    figure.savefig(Path(__file__).with_suffix(".png"), dpi=150, metadata={"Software": None})
