"""Tables on Dask, on a real cluster: a sample is fitted, and maps answer for all rows."""

from __future__ import annotations

import os
import pickle
import re
import sys
from contextlib import contextmanager, suppress

import numpy as np
import pandas as pd
import pytest

from gammagmm import GammaGMM
from gammagmm.errors import ClusterError, MissingExtraError, TableError
from gammagmm.labels.labelled_rows import LabelledRows
from gammagmm.posterior.storage import posterior_to_text
from tests.support.needs import KILL

cloudpickle = pytest.importorskip("cloudpickle")
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

N_ROWS, N_SAMPLED = 900, 300
RAGGED = (0, 1, 350, 0, 0, 3, 46, 500, 0)
"""Rows of parts, some of them empty."""
PARTS = {
    1: (N_ROWS,),
    7: (200, 100, 50, 250, 100, 150, 50),
    64: (14,) * 63 + (18,),
    "ragged": RAGGED,
}


@contextmanager
def two_workers(*, is_default=True):
    """A client of a real cluster of two worker processes."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster, set_as_default=is_default) as client,
    ):
        yield client


@pytest.fixture(scope="module", autouse=True)
def client():
    with two_workers() as client:
        yield client


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(N_ROWS, 4))
    rows[:45] = 3.0 + 2.0 * rows[:45]
    index = [f"row {i}" for i in range(N_ROWS)]
    return pd.DataFrame(rng.permutation(rows), columns=list("abcd"), index=index)


def estimator(detectors=("KNN", "HBOS"), **parameters):
    usual = {"max_rows": N_SAMPLED, "n_runs": 1, "max_iter": 30, "random_state": 3}
    return GammaGMM(list(detectors), **usual | parameters)


def parts_of(rows, layout, load=lambda part: part):
    """The rows as a Dask data frame with parts of these lengths, which `load` gives."""
    ends = np.cumsum(PARTS[layout])
    pieces = [rows[end - n : end] for n, end in zip(PARTS[layout], ends, strict=True)]
    tasks = [dask.delayed(load)(piece) for piece in pieces]
    return dd.from_delayed(tasks, meta=rows[:0])


@pytest.fixture(scope="module")
def table(frame, client):
    return parts_of(frame, "ragged")


@pytest.fixture(scope="module")
def large(table):
    return estimator().fit(table)


@pytest.fixture(scope="module")
def numbers(large):
    """Numbers of the rows of the sample."""
    found = large.fit_.sample.number(large.fit_.sample.all_places)
    assert len(np.unique(found)) == len(found) == N_SAMPLED
    return found


@pytest.fixture(scope="module")
def here(frame, numbers):
    """The fit of the same sample in memory."""
    return estimator().fit(frame.iloc[numbers])


@pytest.fixture(scope="module")
def all_scores(here, frame, numbers):
    """The score of every row, those of the sample as in the fit, computed in memory."""
    scores = here.decision_function(frame)
    assert (scores[numbers] != here.decision_scores_).any()  # a row is not its own neighbour
    scores[numbers] = here.decision_scores_
    return scores


@pytest.fixture(scope="module")
def labels(frame):
    return (frame.abs().max(axis=1) > 4.0).to_numpy().astype(int)


def assert_equal_fits(there, here):
    """The same fit to the bit."""
    for name in ("scores_", "decision_scores_", "labels_"):
        np.testing.assert_array_equal(getattr(there, name), getattr(here, name))
    np.testing.assert_array_equal(there.fit_.score_space, here.fit_.score_space)
    assert there.thresholds_ == here.thresholds_
    assert there.threshold_ == here.threshold_
    assert [run.elbo for run in there.fit_.runs] == [run.elbo for run in here.fit_.runs]
    assert posterior_to_text(there.posterior_) == posterior_to_text(here.posterior_)
    assert there.posterior_.interval() == here.posterior_.interval()


class TestFit:
    def test_it_is_that_of_the_same_sample_in_memory(self, large, here, frame, numbers):
        assert_equal_fits(large, here)
        assert large.fit_.table.container.index.tolist() == frame.index[numbers].tolist()
        assert large.feature_names_in_.tolist() == list("abcd")
        pd.testing.assert_frame_equal(large.to_frame(), here.to_frame())
        assert large.reasons() == here.reasons()
        assert [note.subject for note in large.notes_ if note.step == "tables"] == ["max_rows"]
        assert (large.fit_.n_rows, large.fit_.sample.n_rows) == (N_SAMPLED, N_ROWS)

    @pytest.mark.parametrize("layout", [1, 7, 64, "ragged"])
    def test_a_table_within_max_rows_is_fitted_whole(self, layout, frame):
        there = estimator(max_rows=N_ROWS).fit(parts_of(frame, layout))
        here = estimator().fit(frame)
        assert_equal_fits(there, here)
        assert there.fit_.notes == here.fit_.notes
        assert there.fit_.table.container.index.equals(here.fit_.table.container.index)
        np.testing.assert_array_equal(
            there.suggest(9, purpose="find"), here.suggest(9, purpose="find")
        )
        np.testing.assert_array_equal(
            there.suggest(9, random_state=0), here.suggest(9, random_state=0)
        )
        for each in (there, here):
            each.update([3, 800], [0, 1])
        assert_equal_fits(there, here)

    @pytest.mark.parametrize("layout", [1, 7, 64])
    def test_the_sample_does_not_depend_on_the_parts(self, layout, frame, large):
        there = estimator().fit(parts_of(frame, layout))
        assert there.fit_.table.container.index.equals(large.fit_.table.container.index)
        assert_equal_fits(there, large)
        first = there.suggest(20, purpose="find")
        np.testing.assert_array_equal(first, large.suggest(20, purpose="find"))

    def test_arrays_are_sampled_as_frames_are(self, frame, large, numbers):
        rows = da.from_array(frame.to_numpy(), chunks=((100, 500, 300), 2))
        there = estimator().fit(rows)
        assert_equal_fits(there, large)
        answers = there.to_frame(rows).compute()
        assert answers.index.tolist() == list(range(N_ROWS))
        np.testing.assert_array_equal(answers["score"].iloc[numbers], there.decision_scores_)
        unknown = dd.from_pandas(frame, npartitions=3, sort=False).to_dask_array()
        assert np.isnan(unknown.shape[0])
        assert_equal_fits(estimator().fit(unknown), large)

    def test_precomputed_scores(self, frame):
        rows = frame.abs()
        there = estimator(()).set_params(detectors="precomputed").fit(parts_of(rows, 7))
        sampled = rows.loc[there.fit_.table.container.index]
        here = estimator(()).set_params(detectors="precomputed").fit(sampled)
        assert_equal_fits(there, here)
        found = there.predict(parts_of(rows, 7)).compute()
        np.testing.assert_array_equal(found, here.predict(rows))

    def test_gaps_and_text_are_filled_and_encoded_by_the_sample(self, frame, numbers):
        mixed = frame.assign(e=np.where(frame["a"] > 0.0, "up", "down"))
        mixed.loc[mixed.index[::9], "b"] = np.nan
        there = estimator(strict=False).fit(parts_of(mixed, "ragged"))
        here = estimator(strict=False).fit(mixed.iloc[numbers])
        assert_equal_fits(there, here)
        found = there.decision_function(parts_of(mixed, 7)).compute()
        np.testing.assert_array_equal(found, here.decision_function(mixed))
        answers = there.to_frame(parts_of(mixed, 7)).compute()
        np.testing.assert_array_equal(answers["score"], found)

    def test_the_rows_have_the_names_of_their_index_or_their_numbers(self, frame):
        plain = frame.reset_index(drop=True)
        files = parts_of(plain, 7, lambda part: part.reset_index(drop=True))
        there = estimator().fit(files)
        sample = there.fit_.sample
        assert there.fit_.table.container.index.tolist() == sample.numbers.tolist()
        assert there.to_frame(files).compute().index.tolist() == list(range(N_ROWS))
        chosen = parts_of(plain, 7)
        chosen = chosen[chosen["a"] > -0.5]  # keeps the numbers that the rows had
        there = estimator().fit(chosen)
        answers = there.to_frame(chosen).compute()
        assert answers.index.tolist() == plain.index[plain["a"] > -0.5].tolist()
        np.testing.assert_array_equal(
            answers["score"].loc[there.fit_.table.container.index], there.decision_scores_
        )


class TestMaps:
    """Answers for all rows."""

    @pytest.mark.parametrize("layout", [1, 7, 64, "ragged"])
    def test_new_rows_have_the_answers_of_memory(self, layout, large, here, frame):
        rows = parts_of(frame, layout)
        for ask in (
            lambda fitted, X: fitted.decision_function(X),
            lambda fitted, X: fitted.predict(X),
            lambda fitted, X: fitted.predict_proba(X),
            lambda fitted, X: fitted.predict(X, costs=(1.0, 3.0)),
        ):
            lazy = ask(large, rows)
            assert isinstance(lazy, da.Array)
            np.testing.assert_array_equal(lazy.compute(), ask(here, frame))

    def test_to_frame_has_the_answers_of_the_fit_for_its_own_rows(
        self, large, here, frame, table, numbers, all_scores
    ):
        lazy = large.to_frame(table)
        assert isinstance(lazy, dd.DataFrame)
        answers = lazy.compute()
        assert answers.index.equals(frame.index)
        np.testing.assert_array_equal(answers["score"], all_scores)
        pd.testing.assert_frame_equal(answers.iloc[numbers], here.to_frame())
        others = np.setdiff1d(np.arange(N_ROWS), numbers)
        new = here.to_frame(frame.iloc[others])
        pd.testing.assert_frame_equal(answers.iloc[others], new)
        pd.testing.assert_frame_equal(lazy._meta, answers[:0], check_index_type=False)

    def test_to_frame_of_other_rows_scores_them_as_new(self, large, here, frame):
        other = parts_of(frame + 0.01, 7)
        pd.testing.assert_frame_equal(large.to_frame(other).compute(), here.to_frame(frame + 0.01))

    def test_reasons(self, large, here, frame, table):
        lazy = large.reasons(table)
        assert isinstance(lazy, dd.Series)
        found = lazy.compute()
        assert found.index.equals(frame.index)
        assert found.tolist() == here.reasons(frame)
        assert any(found)

    def test_maps_are_written_by_dask(self, large, table, tmp_path):
        answers = large.to_frame(table)
        answers.to_parquet(tmp_path / "answers")
        written = pd.read_parquet(tmp_path / "answers")
        np.testing.assert_array_equal(written["score"], answers.compute()["score"])

    def test_tasks_do_not_carry_the_detectors(self, large, frame):
        graph = large.predict_proba(parts_of(frame, 64)).__dask_graph__()
        whole = len(pickle.dumps(large.detectors_))
        assert whole > 20_000
        sizes = sorted(len(cloudpickle.dumps(task)) for task in dict(graph).values())
        assert sum(size > 0.3 * whole for size in sizes) == 1

    def test_batch_is_that_of_memory(self, large, here, frame, table):
        there, rows = large.batch(table), here.batch(frame)
        np.testing.assert_array_equal(there.scores, rows.scores)
        np.testing.assert_array_equal(
            there.suggest(9, random_state=0), rows.suggest(9, random_state=0)
        )

    def test_monitor_counts_as_memory_does(self, large, here, frame, table):
        days = pd.Series(np.where(np.arange(N_ROWS) < 400, "monday", "tuesday"), frame.index)
        groups = pd.Series(np.where(frame["a"] > 0.0, "up", "down"), frame.index)
        expected = here.monitor(frame, days, groups)
        assert len(expected.periods) == 2
        there = large.monitor(table, days, groups)
        assert there.to_records() == expected.to_records()
        assert [p.digest for p in there.periods] == [p.digest for p in expected.periods]
        lazy = large.monitor(table, parts_of(days, "ragged"), parts_of(groups, "ragged"))
        assert lazy.to_records() == expected.to_records()
        one = large.monitor(parts_of(frame, 64)).periods[0]
        assert one.digest == here.monitor(frame).periods[0].digest


class TestLabels:
    def test_suggest_share_chooses_rows_of_the_sample(self, large, here, numbers):
        found = large.suggest(30, random_state=1)
        np.testing.assert_array_equal(found, numbers[here.suggest(30, random_state=1)])
        groups = np.arange(N_SAMPLED) % 3
        found = large.suggest(30, by=groups, random_state=1)
        expected = numbers[here.suggest(30, by=groups, random_state=1)]
        np.testing.assert_array_equal(found, expected)

    def test_suggest_find_is_the_ranking_of_all_rows(self, large, all_scores, numbers):
        found = large.suggest(40, purpose="find")
        np.testing.assert_array_equal(found, np.argsort(-all_scores, kind="stable")[:40])
        assert 0 < np.isin(found, numbers).sum() < 40
        for n in (0, N_ROWS + 1):
            with pytest.raises(ValueError, match="n must be at"):
                large.suggest(n, purpose="find")
        assert len(large.suggest(N_ROWS, purpose="find")) == N_ROWS

    def test_labels_of_a_random_sample_give_the_posterior_of_the_whole_table(
        self, table, labels, all_scores
    ):
        large = estimator(learn=False).fit(table)
        rows = large.suggest(60, random_state=2)
        large.update(rows, labels[rows])
        whole = LabelledRows(all_scores).update(rows, labels[rows])
        assert 0 < labels[rows].sum() < 60
        assert large.posterior_.interval() == whole.posterior.interval()
        assert large.posterior_.mean == whole.posterior.mean
        assert large.labelled_rows_.exact_interval() == whole.exact_interval()
        assert large.labelled_rows_.exact_interval(side="lower") == whole.exact_interval(
            side="lower"
        )
        assert large.labelled_rows_.expected_width(20) == whole.expected_width(20)
        assert large.labelled_rows_.n_for_width(0.02) == whole.n_for_width(0.02)
        np.testing.assert_array_equal(large.known_rows_.rows, whole.known_rows.rows)
        np.testing.assert_array_equal(large.known_rows_.labels, whole.known_rows.labels)

    def test_rows_outside_the_sample_are_read_and_keep_their_labels(
        self, table, labels, all_scores, numbers, here
    ):
        large = estimator(learn=False).fit(table)
        outside = np.setdiff1d(large.suggest(30, purpose="find"), numbers)
        assert len(outside) > 5
        large.update(outside, labels[outside], purpose="find")
        drawn = large.suggest(40, random_state=0)
        large.update(drawn, labels[drawn])
        whole = LabelledRows(all_scores).update(outside, labels[outside], purpose="find")
        whole = whole.update(drawn, labels[drawn])
        assert large.posterior_.interval() == whole.posterior.interval()
        assert large.labelled_rows_.exact_interval() == whole.exact_interval()
        known = np.union1d(outside, drawn)
        np.testing.assert_array_equal(large.known_rows_.rows, known)
        answers = large.to_frame(table).compute()
        np.testing.assert_array_equal(answers["label"].iloc[known], labels[known])
        np.testing.assert_array_equal(answers["probability"].iloc[known], labels[known])
        np.testing.assert_array_equal(answers["score"], all_scores)
        # The attributes are still those of the sample.
        assert large.labels_.shape == large.decision_scores_.shape == (N_SAMPLED,)
        np.testing.assert_array_equal(large.decision_scores_, here.decision_scores_)
        order = np.argsort(-all_scores, kind="stable")
        expected = order[~np.isin(order, known)][:10]
        np.testing.assert_array_equal(large.suggest(10, purpose="find"), expected)

    def test_a_ranking_is_learned_from_rows_inside_and_outside(self, table, frame, labels, numbers):
        large = estimator().fit(table)
        drawn = large.suggest(60, random_state=2)
        large.update(drawn, labels[drawn])
        here = estimator().fit(frame.iloc[numbers])
        places = np.searchsorted(numbers, drawn)
        here.update(places, labels[drawn])
        assert large.fit_.ranking == here.fit_.ranking == "learned"
        np.testing.assert_array_equal(large.decision_scores_, here.decision_scores_)
        np.testing.assert_array_equal(
            large.decision_function(table).compute(), here.decision_function(frame)
        )
        consensus = estimator().fit(table).to_frame(table).compute()["score"].to_numpy()

        def orders():
            """The rows of the whole table without a label, by what was learned, and without it."""
            learned = large.to_frame(table).compute()["score"].to_numpy()
            ranked = (np.argsort(-scores, kind="stable") for scores in (learned, consensus))
            known = large.known_rows_.rows
            return [order[~np.isin(order, known)].tolist() for order in ranked]

        learned, alone = orders()
        heads = list(dict.fromkeys([learned[0], alone[0]]))  # both are tried
        rest = [[row for row in order if row not in heads] for order in (learned, alone)]
        found = large.suggest(15, purpose="find").tolist()
        assert found in [[*heads, *order][:15] for order in rest]
        assert large.fit_.sample.n_held == N_SAMPLED  # a search changes nothing
        outside = np.setdiff1d(large.suggest(30, purpose="find"), numbers)
        large.update(outside, labels[outside], purpose="find")
        learned, alone = orders()
        tried = [alone[0], *(row for row in learned if row != alone[0])]
        found = large.suggest(15, purpose="find").tolist()
        assert found in [order[:15] for order in (learned, alone, tried)]
        assert large.fit_.learning.scores.shape == (N_SAMPLED,)

    def test_groups_are_those_of_the_sample(self, large, here, frame, numbers):
        groups = np.where(frame["a"] > 0.0, "up", "down")[numbers]
        assert large.labelled_rows_.by_group(groups) == here.labelled_rows_.by_group(groups)

    def test_rows_that_do_not_exist_are_refused(self, large):
        with pytest.raises(ValueError, match="900"):
            large.update([N_ROWS], [1])


class TestFiles:
    def test_a_saved_fit_answers_as_before(self, table, frame, labels, tmp_path, numbers):
        fitted = estimator().fit(table)
        outside = np.setdiff1d(np.arange(40), numbers)
        fitted.update(outside, labels[outside], at_random=False)
        fitted.save(tmp_path / "table.fit")
        loaded = GammaGMM.load(tmp_path / "table.fit")
        assert_equal_fits(loaded, fitted)
        np.testing.assert_array_equal(loaded.known_rows_.rows, outside)
        assert loaded.posterior_.interval() == fitted.posterior_.interval()
        assert loaded.labelled_rows_.exact_interval() == fitted.labelled_rows_.exact_interval()
        np.testing.assert_array_equal(
            loaded.predict(table).compute(), fitted.predict(table).compute()
        )
        drawn = loaded.suggest(20, random_state=0)
        np.testing.assert_array_equal(drawn, fitted.suggest(20, random_state=0))
        loaded.update(drawn, labels[drawn])
        others = np.setdiff1d(np.arange(N_ROWS), [*numbers, *outside])
        with pytest.raises(TableError, match="cannot read them from the table"):
            loaded.update(others[:3], [0, 0, 0])

    def test_a_copy_is_small_and_does_not_have_the_table(self, large, frame, numbers):
        copy = pickle.loads(pickle.dumps(large))
        assert copy.fit_.table.collection is None
        assert_equal_fits(copy, large)
        np.testing.assert_array_equal(copy.predict(frame), large.predict(frame))
        others = np.setdiff1d(np.arange(N_ROWS), numbers)
        with pytest.raises(TableError, match="cannot read them from the table"):
            copy.update(others[:3], [0, 0, 0])

    def test_the_first_rows_of_a_report_come_from_all_rows(self, large, numbers, tmp_path):
        large.report(tmp_path / "report.html")
        text = (tmp_path / "report.html").read_text()
        first = large.suggest(12, purpose="find")
        assert np.setdiff1d(first, numbers).size
        for number in first.tolist():
            assert re.search(rf"\brow {number}\b", text), number
        assert large.fit_.sample.n_held == N_SAMPLED  # the report changes nothing


def holes(part):
    part = part.copy()
    part.iloc[: len(part) // 2, 2] = np.nan
    return part


OTHER_PARTS = [
    (lambda part: part.drop(columns="c"), "c"),
    (lambda part: part.assign(e=1.0), "e"),
    (lambda part: part[["a", "c", "b", "d"]], "another order"),
    (lambda part: part.assign(c=part["c"].map("<{}>".format)), "'c' has text"),
    (lambda part: part.assign(c=pd.Timestamp("2026-01-01")), "'c' has dates"),
    (lambda part: part.drop(columns="a"), "a"),
]


@pytest.mark.parametrize(("change", "words"), OTHER_PARTS)
def test_a_part_with_other_columns_is_refused_by_its_number(change, words, frame, large):
    def read(part, partition_info=None):
        return change(part) if partition_info["number"] == 1 else part

    X = dd.from_pandas(frame, npartitions=2, sort=False)
    X = X.map_partitions(read, meta=frame[:0], enforce_metadata=False)
    asks = [
        estimator().fit,
        lambda rows: large.predict(rows).compute(),
        lambda rows: large.to_frame(rows).compute(),
        lambda rows: large.reasons(rows).compute(),
        large.monitor,
    ]
    for ask in asks:
        with pytest.raises(TableError, match="Part 2 of X") as caught:
            ask(X)
        assert words in caught.value.what


def test_other_rows_are_refused(large, frame, table):
    with pytest.raises(TableError, match="c"):
        estimator(strict=True).fit(parts_of(frame, 7, holes))
    strict = estimator(strict=True).fit(parts_of(frame, 7))
    with pytest.raises(ValueError, match=r"NaN|missing"):
        strict.predict(parts_of(frame, 7, holes)).compute()
    with pytest.raises(ValueError, match="feature names"):
        large.predict(table[["b", "a", "c", "d"]])
    with pytest.raises(ValueError, match="feature names"):
        large.to_frame(table.assign(e=1.0))
    with pytest.raises(ValueError, match="a table of rows and columns"):
        estimator().fit(table["a"])
    with pytest.raises(ValueError, match="at least 2 rows"):
        estimator().fit(da.zeros((1, 4)))
    with pytest.raises(ValueError, match="max_rows must be at least"):
        estimator(max_rows=1).fit(table)


def load_or_die(armed):
    """A part's loader that kills its worker once if the file `armed` is there."""

    def load(part):
        with suppress(FileNotFoundError):
            os.rename(armed, f"{armed}.{os.getpid()}")
            os.kill(os.getpid(), KILL)
        return part

    return load


