"""Posterior -> ArviZ objects."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.checks import check_count
from gammagmm.errors import MissingExtraError

if TYPE_CHECKING:
    from gammagmm.posterior.gamma_posterior import GammaPosterior

__all__ = ["arviz_arguments", "to_arviz"]


def to_arviz(posterior: GammaPosterior, n_draws: int, random_state: Any) -> Any:
    """One chain of independent draws of ``gamma``: InferenceData, or DataTree with ArviZ 1."""
    check_count("n_draws", n_draws, 1)
    try:
        import arviz
    except ModuleNotFoundError as error:
        if error.name != "arviz":
            raise
        raise MissingExtraError("to_arviz needs ArviZ", "arviz", name="arviz") from None
    draws = posterior.sample(n_draws, random_state)
    arguments, options = arviz_arguments(arviz.from_dict, draws)
    return arviz.from_dict(*arguments, **options)


def arviz_arguments(
    from_dict: Callable[..., Any], draws: NDArray[np.float64]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments of ArviZ's `from_dict`, 0.x or 1.x, that pass it `draws` (n,)."""
    variables = {"gamma": draws[None, :]}
    origin = {"inference_library": "gammagmm", "inference_library_version": version("gammagmm")}
    # 0.x takes each group as a separate argument, 1.x takes a dictionary of groups.
    if "posterior" in inspect.signature(from_dict).parameters:
        return (), {"posterior": variables, "posterior_attrs": origin}
    return ({"posterior": variables},), {"attrs": {"posterior": origin}}
