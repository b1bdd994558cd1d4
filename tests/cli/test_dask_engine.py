"""The commands with ``--engine dask``, on real clusters."""

from __future__ import annotations

import csv
import json
import logging
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
from tests.support.command_line import COMMAND, gammagmm, gammagmm_here

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("dask.distributed")

pytestmark = pytest.mark.long

DETECTORS = ("--detectors", "KNN,LOF,HBOS", "--runs", "1")
QUICK = ("--engine", "dask", *DETECTORS, "--jobs", "2")
# Otherwise a test waits half a minute for a scheduler that is lost.
IMPATIENT = os.environ | {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "2s"}
N_ROWS, N_SAMPLED = 400, 150


def estimate(*arguments):
    return gammagmm("estimate", *arguments, env=IMPATIENT)


@pytest.fixture(scope="module")
def frame():
    """Numbers with gaps, texts, a key and the truth."""
    data = make_contaminated(N_ROWS, 4, 0.05, "clustered", random_state=2)
    frame = pd.DataFrame(data.X, columns=list("abcd"))
    frame["key"] = [f"=row {i}" for i in range(N_ROWS)]
    frame["shop"] = np.where(frame["a"] > 0.0, "north", "south")
    frame["is_fraud"] = data.y
    return frame


def write(place, frame):
    """Three Parquet files, one of them with two row groups; the names of the folder's files."""
    place.mkdir(exist_ok=True)
    for i, part in enumerate((frame[:120], frame[120:130], frame[130:])):
        rows = part.reset_index(drop=True)
        rows.to_parquet(place / f"{i}.parquet", row_group_size=140)
    return place / "*.parquet"


@pytest.fixture(scope="module")
def folder(tmp_path_factory, frame):
    place = tmp_path_factory.mktemp("parquet")
    write(place, frame)
    return place


@pytest.fixture(scope="module")
def with_gaps(tmp_path_factory, frame):
    frame = frame.copy()
    frame.loc[frame.index % 9 == 4, "b"] = np.nan
    return write(tmp_path_factory.mktemp("gaps"), frame)


