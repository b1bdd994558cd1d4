"""The paper's evaluation with other seeds, and with the rows in another order."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments import data, metrics
from experiments.ablation import at_expected_values, ordered_by_mean, with_p_high_met
from experiments.plan import Trial
from experiments.refits import before_log, estimator, fit_figures, refit, thresholder_shares
from experiments.results import Result
from gammagmm import GammaGMM, MixturePrior
from gammagmm.mixture.score_space import fit_scaler
from gammagmm.posterior.assumptions import draw_runs, relink
from gammagmm.posterior.gamma_posterior import GammaPosterior
from gammagmm.posterior.link import Constraints
from gammagmm.posterior.runs import solved_posteriors

MIXTURE_ROWS = 20_000
"""Most rows of a run with the default settings of version 0.2."""


def seeds(trial: Trial, plan: dict[str, Any]) -> Result:
    """Every figure of questions 1 to 3, the ablations and the default settings, with one seed.

    The seed is that of the detectors and of the runs. `all_ten` and `no_log` have at most the
    plan's `refits` rows, the same for every seed, and restarts.
    """
    seed = int(trial.variant)
    part = plan["collections"][trial.collection]
    made = data.seeded_scores(trial.collection, trial.dataset, part, seed)
    exact = estimator(plan, seed).fit(made.S)
    identity = estimator(plan, seed).set_params(mixture_prior=MixturePrior("identity"))
    return {
        "truth": made.gamma,
        "rows": len(made.y),
        "detectors": made.names,
        "at_truth": _cut(made, made.gamma),
        "exact": _figures(exact, made),
        "default": _figures(_default(plan, seed).fit(made.S), made),
        "identity": _figures(identity.fit(made.S), made),
        "parts": _parts(exact, made.gamma, seed),
        "all_ten": refit(made.S, made.gamma, plan, seed),
        "no_log": refit(before_log(made.S), made.gamma, plan, seed),
        "thresholders": _thresholders(made, plan, seed),
    }


def row_order(trial: Trial, plan: dict[str, Any]) -> Result:
    """The same table with its rows in another order, and the same seed."""
    found = data.load(trial.collection, trial.dataset)
    order = np.random.default_rng([plan["seed"], int(trial.variant)]).permutation(len(found.y))
    part = plan["collections"][trial.collection]
    made = data.scores_of(found.X[order], found.y[order], part, plan["seed"])
    return {
        "truth": made.gamma,
        "rows": len(made.y),
        "exact": _figures(estimator(plan).fit(made.S), made),
        "default": _figures(_default(plan, plan["seed"]).fit(made.S), made),
    }


def _default(plan: dict[str, Any], seed: int) -> GammaGMM:
    """gammaGMM with the default settings of version 0.2, with which these trials were run."""
    return estimator(plan, seed).set_params(tol="auto", max_mixture_rows=MIXTURE_ROWS)


def _figures(fitted: GammaGMM, made: data.Scored) -> Result:
    return {
        **fit_figures(fitted, made.gamma),
        "active": [len(run.components) for run in fitted.fit_.runs],
        "candidates": [len(run.weights) for run in fitted.fit_.runs],
        "prob_high": fitted.posterior_.prob_above(fitted.high_gamma),
        "cut": _cut(made, fitted.posterior_.mean),
    }


def _cut(made: data.Scored, share: float) -> Result:
    """F1 of each detector at the share, and the rates of the paper's Table 4."""
    cut = metrics.evaluate(made.S, made.y, share)
    rates = {name: float(np.mean(cut[name])) for name in ("false_alarms", "misses")}
    return {"f1": cut["f1"], **rates}


def _parts(fitted: GammaGMM, truth: float, seed: int) -> Result:
    """The posterior with one part of the method changed, from the same mixtures."""
    constraints, single = Constraints(), solved_posteriors(fitted.fit_.runs)
    drawn = draw_runs(fitted.fit_.runs, np.random.default_rng(seed))
    by_mean = ordered_by_mean(fitted.fit_.runs, np.random.default_rng(seed))
    return {
        "order_by_mean": _changed(relink(by_mean, constraints), truth),
        "plug_in": _changed(relink(at_expected_values(drawn), constraints), truth),
        "p_high_met": _changed(with_p_high_met(drawn, constraints, False), truth),
        "both_averaged": _changed(with_p_high_met(drawn, constraints, True), truth),
        "one_run": [metrics.posterior_figures(posterior, truth) for posterior in single],
    }


def _changed(answer: tuple[GammaPosterior, int], truth: float) -> Result:
    posterior, n_unsolved = answer
    return {
        **metrics.posterior_figures(posterior, truth),
        "n_unsolved": n_unsolved,
        "prob_high": float(posterior.prob_above(Constraints().high_gamma)),
    }


def _thresholders(made: data.Scored, plan: dict[str, Any], seed: int) -> Result:
    """Estimate and quality of PyThresh's estimators that take seconds."""
    Z, found = fit_scaler(made.S).transform(made.S), {}
    for name in plan["seeds"]["thresholders"]:
        share = float(np.mean(thresholder_shares(name, Z, False, seed)))
        found[name] = {"share": share, "cut": _cut(made, share)}
    return found
