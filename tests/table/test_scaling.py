"""Scaled columns: the map, what it changes for detectors and new rows, and what it leaves alone."""

from __future__ import annotations

import pickle
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import RobustScaler, StandardScaler

from gammagmm import GammaGMM
from gammagmm.datasets import make_contaminated
from gammagmm.errors import DetectorError, GammaGMMWarning, NewRowsWarning, Note
from gammagmm.table.scaling import fit_column_scaler

# Two detectors and two runs are fast, and may leave most starts without a solution.
pytestmark = pytest.mark.filterwarnings("ignore::gammagmm.errors.UnsolvedRunsWarning")

N_ROWS = 300
SMALL = {"n_components": 15, "n_runs": 2, "n_draws": 100, "random_state": 0}
SMALL |= {"p_high": 0.5, "high_gamma": 0.4, "max_gamma": 0.5}
DETECTORS = ["KNN", "LOF", "IForest"]


class Seen:
    """A detector that keeps the rows it is given and scores them by their length."""

    def fit(self, X):
        self.rows = np.array(X)

    def decision_function(self, X):
        return np.linalg.norm(X + 0.5, axis=1)


@pytest.fixture(scope="module")
def both():
    return make_contaminated(N_ROWS + 100, 4, 0.05, "clustered", random_state=1).X


@pytest.fixture(scope="module")
def data(both):
    return both[:N_ROWS]


@pytest.fixture(scope="module")
def new_rows(both):
    return both[N_ROWS:]


@pytest.fixture
def table(rng):
    """Columns of every kind: skewed, far from 0, whole numbers, zeros and ones, tiny, negative."""
    columns = [
        rng.gamma(2.0, size=N_ROWS),
        1e9 + rng.normal(size=N_ROWS),
        rng.integers(0, 50, N_ROWS),
        rng.integers(0, 2, N_ROWS),
        1e-200 * rng.normal(size=N_ROWS),
        -1e12 * rng.gamma(1.0, size=N_ROWS),
    ]
    return np.column_stack(columns).astype(float)


def fit(rows, detectors=None, **parameters):
    return GammaGMM(detectors or {"one": Seen(), "near": "KNN"}, **SMALL | parameters).fit(rows)


class TestTheMap:
    @pytest.mark.parametrize(
        ("scale", "oracle", "factor"),
        [("standard", StandardScaler(), 1.0), ("robust", RobustScaler(), 1.349)],
    )
    def test_it_is_that_of_scikit_learn(self, table, rng, scale, oracle, factor):
        # In units in which scikit-learn's variance of the tiny column does not underflow.
        unit = np.array([1.0, 1.0, 1.0, 1.0, 1e200, 1.0])
        plain = table * unit
        scaler, oracle = fit_column_scaler(table, scale), oracle.fit(plain)
        # What the rounding of a value or of the mean makes of 1e-12, in deviations.
        largest = np.maximum(1.0, np.abs(plain).max(axis=0) / plain.std(axis=0))
        bound = np.maximum(1e-12, 4 * np.finfo(float).eps * largest)
        for rows in (plain, plain[::-1] + rng.normal(size=plain.shape) * plain.std(axis=0)):
            found, expected = scaler.transform(rows / unit), factor * oracle.transform(rows)
            assert (np.abs(found - expected) <= bound * np.maximum(1.0, np.abs(expected))).all()

    def test_mean_and_deviation_are_exact_far_from_zero(self, rng):
        rows = (1e9 + rng.normal(size=(200, 1))).astype(float)
        scaler = fit_column_scaler(rows, "standard")
        values = [Fraction(value) for value in rows[:, 0].tolist()]
        mean = sum(values) / len(values)
        deviation = float(sum((value - mean) ** 2 for value in values) / len(values)) ** 0.5
        expected = [float(value - mean) / deviation for value in values]
        # Half a unit in the last place of the mean, in deviations.
        bound = 0.5 * np.spacing(1e9) / deviation
        np.testing.assert_allclose(scaler.transform(rows)[:, 0], expected, atol=2 * bound)

    @pytest.mark.parametrize("scale", ["standard", "robust"])
    @pytest.mark.parametrize("unit", [1e308, 5e-324, 1e-310])
    def test_numbers_of_any_size_do_not_overflow_or_vanish(self, rng, scale, unit):
        plain = np.clip(np.round(1000 * rng.normal(size=(50, 1))), -1700, 1700)
        rows = plain * unit if unit < 1.0 else plain / 1000 * unit
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = fit_column_scaler(rows, scale).transform(rows)
        np.testing.assert_allclose(
            found, fit_column_scaler(plain, scale).transform(plain), rtol=1e-9
        )

    def test_a_new_value_that_is_far_away_stays_finite(self):
        scaler = fit_column_scaler(np.array([[0.0], [1e-300]]), "standard")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = scaler.transform(np.array([[1e308], [-1e308]]))
        largest = 1e150
        np.testing.assert_array_equal(found, [[largest], [-largest]])

    def test_powers_of_two_change_no_bit(self, table):
        factors = 2.0 ** np.array([-30, 5, 17, -3, 100, -7])
        for scale in ("standard", "robust"):
            expected = fit_column_scaler(table, scale).transform(table)
            found = fit_column_scaler(table * factors, scale).transform(table * factors)
            np.testing.assert_array_equal(found, expected)

    def test_a_column_with_equal_quartiles_is_divided_by_its_deviation(self):
        column = np.array([5.0] * 90 + [6.0] * 10)
        scaler = fit_column_scaler(column[:, None], "robust")
        expected = (column - 5.0) / np.std(column)
        np.testing.assert_allclose(scaler.transform(column[:, None])[:, 0], expected, rtol=1e-12)

    def test_columns_that_differ_by_rounding_alone_are_constant(self):
        rows = np.array([[0.3, 1.0, 1e9], [0.1 + 0.2, 2.0, 1e9 + 1e-3]])
        assert rows[0, 0] != rows[1, 0]
        assert fit_column_scaler(rows, "standard").kept.tolist() == [1, 2]


