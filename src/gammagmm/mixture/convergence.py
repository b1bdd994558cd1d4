"""The one warning that is scikit-learn's as well."""

from __future__ import annotations

from sklearn.exceptions import ConvergenceWarning

from gammagmm.errors import GammaGMMWarning

__all__ = ["MixtureConvergenceWarning"]


class MixtureConvergenceWarning(GammaGMMWarning, ConvergenceWarning):
    """A variational run stopped at ``max_iter`` before its bound settled.

    Examples
    --------
    >>> issubclass(MixtureConvergenceWarning, ConvergenceWarning)
    True
    """
