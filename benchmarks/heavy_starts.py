"""What ends starts early whose most anomalous component is too heavy: solutions lost, work saved.

    python benchmarks/heavy_starts.py

Every start of a run goes on until it has settled, and its most anomalous component is weighed at
every check. From the weights follows where each rule would have ended it. The tables are new draws
of 1,000 normal rows and of 1,000 rows of a t distribution, and two score matrices of GAMMAGMM_DATA;
each with two detectors, three and all. A fit is the average of ten solved runs, so that its mean
moves by the difference between the means of all solutions and of those that are kept. Writes
benchmarks/results/heavy_starts.json.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import numpy as np

from gammagmm.detectors.fit import FitSettings, fit_detectors
from gammagmm.detectors.presets import resolve_detectors
from gammagmm.mixture.fit import CHECK_EVERY, fit_mixtures
from gammagmm.mixture.prior import MixturePrior
from gammagmm.mixture.score_space import fit_scaler
from gammagmm.posterior.components import order_components
from gammagmm.posterior.link import Constraints
from gammagmm.posterior.runs import AUTO_TOL, RunSettings, make_run
from timing import measure

N_DRAWS, N_STARTS, N_RUNS = 5, 20, 10
DETECTORS = (2, 3, None)
REAL = ("Cardiotocography", "Pima")
CONSTRAINTS = Constraints()
MIDDLE = 0.5 * (CONSTRAINTS.high_gamma + CONSTRAINTS.max_gamma)
RULES = {
    "none": lambda shares: False,
    "the middle once": lambda shares: shares[-1] > MIDDLE,
    "the middle twice in a row": lambda shares: min(shares[-2:]) > MIDDLE and len(shares) > 1,
    "the middle twice in a row or max_gamma once": lambda shares: (
        shares[-1] > CONSTRAINTS.max_gamma or (min(shares[-2:]) > MIDDLE and len(shares) > 1)
    ),
}
"""By the shares of the most anomalous component at the checks so far, whether a start ends."""


def tables(n_draws):
    """Names, kinds and raw scores."""
    for draw in range(n_draws):
        rng = np.random.default_rng([36, draw])
        for kind, X in (
            ("normal", rng.normal(size=(1_000, 6))),
            ("t", rng.standard_t(4, size=(1_000, 6))),
        ):
            detectors, _ = resolve_detectors("classic", len(X))
            X = (X - X.mean(axis=0)) / X.std(axis=0)
            yield f"{kind} {draw}", kind, fit_detectors(detectors, X, rng, FitSettings()).scores
    for name in REAL:
        with np.load(Path(os.environ["GAMMAGMM_DATA"], "scores", f"{name}.npz")) as data:
            yield name, "real", data["S"]


def start_of(Z, seed):
    """One start: how it ends, its iterations, the mean of its posterior, and the shares."""
    shares = []

    def weigh(parameters):
        alpha = order_components(parameters).alpha
        shares.append(float(alpha[0] / alpha.sum()))
        return 0

    prior = MixturePrior().resolve(Z)
    settings = RunSettings(CONSTRAINTS, prior)
    own, draws = np.random.default_rng([7, seed]).spawn(2)
    options = {"accelerated": True, "doubts": weigh, "n_threads": 1}
    ((_, mixture),) = fit_mixtures(Z[None], prior, [own], 100, 1500, AUTO_TOL, **options)
    run = make_run(mixture, settings, draws)
    return run.status != "unsolved", run.n_iter, run.mean, shares


def ended(rule, starts, every):
    """Which starts a rule lets settle, and the iterations of all."""
    checks = [
        next((i + 1 for i in range(len(shares)) if rule(shares[: i + 1])), None)
        for *_, shares in starts
    ]
    n_iter = sum(
        start[1] if check is None else check * every
        for start, check in zip(starts, checks, strict=True)
    )
    return np.array([check is None for check in checks]), n_iter


def heavy_starts(quick):
    """What each rule loses and saves, over all tables."""
    warnings.simplefilter("ignore")
    n_draws, n_starts = (1, 2) if quick else (N_DRAWS, N_STARTS)
    groups = []
    for name, kind, scores in tables(n_draws):
        for n_detectors in DETECTORS:
            Z = fit_scaler(scores[:, :n_detectors]).transform(scores[:, :n_detectors])
            groups.append((kind, Z.shape[1], [start_of(Z, seed) for seed in range(n_starts)]))
            print(name, Z.shape, sum(start[0] for start in groups[-1][2]), flush=True)
    found = {}
    for rule_name, rule in RULES.items():
        cases = [judged(starts, *ended(rule, starts, CHECK_EVERY)) for *_, starts in groups]
        found[rule_name] = summary(cases) | {
            kind: summary(
                [case for case, group in zip(cases, groups, strict=True) if kind in group]
            )
            for kind in ("normal", "t", "real", 2, 3, 8)
        }
    return {"starts": n_starts, "tables": len(groups), "rules": found}


def judged(starts, is_kept, n_iter):
    """Solutions lost, iterations, and how far the mean of the answers moves without the lost."""
    is_solved = np.array([solved for solved, *_ in starts])
    means = np.array([mean for *_, mean, _ in starts])
    before, after = means[is_solved], means[is_solved & is_kept]
    case = {"starts": len(starts), "iterations": n_iter, "solved": len(before)}
    case["lost"] = len(before) - len(after)
    if len(after) > 1:
        # Of the mean of N_RUNS runs.
        case["change"] = after.mean() - before.mean()
        case["spread"] = before.std(ddof=1) / np.sqrt(N_RUNS)
    return case


def summary(cases):
    """Sums over tables, and the mean change of the answer beside the spread of the seeds."""
    summed = {key: sum(c[key] for c in cases) for key in ("starts", "solved", "lost", "iterations")}
    changes = np.array([case["change"] for case in cases if "change" in case])
    spreads = np.array([case["spread"] for case in cases if "spread" in case])
    if not len(changes):
        return summed
    moved = {"mean": changes.mean(), "absolute": np.abs(changes).mean()}
    return summed | {"change": moved | {"spread of seeds": np.sqrt(np.mean(spreads**2))}}


if __name__ == "__main__":
    measure(__doc__, {"heavy_starts": heavy_starts})
