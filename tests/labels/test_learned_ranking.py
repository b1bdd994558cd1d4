"""A ranking learned from labels: what it is, what it does not know, and how it is judged."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from gammagmm import GammaGMM
from gammagmm.errors import GammaGMMWarning
from gammagmm.labels import learned_ranking
from gammagmm.labels.known_rows import KnownRows
from gammagmm.labels.learned_ranking import Inputs, Standard, learn_ranking

N_ROWS = 600
DETECTORS = ["HBOS", "IForest", "LOF"]


def fit_quietly(estimator, X):
    """The fitted estimator. What it estimates without labels does not matter here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GammaGMMWarning)
        return estimator.fit(X)


def table(seed=0, n_rows=N_ROWS, n_anomalies=60):
    """Anomalies that the columns show and of which the scores know little; the truth."""
    rng = np.random.default_rng(seed)
    y = (rng.permutation(n_rows) < n_anomalies).astype(int)
    columns = rng.normal(size=(n_rows, 5))
    columns[:, 0] += 4.0 * y
    space = rng.normal(size=(n_rows, 3)) + 0.3 * y[:, None]
    return Inputs(space, space.mean(axis=1), columns), y


def known_of(rows, y, **how):
    return KnownRows.none().add(rows, y[rows], **({"at_random": True} | how), n_rows=len(y))


@pytest.fixture(scope="module")
def made():
    return table()


@pytest.fixture(scope="module")
def known(made):
    return known_of(np.arange(0, N_ROWS, 12), made[1])


@pytest.fixture(scope="module")
def taught(made, known):
    return learn_ranking(made[0], known, 1)


def test_it_ranks_rows_better_that_nobody_has_looked_at(made, known, taught):
    inputs, y = made
    unknown = known.unknown(N_ROWS)
    before = average_precision_score(y[unknown], inputs.consensus[unknown])
    after = average_precision_score(y[unknown], taught.scores[unknown])
    assert before < 0.25
    assert after > 0.7


def test_the_score_is_a_weighted_mean_of_two_standardised_scores(made, known, taught):
    inputs, y = made
    matrix = np.column_stack([inputs.space, inputs.consensus, inputs.columns]).astype(np.float32)
    votes = np.mean([tree.predict_proba(matrix)[:, 1] for tree in taught.ranking.trees], axis=0)
    unknown = known.unknown(N_ROWS)
    learned = (votes - votes[unknown].mean()) / votes[unknown].std()
    consensus = (inputs.consensus - inputs.consensus.mean()) / inputs.consensus.std()
    m = y[known.rows].sum()
    assert m < len(known) / 2
    expected = (m * learned + consensus) / (m + 1)
    np.testing.assert_allclose(taught.scores, expected, rtol=1e-10, atol=1e-10)


def test_the_rarer_kind_of_label_decides_about_the_weight(made):
    inputs, y = made
    anomalies, normal = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    for n_anomalies, n_normal in ((1, 20), (5, 20), (20, 5), (20, 1)):
        known = known_of(np.append(anomalies[:n_anomalies], normal[:n_normal]), y)
        weight = learn_ranking(inputs, known, 0).ranking.weight
        m = min(n_anomalies, n_normal)
        assert weight == pytest.approx(m / (m + 1))


def test_labels_that_are_expected_to_be_wrong_do_not_count(made):
    inputs, y = made
    anomalies, normal = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    known = known_of(np.append(anomalies[:10], normal[:40]), y)

    def weight(*error):
        return learn_ranking(inputs, known, 0, error=error).ranking.weight

    # Of 50 rows, 10 are called anomalies: with a share x, 0.9 x + 0.1 (1 - x) = 0.2, so x = 1/8,
    # and 50 x 0.9 of the 10 labels are right.
    assert weight(0.1, 0.1) == pytest.approx(5.625 / 6.625)
    # Every fifth label that says "anomaly" is explained by false alarms alone.
    assert weight(0.2, 0.0) == pytest.approx(0.0)
    assert weight(0.0, 0.4) == weight(0.0, 0.0) == pytest.approx(10 / 11)


@pytest.mark.parametrize("label", [0, 1])
def test_labels_of_one_kind_leave_the_consensus(made, label):
    inputs, y = made
    known = known_of(np.flatnonzero(y == label)[:20], y)
    taught = learn_ranking(inputs, known, 0)
    assert taught.ranking is None
    assert taught.check is None
    np.testing.assert_array_equal(taught.scores, inputs.consensus)
    np.testing.assert_array_equal(taught.honest_scores, inputs.consensus)


