"""The paper's method in plain steps, without gammagmm: scikit-learn's mixture, NumPy and SciPy.

It has its own path for every step: scikit-learn's ``BayesianGaussianMixture``, E[r] from quantiles,
draws from SciPy's inverse Wishart distribution, and loops over the components.

``python -m tests.support.plain_method`` computes runs for the benchmark scores in the folder
GAMMAGMM_DATA and stores them in tests/golden/plain_method.json; sets that are stored are kept. The
clusters of the first k-means starts are stored as well: a run from the same start can be compared
with it up to the error of the draws. K-means itself differs between processors where distances tie.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats
from sklearn.cluster import KMeans
from sklearn.mixture import BayesianGaussianMixture
from threadpoolctl import threadpool_limits

__all__ = ["GOLDEN", "LARGE", "SMALL", "plain_run", "score_space"]

Array = NDArray[np.float64]

GOLDEN = Path(__file__).parents[1] / "golden" / "plain_method.json"
SMALL = ("Arrhythmia", "Glass", "Lymphography", "Parkinson", "Pima")
SMALL += ("Shuttle", "Stamps", "WBC", "WDBC", "WPBC")
LARGE = ("Annthyroid", "Cardiotocography", "PageBlocks", "PenDigits", "SpamBase")
LARGE += ("Waveform", "Wilt")
N_RUNS = {**dict.fromkeys(SMALL, 12), **dict.fromkeys(LARGE, 2)}
N_STARTS = {**dict.fromkeys(SMALL, 2), **dict.fromkeys(LARGE, 0)}
"""How many of the starts are stored."""

P0, P_HIGH, HIGH_GAMMA, MAX_GAMMA = 0.01, 0.01, 0.15, 0.25
N_COMPONENTS = 100
N_DRAWS = 4000
N_QUANTILES = 5000


def score_space(scores: Array) -> Array:
    """Logarithms of the shifted scores (n, M), with mean 0 and standard deviation 1."""
    logs = np.log(scores - scores.min(axis=0) + 0.01)
    return (logs - logs.mean(axis=0)) / logs.std(axis=0)


def plain_run(scores: Array, seed: int) -> dict[str, Any]:
    """One run on raw `scores` (n, M): its start, status, posterior mean and the mean's error."""
    Z, rng = score_space(scores), np.random.default_rng(seed)
    n_components = min(N_COMPONENTS, len(Z) - 1)
    mixture = BayesianGaussianMixture(
        n_components=n_components,
        weight_concentration_prior=0.01,
        mean_precision_prior=1.0,
        mean_prior=np.zeros(Z.shape[1]),
        covariance_prior=np.cov(Z.T),
        reg_covar=1e-6,
        tol=1e-3,
        max_iter=1500,
        random_state=np.random.RandomState(seed),
    )
    with threadpool_limits(1):  # more threads take longer on small matrices
        start = KMeans(n_components, n_init=1, random_state=seed).fit(Z).labels_
        mixture.fit(Z)  # it starts from the same k-means
    # Components with at least one expected member; the others' mass is spread evenly over them.
    one_plus_count = mixture.weight_concentration_[0]
    active = np.flatnonzero(one_plus_count >= 2.0)
    spread = np.delete(one_plus_count, active).sum() / len(active)
    representative = np.array([expected_r(mixture, k) for k in active])
    order = active[np.argsort(-representative)]
    r = np.sort(representative)[::-1]
    sums = np.cumsum(one_plus_count[order] + spread)
    total = sums[-1]
    n_candidates = int((sums / total < MAX_GAMMA).sum())
    found = {"start": start.tolist(), "n_iter": mixture.n_iter_}
    found |= {"n_active": len(active), "n_candidates": n_candidates}
    tails = [stats.beta.sf(HIGH_GAMMA, a, total - a) for a in sums[:n_candidates]]

    def prob_high(delta: float) -> float:
        tau = np.log(P0 / (1.0 - P0)) - delta * r[0]
        reached, p_high = 1.0, 0.0
        for k in range(n_candidates):
            reached *= 1.0 / (1.0 + np.exp(tau + delta * r[k]))
            following = 0.0
            if k + 1 < n_candidates:
                following = 1.0 / (1.0 + np.exp(tau + delta * r[k + 1]))
            p_high += reached * (1.0 - following) * tails[k]
        return p_high

    # exp(-tau) reaches 1e4 . exp(700), the largest that a float can hold.
    lowest = -600.0 / max(r[0] - r[n_candidates - 1], 1e-9) if n_candidates else 0.0
    if not n_candidates or prob_high(lowest) > P_HIGH:
        return {**found, "status": "unsolved"}
    is_slack = prob_high(0.0) < P_HIGH
    root = 0.0 if is_slack else optimize.brentq(lambda d: prob_high(d) - P_HIGH, lowest, 0.0)
    tau = np.log(P0 / (1.0 - P0)) - root * r[0]
    conditionals = [
        1.0 / (1.0 + np.exp(tau + root * draw_r(mixture, k, rng))) for k in order[:n_candidates]
    ]
    # The mean from all draws, and from each of 20 parts of them, for its error.
    every = posterior_mean([q.mean() for q in conditionals], sums / total)
    parts = np.array([q.reshape(20, -1).mean(axis=1) for q in conditionals])
    spread_of_parts = np.std([posterior_mean(part, sums / total) for part in parts.T], ddof=1)
    error = float(spread_of_parts / np.sqrt(20))
    status = "slack" if is_slack else "solved"
    return {**found, "status": status, "delta": root, "mean": every, "error": error}


