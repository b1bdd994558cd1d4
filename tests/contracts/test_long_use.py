"""Repeated fits, and fits in threads, forked and spawned processes, and workers of joblib."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from gammagmm import GammaGMM
from gammagmm.errors import GammaGMMWarning
from tests.support.random_tables import grouped_scores
from tests.support.repeated_fits import fit_repeatedly

ROOT = Path(__file__).parents[2]

# A separate file, because spawn imports the main module again. The fits in this process come first,
# with one job and with two: a forked child that inherits a lock or needs a thread would hang.
SCRIPT = """
import json, multiprocessing, warnings
import numpy as np
from joblib import Parallel, delayed
from gammagmm import GammaGMM
from gammagmm.errors import GammaGMMWarning
from tests.support.random_tables import grouped_scores


def answer(seed, n_jobs=2):
    scores = grouped_scores(300, 3, np.random.default_rng(seed))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", GammaGMMWarning)
        estimator = GammaGMM("precomputed", n_components=8, n_runs=2, n_draws=100, max_restarts=2)
        estimator.set_params(p_high=0.3, random_state=seed, n_jobs=n_jobs).fit(scores)
    return [estimator.posterior_.mean, estimator.labels_.tolist()]


def detectors(timeout):
    X = np.random.default_rng(0).normal(size=(13_000, 3))  # enough for workers
    estimator = GammaGMM(["KNN", "HBOS"], n_components=5, n_runs=1, max_restarts=1, n_jobs=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", GammaGMMWarning)
        try:
            estimator.set_params(random_state=0, detector_timeout=timeout).fit(X)
        except ValueError as error:
            return f"{type(error).__name__}: {error}"
    return estimator.fit_.detector_names


def in_pool(method, function, arguments):
    with multiprocessing.get_context(method).Pool(1) as pool:
        return pool.map_async(function, arguments).get(60)


def in_joblib(backend):
    return Parallel(n_jobs=2, backend=backend)(delayed(answer)(seed) for seed in (0, 1))


if __name__ == "__main__":
    print(json.dumps({
        "alone": [answer(0, None), answer(1)],
        "fork": in_pool("fork", answer, [0, 1]),
        "spawn": in_pool("spawn", answer, [0, 1]),
        "loky": in_joblib("loky"),
        "threading": in_joblib("threading"),
        "multiprocessing": in_joblib("multiprocessing"),
        "detectors": in_pool("fork", detectors, [None, 60.0]),
    }))
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """The answers of fits in processes of each kind; a fit that hangs fails."""
    path = tmp_path_factory.mktemp("long_use") / "script.py"
    path.write_text(SCRIPT, encoding="utf-8")
    # The script forks a process that has threads; newer versions of Python warn about it.
    command = [sys.executable, "-W", "ignore::DeprecationWarning", str(path)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}
    options = {"capture_output": True, "text": True, "timeout": 240, "check": False}
    done = subprocess.run(command, cwd=path.parent, env=environment, **options)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["fork", "spawn", "loky", "threading", "multiprocessing"])
def test_a_worker_gives_the_same_answer(answers, kind):
    first, second = answers["alone"]
    assert first[0] > 0.0
    assert first != second
    assert answers[kind] == answers["alone"]


@pytest.mark.long
def test_detectors_in_a_worker_that_may_not_start_processes(answers):
    with_n_jobs, with_timeout = answers["detectors"]
    assert with_n_jobs == ["KNN", "HBOS"]
    assert with_timeout.startswith("DetectorError: Only 0 of 2 detectors gave usable scores")
    assert (
        "it must run in a separate process, but a daemonic worker cannot start one" in with_timeout
    )


def fitted(seed):
    scores = grouped_scores(200 + 100 * seed, 4, np.random.default_rng(seed))
    estimator = GammaGMM("precomputed", n_components=8, n_runs=2, n_draws=100, max_restarts=2)
    return estimator.set_params(p_high=0.3, random_state=seed).fit(scores)


@pytest.mark.usefixtures("two_threads")
def test_threads_fitting_at_once_each_get_their_own_answer():
    with warnings.catch_warnings():
        # Which runs have a solution does not matter here; warning filters are global.
        warnings.simplefilter("ignore", GammaGMMWarning)
        alone = [fitted(seed) for seed in (0, 1, 2)]
        with ThreadPoolExecutor(2) as threads:
            together = list(threads.map(fitted, [0, 1, 2, 0, 1, 2]))
    assert len({one.decision_scores_[0] for one in alone}) == 3
    for expected, found in zip(alone + alone, together, strict=True):
        np.testing.assert_array_equal(found.scores_, expected.scores_)
        np.testing.assert_array_equal(found.labels_, expected.labels_)
        # To the bit: BLAS computes such small products in the thread that calls it.
        assert found.posterior_.mean == expected.posterior_.mean
        np.testing.assert_array_equal(found.posterior_.betas.a, expected.posterior_.betas.a)


@pytest.mark.long
@pytest.mark.usefixtures("in_workers", "two_threads")
def test_fits_leave_threads_and_open_files_as_they_were():
    first, second = fit_repeatedly(4, 2), fit_repeatedly(4, 2)
    assert second["open_files"] <= first["open_files"]
    assert second["threads"] <= first["threads"]
