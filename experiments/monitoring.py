"""How often the state of `GammaGMM.monitor` changes without a reason, and how soon with one.

    python -m experiments.run --only quiet
    python -m experiments.monitoring

The first command fits some rows of real and made tables and counts the others in periods; the
second writes results/monitoring.json, from these series and from simulated ones. It takes about 15
minutes on two cores; all periods are days, so that weekdays are learned.
"""

from __future__ import annotations

import json
from itertools import pairwise
from math import comb
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from experiments import data
from experiments.made_tables import clean_table, sceptic_table
from experiments.plan import Trial, load_plan
from experiments.results import RESULTS, Result, read_file, result_file
from gammagmm import GammaGMM
from gammagmm._support.files import write_document
from gammagmm.monitoring.alarms import EXACT_WEIGHTS, PER_PERIODS, WEIGHTS, WINDOWS, Series
from gammagmm.monitoring.columns import LEVEL, moved_columns
from gammagmm.monitoring.counts import Count
from gammagmm.monitoring.history import ALPHA
from gammagmm.monitoring.parts import count_parts, training_parts
from gammagmm.monitoring.states import State, find_states
from gammagmm.monitoring.variation import LEARNING_PERIODS, Sums, p_higher, p_varying, usual_for

N_SERIES, N_LATER, N_CHANGES = 400, 1000, 1000
"""Numbers of series without a change, from the start and after learning, and with a change."""
N_CANDIDATES = 400
"""Number of series for each figure of the tests that are not used."""
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
    "weekends 1.5": (0.002, 1.5),
    "weekends 3": (0.002, 3.0),
}
CHANGES = {"rise": (0.04, 0.08), "fall": (0.08, 0.04), "jump": (0.04, 0.16)}
QUIET_PERIODS = {"icc 0.002": (2, 10, 30, 60, 90), "rows": (30,), "icc 0.005": (30,)}
QUIET_PERIODS |= {"weekends": (30, 60), "weekends 1.5": (30, 60)}
N_JOBS = -1
"""Number of processes: all cores."""
LONG_QUIET = (30, 60, 90)
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
    weekdays = [t % 7 for t in range(len(periods))]
    levels = np.full(len(periods), alpha / PER_PERIODS)
    return find_states(periods, reference, levels, weekdays=weekdays)


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
    first, reference = [], Sums.of(Count(n_train, n_beyond))
    levels = np.full(N_PERIODS, ALPHA / PER_PERIODS)
    for share in rng.beta(n_beyond + 1, n_train - n_beyond, size=N_SERIES):
        shares = shares_of(np.full(N_PERIODS, share), world, rng)
        first.append(first_place(n_each, rng.binomial(n_each, shares), reference, levels))
    found = np.array(first)
    return {
        "all": float((found < N_PERIODS).mean()),
        "learning": float((found < LEARNING_PERIODS).mean()),
    }


def alarms_after_learning(n_each: int, world: str, rng: np.random.Generator) -> float:
    """Share of series without a change that have an alarm in the 100 periods after learning.

    The periods of learning have no alarm. What follows does not depend on the training rows.
    """
    n_all, n_alarms = LEARNING_PERIODS + N_PERIODS, 0
    levels = np.where(np.arange(n_all) < LEARNING_PERIODS, 0.0, ALPHA / PER_PERIODS)
    for _ in range(N_LATER):
        beyond = rng.binomial(n_each, shares_of(np.full(n_all, SHARE), world, rng))
        n_alarms += first_place(n_each, beyond, Sums(), levels) < n_all
    return n_alarms / N_LATER


def first_place(n_each: int, beyond: Any, reference: Sums, levels: NDArray[np.float64]) -> int:
    """Place of the first of some days with `n_each` rows that shows a change, or their number."""
    series = Series([Count(n_each, int(k)) for k in beyond], [t % 7 for t in range(len(beyond))])
    found = series.first_change(0, series.between(0, 0), reference, 0.5 * levels)
    return len(beyond) if found is None else found[0]


