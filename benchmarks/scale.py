"""The fit on Dask: time and memory by rows, workers and blocks, compared with a fit in memory.

    python benchmarks/scale.py [passes] [compare] [large] [page]     (all without a name)

passes: seconds per pass over score blocks, by rows, workers and blocks, for the cost model.
compare: a fit of a million rows, in memory and on two workers, in the same run.
large: ten million rows from Parquet on two workers of 2 GiB each.
page: the tables of docs/scaling.md from the measurements.

Writes each part to benchmarks/results/scale.json when it is done. Compare ratios: absolute times
vary on shared machines.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask.distributed import Client, LocalCluster, wait
from gammagmm.blocks.mixtures import _summarise_block

from gammagmm import GammaGMM
from gammagmm.blocks.collection import MERGED_ROWS, Blocks, open_blocks

RESULTS = Path(__file__).parent / "results" / "scale.json"
PAGE = Path(__file__).parents[1] / "docs" / "scaling.md"
MARKS = ("<!-- measured by benchmarks/scale.py -->", "<!-- end -->")
N_COMPONENTS = 100
LAYOUTS = ((800, 1), (800, 8), (800, 64), (200_000, 8), (800_000, 8), (800_000, 64))
# Enough to measure time and memory; with so many rows, the fit needs more to reach `tol`.
MAX_ITER = 100


def make_rows(n_rows, seed):
    """Rows of ten features; 4% of them have another mean and a wider spread."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n_rows, 10)) @ np.linalg.cholesky(0.5 + 0.5 * np.eye(10)).T
    n_anomalies = n_rows // 25
    rows[:n_anomalies] = 2.0 + 2.0 * rows[:n_anomalies]
    return rng.permutation(rows)


def cluster_of(n_workers, memory="8GiB"):
    return LocalCluster(
        n_workers=n_workers, threads_per_worker=1, memory_limit=memory, dashboard_address=":0"
    )


