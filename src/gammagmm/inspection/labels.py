"""Labels of single rows -> the posterior of gamma: a mixture of Betas over what is not known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gammagmm.inspection.beliefs import Belief, CellLabels
from gammagmm.inspection.curves import RankCells
from gammagmm.posterior.betas import BetaMixture
from gammagmm.posterior.gamma_posterior import GammaPosterior

__all__ = ["KnownRows", "count_labels", "labelled_posterior"]

Array = NDArray[np.float64]

# Betas of the posterior: curves of about the same share are put together.
_N_PARTS = 64


@dataclass(frozen=True)
class KnownRows:
    """Rows whose labels are known, by rising row number.

    Attributes
    ----------
    rows, labels : ndarray of shape (n,)
        Row numbers from 0 on, and 1 for an anomaly, 0 for a normal row.
    at_random : ndarray of shape (n,)
        Whether the row was chosen without knowing what it is, and so tells of others too.

    Examples
    --------
    >>> known = KnownRows.none().add([7, 3], [1, 0], at_random=True, n_rows=10)
    >>> known.rows.tolist(), known.labels.tolist()
    ([3, 7], [0, 1])
    """

    rows: NDArray[np.int_]
    labels: NDArray[np.int_]
    at_random: NDArray[np.bool_]

    @classmethod
    def none(cls) -> KnownRows:
        """No row is known."""
        empty = np.empty(0, dtype=int)
        return cls(empty, empty, empty.astype(bool))

    def __len__(self) -> int:
        return len(self.rows)

    def add(self, rows: Any, labels: Any, *, at_random: bool, n_rows: int) -> KnownRows:
        """These and the ones that were known; a row that is given twice must have one label.

        A row that was known counts as chosen at random if it was so once.
        """
        rows, labels = check_rows_known(rows, n_rows), check_labels(labels)
        if len(rows) != len(labels):
            raise ValueError(f"rows and labels differ in number: {len(rows)} and {len(labels)}.")
        columns = (self.rows.tolist(), self.labels.tolist(), self.at_random.tolist())
        found = {row: (label, chosen) for row, label, chosen in zip(*columns, strict=True)}
        for row, label in zip(rows.tolist(), labels.tolist(), strict=True):
            before, chosen = found.get(row, (label, False))
            if before != label:
                raise ValueError(f"Row {row} has both labels, 0 and 1: give one of them.")
            found[row] = (label, chosen or at_random)
        ordered = sorted(found)
        return KnownRows(
            np.array(ordered, dtype=int),
            np.array([found[row][0] for row in ordered], dtype=int),
            np.array([found[row][1] for row in ordered], dtype=bool),
        )


def check_rows_known(rows: Any, n_rows: int) -> NDArray[np.int_]:
    """`rows` as row numbers from 0 to `n_rows` - 1."""
    numbers = np.atleast_1d(np.asarray(rows))
    if numbers.size == 0:
        return np.empty(0, dtype=int)
    if numbers.ndim != 1 or not np.issubdtype(numbers.dtype, np.integer):
        raise TypeError(f"rows must be whole numbers, the places of rows, got {rows!r}.")
    outside = numbers[(numbers < 0) | (numbers >= n_rows)]
    if outside.size:
        raise ValueError(
            f"rows must lie between 0 and {n_rows - 1}, the places of the {n_rows} training rows, "
            f"got {int(outside[0])}."
        )
    return numbers.astype(int)


def check_labels(labels: ArrayLike) -> NDArray[np.int_]:
    """`labels` as 0 and 1."""
    values = np.atleast_1d(np.asarray(labels))
    if values.ndim != 1 or not (values.size == 0 or values.dtype.kind in "biuf"):
        raise TypeError(f"labels must be 0 (normal) or 1 (anomaly), got {labels!r}.")
    other = values[~np.isin(values, (0, 1))]
    if other.size:
        raise ValueError(f"labels must be 0 (normal) or 1 (anomaly), got {other[0].item()!r}.")
    return values.astype(int)


def count_labels(cells: RankCells, known: KnownRows) -> CellLabels:
    """How many known rows of each kind there are in each rank cell."""
    n_cells = len(cells.counts)
    counts = [
        np.bincount(
            cells.of_row[known.rows[(known.labels == label) & (known.at_random == at_random)]],
            minlength=n_cells,
        )
        for at_random in (True, False)
        for label in (1, 0)
    ]
    return CellLabels(*counts)


def labelled_posterior(belief: Belief) -> GammaPosterior:
    """Posterior of the share of anomalies among these rows, the known ones as they are.

    gamma = (known anomalies + those among the unknown rows) / n, where a curve expects
    sum rho anomalies among the unknown rows, with variance sum rho . (1 - rho). Curves of about
    the same share make up one Beta of their mean and variance, on the range that is left. A count
    takes up half a row to either side, but for what is known, which bounds it.
    """
    n_rows, labels = belief.cells.n_rows, belief.labels
    if not belief.unknown.any():
        return _certain(labels.n_anomalies / n_rows)
    weights, mean, variance = _unknown_anomalies(belief)
    low = max(labels.n_anomalies - 0.5, 0.0) / n_rows
    span = 1.0 - max(labels.n_normals - 0.5, 0.0) / n_rows - low
    share = ((labels.n_anomalies + mean) / n_rows - low) / span
    spread = (variance + 1.0 / 12.0) / (n_rows * span) ** 2
    weights, share, spread = _put_together(weights, share, spread)
    bounds = (labels.n_anomalies / n_rows, 1.0 - labels.n_normals / n_rows)
    betas = BetaMixture(weights, *_beta_parameters(share, spread), 0.0, 1.0, low, span, *bounds)
    prob_zero = 0.0 if labels.n_anomalies else max(1.0 - float(weights.sum()), 0.0)
    error = GammaPosterior(prob_zero, betas).std / np.sqrt(belief.n_effective)
    return GammaPosterior(prob_zero, betas, standard_error=error)


def _certain(share: float) -> GammaPosterior:
    """The point mass at `share`."""
    part = np.ones(1)
    if share == 0.0:
        return GammaPosterior(1.0, BetaMixture(0.0 * part, part, part, span=0.0), 0.0)
    return GammaPosterior(0.0, BetaMixture(part, part, part, origin=share, span=0.0), 0.0)


def _unknown_anomalies(belief: Belief) -> tuple[Array, Array, Array]:
    """Weight of each curve, and mean and variance of its anomalies among the unknown rows.

    Where no anomaly is known, the chance that there is none is left to the atom at 0.
    """
    matters = belief.weights > 1e-12 * belief.weights.max()
    weights, rho, unknown = belief.weights[matters], belief.rho[matters], belief.unknown
    mean, variance = rho @ unknown, (rho * (1.0 - rho)) @ unknown
    if belief.labels.n_anomalies:
        return weights / weights.sum(), mean, variance
    some = -np.expm1(np.log1p(-rho) @ unknown)
    square = (variance + np.square(mean)) / some
    return weights * some, mean / some, np.maximum(square - np.square(mean / some), 0.0)


def _put_together(weights: Array, share: Array, spread: Array) -> tuple[Array, Array, Array]:
    """Weights, means and variances of `_N_PARTS` groups of curves, by their shares."""
    order = np.argsort(share)
    weights, share, spread = weights[order], share[order], spread[order]
    middle = (np.cumsum(weights) - 0.5 * weights) / weights.sum()
    _, group = np.unique(np.floor(middle * _N_PARTS), return_inverse=True)
    total = np.bincount(group, weights).astype(np.float64)
    mean = np.bincount(group, weights * share) / total
    between = np.square(share - mean[group])
    return total, mean, np.bincount(group, weights * (spread + between)) / total


def _beta_parameters(mean: Array, variance: Array) -> tuple[Array, Array]:
    """Parameters a, b of the Betas with these means and, where there is such a one, variances."""
    mean = np.clip(mean, 1e-9, 1.0 - 1e-9)
    size = np.maximum(mean * (1.0 - mean) / variance - 1.0, 1e-2)
    return mean * size, (1.0 - mean) * size
