"""The demo set, and synthetic rows with a chosen gamma."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.checks import as_generator, check_count, check_number
from gammagmm.readers.raw_table import numbered_names

__all__ = [
    "Dataset",
    "load_demo",
    "make_contaminated",
]

FloatArray = NDArray[np.float64]
DEMO_SEED = 0
N_DEMO_ANOMALIES = 10

# Synthetic data.
N_CLUSTERS = 3
BOX_MARGIN = 0.1  # global anomalies: box wider by this share of the range, on either side
LOCAL_SCALE = 5.0  # local anomalies: covariances times this
DISPLACEMENT = 3.0  # clustered anomalies: distance in standard deviations, in every feature
TIGHT_SCALE = 0.1  # clustered anomalies: covariance of an inlier cluster times this


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows with known labels.

    Attributes
    ----------
    X : ndarray of shape (n, d)
        The rows, float64.
    y : ndarray of shape (n,)
        1 for an anomaly, 0 for a normal row.
    name : str
        Name of the dataset.
    feature_names : tuple of str
        Names of the columns.

    Examples
    --------
    >>> dataset = load_demo()
    >>> dataset.X.shape, dataset.y.sum().item(), dataset.feature_names[0]
    ((367, 30), 10, 'mean radius')
    """

    X: FloatArray
    y: NDArray[np.int64]
    name: str
    feature_names: tuple[str, ...]

    @property
    def gamma(self) -> float:
        """Share of anomalies."""
        return float(self.y.mean())

    def __repr__(self) -> str:
        n, d = self.X.shape
        return f"Dataset({self.name!r}, {n} rows, {d} features, gamma={self.gamma:.4f})"


def load_demo() -> Dataset:
    """Breast-cancer data with all 357 benign rows and 10 of the malignant ones as anomalies.

    The data are made like the paper's WDBC, from the copy that scikit-learn bundles:
    ``numpy.random.default_rng(0)`` draws the malignant rows without replacement. The rows
    keep the order of the file.

    Returns
    -------
    Dataset
        The rows with their labels.

    Examples
    --------
    >>> load_demo()
    Dataset('breast-cancer', 367 rows, 30 features, gamma=0.0272)
    """
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer()
    is_malignant = bunch.target == list(bunch.target_names).index("malignant")
    rng = np.random.default_rng(DEMO_SEED)
    drawn = rng.choice(np.flatnonzero(is_malignant), N_DEMO_ANOMALIES, replace=False)
    rows = np.sort(np.concatenate([np.flatnonzero(~is_malignant), drawn]))
    y = is_malignant[rows].astype(np.int64)
    return Dataset(bunch.data[rows], y, "breast-cancer", tuple(map(str, bunch.feature_names)))


def make_contaminated(n: int, d: int, gamma: float, kind: str, random_state: Any = None) -> Dataset:
    """Synthetic rows of which exactly ``round(gamma * n)`` are anomalies.

    The inliers come from a random mixture of three Gaussians with correlated features. The
    anomalies are of one of the four kinds of ADBench (Han et al., 2022):

    - "global": uniform over the inliers' box, widened by a tenth of its range on either side;
    - "local": the inliers' mixture with its covariances times 5;
    - "clustered": one tight cluster, 3 standard deviations of the inliers away from their mean
      in every feature. ADBench multiplies the cluster means by 5 instead, which has no effect
      on a mean of 0;
    - "dependency": the inliers' marginal distributions, with the features independent.

    Parameters
    ----------
    n : int
        Number of rows, at least 10.
    d : int
        Number of features; at least 2 for dependency anomalies.
    gamma : float
        Share of anomalies, from 0 to 0.5.
    kind : "global" or "local" or "clustered" or "dependency"
        Kind of the anomalies.
    random_state : int or Generator or RandomState or None, default=None
        The same whole number gives the same rows.

    Returns
    -------
    Dataset
        The rows, shuffled.

    Examples
    --------
    >>> make_contaminated(200, 3, 0.05, "local", random_state=0)
    Dataset('local', 200 rows, 3 features, gamma=0.0500)
    """
    if kind not in _ANOMALIES:
        raise ValueError(f"kind must be one of {', '.join(_ANOMALIES)}, got {kind!r}.")
    check_count("n", n, 10)
    check_count("d", d, 2 if kind == "dependency" else 1)
    check_number("gamma", gamma)
    if not 0.0 <= gamma <= 0.5:
        raise ValueError(f"gamma must lie between 0 and 0.5, got {gamma!r}.")
    rng = as_generator(random_state)
    mixture = _random_mixture(d, rng)
    n_anomalies = round(gamma * n)
    inliers = _draw_rows(mixture, n - n_anomalies, 1.0, rng)
    anomalies = _ANOMALIES[kind](mixture, inliers, n_anomalies, rng)
    order = rng.permutation(n)
    y = np.repeat(np.array([0, 1]), [n - n_anomalies, n_anomalies])
    return Dataset(np.vstack([inliers, anomalies])[order], y[order], kind, numbered_names(d))


