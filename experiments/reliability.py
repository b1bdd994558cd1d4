"""Stated probabilities of rows against the truth, and the reference slopes of the package.

    python -m experiments.reliability [--workers N]

fits each table of the track record, keeps the ranks of its rows in the cache, and writes all
figures to results/reliability.json, with those of `experiments.group_shares`. A run that was
stopped continues where it was. `experiments.track_record` stores the slopes in the package.

Everything that is fitted to labelled tables is fitted to tables that do not come from the same
source as the table at hand: in ten folds, or to the other collection alone.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from zlib import crc32

import numpy as np
from joblib import Parallel, delayed
from scipy.optimize import minimize
from scipy.special import log_expit, log_softmax
from sklearn.metrics import f1_score

from experiments import data, group_shares
from experiments.datasets import MissingDataError
from experiments.labels import scored, source_of
from experiments.plan import Trial, load_plan, record_tables
from experiments.run import THREADS
from experiments.track_record import RELIABILITY, as_mixture, fit_reference
from gammagmm import GammaGMM
from gammagmm._support.files import write_document
from gammagmm.errors import GammaGMMWarning
from gammagmm.labels.anomaly_probability import (
    Calibration,
    calibrate,
    log_likelihoods,
    normal_scores,
    solve_intercepts,
)
from gammagmm.labels.labelled_rows import LabelledRows
from gammagmm.labels.labelled_share import LabelCounts, labelled_posterior
from gammagmm.labels.learned_ranking import Inputs, learn_ranking
from gammagmm.posterior.betas import BetaMixture
from gammagmm.posterior.decisions import (
    cost_cut,
    cut_off,
    is_anomaly,
    new_row_ranks,
    probability_at,
    ranks_left,
)
from gammagmm.posterior.gamma_posterior import GammaPosterior
from gammagmm.posterior.track_record import UNIFORM_PART, ReferenceSlopes, with_uniform_part

SLOPES = np.append(0.0, np.geomspace(0.125, 32.0, 17))
"""From a random ranking to one that is as good as perfect; each is 1.4 times the one before."""
N_FOLDS = 10
N_FIRST = 10
N_FEW, N_MANY = 30, 100
"""Labels of the made rankings."""
SMALLEST = 1e-6
"""Probabilities of 0 and 1 count as this far from them in the log loss."""
GROUPS = {"oddbench": ("oddbench",), "classical": ("pool", "paper")}
COLLECTIONS = {name: (name,) for names in GROUPS.values() for name in names}
TYPED = (0.1, 0.05)
"""Shares of anomalies that people type in when they do not know it."""
MISS_COSTS = (1.0, 5.0, 10.0, 30.0)
EDGES = np.array([0.0, 0.01, 0.03, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9, 1.0])

MADE = {"n_rows": 1000, "share": 0.1, "n_repeats": 200}
"""Rows and share of anomalies of a made ranking, and how many there are of each kind."""

Figures = dict[str, Any]


@dataclass(frozen=True)
class Ranked:
    """Rows of a table ranked after `n` of them were labelled.

    `counts` (N,) are the numbers of rows that score at least as high as each row, by a ranking that
    does not know its label, and `counts_new` (m,) those of new rows with labels `y_new` (m,).
    """

    y: np.ndarray
    known: np.ndarray
    counts: np.ndarray
    is_learned: bool
    counts_new: np.ndarray
    y_new: np.ndarray
    rank_probability: np.ndarray | None  # of a fit without labels

    @property
    def left(self) -> np.ndarray:
        return np.setdiff1d(np.arange(len(self.y)), self.known)


@dataclass(frozen=True)
class RankedTable:
    """The rankings of a table: `whole` fits by number of labels, and fits of a half of its rows."""

    collection: str
    name: str
    whole: dict[int, list[Ranked]]
    half: dict[int, list[Ranked]]
    mean: float  # of the posterior without labels

    @cached_property
    def slopes(self) -> dict[bool, list[np.ndarray]]:
        """Log-likelihood of each slope for the consensus, and for each ranking that is learned."""
        found: dict[bool, list[np.ndarray]] = {False: [], True: []}
        for n, draws in self.whole.items():
            for ranked in draws:
                if (n == 0 or ranked.is_learned) and 0 < ranked.y.sum() < len(ranked.y):
                    found[ranked.is_learned].append(_own_likelihood(ranked))
        return found

    @property
    def truth(self) -> tuple[int, int]:
        """Number of anomalies and of rows."""
        y = self.whole[0][0].y
        return int(y.sum()), len(y)


def main() -> None:
    workers, plan = parse_workers(__doc__), load_plan()
    with workers:
        # The classical tables, which come last, have the most rows.
        wanted = record_tables(plan)[::-1]
        failed = filter(None, workers(delayed(keep_ranks)(*table, plan) for table in wanted))
        if reasons := "\n".join(failed):
            raise SystemExit(reasons)
        kept = [table for table in wanted if ranks_path(*table).is_file()]
        figures = all_figures(workers(delayed(read_ranks)(*table) for table in kept), workers)
        figures["group_shares"] = group_shares.figures_by_case(workers)
    figures["made_rankings"] = made_rankings()
    text = json.dumps(figures, indent=1, allow_nan=False) + "\n"
    write_document(text, RELIABILITY, overwrite=True)


def made_rankings() -> Figures:
    """Means of what is stated for the ten first rows of a random and of a perfect ranking."""
    rng, n_rows, found = np.random.default_rng(0), int(MADE["n_rows"]), {}
    y = (np.arange(n_rows) < n_rows * MADE["share"]).astype(int)
    for kind, weight in (("random", 0.0), ("perfect", 1.0)):
        found[kind] = {}
        for n in (N_FEW, N_MANY):
            stated = []
            for _ in range(int(MADE["n_repeats"])):
                rows = LabelledRows(weight * y + rng.random(n_rows))
                known = rows.suggest(n, random_state=rng)
                rows = rows.update(known, y[known])
                left = rows.known_rows.unknown(n_rows)
                first = left[np.argsort(-rows.scores[left])[:N_FIRST]]
                stated.append(rows.probability[first].mean())
            found[kind][str(n)] = {"mean": float(np.mean(stated)), "most": float(np.max(stated))}
    return MADE | found


def parse_workers(words: str | None) -> Parallel:
    """The processes that the command line asks for, of one thread each."""
    parser = argparse.ArgumentParser(description=words)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="default: cores")
    n_workers = parser.parse_args().workers
    # The processes inherit these before they load NumPy.
    os.environ.update(dict.fromkeys(THREADS, "1"))
    return Parallel(n_workers, batch_size=1)


def ranks_path(collection: str, name: str) -> Any:
    return data.cache_path(f"ranks-{collection}", name)


def keep_ranks(collection: str, name: str, plan: dict[str, Any]) -> str | None:
    """Fit the table and keep the ranks of its rows, unless the cache has them.

    Returns why there are none, if the fit failed.
    """
    path, start = ranks_path(collection, name), time.perf_counter()
    if path.is_file():
        return None
    try:
        found = data.load(collection, name)
    except MissingDataError:
        return None
    settings, trial = plan["reliability"], Trial("reliability", collection, name, "default")
    rng = np.random.default_rng([plan["seed"], crc32(str(trial).encode())])
    rows = rng.permutation(len(found.y))[: settings["max_rows"]]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GammaGMMWarning)
            arrays = _ranks_of_table(found.X[rows], found.y[rows], plan, rng)
    except Exception as error:  # the other tables continue
        return f"{collection}/{name}: {type(error).__name__}: {error}"
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}.part.npz")
    np.savez_compressed(part, **arrays)
    part.replace(path)
    print(f"{collection}/{name}: {time.perf_counter() - start:.1f} s", flush=True)
    return None


def _ranks_of_table(
    X: np.ndarray, y: np.ndarray, plan: dict[str, Any], rng: np.random.Generator
) -> dict[str, np.ndarray]:
    fit = GammaGMM(random_state=plan["seed"]).fit(X).fit_
    inputs = Inputs(fit.space.values, fit.space.consensus, fit.detector_columns)
    arrays = {"y": y.astype(np.int8), "rank_probability": fit.labelled_rows.rank_probability}
    arrays["mean"] = np.array(fit.posterior.mean)
    arrays |= _rankings("whole", inputs, y, inputs[:0], plan, rng)
    half = len(X) // 2
    trained, of_new = scored(X[:half], plan["seed"])
    return arrays | _rankings("half", trained, y[:half], of_new(X[half:]), plan, rng)


def _rankings(
    part: str,
    inputs: Inputs,
    y: np.ndarray,
    new: Inputs,
    plan: dict[str, Any],
    rng: np.random.Generator,
) -> dict[str, np.ndarray]:
    """Arrays of each ranking, by part, number of labels and draw."""
    settings, arrays = plan["reliability"], {}
    for n in settings["numbers"]:
        for draw in range(settings["draws"][part] if 0 < n < len(y) else n == 0):
            known = np.empty(0, dtype=int)
            scores = honest = inputs.consensus
            scores_new, is_learned = new.consensus, False
            if n > 0:
                rows = LabelledRows(inputs.consensus)
                known = rows.suggest(n, random_state=rng)
                learned = learn_ranking(inputs, rows.update(known, y[known]).known_rows, 0)
                scores, honest = learned.scores, learned.honest_scores
                is_learned = learned.ranking is not None
                if learned.ranking is not None and len(new):
                    scores_new = learned.ranking.scores(new)
            ordered = np.sort(honest)
            n_below = np.searchsorted(
                ordered, np.where(np.isin(np.arange(len(y)), known), honest, scores)
            )
            key = f"{part}-{n}-{draw}"
            arrays |= {
                f"{key}-known": known.astype(np.int32),
                f"{key}-counts": (len(y) - n_below).astype(np.int32),
                f"{key}-new": (len(y) - np.searchsorted(ordered, scores_new)).astype(np.int32),
                f"{key}-learned": np.array(is_learned),
            }
    return arrays


def read_ranks(collection: str, name: str) -> RankedTable:
    """The rankings that `keep_ranks` has kept."""
    with np.load(ranks_path(collection, name), allow_pickle=False) as kept:
        arrays = dict(kept)
    y, parts = arrays["y"].astype(int), {"whole": {}, "half": {}}
    half = len(y) // 2
    for key in [key for key in arrays if key.endswith("-known")]:
        part, n, draw, _ = key.split("-")
        known, counts, new = (arrays[f"{part}-{n}-{draw}-{x}"] for x in ("known", "counts", "new"))
        is_learned = bool(arrays[f"{part}-{n}-{draw}-learned"])
        own = (y, y[:0]) if part == "whole" else (y[:half], y[half:])
        without = arrays["rank_probability"] if part == "whole" and n == "0" else None
        ranked = Ranked(own[0], known, counts, is_learned, new, own[1], without)
        parts[part].setdefault(int(n), []).append(ranked)
    table = RankedTable(collection, name, **parts, mean=float(arrays["mean"]))
    table.slopes  # noqa: B018, computed here, by the worker
    return table


def all_figures(tables: list[RankedTable], workers: Parallel) -> Figures:
    """Every figure, and the slopes that the package carries."""
    folds = fold_of(tables)
    jobs = [
        (
            "folds",
            [t for t in tables if folds[t.name] != i],
            [t for t in tables if folds[t.name] == i],
        )
        for i in range(N_FOLDS)
    ]
    for group in GROUPS.values():
        inside = [table for table in tables if table.collection in group]
        others = [table for table in tables if table.collection not in group]
        if inside and others:
            jobs.append(("other_collection", others, inside))
    *fits, whole = workers(delayed(fit_all)(own) for own in [*(job[1] for job in jobs), tables])
    asked = [
        (scheme, table, fit)
        for (scheme, _, left_out), fit in zip(jobs, fits, strict=True)
        for table in left_out
    ]
    found = workers(delayed(_answers_of)(table, *fit) for _, table, fit in asked)
    by_scheme: dict[str, list[Figures]] = {}
    for (scheme, _, _), answers in zip(asked, found, strict=True):
        by_scheme.setdefault(scheme, []).extend(answers)
    return {
        "n_tables": {
            name: sum(table.collection in group for table in tables)
            for name, group in GROUPS.items()
        },
        **{scheme: _summary(answers) for scheme, answers in by_scheme.items()},
        "slopes": {name: values.tolist() for name, values in vars(whole[1]).items()},
    }


def fold_of(tables: list[RankedTable]) -> dict[str, int]:
    """The fold of each table by its name; tables of one source have the same fold."""
    sources = sorted({source_of(table.name) for table in tables})
    places = np.random.default_rng(0).permutation(len(sources)) % N_FOLDS
    fold = dict(zip(sources, places.tolist(), strict=True))
    return {table.name: fold[source_of(table.name)] for table in tables}


def fit_all(tables: list[RankedTable]) -> tuple[BetaMixture, ReferenceSlopes]:
    """The reference distribution of the share and the slopes, fitted to these tables."""
    shares = fit_share(tables)
    return shares, fit_slopes(tables, shares)


def fit_share(tables: list[RankedTable]) -> BetaMixture:
    """The reference distribution of the share, fitted to these tables."""
    k, n = np.array([table.truth for table in tables]).T
    return as_mixture(fit_reference(k, n))


def fit_slopes(tables: list[RankedTable], shares: BetaMixture) -> ReferenceSlopes:
    """The weights of the slopes under which the labels of these tables are most likely.

    With labels, each table has a slope of its own. Without, nothing tells which slope a table has,
    and its share has the mean of the reference: the weights are then those of its rows.
    """
    mean = shares.moment(1)
    consensus, learned, rows, weights = [], [], [], []
    for table in tables:
        first = table.whole[0][0]
        z = _normal_scores(first.counts)
        intercepts = solve_intercepts(z, SLOPES, mean)
        sign = np.where(first.y == 1, 1.0, -1.0)[:, None]
        rows.append(log_expit(sign * (intercepts + SLOPES * z[:, None])))
        weights.append(np.full(len(z), 1.0 / len(z)))
        consensus += table.slopes[False]
        learned += table.slopes[True]
    return ReferenceSlopes(
        SLOPES,
        most_likely_weights(np.concatenate(rows), np.concatenate(weights)),
        most_likely_weights(np.array(consensus)),
        most_likely_weights(np.array(learned)),
    )


def _normal_scores(counts: np.ndarray) -> np.ndarray:
    scores = -counts.astype(float)
    return normal_scores(new_row_ranks(scores), scores)


def _own_likelihood(ranked: Ranked) -> np.ndarray:
    """Log-likelihood of each slope, with all labels of the table."""
    z = _normal_scores(ranked.counts)
    intercepts = solve_intercepts(z, SLOPES, float(ranked.y.mean()))
    return log_likelihoods(z, ranked.y, SLOPES, intercepts)


def most_likely_weights(logs: np.ndarray, counts: np.ndarray | None = None) -> np.ndarray:
    """Weights (S,) of a mixture that maximise the likelihood, from the log-likelihoods (n, S)."""
    logs = np.maximum(logs - logs.max(axis=1, keepdims=True), -700.0)
    likelihoods = np.exp(logs)
    counts = np.ones(len(logs)) if counts is None else counts

    def loss(x: np.ndarray) -> tuple[float, np.ndarray]:
        weights = np.exp(log_softmax(x))
        total = likelihoods @ weights
        slope = weights * (likelihoods.T @ (counts / total)) - weights * counts.sum()
        return -float(counts @ np.log(total)), -slope

    found = minimize(loss, np.zeros(logs.shape[1]), jac=True, method="L-BFGS-B")
    weights = np.exp(log_softmax(found.x))
    return weights / weights.sum()


def _answers_of(table: RankedTable, shares: BetaMixture, slopes: ReferenceSlopes) -> list[Figures]:
    """The answers for a table by what is fitted to others."""
    return [
        answer
        for part in ("whole", "half")
        for n, draws in getattr(table, part).items()
        for ranked in draws
        if (answer := _answer(table, part, n, ranked, shares, slopes)) is not None
    ]


def _answer(
    table: RankedTable,
    part: str,
    n: int,
    ranked: Ranked,
    shares: BetaMixture,
    slopes: ReferenceSlopes,
) -> Figures | None:
    """Figures of each method on the rows without labels, or on the new rows; None if none is."""
    left, scores = ranked.left, -ranked.counts.astype(float)
    if not len(left):
        return None
    posterior, share, calibration = state(ranked, shares, slopes)
    if part == "whole":
        asked, y = scores[left], ranked.y[left]
    else:
        asked, y = -ranked.counts_new.astype(float), ranked.y_new
    stated = {"calibrated": calibration(asked), "constant": np.full(len(y), share)}
    if n > 0:
        n_found = int(ranked.y[ranked.known].sum())
        ranks = ranks_left(scores[left], n_found, len(ranked.y))
        stated["rank"] = probability_at(posterior, ranks.shares_at_least(asked))
    elif ranked.rank_probability is not None:
        stated["rank"] = ranked.rank_probability
    first = np.argsort(-asked, kind="stable")[:N_FIRST]
    answer: Figures = {
        "key": (table.collection, table.name, part, n),
        "methods": {name: _scores_of(p, y, first) for name, p in stated.items()},
    }
    if part == "whole" and n > 0 and y.any():
        cuts = {f"typed {share:g}": share for share in TYPED} | {"without labels": table.mean}
        ranks = table.whole[0][0].counts[left] / len(ranked.y)
        flagged = {name: ranks <= share for name, share in cuts.items()}
        flagged["labels, share"] = is_anomaly(asked, float(cut_off(asked, share)))
        flagged["labels, probabilities"] = flag_by_expected_f1(stated["calibrated"])
        answer["f1"] = {name: float(f1_score(y, each)) for name, each in flagged.items()}
    return answer


def state(
    ranked: Ranked, shares: BetaMixture, slopes: ReferenceSlopes
) -> tuple[GammaPosterior, float, Calibration]:
    """The posterior, the expected share in the rows left and P(anomaly), as the package has them.

    `shares` is the reference. With labels, the prior has a part Beta(1, 1) as well.
    """
    known, scores, n_rows = ranked.known, -ranked.counts.astype(float), len(ranked.y)
    prior, weights = shares, slopes.unlabelled
    if len(known):
        prior = with_uniform_part(shares, UNIFORM_PART)
        weights = slopes.learned if ranked.is_learned else slopes.consensus
    n_found = int(ranked.y[known].sum())
    posterior = labelled_posterior(LabelCounts(n_rows, len(known), n_found, 0, 0), prior)
    share = float(np.clip((posterior.mean * n_rows - n_found) / len(ranked.left), 0.0, 1.0))
    labelled = scores[known], ranked.y[known]
    left = scores[ranked.left]
    return posterior, share, calibrate(scores, left, share, labelled, (slopes.slopes, weights))


def flag_by_expected_f1(p: np.ndarray) -> np.ndarray:
    """Whether each row is flagged, so that 2 x (hits) / (flagged + anomalies) is expected largest.

    Hits and anomalies are replaced by their expectations.
    """
    order = np.argsort(-p, kind="stable")
    hits, n_flagged = np.cumsum(p[order]), np.arange(1, len(p) + 1)
    n = int(np.argmax(2.0 * hits / (n_flagged + hits[-1]))) + 1
    is_flagged = np.zeros(len(p), dtype=bool)
    is_flagged[order[:n]] = True
    return is_flagged


def _scores_of(p: np.ndarray, y: np.ndarray, first: np.ndarray) -> Figures:
    """Scores of stated probabilities, and sums in bins of them."""
    inside = np.clip(p, SMALLEST, 1.0 - SMALLEST)
    bins = np.searchsorted(EDGES, p, side="right").clip(1, len(EDGES) - 1) - 1
    sums = [np.bincount(bins, values, len(EDGES) - 1) for values in (np.ones(len(p)), p, y)]
    flagged = {miss: p > cost_cut((1.0, miss)) for miss in MISS_COSTS}
    return {
        "brier": float(np.mean((p - y) ** 2)),
        "log_loss": float(-np.mean(np.log(np.where(y == 1, inside, 1.0 - inside)))),
        "first_stated": float(p[first].mean()),
        "first_true": float(y[first].mean()),
        "costs": [
            float(np.mean(np.where(y == 1, miss * ~flag, flag))) for miss, flag in flagged.items()
        ],
        "bins": np.array(sums),
    }


def _summary(answers: list[Figures]) -> Figures:
    """Means over tables of the means over draws, and bins in which rows weigh equally."""
    summary: Figures = {"f1": _f1_by_group(answers)}
    for group, collections in GROUPS.items():
        for part in ("whole", "half"):
            for n in sorted({answer["key"][3] for answer in answers}):
                chosen = [
                    answer
                    for answer in answers
                    if answer["key"][0] in collections and answer["key"][2:] == (part, n)
                ]
                for method in ("calibrated", "constant", "rank"):
                    own = [a for a in chosen if method in a["methods"]]
                    if own:
                        place = summary.setdefault(group, {}).setdefault(part, {})
                        place.setdefault(str(n), {})[method] = _means(own, method)
    return summary


def _f1_by_group(answers: list[Figures]) -> Figures:
    """The same of the F1 scores of flagged rows, by group or collection and number of labels."""
    found: Figures = {}
    for group, collections in (GROUPS | COLLECTIONS).items():
        by_number: dict[int, list[Figures]] = {}
        for answer in answers:
            if "f1" in answer and answer["key"][0] in collections:
                by_number.setdefault(answer["key"][3], []).append(answer)
        if by_number:
            found[group] = {str(n): _mean_f1(by_number[n]) for n in sorted(by_number)}
    return found


def _mean_f1(answers: list[Figures]) -> dict[str, float]:
    """Means over tables of the means over draws, and the number of tables."""
    by_table: dict[Any, list[dict[str, float]]] = {}
    for answer in answers:
        by_table.setdefault(answer["key"], []).append(answer["f1"])
    names = answers[0]["f1"]
    means = {
        name: float(np.mean([np.mean([draw[name] for draw in d]) for d in by_table.values()]))
        for name in names
    }
    return {"n_tables": len(by_table)} | means


def _means(answers: list[Figures], method: str) -> Figures:
    by_table: dict[Any, list[Figures]] = {}
    for answer in answers:
        by_table.setdefault(answer["key"], []).append(answer["methods"][method])
    names = ("brier", "log_loss", "first_stated", "first_true", "costs")
    means = {
        name: np.mean(
            [np.mean([d[name] for d in draws], axis=0) for draws in by_table.values()], axis=0
        )
        for name in names
    }
    # Each row counts once, however many draws there are.
    n, stated, true = sum(
        np.mean([draw["bins"] for draw in draws], axis=0) for draws in by_table.values()
    )
    bins = [
        {"n": round(n[i]), "stated": stated[i] / n[i], "true": true[i] / n[i]}
        for i in range(len(n))
        if n[i] > 0.5
    ]
    costs = dict(zip(map(str, map(int, MISS_COSTS)), means.pop("costs").tolist(), strict=True))
    return {name: float(value) for name, value in means.items()} | {"costs": costs, "bins": bins}


if __name__ == "__main__":
    from experiments import reliability

    reliability.main()  # under this name, workers find the functions in the module