def seen_within(change: str, world: str, n_quiet: int, rng: np.random.Generator) -> dict[str, Any]:
    """Share of series in which a change is seen, and seen to be over, by the periods it takes.

    A period has 500 rows and there are 2,000 training rows. "early" is the share of series with an
    alarm before the change, and "back early" of those that are back before it ends. "since" are the
    shares of the changes that are seen within three periods whose first period is named exactly,
    and too early.
    """
    before, after = CHANGES[change]
    mean = np.repeat([before, after, before], [n_quiet, LASTS, LASTS])
    delays, backs, off = [], [], []
    for _ in range(N_CHANGES):
        beyond = rng.binomial(500, shares_of(mean, world, rng))
        states = states_of(Count(2000, round(2000 * before)), 500, beyond)
        place = first_alarm(states)
        delays.append(place - n_quiet)
        if n_quiet <= place < n_quiet + 3:
            off.append(states[place].since - n_quiet)
        places = [t for t, state in enumerate(states) if state.kind == "back"]
        backs.append(min(places, default=len(states)) - n_quiet - LASTS)
    seen, back = np.array(delays), np.array(backs)
    return {
        "seen": {str(n): float(((seen >= 0) & (seen < n)).mean()) for n in WITHIN},
        "early": float((seen < 0).mean()),
        "back": {str(n): float(((back >= 0) & (back < n)).mean()) for n in WITHIN},
        "back early": float((back < 0).mean()),
        "since": {"exact": _share(off, 0, 0), "early": _share(off, -n_quiet, -1)},
    }


def _share(found: list[int], low: int, high: int) -> float | None:
    """Share of the numbers that lie between two ends; None without numbers."""
    return float(np.mean([low <= n <= high for n in found])) if found else None


def seen_if_known(change: str, n_quiet: int, rng: np.random.Generator) -> float:
    """The same within three periods if the variation between periods were known: no rule can."""
    icc, _ = WORLDS["icc 0.002"]
    before, after = CHANGES[change]
    return float(
        np.mean(
            [
                _is_seen(rng.binomial(500, shares_of(mean, "icc 0.002", rng)), n_quiet, icc)
                for mean in [np.repeat([before, after], [n_quiet, 3])] * N_CHANGES
            ]
        )
    )


def _is_seen(beyond: Any, n_quiet: int, icc: float) -> bool:
    """Whether the tests of `Series` show a change after `n_quiet` periods if `icc` is known."""
    series, level = Series([Count(500, int(k)) for k in beyond]), 0.5 * ALPHA / PER_PERIODS
    for end in range(n_quiet + 1, len(beyond) + 1):
        for size, weight, exact in zip(WINDOWS, WEIGHTS, EXACT_WEIGHTS, strict=True):
            by_day = series.between(end - size, end)
            usual = usual_for(by_day, series.between(0, end - size), Sums())
            window, base = by_day.total, usual.rows
            for own, other in ((window, base), (window.mirrored(), base.mirrored())):
                p_value = p_varying(own, other, np.full(7, icc))
                is_clear = p_value <= level * weight
                if is_clear and p_higher(own.count, other.count) <= level * exact:
                    return True
    return False


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
        for _ in range(N_CANDIDATES)
    ]
    figures = {"false alarms": float(np.mean(quiet))}
    for name in ("rise", "fall"):
        mean = np.repeat(CHANGES[name], [60, 3])
        found = [
            60 <= martingale_alarm(rng.binomial(500, shares_of(mean, world, rng)), rng) < 63
            for _ in range(N_CANDIDATES)
        ]
        figures[name] = float(np.mean(found))
    return figures


RANK_LEVELS = (0.00025, 0.0005)
"""Levels of a period and a direction of the permutation test: Bonferroni, and twice as large."""


def ranks_of_three(beyond: Any, first: int) -> NDArray[np.float64]:
    """P-values (2, n) that the newest three periods are as high or low as any three, from `first`.

    It is a candidate that is not used: the share of all sets of three periods up to the newest one
    whose sum is at least that of the newest three, which is exact for exchangeable periods.
    """
    p_values = np.ones((2, len(beyond)))
    for side, sign in enumerate((1, -1)):
        values = sign * np.asarray(beyond)
        values = values - values.min()
        for t in range(first, len(values)):
            p_values[side, t] = _share_of_threes(values[: t + 1])
    return p_values


def _share_of_threes(values: NDArray[np.int_]) -> float:
    """Share of the sets of three values whose sum is at least that of the last three."""
    once = np.bincount(values).astype(float)
    n = len(once)
    twice, thrice = np.zeros(2 * n - 1), np.zeros(3 * n - 2)
    twice[::2], thrice[::3] = once, once
    ordered = np.convolve(np.convolve(once, once), once) - 3.0 * np.convolve(twice, once)
    sets = (ordered + 2.0 * thrice) / 6.0
    return float(sets[values[-3:].sum() :].sum() / comb(len(values), 3))


