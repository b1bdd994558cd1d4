"""Our mixture compared with those of scikit-learn and PyThresh, in the same process.

    python benchmarks/mixture.py            iterations, E-step, steps, ten runs beside GAMGMM
    python benchmarks/mixture.py --large    ten runs beside GAMGMM and ten fits of scikit-learn

Writes benchmarks/results/mixture.json, with --large ten_runs.json.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
import warnings
from pathlib import Path

import numpy as np
from sklearn.mixture import BayesianGaussianMixture

from gammagmm import GammaGMM
from gammagmm.mixture.backends import NumpyRows, count_threads
from gammagmm.mixture.fit import begin, plain_step, start_labels
from gammagmm.mixture.m_step import MStep
from gammagmm.mixture.prior import MixturePrior
from gammagmm.mixture.score_space import fit_scaler
from gammagmm.mixture.statistics import start_moments
from gammagmm.posterior.runs import AUTO_TOL
from timing import best_seconds, in_new_process, measure

N_COMPONENTS = 100
SIZES = (1_000, 5_000, 10_000, 50_000)


def make_space(n_rows, n_detectors):
    """Rows like those of a score space: correlated columns, clusters and a long upper tail."""
    rng = np.random.default_rng(0)
    centres = 2.0 * rng.gamma(1.0, size=(12, 1)) + 0.5 * rng.normal(size=(12, n_detectors))
    spread = rng.uniform(0.1, 0.6, size=(12, n_detectors))
    cluster = rng.choice(12, size=n_rows, p=rng.dirichlet(np.ones(12)))
    rows = centres[cluster] + spread[cluster] * rng.normal(size=(n_rows, n_detectors))
    return (rows - rows.mean(axis=0)) / rows.std(axis=0)


def benchmark_scores(quick):
    """The ten published scores of PageBlocks; made scores in a trial."""
    if quick:
        return np.exp(make_space(120, 3))
    from experiments.datasets import data_folder

    folder = data_folder()
    if folder is None:
        raise SystemExit("GAMMAGMM_DATA must name the folder of the benchmark datasets.")
    with np.load(folder / "scores" / "PageBlocks.npz") as archive:
        return archive["S"]


def begin_ascent(Z, labels, n_runs=1):
    """Ascents of `n_runs` runs from the same labels, and their M-step."""
    prior = MixturePrior().resolve(Z)
    whitened = prior.whiten(Z)
    rows = NumpyRows(whitened[None], count_threads())
    m_step = MStep(rows, prior)
    start = start_moments(whitened, labels, N_COMPONENTS)
    return begin(rows, np.stack([start] * n_runs), m_step), m_step


def begin_sklearn(Z, labels):
    """scikit-learn's mixture after its initialisation with the hard assignment `labels`."""
    prior = MixturePrior().resolve(Z)
    mixture = BayesianGaussianMixture(
        n_components=N_COMPONENTS,
        covariance_prior=prior.covariance,
        weight_concentration_prior=prior.concentration,
        mean_prior=np.zeros(Z.shape[1]),
    )
    resp = np.zeros((len(Z), N_COMPONENTS))
    resp[np.arange(len(Z)), labels] = 1.0
    mixture._check_parameters(Z)
    mixture._initialize(Z, resp)
    return mixture


def per_iteration(n_rows, n_detectors, n_repeats=5):
    """Milliseconds of an iteration from the same start, and the difference of the bounds."""
    Z = make_space(n_rows, n_detectors)
    (labels,) = start_labels(Z[None], N_COMPONENTS, [np.random.default_rng(0)])
    ascents, m_step = begin_ascent(Z, labels)
    theirs = begin_sklearn(Z, labels)

    def our_iteration():
        nonlocal ascents
        ascents = plain_step(ascents, m_step, 0.0)
        return ascents.elbo[0]

    def their_iteration():
        log_prob_norm, log_resp = theirs._e_step(Z)
        theirs._m_step(Z, log_resp)
        return theirs._compute_lower_bound(log_resp, log_prob_norm)

    sklearn, their_bound = best_seconds(their_iteration, n_repeats)
    _, our_bound = best_seconds(our_iteration, n_repeats)
    ours, _ = best_seconds(our_iteration, 6 * n_repeats)
    return {
        "n_rows": n_rows,
        "n_detectors": n_detectors,
        "ours_ms": 1e3 * ours,
        "sklearn_ms": 1e3 * sklearn,
        "ratio": sklearn / ours,
        "bound_difference": abs(our_bound - their_bound) / abs(their_bound),
    }