class TestFits:
    @pytest.mark.parametrize("scale", ["standard", "robust"])
    def test_units_do_not_matter(self, data, new_rows, scale):
        factors = np.array([2.0**20, 2.0**-9, 1.0, 2.0**3])
        expected = fit(data, DETECTORS, scale=scale)
        found = fit(data * factors, DETECTORS, scale=scale)
        np.testing.assert_array_equal(found.scores_, expected.scores_)
        assert found.posterior_.mean == expected.posterior_.mean
        np.testing.assert_array_equal(
            found.decision_function(new_rows * factors), expected.decision_function(new_rows)
        )
        units = np.array([1e4, 1e-3, 7.0, 0.3])
        other = fit(data * units, ["KNN", "LOF"], scale=scale)
        np.testing.assert_allclose(other.scores_, expected.scores_[:, :2], rtol=1e-9)

    def test_none_gives_the_detectors_the_rows_as_they_are(self, data, new_rows):
        fitted = fit(data, scale=None)
        np.testing.assert_array_equal(fitted.detectors_["one"].rows, data)
        np.testing.assert_array_equal(fitted.scores_[:, 0], Seen().decision_function(data))
        assert fitted.fit_.column_scaler is None
        raw = np.column_stack([d.decision_function(new_rows) for d in fitted.detectors_.values()])
        np.testing.assert_array_equal(
            fitted.decision_function(new_rows), fitted.fit_.scaler.transform(raw).mean(axis=1)
        )

    def test_standard_is_the_default_and_uses_the_training_rows_figures(self, data, new_rows):
        fitted = fit(data)
        oracle = StandardScaler().fit(data)
        seen = fitted.detectors_["one"].rows
        np.testing.assert_allclose(seen, oracle.transform(data), rtol=1e-12, atol=1e-12)
        new = oracle.transform(new_rows)
        raw = np.column_stack([d.decision_function(new) for d in fitted.detectors_.values()])
        expected = fitted.fit_.scaler.transform(raw).mean(axis=1)
        np.testing.assert_allclose(fitted.decision_function(new_rows), expected, atol=1e-9)
        # A row has its score whatever its batch is.
        alone = np.concatenate([fitted.decision_function(row[None]) for row in new_rows[:10]])
        np.testing.assert_allclose(fitted.decision_function(new_rows)[:10], alone, rtol=1e-12)

    def test_robust_figures(self, data):
        low, median, high = np.percentile(data, [25, 50, 75], axis=0)
        expected = (data - median) / ((high - low) / 1.349)
        seen = fit(data, scale="robust").detectors_["one"].rows
        np.testing.assert_allclose(seen, expected, rtol=1e-12, atol=1e-12)

    def test_constant_columns_are_left_out_with_a_note(self, data):
        wide = np.insert(data, [0, 2], [7.0, -0.0], axis=1)
        fitted, plain = fit(wide), fit(data)
        np.testing.assert_array_equal(fitted.scores_, plain.scores_)
        assert [note for note in fitted.notes_ if note.step == "columns"] == [
            Note.of("columns.constant", "scale", n_columns=2, columns="0, 3")
        ]
        assert (fitted.n_features_in_, plain.n_features_in_) == (6, 4)
        # What a constant column of new rows holds does not matter.
        other = np.insert(data, [0, 2], [99.0, 5.0], axis=1)
        expected = plain.decision_function(data)
        np.testing.assert_array_equal(fitted.decision_function(other), expected)
        many = np.insert(data, [4] * 7, 1.0, axis=1)
        (note,) = (note for note in fit(many).notes_ if note.step == "columns")
        assert note.fields == {"n_columns": 7, "columns": "4, 5, 6, 7, 8 and 2 more"}
        assert not [note for note in fit(many, scale=None).notes_ if note.step == "columns"]
        # A frame is prepared as a file is, so that its constant columns do not come this far.
        frame = pd.DataFrame(many[:, :5], columns=list("abcde"))
        codes = [note.code for note in fit(frame).notes_ if note.step in ("tables", "columns")]
        assert codes == ["tables.guess"]

    @pytest.mark.parametrize("scale", ["standard", "robust"])
    def test_nothing_but_constant_columns_is_an_error(self, scale):
        with pytest.raises(
            DetectorError,
            match=r"Every column of X is constant, so no detector can tell the rows apart\. Check",
        ):
            fit(np.ones((50, 3)), scale=scale)

    def test_precomputed_scores_are_not_scaled(self, rng):
        scores = rng.gamma(2.0, size=(N_ROWS, 3)) * [1.0, 1000.0, 1.0]
        fits = [fit(scores, "precomputed", scale=scale) for scale in ("standard", "robust", None)]
        for fitted in fits:
            np.testing.assert_array_equal(fitted.scores_, scores)
            assert fitted.fit_.column_scaler is None
            assert fitted.posterior_.mean == fits[0].posterior_.mean

    def test_a_copy_scores_new_rows_alike(self, data, new_rows):
        fitted = fit(data, ["KNN", "HBOS"])
        again = pickle.loads(pickle.dumps(fitted))
        expected = fitted.decision_function(new_rows)
        np.testing.assert_array_equal(again.decision_function(new_rows), expected)

    def test_whole_numbers_and_booleans(self, rng):
        table = pd.DataFrame(
            {
                "count": rng.integers(0, 9, N_ROWS),
                "flag": rng.random(N_ROWS) < 0.1,
                "size": rng.random(N_ROWS),
            }
        )
        seen = fit(table).detectors_["one"].rows
        expected = StandardScaler().fit_transform(table.astype(float))
        np.testing.assert_allclose(seen, expected, atol=1e-12)


