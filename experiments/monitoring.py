"""How often the state of `GammaGMM.monitor` changes without a reason, and how soon with one.

    python -m experiments.run --only quiet
    python -m experiments.monitoring

The first command fits some rows of real and made tables and counts the others in periods; the
second writes results/monitoring.json, from these series and from simulated ones.
"""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments import data
from experiments.made_tables import clean_table, sceptic_table
from experiments.plan import Trial, load_plan
from experiments.results import RESULTS, Result, read_file, result_file
from gammagmm import GammaGMM
from gammagmm._support.files import write_document
from gammagmm.monitoring.alarms import PER_PERIODS
from gammagmm.monitoring.columns import LEVEL, moved_columns
from gammagmm.monitoring.counts import Count
from gammagmm.monitoring.history import ALPHA
from gammagmm.monitoring.parts import count_parts, training_parts
from gammagmm.monitoring.states import LEARNING_PERIODS, State, find_states

N_SERIES, N_CHANGES = 1000, 400
"""Numbers of series without and with a change, in each world."""
N_PERIODS = 100
SHARE = 0.04
"""Share of rows above the threshold without a change, on average."""
ROWS = (20, 100, 500)
TRAINING_ROWS = (200, 2000, 20_000)
# Correlation of two rows of a period, and factor of the share at weekends.
WORLDS = {
    "rows": (0.0, 1.0),
    "icc 0.002": (0.002, 1.0),
    "icc 0.005": (0.005, 1.0),
    "icc 0.01": (0.01, 1.0),
    "icc 0.02": (0.02, 1.0),
    "weekends": (0.0, 1.3),
}
CHANGES = {"rise": (0.04, 0.08), "fall": (0.08, 0.04), "jump": (0.04, 0.16)}
QUIET_PERIODS = (2, 10, 30, 60, 90)
WITHIN = (1, 3, 7)
LASTS = 10
"""Number of periods that a change lasts."""


def quiet(trial: Trial, plan: dict[str, Any]) -> Result:
    """Rows above the threshold in each period, for several splits; the variant is the preset."""
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


def shares_of(mean: Any, world: str, rng: np.random.Generator) -> NDArray[np.float64]:
    """The share in each period, whose mean is `mean` (n_periods,) apart from weekends."""
    icc, at_weekends = WORLDS[world]
    shares = np.where(np.arange(len(mean)) % 7 >= 5, at_weekends, 1.0) * mean
    total = np.inf if icc == 0.0 else 1.0 / icc - 1.0
    return shares if icc == 0.0 else rng.beta(shares * total, (1.0 - shares) * total)


def states_of(reference: Count, n_each: int, beyond: Any, alpha: float = ALPHA) -> list[State]:
    """The states after periods with `n_each` rows, of which `beyond` lie above the threshold."""
    periods = [Count(n_each, int(n)) for n in beyond]
    return find_states(periods, reference, np.full(len(periods), alpha / PER_PERIODS))


def first_alarm(states: list[State]) -> int:
    """Place of the first period with a changed share, or the number of periods."""
    return next((t for t, state in enumerate(states) if state.is_alarm), len(states))


def false_alarms(
    n_train: int, n_each: int, world: str, rng: np.random.Generator
) -> dict[str, float]:
    """Share of series without a change that have an alarm, in all periods and while learning.

    The cut is the score of rank k + 1 among the training scores, and a new score lies above it with
    a probability that has a Beta distribution.
    """
    n_beyond = round(SHARE * n_train)
    first = []
    for share in rng.beta(n_beyond + 1, n_train - n_beyond, size=N_SERIES):
        shares = shares_of(np.full(N_PERIODS, share), world, rng)
        states = states_of(Count(n_train, n_beyond), n_each, rng.binomial(n_each, shares))
        first.append(first_alarm(states))
    found = np.array(first)
    return {
        "all": float((found < N_PERIODS).mean()),
        "learning": float((found < LEARNING_PERIODS).mean()),
    }


