"""scikit-learn's IsolationForest with an estimated contamination."""

import numpy as np
from sklearn.ensemble import IsolationForest

from gammagmm import estimate_contamination
from gammagmm.datasets import load_demo

X, y = load_demo().X, load_demo().y
rows = np.random.default_rng(0).choice(len(X), 30, replace=False)
answers = {row: y[row] for row in rows}  # your own answers: 1 anomaly, 0 normal
gamma = estimate_contamination(X, labels=answers, n_runs=3, random_state=0)
forest = IsolationForest(contamination=gamma, random_state=0)
labels = forest.fit_predict(X)  # scikit-learn uses -1 for an anomaly and 1 for a normal row
print(f"{(labels == -1).sum()} of {len(X)} rows flagged")

# The number keeps its posterior, also after clone, copy and pickle.
low, high = gamma.posterior.interval()
print(f"estimate {gamma:.3f}, 90 % interval {low:.3f} to {high:.3f}")
