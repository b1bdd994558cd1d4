"""Posterior of the share of anomalies in unlabelled data (gammaGMM)."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gammagmm.estimator.estimate_contamination import estimate_contamination
    from gammagmm.estimator.fit_result import Fit
    from gammagmm.estimator.gamma_gmm import GammaGMM
    from gammagmm.estimator.gamma_threshold import GammaThreshold
    from gammagmm.estimator.summary import FitSummary
    from gammagmm.labels.known_rows import KnownRows
    from gammagmm.labels.labelled_rows import LabelledRows
    from gammagmm.mixture.prior import MixturePrior
    from gammagmm.monitoring.history import History
    from gammagmm.posterior.contamination import Contamination
    from gammagmm.posterior.evidence import Evidence
    from gammagmm.posterior.gamma_posterior import GammaPosterior

__all__ = [
    "Contamination",
    "Evidence",
    "Fit",
    "FitSummary",
    "GammaGMM",
    "GammaPosterior",
    "GammaThreshold",
    "History",
    "KnownRows",
    "LabelledRows",
    "MixturePrior",
    "estimate_contamination",
]

_HOMES = {
    "Contamination": "posterior.contamination",
    "Evidence": "posterior.evidence",
    "Fit": "estimator.fit_result",
    "FitSummary": "estimator.summary",
    "GammaGMM": "estimator.gamma_gmm",
    "GammaPosterior": "posterior.gamma_posterior",
    "GammaThreshold": "estimator.gamma_threshold",
    "History": "monitoring.history",
    "KnownRows": "labels.known_rows",
    "LabelledRows": "labels.labelled_rows",
    "MixturePrior": "mixture.prior",
    "estimate_contamination": "estimator.estimate_contamination",
}


def __getattr__(name: str) -> Any:
    """Load a public name on first use, so that `gammagmm --help` starts quickly."""
    if name == "__version__":
        return import_module("importlib.metadata").version("gammagmm")
    if name in _HOMES:
        return getattr(import_module(f"gammagmm.{_HOMES[name]}"), name)
    if name in ("datasets", "errors"):
        return import_module(f"gammagmm.{name}")
    raise AttributeError(f"module 'gammagmm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