def seen_within(change: str, world: str, n_quiet: int, rng: np.random.Generator) -> dict[str, Any]:
    """Share of series in which a change is seen, and seen to be over, by the periods it takes.

    A period has 500 rows and there are 2,000 training rows. "early" is the share of series with an
    alarm before the change, and "back early" of those that are back before it ends.
    """
    before, after = CHANGES[change]
    mean = np.repeat([before, after, before], [n_quiet, LASTS, LASTS])
    delays, backs = [], []
    for _ in range(N_CHANGES):
        beyond = rng.binomial(500, shares_of(mean, world, rng))
        states = states_of(Count(2000, round(2000 * before)), 500, beyond)
        delays.append(first_alarm(states) - n_quiet)
        places = [t for t, state in enumerate(states) if state.kind == "back"]
        backs.append(min(places, default=len(states)) - n_quiet - LASTS)
    seen, back = np.array(delays), np.array(backs)
    return {
        "seen": {str(n): float(((seen >= 0) & (seen < n)).mean()) for n in WITHIN},
        "early": float((seen < 0).mean()),
        "back": {str(n): float(((back >= 0) & (back < n)).mean()) for n in WITHIN},
        "back early": float((back < 0).mean()),
    }


TRAINING_PART, QUIET_BEFORE, N_NOW, MIN_EACH = 0.4, (10, 30), 3, 10
"""Of tables cut into periods: training rows, quiet periods, changed ones, and rows of a period."""
STARTS, POWERS = np.arange(N_PERIODS), np.array([0.1, 0.2, 0.35, 0.5])


def martingale_alarm(beyond: Any, rng: np.random.Generator) -> int:
    """First period at which a conformal test martingale reaches 2 / alpha for a rise or a fall.

    It is a candidate that is not used: valid for any exchangeable periods, and slow. It bets on
    conformal p-values by e p^(e - 1), averaged over four e and over the period where bets begin.
    """
    for_all = len(beyond)
    for sign in (1, -1):
        values = sign * np.asarray(beyond)
        wealth = np.zeros((len(STARTS), len(POWERS)))  # of bets that have begun
        for t, value in enumerate(values):
            rank = (values[:t] > value).sum() + rng.random() * ((values[:t] == value).sum() + 1)
            p = max(rank / (t + 1), 1e-12)
            wealth[: t + 1] = np.where(wealth[: t + 1] > 0.0, wealth[: t + 1], 1.0)
            wealth[: t + 1] *= POWERS * p ** (POWERS - 1.0)
            total = (wealth.sum() / len(POWERS) + len(STARTS) - (t + 1)) / len(STARTS)
            if total >= 2.0 / ALPHA:
                for_all = min(for_all, t)
                break
    return for_all


def martingale_figures(rng: np.random.Generator) -> dict[str, float]:
    """False alarms of the martingale, and changes that it sees within three periods after 60."""
    world = "icc 0.002"
    quiet = [
        martingale_alarm(rng.binomial(500, shares_of(np.full(100, SHARE), world, rng)), rng) < 100
        for _ in range(N_CHANGES)
    ]
    figures = {"false alarms": float(np.mean(quiet))}
    for name in ("rise", "fall"):
        mean = np.repeat(CHANGES[name], [60, 3])
        found = [
            60 <= martingale_alarm(rng.binomial(500, shares_of(mean, world, rng)), rng) < 63
            for _ in range(N_CHANGES)
        ]
        figures[name] = float(np.mean(found))
    return figures


def columns_figures(n_before: int, rng: np.random.Generator) -> dict[str, Any]:
    """How often the right column is named first, and how often one is named without a change.

    Of real tables, `TRAINING_PART` of the rows are training rows; the others are cut into
    `n_before` quiet periods and three of a change, in which half of the rows have one column higher
    by a standard deviation.
    """
    found: dict[str, list[bool]] = {"first": [], "first and named": [], "named in quiet": []}
    for collection, name in _real_tables():
        X = rng.permutation(data.load(collection, name).X)
        n_train, n_each = int(TRAINING_PART * len(X)), 0
        n_each = (len(X) - n_train) // (n_before + N_NOW)
        usable = np.flatnonzero(X[:n_train].std(axis=0) > 0.0)
        X = X[:, usable]
        if n_each < MIN_EACH or not len(usable):
            continue
        names = [str(j) for j in range(len(usable))]
        parts = training_parts(X[:n_train], names)
        ends = n_train + n_each * np.arange(n_before + N_NOW + 1)
        periods = [X[a:b] for a, b in pairwise(ends)]
        moved = int(rng.integers(len(usable)))
        step = X[:n_train, moved].std()
        changed = [_with_step(rows, moved, step, rng) for rows in periods[n_before:]]
        counts = [count_parts(rows, parts) for rows in (*periods, *changed)]
        before, quiet, now = np.split(np.array(counts), [n_before, n_before + N_NOW])
        top = moved_columns(parts, before.tolist(), now.tolist())[0]
        found["first"].append(top.name == str(moved))
        found["first and named"].append(top.name == str(moved) and top.p_value <= LEVEL)
        least = min(c.p_value for c in moved_columns(parts, before.tolist(), quiet.tolist()))
        found["named in quiet"].append(least <= LEVEL)
    return {"n_tables": len(found["first"])} | {
        name: float(np.mean(each)) for name, each in found.items()
    }


