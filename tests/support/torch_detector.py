"""A detector written with PyTorch, in a module of its own as such detectors are."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.base import BaseEstimator


class Network(BaseEstimator):
    """Detector that moves PyTorch's random state whenever it can."""

    def fit(self, X, y=None):
        self.decision_scores_ = self.decision_function(X)
        return self

    def decision_function(self, X):
        return np.abs(X).sum(axis=1) + 0.01 * torch.rand(len(X)).numpy()