@pytest.fixture(scope="module")
def address():
    """A real cluster of two worker processes."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0"
    ) as cluster:
        yield cluster.scheduler_address


@pytest.fixture
def run(address):
    """Function that runs a command on the cluster, in this process, or in memory."""

    def run(command, *arguments, engine="dask", stdin="", code=0):
        place = ("--engine", "dask", "--scheduler", address) if engine == "dask" else ()
        done = gammagmm_here(command, *arguments, *place, stdin=stdin)
        assert done.returncode == code, done.stderr
        return done

    yield run
    logging.disable(logging.NOTSET)  # the command silences Dask when a connection is lost


@pytest.fixture
def small_sample(monkeypatch):
    """Files of more rows than a sample."""
    monkeypatch.setattr("gammagmm.cli.training_rows.MAX_ROWS", N_SAMPLED)


@pytest.fixture
def numbers(frame):
    """Numbers of the rows that a fit in Python samples with the seed 0."""
    rows = da.from_array(frame[list("abcd")].to_numpy(), chunks=(100, 4))
    with dask.config.set(scheduler="synchronous"):
        fitted = GammaGMM(["KNN", "LOF", "HBOS"], n_runs=1, max_rows=N_SAMPLED, random_state=0).fit(
            rows
        )
    return fitted.fit_.sample.numbers


def here(frame):
    """The fit of rows in memory with the options of `DETECTORS`."""
    return GammaGMM(["KNN", "LOF", "HBOS"], n_runs=1, random_state=0).fit(frame[list("abcd")])


DROP = ("--drop", "key", "--drop", "shop", "--drop", "is_fraud")
OPTIONS = {
    "plain": DROP,
    "id": ("--id", "key", "--drop", "shop"),
    "guesses": ("--drop", "shop"),
    "truth": ("--truth", "is_fraud", "--drop", "shop"),
    "encode": ("--drop", "key", "--drop", "is_fraud"),
    "by": ("--by", "shop", *DROP[:2], *DROP[4:]),
}


class TestEstimate:
    @pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
    def test_files_within_the_sample_give_the_answer_of_memory(self, options, folder, run):
        asked = (folder / "*.parquet", *DETECTORS, "--json", *options)
        # In memory, patterns are the shell's work.
        files = sorted(folder.glob("*.parquet"))
        there = json.loads(run("estimate", *asked).stdout)
        memory = json.loads(run("estimate", *files, *asked[1:], engine="memory").stdout)
        for answer in (there, memory):
            for name in ("source", "input", "seconds", "digest", "notes", "detectors", "file"):
                answer.pop(name, None)
            answer["lines"].pop()  # the next command, which names the engine and the files
        assert there == memory

    def test_gaps(self, with_gaps, run):
        files = sorted(with_gaps.parent.glob(with_gaps.name))
        asked = (*DETECTORS, "--json", *DROP, "--missing", "impute")
        there = json.loads(run("estimate", with_gaps, *asked).stdout)
        memory = json.loads(run("estimate", *files, *asked, engine="memory").stdout)
        assert there["posterior"] == memory["posterior"]
        assert there["n_flagged"] == memory["n_flagged"]
        assert there["n_rows"] == memory["n_rows"]
        done = run("estimate", with_gaps, *DETECTORS, *DROP, "--strict", code=2)
        assert "'b'" in done.stderr

    def test_the_name_of_the_files_is_kept(self, folder, run, tmp_path):
        files, kept = folder / "*.parquet", tmp_path / "k.fit"
        answer = run("estimate", files, *DETECTORS, *DROP, "--json", "--save", kept)
        again = run("estimate", "--from", kept, "--json", engine="memory")
        sources = [json.loads(each.stdout)["source"] for each in (answer, again)]
        assert sources == [str(files)] * 2

    @pytest.mark.usefixtures("small_sample")
    def test_a_sample_is_that_of_python(self, folder, run, frame, numbers, tmp_path):
        labels = tmp_path / "labels"
        asked = (folder / "*.parquet", *DETECTORS, "--json", *DROP, "--out", labels)
        answer = json.loads(run("estimate", *asked).stdout)
        fitted = here(frame.iloc[numbers])
        assert answer["posterior"]["mean"] == fitted.posterior_.mean
        assert answer["n_flagged"] == fitted.labels_.sum()
        assert answer["n_rows"] == N_SAMPLED
        written = pd.read_parquet(labels)
        assert written["id"].tolist() == [str(i + 1) for i in range(N_ROWS)]
        scores = fitted.decision_function(frame[list("abcd")])
        scores[numbers] = fitted.decision_scores_
        np.testing.assert_array_equal(written["score"], scores)
        np.testing.assert_array_equal(written["label"].iloc[numbers], fitted.labels_)
        flagged = written["label"] == 1
        assert (written["reason"][~flagged] == "").all()
        assert (written["reason"][flagged] != "").all()
        assert written["score_KNN"].notna().all()

    @pytest.mark.usefixtures("small_sample")
    def test_rows_are_sorted_and_named(self, folder, run, tmp_path):
        labels = tmp_path / "labels"
        asked = (folder / "*.parquet", *DETECTORS, "--id", "key", "--drop", "shop")
        run("estimate", *asked, "--out", labels, "--sort")
        written = pd.read_parquet(labels)
        keys = list(zip(-written["probability"], -written["score"], strict=True))
        assert keys == sorted(keys)
        assert set(written["id"]) == {f"=row {i}" for i in range(N_ROWS)}

    @pytest.mark.usefixtures("small_sample")
    def test_other_files(self, folder, run, tmp_path, frame, numbers):
        made = [tmp_path / name for name in ("r.html", "p.json", "p.svg")]
        options = zip(("--report", "--posterior", "--picture"), made, strict=True)
        asked = (folder / "*.parquet", *DETECTORS, *DROP, *(x for pair in options for x in pair))
        run("estimate", *asked)
        assert all(path.stat().st_size > 100 for path in made)
        assert GammaPosterior.load(made[1]).mean == here(frame.iloc[numbers]).posterior_.mean

    def test_columns(self, folder, run):
        there = run("estimate", folder / "*.parquet", "--columns").stdout
        files = sorted(folder.glob("*.parquet"))
        memory = run("estimate", *files, "--columns", engine="memory").stdout
        pairs = zip(there.splitlines(), memory.splitlines(), strict=True)
        # A row of a sample has no place in a file.
        assert [a for a, b in pairs if a != b and ".parquet" not in a + b] == []

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            (lambda rows: rows.drop(columns="c"), "'c'"),
            (lambda rows: rows.assign(e=1.0), "'e'"),
            (lambda rows: rows[["b", "a", *rows.columns[2:]]], "order"),
            (lambda rows: rows.assign(c=rows["c"].map("{:.3f}".format)), "c has the type"),
            (lambda rows: rows.assign(c=rows["c"].astype("float32")), "c has the type"),
        ],
    )
    def test_a_file_with_other_columns_is_refused(self, change, words, frame, tmp_path, run):
        files = write(tmp_path, frame)
        change(frame[120:130].reset_index(drop=True)).to_parquet(tmp_path / "1.parquet")
        done = run("estimate", files, *DETECTORS, code=2)
        assert str(tmp_path / "1.parquet") in done.stderr
        assert words in done.stderr.replace("'c'", "c" if "type" in words else "'c'")


def answer_sheet(path, truth):
    """Fill in the sheet; the numbers of its rows, from 0."""
    with path.open(newline="") as file:
        lines = list(csv.reader(file))
    rows = [int(line[0]) - 1 for line in lines[1:]]
    for line, row in zip(lines[1:], rows, strict=True):
        line[-1] = str(truth[row])
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(lines)
    return rows


@pytest.mark.usefixtures("small_sample")
class TestLabels:
    def test_rows_to_label_and_their_answers(self, folder, run, frame, numbers, tmp_path):
        files, truth = folder / "*.parquet", frame["is_fraud"].to_numpy()
        share, find = tmp_path / "share.csv", tmp_path / "find.csv"
        run("label", "--sheet-only", files, *DETECTORS, *DROP, "--n", "40", "--out", share)
        drawn = answer_sheet(share, truth)
        assert len(drawn) == 40
        assert np.isin(drawn, numbers).all()
        more = ("--purpose", "find", "--n", "15", "--labels", share, "--out", find)
        run("label", "--sheet-only", files, *DETECTORS, *DROP, *more)
        picked = answer_sheet(find, truth)
        assert np.setdiff1d(picked, numbers).size  # rows of all files
        with find.open(newline="") as file:
            for line in csv.DictReader(file):
                row = frame.iloc[int(line["row"]) - 1]
                assert float(line["a"]) == pytest.approx(row["a"])
        asked = ("--labels", share, "--labels", find, "--json", "--fail-above", "0.9")
        labels = tmp_path / "labels"
        done = run("estimate", files, *DETECTORS, *DROP, *asked, "--out", labels)
        answer = json.loads(done.stdout)
        rows = da.from_array(frame[list("abcd")].to_numpy(), chunks=(100, 4))
        fitted = GammaGMM(["KNN", "LOF", "HBOS"], n_runs=1, max_rows=N_SAMPLED, random_state=0)
        with dask.config.set(scheduler="synchronous"):
            fitted.fit(rows).update(drawn, truth[drawn])
            fitted.update(picked, truth[picked], purpose="find")
        assert answer["posterior"]["mean"] == fitted.posterior_.mean
        written = pd.read_parquet(labels)
        known = sorted({*drawn, *picked})
        np.testing.assert_array_equal(written["label"].iloc[known], truth[known])
        below = ("--labels", share, "--fail-above", "0.0")
        run("estimate", files, *DETECTORS, *DROP, *below, code=3)

    def test_a_list_of_known_rows(self, folder, run, frame, tmp_path):
        """Rows of the whole table, most of them outside the sample."""
        known = tmp_path / "known.csv"
        rows = range(1, N_ROWS, 9)
        lines = [f"{row + 1},{frame['is_fraud'][row]}" for row in rows]
        known.write_text("\n".join(["row,anomaly", *lines]))
        asked = (folder / "*.parquet", *DETECTORS, *DROP, "--known", known, "--json")
        labels = tmp_path / "labels"
        run("estimate", *asked, "--out", labels)
        written = pd.read_parquet(labels)
        np.testing.assert_array_equal(written["label"].iloc[rows], frame["is_fraud"].iloc[rows])

    def test_questions_in_the_terminal(self, folder, run, tmp_path):
        path = tmp_path / "sheet.csv"
        asked = ("--purpose", "find", "--n", "3", "--out", path, "--terminal")
        done = run("label", folder / "*.parquet", *DETECTORS, *DROP, *asked, stdin="y\nn\nn\nq\n")
        assert "of 150 sampled rows (of 400)" in done.stdout
        with path.open(newline="") as file:
            assert [line["anomaly"] for line in csv.DictReader(file)] == ["1", "0", "0"]


@pytest.fixture(scope="module")
def kept(tmp_path_factory, folder):
    path = tmp_path_factory.mktemp("kept") / "rows.fit"
    files = sorted(folder.glob("*.parquet"))
    asked = (*files, *DETECTORS, "--id", "key", "--drop", "shop", "--save", path)
    done = gammagmm_here("estimate", *asked)
    assert done.returncode == 0, done.stderr
    return path


class TestKeptFits:
    @pytest.mark.usefixtures("small_sample")
    def test_fit(self, folder, run, tmp_path, frame, numbers):
        path = tmp_path / "rows.fit"
        run("estimate", folder / "*.parquet", *DETECTORS, *DROP, "--save", path)
        loaded = GammaGMM.load(path)
        assert loaded.posterior_.mean == here(frame.iloc[numbers]).posterior_.mean
        np.testing.assert_array_equal(loaded.fit_.sample.numbers, numbers)
        again = run("estimate", "--from", path, "--json", engine="memory")
        assert json.loads(again.stdout)["posterior"]["mean"] == loaded.posterior_.mean
        done = run("predict", path, folder / "*.parquet", "--json")
        assert json.loads(done.stdout)["n_rows"] == N_ROWS

    def test_predict(self, kept, folder, run, tmp_path):
        there, memory = tmp_path / "there", tmp_path / "memory.csv"
        files = sorted(folder.glob("*.parquet"))
        done = run("predict", kept, folder / "*.parquet", "--json", "--out", there)
        asked = ("--json", "--out", memory)
        expected = run("predict", kept, *files, *asked, engine="memory")
        answers = [json.loads(each.stdout) for each in (done, expected)]
        for name in ("n_rows", "n_flagged", "threshold", "flagged"):
            assert answers[0][name] == answers[1][name]
        written, rows = pd.read_parquet(there), pd.read_csv(memory)
        np.testing.assert_array_equal(written["score"], rows["score"])
        np.testing.assert_array_equal(written["label"], rows["label"])
        text = run("predict", kept, folder / "*.parquet").stdout
        assert text == run("predict", kept, *files, engine="memory").stdout

    def test_monitor(self, kept, folder, run, tmp_path):
        paths = [tmp_path / name for name in ("there.json", "memory.json")]
        files = sorted(folder.glob("*.parquet"))
        by = ("--by", "shop", "--period", "monday", "--json")
        done = run("monitor", kept, folder / "*.parquet", *by, "--history", paths[0])
        memory = run("monitor", kept, *files, *by, "--history", paths[1], engine="memory")
        answers = [json.loads(each.stdout) for each in (done, memory)]
        assert answers[0]["periods"] == answers[1]["periods"]
        histories = [json.loads(path.read_text()) for path in paths]
        for period in histories[1]["periods"]:  # the columns of rows on Dask are not counted
            assert set(period.pop("columns")) == {"a", "b", "c", "d"}
        for period in histories[0]["periods"]:
            assert not period.pop("columns", {})
        assert histories[0] == histories[1]  # digests of the rows, too
        # The same rows again, in memory, are refused.
        again = ("--by", "shop", "--period", "tuesday", "--history", paths[0])
        done = run("monitor", kept, *files, *again, engine="memory", code=2)
        assert "monday" in done.stderr


def test_a_pattern_of_files_is_estimated_on_a_local_cluster(folder, frame, tmp_path):
    labels, posterior = tmp_path / "labels", tmp_path / "posterior.json"
    files = ("--out", labels, "--posterior", posterior)
    done = estimate(folder / "*.parquet", *QUICK, *DROP, "--json", *files)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^dashboard: http://\S+/status$", done.stderr, re.MULTILINE)
    fitted = here(frame)
    answer = json.loads(done.stdout)
    assert answer["posterior"]["mean"] == pytest.approx(fitted.posterior_.mean, rel=1e-8)
    assert answer["n_flagged"] == fitted.labels_.sum()
    assert GammaPosterior.load(posterior).mean == answer["posterior"]["mean"]
    written = pd.read_parquet(labels)
    np.testing.assert_array_equal(written["label"], fitted.labels_)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["labels", "posterior.json"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--scheduler", "tcp://x", "--engine", "memory"], "Add --engine dask"),
        (["--engine", "spark"], "must be memory or dask"),
        (["--missing", "drop"], "Leave out --missing drop"),
    ],
)
def test_options_of_the_engine_are_refused_before_the_work(folder, arguments, words):
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


def test_a_lost_scheduler_is_two_lines_and_leaves_no_part_of_a_file(folder, tmp_path, scheduler):
    address, process = scheduler
    command = [COMMAND, "estimate", str(folder / "*.parquet"), *QUICK, *DROP]
    # So many runs that the fit does not finish before the scheduler is killed.
    asked = ["--scheduler", address, "--runs", "500", "--out", str(tmp_path / "labels")]
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
    assert running.returncode == 4, err
    assert "rows are flagged" in out  # the fit of the sample needs no cluster
    what, todo = err.splitlines()[-2:]
    assert what.startswith("gammagmm: The connection to the Dask scheduler is lost")
    assert todo == "  Start the cluster and fit again."
    assert "Traceback" not in err
    assert [path.name for path in tmp_path.iterdir()] == ["posterior.json"]


def test_a_scheduler_lost_while_detectors_are_fitted(scheduler, frame):
    """The fit has its sample; Dask itself would read the table with threads of this process."""
    address, process = scheduler

    def kill(name, state, seconds):
        process.kill()
        while client.status == "running":
            time.sleep(0.1)

    rows = da.from_array(frame[list("abcd")].to_numpy(), chunks=(100, 4))
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "2s"}),
        dask.distributed.Client(address) as client,
    ):
        client.wait_for_workers(1, timeout=30)
        fitted = GammaGMM(
            ["KNN", "LOF", "HBOS"], n_runs=1, max_rows=200, progress=kill, random_state=0
        ).fit(rows)
        for ask in (
            lambda: fitted.suggest(5, purpose="find"),
            lambda: fitted.update(np.arange(20), [0] * 20),
        ):
            with pytest.raises(ClusterError, match="connection to the Dask scheduler is lost"):
                ask()


def test_a_folder_with_other_files_is_not_replaced(folder, tmp_path):
    asked = (folder / "*.parquet", *QUICK, "--id", "key", "--force", "--out")
    done = estimate(*asked, folder)
    assert done.returncode == 2
    assert "contains files that gammagmm did not write" in done.stderr
    answers = tmp_path / "part-00000.parquet"
    answers.write_bytes((folder / "0.parquet").read_bytes())
    done = estimate(answers, *asked[1:], tmp_path)
    assert done.returncode == 2
    assert "contains the input files" in done.stderr
    assert answers.exists()


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
    done = estimate(folder / "0.parquet", *QUICK, "--drop", "kye")
    assert done.returncode == 2
    assert "has no column 'kye'; similar names: 'key'" in done.stderr