@dataclass(frozen=True)
class _Mixture:
    """Gaussian clusters in which one common factor correlates the features.

    A row of cluster k is means + scales * (loadings * factor + sqrt(1 - loadings ** 2) * noise).
    """

    weights: FloatArray  # (K,)
    means: FloatArray  # (K, d)
    scales: FloatArray  # (K, d)
    loadings: FloatArray  # (K, d)


def _random_mixture(d: int, rng: np.random.Generator) -> _Mixture:
    shape = (N_CLUSTERS, d)
    return _Mixture(
        weights=rng.dirichlet(np.full(N_CLUSTERS, 5.0)),
        means=rng.normal(scale=3.0, size=shape),
        scales=rng.uniform(0.5, 1.5, shape),
        loadings=rng.choice([-1.0, 1.0], shape) * rng.uniform(0.6, 0.95, shape),
    )


def _draw_rows(mixture: _Mixture, n: int, scale: float, rng: np.random.Generator) -> FloatArray:
    """Rows from the mixture with its covariances times `scale`."""
    cluster = rng.choice(len(mixture.weights), size=n, p=mixture.weights)
    loadings = mixture.loadings[cluster]
    noise = np.sqrt(1.0 - loadings**2) * rng.standard_normal(loadings.shape)
    deviations = loadings * rng.standard_normal((n, 1)) + noise
    return mixture.means[cluster] + math.sqrt(scale) * mixture.scales[cluster] * deviations


def _global(_: _Mixture, inliers: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    low, high = inliers.min(axis=0), inliers.max(axis=0)
    margin = BOX_MARGIN * (high - low)
    return rng.uniform(low - margin, high + margin, (n, len(low)))


def _local(mixture: _Mixture, _: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    return _draw_rows(mixture, n, LOCAL_SCALE, rng)


def _clustered(
    mixture: _Mixture, inliers: FloatArray, n: int, rng: np.random.Generator
) -> FloatArray:
    signs = rng.choice([-1.0, 1.0], inliers.shape[1])
    centre = inliers.mean(axis=0) + signs * DISPLACEMENT * inliers.std(axis=0)
    cluster = _Mixture(np.ones(1), centre[None], mixture.scales[:1], mixture.loadings[:1])
    return _draw_rows(cluster, n, TIGHT_SCALE, rng)


def _dependency(mixture: _Mixture, _: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    """Every cell from its feature's marginal mixture; each cell draws its own cluster."""
    feature = np.arange(mixture.means.shape[1])
    cluster = rng.choice(len(mixture.weights), size=(n, len(feature)), p=mixture.weights)
    noise = rng.standard_normal(cluster.shape)
    return mixture.means[cluster, feature] + mixture.scales[cluster, feature] * noise


_Draw = Callable[[_Mixture, FloatArray, int, np.random.Generator], FloatArray]
_ANOMALIES: dict[str, _Draw] = {
    "global": _global,
    "local": _local,
    "clustered": _clustered,
    "dependency": _dependency,
}
