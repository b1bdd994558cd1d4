"""Posterior of the share of anomalies in unlabelled data (gammaGMM)."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gammagmm.contamination import Contamination
    from gammagmm.estimator import GammaGMM
    from gammagmm.posterior import GammaPosterior
    from gammagmm.shortcut import estimate_contamination
    from gammagmm.thresholder import GammaThreshold

__all__ = [
    "Contamination",
    "GammaGMM",
    "GammaPosterior",
    "GammaThreshold",
    "estimate_contamination",
]

_HOMES = {
    "Contamination": "contamination",
    "GammaGMM": "estimator",
    "GammaPosterior": "posterior",
    "GammaThreshold": "thresholder",
    "estimate_contamination": "shortcut",
}


def __getattr__(name: str) -> Any:
    """A public name, loaded when it is first asked for: ``gammagmm --help`` needs none of them."""
    if name == "__version__":
        return import_module("importlib.metadata").version("gammagmm")
    if name in _HOMES:
        return getattr(import_module(f"gammagmm.{_HOMES[name]}"), name)
    if name in ("datasets", "errors"):
        return import_module(f"gammagmm.{name}")
    raise AttributeError(f"module 'gammagmm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