def _with_step(
    rows: NDArray[np.float64], column: int, step: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """The rows, of which a random half have a column higher by `step`."""
    changed = rows.copy()
    changed[rng.permutation(len(rows))[: len(rows) // 2], column] += step
    return changed


def _real_tables() -> list[tuple[str, str]]:
    """The labelled tables of all collections."""
    folder = data.data_folder()
    if folder is None:
        return []
    return [
        (collection, path.stem)
        for collection in ("oddbench", "pool", "paper")
        for path in sorted((folder / collection).glob("*.npz"))
    ]


def quiet_figures(preset: str, plan: dict[str, Any]) -> Result:
    """How often fits have an alarm without a change, and how the shares of new rows differ."""
    found = [
        split
        for trial, result in read_file(result_file("quiet")).items()
        if trial.variant == preset and result["status"] == "ok"
        for split in result["splits"]
    ]
    first, ratios = [], []
    for split in found:
        reference = Count(split["n_rows"], split["n_beyond"])
        first.append(first_alarm(states_of(reference, split["n_each"], split["beyond"])))
        if reference.n_beyond:
            n_new = split["n_each"] * len(split["beyond"])
            ratios.append(sum(split["beyond"]) / n_new / reference.share)
    n_periods = plan["quiet"]["periods"]
    return {
        "n_series": len(found),
        "n_alarms": int((np.array(first) < n_periods).sum()),
        "n_alarms_learning": int((np.array(first) < LEARNING_PERIODS).sum()),
        "rate": float((np.array(first) < n_periods).mean()),
        "ratio": float(np.mean(ratios)),
        "ratio_90": [float(end) for end in np.quantile(ratios, [0.05, 0.95])],
    }


def most(false_alarms: Any) -> dict[str, dict[str, float]]:
    """The largest share of series with a false alarm in each world, in all periods and learning."""
    return {
        world: {when: max(own[when] for own in kinds.values()) for when in ("all", "learning")}
        for world, kinds in false_alarms.items()
    }


def main() -> None:
    plan = load_plan()
    datasets = plan["quiet"]["datasets"]
    rng = np.random.default_rng(plan["seed"])
    summary = {
        "alpha": ALPHA,
        "n_series": N_SERIES,
        "n_changes": N_CHANGES,
        "n_kinds": len(WORLDS) * len(ROWS) * len(TRAINING_ROWS),
        "n_periods": N_PERIODS,
        "false_alarms": {
            world: {
                f"{n_each} rows, {n_train} training rows": false_alarms(n_train, n_each, world, rng)
                for n_each in ROWS
                for n_train in TRAINING_ROWS
            }
            for world in WORLDS
        },
        "seen_within": {
            change: {
                world: {str(n): seen_within(change, world, n, rng) for n in QUIET_PERIODS}
                for world in ("rows", "icc 0.002", "icc 0.005")
            }
            for change in CHANGES
        },
        "columns": {str(n): columns_figures(n, rng) for n in QUIET_BEFORE},
        "martingale": martingale_figures(rng),
        "quiet": {preset: quiet_figures(preset, plan) for preset in plan["quiet"]["presets"]},
        "n_tables": {
            "real": sum(len(names) for kind, names in datasets.items() if kind != "made"),
            "made": len(datasets["made"]),
        },
    }
    summary["most_false_alarms"] = most(summary["false_alarms"])
    text = json.dumps(summary, indent=1) + "\n"
    write_document(text, RESULTS / "monitoring.json", overwrite=True)


if __name__ == "__main__":
    main()
