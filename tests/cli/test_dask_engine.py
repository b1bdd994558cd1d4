"""``gammagmm estimate --engine dask`` through the real command, on real clusters."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from gammagmm import GammaGMM, GammaPosterior
from gammagmm.datasets import make_contaminated
from gammagmm.errors import ClusterError
from tests.support.command_line import COMMAND, gammagmm

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
pytest.importorskip("dask.distributed")

pytestmark = pytest.mark.long

QUICK = ("--engine", "dask", "--detectors", "KNN,LOF,HBOS", "--runs", "1", "--jobs", "2")
# Otherwise a test waits half a minute for a scheduler that is lost.
IMPATIENT = os.environ | {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "2s"}


def estimate(*arguments):
    return gammagmm("estimate", *arguments, env=IMPATIENT)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two Parquet files of numbers, with a key."""
    place = tmp_path_factory.mktemp("parquet")
    data = make_contaminated(200, 4, 0.05, "clustered", random_state=2)
    frame = pd.DataFrame(data.X, columns=list("abcd"))
    frame["key"] = [f"=row {i}" for i in range(len(frame))]
    frame[:120].to_parquet(place / "0.parquet")
    frame[120:].reset_index(drop=True).to_parquet(place / "1.parquet")
    return place


def test_a_pattern_of_files_is_estimated_on_a_local_cluster(folder, tmp_path):
    labels, posterior = tmp_path / "labels", tmp_path / "posterior.json"
    files = ("--labels", labels, "--posterior", posterior)
    done = estimate(folder / "*.parquet", *QUICK, "--id", "key", "--json", *files)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^dashboard: http://\S+/status$", done.stderr, re.MULTILINE)
    parts = [pd.read_parquet(folder / f"{i}.parquet") for i in (0, 1)]
    rows = pd.concat(parts, ignore_index=True)
    here = GammaGMM(["KNN", "LOF", "HBOS"], n_runs=1, random_state=0).fit(rows[list("abcd")])
    answer = json.loads(done.stdout)
    assert answer["posterior"]["mean"] == pytest.approx(here.posterior_.mean, rel=1e-8)
    assert answer["n_flagged"] == here.labels_.sum()
    assert GammaPosterior.load(posterior).mean == pytest.approx(here.posterior_.mean, rel=1e-8)
    written = pd.read_parquet(labels)
    assert written.index.tolist() == rows["key"].tolist()
    np.testing.assert_array_equal(written["label"], here.labels_)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["labels", "posterior.json"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--report", "r.html"], "--report needs the rows in memory"),
        (["--missing", "impute"], "--missing impute needs the rows in memory"),
        (["--truth", "a"], "--truth needs the rows in memory"),
        (["--scheduler", "tcp://x", "--engine", "memory"], "Add --engine dask"),
        (["--engine", "spark"], "--engine must be memory or dask"),
    ],
)
def test_options_that_dask_does_not_have_are_refused_before_the_work(folder, arguments, words):
    done = estimate(folder / "0.parquet", "--engine", "dask", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 2


@pytest.fixture
def scheduler():
    """A real scheduler and one worker, as processes; gives the address and the scheduler."""
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
    options = ["--port", "0", "--no-dashboard", "--host", "127.0.0.1"]
    process = subprocess.Popen(
        [*command, *options], stderr=subprocess.PIPE, text=True, env=IMPATIENT
    )
    address = next(
        match.group() for line in process.stderr if (match := re.search(r"tcp://\S+", line))
    )
    worker = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1",
         "--no-dashboard", "--death-timeout", "5"],
        stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    yield address, process
    os.killpg(worker.pid, signal.SIGKILL)
    process.kill()
    worker.wait()
    process.communicate()


def test_a_lost_scheduler_is_two_lines_and_leaves_no_files(folder, tmp_path, scheduler):
    address, process = scheduler
    command = [COMMAND, "estimate", str(folder / "*.parquet"), *QUICK, "--drop", "key"]
    # So many runs that the fit does not finish before the scheduler is killed.
    asked = ["--scheduler", address, "--runs", "500", "--labels", str(tmp_path / "labels")]
    posterior = ["--posterior", str(tmp_path / "posterior.json")]
    with subprocess.Popen(
        [*command, *asked, *posterior], stderr=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True, env=IMPATIENT,
    ) as running:  # fmt: skip
        assert running.stderr.readline().startswith("dashboard:")
        time.sleep(3.0)
        assert running.poll() is None
        process.kill()
        out, err = running.communicate(timeout=120)
    assert (running.returncode, out) == (4, ""), err
    what, todo = err.splitlines()[-2:]
    assert what.startswith("gammagmm: The connection to the Dask scheduler is lost")
    assert todo == "  Start the cluster and fit again."
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


def test_a_scheduler_lost_while_detectors_are_fitted(scheduler):
    """Dask itself would continue with threads of this process."""
    address, process = scheduler

    def kill(name, state, seconds):
        process.kill()
        while client.status == "running":
            time.sleep(0.1)

    rows = da.from_array(np.random.default_rng(0).normal(size=(300, 4)), chunks=(100, 4))
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "2s"}),
        dask.distributed.Client(address) as client,
    ):
        client.wait_for_workers(1, timeout=30)
        with pytest.raises(ClusterError, match="connection to the Dask scheduler is lost"):
            GammaGMM(["KNN"], n_runs=1, progress=kill).fit(rows)


def test_a_folder_with_other_files_is_not_replaced(folder, tmp_path):
    asked = (folder / "*.parquet", *QUICK, "--id", "key", "--force", "--labels")
    done = estimate(*asked, folder)
    assert done.returncode == 2
    assert "contains files that gammagmm did not write" in done.stderr
    answers = tmp_path / "part-00000.parquet"
    answers.write_bytes((folder / "0.parquet").read_bytes())
    done = estimate(answers, *asked[1:], tmp_path)
    assert done.returncode == 2
    assert "contains the input files" in done.stderr
    assert answers.exists()
    done = estimate(folder / "0.parquet", *QUICK, "--missing", "drop", "--labels", tmp_path / "x")
    assert done.returncode == 2
    assert "Add --id" in done.stderr


def test_no_scheduler_at_the_address(folder):
    done = estimate(folder / "0.parquet", *QUICK, "--scheduler", "tcp://127.0.0.1:9")
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr.splitlines() == [
        "gammagmm: No Dask scheduler answers at tcp://127.0.0.1:9.",
        "  Check the address, and check that the scheduler is running.",
    ]


def test_files_that_cannot_be_read(folder, tmp_path):
    done = estimate(tmp_path / "*.parquet", *QUICK)
    assert done.returncode == 2
    assert "no file matches it" in done.stderr
    (tmp_path / "text.parquet").write_text("a,b\n1,2\n")
    done = estimate(tmp_path / "text.parquet", *QUICK)
    assert done.returncode == 2
    assert "cannot be read as Parquet" in done.stderr
    done = estimate(folder / "0.parquet", *QUICK, "--use", "key")
    assert done.returncode == 2
    assert "these columns do not: key" in done.stderr
    done = estimate(folder / "0.parquet", *QUICK, "--drop", "kye")
    assert done.returncode == 2
    assert "has no column 'kye'; similar names: 'key'" in done.stderr
