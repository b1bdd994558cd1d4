"""PyOD detectors with an estimated contamination, passed as a number and as an object."""

from pyod.models.iforest import IForest
from pyod.models.knn import KNN

from gammagmm import GammaGMM, GammaThreshold
from gammagmm.datasets import load_demo

X = load_demo().X
estimator = GammaGMM(n_runs=3, random_state=0).fit(X)

# Every PyOD detector accepts the number.
forest = IForest(contamination=estimator.contamination_, random_state=0).fit(X)
print(f"contamination {forest.contamination:.3f}: IForest flags {forest.labels_.sum()} rows")

# Most PyOD detectors also accept a thresholder object, which keeps the posterior.
# Give each detector its own object: it stores the threshold of its last fit.
knn = KNN(contamination=GammaThreshold(estimator)).fit(X)
print(f"threshold {knn.threshold_:.1f}: KNN flags {knn.labels_.sum()} rows")
print(knn.contamination.posterior_)
