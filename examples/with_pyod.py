"""A PyOD pipeline whose threshold is chosen by 30 labels instead of a typed 0.1."""

import numpy as np
from pyod.models.iforest import IForest
from sklearn.metrics import f1_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import RobustScaler

from gammagmm import estimate_contamination
from gammagmm.datasets import make_contaminated

# The data: 2,000 rows, 3 % of them anomalies, and 1,000 rows that come later.
data = make_contaminated(3000, 6, 0.03, "clustered", random_state=0)
old, new = data.X[:2000], data.X[2000:]

# 30 random rows, looked at by a person: 1 is an anomaly, 0 is normal.
rows = np.random.default_rng(0).choice(len(old), 30, replace=False)
answers = {row: data.y[row] for row in rows}
share = estimate_contamination(old, labels=answers, random_state=0)
low, high = share.posterior.interval()
print(f"estimate {share:.3f}, 90 % interval {low:.3f} to {high:.3f}")

# The decision: the threshold of the pipeline for all later rows.
for name, contamination in (("typed", 0.1), ("from labels", share)):
    pipeline = make_pipeline(
        RobustScaler(), IForest(contamination=contamination, random_state=0)
    ).fit(old)
    flagged = pipeline.predict(new)
    f1 = f1_score(data.y[2000:], flagged)
    print(f"{name}: {flagged.sum()} of {len(new)} new rows flagged, F1 {f1:.2f}")
print(f"true number of anomalies: {data.y[2000:].sum()}")
