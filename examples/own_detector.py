"""Your own detector together with detectors from PyOD and scikit-learn."""

import numpy as np
from sklearn.neighbors import LocalOutlierFactor

from gammagmm import GammaGMM
from gammagmm.datasets import load_demo


class Distance:
    """Distance from the median, with each feature scaled by its spread."""

    def fit(self, X):
        """Compute the centre and the spread of each feature."""
        self.centre = np.median(X, axis=0)
        self.spread = np.median(np.abs(X - self.centre), axis=0)

    def decision_function(self, X):
        """Return a score that is higher for more anomalous rows."""
        return np.linalg.norm((X - self.centre) / self.spread, axis=1)


detectors = {
    "distance": Distance(),
    "local": LocalOutlierFactor(n_neighbors=30),
    "nearest": "KNN",
    "forest": "IForest",
}
estimator = GammaGMM(detectors, n_runs=3, random_state=0).fit(load_demo().X)
print(estimator.posterior_)
for note in estimator.notes_:
    if note.step == "detectors":
        print(f"{note.subject}: {note.message}")
for name, threshold in estimator.thresholds_.items():
    print(f"{name} flags above {threshold:.2f}")