def test_one_anomaly_teaches_but_cannot_be_checked(made):
    inputs, y = made
    known = known_of(np.append(np.flatnonzero(y)[0], np.flatnonzero(y == 0)[:15]), y)
    taught = learn_ranking(inputs, known, 0)
    assert taught.ranking is not None
    assert taught.check is None


@pytest.mark.parametrize("n_anomalies", [1, 2])
def test_two_random_anomalies_are_enough_for_a_check(made, n_anomalies):
    inputs, y = made
    rows = np.concatenate([np.flatnonzero(y == 1)[:n_anomalies], np.flatnonzero(y == 0)[:10]])
    check = learn_ranking(inputs, known_of(rows, y), 1).check
    assert (check is not None) == (n_anomalies == 2)
    if check is not None:
        assert (check.n_anomalies, check.n_normal) == (2, 10)


class TestLeakage:
    def test_a_known_row_is_judged_by_trees_that_did_not_see_it(self, made, known, taught):
        """Recomputed from the samples of the trees."""
        inputs, _ = made
        trees = taught.ranking.trees
        matrix = inputs[known.rows].matrix()
        votes = []
        for i in range(len(known)):
            pairs = zip(trees.estimators_, trees.estimators_samples_, strict=True)
            unseen = [tree for tree, sample in pairs if i not in sample]
            assert 15 < len(unseen) < 60
            votes.append(np.mean([tree.predict_proba(matrix[[i]])[0, 1] for tree in unseen]))
        expected = taught.ranking.blend(np.array(votes), inputs.consensus[known.rows])
        own = taught.honest_scores[known.rows]
        np.testing.assert_allclose(own, expected, rtol=1e-9, atol=1e-12)
        unknown = known.unknown(N_ROWS)
        np.testing.assert_array_equal(taught.honest_scores[unknown], taught.scores[unknown])
        assert (own != taught.scores[known.rows]).mean() > 0.5

    def test_its_own_label_does_not_move_its_votes(self, made, known, taught):
        """To the bit, for a change of any label."""
        inputs, y = made
        before = taught.ranking.trees.oob_decision_function_
        n_moved = 0
        for i in range(0, len(known), 7):
            changed = y.copy()
            changed[known.rows[i]] = 1 - changed[known.rows[i]]
            again = learned_ranking._grow(inputs[known.rows], changed[known.rows], 1)
            own = again.oob_decision_function_
            assert own[i].tolist() == before[i].tolist()
            n_moved += (own != before).any(axis=1).sum()
        assert n_moved > 50  # it moves the others

    def test_labels_by_heart_do_not_look_like_knowledge(self):
        """Random labels: the trees know the labelled rows, and the check does not believe them."""
        gains = []
        for seed in range(30):
            inputs, _ = table(seed, 300)
            rng = np.random.default_rng(1000 + seed)
            y = (rng.permutation(300) < 90).astype(int)
            known = known_of(rng.permutation(300)[:60], y)
            taught = learn_ranking(inputs, known, seed)
            in_sample = roc_auc_score(known.labels, taught_scores(inputs, known, seed)[known.rows])
            assert in_sample > 0.95
            gains.append(taught.check.gain)
        assert np.mean(gains) == pytest.approx(0.0, abs=4 * np.std(gains) / np.sqrt(30))

    def test_the_share_of_the_labels_that_is_told_is_that_of_other_rows(self):
        """The area on labelled rows, each left out, is close to that on rows without labels."""
        told, true = [], []
        for seed in range(25):
            inputs, y = table(seed)
            known = known_of(np.random.default_rng(seed).permutation(N_ROWS)[:60], y)
            taught = learn_ranking(inputs, known, seed)
            unknown = known.unknown(N_ROWS)
            told.append(taught.check.auc_learned)
            true.append(roc_auc_score(y[unknown], taught.scores[unknown]))
        # A row that is left out is ranked by trees that know one anomaly less.
        assert np.mean(true) - 0.1 < np.mean(told) < np.mean(true) + 0.02


def taught_scores(inputs, known, seed):
    """Scores of the trees alone, on all rows."""
    trees = learned_ranking._grow(inputs[known.rows], known.labels, seed)
    return learned_ranking._votes(trees, inputs)


