"""A fit to precomputed scores, and draws from the posterior for ArviZ."""

import arviz
import numpy as np
from pyod.models.ecod import ECOD
from pyod.models.hbos import HBOS
from pyod.models.iforest import IForest
from pyod.models.knn import KNN

from gammagmm import GammaGMM
from gammagmm.datasets import load_demo

X = load_demo().X
fitted = [d.fit(X) for d in (KNN(), IForest(random_state=0), HBOS(), ECOD())]
scores = np.column_stack([d.decision_scores_ for d in fitted])  # higher is more anomalous

posterior = GammaGMM("precomputed", n_runs=3, random_state=0).fit(scores).posterior_
print(posterior)

draws = posterior.to_arviz(n_draws=4000, random_state=0)
gamma = draws["posterior"]["gamma"].values
print(f"mean of {gamma.size} draws {gamma.mean():.3f}, share of zeros {(gamma == 0).mean():.3f}")
print("ArviZ", arviz.__version__.split(".")[0], "uses the type", type(draws).__name__)
