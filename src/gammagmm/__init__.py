"""The share of anomalies among unlabelled rows, as a posterior distribution."""

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
__version__ = "0.1.0"
