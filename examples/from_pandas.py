"""pandas DataFrames as input and output; the index and the column names are preserved."""

import pandas as pd

from gammagmm import GammaGMM
from gammagmm.datasets import load_demo

demo = load_demo()
patients = [f"P{number:03d}" for number in range(len(demo.X))]
table = pd.DataFrame(demo.X, columns=demo.feature_names, index=patients)

estimator = GammaGMM(n_runs=3, random_state=0).fit(table)
results = estimator.to_frame()
columns = ["score", "probability", "label"]
print(results.sort_values("score", ascending=False)[columns].head(3).round(2))

# If the order of the columns differs, predict raises an error.
try:
    estimator.predict(table[sorted(table.columns)])
except ValueError as error:
    print(str(error).splitlines()[-1])
