"""Raw scores whose runs are solved with several candidates, so that link and draws matter.

With one candidate, or with delta = 0, the weights of the components are the same whatever the link
and the draws are, and a comparison of two such answers shows nothing about either.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gammagmm.posterior.runs import Run

__all__ = ["SOLVED", "grouped_scores", "has_content"]

SOLVED = {"p_high": 0.05, "n_components": 20, "n_runs": 3, "n_draws": 100}
"""Parameters of `GammaGMM` with which `grouped_scores` gives solved runs."""
N_GROUPS = 6


def grouped_scores(
    rng: np.random.Generator, n_rows: int = 300, n_detectors: int = 4, spread: float = 2.0
) -> NDArray[np.float64]:
    """Positive scores (n_rows, n_detectors): 18 % of the rows, the last, form six small groups.

    Each group is high in other detectors; `spread` is how much they differ.
    """
    size = round(0.03 * n_rows)
    levels = np.linspace(1.5, 3.5, N_GROUPS)[:, None]
    centres = levels + spread * rng.normal(size=(N_GROUPS, n_detectors))
    groups = np.repeat(centres, size, axis=0)
    groups += 0.3 * rng.normal(size=groups.shape)
    return np.exp(np.vstack([rng.normal(size=(n_rows - len(groups), n_detectors)), groups]))


def has_content(runs: Sequence[Run], n_candidates: int = 3) -> bool:
    """Whether every run is solved, with delta below 0 and at least `n_candidates` candidates."""
    return all(
        run.status == "solved" and run.delta < 0.0 and len(run.weights) >= n_candidates
        for run in runs
    )
