"""Trials of labels that teach: the ranking before and after labels, and anomalies found by looking.

On each table of the track record, rows are labelled from the truth. Rankings are evaluated on the
rows that were not looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any
from zlib import crc32

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

from experiments import data, metrics
from experiments.labels import default_inputs, prior_without
from experiments.plan import Trial
from experiments.results import Result
from gammagmm.labels.labelled_rows import LabelledRows
from gammagmm.labels.labelled_share import count_labels, labelled_posterior
from gammagmm.labels.learned_ranking import Inputs, learn_ranking

WORSE = 0.02
"""A difference of the AUC that counts."""
Ranking = Callable[[LabelledRows], tuple[np.ndarray, bool]]
"""Scores of all rows from those with labels, and whether they differ from the consensus."""
Teaching = Callable[[LabelledRows], LabelledRows]
"""Rows with labels -> the same rows with the ranking that these teach."""


def learning(trial: Trial, plan: dict[str, Any]) -> Result:
    """The learned ranking beside the consensus, by the number of labels."""
    found, inputs, settings = _open(trial, plan)
    rank = _learned(inputs, plan["seed"])
    figures = {
        str(n): _mean_figures(trial, plan, found.y, inputs.consensus, {"learned": rank}, n)
        for n in settings["numbers"]
    }
    return _head(found, inputs, settings) | {"figures": figures}


def finding(trial: Trial, plan: dict[str, Any]) -> Result:
    """Anomalies found with a number of looks, and the estimate of the share after them."""
    found, inputs, settings = _open(trial, plan)
    teach = partial(_taught, inputs, plan["seed"])
    return _head(found, inputs, settings["finding"]) | {
        "finding": _finding(trial, plan, found.y, inputs.consensus, teach)
    }


def peers(trial: Trial, plan: dict[str, Any]) -> Result:
    """What others learn from the same labels of the same columns."""
    found, inputs, settings = _open(trial, plan)
    assert inputs.columns is not None
    rankings = {
        "learned": _learned(inputs, plan["seed"]),
        "XGBOD": _xgbod(inputs.columns, inputs.consensus, plan["seed"]),
        "AADForest": _aad_forest(inputs.columns, inputs.consensus, plan["seed"]),
    }
    n = settings["peers"]["labels"]
    return _head(found, inputs, settings["peers"]) | {
        "figures": {str(n): _mean_figures(trial, plan, found.y, inputs.consensus, rankings, n)},
    }


def _open(trial: Trial, plan: dict[str, Any]) -> tuple[Any, Inputs, dict[str, Any]]:
    found = data.load(trial.collection, trial.dataset)
    return found, default_inputs(found.X, plan["seed"]), plan["learning"]


def _head(found: Any, inputs: Inputs, settings: dict[str, Any]) -> Result:
    return {
        "truth": found.gamma,
        "rows": len(found.y),
        "auc": metrics.ranking_auc(inputs.consensus, found.y),
        "draws": settings["draws"],
    }


def _rng(trial: Trial, plan: dict[str, Any], draw: int) -> np.random.Generator:
    """Each table has its own draws; those of "peers" are among those of "learning"."""
    name = f"{trial.collection}/{trial.dataset}"
    return np.random.default_rng([plan["seed"], draw, crc32(name.encode())])


def _mean_figures(
    trial: Trial,
    plan: dict[str, Any],
    y: np.ndarray,
    consensus: np.ndarray,
    rankings: dict[str, Ranking],
    n: int,
) -> dict[str, Any]:
    """Means over the draws of `n` labels, on the rows without labels.

    A draw that leaves rows of one kind is left out.
    """
    settings = plan["learning"] if trial.kind == "learning" else plan["learning"]["peers"]
    each = []
    for draw in range(settings["draws"] if n < len(y) else 0):
        rows = LabelledRows(consensus)
        if n > 0:
            chosen = rows.suggest(n, random_state=_rng(trial, plan, draw))
            rows = rows.update(chosen, y[chosen])
        left = rows.known_rows.unknown(len(y))
        if len(np.unique(y[left])) == 2:
            each.append(_figures(rows, y, left, rankings))
        if n == 0:
            break
    names = each[0] if each else ()
    return {"draws": len(each)} | {name: float(np.mean([f[name] for f in each])) for name in names}


def _figures(
    rows: LabelledRows, y: np.ndarray, left: np.ndarray, rankings: dict[str, Ranking]
) -> dict[str, float]:
    auc = float(roc_auc_score(y[left], rows.scores[left]))
    figures = {
        "auc_consensus": auc,
        "ap_consensus": float(average_precision_score(y[left], rows.scores[left])),
        "anomalies": float(rows.known_rows.labels.sum()),
    }
    for name, rank in rankings.items():
        scores, is_other = rank(rows)
        own = float(roc_auc_score(y[left], scores[left]))
        figures |= {
            f"auc_{name}": own,
            f"ap_{name}": float(average_precision_score(y[left], scores[left])),
            f"worse_{name}": float(own < auc - WORSE),
            f"used_{name}": float(is_other),
        }
    return figures


def _finding(
    trial: Trial,
    plan: dict[str, Any],
    y: np.ndarray,
    consensus: np.ndarray,
    teach: Teaching,
) -> dict[str, Any] | None:
    """The figures of `finding`; None for a table with too few rows."""
    finding = plan["learning"]["finding"]
    n_looks = finding["looks"]
    if len(y) < finding["min_rows"]:
        return None
    top = np.argsort(-consensus, kind="stable")[:n_looks]
    each = [
        _look(LabelledRows(consensus), y, teach, finding, _rng(trial, plan, draw))
        for draw in range(finding["draws"])
    ]
    prior = prior_without(trial.dataset)
    counts = [count_labels(rows.known_rows, len(y)) for _, rows in each]
    ends = np.array([labelled_posterior(count, prior).interval() for count in counts])
    is_held = (ends[:, 0] - 1e-12 <= y.mean()) & (y.mean() <= ends[:, 1] + 1e-12)
    return {
        "consensus": np.cumsum(y[top])[finding["step"] - 1 :: finding["step"]].tolist(),
        "learned": np.mean([curve for curve, _ in each], axis=0).tolist(),
        "random": n_looks * float(y.mean()),
        "possible": int(min(y.sum(), n_looks)),
        "held": float(is_held.mean()),
        "width": float((ends[:, 1] - ends[:, 0]).mean()),
    }


def _look(
    rows: LabelledRows,
    y: np.ndarray,
    teach: Teaching,
    finding: dict[str, Any],
    rng: np.random.Generator,
) -> tuple[list[int], LabelledRows]:
    """Anomalies found after each step, and the rows with all labels."""
    step = finding["step"]
    spread = rows.suggest(finding["spread"], random_state=rng)
    curve = np.cumsum(y[spread])[step - 1 :: step].tolist()
    rows = rows.update(spread, y[spread])
    while len(rows.known_rows) < finding["looks"]:
        chosen = teach(rows).suggest(step, purpose="find", random_state=rng)
        rows = rows.update(chosen, y[chosen], purpose="find")
        curve.append(int(rows.known_rows.labels.sum()))
    return curve, rows


def _learned(inputs: Inputs, seed: int) -> Ranking:
    def rank(rows: LabelledRows) -> tuple[np.ndarray, bool]:
        learned = learn_ranking(inputs, rows.known_rows, seed)
        return learned.scores, learned.ranking is not None

    return rank


def _taught(inputs: Inputs, seed: int, rows: LabelledRows) -> LabelledRows:
    """The `rows` with the ranking that their labels teach, as a fit has them."""
    learned = learn_ranking(inputs, rows.known_rows, seed)
    if learned.ranking is None:
        return rows
    consensus, honest_scores = inputs.consensus, learned.honest_scores
    return replace(rows, scores=learned.scores, honest_scores=honest_scores, consensus=consensus)


def _xgbod(X: np.ndarray, consensus: np.ndarray, seed: int) -> Ranking:
    """PyOD's XGBOD, which learns from the labelled rows; labels of one kind leave the consensus."""
    from pyod.models.xgbod import XGBOD

    def rank(rows: LabelledRows) -> tuple[np.ndarray, bool]:
        known = rows.known_rows
        if len(np.unique(known.labels)) < 2:
            return consensus, False
        model = XGBOD(random_state=seed).fit(X[known.rows], known.labels)
        return model.decision_function(X), True

    return rank


def _aad_forest(X: np.ndarray, consensus: np.ndarray, seed: int) -> Ranking:
    """The active isolation forest of coniferest, which learns from all rows and the labels."""
    from coniferest.aadforest import AADForest
    from coniferest.label import Label

    def rank(rows: LabelledRows) -> tuple[np.ndarray, bool]:
        known = rows.known_rows
        labels = np.where(known.labels == 1, Label.ANOMALY, Label.REGULAR)
        model = AADForest(n_jobs=1, random_seed=seed).fit_known(X, X[known.rows], labels)
        return -model.score_samples(X), True

    return rank
