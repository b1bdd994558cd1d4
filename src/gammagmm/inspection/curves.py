"""Ranks of the rows -> curves: how the chance of being an anomaly falls from rank to rank."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtri
from scipy.stats import rankdata

__all__ = ["CurvePrior", "Curves", "RankCells", "draw_curves", "rank_cells"]

Array = NDArray[np.float64]

# Rows whose ranks differ by less than this share of the rank are not told apart.
_RESOLUTION = 0.02


@dataclass(frozen=True)
class RankCells:
    """Rows of about the same rank, together: u is the share of rows that score higher."""

    log_u: Array  # (G,) rising
    counts: NDArray[np.int_]  # (G,) rows of each cell
    of_row: NDArray[np.int_]  # (n,) each row's cell

    @property
    def n_rows(self) -> int:
        """Rows in all cells."""
        return len(self.of_row)


def rank_cells(scores: Array) -> RankCells:
    """Cells of the rows with these consensus `scores` (n,); ties share a cell.

    Ranks are told apart to a fiftieth of themselves: every row by itself at the top, and
    log(n) / log(1.02) cells at most.
    """
    rank = rankdata(-scores) - 0.5
    step = np.floor(np.log(rank) / np.log1p(_RESOLUTION))
    _, of_row, counts = np.unique(step, return_inverse=True, return_counts=True)
    mean_rank = np.bincount(of_row, rank) / counts
    return RankCells(np.log(mean_rank / len(scores)), counts, of_row)


@dataclass(frozen=True)
class CurvePrior:
    """What is thought of a curve before any label is seen.

    rho(u) = low + (high - low) . sigmoid(-b . (log u - l)), with l uniform, log b, logit low and
    logit step normal, where step = (high - low) / (1 - low); a share `p_flat` of the curves has
    b = 0, since some rankings say nothing.
    """

    l_range: tuple[float, float] = (np.log(0.0003), np.log(0.8))
    mean: tuple[float, float, float] = (np.log(1.5), -3.0, 0.25)
    deviation: tuple[float, float, float] = (0.8, 2.0, 2.0)
    p_flat: float = 0.3
    # What a label counts for. Curves are simpler than real rankings: with labels at their full
    # weight, intervals on made-up rankings held the truth less often than they promise.
    label_weight: float = 0.75

    def log_density(self, curves: Curves) -> Array:
        """Log density of each curve's coordinates."""
        low, high = self.l_range
        standard = (curves.z[:, 1:] - self.mean) / self.deviation
        inside = (curves.z[:, 0] >= low) & (curves.z[:, 0] <= high)
        family = np.where(curves.is_flat, self.p_flat, 1.0 - self.p_flat)
        scale = (high - low) * np.prod(self.deviation) * (2.0 * np.pi) ** 1.5
        with np.errstate(divide="ignore"):
            log_scale = np.log(family / scale)
        return np.where(inside, log_scale - 0.5 * np.square(standard).sum(axis=1), -np.inf)


@dataclass(frozen=True)
class Curves:
    """Falling curves rho(u), by their coordinates."""

    z: Array  # (N, 4): l, log b, logit low, logit step
    is_flat: NDArray[np.bool_]  # (N,)

    def __len__(self) -> int:
        return len(self.is_flat)

    def at(self, log_u: Array) -> Array:
        """Chance of being an anomaly at each of `log_u` (G,), for each curve: shape (N, G)."""
        middle, log_b, logit_low, logit_step = self.z.T
        b = np.where(self.is_flat, 0.0, np.exp(log_b))
        low = expit(logit_low)
        rise = (1.0 - low) * expit(logit_step)
        falling = expit(-b[:, None] * (log_u - middle[:, None]))
        return low[:, None] + rise[:, None] * falling


def draw_curves(prior: CurvePrior, points: Array) -> Curves:
    """The curves at `points` (N, 5) of the unit cube, spread as the prior is."""
    low, high = prior.l_range
    middle = low + (high - low) * points[:, 0]
    rest = prior.mean + np.array(prior.deviation) * ndtri(points[:, 1:4])
    return Curves(np.column_stack([middle, rest]), points[:, 4] < prior.p_flat)