@pytest.mark.parametrize(
    "ask",
    [
        lambda fitted, X: estimator().fit(X).scores_,
        lambda fitted, X: fitted.predict_proba(X).compute(),
        lambda fitted, X: fitted.to_frame(X).compute().to_numpy(),
        lambda fitted, X: fitted.reasons(X).compute().to_numpy(),
        lambda fitted, X: fitted.suggest(30, purpose="find"),
        lambda fitted, X: fitted.fit_.holding(np.arange(50)).rows,
        lambda fitted, X: np.array([fitted.monitor(X).periods[0].digest]),
    ],
    ids=["fit", "predict_proba", "to_frame", "reasons", "suggest", "update", "monitor"],
)
def test_a_worker_that_is_killed_in_a_map_changes_nothing(ask, frame, tmp_path):
    """SIGKILL to one of two real workers of its own; its parts are computed again elsewhere."""
    armed = tmp_path / "armed"
    with two_workers(is_default=False) as client, client.as_current():
        X = parts_of(frame, 7, load_or_die(str(armed)))
        fitted = estimator().fit(X)
        expected = ask(fitted, X)
        workers = set(client.run(os.getpid).values())
        armed.touch()
        found = ask(fitted, X)
    (killed,) = tmp_path.iterdir()
    assert int(killed.suffix[1:]) in workers
    np.testing.assert_array_equal(found, expected)


def test_a_cluster_that_is_gone_is_a_clear_error(frame):
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=":0", processes=False
    ) as cluster:
        with distributed.Client(cluster, set_as_default=False) as client, client.as_current():
            fitted = estimator().fit(parts_of(frame, 7))
        for ask in (
            lambda: fitted.suggest(5, purpose="find"),
            lambda: fitted.fit_.holding(np.arange(50)),
        ):
            with pytest.raises(ClusterError, match="connection to the Dask scheduler is lost"):
                ask()


def test_without_the_extra_the_command_is_said(monkeypatch, frame):
    rows = da.from_array(frame.to_numpy())
    monkeypatch.setitem(sys.modules, "dask.distributed", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'gammagmm\[dask\]'"):
        estimator().fit(rows)
