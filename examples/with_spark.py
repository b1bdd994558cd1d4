"""Which rows of a Spark table a person checks, by a fit to a sample of them."""

import os
import sys

import pandas as pd
from pyspark.sql import SparkSession

from gammagmm import GammaGMM
from gammagmm.datasets import make_contaminated

os.environ["PYSPARK_PYTHON"] = sys.executable  # the workers use the same environment
quiet = {"spark.log.level": "ERROR", "spark.ui.enabled": False}
spark = SparkSession.builder.master("local[2]").config(map=quiet).getOrCreate()
data = make_contaminated(20_000, 6, 0.05, "clustered", random_state=0)
rows = pd.DataFrame(data.X, columns=data.feature_names).rename_axis("id").reset_index()
table = spark.createDataFrame(rows)  # or spark.read.parquet

# A uniform sample fits in memory. The column id names the rows.
sample = table.sample(fraction=0.2, seed=0).toPandas().set_index("id")
estimator = GammaGMM("fast", n_runs=3, strict=True, random_state=0).fit(sample)
print(f"{len(sample)} rows: {estimator.posterior_}")

# A person labels 30 of them; the ranking learns from them.
chosen = estimator.suggest(30, random_state=0)
print(estimator.update(chosen, data.y[sample.index[chosen]]))


def score(part):
    """A part of the table with the score, probability and label of each row."""
    rows = part.set_index("id")
    scores = estimator.decision_function(rows)
    return part.assign(
        score=scores,
        probability=estimator.predict_proba(rows)[:, 1],
        label=(scores > estimator.threshold_).astype(int),
    )


# Spark sends the fitted estimator to the workers together with the function.
schema = f"{table.schema.toDDL()}, score double, probability double, label long"
answers = table.mapInPandas(lambda parts: map(score, parts), schema).cache()
print(f"{answers.filter('label = 1').count()} of {answers.count()} rows flagged")

# The decision: people can check 500 rows, so they get those with the highest scores.
first = answers.orderBy("score", ascending=False).limit(500).toPandas()
print(f"check 500 rows, such as {first['id'][:3].to_list()}", end="; ")
print(f"{first['probability'].sum():.0f} anomalies are expected, {data.y[first['id']].sum()} found")