def rank_figures(rng: np.random.Generator) -> dict[str, Any]:
    """False alarms of the permutation test, and changes that it sees within three periods."""
    n_series, least = N_CANDIDATES, LEARNING_PERIODS + 2
    false_alarms = {}
    for world in ("rows", "icc 0.002", "icc 0.005", "icc 0.02", "weekends"):
        least_p = [
            ranks_of_three(rng.binomial(500, shares_of(np.full(100, SHARE), world, rng)), least)
            for _ in range(n_series)
        ]
        false_alarms[world] = _at_levels(np.array(least_p))
    seen = {}
    for name in ("rise", "fall"):
        for n_quiet in LONG_QUIET:
            mean = np.repeat(CHANGES[name], [n_quiet, 3])
            least_p = [
                ranks_of_three(rng.binomial(500, shares_of(mean, "icc 0.002", rng)), n_quiet + 2)
                for _ in range(n_series)
            ]
            seen.setdefault(name, {})[str(n_quiet)] = _at_levels(np.array(least_p))
    return {"n_series": n_series, "false alarms": false_alarms} | seen


def _at_levels(p_values: NDArray[np.float64]) -> dict[str, float]:
    """Share of the series (n, 2, n_periods) with a p-value below each of the levels."""
    least = p_values.min(axis=(1, 2))
    return {str(level): float((least <= level).mean()) for level in RANK_LEVELS}


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
        if reference.n_above:
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


def most(false_alarms: Any, after_learning: Any) -> dict[str, dict[str, float]]:
    """The largest share of series with a false alarm in each world: over all kinds of rows.

    "all" are the first 100 periods, "learning" the first 30 of them, and "later" the 100 after
    these 30.
    """
    return {
        world: {when: max(own[when] for own in kinds.values()) for when in ("all", "learning")}
        | {"later": max(after_learning[world].values())}
        for world, kinds in false_alarms.items()
    }


def in_parallel(function: Any, cases: list[tuple[Any, ...]], rng: np.random.Generator) -> list[Any]:
    """The function of each of the cases, each with a random stream of its own."""
    streams = zip(cases, rng.spawn(len(cases)), strict=True)
    return Parallel(n_jobs=N_JOBS)(delayed(function)(*case, own) for case, own in streams)


def main() -> None:
    plan = load_plan()
    datasets = plan["quiet"]["datasets"]
    rng = np.random.default_rng(plan["seed"])
    kinds = [(n_train, n, world) for world in WORLDS for n in ROWS for n_train in TRAINING_ROWS]
    alarms: dict[str, dict[str, Any]] = {world: {} for world in WORLDS}
    for (n_train, n, world), found in zip(
        kinds, in_parallel(false_alarms, kinds, rng), strict=True
    ):
        alarms[world][f"{n} rows, {n_train} training rows"] = found
    kinds_later = [(n, world) for world in WORLDS for n in ROWS]
    later: dict[str, dict[str, float]] = {world: {} for world in WORLDS}
    for (n, world), rate in zip(
        kinds_later, in_parallel(alarms_after_learning, kinds_later, rng), strict=True
    ):
        later[world][f"{n} rows"] = rate
    changes = [
        (change, world, n)
        for world, ns in QUIET_PERIODS.items()
        for n in ns
        for change in CHANGES
        if world == "icc 0.002" or change == "rise"
    ]
    seen: dict[str, Any] = {change: {world: {} for world in QUIET_PERIODS} for change in CHANGES}
    for (change, world, n), found in zip(
        changes, in_parallel(seen_within, changes, rng), strict=True
    ):
        seen[change][world][str(n)] = found
    known = [(change, n) for change in ("rise", "fall") for n in LONG_QUIET]
    if_known: dict[str, dict[str, float]] = {"rise": {}, "fall": {}}
    for (change, n), rate in zip(known, in_parallel(seen_if_known, known, rng), strict=True):
        if_known[change][str(n)] = rate
    summary = {
        "alpha": ALPHA,
        "n_series": N_SERIES,
        "n_later": N_LATER,
        "n_changes": N_CHANGES,
        "n_kinds": len(kinds),
        "n_periods": N_PERIODS,
        "false_alarms": alarms,
        "after_learning": later,
        "most_false_alarms": most(alarms, later),
        "seen_within": seen,
        "seen_if_known": if_known,
        "columns": {str(n): columns_figures(n, rng) for n in QUIET_BEFORE},
        "martingale": martingale_figures(rng),
        "ranks": rank_figures(rng),
        "quiet": {preset: quiet_figures(preset, plan) for preset in plan["quiet"]["presets"]},
        "n_tables": {
            "real": sum(len(names) for kind, names in datasets.items() if kind != "made"),
            "made": len(datasets["made"]),
        },
    }
    text = json.dumps(summary, indent=1) + "\n"
    write_document(text, RESULTS / "monitoring.json", overwrite=True)


if __name__ == "__main__":
    main()