class TestCheck:
    def test_only_rows_chosen_at_random_are_compared(self, made):
        """Rows that were picked or listed are no sample of the table."""
        inputs, y = made
        drawn = np.arange(0, N_ROWS, 12)
        top = np.setdiff1d(np.argsort(-inputs.consensus)[:40], drawn)
        for how in ({"picked": True}, {"at_random": False}):
            known = known_of(drawn, y).add(
                top, y[top], **({"at_random": True} | how), n_rows=N_ROWS
            )
            taught = learn_ranking(inputs, known, 0)
            expected = [
                roc_auc_score(y[drawn], scores[drawn])
                for scores in (inputs.consensus, taught.honest_scores)
            ]
            check = taught.check
            assert [check.auc_consensus, check.auc_learned] == pytest.approx(expected)
            assert check.n_anomalies + check.n_normal == len(drawn)
            alone = known_of(top, y, **how)
            assert learn_ranking(inputs, alone, 0).check is None

    def test_areas_and_error_by_counting_pairs(self):
        rng = np.random.default_rng(0)
        labels = np.array([0] * 12 + [1] * 5)
        consensus, learned = rng.integers(0, 6, 17) + labels, rng.integers(0, 6, 17) + 2.0 * labels
        check = learned_ranking._compare(labels, consensus.astype(float), learned)
        assert check.auc_consensus == pytest.approx(roc_auc_score(labels, consensus))
        assert check.auc_learned == pytest.approx(roc_auc_score(labels, learned))
        assert check.gain == pytest.approx(check.auc_learned - check.auc_consensus)

        def wins(scores, i, j):
            return float(scores[i] > scores[j]) + 0.5 * float(scores[i] == scores[j])

        anomalies, normal = range(12, 17), range(12)
        of_anomalies = [
            np.mean([wins(learned, i, j) - wins(consensus, i, j) for j in normal])
            for i in anomalies
        ]
        of_normal = [
            np.mean([wins(learned, i, j) - wins(consensus, i, j) for i in anomalies])
            for j in normal
        ]
        variance = np.var(of_anomalies, ddof=1) / 5 + np.var(of_normal, ddof=1) / 12
        assert check.standard_error == pytest.approx(np.sqrt(variance))
        assert (check.n_anomalies, check.n_normal) == (5, 12)

    def test_the_error_is_that_of_repeated_samples(self):
        rng = np.random.default_rng(1)
        gains, errors = [], []
        for _ in range(2000):
            labels = np.repeat([0, 1], [40, 20])
            shared = rng.normal(size=60)
            one, two = (shared + rng.normal(size=60) + labels * a for a in (1.0, 1.5))
            check = learned_ranking._compare(labels, one, two)
            gains.append(check.gain)
            errors.append(check.standard_error**2)
        assert np.sqrt(np.mean(errors)) == pytest.approx(np.std(gains), rel=0.08)

    def test_a_worse_ranking_is_not_used(self):
        """The consensus is good, and the columns are noise."""
        rng = np.random.default_rng(0)
        y = (np.arange(400) % 10 == 0).astype(int)
        consensus = y + 0.3 * rng.normal(size=400)
        inputs = Inputs(rng.normal(size=(400, 2)), consensus, rng.normal(size=(400, 200)))
        known = known_of(np.arange(35), y)
        taught = learn_ranking(inputs, known, 0)
        assert taught.check.is_worse
        assert taught.check.gain < -taught.check.standard_error
        assert taught.ranking is None
        np.testing.assert_array_equal(taught.scores, consensus)
        np.testing.assert_array_equal(taught.honest_scores, consensus)


def test_new_rows_are_scored_one_by_one(made, taught, monkeypatch):
    inputs, _ = made
    expected = taught.ranking.scores(inputs)
    np.testing.assert_array_equal(expected, taught.scores)
    one_by_one = [taught.ranking.scores(inputs[[i]])[0] for i in range(40)]
    np.testing.assert_array_equal(one_by_one, expected[:40])
    monkeypatch.setattr(learned_ranking, "BLOCK_ROWS", 7)
    np.testing.assert_array_equal(taught.ranking.scores(inputs), expected)


def test_the_same_seed_gives_the_same_ranking(made, known, taught):
    again = learn_ranking(made[0], known, 1)
    np.testing.assert_array_equal(again.scores, taught.scores)
    assert (learn_ranking(made[0], known, 2).scores != taught.scores).any()


def test_huge_values_are_no_obstacle(made, known):
    inputs, _ = made
    columns = inputs.columns.copy()
    columns[:3] = [[1e150] * 5, [-1e150] * 5, [1e39] * 5]
    taught = learn_ranking(Inputs(inputs.space, inputs.consensus, columns), known, 0)
    assert np.isfinite(taught.scores).all()


