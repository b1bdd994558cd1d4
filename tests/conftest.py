"""Fixtures that several test files share."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from experiments.datasets import data_folder
from threadpoolctl import threadpool_limits

from gammagmm.mixture.score_space import fit_scaler
from gammagmm.posterior.components import Components, expected_anomalousness
from tests.support.demo_scores import demo_scores
from tests.support.needs import KILL

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
"""Where the benchmark datasets of a development machine are, beside the checkout."""

if not os.environ.get("GAMMAGMM_DATA") and DATA.is_dir():
    os.environ["GAMMAGMM_DATA"] = str(DATA)  # for subprocesses, too


def pytest_collection_modifyitems(items):
    """Tests of commands and long tests make small fits, whose starts may have no solution."""
    ignored = pytest.mark.filterwarnings("ignore::gammagmm.errors.UnsolvedRunsWarning")
    for item in items:
        is_long = any(item.get_closest_marker(name) for name in ("slow", "long", "browser"))
        if is_long or item.path.is_relative_to(Path(__file__).parent / "cli"):
            item.add_marker(ignored)


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    """BLAS and OpenMP on one thread where pytest has several workers: more would wait for cores.

    All libraries are there, since the tests have been collected. Processes that tests start have as
    many threads as they want. PyTorch has a number of its own: with two threads where others use
    the machine, small arrays take thirty times as much of the processor's time as with one.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ:
        yield
        return
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    with threadpool_limits(1):
        yield


@pytest.fixture
def two_threads():
    """BLAS and OpenMP on two threads, for what must not depend on them or must leave them alone."""
    with threadpool_limits(2):
        yield


@pytest.fixture
def rng():
    return np.random.default_rng(20231)


@pytest.fixture
def keep_global_random_state():
    """Restore the global generator of NumPy, which PyThresh and the networks of PyOD seed."""
    state = np.random.get_state()
    yield
    np.random.set_state(state)


@pytest.fixture
def killed_pid(tmp_path):
    """A file; the process whose id is written into it is killed."""
    path = tmp_path / "pid"

    def kill():
        while not (path.exists() and path.read_text()):
            time.sleep(0.01)
        os.kill(int(path.read_text()), KILL)

    killer = threading.Thread(target=kill)
    killer.start()
    yield path
    killer.join()


@pytest.fixture
def in_workers(monkeypatch):
    """Fit the detectors in worker processes, as for a large table, if `n_jobs` allows them."""
    monkeypatch.setattr("gammagmm.detectors.fit.MAX_VALUES_HERE", 0)


@pytest.fixture
def benchmark_scores():
    """Function that reads the raw scores (n, 10) of a benchmark set; skips without the data.

    The set "demo" is there without them: scores (367, 9) of the bundled demo data.
    """

    def read(name):
        if name == "demo":
            return demo_scores()
        folder = data_folder()
        if folder is None or not (folder / "scores" / f"{name}.npz").exists():
            pytest.skip("the benchmark scores are not available: set GAMMAGMM_DATA")
        with np.load(folder / "scores" / f"{name}.npz") as archive:
            return archive["S"]

    return read


@pytest.fixture
def benchmark_space(benchmark_scores):
    """Function that reads the score space of a benchmark set."""

    def read(name):
        scores = benchmark_scores(name)
        return fit_scaler(scores).transform(scores)

    return read


@pytest.fixture
def make_components(rng):
    """Function that makes ordered components with random means and covariances."""

    def make(counts, n_detectors=3):
        counts = np.asarray(counts, dtype=float)
        n = len(counts)
        means = np.linspace(2.5, -0.5, n)[:, None] + 0.2 * rng.normal(size=(n, n_detectors))
        roots = rng.normal(size=(n, n_detectors, n_detectors))
        covariances = 0.2 * np.eye(n_detectors) + 0.1 * roots @ roots.transpose(0, 2, 1)
        freedom = n_detectors + counts
        r = expected_anomalousness(means, covariances, freedom)
        components = Components(1.0 + counts, means, covariances, 1.0 + counts, freedom, r)
        return components[np.argsort(-r)]

    return make
