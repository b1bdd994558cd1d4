"""The fit on Dask: the same answer as in memory, whatever the blocks and whoever dies."""

from __future__ import annotations

import os
import pickle
import sys
from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from gammagmm.blocks.collection import Blocks, open_blocks

from gammagmm import GammaGMM
from gammagmm.detectors.usable import score_range
from gammagmm.errors import ClusterError, DetectorWarning, MissingExtraError
from gammagmm.mixture.score_space import fit_scaler, log_moments
from gammagmm.posterior.gamma_posterior import GammaPosterior
from tests.support.needs import KILL, needs_torch
from tests.support.solved_scores import SOLVED, grouped_scores, has_content

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("dask.distributed")

pytestmark = [
    pytest.mark.long,
    # Few iterations are enough to compare.
    pytest.mark.filterwarnings(
        "ignore:.*stopped at max_iter:gammagmm.mixture.convergence.MixtureConvergenceWarning"
    ),
]

N_ROWS = 600


@pytest.fixture(scope="module")
def client():
    """A real cluster of two worker processes."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(N_ROWS, 4))
    rows[:40] = 3.0 + 2.0 * rows[:40]
    return rng.permutation(rows)


@pytest.fixture(scope="module")
def scores():
    """Raw scores of three made-up detectors, on scales of their own."""
    return grouped_scores(np.random.default_rng(6), N_ROWS, 3) * [1.0, 50.0, 0.02]


def estimator(detectors="precomputed", **parameters):
    usual = SOLVED | {"n_runs": 2, "max_restarts": 0, "max_iter": 12, "tol": 0.05}
    return GammaGMM(detectors, random_state=3, **usual | parameters)


@pytest.fixture(scope="module")
def in_memory(scores):
    fitted = estimator().fit(scores)
    assert has_content(fitted.runs_)
    return fitted


def chunks_of(layout):
    """Lengths of blocks that add up to N_ROWS; ragged ones have empty ones among them."""
    if layout == "ragged":
        return (0, 1, 250, 0, 0, 3, 46, 300, 0)
    return tuple(len(part) for part in np.array_split(np.arange(N_ROWS), layout))


def in_blocks(rows, layout):
    """The rows as a dask array, the columns in two pieces as well."""
    chunks = chunks_of(layout)
    places = np.split(np.arange(len(rows)), np.cumsum(chunks)[:-1])
    pieces = [da.from_array(rows[place], chunks=(max(len(place), 1), 2)) for place in places]
    return da.concatenate(pieces)


def assert_same(there, here, tolerance=1e-8):
    """The same runs, posterior and cut-offs."""
    for ours, theirs in zip(here.runs_, there.runs_, strict=True):
        assert (ours.n_iter, ours.status, ours.n_restarts) == (
            theirs.n_iter,
            theirs.status,
            theirs.n_restarts,
        )
        assert theirs.elbo == pytest.approx(ours.elbo, rel=tolerance)
        np.testing.assert_allclose(theirs.weights, ours.weights, rtol=tolerance)
        for name, value in vars(ours.components).items():
            np.testing.assert_allclose(getattr(theirs.components, name), value, rtol=tolerance)
    betas, expected = there.posterior_.betas, here.posterior_.betas
    np.testing.assert_allclose(betas.weights, expected.weights, rtol=tolerance)
    assert there.posterior_.mean == pytest.approx(here.posterior_.mean, rel=tolerance)
    assert there.threshold_ == pytest.approx(here.threshold_, rel=tolerance)
    assert there.thresholds_ == pytest.approx(here.thresholds_, rel=tolerance)


@pytest.mark.parametrize("layout", [1, 7, 64, "ragged"])
def test_blocks_give_what_memory_gives(layout, client, scores, in_memory):
    fitted = estimator().fit(in_blocks(scores, layout))
    assert_same(fitted, in_memory)
    assert isinstance(fitted.scores_, da.Array)
    np.testing.assert_array_equal(fitted.scores_.compute(), scores)
    np.testing.assert_allclose(fitted.score_space_.compute(), in_memory.score_space_, atol=1e-10)
    np.testing.assert_allclose(
        fitted.decision_scores_.compute(), in_memory.decision_scores_, atol=1e-10
    )
    np.testing.assert_array_equal(fitted.labels_.compute(), in_memory.labels_)
    assert fitted.summary().n_anomalies == in_memory.labels_.sum()
    found, expected = fitted.evidence_, in_memory.evidence_
    assert found.rests_on == expected.rests_on
    assert found.means == pytest.approx(expected.means, rel=1e-8)
    assert (found.group is None) == (expected.group is None)


def test_a_group_is_counted_in_all_blocks(client):
    scores = np.random.default_rng(0).normal(size=(3000, 3))
    scores[:240] += 12.0
    here = GammaGMM("precomputed", n_runs=1, random_state=0).fit(scores).evidence_.group
    there = GammaGMM("precomputed", n_runs=1, random_state=0).fit(in_blocks(scores, 7))
    group = there.evidence_.group
    assert group.rows is None
    assert (group.n_rows, group.share) == (here.n_rows, here.share) == (240, 0.08)
    assert group.detectors == here.detectors
    assert group.depth == pytest.approx(here.depth, rel=1e-9)


def test_a_group_is_looked_for_in_a_sample(client, monkeypatch):
    monkeypatch.setattr("gammagmm.mixture.fit.START_ROWS", 1000)
    scores = np.random.default_rng(0).normal(size=(3000, 3))
    scores[:240] += 12.0
    fitted = GammaGMM("precomputed", n_runs=1, random_state=0).fit(in_blocks(scores, 7))
    assert fitted.evidence_.group.n_rows == 240
    (note,) = (note for note in fitted.notes_ if note.subject == "group")
    assert note.message == "looked for in a random sample of 1000 of 3000 rows"


def test_labels_at_another_share_are_those_of_memory(scores, in_memory):
    fitted = estimator().fit(da.from_array(scores, chunks=(170, 3)))
    for gamma in (0.003, 0.2):
        expected = in_memory.labels_at(gamma)
        np.testing.assert_array_equal(fitted.labels_at(gamma).compute(), expected)


def test_detectors_see_the_sample_that_they_see_in_memory(client, data):
    here = estimator(["KNN", "LOF"], max_fit_rows=200).fit(data)
    there = estimator(["KNN", "LOF"], max_fit_rows=200).fit(in_blocks(data, 7))
    np.testing.assert_allclose(there.scores_.compute(), here.scores_, rtol=1e-12)
    assert_same(there, here)
    assert [info.n_rows for info in there.detector_info_] == [200, 200]
    assert any("a random sample of 200 of 600 rows" in note.message for note in there.notes_)
    for rows in (data[:50], data[:50] + 0.1):
        np.testing.assert_allclose(there.predict_proba(rows), here.predict_proba(rows), atol=1e-9)


def test_all_rows_fit_linear_detectors_too_where_they_are_few(client, data):
    here = estimator(["HBOS", "PCA"]).fit(data)
    assert_same(estimator(["HBOS", "PCA"]).fit(in_blocks(data, 7)), here)


def test_new_rows_in_blocks_get_the_answers_of_rows_in_memory(client, data):
    fitted = estimator(["HBOS", "PCA"]).fit(data)
    for rows in (in_blocks(data, "ragged"), dd.from_pandas(pd.DataFrame(data), npartitions=3)):
        np.testing.assert_allclose(
            fitted.decision_function(rows).compute(), fitted.decision_function(data), rtol=1e-12
        )
        np.testing.assert_array_equal(fitted.predict(rows).compute(), fitted.predict(data))
        np.testing.assert_allclose(
            fitted.predict_proba(rows).compute(), fitted.predict_proba(data), rtol=1e-9
        )
        np.testing.assert_array_equal(
            fitted.predict(rows, costs=(1, 3)).compute(), fitted.predict(data, costs=(1, 3))
        )
    with pytest.raises(ValueError, match="X has 3 columns, but the estimator was fitted with 4"):
        fitted.predict(da.zeros((5, 3)))


def frame_of(data, npartitions=3):
    names = [f"row {i}" for i in range(len(data))]
    return dd.from_pandas(
        pd.DataFrame(data, columns=list("abcd"), index=names), npartitions=npartitions, sort=False
    )


def test_a_frame_keeps_names_and_index(client, data):
    pandas_fit = estimator(["HBOS", "PCA"]).fit(frame_of(data).compute())
    fitted = estimator(["HBOS", "PCA"]).fit(frame_of(data))
    assert fitted.feature_names_in_.tolist() == list("abcd")
    assert fitted.summary().feature_names == tuple("abcd")
    pd.testing.assert_frame_equal(fitted.to_frame().compute(), pandas_fit.to_frame())
    with pytest.raises(ValueError, match="columns of the fit, in their order"):
        fitted.predict(frame_of(data)[["b", "a", "c", "d"]])


def test_rows_of_an_array_are_numbered(client, data):
    fitted = estimator(["HBOS", "PCA"]).fit(in_blocks(data, 7))
    assert fitted.to_frame().compute().index.tolist() == list(range(N_ROWS))


def test_an_index_of_numbers_that_has_a_name_is_kept(client, data):
    """In two of the blocks it is 0, 1, ..., as an index would be that says nothing."""
    frame = pd.DataFrame(data, columns=list("abcd"))
    frame.index = pd.Index([*range(200), *range(200), *range(7, 207)], name="key")
    rows = dd.from_pandas(frame, npartitions=3, sort=False)
    answers = estimator(["HBOS", "PCA"]).fit(rows).to_frame().compute()
    pd.testing.assert_index_equal(answers.index, frame.index)


def test_what_is_no_number_is_refused_by_its_place(client, data):
    holes = data.copy()
    holes[250, 2] = np.nan
    holes[400, 1] = np.inf
    with pytest.raises(ValueError, match=r"2 values .* the first in row 250, column 2"):
        estimator().fit(in_blocks(holes, 7))
    with pytest.raises(ValueError, match="row 250, column 'c'"):
        estimator().fit(frame_of(holes))
    texts = frame_of(data).assign(e="word")
    with pytest.raises(ValueError, match="these columns do not: e"):
        estimator().fit(texts)
    with pytest.raises(ValueError, match="at least 2 rows and a column, got 1 x 4"):
        estimator().fit(da.from_array(data[:1]))
    with pytest.raises(ValueError, match="a table of rows and columns"):
        estimator().fit(da.from_array(data[:, 0]))
    with pytest.raises(ValueError, match="a table of rows and columns"):
        estimator().fit(frame_of(data)["a"])
    with pytest.raises(ValueError, match="a table of rows and columns"):
        estimator().fit(dask.delayed(data))
    with pytest.raises(TypeError, match="real numbers, got the type complex128"):
        estimator().fit(da.from_array(data + 1j))
    with pytest.raises(TypeError, match="real numbers, got the type datetime64"):
        estimator().fit(da.from_array(data.astype("datetime64[s]")))
    with pytest.raises(ValueError, match="masked array"):
        estimator().fit(da.ma.masked_greater(da.from_array(data), 2.0))


def test_numbers_of_every_kind_are_numbers(client, data):
    whole = pd.DataFrame((10 * data).round(), columns=list("abcd"))
    # Unscaled, since equal distances between whole numbers are equal to the bit.
    expected = estimator(["KNN", "LOF"], scale=None).fit(whole)
    kinds = {"a": "Int64", "b": "int32", "c": "float32", "d": "Float64"}
    blocks = dd.from_pandas(whole.astype(kinds), npartitions=3)
    fitted = estimator(["KNN", "LOF"], scale=None).fit(blocks)
    assert_same(fitted, expected)


def test_new_rows_that_are_no_numbers_get_no_answer(client, scores, in_memory):
    holes = scores.copy()
    holes[7, 1] = np.nan
    for answer in (in_memory.predict, in_memory.predict_proba, in_memory.decision_function):
        with pytest.raises(ValueError, match="1 values that are missing or not finite"):
            answer(da.from_array(holes, chunks=(100, 3))).compute()
        with pytest.raises(ValueError, match="a table of rows and columns"):
            answer(da.from_array(scores[:, 0]))


def test_tasks_on_new_rows_do_not_carry_the_detectors(client, data):
    fitted = estimator(["KNN", "LOF"]).fit(data)
    graph = fitted.predict_proba(in_blocks(data, 64)).__dask_graph__()
    whole = len(pickle.dumps(fitted.detectors_))
    assert whole > 50_000
    sizes = sorted(len(pickle.dumps(task)) for task in dict(graph).values())
    assert sum(size > 0.3 * whole for size in sizes) == 1


class Refuses:
    """A detector that fits, and cannot score new rows."""

    def fit(self, X):
        self.decision_scores_ = X[:, 0] ** 2
        return self

    def decision_function(self, X):
        raise RuntimeError("new rows are not for me")


class Infinite(Refuses):
    """One that gives no number for one of the new rows."""

    def decision_function(self, X):
        return np.where(X[:, 0] > 5.0, np.inf, X[:, 0] ** 2)


class Constant:
    def fit(self, X):
        self.decision_scores_ = np.zeros(len(X))
        return self

    def decision_function(self, X):
        return np.zeros(len(X))


def test_detectors_that_cannot_be_used_are_left_out_with_the_reason(data):
    rows = in_blocks(data, 7)
    made = {"KNN": "KNN", "LOF": "LOF", "new": Refuses(), "flat": Constant(), "far": Infinite()}
    assert 3 <= (data[:, 0] > 5.0).sum() <= 10
    with pytest.warns(DetectorWarning) as caught:
        fitted = estimator(made, scale=None, max_fit_rows=200).fit(rows)
    assert fitted.detector_names_ == ["KNN", "LOF"]
    reasons = {info.name: info.reason for info in fitted.detector_info_}
    assert "new rows are not for me" in reasons["new"]
    assert "every row has the same score" in reasons["flat"]
    assert "scores are not finite" in reasons["far"]
    assert sum(issubclass(one.category, DetectorWarning) for one in caught) == 3
    assert fitted.scores_.shape == (N_ROWS, 2)
    assert fitted.predict(data).shape == (N_ROWS,)


@pytest.mark.parametrize(
    "parameters",
    [{"max_fit_rows": None}, {"max_mixture_rows": None}],
    ids=lambda one: next(iter(one)),
)
def test_what_blocks_cannot_do_is_said_at_once(parameters, data):
    words = f"{next(iter(parameters))}=None would load all rows on Dask into memory"
    with pytest.raises(ValueError, match=words):
        estimator(["HBOS", "PCA"], **parameters).fit(da.from_array(data))


@needs_torch
def test_the_runs_of_blocks_can_be_fitted_by_torch(scores, in_memory):
    there = estimator(backend="torch", device="cpu").fit(da.from_array(scores, chunks=(100, 3)))
    assert there.posterior_.mean == pytest.approx(in_memory.posterior_.mean, rel=1e-6)


def test_questions_that_need_the_rows_here_say_so(scores, tmp_path):
    fitted = estimator().fit(da.from_array(scores))
    for question in (
        lambda: fitted.suggest(5),
        lambda: fitted.update([1], [0]),
        lambda: fitted.expected_width(5),
        lambda: fitted.report(tmp_path / "report.html"),
        fitted.plot_steps,
    ):
        with pytest.raises(NotImplementedError, match="training rows in memory"):
            question()
    again = fitted.fit(scores)
    assert isinstance(again.labels_, np.ndarray)
    assert len(again.suggest(5)) == 5
    with pytest.raises(NotImplementedError, match="to_parquet needs a fit on Dask"):
        again.to_parquet(tmp_path / "rows")


def test_a_copy_takes_new_rows_and_leaves_those_on_the_cluster(scores, in_memory, monkeypatch):
    fitted = estimator().fit(da.from_array(scores, chunks=(100, 3)))
    copy = pickle.loads(pickle.dumps(fitted))
    assert not hasattr(copy, "scores_")
    for name in ("scores", "score_space", "decision_scores", "labels"):
        with pytest.raises(NotImplementedError, match=f"{name} needs the training rows"):
            getattr(copy.fit_, name)
    # What is pickled does not grow with the rows, once the table of ranks has all its edges.
    monkeypatch.setattr("gammagmm.blocks.quantiles.MAX_EDGES", 50)
    parameters = {"n_runs": 1, "p_high": 0.9}
    sizes = [
        len(pickle.dumps(estimator(**parameters).fit(da.from_array(rows, chunks=(100, 3)))))
        for rows in (scores[:300], scores)
    ]
    assert sizes[1] - sizes[0] < 0.2 * scores[300:].nbytes
    assert copy.summary().n_anomalies == in_memory.labels_.sum()
    for question in (copy.to_frame, lambda: copy.labels_at(0.1), lambda: copy.to_parquet("x")):
        with pytest.raises(NotImplementedError, match="A copied or unpickled estimator does not"):
            question()
    assert isinstance(copy.posterior_, GammaPosterior)
    np.testing.assert_array_equal(copy.predict(scores), in_memory.predict(scores))
    np.testing.assert_allclose(copy.predict_proba(scores), in_memory.predict_proba(scores))


def kill_once(marker, function, rows, *shared):
    """The first worker that takes this kills itself; then it is `function`."""
    with suppress(FileExistsError), open(marker, "x", encoding="ascii") as file:
        file.write(str(os.getpid()))
        file.flush()
        os.kill(os.getpid(), KILL)
    return function(rows, *shared)


@pytest.mark.parametrize("killing", [score_range, log_moments])
def test_a_worker_that_is_killed_in_a_pass_changes_nothing(
    killing, client, data, monkeypatch, tmp_path
):
    """SIGKILL to one of the two real workers in a task; its blocks are scored again elsewhere."""
    parameters = {"max_fit_rows": 200, "max_mixture_rows": 400, "n_components": 20}
    here = estimator(["KNN", "LOF"], **parameters).fit(data)
    summarise, passes, marker = Blocks.summarise, [], tmp_path / "killed"
    before = set(client.run(os.getpid).values())

    def and_kill(self, function, *shared):
        passes.append(function)
        if function is killing:
            function = partial(kill_once, str(marker), function)
        return summarise(self, function, *shared)

    monkeypatch.setattr(Blocks, "summarise", and_kill)
    there = estimator(["KNN", "LOF"], **parameters).fit(in_blocks(data, 7))
    assert int(marker.read_text()) in before
    assert passes.count(killing) == 1
    assert_same(there, here)
    np.testing.assert_array_equal(there.labels_.compute(), here.labels_)


def test_a_cluster_that_is_gone_is_a_clear_error(scores):
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=":0", processes=False
    ) as cluster:
        with distributed.Client(cluster, set_as_default=False) as client, client.as_current():
            fitted = estimator(n_runs=1).fit(da.from_array(scores, chunks=(300, 3)))
            rows = fitted.fit_.space.blocks
        with pytest.raises(ClusterError, match="connection to the Dask scheduler is lost"):
            rows.summarise(score_range)


def test_without_the_extra_the_command_is_said(monkeypatch, scores):
    rows = da.from_array(scores)
    monkeypatch.setitem(sys.modules, "dask.distributed", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'gammagmm\[dask\]'"):
        estimator().fit(rows)


def test_moments_of_blocks_add_up(scores):
    minimum = scores.min(axis=0)
    parts = np.split(scores, [1, 3, 250])
    total = log_moments(parts[0], minimum)
    for part in parts[1:]:
        total = total + log_moments(part, minimum)
    expected = fit_scaler(scores)
    scaler = total.scaler(minimum, scores.max(axis=0))
    np.testing.assert_array_equal(scaler.maximum, expected.maximum)
    np.testing.assert_allclose(scaler.mean, expected.mean, rtol=1e-13)
    np.testing.assert_allclose(scaler.deviation, expected.deviation, rtol=1e-13)
    np.testing.assert_allclose(total.covariance, np.cov(expected.transform(scores).T), rtol=1e-12)


def test_rows_are_taken_in_the_order_asked_for(data):
    blocks = open_blocks(in_blocks(data, "ragged"))
    assert blocks.lengths == (1, 250, 3, 46, 300)
    rows = np.random.default_rng(0).permutation(N_ROWS)[:200]
    np.testing.assert_array_equal(blocks.take(rows), data[rows])


class TestParquet:
    def test_the_answers_are_written_whole(self, data, tmp_path):
        told = []
        fitted = estimator(["HBOS", "PCA"], progress=lambda *words: told.append(words))
        fitted.fit(frame_of(data))
        fitted.to_parquet(tmp_path / "rows")
        expected = fitted.to_frame().compute()
        pd.testing.assert_frame_equal(
            pd.read_parquet(tmp_path / "rows"), expected, check_index_type=False
        )
        assert [name for name, state, _ in told if state == "written"] == [
            "block 1",
            "block 2",
            "block 3",
        ]
        with pytest.raises(FileExistsError, match="already exists"):
            fitted.to_parquet(tmp_path / "rows")
        (tmp_path / "rows" / "part-00003.parquet").touch()  # of more blocks, earlier
        fitted.to_parquet(tmp_path / "rows", overwrite=True)
        assert len(list((tmp_path / "rows").iterdir())) == 3
        assert [path.name for path in tmp_path.iterdir()] == ["rows"]

    def test_a_write_that_fails_leaves_what_was_there(self, data, tmp_path):
        fitted = estimator(["HBOS", "PCA"]).fit(frame_of(data))
        fitted.to_parquet(tmp_path / "rows")
        before = pd.read_parquet(tmp_path / "rows")
        fitted.fit_ = replace(fitted.fit_, detectors={"one name for two columns": None})
        with pytest.raises(ValueError, match="zip"):
            fitted.to_parquet(tmp_path / "rows", overwrite=True)
        pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "rows"), before)
        assert [path.name for path in tmp_path.iterdir()] == ["rows"]

    def test_a_folder_with_other_things_is_never_replaced(self, scores, tmp_path):
        fitted = estimator().fit(da.from_array(scores))
        (tmp_path / "rows").mkdir()
        (tmp_path / "rows" / "mine.parquet").touch()
        with pytest.raises(FileExistsError, match="contains files that gammagmm did not write"):
            fitted.to_parquet(tmp_path / "rows", overwrite=True)
        assert (tmp_path / "rows" / "mine.parquet").exists()
        for name in ("s3://bucket/rows", ".", "/"):
            with pytest.raises(ValueError, match="path of a local folder to create"):
                fitted.to_parquet(name)
