"""`GammaGMM.monitor`: new rows above the threshold of a real fit, over time."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from gammagmm import GammaGMM, History
from gammagmm.datasets import make_contaminated
from gammagmm.errors import HistoryError, LabelsWarning, TableError
from gammagmm.monitoring.counts import Count, Labels
from gammagmm.monitoring.variation import p_higher

# Two detectors and two runs are fast, and may leave most starts without a solution.
pytestmark = pytest.mark.filterwarnings("ignore::gammagmm.errors.UnsolvedRunsWarning")


@pytest.fixture(scope="module")
def rows():
    """Normal rows and clustered anomalies of one table, for other tables to be drawn from."""
    made = make_contaminated(8000, 4, 0.2, "clustered", random_state=0)
    return made.X[made.y == 0], made.X[made.y == 1]


@pytest.fixture(scope="module")
def mixed(rows):
    def mix(share, n_rows, seed):
        rng = np.random.default_rng(seed)
        n_anomalies = round(share * n_rows)
        parts = [rng.choice(rows[0], n_rows - n_anomalies), rng.choice(rows[1], n_anomalies)]
        return rng.permutation(np.vstack(parts))

    return mix


@pytest.fixture(scope="module")
def fitted(mixed):
    return GammaGMM(n_runs=2, random_state=0).fit(mixed(0.02, 1000, 0))


def test_the_count_is_that_of_predict_and_the_reference_that_of_the_training_rows(fitted, mixed):
    X = mixed(0.02, 400, 1)
    history = fitted.monitor(X)
    assert history.reference == Count(1000, int(fitted.labels_.sum()))
    assert history.newest.count == Count(400, int(fitted.predict(X).sum()))
    assert history.newest.name == "1"
    again = fitted.monitor(mixed(0.02, 400, 2), history=history)
    assert [period.name for period in again.periods] == ["1", "2"]


def test_filled_values_and_days_without_rows_are_in_the_history(mixed):
    frame = pd.DataFrame(mixed(0.02, 600, 0), columns=list("abcd"))
    fitted = GammaGMM(["HBOS", "KNN"], n_runs=1, random_state=0).fit(frame)
    new = frame.iloc[:90] + 0.01
    new.iloc[:3, 1] = new.iloc[1, 2] = new.iloc[50, 0] = np.nan
    days = np.repeat(["2026-03-02", "2026-03-04", "2026-03-05"], 30)
    history = fitted.monitor(new, periods=days)
    counted = [(period.name, period.count.n_rows, period.n_filled) for period in history.periods]
    assert counted == [
        ("2026-03-02", 30, 4),
        ("2026-03-03", 0, 0),
        ("2026-03-04", 30, 1),
        ("2026-03-05", 30, 0),
    ]
    # A day that is known keeps its rows.
    again = fitted.monitor(new[:2] + 1.0, periods=["2026-03-01", "2026-03-06"], history=history)
    assert [period.count.n_rows for period in again.periods] == [30, 0, 30, 30, 1, 1]


def test_tables_with_2_8_and_24_percent_are_told_in_the_right_order(fitted, mixed):
    history = None
    for share in (0.02, 0.08, 0.24):
        X = mixed(share, 1000, round(1000 * share))
        history = fitted.monitor(X, history=history, name=f"{share:.0%}")
    low, middle, high = (period.count for period in history.periods)
    assert low.share < middle.share < high.share
    assert p_higher(middle, low) < 0.01
    assert p_higher(high, middle) < 0.01
    kinds = [fitted.monitor(mixed(share, 1000, 9)).state.kind for share in (0.02, 0.24)]
    assert kinds == ["learning", "raised"]


def test_a_period_may_have_no_rows_but_not_lack_a_column(fitted, mixed):
    history = fitted.monitor(np.empty((0, 4)), name="sunday")
    history = fitted.monitor(mixed(0.02, 300, 1), history=history, name="monday")
    assert [period.count.n_rows for period in history.periods] == [0, 300]
    frame = pd.DataFrame(mixed(0.02, 300, 2), columns=list("abcd"))
    named = GammaGMM(["HBOS", "IForest"], n_runs=1, random_state=0).fit(frame)
    assert named.monitor(frame[:0], name="sunday").newest.count == Count(0, 0)
    with pytest.raises(TableError):
        named.monitor(frame[["a", "b"]][:0], name="sunday")


def test_labels_of_new_rows_are_counted_by_period(fitted, mixed):
    labels = np.full(200, np.nan)
    labels[[0, 1, 150]] = [1, 0, 1]
    history = fitted.monitor(mixed(0.02, 200, 3), np.arange(200) // 100, labels=labels)
    assert [period.labels for period in history.periods] == [Labels(2, 1), Labels(1, 1)]
    assert [sum(own) for own in history.periods[0].columns.values()] == [100] * 4
    with pytest.raises(ValueError, match="labels"):
        fitted.monitor(mixed(0.02, 200, 3), labels=np.full(200, 2))


def test_labels_of_new_rows_may_be_wrong(mixed, tmp_path):
    """The share of a period is that of a batch with the same labels."""
    X, error = mixed(0.02, 300, 3), (0.1, 0.05)
    estimator = GammaGMM(["HBOS", "IForest"], n_runs=1, random_state=0, label_error=error)
    estimator.fit(mixed(0.02, 400, 2))
    labels = np.full(300, np.nan)
    labels[:100] = np.arange(100) < 10
    history = estimator.monitor(X, labels=labels)
    posterior = estimator.batch(X).update(np.arange(100), labels[:100]).posterior
    (share,) = history.label_shares
    assert (share.mean, share.low, share.high) == (posterior.mean, *posterior.interval())
    assert share.low == 0.0
    assert share.mean < 0.03  # a tenth of normal rows is called anomalous
    history.save(tmp_path / "history.json")
    again = History.load(tmp_path / "history.json")
    assert again == history
    assert again.label_shares == history.label_shares


@pytest.mark.parametrize(("n_anomalies", "is_told"), [(4, True), (6, False)])
def test_labels_of_new_rows_that_contradict_their_error_are_noticed(mixed, n_anomalies, is_told):
    """As `update` does: a tenth of 100 normal rows is called anomalous, over both periods."""
    X = mixed(0.02, 300, 3)
    estimator = GammaGMM(["HBOS", "IForest"], n_runs=1, random_state=0, label_error=(0.1, 0.05))
    estimator.fit(mixed(0.02, 400, 2))
    labels = np.full(300, np.nan)
    labels[100:200] = np.abs(np.arange(100) - 49.5) < n_anomalies / 2.0  # in both periods
    assert (stats.binom.cdf(n_anomalies, 100, 0.1) < 0.05) == is_told
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", LabelsWarning)
        history = estimator.monitor(X, np.arange(300) // 150, labels=labels)
        estimator.batch(X).update(np.arange(100, 200), labels[100:200])
    assert [period.labels.n_labels for period in history.periods] == [50, 50]
    assert [each.category for each in caught] == [LabelsWarning] * 2 * is_told
    assert len({str(each.message) for each in caught}) == is_told


def test_periods_and_groups_of_the_rows_are_counted(fitted, mixed):
    X = mixed(0.1, 300, 3)
    flags = fitted.decision_function(X) > fitted.threshold_
    periods, groups = np.arange(300) % 3, np.where(np.arange(300) < 200, "a", "b")
    history = fitted.monitor(X, periods, groups)
    for period in history.periods:
        own = periods == int(period.name)
        for group, count in period.groups.items():
            inside = own & (groups == group)
            assert count == Count(int(inside.sum()), int(flags[inside].sum()))


def test_the_same_rows_another_fit_and_another_alpha_are_refused(fitted, mixed):
    X = mixed(0.02, 200, 4)
    history = fitted.monitor(X, alpha=0.01)
    assert history.alpha == 0.01
    with pytest.raises(HistoryError, match="These rows were counted already, as '1'"):
        fitted.monitor(X, history=history)
    assert fitted.monitor(X, history=history, name="1", replace=True) == history
    other = GammaGMM(["HBOS", "IForest"], n_runs=2, random_state=0).fit(mixed(0.02, 300, 5))
    with pytest.raises(HistoryError, match="belongs to another fit"):
        other.monitor(mixed(0.02, 200, 6), history=history)
    with pytest.raises(HistoryError, match="started with alpha"):
        fitted.monitor(mixed(0.02, 200, 6), history=history, alpha=0.05)


def test_labels_move_the_cut_and_the_reference_with_it(mixed):
    estimator = GammaGMM(["HBOS", "IForest"], n_runs=2, random_state=0).fit(mixed(0.05, 400, 7))
    before = estimator.monitor(mixed(0.05, 200, 8))
    top = np.argsort(-estimator.decision_scores_)
    estimator.update(top[:20], np.ones(20, dtype=int), at_random=False)
    with pytest.raises(HistoryError, match="before its labels changed"):
        estimator.monitor(mixed(0.05, 200, 9), history=before)
    reference = estimator.monitor(mixed(0.05, 200, 9)).reference
    # The listed rows are not like new rows.
    assert reference.n_rows == 380
    cut_share = reference.n_above / reference.n_rows
    assert abs(cut_share - (400 * estimator.contamination_ - 20) / 380) <= 1 / 380
