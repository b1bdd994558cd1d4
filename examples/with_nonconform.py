"""Conformal p-values of nonconform beside the estimate: two answers to two questions."""

import logging

import numpy as np
from nonconform import ConformalDetector, Split
from sklearn.ensemble import IsolationForest

from gammagmm import GammaGMM
from gammagmm.datasets import make_contaminated

logging.getLogger("nonconform").setLevel(logging.ERROR)
data = make_contaminated(2500, 5, 0.05, "clustered", random_state=0)
old, new = data.X[:2000], data.X[2000:]
old_truth, truth = data.y[:2000], data.y[2000:]
print(f"{truth.sum()} of {len(new)} new rows are anomalies ({truth.mean():.1%})")

# What share of the new rows are anomalies? This needs labels of some of them.
estimator = GammaGMM(n_runs=3, random_state=0).fit(new)
rows = estimator.suggest(30, random_state=0)
print(estimator.update(rows, truth[rows]))


def select(reference):
    """Rows that nonconform selects, if it may be wrong on 10 % of them on average."""
    forest = IsolationForest(random_state=0)
    detector = ConformalDetector(forest, strategy=Split(n_calib=0.5), seed=0)
    selected = detector.fit(reference).select(new, alpha=0.1)
    return f"{selected.sum()} rows selected, {(truth[selected] == 0).sum()} wrongly"


# Which new rows can be called anomalies? This needs reference rows that are known to be clean.
print("clean reference:", select(old[old_truth == 0]))

# The anomalies of an unlabelled reference hide those of the new rows.
print("unlabelled reference:", select(old))

# A person labels the 100 reference rows that look most unusual, and removes the anomalies.
top = IsolationForest(random_state=0).fit(old).score_samples(old).argsort()[:100]
print("cleaned by 100 labels:", select(np.delete(old, top[old_truth[top] == 1], axis=0)))
