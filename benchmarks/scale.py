"""Large tables: a million rows in memory and on Dask, and ten million rows from Parquet.

    python benchmarks/scale.py --large      both

compare: the default fit of a million rows with `fast`, in memory and, of a sample, on two workers.
dask: the fit and the labels of ten million rows from Parquet on two workers of 2 GiB each.

Writes benchmarks/results/compare.json and dask.json; docs/guides/large-data.md has the figures.
"""

from __future__ import annotations

import contextlib
import os
import resource
import tempfile
import warnings
from pathlib import Path

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask.distributed import Client, LocalCluster

from gammagmm import GammaGMM
from timing import Memory, best_seconds, in_new_process, measure

N_COLUMNS = 10
N_WORKERS = 2


def make_rows(n_rows, seed):
    """Rows of ten features; 4% of them have another mean and a wider spread."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n_rows, N_COLUMNS)) @ np.linalg.cholesky(0.5 + 0.5 * np.eye(10)).T
    n_anomalies = n_rows // 25
    rows[:n_anomalies] = 2.0 + 2.0 * rows[:n_anomalies]
    return rng.permutation(rows)


def cluster_of(memory="8GiB"):
    return LocalCluster(
        n_workers=N_WORKERS, threads_per_worker=1, memory_limit=memory, dashboard_address=":0"
    )


def fit(rows, **options):
    """Fitted estimator, and figures of the fit."""
    estimator = GammaGMM("fast", random_state=0, n_jobs=os.cpu_count(), **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        GammaGMM("fast", n_runs=1, random_state=0).fit(make_rows(200, 0))  # imports
        seconds, _ = best_seconds(lambda: estimator.fit(rows))
    return estimator, {
        "seconds": seconds,
        "n_sampled": estimator.fit_.n_rows,
        "posterior_mean": estimator.posterior_.mean,
        "n_flagged": estimator.fit_.n_flagged,
    }


def fit_memory(n_rows, n_runs):
    """In a new process: the fit in memory."""
    return fit(make_rows(n_rows, 0), n_runs=n_runs)[1]


def fit_array(n_rows, n_runs):
    """In a new process: the fit of a Dask array of eight parts."""
    rows = da.from_array(make_rows(n_rows, 0), chunks=(-(-n_rows // 8), N_COLUMNS))
    with cluster_of() as cluster, Client(cluster):
        return fit(rows, n_runs=n_runs)[1]


def compare(quick):
    """One table in memory and on Dask."""
    size = {"n_rows": 400, "n_runs": 1} if quick else {"n_rows": 1_000_000, "n_runs": 10}
    memory, sampled = in_new_process(fit_memory, **size), in_new_process(fit_array, **size)
    return size | {"n_columns": N_COLUMNS, "workers": N_WORKERS, "memory": memory, "dask": sampled}


def write_rows(folder, n_rows, n_files=20):
    for i in range(n_files):
        columns = [f"x{j}" for j in range(N_COLUMNS)]
        frame = pd.DataFrame(make_rows(n_rows // n_files, i), columns=columns)
        frame.to_parquet(folder / f"{i:03d}.parquet", row_group_size=250_000)


def dask(quick):
    """A table in files that is larger than the memory of the workers."""
    n_rows, n_files, n_runs = (600, 2, 1) if quick else (10_000_000, 20, 10)
    with contextlib.ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        write_rows(place, n_rows, n_files)
        rows = dd.read_parquet(place, split_row_groups=True)
        cluster = stack.enter_context(cluster_of("2GiB"))
        stack.enter_context(Client(cluster))
        workers = [worker.pid for worker in cluster.workers.values()]
        watches = [stack.enter_context(Memory(pid)) for pid in workers]
        estimator, found = fit(rows, n_runs=n_runs)
        seconds, n_flagged = best_seconds(lambda: int(estimator.predict(rows).sum().compute()))
        driver = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return found | {
            "n_rows": n_rows,
            "n_columns": N_COLUMNS,
            "parts": rows.npartitions,
            "workers": N_WORKERS,
            "worker_limit_gigabytes": 2 * 2**30 / 1e9,
            "worker_peak_gigabytes": [watch.peak / 1e9 for watch in watches],
            "driver_peak_gigabytes": driver / 1e9,
            "predict_seconds": seconds,
            "n_flagged_of_all": n_flagged,
        }


if __name__ == "__main__":
    measure(__doc__, {}, {"compare": compare, "dask": dask})
