"""Conformal p-values of nonconform beside the estimate: two answers to two questions."""

import logging

from nonconform import ConformalDetector, Split
from sklearn.ensemble import IsolationForest

from gammagmm import GammaGMM
from gammagmm.datasets import make_contaminated

logging.getLogger("nonconform").setLevel(logging.ERROR)
data = make_contaminated(2500, 5, 0.05, "clustered", random_state=0)
old, new = data.X[:2000], data.X[2000:]
is_old_clean, truth = data.y[:2000] == 0, data.y[2000:]
print(f"{truth.sum()} of {len(new)} new rows are anomalies ({truth.mean():.1%})")

# What share of the new rows are anomalies? This needs no other rows and no labels.
estimator = GammaGMM(n_runs=3, random_state=0).fit(new)
print(estimator.posterior_)
print(estimator.evidence_.separate_rows.n_rows, "of them are separate from the rest")


def select(reference):
    """Rows that nonconform selects, if it may be wrong on 10 % of them on average."""
    forest = IsolationForest(random_state=0)
    detector = ConformalDetector(forest, strategy=Split(n_calib=0.5), seed=0)
    return detector.fit(reference).select(new, alpha=0.1)


# Which new rows can be called anomalies? This needs reference rows that are known to be clean.
selected = select(old[is_old_clean])
print(f"clean reference: {selected.sum()} rows selected, {(truth[selected] == 0).sum()} wrongly")

# Unlabelled rows are not such a reference: their anomalies hide those of the new rows.
selected = select(old)
print(f"unlabelled reference: {selected.sum()} rows selected")
