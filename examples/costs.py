"""Labels that take the costs of misses and false alarms into account."""

from gammagmm import GammaGMM
from gammagmm.datasets import make_contaminated

data = make_contaminated(400, 5, 0.05, "clustered", random_state=0)
old, new = data.X[:300], data.X[300:]
estimator = GammaGMM(["KNN", "LOF", "IForest", "HBOS", "COPOD"], n_runs=3, random_state=0).fit(old)
rows = estimator.suggest(50, random_state=0)
estimator.update(rows, data.y[rows])  # the probabilities without labels are those of any table

print(f"without costs: {estimator.predict(new).sum()} of {len(new)} rows flagged")
for miss in (1, 5, 20):
    flagged = estimator.predict(new, costs=(1, miss)).sum()
    print(f"cost of a miss {miss:2}, of a false alarm 1: {flagged} rows flagged")
print(f"true number of anomalies: {data.y[300:].sum()}")
