"""A posterior, scores or a table -> the numbers of its pictures, which SVG and matplotlib draw.

Shares have a square-root axis: most shares of anomalies are small, and the first rows of a ranking
matter most.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gammagmm.posterior.beta_binomials import BetaBinomialMixture
from gammagmm.posterior.gamma_posterior import GammaPosterior

if TYPE_CHECKING:
    from gammagmm.estimator.fit_result import Fit

__all__ = ["RankCurve", "density", "rank_curve", "share_end", "share_ticks"]

Array = NDArray[np.float64]

N_POINTS = 120
"""Points of a density, besides those of the posterior's own grid."""
MAX_STEPS = 300
"""Most steps of a curve of scores."""
MAX_KNOWN = 300
"""Most known rows that are marked on a curve of scores."""
TICKS = (1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0)
MIN_GAP = 0.14
"""Between two ticks, as a part of the axis."""
HIGHEST = 3.0
"""Most times that a density is drawn above its mean inside the interval."""
MIN_END = 0.05
"""The least share at the end of an axis."""


@dataclass(frozen=True, eq=False)
class RankCurve:
    """The scores of the first rows of a ranking, in steps.

    The step i goes from the share `edges[i]` of the rows to `edges[i + 1]` and has the score
    `scores[i]`. `known` are the place, as a share, and the score of known rows, with their labels.
    """

    n_rows: int
    n_flagged: int
    edges: Array  # (k + 1,)
    scores: Array  # (k,)
    known: tuple[tuple[float, float, int], ...] = ()


def share_end(posterior: GammaPosterior) -> float:
    """The share at the end of an axis with the posterior and the reference distribution.

    After labels, the reference may reach beyond it.
    """
    high = 0.0
    if posterior.has_estimate:
        high = posterior.interval()[1]
        # A shape with a long tail, such as that of the reference, would leave no room.
        high = min(max(1.25 * high, float(posterior.ppf(0.995))), 2.0 * high or 1.0)
    if not posterior.n_labels:
        high = max(high, 1.1 * GammaPosterior.reference().interval()[1])
    end = max(high, MIN_END)
    return float(min(np.ceil(20.0 * end - 1e-9) / 20.0, 1.0))


def share_ticks(end: float) -> list[float]:
    """Round shares from 0 to `end`, as many as there is room for."""
    ticks = [0.0]
    for share in TICKS:
        if share <= end and np.sqrt(share / end) - np.sqrt(ticks[-1] / end) >= MIN_GAP:
            ticks.append(share)
    return ticks


def density(posterior: GammaPosterior, end: float) -> tuple[Array, Array]:
    """Shares up to `end`, and their densities on the square-root axis, the highest being 1.

    A narrow peak is cut off, because it would leave no room for the rest.
    """
    low, high = posterior.betas.support
    stop = min(high, end)
    if posterior.is_degenerate or low >= stop:
        return np.empty(0), np.empty(0)
    grid = posterior.betas.grid()
    # More points than there are pixels add nothing.
    cells = np.round(2 * N_POINTS * np.sqrt(np.clip(grid, low, stop) / end))
    shares = grid[np.unique(cells, return_index=True)[1]]
    if not isinstance(posterior.betas, BetaBinomialMixture):  # whose density is one of whole rows
        even = np.linspace(np.sqrt(low), np.sqrt(stop), N_POINTS) ** 2
        shares = np.union1d(even, shares)
    shares = shares[(shares >= low) & (shares <= stop)]
    with np.errstate(invalid="ignore"):
        heights = 2.0 * np.sqrt(shares) * posterior.pdf(shares)
    # A Beta with a < 1 or b < 1 has an infinite density at an end.
    heights[~np.isfinite(heights)] = heights[np.isfinite(heights)].max(initial=1.0)
    if shares[0] == 0.0 and len(shares) > 1 and posterior.betas.a.min() < 1.0:
        heights[0] = heights[1]
    first, last = np.sqrt(posterior.interval())
    top = heights.max()
    if last > first:
        top = min(top, HIGHEST * 0.9 / (last - first))
    return shares, np.minimum(heights / (top or 1.0), 1.0)


def rank_curve(fit: Fit, end: float) -> RankCurve:
    """The scores of the training rows of a fit, up to the share `end` of the rows."""
    scores = -np.sort(-fit.decision_scores)
    n_rows, n_shown = len(scores), max(int(np.ceil(end * len(scores))), 1)
    ranks = np.arange(n_shown + 1)
    if n_shown > MAX_STEPS:
        even = np.round(n_shown * np.linspace(0.0, 1.0, MAX_STEPS + 1) ** 2)
        ranks = np.unique(np.append(even, min(fit.n_flagged, n_shown)).astype(np.intp))
    known = fit.known[fit.known.rows < n_rows]
    own = fit.space.decision_scores[known.rows]
    places = np.searchsorted(-scores, -own) / n_rows
    marks = zip(places.tolist(), own.tolist(), known.labels.tolist(), strict=True)
    shown = [mark for mark in marks if mark[0] < end]
    return RankCurve(
        n_rows, fit.n_flagged, ranks / n_rows, scores[ranks[:-1]], tuple(shown[:MAX_KNOWN])
    )
