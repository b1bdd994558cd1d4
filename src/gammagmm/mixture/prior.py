"""The mixture's prior: what the user may set, and the same in numbers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.checks import check_positive
from gammagmm.errors import MixtureError

__all__ = ["MixturePrior", "ResolvedPrior"]

Array = NDArray[np.float64]

# Squares of larger values leave too few digits for a spread of 1; rows whitened by their own
# covariance stay below the square root of their number times that of the columns.
MAX_WHITENED = 1e6


@dataclass(frozen=True, eq=False)
class ResolvedPrior:
    """The prior in numbers: scale matrix (M, M) and four positive scalars; the prior mean is 0.

    The mixture is fitted in coordinates in which the scale matrix L L' is the identity, where no
    direction is small against another and sums of products keep their digits.
    """

    covariance: Array
    concentration: float
    mean_precision: float
    degrees_of_freedom: float
    reg_covar: float
    is_regularised: bool = False  # whether reg_covar was added to a singular scale matrix

    @cached_property
    def factor(self) -> Array:
        """L, lower-triangular, with L L' the scale matrix."""
        return np.asarray(np.linalg.cholesky(self.covariance))

    @cached_property
    def ridge(self) -> Array:
        """reg_covar times the identity, in the fit's coordinates: reg_covar . L^-1 L^-T.

        It is scikit-learn's and no part of the model: where it is large, the bound may fall. Where
        the scale matrix has been made regular already, it is 0.
        """
        if self.is_regularised:
            return np.zeros_like(self.covariance)
        inverse = np.linalg.inv(self.factor)
        return self.reg_covar * inverse @ inverse.T

    def whiten(self, Z: Array) -> Array:
        """Rows L^-1 s of the fit's coordinates, for rows s of `Z` (n, n_detectors)."""
        rows = Z @ np.linalg.inv(self.factor).T
        if not np.abs(rows).max() <= MAX_WHITENED:
            raise MixtureError(
                "The rows lie too far from 0 against their spread for a mixture: centre the "
                "columns and scale them to a deviation of 1."
            )
        return rows


@dataclass(frozen=True, eq=False)
class MixturePrior:
    """Prior of the mixture; the defaults are those of the published script.

    Attributes
    ----------
    covariance : "empirical", "identity" or array of shape (n_detectors, n_detectors)
        Scale matrix of the Wishart prior; "empirical" is the covariance of the score space.
    concentration : float
        Concentration of the Dirichlet process.
    mean_precision : float
        Number of pseudo-observations of the prior mean, which is 0.
    degrees_of_freedom : float or None
        Degrees of freedom of the Wishart prior; None is the number of detectors.
    reg_covar : float
        Added to the diagonal of every component's covariance.

    Examples
    --------
    >>> MixturePrior(covariance="identity").concentration
    0.01
    """

    covariance: Any = "empirical"  # Deviation D2: the paper says identity
    concentration: float = 0.01
    mean_precision: float = 1.0
    degrees_of_freedom: float | None = None
    reg_covar: float = 1e-6

    def resolve(self, Z: Array) -> ResolvedPrior:
        """The prior in numbers, for the score space `Z` of shape (n, n_detectors).

        >>> MixturePrior("identity").resolve(np.zeros((5, 2))).degrees_of_freedom
        2.0
        """
        return self.resolve_covariance(np.atleast_2d(np.cov(Z.T)))

    def resolve_covariance(self, empirical: Array) -> ResolvedPrior:
        """The same from the covariance (n_detectors, n_detectors) of the score space."""
        n_detectors = len(empirical)
        freedom = n_detectors if self.degrees_of_freedom is None else self.degrees_of_freedom
        self._check(freedom, n_detectors)
        scale = self._scale_matrix(empirical)
        # Deviation D3: two detectors with the same scores, or fewer rows than detectors, make the
        # empirical covariance singular, and with it the covariance of every empty component.
        ridge = self.reg_covar * (float(np.trace(scale)) / n_detectors or 1.0)
        is_singular = bool(np.linalg.eigvalsh(scale)[0] < ridge)
        if is_singular:
            scale = scale + ridge * np.eye(n_detectors)
        return ResolvedPrior(
            covariance=scale,
            concentration=self.concentration,
            mean_precision=self.mean_precision,
            degrees_of_freedom=float(freedom),
            reg_covar=self.reg_covar,
            is_regularised=is_singular,
        )

    def _check(self, freedom: float, n_detectors: int) -> None:
        for name in ("concentration", "mean_precision", "reg_covar"):
            check_positive(f"mixture_prior.{name}", getattr(self, name))
        check_positive("mixture_prior.degrees_of_freedom", freedom)
        if freedom <= n_detectors - 1:
            raise ValueError(
                "mixture_prior.degrees_of_freedom must exceed the number of detectors less one, "
                f"{n_detectors - 1}, got {freedom!r}."
            )

    def _scale_matrix(self, empirical: Array) -> Array:
        n_detectors = len(empirical)
        if not isinstance(self.covariance, str):
            return _check_scale_matrix(self.covariance, n_detectors)
        if self.covariance == "identity":
            return np.eye(n_detectors)
        if self.covariance == "empirical":
            return empirical
        raise ValueError(
            "mixture_prior.covariance must be 'empirical', 'identity' or an array, "
            f"got {self.covariance!r}."
        )


def _check_scale_matrix(value: Any, n_detectors: int) -> Array:
    matrix = np.asarray(value, dtype=np.float64)
    expected = (n_detectors, n_detectors)
    if matrix.shape != expected:
        raise ValueError(
            f"mixture_prior.covariance must have shape {expected}, got {matrix.shape}."
        )
    if not (np.allclose(matrix, matrix.T) and np.linalg.eigvalsh(matrix)[0] > 0.0):
        raise ValueError(
            "mixture_prior.covariance must be finite, symmetric and positive definite."
        )
    return matrix
