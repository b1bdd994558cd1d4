"""A sampled table on Dask's threads, without a cluster: `test_large_tables.py` has real workers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from gammagmm import GammaGMM

dd = pytest.importorskip("dask.dataframe")

N_ROWS, N_SAMPLED = 400, 250


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(N_ROWS, 3))
    rows[:20] = 3.0 + 2.0 * rows[:20]
    index = [f"row {i}" for i in range(N_ROWS)]
    return pd.DataFrame(rng.permutation(rows), columns=list("abc"), index=index)


@pytest.fixture(scope="module")
def table(frame):
    return dd.from_pandas(frame, npartitions=3, sort=False)


@pytest.fixture
def fitted(table):
    parameters = {"max_rows": N_SAMPLED, "n_runs": 1, "max_iter": 30, "random_state": 3}
    return GammaGMM(["KNN", "HBOS"], **parameters).fit(table)


def test_the_sample_is_fitted_as_in_memory_and_its_answers_are_in_those_of_all_rows(
    fitted, frame, table
):
    numbers = fitted.fit_.sample.numbers
    here = GammaGMM(["KNN", "HBOS"], n_runs=1, max_iter=30, random_state=3).fit(frame.iloc[numbers])
    np.testing.assert_array_equal(fitted.decision_scores_, here.decision_scores_)
    answers = fitted.to_frame(table).compute()
    assert answers.index.tolist() == frame.index.tolist()
    np.testing.assert_array_equal(answers["score"].iloc[numbers], here.decision_scores_)
    others = np.setdiff1d(np.arange(N_ROWS), numbers)
    np.testing.assert_array_equal(
        answers["score"].iloc[others], here.decision_function(frame.iloc[others])
    )
    assert fitted.reasons(table).compute().tolist() == here.reasons(frame)


def test_rows_outside_the_sample_are_found_labelled_and_reported(fitted, frame, table, tmp_path):
    scores = fitted.to_frame(table).compute()["score"].to_numpy()
    first = fitted.suggest(12, purpose="find")
    np.testing.assert_array_equal(first, np.argsort(-scores, kind="stable")[:12])
    outside = np.setdiff1d(first, fitted.fit_.sample.numbers)
    assert len(outside)
    fitted.report(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert all(f"row {number}" in text for number in first)
    fitted.update(outside, np.ones(len(outside), dtype=int), purpose="find")
    assert fitted.known_rows_.rows.tolist() == outside.tolist()
    labels = fitted.to_frame(table).compute()["label"].to_numpy()
    assert labels[outside].tolist() == [1] * len(outside)
    fitted.save(tmp_path / "rows.fit")
    loaded = GammaGMM.load(tmp_path / "rows.fit")
    assert loaded.known_rows_.rows.tolist() == outside.tolist()
    np.testing.assert_array_equal(loaded.predict(frame), fitted.predict(frame))
