"""A detector written with PyTorch, in a separate module as users have it."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.base import BaseEstimator


class Network(BaseEstimator):
    """A detector that changes the random state of PyTorch in every call."""

    def fit(self, X, y=None):
        self.decision_scores_ = self.decision_function(X)
        return self

    def decision_function(self, X):
        return np.abs(X).sum(axis=1) + 0.01 * torch.rand(len(X)).numpy()