def peak_megabytes():
    """Peak resident memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class Peaks:
    """Peak memory of each worker, restarts included."""

    def __init__(self, client):
        self.client, self.seen, self.stop = client, {}, threading.Event()

    def __enter__(self):
        self.thread = threading.Thread(target=self._watch)
        self.thread.start()
        return self

    def _watch(self):
        while not self.stop.wait(2.0):
            for worker, peak in self.client.run(peak_megabytes).items():
                self.seen[worker] = max(peak, self.seen.get(worker, 0.0))

    def __exit__(self, *error):
        self.stop.set()
        self.thread.join()


def whitened_like(n_rows, n_detectors=6):
    """Rows and coefficients as in a pass of a fit."""
    rng = np.random.default_rng(0)
    n_features = 1 + n_detectors + n_detectors * (n_detectors + 1) // 2
    coefficients = 0.05 * rng.normal(size=(N_COMPONENTS, n_features))
    return rng.normal(size=(n_rows, n_detectors)), coefficients


def time_pass(n_rows, n_blocks, n_runs=1, repeats=3):
    """Shortest time of a pass over `n_blocks` blocks on the current cluster."""
    Z, coefficients = whitened_like(n_rows)
    blocks = open_blocks(da.from_array(Z, chunks=(-(-n_rows // n_blocks), Z.shape[1])))
    kept = blocks.map(np.asarray)
    wait(list(kept.parts))
    seconds = []
    for _ in range(repeats + 1):  # the first loads the compiled code
        began = time.perf_counter()
        kept.summarise(_summarise_block, [coefficients] * n_runs)
        seconds.append(time.perf_counter() - began)
    return min(seconds[1:])


def passes():
    found = []
    for n_workers in (1, 2):
        with cluster_of(n_workers) as cluster, Client(cluster):
            for n_rows, n_blocks in LAYOUTS:
                shape = {"workers": n_workers, "rows": n_rows, "blocks": n_blocks}
                found.append(shape | {"seconds": time_pass(n_rows, n_blocks)})
                print(found[-1], flush=True)
    return found


class Phases:
    """Number and seconds of the passes over the blocks during a fit, by their kind."""

    def __enter__(self):
        self.summarise, self.seconds, self.n_passes = Blocks.summarise, {}, 0

        def counted(blocks, function, *shared):
            began = time.perf_counter()
            answer = self.summarise(blocks, function, *shared)
            name = getattr(function, "func", function).__name__.lstrip("_")
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - began
            self.n_passes += function is _summarise_block
            if function is _summarise_block and self.n_passes % 20 == 0:
                print(f"  pass {self.n_passes}, {self.seconds[name]:.0f} s", flush=True)
            return answer

        Blocks.summarise = counted
        return self

    def __exit__(self, *error):
        Blocks.summarise = self.summarise

    def described(self):
        return {"passes": self.n_passes, "seconds_of": self.seconds}


def fit(rows):
    """Fitted estimator and seconds of the fit, with labels and thresholds."""
    estimator = GammaGMM(
        "fast", n_runs=1, max_restarts=0, max_iter=MAX_ITER, random_state=0, n_jobs=2
    )
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are in notes_, which goes into the result
        estimator.fit(rows)
        n_flagged = int(estimator.labels_.sum())
    return estimator, time.perf_counter() - began, n_flagged


def described(estimator, seconds, n_flagged):
    run = estimator.runs_[0]
    return {
        "seconds": seconds,
        "iterations": run.n_iter,
        "converged": run.converged,
        "status": run.status,
        "mean": estimator.posterior_.mean,
        "flagged": n_flagged,
        "notes": [note.message for note in estimator.notes_],
    }


def compare(n_rows=1_000_000):
    rows = make_rows(n_rows, 0)
    here = described(*fit(rows))
    print("memory", here, flush=True)
    with cluster_of(2) as cluster, Client(cluster), Phases() as phases:
        there = described(*fit(da.from_array(rows, chunks=(125_000, 10))))
        there |= phases.described()
    print("dask", there, flush=True)
    return {"rows": n_rows, "memory": here, "dask": there}


def write_rows(folder, n_rows, n_files=20):
    for i in range(n_files):
        columns = [f"x{j}" for j in range(10)]
        frame = pd.DataFrame(make_rows(n_rows // n_files, i), columns=columns)
        frame.to_parquet(folder / f"{i:03d}.parquet", row_group_size=250_000)


def large(n_rows=10_000_000):
    with tempfile.TemporaryDirectory() as place:
        write_rows(Path(place), n_rows)
        rows = dd.read_parquet(place, split_row_groups=True)
        with (
            cluster_of(2, "2GiB") as cluster,
            Client(cluster) as client,
            Phases() as phases,
            Peaks(client) as peaks,
        ):
            estimator, seconds, n_flagged = fit(rows)
            found = described(estimator, seconds, n_flagged)
            began = time.perf_counter()
            estimator.to_parquet(Path(place) / "answers")
            found |= phases.described() | {
                "rows": n_rows,
                "blocks": rows.npartitions,
                "worker_limit_megabytes": 2048,
                "worker_peak_megabytes": sorted(peaks.seen.values()),
                "driver_peak_megabytes": peak_megabytes(),
                "seconds_to_write": time.perf_counter() - began,
                "megabytes_written": sum(
                    path.stat().st_size for path in (Path(place) / "answers").iterdir()
                )
                / 1e6,
            }
    print("large", found, flush=True)
    return found


def terms(results):
    """The terms of the cost model, from the measurements.

    What a row costs outside of passes, which is reading and scoring, is the difference between ten
    million and one million: the fits of detectors and of k-means, which see a sample, cancel.
    """
    seconds = {(p["workers"], p["rows"], p["blocks"]): p["seconds"] for p in results["passes"]}
    large = results["large"]
    # 64 blocks, and 8 + 1 tasks that add, against one block.
    task = (seconds[2, 800, 64] - seconds[2, 800, 1]) / (63 + 9)
    a_pass = large["seconds_of"]["summarise_block"] / large["passes"]
    more_rows = large["rows"] - results["compare"]["rows"]
    more_seconds = _outside(large) - _outside(results["compare"]["dask"])
    return {
        "score": more_seconds * 2 / more_rows,
        "row": a_pass * 2 / large["rows"],
        "pass": seconds[2, 800, 1],
        "task": task,
    }


def _outside(fit):
    """Seconds of a fit outside the passes over scores."""
    return fit["seconds"] - sum(fit["seconds_of"].values())


def predicted(term, n_rows, n_workers, n_iterations=100):
    """Seconds according to the model: scoring, work of the passes, and their scheduling."""
    n_blocks = max(n_rows / MERGED_ROWS, 4 * n_workers)
    work = n_iterations * n_rows * term["row"] / n_workers
    tasks = n_iterations * (term["pass"] + term["task"] * n_blocks * (1 + 1 / 7))
    return n_rows * term["score"] / n_workers, work, tasks


def page(results):
    """The tables of docs/scaling.md."""
    fits, large, term = results["compare"], results["large"], terms(results)
    here, there = fits["memory"], fits["dask"]
    peaks = " and ".join(f"{peak:,.0f}" for peak in large["worker_peak_megabytes"])
    lines = [
        f"A fit of {fits['rows']:,} rows of 10 features, `fast`, one run of {here['iterations']} "
        f"iterations, took {here['seconds']:.0f} s in memory and {there['seconds']:.0f} s on two "
        f"workers, {there['seconds'] / here['seconds']:.2f} times as long.",
        "",
        f"{large['rows']:,} rows of 10 features from {large['blocks']} row groups of Parquet, on "
        f"two workers of {large['worker_limit_megabytes']:,} MB, took {large['seconds']:,.0f} s: "
        f"{_outside(large):,.0f} s for reading, fitting the detectors and scoring, and "
        f"{large['seconds_of']['summarise_block']:,.0f} s for {large['passes']} passes. The peak "
        f"memory was {peaks} MB in the workers and {large['driver_peak_megabytes']:,.0f} MB in the "
        f"driver. Writing {large['megabytes_written']:,.0f} MB of results took "
        f"{large['seconds_to_write']:.0f} s.",
        "",
        "| workers | rows | blocks | seconds per pass |",
        "|---|---|---|---|",
        *(
            f"| {p['workers']} | {p['rows']:,} | {p['blocks']} | {p['seconds']:.3f} |"
            for p in results["passes"]
        ),
        "",
        "| term | measured |",
        "|---|---|",
        f"| reading and scoring, per row and worker | {1e6 * term['score']:.1f} µs |",
        f"| statistics, per row, iteration, run and worker | {1e6 * term['row']:.2f} µs |",
        "| data sent, per block, iteration and run | 8 K (1 + M + M (M + 1) / 2) bytes: 22 KB with "
        "M = 6, "
        "53 KB with M = 10 |",
        f"| latency, per pass | {1e3 * term['pass']:.0f} ms |",
        f"| scheduling, per task | {1e3 * term['task']:.1f} ms |",
        "",
        "| rows | workers | reading and scoring | 100 passes: work | 100 passes: scheduling |",
        "|---|---|---|---|---|",
    ]
    for n_rows in (10**9, 10**10):
        for n_workers in (10, 100):
            shown = " | ".join(_duration(s) for s in predicted(term, n_rows, n_workers))
            lines.append(f"| {n_rows:,} | {n_workers} | {shown} |")
    return "\n".join(lines)


def _duration(seconds):
    if seconds >= 5400:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


def write_page(results):
    """Write the tables between the marks of docs/scaling.md."""
    before, rest = PAGE.read_text(encoding="utf-8").split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    PAGE.write_text(f"{before}{MARKS[0]}\n{page(results)}\n{MARKS[1]}{after}", encoding="utf-8")


def main(names):
    for name in names or ["passes", "compare", "large", "page"]:
        if name == "page":
            write_page(json.loads(RESULTS.read_text()))
            continue
        found = {"passes": passes, "compare": compare, "large": large}[name]()
        results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"cores": os.cpu_count()}
        RESULTS.write_text(json.dumps(results | {name: found}, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