@pytest.fixture(scope="module")
def fitted(data):
    return fit(data, DETECTORS, p_high=0.3, high_gamma=0.15, max_gamma=0.25)


class TestTheWarningOfPredict:
    def test_rows_in_other_units(self, fitted, data):
        flagged = fitted.decision_function(data * 1000.0) > fitted.threshold_
        n_flagged, share = flagged.sum(), f"{flagged.mean():.1%}"
        words = (
            rf"predict flags {n_flagged} of 300 rows \({share}\), although the fit estimated "
            rf"{fitted.contamination_:.1%} anomalies\. The new rows may differ from the training "
            r"rows in units, columns or preparation: compare them\."
        )
        with pytest.warns(NewRowsWarning, match=words) as caught:
            labels = fitted.predict(data * 1000.0)
        np.testing.assert_array_equal(labels, flagged)
        assert caught[0].filename == __file__
        assert issubclass(NewRowsWarning, GammaGMMWarning)

    def test_none_for_rows_like_those_of_the_fit(self, fitted, new_rows):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert fitted.predict(new_rows).sum() > 0

    def test_none_for_a_few_rows_or_with_costs(self, fitted, data):
        strange = data * 1000.0
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert fitted.predict(strange[:2]).shape == (2,)
            fitted.predict(strange, costs=(1.0, 1.0))
            fitted.predict_proba(strange)

    def test_an_estimate_of_zero(self, rng):
        scores = rng.uniform(size=(40, 2))
        settings = {"n_runs": 1, "max_restarts": 0, "n_components": 2, "random_state": 0}
        with pytest.warns(GammaGMMWarning, match="The model has no estimate"):
            fitted = GammaGMM("precomputed", **settings).fit(scores)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert fitted.predict(scores).sum() == 0
        assert fitted.threshold_ == fitted.decision_scores_.max()
