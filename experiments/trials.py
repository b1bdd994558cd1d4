"""Runs one trial and returns its result as plain values."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from experiments import data, detectors, metrics
from experiments.ablation import at_expected_values, ordered_by_mean
from experiments.labels import labels
from experiments.learning import finding, learning, peers
from experiments.made_tables import clean_table, sceptic_table, shaped_table, two_blobs
from experiments.monitoring import quiet
from experiments.new_rows import new_rows
from experiments.plan import Trial
from experiments.refits import before_log, estimator, fit_figures, refit, thresholder_shares
from experiments.results import Result
from experiments.seeds import row_order, seeds
from gammagmm import GammaGMM, GammaPosterior
from gammagmm.datasets import make_contaminated
from gammagmm.errors import GammaGMMWarning
from gammagmm.estimator.parameters import check_parameters
from gammagmm.estimator.rows import open_rows
from gammagmm.estimator.space import score_training_rows
from gammagmm.mixture.score_space import fit_scaler
from gammagmm.posterior.assumptions import DrawnRun, draw_runs, relink
from gammagmm.posterior.decisions import exact_ranks, probability_at
from gammagmm.posterior.link import Constraints
from gammagmm.posterior.runs import solved_posteriors
from gammagmm.posterior.separate_rows import MIN_DEPTH, SeparateRows, find_separate_rows
from gammagmm.posterior.storage import posterior_to_data


def run_trial(trial: Trial, plan: dict[str, Any]) -> Result:
    """The trial's result, or the reason why it has none."""
    start = time.perf_counter()
    try:
        with warnings.catch_warnings():
            # The results record which detectors were left out and which runs have no solution.
            warnings.simplefilter("ignore", GammaGMMWarning)
            found = {"status": "ok"} | KINDS[trial.kind](trial, plan)
    except data.MissingDataError as error:
        found = {"status": "no data", "reason": str(error)}
    except Exception as error:
        # That a method fails on a dataset is a result too.
        found = {"status": "failed", "reason": f"{type(error).__name__}: {error}"[:300]}
    return {"trial": str(trial), **found, "seconds": round(time.perf_counter() - start, 3)}


def settings(trial: Trial, plan: dict[str, Any]) -> Result:
    """The posterior from the default detectors' scores, with the exact or the default settings.

    The variant is "exact" or "default", a dash, and the seed of the runs. The collection "enlarged"
    has the scores of the paper's detectors with more rows.
    """
    if trial.collection == "enlarged":
        enlarged = plan["settings"]["enlarged"]
        made = data.enlarged_scores(
            trial.dataset, enlarged["rows"], enlarged["noise"], plan["seed"]
        )
    else:
        made = data.classic_scores(trial.collection, trial.dataset, plan["seed"])
    kind, seed = trial.variant.split("-")
    fitted = estimator(plan).set_params(random_state=int(seed))
    if kind == "default":
        fitted.set_params(tol="auto", max_mixture_rows="auto", max_restarts="auto")
    fitted.fit(made.S)
    elbos = [run.elbo for run in fitted.fit_.runs]
    return {**_truth(made), **fit_figures(fitted, made.gamma), "elbos": elbos}


def scores(trial: Trial, plan: dict[str, Any]) -> Result:
    """The detectors' quality at the true gamma; their scores are kept in the cache."""
    part = plan["collections"][trial.collection]
    made = data.score(trial.collection, trial.dataset, part, plan["seed"])
    best = metrics.evaluate(made.S, made.y, made.gamma)
    return {"detectors": made.names, "info": made.info, **_truth(made), "at_truth": best}


def gamma(trial: Trial, plan: dict[str, Any]) -> Result:
    """The posterior with the defaults, with other answers of the user, and without each part."""
    made = data.scored(trial.collection, trial.dataset)
    fitted = estimator(plan).fit(made.S)
    share = fitted.posterior_.mean
    consensus = fitted.decision_scores_
    shares = exact_ranks(consensus).shares_at_least(consensus)
    probability = probability_at(fitted.posterior_, shares)
    drawn = draw_runs(fitted.fit_.runs, np.random.default_rng(plan["seed"]))
    # The same draws, of the means alone.
    by_mean = ordered_by_mean(fitted.fit_.runs, np.random.default_rng(plan["seed"]))
    return {
        **_truth(made),
        "share": share,
        **fit_figures(fitted, made.gamma),
        "posterior": posterior_to_data(fitted.posterior_),
        "cut": metrics.evaluate(made.S, made.y, share),
        "reliability": metrics.reliability(probability, made.y),
        "sensitivity": _sensitivity(drawn, made.gamma, plan),
        "parts": _parts(drawn, by_mean, fitted.fit_.runs, made.gamma),
    }


def threshold(trial: Trial, plan: dict[str, Any]) -> Result:
    """PyThresh's estimate: the shares of the detectors, averaged."""
    made = data.scored(trial.collection, trial.dataset)
    Z = fit_scaler(made.S).transform(made.S)
    is_joint = trial.variant in plan["thresholders"]["joint"]
    shares = thresholder_shares(trial.variant, Z, is_joint, plan["seed"])
    return {"shares": shares, **_point(made, float(np.mean(shares)))}