def e_step(n_rows, n_detectors, n_runs, size=2048, n_repeats=10):
    """Speed of an E-step beside that of a product of two matrices, with the same threads.

    Only the operations of the two products count, 4 n K F, so the softmax lowers the speed.
    """
    Z = make_space(n_rows, n_detectors)
    labels = np.random.default_rng(0).integers(0, N_COMPONENTS, n_rows)
    ascents, _ = begin_ascent(Z, labels, n_runs)
    coefficients = ascents.state.coefficients
    seconds, _ = best_seconds(lambda: ascents.rows.statistics(coefficients), n_repeats)
    matrix = np.random.default_rng(0).normal(size=(size, size))
    product_seconds, _ = best_seconds(lambda: matrix @ matrix, n_repeats)
    speed = 4e-9 * n_rows * coefficients.size / seconds
    peak = 2e-9 * size**3 / product_seconds
    return {
        "n_rows": n_rows,
        "n_detectors": n_detectors,
        "n_runs": n_runs,
        "threads": count_threads(),
        "gflops": speed,
        "peak_gflops": peak,
        "share": speed / peak,
    }


def our_runs(scores, tol="auto", n_repeats=1):
    """Ten runs from raw scores to posterior and labels: seconds, iterations, bound and mean."""
    estimator = GammaGMM("precomputed", tol=tol, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a run that stops at max_iter is counted below
        seconds, _ = best_seconds(lambda: estimator.fit(scores), n_repeats)
    runs = estimator.fit_.runs
    return {
        "seconds": seconds,
        "iterations": sum(run.n_iter for run in runs),
        "not_converged": sum(not run.converged for run in runs),
        "mean_bound": float(np.mean([run.elbo for run in runs])),
        "posterior_mean": estimator.posterior_.mean,
    }


def compare_steps(scores):
    """Accelerated and plain steps from the same ten starts."""
    settings = {f"accelerated, {AUTO_TOL}": "auto", "plain, 0.1": 0.1, "plain, 0.001": 1e-3}
    return {name: our_runs(scores, tol) for name, tol in settings.items()}


def gamgmm(scores):
    """In a new process: seconds of one evaluation of PyThresh's GAMGMM on a file of scores."""
    from pythresh.thresholds.gamgmm import GAMGMM

    values = np.load(scores)
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {"seconds": best_seconds(lambda: GAMGMM().eval(values))[0]}


def sklearn_fits(scores, n_fits=10):
    """In a new process: seconds and iterations of ten mixtures of scikit-learn, in turn."""
    values = np.load(scores)
    Z = fit_scaler(values).transform(values)

    def fit(seed):
        return BayesianGaussianMixture(
            n_components=min(N_COMPONENTS, len(Z) - 1),
            weight_concentration_prior=0.01,
            mean_prior=np.zeros(Z.shape[1]),
            max_iter=1500,
            random_state=seed,
        ).fit(Z)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds, fitted = best_seconds(lambda: [fit(seed) for seed in range(n_fits)])
    return {"seconds": seconds, "iterations": sum(one.n_iter_ for one in fitted)}


def beside(scores, methods, limit=None):
    """Our ten runs, and what other methods need for the same scores, each with the ratio."""
    ours = our_runs(scores, n_repeats=2)
    found = {"n_rows": len(scores), "n_detectors": scores.shape[1], "ours": ours}
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "scores.npy")
        np.save(path, scores)
        for name, method in methods.items():
            theirs = in_new_process(method, scores=path, limit=limit)
            if theirs is not None:
                found[name] = theirs | {"ratio": theirs["seconds"] / ours["seconds"]}
    return found


def mixture(quick):
    """The parts that take minutes."""
    sizes, detectors = ((300,), (3,)) if quick else (SIZES, (3, 10))
    n_rows, size = (300, 200) if quick else (9_868, 2048)
    scores = benchmark_scores(quick)
    return {
        "n_components": N_COMPONENTS,
        "per_iteration": [per_iteration(n, m) for m in detectors for n in sizes],
        "e_step": [e_step(n_rows, 10, n_runs, size) for n_runs in (1, 10)],
        "steps": compare_steps(scores),
        "ten_runs": beside(scores, {"gamgmm": gamgmm}, 2.0 if quick else None),
    }


def ten_runs(quick):
    """The ten runs beside GAMGMM and scikit-learn, which takes minutes for its ten fits."""
    methods = {"gamgmm": gamgmm, "sklearn": sklearn_fits}
    return beside(benchmark_scores(quick), methods, 2.0 if quick else None)


if __name__ == "__main__":
    measure(__doc__, {"mixture": mixture}, {"ten_runs": ten_runs})
