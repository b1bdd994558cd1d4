"""Fits that users wait for, beside those of an earlier commit, in the same run.

    python benchmarks/waits.py

Every fit runs in a new process with the default preset; the two commits take turns, and the medians
of three are compared. Clean tables are twenty draws of 2,000 normal rows with six columns, fitted
once each. Writes benchmarks/results/waits.json.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from one_fit import whole_fit
from tables import make_rows
from timing import SOURCE, checked_out, in_new_process, measure

EARLIER = "7a003aa"
"""The last commit whose runs saw 20,000 rows and whose slow detectors had a budget of rows."""
N_REPEATS = 3
N_DRAWS = 20
TABLES = (
    ("5,000 × 20", 5_000, 20, 0),
    ("10,000 × 10", 10_000, 10, 0),
    ("20,000 × 10", 20_000, 10, 0),
    ("30,000 × 41, 11 of 0 and 1", 30_000, 30, 11),
    ("100,000 × 10", 100_000, 10, 0),
    ("1,000,000 × 10", 1_000_000, 10, 0),
)


def waits(quick):
    """Each table, and the clean ones together."""
    repeats, draws = (1, 1) if quick else (N_REPEATS, N_DRAWS)
    tables = (("200 × 3", 200, 3, 0),) if quick else TABLES
    with tempfile.TemporaryDirectory() as folder, checked_out(EARLIER) as earlier:
        place, sources = Path(folder) / "rows.npy", {"before": earlier, "now": SOURCE}

        def fits(X, n_times):
            np.save(place, X)
            found = {name: [] for name in sources}
            for _ in range(n_times):
                for name, source in sources.items():
                    one = in_new_process(
                        whole_fit, source=source, rows=str(place), detectors="classic"
                    )
                    found[name].append(one)
                    print(X.shape, name, f"{one['seconds']:.2f} s", flush=True)
            return found

        fits(make_rows(300 if quick else 6_000, 10), 1)  # compiles what is used
        clean = {name: [] for name in sources}
        for seed in range(draws):
            X = np.random.default_rng(seed).normal(size=(2_000, 6))
            for name, found in fits(X[:200] if quick else X, 1).items():
                clean[name] += found
        cases = [summary("clean, 2,000 × 6", clean)]
        cases += [summary(name, fits(make_rows(*shape), repeats)) for name, *shape in tables]
    return {"earlier": EARLIER, "repeats": repeats, "draws": draws, "cases": cases}


def summary(name, found):
    """Medians of the fits of a table, and the slowest one."""
    case = {"name": name}
    medians = ("seconds", "detectors_seconds", "longest_detector_seconds", "mixtures_seconds")
    for which, fits in found.items():
        case[which] = {
            key: float(np.median([fit[key] for fit in fits]))
            for key in (*medians, "posterior_mean")
        }
        case[which]["slowest"] = max(fit["seconds"] for fit in fits)
        case[which]["peak_gigabytes"] = max(fit["peak_gigabytes"] for fit in fits)
    case["ratio"] = case["before"]["seconds"] / case["now"]["seconds"]
    case["ratio_of_slowest"] = case["before"]["slowest"] / case["now"]["slowest"]
    return case


if __name__ == "__main__":
    measure(__doc__, {"waits": waits})
