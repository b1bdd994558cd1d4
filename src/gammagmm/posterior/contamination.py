"""The contamination factor as a float that keeps its posterior."""

from __future__ import annotations

from typing import Any, Self

from gammagmm._support.checks import check_number
from gammagmm.posterior.gamma_posterior import GammaPosterior

__all__ = ["Contamination"]


class Contamination(float):
    """A contamination factor that works wherever a float does and keeps its posterior.

    Copies in the same process share the posterior. JSON stores it as a plain number.

    The page "PyOD and PyThresh" of the documentation shows it in use.

    Parameters
    ----------
    posterior : GammaPosterior
        The posterior that the number comes from.
    value : float or None, default=None
        The number, from 0 to 1; None is the posterior mean.

    Attributes
    ----------
    posterior : GammaPosterior
        The posterior that the number comes from.

    Examples
    --------
    >>> gamma = Contamination(GammaPosterior.reference())
    >>> round(gamma, 3), gamma.posterior
    (0.088, GammaPosterior(mean=0.088, 90% interval 0.002 to 0.263))
    >>> Contamination(GammaPosterior.degenerate(), 0.01)
    0.01
    """

    posterior: GammaPosterior

    def __new__(cls, posterior: GammaPosterior, value: float | None = None) -> Self:
        """Make the number from `value` or, if it is None, the posterior mean."""
        _check_posterior(posterior)
        if value is not None:
            check_number("value", value)
        number = super().__new__(cls, posterior.mean if value is None else value)
        if not 0.0 <= number <= 1.0:
            raise ValueError(f"value must lie between 0 and 1, got {float(number)!r}.")
        number.posterior = posterior
        return number

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.posterior, float(self))

    def __deepcopy__(self, memo: dict[int, Any]) -> Contamination:
        return self


def _check_posterior(posterior: Any) -> None:
    if not isinstance(posterior, GammaPosterior):
        raise TypeError(f"posterior must be a GammaPosterior, got {type(posterior).__name__}.")
