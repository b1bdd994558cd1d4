"""Our mixture compared with those of scikit-learn and PyThresh, in the same process.

The times per iteration are from the same start on both sides; the ten complete fits are not.

    python benchmarks/mixture.py [--quick]

Writes benchmarks/results/mixture.json and mixture.svg. Compare ratios: absolute times vary on
shared machines.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
import warnings
from pathlib import Path

import numpy as np
from joblib import cpu_count
from sklearn.mixture import BayesianGaussianMixture

from gammagmm.datasets import data_folder
from gammagmm.errors import MixtureConvergenceWarning
from gammagmm.mixture.backends import NumpyRows, count_threads
from gammagmm.mixture.fit import fit_mixture, start_labels, update
from gammagmm.mixture.prior import MixturePrior
from gammagmm.mixture.score_space import fit_scaler
from gammagmm.mixture.statistics import start_statistics
from gammagmm.posterior.link import Constraints
from gammagmm.posterior.runs import fit_runs, plan_runs

RESULTS = Path(__file__).parent / "results"
N_COMPONENTS = 100
LINE = (
    "N {n_rows:>7} M {n_detectors:>2}  ours {ours:.4f} s  scikit-learn {sklearn:.4f} s  "
    "ratio {ratio:.1f}  bounds differ by {bound_gap:.1e}"
)
GROWTH = "N {n_rows:>7} M 10  {seconds:.3f} s per E-step, {extra_megabytes:.0f} MB beyond the rows"


def score_space(n_rows, n_detectors):
    """Score-like rows: correlated columns, several clusters and a long upper tail."""
    rng = np.random.default_rng(0)
    centres = 2.0 * rng.gamma(1.0, size=(12, 1)) + 0.5 * rng.normal(size=(12, n_detectors))
    spread = rng.uniform(0.1, 0.6, size=(12, n_detectors))
    cluster = rng.choice(12, size=n_rows, p=rng.dirichlet(np.ones(12)))
    rows = centres[cluster] + spread[cluster] * rng.normal(size=(n_rows, n_detectors))
    return (rows - rows.mean(axis=0)) / rows.std(axis=0)


def sklearn_start(Z, labels, prior):
    """scikit-learn's mixture after its initialisation with the hard assignment `labels`."""
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


def best_seconds(step, n_repeats):
    """Shortest of several times, the one with the least interference by other programs."""
    times = []
    for _ in range(n_repeats):
        began = time.perf_counter()
        step()
        times.append(time.perf_counter() - began)
    return min(times)


def our_seconds(Z, n_repeats=10):
    """Seconds of our E-step, from a random start."""
    prior = MixturePrior().resolve(Z)
    labels = np.random.default_rng(0).integers(0, N_COMPONENTS, len(Z))
    rows = NumpyRows(prior.whiten(Z), count_threads())
    state = update(start_statistics(rows.Z, labels, N_COMPONENTS), prior)
    return best_seconds(lambda: rows.statistics(state.coefficients), n_repeats)


def seconds_per_iteration(Z, n_sklearn=10, n_ours=60):
    """Seconds per iteration, ours and scikit-learn's in turn, and the difference of the bounds."""
    prior = MixturePrior().resolve(Z)
    labels = start_labels(Z, N_COMPONENTS, np.random.default_rng(0))
    rows = NumpyRows(prior.whiten(Z), count_threads())
    state = update(start_statistics(rows.Z, labels, N_COMPONENTS), prior)
    theirs = sklearn_start(Z, labels, prior)
    bounds = {}

    def our_iteration():
        nonlocal state
        state = update(rows.statistics(state.coefficients), prior)

    def their_iteration():
        log_prob_norm, log_resp = theirs._e_step(Z)
        theirs._m_step(Z, log_resp)
        bounds["theirs"] = theirs._compute_lower_bound(log_resp, log_prob_norm)

    sklearn = best_seconds(their_iteration, n_sklearn)
    best_seconds(our_iteration, n_sklearn)
    gap = abs(state.elbo - bounds["theirs"]) / abs(bounds["theirs"])
    ours = best_seconds(our_iteration, n_ours)
    return {"ours": ours, "sklearn": sklearn, "ratio": sklearn / ours, "bound_gap": gap}


def to_convergence(Z, sklearn_seconds):
    """Seconds and iterations of our fit; those of scikit-learn are iterations x seconds."""
    began = time.perf_counter()
    mixture = fit_mixture(Z, N_COMPONENTS, random_state=0)
    ours = time.perf_counter() - began
    return {
        "fit_seconds": ours,
        "fit_iterations": mixture.n_iter,
        "fit_converged": mixture.converged,
        "sklearn_fit_seconds_computed": mixture.n_iter * sklearn_seconds,
    }