def test_every_row_may_be_known(made):
    inputs, y = made
    taught = learn_ranking(inputs, known_of(np.arange(N_ROWS), y), 0)
    assert np.isfinite(taught.scores).all()
    assert len(taught.honest_scores) == N_ROWS


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    y = (rng.permutation(500) < 40).astype(int)
    X = rng.standard_t(3, size=(500, 6)) * [1, 10, 1, 1, 100, 1]
    X[:, 0] += 5.0 * y
    return X, y


@pytest.fixture(scope="module")
def fitted(rows):
    return fit_quietly(GammaGMM(DETECTORS, n_runs=2, random_state=0), rows[0])


@pytest.fixture
def estimator(fitted):
    return copy.copy(fitted)


@pytest.fixture
def labelled(rows, estimator):
    chosen = estimator.suggest(60, random_state=0)
    estimator.update(chosen, rows[1][chosen])
    return estimator


@pytest.mark.parametrize("value", [0.1, 1e6 + 0.1, -1e6 - 0.1])
def test_scores_that_differ_by_rounding_alone_are_not_blown_up(value):
    values = value * (1.0 + 1e-15 * np.arange(50))
    assert 0.0 < values.std() < 1e-12 * max(abs(value), 1.0)
    np.testing.assert_allclose(Standard.of(values)(values), 0.0, atol=1e-7)
    apart = np.array([value, value + 3.0])
    np.testing.assert_allclose(Standard.of(apart)(apart), [-1.0, 1.0], rtol=1e-9)
    near_zero = 1e-14 * np.array([-1.0, 1.0])
    np.testing.assert_array_equal(Standard.of(near_zero)(near_zero), near_zero)


