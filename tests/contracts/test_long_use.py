"""Fits side by side and inside other people's processes: threads, fork, spawn, joblib, pools."""

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
from stress.soak import soak
from stress.starts import grouped_scores

from gammagmm import GammaGMM
from gammagmm.errors import GammaGMMWarning

ROOT = Path(__file__).parents[2]

# A file of its own, since spawn runs the main module anew. Fits come first, on one thread and on
# two: a child of fork that inherits a lock or counts on a thread would hang.
SCRIPT = """
import json, multiprocessing, warnings
import numpy as np
from joblib import Parallel, delayed
from gammagmm import GammaGMM
from gammagmm.errors import GammaGMMWarning
from stress.starts import grouped_scores


def answer(seed, n_jobs=2):
    scores = grouped_scores(300, 3, np.random.default_rng(seed))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", GammaGMMWarning)
        estimator = GammaGMM("precomputed", n_components=8, n_runs=2, n_draws=100, max_restarts=2)
        estimator.set_params(p_high=0.3, random_state=seed, n_jobs=n_jobs).fit(scores)
    return [estimator.posterior_.mean, estimator.labels_.tolist()]


def detectors(timeout):
    X = np.random.default_rng(0).normal(size=(80, 3))
    estimator = GammaGMM(["KNN", "HBOS"], n_components=5, n_runs=1, max_restarts=1, n_jobs=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", GammaGMMWarning)
        try:
            estimator.set_params(random_state=0, detector_timeout=timeout).fit(X)
        except ValueError as error:
            return f"{type(error).__name__}: {error}"
    return estimator.detector_names_


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
    """What fits in processes of each kind answered; one that hangs fails."""
    path = tmp_path_factory.mktemp("long_use") / "script.py"
    path.write_text(SCRIPT, encoding="utf-8")
    # Fork beside threads is what is tried here; newer versions of Python warn of it.
    command = [sys.executable, "-W", "ignore::DeprecationWarning", str(path)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}
    options = {"capture_output": True, "text": True, "timeout": 240, "check": False}
    done = subprocess.run(command, cwd=path.parent, env=environment, **options)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


@pytest.mark.parametrize("kind", ["fork", "spawn", "loky", "threading", "multiprocessing"])
def test_a_worker_gives_the_same_answer(answers, kind):
    first, second = answers["alone"]
    assert first[0] > 0.0
    assert first != second
    assert answers[kind] == answers["alone"]


def test_detectors_inside_a_worker_that_may_have_no_children(answers):
    with_n_jobs, with_timeout = answers["detectors"]
    assert with_n_jobs == ["KNN", "HBOS"]
    assert with_timeout.startswith("DetectorError: 0 of 2 detectors gave usable scores")
    assert "it needs a process of its own, which a daemonic worker may not start" in with_timeout


def fitted(seed):
    scores = grouped_scores(200 + 100 * seed, 4, np.random.default_rng(seed))
    estimator = GammaGMM("precomputed", n_components=8, n_runs=2, n_draws=100, max_restarts=2)
    return estimator.set_params(p_high=0.3, random_state=seed).fit(scores)


def test_threads_fitting_at_once_each_get_their_own_answer():
    with warnings.catch_warnings():
        # Which runs have a solution is not what is asked here; filters are the process's own.
        warnings.simplefilter("ignore", GammaGMMWarning)
        alone = [fitted(seed) for seed in (0, 1, 2)]
        with ThreadPoolExecutor(2) as threads:
            together = list(threads.map(fitted, [0, 1, 2, 0, 1, 2]))
    assert len({one.decision_scores_[0] for one in alone}) == 3
    for expected, found in zip(alone + alone, together, strict=True):
        np.testing.assert_array_equal(found.scores_, expected.scores_)
        np.testing.assert_array_equal(found.labels_, expected.labels_)
        # To the bit: products as small as these BLAS makes on the thread that asks for them.
        assert found.posterior_.mean == expected.posterior_.mean
        np.testing.assert_array_equal(found.posterior_.betas.a, expected.posterior_.betas.a)


def test_fits_leave_threads_and_open_files_as_they_were():
    first, second = soak(n_fits=4, n_warm_up=2), soak(n_fits=4, n_warm_up=2)
    assert second["open_files"] <= first["open_files"]
    assert second["threads"] <= first["threads"]
