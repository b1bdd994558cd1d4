"""A fit as an MLflow run: parameters, the estimate, what its range is, and the files."""

import logging
import os
import tempfile
from pathlib import Path

os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"  # before the import; MLflow then sends nothing
import mlflow

from gammagmm import GammaGMM
from gammagmm.datasets import load_demo

logging.getLogger("mlflow").setLevel(logging.WARNING)
mlflow.set_tracking_uri("sqlite:///mlflow.db")  # or the address of your server
mlflow.set_experiment("share of anomalies")


def log_fit(estimator):
    """Log a fitted GammaGMM to the run that is active."""
    summary = estimator.summary()
    low, high = summary.posterior.interval()
    mlflow.log_params(summary.parameters)
    mlflow.log_metrics({"share": summary.posterior.mean, "share_low": low, "share_high": high})
    mlflow.log_metrics({"rows": summary.n_rows, "rows_flagged": summary.n_flagged})
    mlflow.log_metric("labels", summary.posterior.n_labels)
    mlflow.set_tag("range", summary.posterior.range_name)  # a "90% interval" needs labels
    mlflow.set_tag("mlflow.note.content", "\n\n".join(summary.lines))  # the description of the run
    with tempfile.TemporaryDirectory() as folder:
        estimator.report(Path(folder) / "report.html")
        estimator.posterior_.save(Path(folder) / "posterior.json")
        estimator.save(Path(folder) / "rows.fit")
        mlflow.log_artifacts(folder)


with mlflow.start_run() as run:
    log_fit(GammaGMM(n_runs=3, random_state=0).fit(load_demo().X))

# Later, in another process:
logged = mlflow.get_run(run.info.run_id).data
print(f"{logged.params['n_runs']} runs, {logged.tags['range']}")
print({name: round(value, 3) for name, value in logged.metrics.items()})
print(logged.tags["mlflow.note.content"].splitlines()[0])
path = mlflow.artifacts.download_artifacts(run_id=run.info.run_id, artifact_path="rows.fit")
print(GammaGMM.load(path).posterior_)
