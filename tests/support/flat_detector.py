"""A detector that says the same of every row, and is left out for it."""

import numpy as np


class Flat:
    def fit(self, X):
        return self

    def decision_function(self, X):
        return np.zeros(len(X))
