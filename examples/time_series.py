"""The share of unusual days in a time series, from aeon's detectors."""

import numpy as np
from aeon.anomaly_detection.series.distance_based import CBLOF, LOF, KMeansAD
from aeon.anomaly_detection.series.distribution_based import COPOD
from aeon.anomaly_detection.series.outlier_detection import IsolationForest

from gammagmm import GammaGMM

n_days, day = 500, 24


def make_series(seed):
    """Hourly values; on 15 of 500 days (3 %), ten hours are too high or too low."""
    rng = np.random.default_rng(seed)
    load = 10 + 3 * np.sin(2 * np.pi * np.arange(n_days * day) / day)
    load += rng.normal(0, 0.5, size=load.size)
    for start in rng.choice(n_days, size=15, replace=False) * day:
        load[start + 8 : start + 18] += rng.choice([-4, 4])
    return load


def window_scores(series, window, stride):
    """One row for each window, one column for each detector."""
    shape = {"window_size": window, "stride": stride}
    detectors = [
        IsolationForest(**shape, random_state=0),
        COPOD(**shape),
        LOF(**shape),
        CBLOF(**shape, random_state=0),
        KMeansAD(**shape, n_clusters=5, random_state=0),
    ]
    # aeon returns one score for each point: take one point from each window.
    return np.column_stack([each.fit_predict(series)[::stride] for each in detectors])


# Windows that do not overlap: one row for each day.
load = make_series(seed=0)
scores = window_scores(load, window=day, stride=day)
estimator = GammaGMM("precomputed", n_runs=3, random_state=0).fit(scores)
print(f"{len(scores)} days: {estimator.posterior_}")
print(estimator.evidence_.separate_rows.n_rows, "of them are separate from the rest")
print(f"{estimator.labels_.sum()} days flagged, the first three: ", end="")
print(np.flatnonzero(estimator.labels_)[:3])
hours = np.repeat(estimator.labels_, day)  # a label for each point of the series
print(f"{hours.sum()} of {len(load)} hours lie in these days")

# Other series of the same kind: the range may miss the 3 %, the separate days do not.
for seed in (1, 2, 3):
    scores = window_scores(make_series(seed), window=day, stride=day)
    other = GammaGMM("precomputed", n_runs=3, random_state=0).fit(scores)
    verb = "contains" if other.posterior_.contains(0.03) else "misses"
    separate = other.evidence_.separate_rows
    print(f"series {seed}: the range {verb} 3 %, and {separate.n_rows} days are separate")

# Windows that overlap by half: each unusual day raises the scores of four half days.
scores = window_scores(load, window=day, stride=day // 2)
estimator = GammaGMM("precomputed", n_runs=3, random_state=0).fit(scores)
print(f"{len(scores)} half days: {estimator.posterior_}")
print(estimator.evidence_.separate_rows.n_rows, "of them are separate from the rest")
