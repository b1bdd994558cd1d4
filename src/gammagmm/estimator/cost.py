"""Expected seconds of the parts of a fit, by which the progress bar counts; they decide nothing."""

from __future__ import annotations

from statistics import geometric_mean
from typing import NamedTuple

from gammagmm.detectors.presets import name_choices
from gammagmm.estimator.parameters import Plan

__all__ = ["COST", "MANY_ROWS", "Cost", "expected_seconds"]


MANY_ROWS = 20_000
"""Rows above which slow detectors are fitted on a sample, so that their time grows less."""


class Cost(NamedTuple):
    """Factor and exponents of the seconds of a detector or a run.

    With n rows, of which m = min(n, MANY_ROWS), and d columns, the seconds are
    ``factor * (m / 1000)**rows * (d / 10)**columns * (n / m)**many_rows``.
    """

    factor: float
    rows: float
    columns: float
    many_rows: float

    def seconds(self, n_rows: int, n_columns: int) -> float:
        """Expected seconds for a table of this size."""
        few = min(n_rows, MANY_ROWS)
        size = (few / 1_000) ** self.rows * (n_columns / 10) ** self.columns
        return float(self.factor * size * (n_rows / few) ** self.many_rows)


# Measured by benchmarks/cost.py: of the detectors, and of a run, whose columns are detectors.
COST = {
    "KNN": Cost(0.0045, 1.4, 0.4, -0.026),
    "IForest": Cost(0.061, 0.34, 0.0041, 0.8),
    "LOF": Cost(0.0049, 1.3, 0.84, 0.73),
    "OCSVM": Cost(0.022, 1.5, 0.15, 0.25),
    "LSCP": Cost(0.096, 1.2, 0.82, 0.88),
    "HBOS": Cost(0.00093, 0.39, 0.72, 0.89),
    "LODA": Cost(0.0055, 0.64, 0.028, 1),
    "COPOD": Cost(0.00073, 0.88, 0.74, 1),
    "ECOD": Cost(0.0007, 0.9, 0.75, 1),
    "PCA": Cost(0.00098, 0.51, 0.32, 0.85),
    "AE": Cost(0.073, 0.81, 0.031, 0.81),
    "VAE": Cost(0.29, 0.95, 0.0053, 0.95),
    "run": Cost(0.096, 0.93, 0.82, 0.93),
}


def expected_seconds(plan: Plan, n_rows: int, n_columns: int) -> dict[str, float]:
    """Expected seconds of each detector and each run, by the names that the progress has.

    A detector that was not measured is expected to take the geometric mean of those that were.
    """
    choices = {} if plan.is_precomputed else name_choices(plan.detectors)
    measured = {name: cost.seconds(n_rows, n_columns) for name, cost in COST.items()}
    del measured["run"]
    unknown = geometric_mean(measured.values())
    expected = {}
    for name, choice in choices.items():
        kind = choice if isinstance(choice, str) else type(choice).__name__
        expected[name] = measured.get(kind, unknown)
    n_seen = min(n_rows, plan.max_mixture_rows or n_rows)
    run = COST["run"].seconds(n_seen, len(choices) or n_columns)
    return expected | {f"run {i + 1}": run for i in range(plan.n_runs)}
