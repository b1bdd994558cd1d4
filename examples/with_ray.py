"""All rows of a Ray dataset, scored by a fit to a sample of them."""

import logging
import os

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # before the import; Ray then sends nothing
import pandas as pd
import ray

from gammagmm import GammaGMM
from gammagmm.datasets import make_contaminated

ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
ray.data.DataContext.get_current().enable_progress_bars = False
logging.getLogger("ray.data").setLevel("ERROR")
data = make_contaminated(20_000, 6, 0.05, "clustered", random_state=0)
rows = pd.DataFrame(data.X, columns=data.feature_names).rename_axis("id").reset_index()
table = ray.data.from_pandas([rows[:10_000], rows[10_000:]])  # or ray.data.read_parquet

# A uniform sample fits in memory. The column id names the rows.
sample = table.random_sample(0.2, seed=0).to_pandas().set_index("id")
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


# Ray sends the fitted estimator to the workers together with the function.
answers = table.map_batches(score, batch_format="pandas").materialize()
flagged = answers.filter(expr=ray.data.expressions.col("label") == 1).to_pandas()
print(f"{len(flagged)} of {answers.count()} rows flagged, the first three:")
first = flagged.nlargest(3, "score")
print(first[["id", "score", "probability"]].round(2).to_string(index=False))