def constant(trial: Trial, plan: dict[str, Any]) -> Result:
    """A fixed share, or a Beta fitted to the true shares of the other datasets."""
    made = data.scored(trial.collection, trial.dataset)
    if trial.variant != "prior":
        return _point(made, float(trial.variant))
    prior = metrics.beta_prior(np.array(_other_gammas(trial, plan)))
    figures = metrics.posterior_figures(prior, made.gamma)
    return {**_point(made, prior.mean), "figures": figures}


def subset(trial: Trial, plan: dict[str, Any]) -> Result:
    """The posterior from a few detectors; a repeat takes the same detectors on every dataset."""
    made = data.scored(trial.collection, trial.dataset)
    size, repeat = map(int, trial.variant.split("-"))
    chosen = subset_names(plan, size, repeat)
    columns = [made.names.index(name) for name in chosen if name in made.names]
    names = [made.names[column] for column in columns]
    return {**_truth(made), "detectors": names, **refit(made.S[:, columns], made.gamma, plan)}


def subset_names(plan: dict[str, Any], size: int, repeat: int) -> list[str]:
    """The detectors of a repeat, drawn without replacement from the preset's ten detectors."""
    rng = np.random.default_rng([plan["seed"], size, repeat])
    return sorted(rng.choice(plan["subsets"]["detectors"], size, replace=False).tolist())


def ablation(trial: Trial, plan: dict[str, Any]) -> Result:
    """The posterior without the logarithm, or from a single detector."""
    made = data.scored(trial.collection, trial.dataset)
    if trial.variant == "no_log":
        S = before_log(made.S)
    elif trial.variant in made.names:
        S = made.S[:, [made.names.index(trial.variant)]]
    else:
        raise ValueError(f"{trial.variant} was left out on this dataset")
    return {**_truth(made), **refit(S, made.gamma, plan)}


def dose(trial: Trial, plan: dict[str, Any]) -> Result:
    """Every method's answer as more anomalies are added to the same inliers."""
    settings = plan["dose"]
    X, y = _dose_rows(trial, settings, plan["seed"])
    if (n_anomalies := int(y.sum())) < settings["min_anomalies"]:
        reason = f"{n_anomalies} labelled anomalies, {settings['min_anomalies']} needed"
        return {"status": "too few anomalies", "reason": reason}
    rng = np.random.default_rng([plan["seed"], int(trial.variant)])
    normal, anomalous = rng.permutation(np.flatnonzero(y == 0)), rng.permutation(np.flatnonzero(y))
    top = max(settings["levels"])
    n_normal = int(min(len(normal), len(anomalous) * (1 - top) / top))
    n_normal = min(n_normal, int(settings["max_rows"] * (1.0 - top)))
    answers = []
    for level in settings["levels"]:
        n_added = round(level / (1.0 - level) * n_normal)
        rows = np.concatenate([normal[:n_normal], anomalous[:n_added]])
        answers.append(_answers(X[rows], y[rows], plan))
    return {"n_inliers": n_normal, "answers": answers}


def record(trial: Trial, plan: dict[str, Any]) -> Result:
    """The answer of a default fit on a labelled table."""
    found = data.load(trial.collection, trial.dataset)
    fitted = GammaGMM(random_state=plan["seed"]).fit(found.X)
    auc = metrics.ranking_auc(fitted.decision_scores_, found.y)
    return _evidence(fitted, found.y) | {"auc": auc}


def sceptic(trial: Trial, plan: dict[str, Any]) -> Result:
    """The answer of a default fit on normal rows with outliers that everybody sees."""
    kind, share, n_blobs, n_rows = trial.dataset.split("-")
    X, y = sceptic_table(kind, float(share), int(n_blobs), int(n_rows), int(trial.variant))
    return _evidence(GammaGMM(random_state=plan["seed"]).fit(X), y)


def clean(trial: Trial, plan: dict[str, Any]) -> Result:
    """The answer of a default fit on rows without outliers."""
    kind, n_rows = trial.dataset.split("-")
    X = clean_table(kind, int(n_rows), int(trial.variant))
    return _evidence(GammaGMM(random_state=plan["seed"]).fit(X), np.zeros(len(X), dtype=int))


def groups(trial: Trial, plan: dict[str, Any]) -> Result:
    """The group that is separate from the rest, by the detectors of a default fit alone.

    For other least depths of a valley as well.
    """
    kind, n_rows = trial.dataset.split("-")
    if kind == "blobs":
        X, y = two_blobs(int(n_rows), int(trial.variant))
    else:
        X = shaped_table(kind, int(n_rows), int(trial.variant))
        y = np.zeros(len(X), dtype=int)
    fitted = GammaGMM(random_state=plan["seed"])
    checked = check_parameters(fitted)
    table = open_rows(X, fitted, checked)
    scored, scaler, _ = score_training_rows(table, checked)
    columns = table.values if scaler is None else scaler.transform(table.values)
    space = fit_scaler(scored.scores).transform(scored.scores)
    found = {
        f"{depth}": _group(find_separate_rows(space, list(scored.detectors), columns, depth), y)
        for depth in [MIN_DEPTH, *plan["groups"]["depths"]]
    }
    return {"truth": float(y.mean()), "rows": len(y), "columns": X.shape[1], "groups": found}


