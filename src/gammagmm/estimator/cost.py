"""Expected seconds of the parts of a fit, by which the progress bar counts; they decide nothing."""

from __future__ import annotations

from statistics import geometric_mean
from typing import NamedTuple

from joblib import effective_n_jobs

from gammagmm._support.processes import allowed_jobs
from gammagmm.detectors.presets import AUTO_FIT_ROWS, NAMES, RowPlan, name_choices
from gammagmm.estimator.parameters import Plan
from gammagmm.mixture.backends import count_threads

__all__ = ["COST", "Cost", "expected_seconds"]


class Cost(NamedTuple):
    """Factor and exponents of the seconds that a detector or a run takes on one core.

    With n rows and d columns, the seconds are
    ``factor * (m / 1000)**rows * (d / 10)**columns * (n / m)**more_rows``, where m is the number of
    rows that the detector is fitted on, but at most AUTO_FIT_ROWS.
    """

    factor: float
    rows: float
    columns: float
    more_rows: float

    def seconds(self, n_rows: int, n_columns: int, n_fit: int) -> float:
        """Expected seconds for a table of this size, of which `n_fit` rows are fitted."""
        few = min(n_fit, AUTO_FIT_ROWS)
        size = (few / 1_000) ** self.rows * (n_columns / 10) ** self.columns
        return float(self.factor * size * (n_rows / few) ** self.more_rows)


# Measured by benchmarks/cost.py: of the detectors, and of a run, whose columns are detectors.
COST = {
    "KNN": Cost(0.0045, 1.4, 0.4, -0.019),
    "IForest": Cost(0.061, 0.34, 0.0041, 0.8),
    "LOF": Cost(0.0049, 1.3, 0.84, 0.73),
    "OCSVM": Cost(0.02, 1.8, 0.26, 0.31),
    "LSCP": Cost(0.098, 1.2, 0.89, 0.98),
    "HBOS": Cost(0.00093, 0.39, 0.72, 0.89),
    "LODA": Cost(0.0055, 0.64, 0.028, 1),
    "COPOD": Cost(0.00073, 0.88, 0.74, 1),
    "ECOD": Cost(0.0007, 0.9, 0.75, 1),
    "PCA": Cost(0.00098, 0.51, 0.32, 0.85),
    "AE": Cost(0.073, 0.81, 0.031, 0.81),
    "VAE": Cost(0.29, 0.95, 0.0053, 0.95),
    "run": Cost(0.19, 0.93, 0.82, 0.93),
}


def expected_seconds(plan: Plan, n_rows: int, n_columns: int) -> dict[str, float]:
    """Expected seconds of each detector and each run, by the names that the progress has.

    The work on several cores at the same time is divided by their number. A detector that was not
    measured is expected to take the geometric mean of those that were.
    """
    rows = plan.rows(n_rows, n_columns)
    detectors = {} if rows is None else _detector_seconds(plan, rows)
    n_workers = min(effective_n_jobs(allowed_jobs(plan.n_jobs)), max(len(detectors), 1))
    in_all, longest = sum(detectors.values()), max(detectors.values(), default=0.0)
    share = max(1.0 / n_workers, longest / in_all) if in_all else 1.0
    n_seen = min(n_rows, plan.max_mixture_rows or n_rows)
    n_detectors = len(detectors) or n_columns
    run = COST["run"].seconds(n_seen, n_detectors, n_seen) / count_threads(plan.n_jobs)
    expected = {name: share * seconds for name, seconds in detectors.items()}
    return expected | {f"run {i + 1}": run for i in range(plan.n_runs)}


def _detector_seconds(plan: Plan, rows: RowPlan) -> dict[str, float]:
    """Expected seconds on one core of each detector that is not skipped."""
    expected = {}
    for name, choice in name_choices(plan.detectors).items():
        if name not in rows.n_fit:
            continue
        size = rows.n_rows, rows.n_columns, rows.n_fit[name]
        kind = choice if isinstance(choice, str) else type(choice).__name__
        costs = [COST[kind]] if kind in COST else [COST[known] for known in NAMES]
        expected[name] = geometric_mean(cost.seconds(*size) for cost in costs)
    return expected
