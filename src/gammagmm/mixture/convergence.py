"""The warning about a run that did not converge; it is loaded with scikit-learn, when needed."""

from __future__ import annotations

from sklearn.exceptions import ConvergenceWarning

from gammagmm.errors import GammaGMMWarning

__all__ = ["MixtureConvergenceWarning"]


class MixtureConvergenceWarning(GammaGMMWarning, ConvergenceWarning):
    """A variational run stopped at ``max_iter`` before its bound converged.

    Examples
    --------
    >>> issubclass(MixtureConvergenceWarning, ConvergenceWarning)
    True
    """
