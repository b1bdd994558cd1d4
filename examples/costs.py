"""Labels that weigh what a miss and a false alarm cost."""

from gammagmm import GammaGMM
from gammagmm.datasets import make_contaminated

data = make_contaminated(400, 5, 0.05, "clustered", random_state=0)
old, new = data.X[:300], data.X[300:]
estimator = GammaGMM(["KNN", "LOF", "IForest", "HBOS", "COPOD"], n_runs=3, random_state=0).fit(old)

print(f"cut at the posterior mean: {estimator.predict(new).sum()} of {len(new)} rows flagged")
for miss in (1, 5, 20):
    flagged = estimator.predict(new, costs=(1, miss)).sum()
    print(f"a miss as dear as {miss:2} false alarms: {flagged}")
print(f"the truth, which nobody saw: {data.y[300:].sum()}")
