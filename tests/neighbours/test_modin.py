"""Modin's data frames give the answers of pandas, which it needs in an older version."""

from __future__ import annotations

import modin.config
import numpy as np
import pandas as pd
import pytest

from gammagmm import GammaGMM, GammaThreshold
from gammagmm.datasets import make_contaminated
from gammagmm.errors import TableError

NAMES = ["width", "height", "depth", "mass"]
# Modin says which of its methods hand their work to pandas.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.* is not currently supported by PandasOnPython:UserWarning",
    "ignore:.* starts had no solution:gammagmm.errors.UnsolvedRunsWarning",
)


@pytest.fixture(scope="module")
def mpd():
    """Modin in this process, without workers."""
    modin.config.Engine.put("Python")
    from modin import pandas

    return pandas


@pytest.fixture(scope="module")
def table():
    """Rows with an index, gaps and a column of text."""
    X = make_contaminated(200, 4, 0.05, "clustered", random_state=1).X
    frame = pd.DataFrame(X, columns=NAMES, index=[f"row {i}" for i in range(200)])
    frame.iloc[::17, 1] = np.nan
    return frame.assign(level=np.where(X[:, 0] > 0.3, "high", "low"))


def make_estimator(**parameters):
    return GammaGMM(["KNN", "LOF"], n_runs=2, n_draws=100, p_high=0.3, random_state=0, **parameters)


def same_answers(own, expected, new, new_expected):
    assert own.posterior_.summary() == expected.posterior_.summary()
    np.testing.assert_array_equal(own.scores_, expected.scores_)
    np.testing.assert_array_equal(own.labels_, expected.labels_)
    np.testing.assert_array_equal(own.predict_proba(new), expected.predict_proba(new_expected))


def test_numbers_give_the_answers_of_numpy_to_the_bit(mpd, table):
    rows = table[["width", "depth", "mass"]]
    own, expected = make_estimator().fit(mpd.DataFrame(rows)), make_estimator().fit(rows.to_numpy())
    assert own.feature_names_in_.tolist() == ["width", "depth", "mass"]
    same_answers(own, expected, mpd.DataFrame(rows[:40]), rows[:40].to_numpy())
    assert expected.posterior_.mean > 0.03


def test_gaps_and_text_give_the_answers_of_pandas_to_the_bit(mpd, table):
    options = {"strict": False}
    own = make_estimator(**options).fit(mpd.DataFrame(table))
    expected = make_estimator(**options).fit(table)
    same_answers(own, expected, mpd.DataFrame(table[:40]), table[:40])


def test_the_answers_come_in_modin_with_the_index(mpd, table):
    rows = mpd.DataFrame(table[NAMES[2:]])
    estimator = make_estimator().fit(rows)
    answers = estimator.to_frame()
    assert isinstance(answers, mpd.DataFrame)
    assert answers.index.tolist() == table.index.tolist()
    np.testing.assert_array_equal(answers["label"].to_numpy(), estimator.labels_)
    new = estimator.to_frame(rows[:5])
    assert isinstance(new, mpd.DataFrame)
    assert new.index.tolist() == table.index[:5].tolist()
    groups = estimator.labelled_rows_.by_group(mpd.Series(table["level"]))
    assert {group.group: group.n_rows for group in groups} == table[
        "level"
    ].value_counts().to_dict()


def test_series_serve_as_labels_and_scores(mpd, table):
    estimator = make_estimator().fit(table[NAMES[2:]])
    expected = make_estimator().fit(table[NAMES[2:]])
    expected.update([3, 50, 120], [1, 0, 0])
    estimator.update(mpd.Series([3, 50, 120]), mpd.Series([1, 0, 0]))
    assert estimator.posterior_.summary() == expected.posterior_.summary()
    scores = estimator.scores_[:, 0]
    found = [GammaThreshold(estimator).fit(each).thresh_ for each in (mpd.Series(scores), scores)]
    assert found[0] == found[1]


def test_what_is_refused_in_pandas_is_refused(mpd, table):
    with pytest.raises(TableError) as caught:
        make_estimator(strict=True).fit(mpd.DataFrame(table[NAMES]))
    assert "missing" in {problem.code for problem in caught.value.problems}
    with pytest.raises(TypeError, match="column 'day' of X must hold numbers"):
        make_estimator(strict=True).fit(
            mpd.DataFrame(table[["width"]]).assign(day=pd.Timedelta("1D"))
        )
    with pytest.raises(TableError, match="X has 2 columns named 'width'"):
        make_estimator().fit(mpd.DataFrame(table[["width", "width"]]))