def posterior_mean(q: Any, shares: Array) -> float:
    """(1 - p0) times the sum of P(C* = k | C* >= 1) . E[pi_1 + ... + pi_k]."""
    reached, mean = 1.0, 0.0
    for k in range(len(q)):
        following = q[k + 1] if k + 1 < len(q) else 0.0
        mean += reached * (1.0 - following) * shares[k]
        reached *= following
    return float((1.0 - P0) * mean)


def expected_r(mixture: BayesianGaussianMixture, k: int) -> float:
    """E[r_k] over (mu, Sigma): the mean over detectors of m_j . E[1 / (1 + sigma_j)].

    sigma_j^2 has an inverse Gamma distribution, of which equally likely quantiles are taken.
    """
    freedom, variances = mixture.degrees_of_freedom_[k], np.diagonal(mixture.covariances_[k])
    middles = (np.arange(N_QUANTILES) + 0.5) / N_QUANTILES
    shape = 0.5 * (freedom - len(variances) + 1.0)
    sigma = np.sqrt(0.5 * freedom * variances * stats.invgamma.ppf(middles, shape)[:, None])
    return float(np.mean(mixture.means_[k] * (1.0 / (1.0 + sigma)).mean(axis=0)))


def draw_r(mixture: BayesianGaussianMixture, k: int, rng: np.random.Generator) -> Array:
    """Draws of r_k: Sigma from the inverse Wishart distribution, mu given Sigma from the normal."""
    freedom, n_detectors = mixture.degrees_of_freedom_[k], mixture.means_.shape[1]
    wishart = stats.invwishart(freedom, freedom * mixture.covariances_[k])
    Sigma = wishart.rvs(N_DRAWS, random_state=rng).reshape(N_DRAWS, n_detectors, n_detectors)
    noise = np.linalg.cholesky(Sigma) @ rng.standard_normal((N_DRAWS, n_detectors, 1))
    mu = mixture.means_[k] + noise[..., 0] / np.sqrt(mixture.mean_precision_[k])
    return (mu / (1.0 + np.sqrt(np.diagonal(Sigma, axis1=1, axis2=2)))).mean(axis=1)


if __name__ == "__main__":
    stored = json.loads(GOLDEN.read_text(encoding="utf-8")) if GOLDEN.exists() else {}
    for name in sys.argv[1:] or N_RUNS:
        if name in stored:
            continue
        with np.load(Path(os.environ["GAMMAGMM_DATA"]) / "scores" / f"{name}.npz") as archive:
            scores = archive["S"]
        runs = [plain_run(scores, seed) for seed in range(N_RUNS[name])]
        for run in runs[N_STARTS[name] :]:
            del run["start"]
        stored[name] = runs
        lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(stored[key])}" for key in stored)
        GOLDEN.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