def sklearn_memory_child(n_rows, queue):
    Z = score_space(n_rows, 10)
    labels = np.random.default_rng(0).integers(0, N_COMPONENTS, n_rows)
    before = resident_megabytes("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    mixture = sklearn_start(Z, labels, MixturePrior().resolve(Z))
    _, log_resp = mixture._e_step(Z)
    mixture._m_step(Z, log_resp)
    queue.put(resident_megabytes("VmHWM") - before)


def resident_megabytes(field):
    """Memory of this process by /proc: now (VmRSS) or at its peak (VmHWM)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024


def peak_memory_child(n_rows, queue):
    Z = score_space(n_rows, 10)
    before = resident_megabytes("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    with warnings.catch_warnings():
        # Five iterations are not meant to converge.
        warnings.simplefilter("ignore", MixtureConvergenceWarning)
        fit_mixture(Z, N_COMPONENTS, max_iter=5, random_state=0)
    extra = resident_megabytes("VmHWM") - before
    queue.put({"seconds": our_seconds(Z), "extra_megabytes": extra})


def in_a_child(target, *arguments):
    """Result of `target` in a new process, so that the peak memory is that of `target`."""
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=target, args=(*arguments, queue))
    process.start()
    result = queue.get()
    process.join()
    return result


def ten_runs(scores, max_iter):
    """Our ten complete fits with n_jobs = cores, and ten of scikit-learn one after another."""
    Z = fit_scaler(scores).transform(scores)
    settings, _ = plan_runs(Z, Constraints(), MixturePrior(), N_COMPONENTS, max_iter=max_iter)
    began = time.perf_counter()
    runs = fit_runs(Z, settings, (10, 0), np.random.default_rng(0), cpu_count())
    ours = time.perf_counter() - began
    began = time.perf_counter()
    n_iter = 0
    for seed in range(10):
        theirs = BayesianGaussianMixture(
            n_components=N_COMPONENTS,
            weight_concentration_prior=0.01,
            mean_prior=np.zeros(Z.shape[1]),
            max_iter=max_iter,
            random_state=seed,
        ).fit(Z)
        n_iter += theirs.n_iter_
    sklearn = time.perf_counter() - began
    return {
        "ours": ours,
        "sklearn": sklearn,
        "ratio": sklearn / ours,
        "iterations_ours": sum(run.n_iter for run in runs),
        "iterations_sklearn": n_iter,
    }


def against_gamgmm(scores, ours):
    """One evaluation of GAMGMM of PyThresh on the same scores, compared with our ten runs."""
    import contextlib
    import io

    from pythresh.thresholds.gamgmm import GAMGMM

    began = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()):
        GAMGMM().eval(scores)
    gamgmm = time.perf_counter() - began
    return {"ours_ten_runs": ours, "gamgmm_one_run": gamgmm, "ratio": gamgmm / ours}


def draw(result, path):
    """Plot seconds per iteration against rows, on logarithmic axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    ax = figure.subplots()
    for n_detectors, style in ((3, "o--"), (10, "o-")):
        cases = [c for c in result["per_iteration"] if c["n_detectors"] == n_detectors]
        n_rows = [c["n_rows"] for c in cases]
        for name, colour in (("sklearn", "#D55E00"), ("ours", "#0072B2")):
            label = f"{'scikit-learn' if name == 'sklearn' else 'gammagmm'}, M = {n_detectors}"
            ax.loglog(n_rows, [c[name] for c in cases], style, color=colour, label=label)
    growth = result["growth"]
    ax.loglog(
        [c["n_rows"] for c in growth],
        [c["seconds"] for c in growth],
        "s:",
        color="#0072B2",
        label="gammagmm, M = 10, growth",
    )
    ax.set_xlabel("rows")
    ax.set_ylabel("seconds per iteration (K = 100)")
    ax.legend(frameon=False)
    figure.savefig(path, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes only, nothing written")
    quick = parser.parse_args().quick
    result = {"cores": cpu_count(), "n_components": N_COMPONENTS, "per_iteration": []}
    sizes = (1_000, 5_000) if quick else (1_000, 5_000, 10_000, 50_000)
    for n_detectors in (3, 10):
        for n_rows in sizes:
            case = {"n_rows": n_rows, "n_detectors": n_detectors}
            Z = score_space(n_rows, n_detectors)
            case |= seconds_per_iteration(Z)
            case |= to_convergence(Z, case["sklearn"])
            result["per_iteration"].append(case)
            print(LINE.format(**case), flush=True)
    if quick:
        return
    result["growth"] = []
    for n_rows in (10_000, 100_000, 1_000_000):
        case = {"n_rows": n_rows} | in_a_child(peak_memory_child, n_rows)
        result["growth"].append(case)
        print(GROWTH.format(**case), flush=True)
    result["sklearn_megabytes_50000"] = in_a_child(sklearn_memory_child, 50_000)
    print("scikit-learn, 50,000 rows:", result["sklearn_megabytes_50000"], "MB", flush=True)
    folder = data_folder()
    if folder is not None:
        with np.load(folder / "scores" / "PageBlocks.npz") as archive:
            scores = archive["S"]
        result["ten_runs_PageBlocks"] = ten_runs(scores, max_iter=1500)
        print("ten runs", result["ten_runs_PageBlocks"], flush=True)
        ours = result["ten_runs_PageBlocks"]["ours"]
        result["gamgmm_PageBlocks"] = against_gamgmm(scores, ours)
        print("GAMGMM", result["gamgmm_PageBlocks"], flush=True)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "mixture.json").write_text(json.dumps(result, indent=2) + "\n")
    draw(result, RESULTS / "mixture.svg")


if __name__ == "__main__":
    main()