class TestEstimator:
    """A table whose anomalies stand out in one column, among rows that stand out in others."""

    def test_scores_labels_and_probabilities_follow_the_learned_ranking(self, rows, labelled):
        _, y = rows
        assert labelled.fit_.ranking == "learned"
        taught = labelled.fit_.learning
        np.testing.assert_array_equal(labelled.decision_scores_, taught.scores)
        unknown = labelled.known_rows_.unknown(500)
        scores = labelled.decision_scores_[unknown]
        consensus = labelled.fit_.score_space.mean(axis=1)[unknown]
        before = average_precision_score(y[unknown], consensus)
        assert average_precision_score(y[unknown], scores) > 1.3 * before
        flagged = labelled.labels_[unknown] == 1
        assert scores[flagged].min() > labelled.threshold_ >= scores[~flagged].max()
        probability = labelled.to_frame()["probability"].to_numpy()[unknown]
        order = np.argsort(-scores)
        assert (np.diff(probability[order]) <= 0).all()
        assert taught.check.gain > taught.check.standard_error
        assert "ranking" in labelled.fit_.told

    def test_the_share_does_not_depend_on_the_ranking(self, rows, labelled):
        X, y = rows
        other = fit_quietly(GammaGMM(DETECTORS, n_runs=2, random_state=0, learn=False), X)
        np.testing.assert_array_equal(other.scores_, labelled.scores_)
        known = labelled.known_rows_
        posterior = other.update(known.rows, known.labels)
        assert other.fit_.ranking == "consensus"
        assert other.fit_.learning is None
        np.testing.assert_array_equal(other.decision_scores_, other.fit_.score_space.mean(axis=1))
        x = np.linspace(0.0, 1.0, 2001)
        np.testing.assert_array_equal(posterior.cdf(x), labelled.posterior_.cdf(x))
        assert posterior.summary() == labelled.posterior_.summary()
        assert other.labelled_rows_.exact_interval() == labelled.labelled_rows_.exact_interval()
        assert other.fit_.precision == labelled.fit_.precision
        assert other.thresholds_ == labelled.thresholds_
        # The next rows too: to find anomalies, then to know the share.
        more = labelled.suggest(10, purpose="find")
        for each in (other, labelled):
            each.update(more, y[more], purpose="find")
        np.testing.assert_array_equal(other.posterior_.cdf(x), labelled.posterior_.cdf(x))

    def test_new_rows_are_ranked_by_it(self, labelled):
        rng = np.random.default_rng(9)
        new = rng.standard_t(3, size=(80, 6)) * [1, 10, 1, 1, 100, 1]
        new[:20, 0] += 5.0
        scores = labelled.decision_function(new)
        assert roc_auc_score(np.arange(80) < 20, scores) > 0.8
        np.testing.assert_array_equal(labelled.predict(new), scores > labelled.threshold_)
        taught = labelled.fit_.learning
        raw = np.column_stack(
            [
                each.decision_function(labelled.fit_.column_scaler.transform(new))
                for each in labelled.detectors_.values()
            ]
        )
        space = labelled.fit_.scaler.transform(raw)
        columns = labelled.fit_.column_scaler.transform(new)
        expected = taught.ranking.scores(Inputs(space, space.mean(axis=1), columns))
        np.testing.assert_allclose(scores, expected, rtol=1e-9)
        batch = labelled.batch(new)
        np.testing.assert_array_equal(batch.scores, scores)

    def test_as_many_new_rows_are_flagged_after_picks(self, rows, estimator):
        """The rows that were picked are not missing in new data."""
        _, y = rows
        chosen = estimator.suggest(60, random_state=0)
        estimator.update(chosen, y[chosen])
        rng = np.random.default_rng(8)
        is_odd = rng.random(3000) < 0.08
        new = rng.standard_t(3, size=(3000, 6)) * [1, 10, 1, 1, 100, 1]
        new[:, 0] += 5.0 * is_odd
        for _ in range(6):
            top = estimator.suggest(15, purpose="find")
            estimator.update(top, y[top], purpose="find")
        share = estimator.posterior_.mean
        error = 4 * np.sqrt(share / 500 + share / 3000)  # of two samples
        assert estimator.predict(new).mean() == pytest.approx(share, abs=error)
        assert estimator.predict_proba(new)[:, 1].mean() == pytest.approx(share, abs=error)
        flagged = estimator.decision_function(new) > estimator.labelled_rows_.threshold_at(25)
        assert flagged.mean() == pytest.approx(0.05, abs=4 * np.sqrt(0.05 / 500 + 0.05 / 3000))

    def test_a_pickled_estimator_gives_the_same(self, rows, labelled):
        again = pickle.loads(pickle.dumps(labelled))
        X = rows[0][:50]
        np.testing.assert_array_equal(again.decision_function(X), labelled.decision_function(X))
        assert (
            again.suggest(5, purpose="find").tolist()
            == labelled.suggest(5, purpose="find").tolist()
        )

    def test_order_and_number_of_calls_do_not_matter_to_the_bit(self, rows, labelled, fitted):
        _, y = rows
        known = labelled.known_rows_
        for parts in ((known.rows[::-1],), (known.rows[::2], known.rows[1::2])):
            other = copy.copy(fitted)
            for part in parts:
                other.update(part, y[part])
            np.testing.assert_array_equal(other.decision_scores_, labelled.decision_scores_)

    def test_later_changes_of_the_table_do_not_matter(self, rows):
        X, y = rows[0].copy(), rows[1]
        for scale in ("standard", None):
            other = GammaGMM(DETECTORS, scale=scale, n_runs=2, random_state=0)
            twin = GammaGMM(DETECTORS, scale=scale, n_runs=2, random_state=0)
            fit_quietly(other, X)
            fit_quietly(twin, X.copy())
            X *= 0.0
            chosen = np.arange(0, 500, 9)
            other.update(chosen, y[chosen])
            twin.update(chosen, y[chosen])
            assert other.fit_.ranking == "learned"
            np.testing.assert_array_equal(other.decision_scores_, twin.decision_scores_)
            X[:] = rows[0]

    def test_scores_alone_can_be_learned_from(self, rows, fitted):
        _, y = rows
        other = fit_quietly(GammaGMM("precomputed", n_runs=2, random_state=0), fitted.scores_)
        chosen = other.suggest(60, random_state=0)
        other.update(chosen, y[chosen])
        assert other.fit_.learning.check is not None
        np.testing.assert_allclose(
            other.decision_function(fitted.scores_), other.decision_scores_, rtol=1e-9
        )

    def test_precision_and_threshold_for_a_number_of_rows(self, rows, labelled):
        _, y = rows
        first = labelled.suggest(20, purpose="find")
        found = labelled.labelled_rows_.precision_at(20)
        assert found.low <= y[first].mean() <= found.high
        assert (
            labelled.fit_.learning.honest_scores > labelled.labelled_rows_.threshold_at(20)
        ).sum() == 20
        n = labelled.labelled_rows_.n_for_precision(0.15)
        assert labelled.labelled_rows_.precision_at(n).low >= 0.15

    @pytest.mark.parametrize("value", ["yes", 1, None])
    def test_learn_is_true_or_false(self, value):
        with pytest.raises(TypeError, match="learn must be True or False"):
            GammaGMM(learn=value).fit(np.zeros((50, 2)))
