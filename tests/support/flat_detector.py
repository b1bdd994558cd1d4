"""A detector that gives every row the same score; it is skipped."""

import numpy as np


class Flat:
    def fit(self, X):
        return self

    def decision_function(self, X):
        return np.zeros(len(X))
