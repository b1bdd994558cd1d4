"""The prior of the mixture: as the user sets it, and resolved to numbers for a score space."""

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

# Squares of larger values leave too few digits for a spread of 1. Rows whitened by their own
# covariance stay below sqrt(n_rows . n_detectors).
MAX_WHITENED = 1e6


@dataclass(frozen=True, eq=False)
class MixturePrior:
    """Prior of the mixture; the defaults are those of the published script.

    The page "Deviations from the paper" of the documentation explains the defaults.

    Parameters
    ----------
    covariance : "empirical" or "identity" or ndarray of shape (M, M), default="empirical"
        Scale matrix of the Wishart prior for M detectors; "empirical" is the covariance of the
        score space.
    concentration : float, default=0.01
        Concentration of the Dirichlet process.
    mean_precision : float, default=1.0
        Number of pseudo-observations of the prior mean, which is 0.
    degrees_of_freedom : float or None, default=None
        Degrees of freedom of the Wishart prior; None is the number of detectors.
    reg_covar : float, default=1e-06
        Added to the diagonal of every component's covariance.

    Examples
    --------
    >>> prior = MixturePrior("identity", concentration=0.1)
    >>> prior.concentration, prior.reg_covar
    (0.1, 1e-06)
    """

    covariance: Any = "empirical"  # Deviation D2: the paper uses the identity
    concentration: float = 0.01
    mean_precision: float = 1.0
    degrees_of_freedom: float | None = None
    reg_covar: float = 1e-6

    def resolve(self, Z: Array) -> ResolvedPrior:
        """The prior in numbers, for one score space.

        Parameters
        ----------
        Z : ndarray of shape (n, n_detectors)
            The score space.

        Returns
        -------
        ResolvedPrior
            The scale matrix and the other numbers.
        """
        return self.resolve_covariance(np.atleast_2d(np.cov(Z.T)))

    def resolve_covariance(self, empirical: Array) -> ResolvedPrior:
        """The prior in numbers, from the covariance of the score space.

        Parameters
        ----------
        empirical : ndarray of shape (n_detectors, n_detectors)
            Covariance of the score space.

        Returns
        -------
        ResolvedPrior
            The scale matrix and the other numbers.

        Raises
        ------
        ValueError
            A number of the prior is out of range, or `covariance` is no matrix of this shape.
        """
        n_detectors = len(empirical)
        freedom = n_detectors if self.degrees_of_freedom is None else self.degrees_of_freedom
        for name in ("concentration", "mean_precision", "reg_covar"):
            check_positive(f"mixture_prior.{name}", getattr(self, name))
        check_positive("mixture_prior.degrees_of_freedom", freedom)
        if freedom <= n_detectors - 1:
            raise ValueError(
                "mixture_prior.degrees_of_freedom must exceed the number of detectors minus one, "
                f"{n_detectors - 1}, got {freedom!r}."
            )
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

    def _scale_matrix(self, empirical: Array) -> Array:
        """The scale matrix that `covariance` stands for."""
        if isinstance(self.covariance, str):
            if self.covariance == "identity":
                return np.eye(len(empirical))
            if self.covariance == "empirical":
                return empirical
            raise ValueError(
                "mixture_prior.covariance must be 'empirical', 'identity' or an array, "
                f"got {self.covariance!r}."
            )
        matrix = np.asarray(self.covariance, dtype=np.float64)
        if matrix.shape != empirical.shape:
            raise ValueError(
                f"mixture_prior.covariance must have shape {empirical.shape}, got {matrix.shape}."
            )
        if not (np.allclose(matrix, matrix.T) and np.linalg.eigvalsh(matrix)[0] > 0.0):
            raise ValueError(
                "mixture_prior.covariance must be finite, symmetric and positive definite."
            )
        return matrix


@dataclass(frozen=True, eq=False)
class ResolvedPrior:
    """The prior in numbers: scale matrix (M, M) and four positive scalars; the prior mean is 0.

    The mixture is fitted in whitened coordinates, in which the scale matrix L L' is the identity:
    no direction is small relative to another, and sums of products keep their digits.
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
        """reg_covar times the identity in whitened coordinates: reg_covar . L^-1 L^-T.

        scikit-learn adds it although it is not part of the model: if it is large, the bound may
        decrease. It is 0 if the scale matrix was already regularised.
        """
        if self.is_regularised:
            return np.zeros_like(self.covariance)
        inverse = np.linalg.inv(self.factor)
        return self.reg_covar * inverse @ inverse.T

    def whiten(self, Z: Array) -> Array:
        """Rows L^-1 s in whitened coordinates, for rows s of `Z` (n, n_detectors)."""
        rows = Z @ np.linalg.inv(self.factor).T
        if not np.abs(rows).max() <= MAX_WHITENED:
            raise MixtureError(
                "The rows are too far from 0, relative to their spread, to fit a mixture",
                "Centre the columns and scale them to a standard deviation of 1.",
            )
        return rows
