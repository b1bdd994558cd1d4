"""The demo set, and synthetic anomalies of each kind."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import load_breast_cancer
from sklearn.mixture import GaussianMixture

from gammagmm.datasets import load_demo, make_contaminated

KINDS = ["global", "local", "clustered", "dependency"]
SEEDS = [0, 1, 2]


def split(dataset):
    """Inliers and anomalies."""
    return dataset.X[dataset.y == 0], dataset.X[dataset.y == 1]


class TestDemo:
    def test_is_the_bundled_data_without_most_malignant_rows(self):
        demo, bunch = load_demo(), load_breast_cancer()
        rows = [int(np.flatnonzero((bunch.data == row).all(axis=1))[0]) for row in demo.X]
        assert rows == sorted(rows)
        assert set(np.flatnonzero(bunch.target == 1)) <= set(rows)
        np.testing.assert_array_equal(demo.y, bunch.target[rows] == 0)
        assert demo.feature_names == tuple(bunch.feature_names)

    def test_counts_and_gamma(self):
        demo = load_demo()
        assert np.bincount(demo.y).tolist() == [357, 10]
        assert demo.gamma == 10 / 367

    def test_draw_is_frozen(self):
        assert np.flatnonzero(load_demo().y).tolist() == [0, 1, 2, 7, 27, 37, 103, 134, 229, 365]

    def test_repr(self):
        assert repr(load_demo()) == "Dataset('breast-cancer', 367 rows, 30 features, gamma=0.0272)"


class TestMakeContaminated:
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize(
        ("n", "gamma", "n_anomalies"), [(100, 0.037, 4), (50, 0, 0), (10, 0.5, 5)]
    )
    def test_exact_number_of_anomalies(self, kind, n, gamma, n_anomalies):
        dataset = make_contaminated(n, 3, gamma, kind, random_state=0)
        assert np.bincount(dataset.y, minlength=2).tolist() == [n - n_anomalies, n_anomalies]
        assert dataset.X.shape == (n, 3)
        assert np.isfinite(dataset.X).all()
        assert (dataset.name, dataset.feature_names) == (kind, ("x1", "x2", "x3"))

    @pytest.mark.parametrize("kind", KINDS)
    def test_same_seed_same_rows(self, kind):
        first, again = (make_contaminated(60, 2, 0.1, kind, random_state=3) for _ in range(2))
        np.testing.assert_array_equal(first.X, again.X)
        np.testing.assert_array_equal(first.y, again.y)
        other = make_contaminated(60, 2, 0.1, kind, random_state=4)
        assert not np.isin(first.X, other.X).any()

    def test_global_random_state_is_not_touched(self):
        before = np.random.get_state()[1].copy()
        make_contaminated(60, 2, 0.1, "local")
        np.testing.assert_array_equal(np.random.get_state()[1], before)

    def test_rows_are_shuffled(self):
        n, n_anomalies = 4000, 1000
        y = make_contaminated(n, 2, 0.25, "local", random_state=0).y
        standard_error = np.sqrt((n**2 - 1) / 12 / n_anomalies)
        assert abs(np.flatnonzero(y).mean() - (n - 1) / 2) < 4 * standard_error

    @pytest.mark.parametrize("seed", SEEDS)
    def test_inliers_are_correlated_within_clusters(self, seed):
        inliers, _ = split(make_contaminated(4000, 10, 0.0, "local", seed))
        mixture = GaussianMixture(3, n_init=3, random_state=0).fit(inliers)
        for covariance in mixture.covariances_:
            deviations = np.sqrt(np.diag(covariance))
            correlations = covariance / np.outer(deviations, deviations)
            n_cluster = 4000 * mixture.weights_.min()
            # The loadings are at least 0.6, so every correlation is at least 0.36.
            assert np.abs(correlations).min() > 0.36 - 4 / np.sqrt(n_cluster)

    @pytest.mark.parametrize("seed", SEEDS)
    def test_global_anomalies_fill_a_wider_box_evenly(self, seed):
        inliers, anomalies = split(make_contaminated(4000, 3, 0.5, "global", seed))
        low, high = inliers.min(axis=0), inliers.max(axis=0)
        margin = 0.1 * (high - low)
        unit = (anomalies - low + margin) / (high - low + 2 * margin)
        assert unit.min() >= 0
        assert unit.max() <= 1
        n = len(anomalies)
        for column in unit.T:
            assert stats.kstest(column, "uniform").statistic < 2.2 / np.sqrt(n)  # p = 1e-4
        outside = ((anomalies < low) | (anomalies > high)).any(axis=1).mean()
        expected = 1 - (1 / 1.2) ** 3
        assert abs(outside - expected) < 4 * np.sqrt(expected * (1 - expected) / n)

    @pytest.mark.parametrize("seed", SEEDS)
    def test_local_anomalies_have_the_same_centres_and_five_times_the_covariances(self, seed):
        d = 10
        inliers, anomalies = split(make_contaminated(12000, d, 0.25, "local", seed))
        mixture = GaussianMixture(3, n_init=3, random_state=0).fit(inliers)
        # In ten dimensions the clusters lie so far apart that the nearest one is a row's own.
        differences = anomalies[:, None] - mixture.means_
        distances = np.einsum("nki,kij,nkj->nk", differences, mixture.precisions_, differences)
        cluster = distances.argmin(axis=1)
        n = len(anomalies)
        standard_error = 5 * np.sqrt(2 * d / n)  # of the mean of 5 chi2(d)
        assert abs(distances.min(axis=1).mean() - 5 * d) < 4 * standard_error
        for k, (mean, covariance) in enumerate(
            zip(mixture.means_, mixture.covariances_, strict=True)
        ):
            members = anomalies[cluster == k]
            # The fitted mean errs too, by less than the members' mean does: hence the 2.
            standard_errors = np.sqrt(2 * 5 * np.diag(covariance) / len(members))
            assert (np.abs(members.mean(axis=0) - mean) < 4 * standard_errors).all()

    @pytest.mark.parametrize("seed", SEEDS)
    def test_clustered_anomalies_are_one_tight_cluster_far_away(self, seed):
        inliers, anomalies = split(make_contaminated(4000, 4, 0.25, "clustered", seed))
        n, centre, deviations = len(anomalies), inliers.mean(axis=0), inliers.std(axis=0)
        spread = anomalies.std(axis=0, ddof=1)
        shift = np.abs(anomalies.mean(axis=0) - centre)
        assert (np.abs(shift - 3 * deviations) < 4 * spread / np.sqrt(n)).all()
        # Clusters have deviations of at most 1.5, so the tight one of at most 1.5 * sqrt(0.1).
        assert (spread < 1.5 * np.sqrt(0.1) * (1 + 4 / np.sqrt(2 * n))).all()
        assert (spread < deviations / 2).all()

    @pytest.mark.parametrize("seed", SEEDS)
    def test_dependency_anomalies_keep_the_marginals_and_lose_the_dependence(self, seed):
        inliers, anomalies = split(make_contaminated(8000, 4, 0.5, "dependency", seed))
        n = len(anomalies)
        for normal, anomalous in zip(inliers.T, anomalies.T, strict=True):
            distance = stats.ks_2samp(normal, anomalous).statistic
            assert distance < 2.2 * np.sqrt(2 / n)  # p = 1e-4
        off_diagonal = np.triu_indices(4, 1)
        kept = np.abs(stats.spearmanr(inliers).statistic[off_diagonal])
        lost = np.abs(stats.spearmanr(anomalies).statistic[off_diagonal])
        assert kept.max() > 0.3
        assert lost.max() < 4 / np.sqrt(n)
        # Squares are uncorrelated as well: independent, not merely uncorrelated.
        squares = stats.spearmanr((anomalies - anomalies.mean(axis=0)) ** 2).statistic
        assert np.abs(squares[off_diagonal]).max() < 4 / np.sqrt(n)

    @pytest.mark.parametrize("kind", ["global", "local", "clustered"])
    def test_one_feature_is_enough_for_the_other_kinds(self, kind):
        assert make_contaminated(20, 1, 0.1, kind, random_state=0).y.sum() == 2

    @pytest.mark.parametrize(
        ("change", "error", "message"),
        [
            ({"kind": "strange"}, ValueError, "kind must be one of global, .*, got 'strange'"),
            ({"n": 9}, ValueError, "n must be at least 10, got 9"),
            ({"n": 20.0}, TypeError, "n must be a whole number, got 20.0"),
            ({"d": 0}, ValueError, "d must be at least 1, got 0"),
            ({"d": 1, "kind": "dependency"}, ValueError, "d must be at least 2, got 1"),
            ({"gamma": 0.51}, ValueError, "gamma must lie between 0 and 0.5, got 0.51"),
            ({"gamma": -0.1}, ValueError, "gamma must lie between 0 and 0.5, got -0.1"),
            ({"gamma": float("nan")}, ValueError, "gamma must lie between 0 and 0.5, got nan"),
            ({"gamma": "0.1"}, TypeError, "gamma must be a number, got '0.1'"),
            ({"random_state": -1}, ValueError, "random_state must be at least 0, got -1"),
        ],
    )
    def test_refusals(self, change, error, message):
        with pytest.raises(error, match=message):
            make_contaminated(**({"n": 20, "d": 2, "gamma": 0.1, "kind": "local"} | change))