def _evidence(fitted: GammaGMM, y: np.ndarray) -> Result:
    """The posterior of a fit beside the labels `y`, and its evidence."""
    truth, evidence = float(y.mean()), fitted.evidence_
    return {
        "truth": truth,
        "rows": len(y),
        "flagged": int(fitted.labels_.sum()),
        "figures": metrics.posterior_figures(fitted.posterior_, truth),
        "n_starts": evidence.n_starts,
        "n_unsolved_starts": evidence.n_unsolved_starts,
        "assumptions": {other.words: other.mean for other in evidence.assumptions},
        "group": _group(evidence.separate_rows, y),
    }


def _group(group: SeparateRows | None, y: np.ndarray) -> Result | None:
    if group is None:
        return None
    return {
        "share": group.share,
        "depth": group.depth,
        "detectors": list(group.detectors),
        "precision": float(y[group.rows].mean()),
        "is_cluster": group.is_cluster,
    }


def _dose_rows(trial: Trial, settings: dict[str, Any], seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The table that the inliers and the anomalies are drawn from."""
    if trial.collection != "made":
        found = data.load(trial.collection, trial.dataset)
        return found.X, found.y
    rows, features = settings["separable"].values()
    random_state = np.random.default_rng([seed, int(trial.variant)])
    made = make_contaminated(rows, features, 0.25, "clustered", random_state=random_state)
    # Moved far away, so that every detector can separate them.
    return made.X + 4.0 * np.ptp(made.X, axis=0) * made.y[:, None], made.y


def _answers(X: np.ndarray, y: np.ndarray, plan: dict[str, Any]) -> Result:
    settings = plan["dose"]
    part = {"preset": settings["preset"], "max_fit_rows": "all"}
    made = data.scores_of(X, y, part, plan["seed"])
    fitted = estimator(plan).fit(made.S)
    Z = fit_scaler(made.S).transform(made.S)
    low, high = fitted.posterior_.interval()
    shares, failed = {"gammaGMM": fitted.posterior_.mean}, {}
    for name in settings["thresholders"]:
        try:
            of_detectors = thresholder_shares(name, Z, False, plan["seed"])
        except Exception as error:  # the other methods continue
            failed[name] = f"{type(error).__name__}: {error}"
        else:
            shares[name] = float(np.mean(of_detectors))
    answer = {"truth": float(y.mean()), "low": low, "high": high, "shares": shares}
    return answer | ({"failed": failed} if failed else {})


def _truth(made: data.Scored) -> Result:
    return {"truth": made.gamma, "rows": len(made.y)}


def _point(made: data.Scored, share: float) -> Result:
    return {**_truth(made), "share": share, "cut": metrics.evaluate(made.S, made.y, share)}


def _sensitivity(drawn: list[DrawnRun], truth: float, plan: dict[str, Any]) -> Result:
    """The posterior for other answers of the user, one at a time, from the same mixtures."""
    return {
        f"{name}={value}": _changed(relink(drawn, Constraints(**{name: value})), truth)
        for name, values in plan["sensitivity"].items()
        for value in values
    }


def _parts(drawn: list[DrawnRun], by_mean: list[DrawnRun], runs: Any, truth: float) -> Result:
    """The posterior with one part of the method changed, from the same mixtures."""
    default, single = Constraints(), solved_posteriors(runs)
    return {
        "order_by_mean": _changed(relink(by_mean, default), truth),
        "plug_in": _changed(relink(at_expected_values(drawn), default), truth),
        "one_run": [metrics.posterior_figures(posterior, truth) for posterior in single],
    }


def _changed(answer: tuple[GammaPosterior, int], truth: float) -> Result:
    posterior, n_unsolved = answer
    return {**metrics.posterior_figures(posterior, truth), "n_unsolved": n_unsolved}


def _other_gammas(trial: Trial, plan: dict[str, Any]) -> list[float]:
    """True shares of the collection's other datasets that are available."""
    found = []
    for name in plan["collections"][trial.collection]["datasets"]:
        try:
            if name != trial.dataset:
                found.append(data.load(trial.collection, name).gamma)
        except data.MissingDataError:
            continue
    return found


KINDS: dict[str, Callable[[Trial, dict[str, Any]], Result]] = {
    "scores": scores,
    "gamma": gamma,
    "threshold": threshold,
    "constant": constant,
    "subset": subset,
    "ablation": ablation,
    "dose": dose,
    "labels": labels,
    "learning": learning,
    "finding": finding,
    "peers": peers,
    "pyod_agreement": detectors.pyod_agreement,
    "deep_agreement": detectors.deep_agreement,
    "subsample": detectors.subsample,
    "settings": settings,
    "seeds": seeds,
    "row_order": row_order,
    "record": record,
    "sceptic": sceptic,
    "clean": clean,
    "groups": groups,
    "new_rows": new_rows,
    "quiet": quiet,
}
