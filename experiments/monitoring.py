"""Series without a change: a fit on some rows of a table, and the others counted in periods.

    python -m experiments.run --only quiet
    python -m experiments.monitoring

The first command fits; the second writes results/monitoring.json: how often the alarm of
`GammaGMM.monitor` rings in these series and in simulated ones.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from experiments import data
from experiments.made_tables import clean_table, sceptic_table
from experiments.plan import Trial, load_plan
from experiments.results import RESULTS, Result, read_file, result_file
from gammagmm import GammaGMM, History
from gammagmm._support.files import write_document
from gammagmm.monitoring.alarms import find_rings, period_levels
from gammagmm.monitoring.counts import Count, Period
from gammagmm.monitoring.history import ALPHA

N_SIMULATIONS = 1000
N_PERIODS = 100
N_EACH = 500
"""Rows of a period in the simulations."""
SHARE = 0.04
"""Share of rows beyond the cut before the change, which doubles it."""
TRAINING_ROWS = (500, 2000, 20_000)
QUIET_PERIODS = (0, 2, 5, 30, 90)
WITHIN = (1, 2, 4)


def quiet(trial: Trial, plan: dict[str, Any]) -> Result:
    """Rows beyond the cut in each period, for each of several splits; the variant is the preset."""
    settings = plan["quiet"]
    splits = []
    for seed in range(settings["splits"]):
        n_fit, n_periods = settings["rows"], settings["periods"]
        X = _table(trial, n_fit + n_periods * settings["most_rows"], seed)
        n_each = min((len(X) - n_fit) // n_periods, settings["most_rows"])
        fitted = GammaGMM(trial.variant, n_runs=settings["runs"], random_state=seed)
        fitted.fit(X[:n_fit])
        new = X[n_fit : n_fit + n_periods * n_each]
        is_beyond = fitted.decision_function(new) > fitted.threshold_
        splits.append(
            {
                "n_rows": n_fit,
                "n_beyond": int((fitted.decision_scores_ > fitted.threshold_).sum()),
                "n_each": n_each,
                "beyond": is_beyond.reshape(n_periods, n_each).sum(axis=1).tolist(),
            }
        )
    return {"splits": splits}


def _table(trial: Trial, n_rows: int, seed: int) -> np.ndarray:
    """Rows in random order: of a made table at least `n_rows`, of a real one all."""
    if trial.collection != "made":
        X = data.load(trial.collection, trial.dataset).X
        return X[np.random.default_rng(seed).permutation(len(X))]
    if trial.dataset == "outliers":
        return sceptic_table("near", 0.05, 3, n_rows, seed)[0]
    return clean_table(trial.dataset, n_rows, seed)


def history_of(reference: Count, n_each: int, beyond: Any) -> History:
    """The history of periods with `n_each` rows, of which `beyond` lie beyond the cut."""
    counts = [Count(n_each, int(n)) for n in beyond]
    periods = tuple(Period(str(t), count) for t, count in enumerate(counts))
    return History("", reference, periods=periods)


def first_ring(history: History) -> int:
    """Place of the first period that rings for all rows, or the number of periods."""
    return next((t for t, ring in enumerate(history.rings) if ring), len(history.periods))


def false_alarms(n_train: int, rng: np.random.Generator) -> float:
    """Share of series without a change that ring, where the scores have one distribution.

    The cut is the score of rank k + 1 among the training scores, and a new score lies above it with
    a probability that has a Beta distribution.
    """
    n_beyond = round(SHARE * n_train)
    n_alarms = 0
    for share in rng.beta(n_beyond + 1, n_train - n_beyond, size=N_SIMULATIONS):
        history = history_of(
            Count(n_train, n_beyond), N_EACH, rng.binomial(N_EACH, share, size=N_PERIODS)
        )
        n_alarms += first_ring(history) < N_PERIODS
    return n_alarms / N_SIMULATIONS


def seen_within(n_train: int, n_quiet: int, rng: np.random.Generator) -> dict[str, float]:
    """Share of series in which the doubled share rings, by the periods that it takes at most."""
    shares = np.repeat([SHARE, 2.0 * SHARE], [n_quiet, max(WITHIN)])
    delays = []
    for _ in range(N_SIMULATIONS):
        reference = Count(n_train, int(rng.binomial(n_train, SHARE)))
        delays.append(first_ring(history_of(reference, N_EACH, rng.binomial(N_EACH, shares))))
    after = np.array(delays) - n_quiet
    return {str(n): float(((after >= 0) & (after < n)).mean()) for n in WITHIN}


def quiet_figures(preset: str, plan: dict[str, Any]) -> Result:
    """How often real fits ring without a change, and how much higher the share of new rows is.

    `n_alarms_full` counts the alarms if training rows counted as much as new rows.
    """
    found = [
        split
        for trial, result in read_file(result_file("quiet")).items()
        if trial.variant == preset and result["status"] == "ok"
        for split in result["splits"]
    ]
    n_alarms = n_full = 0
    ratios = []
    levels = period_levels(ALPHA, plan["quiet"]["periods"])
    for split in found:
        reference = Count(split["n_rows"], split["n_beyond"])
        history = history_of(reference, split["n_each"], split["beyond"])
        n_alarms += first_ring(history) < len(history.periods)
        n_full += any(find_rings([p.count for p in history.periods], reference, levels))
        if reference.n_beyond:
            n_new = split["n_each"] * len(split["beyond"])
            ratios.append(sum(split["beyond"]) / n_new / reference.share)
    return {
        "n_series": len(found),
        "n_alarms": n_alarms,
        "rate": n_alarms / len(found),
        "n_alarms_full": n_full,
        "ratio": float(np.mean(ratios)),
        "ratio_90": [float(end) for end in np.quantile(ratios, [0.05, 0.95])],
    }


def main() -> None:
    plan = load_plan()
    rng = np.random.default_rng(plan["seed"])
    summary = {
        "alpha": ALPHA,
        "n_simulations": N_SIMULATIONS,
        "n_periods": N_PERIODS,
        "n_each": N_EACH,
        "false_alarms": {str(n): false_alarms(n, rng) for n in TRAINING_ROWS},
        "seen_within": {
            str(n): {str(quiet): seen_within(n, quiet, rng) for quiet in QUIET_PERIODS}
            for n in TRAINING_ROWS
        },
        "quiet": {preset: quiet_figures(preset, plan) for preset in plan["quiet"]["presets"]},
        "n_tables": sum(map(len, plan["quiet"]["datasets"].values())),
    }
    text = json.dumps(summary, indent=1) + "\n"
    write_document(text, RESULTS / "monitoring.json", overwrite=True)


if __name__ == "__main__":
    main()
