"""The share of anomalies among unlabelled rows, as a posterior distribution."""

from gammagmm.estimator import GammaGMM
from gammagmm.posterior import Contamination, GammaPosterior

__all__ = ["Contamination", "GammaGMM", "GammaPosterior"]
__version__ = "0.1.0"
