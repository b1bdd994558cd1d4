"""Peak memory of a fit on the same rows in data frames of several kinds, in new processes.

    python benchmarks/frames.py

Writes benchmarks/results/frames.json. All kinds must give the same answer.
"""

from __future__ import annotations

import resource
import sys
import time
import warnings

import numpy as np

from timing import in_new_process, measure

KINDS = ("numpy", "pandas", "polars", "pyarrow", "duckdb")
UNIT = 1 if sys.platform == "darwin" else 1024
"""Bytes in a unit of the peak memory that the system gives."""


def columns(n_rows, n_columns):
    """The columns of the table, one at a time."""
    for seed in range(n_columns):
        yield np.random.default_rng(seed).normal(size=n_rows)


def table(kind, n_rows, n_columns):
    """The table in one kind; no other copy of it is left in memory."""
    if kind == "numpy":
        rows = np.empty((n_rows, n_columns))
        for j, column in enumerate(columns(n_rows, n_columns)):
            rows[:, j] = column
        return rows
    named = {f"c{j}": column for j, column in enumerate(columns(n_rows, n_columns))}
    if kind == "pandas":
        import pandas as pd

        return pd.DataFrame(named, copy=False)
    if kind == "polars":
        import polars as pl

        return pl.DataFrame(named)
    import pyarrow as pa

    if kind == "pyarrow":
        return pa.table(named)
    import duckdb

    return duckdb.from_arrow(pa.table(named))


def fit(kind, n_rows, n_columns):
    """In a new process: peak memory before and after a fit, its seconds, and its answer."""
    from gammagmm import GammaGMM

    X = table(kind, n_rows, n_columns)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * UNIT
    estimator = GammaGMM(
        "fast", n_runs=2, n_jobs=1, max_fit_rows=5000, max_mixture_rows=5000, random_state=0
    )
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit(X)
    return {
        "seconds": time.perf_counter() - began,
        "table_gigabytes": before / 1e9,
        "fit_gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * UNIT / 1e9,
        "posterior_mean": estimator.posterior_.mean,
        "scores_sum": float(estimator.scores_.sum()),
    }


def frames(quick):
    """Memory of each kind, and as a multiple of that of NumPy."""
    n_rows, n_columns = (2_000, 3) if quick else (1_000_000, 20)
    fits = {
        kind: in_new_process(fit, kind=kind, n_rows=n_rows, n_columns=n_columns) for kind in KINDS
    }
    answers = {(each["posterior_mean"], each["scores_sum"]) for each in fits.values()}
    if len(answers) > 1:
        raise RuntimeError(f"the kinds of frames give different answers: {answers}")
    base = fits["numpy"]["fit_gigabytes"]
    ratios = {kind: each["fit_gigabytes"] / base for kind, each in fits.items()}
    return {"rows": n_rows, "columns": n_columns, "fits": fits, "times_numpy": ratios}


if __name__ == "__main__":
    measure(__doc__, {"frames": frames})
