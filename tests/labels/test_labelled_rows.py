"""Rows with labels: one story for posterior, labels and probabilities, and all questions."""

from __future__ import annotations

import copy
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from gammagmm import GammaGMM, LabelledRows
from gammagmm.datasets import load_demo
from gammagmm.errors import LabelsWarning, NoSolutionWarning
from gammagmm.labels.anomaly_probability import calibrate
from gammagmm.labels.exact_interval import exact_interval
from gammagmm.labels.known_rows import KnownRows
from gammagmm.labels.sentences import known_sentence
from gammagmm.posterior.track_record import load_slopes
from gammagmm.table.sample import Sample
from tests.support.planted_rows import planted
from tests.support.solved_scores import has_content

N_ROWS = 40


def rows_with(labels, scores=None):
    """Rows of which the first ones have these labels."""
    scores = np.random.default_rng(0).permutation(np.arange(200.0)) if scores is None else scores
    return LabelledRows(scores).update(np.arange(len(labels)), labels)


@st.composite
def updates(draw):
    """Scores with ties, the truth, and calls of update with rows in any order."""
    scores = np.array(draw(st.lists(st.integers(0, 12), min_size=N_ROWS, max_size=N_ROWS)), float)
    truth = np.array(draw(st.lists(st.integers(0, 1), min_size=N_ROWS, max_size=N_ROWS)))
    rows = draw(st.permutations(range(N_ROWS)))
    n_known = draw(st.integers(0, N_ROWS))
    cuts = sorted(draw(st.lists(st.integers(0, n_known), max_size=3)))
    edges = [0, *cuts, n_known]
    calls = [(list(rows[low:high]), draw(st.booleans())) for low, high in pairwise(edges)]
    return scores, truth, calls


# A list without the random rows is no fault of these tests.
LISTS = pytest.mark.filterwarnings("ignore:None of the:gammagmm.errors.LabelsWarning")


class TestOneStory:
    @LISTS
    @settings(max_examples=150, deadline=None)
    @given(updates())
    def test_labels_follow_the_probabilities_and_the_share_that_is_left(self, case):
        scores, truth, calls = case
        rows = LabelledRows(scores)
        for chosen, at_random in calls:
            rows = rows.update(chosen, truth[chosen], at_random=at_random)
        labels, probability, known = rows.labels, rows.probability, rows.known_rows
        # Known rows keep their labels everywhere.
        np.testing.assert_array_equal(labels[known.rows], known.labels)
        np.testing.assert_array_equal(probability[known.rows], known.labels)
        np.testing.assert_array_equal(rows.labels_at(rows.posterior.mean), labels)
        unknown = known.unknown(N_ROWS)
        if not len(unknown):
            assert rows.posterior.mean == truth.mean()
            return
        # The share that is left decides how many, and the probability which ones.
        left = (rows.posterior.mean * N_ROWS - known.labels.sum()) / len(unknown)
        cut = np.percentile(scores[unknown], 100 * (1 - min(max(left, 0.0), 1.0)))
        np.testing.assert_array_equal(labels[unknown], scores[unknown] > cut)
        flagged, other = (probability[unknown][labels[unknown] == label] for label in (1, 0))
        if len(flagged) and len(other):
            assert flagged.min() >= other.max()
        order = np.argsort(-scores[unknown], kind="stable")
        assert (np.diff(probability[unknown][order]) <= 0.0).all()

    @LISTS
    @settings(max_examples=60, deadline=None)
    @given(updates())
    def test_the_probabilities_add_up_to_the_expected_number_of_anomalies(self, case):
        """Without ties, P(at least k anomalies are left) summed over k is their mean."""
        scores, truth, calls = case
        rows = LabelledRows(scores + np.arange(N_ROWS) / 100)
        for chosen, at_random in calls:
            rows = rows.update(chosen, truth[chosen], at_random=at_random)
        expected = pytest.approx(N_ROWS * rows.posterior.mean, rel=1e-9)
        assert rows.probability.sum() == expected
        if len(rows.known_rows):
            assert rows.rank_probability.sum() == expected

    def test_the_rank_probability_is_that_of_as_many_anomalies(self):
        rows = rows_with([1, 0, 0, 0, 0, 0, 1, 0], np.arange(30.0))
        # The third of the 22 unknown rows is an anomaly if at least three of them are.
        expected = rows.posterior.sf((2 + 2) / 30)
        assert rows.rank_probability[29 - 2] == pytest.approx(expected, rel=1e-12)

    def test_known_normal_rows_at_the_top_do_not_hide_the_others(self):
        """Twenty rows at the top are known to be normal: the best unknown row comes next."""
        scores = np.arange(200.0)[::-1]
        top = np.arange(20)
        rows = LabelledRows(scores).update(top, np.zeros(20, int), at_random=False)
        assert rows.labels[:20].sum() == 0
        assert rows.probability[:20].sum() == 0.0
        assert rows.probability[20] == rows.probability.max()
        assert rows.rank_probability[20] == pytest.approx(1.0 - rows.posterior.prob_zero)
        assert rows.labels[20] == 1


class TestUpdate:
    @LISTS
    def test_order_and_number_of_calls_do_not_matter_to_the_bit(self):
        rng = np.random.default_rng(0)
        y = (rng.random(200) < 0.1).astype(int)
        chosen, told = rng.permutation(200)[:40], np.arange(10)
        answers = set()
        ways = (
            [(chosen, True), (told, False)],
            [(told, False), (chosen[::-1], True)],
            [(chosen[:13], True), (told[:4], False), (chosen[13:], True), (told[4:], False)],
            [(chosen, True), (told, False), (chosen[:5], True), (told, False)],
        )
        for way in ways:
            rows = LabelledRows(rng.permutation(np.arange(200.0)))
            for own, at_random in way:
                rows = rows.update(own, y[own], at_random=at_random)
            answers.add((rows.posterior.mean, *rows.posterior.interval(), rows.expected_width(5)))
        assert len(answers) == 1

    def test_a_listed_row_is_no_longer_a_random_one(self):
        rows = LabelledRows(np.arange(50.0)).update([1, 2, 3], [0, 1, 0])
        assert rows.posterior.n_labels == 3
        rows = rows.update([2, 7], [1, 1], at_random=False)
        assert rows.known_rows.rows.tolist() == [1, 2, 3, 7]
        assert rows.known_rows.at_random.tolist() == [True, False, True, False]
        assert rows.posterior.n_labels == 2
        assert rows.update([2], [1]).posterior.n_labels == 2

    def test_reviewed_rows_do_not_bias_the_share(self):
        """All 100 rows at the top are reviewed: the random rows among them count as reviewed."""
        y = (np.arange(1000) < 50).astype(int)
        scores, shares = -np.arange(1000.0), []
        for seed in range(40):
            rows = LabelledRows(scores)
            chosen = rows.suggest(30, random_state=seed)
            top = np.arange(100)
            rows = rows.update(chosen, y[chosen]).update(top, y[top], at_random=False)
            shares.append(rows.posterior.mean)
        # Nothing is left among the others; their prior mean, with 27 normal rows, is about 2 %.
        assert np.mean(shares) == pytest.approx(0.05 + 0.9 * 0.02, abs=0.006)

    def test_a_list_without_the_random_rows_is_told(self):
        y = (np.arange(1000) < 50).astype(int)
        rows = LabelledRows(-np.arange(1000.0))
        chosen = rows.suggest(30, random_state=0)
        rows = rows.update(chosen, y[chosen])
        others = np.setdiff1d(np.arange(150), chosen)
        with pytest.warns(LabelsWarning, match="None of the 30 rows .* although about 4 are"):
            rows.update(others, y[others], at_random=False)
        rows.update([990, 991], [0, 0], at_random=False)  # chance explains that

    @pytest.mark.parametrize(
        ("rows", "labels", "error", "message"),
        [
            ([200], [1], ValueError, "rows must be row positions from 0 to 199, got 200"),
            ([-1], [1], ValueError, "rows must be row positions from 0 to 199, got -1"),
            ([0.5], [1], TypeError, "rows must be row positions from 0 to 199"),
            ([[1, 2]], [1], TypeError, "rows must be row positions from 0 to 199"),
            ([True], [1], TypeError, "rows must be row positions from 0 to 199"),
            ([1, 2], [1], ValueError, "rows and labels must have the same length, got 2 and 1"),
            ([1], [2], ValueError, r"labels must be 0 \(normal\) or 1 \(anomaly\), got 2"),
            ([1], [-1], ValueError, "got -1"),
            ([1], [np.nan], ValueError, "got nan"),
            ([1], ["yes"], TypeError, "labels must be 0"),
            ([5, 5], [0, 1], ValueError, "Row 5 has both labels, 0 and 1"),
        ],
    )
    def test_bad_labels_are_refused(self, rows, labels, error, message):
        with pytest.raises(error, match=message):
            rows_with([0]).update(rows, labels)

    def test_at_random_is_true_or_false(self):
        with pytest.raises(TypeError, match="at_random must be True or False, got 'no'"):
            rows_with([0]).update([1], [1], at_random="no")


class TestQuestions:
    def test_the_same_seed_gives_the_same_rows_and_never_known_ones(self):
        rows = rows_with([0, 1, 0])
        found = [rows.suggest(30, random_state=3) for _ in range(2)]
        np.testing.assert_array_equal(*found)
        everything = rows.suggest(197, random_state=3)
        assert sorted(everything.tolist()) == list(range(3, 200))

    def test_rows_of_every_group(self):
        groups = np.array(["x"] * 180 + ["y"] * 20)
        rows = rows_with([0])
        chosen = rows.suggest(10, by=groups, random_state=0)
        assert (groups[chosen] == "y").sum() == 1
        message = (
            "n must be at least 10 for a row of each group, got 9: the group 'y' has 20 of 199"
        )
        with pytest.raises(ValueError, match=message):
            rows.suggest(9, by=groups)
        # A group that has a label has been looked at.
        assert len(rows.update([190], [0]).suggest(2, by=groups)) == 2
        with pytest.raises(ValueError, match="one value for each of the 200 rows"):
            rows.suggest(10, by=groups[:-1])

    def test_the_exact_interval_knows_of_told_rows(self):
        rows = rows_with([0] * 20 + [1] * 2).update([50, 51, 52], [1, 1, 0], at_random=False)
        low, high = exact_interval(197, 22, 2, 0.9)
        assert rows.exact_interval() == ((low + 2) / 200, (high + 2) / 200)
        assert rows.exact_interval(0.95, side="lower") == ((low + 2) / 200, (197 - 20 + 2) / 200)
        assert rows.exact_interval(0.95, side="upper") == (4 / 200, (high + 2) / 200)
        assert LabelledRows(np.arange(5.0)).exact_interval() == (0.0, 1.0)

    def test_bad_questions(self):
        rows = rows_with([0] * 198)
        for question in (rows.suggest, rows.expected_width):
            with pytest.raises(ValueError, match="at most 2, the number of rows outside"):
                question(3)
        with pytest.raises(ValueError, match="n must be at least 1"):
            rows.suggest(0)
        with pytest.raises(ValueError, match="side must be 'both', 'upper' or 'lower', got 'left'"):
            rows.exact_interval(side="left")
        with pytest.raises(ValueError, match="mass must lie strictly between 0 and 1"):
            rows.exact_interval(1.0)
        with pytest.raises(ValueError, match="width must be above 0 and at most 1, got 0"):
            rows.n_for_width(0)


@pytest.fixture(scope="module")
def made():
    return load_demo()


@pytest.fixture(scope="module")
def fitted(made):
    detectors = ["KNN", "LOF", "HBOS", "COPOD", "ECOD", "PCA"]
    fitted = GammaGMM(detectors, scale=None, n_runs=2, random_state=0).fit(made.X)
    assert has_content(fitted.fit_.runs)
    return fitted


@pytest.fixture
def estimator(fitted):
    return copy.copy(fitted)


class TestEstimator:
    def test_labels_move_everything_that_follows_from_the_posterior(self, estimator, made):
        before = estimator.posterior_
        rows = estimator.suggest(30, random_state=0)
        posterior = estimator.update(rows, made.y[rows])
        assert estimator.posterior_ is posterior
        assert estimator.fit_.fitted_posterior is before
        assert float(estimator.contamination_) == posterior.mean
        labelled = LabelledRows(estimator.decision_scores_).update(rows, made.y[rows])
        assert posterior.mean == labelled.posterior.mean
        np.testing.assert_array_equal(estimator.labels_, labelled.labels)
        at_mean = estimator.labelled_rows_.labels_at(float(estimator.contamination_))
        np.testing.assert_array_equal(at_mean, estimator.labels_)
        np.testing.assert_array_equal(estimator.to_frame()["probability"], labelled.probability)
        # New rows are cut as all rows would be.
        for name, scores in zip(estimator.fit_.detector_names, estimator.scores_.T, strict=True):
            assert estimator.thresholds_[name] == np.percentile(scores, 100 * (1 - posterior.mean))
        scores = estimator.decision_scores_
        assert estimator.threshold_ == np.percentile(scores, 100 * (1 - posterior.mean))
        # As many rows are flagged as the share says, known ones included.
        assert abs(estimator.labels_.sum() - posterior.mean * 367) <= 1
        assert estimator.summary().posterior.mean == posterior.mean
        note, ranking = [note for note in estimator.notes_ if note.step == "labels"]
        assert ranking.subject == "ranking"
        assert f"30 known rows ({made.y[rows].sum()} anomalies)" in note.message

    def test_new_rows_are_ranked_among_the_rows_that_are_not_known(self, estimator, made):
        top = np.argsort(-estimator.decision_scores_)[:20]
        estimator.update(top, np.zeros(20, int), at_random=False)
        probability = estimator.predict_proba(made.X)[:, 1]
        scores = estimator.decision_function(made.X)
        unknown = estimator.known_rows_.unknown(367)
        left = LabelledRows(estimator.decision_scores_[unknown])
        share = 367 * estimator.posterior_.mean / len(unknown)
        slopes = load_slopes()
        none = np.empty(0), np.empty(0, dtype=int)
        prior = slopes.slopes, slopes.unlabelled
        expected = calibrate(left.scores, left.scores, share, none, prior)
        np.testing.assert_allclose(probability, expected(scores), rtol=1e-12)
        flagged = estimator.predict(made.X)
        np.testing.assert_array_equal(flagged, scores > estimator.threshold_)

    def test_the_questions_are_those_of_the_labelled_rows(self, estimator, made):
        rows = estimator.suggest(20, random_state=1)
        estimator.update(rows, made.y[rows])
        labelled = LabelledRows(estimator.decision_scores_).update(rows, made.y[rows])
        own = estimator.labelled_rows_
        assert own.expected_width(10) == labelled.expected_width(10)
        assert own.n_for_width(0.05) == labelled.n_for_width(0.05)
        assert own.exact_interval(0.8) == labelled.exact_interval(0.8)
        groups = np.arange(367) % 4
        np.testing.assert_array_equal(
            estimator.suggest(9, by=groups, random_state=2),
            labelled.suggest(9, by=groups, random_state=2),
        )
        shares = own.by_group(groups)
        assert [share.group for share in shares] == [0, 1, 2, 3]
        assert [share.n_flagged for share in shares] == [
            estimator.labels_[groups == group].sum() for group in range(4)
        ]
        ends = binomtest(shares[3].n_flagged, 91).proportion_ci(0.9, method="exact")
        assert (shares[3].low_flagged, shares[3].high_flagged) == pytest.approx(ends)
        assert sum(share.n_labels for share in shares) == 20
        without, alone = own.by_group(np.isin(np.arange(367), rows))
        assert np.isnan([without.mean, without.low, without.high]).all()
        assert alone.n_labels == 20

    def test_reviewed_flagged_rows_give_the_precision(self, estimator, made):
        assert estimator.fit_.precision is None
        flagged = np.flatnonzero(estimator.labels_)
        estimator.update(flagged, made.y[flagged], at_random=False)
        precision = estimator.fit_.precision
        assert precision.share == precision.low == precision.high == made.y[flagged].mean()
        assert estimator.posterior_.n_labels == 0
        # Rows beyond the flagged ones do not count.
        rows = estimator.suggest(30, random_state=0)
        estimator.update(rows, made.y[rows])
        assert estimator.fit_.precision == precision

    def test_a_batch_has_its_own_share(self, estimator, made):
        estimator.update([0, 1, 2], [0, 0, 0])
        anomalies, others = np.flatnonzero(made.y == 1), np.flatnonzero(made.y == 0)
        X = made.X[np.concatenate([anomalies, others[:10]])]
        y = np.repeat([1, 0], [len(anomalies), 10])
        batch = estimator.batch(X)
        np.testing.assert_array_equal(batch.scores, estimator.decision_function(X))
        assert len(batch.known_rows) == 0
        rows = batch.suggest(len(y) // 2, random_state=0)
        share = batch.update(rows, y[rows]).posterior
        assert share.contains(y.mean())
        assert share.mean > 2 * estimator.posterior_.mean
        assert batch.update(np.arange(len(y)), y).posterior.mean == y.mean()
        assert len(estimator.known_rows_) == 3

    def test_a_fit_forgets_the_labels(self, estimator, made):
        estimator.update([0, 1], [0, 1])
        estimator.fit(made.X)
        assert len(estimator.known_rows_) == 0
        assert estimator.posterior_ is estimator.fit_.fitted_posterior
        assert estimator.posterior_.n_labels == 0

    def test_no_label_changes_nothing(self, estimator):
        before = estimator.posterior_
        assert estimator.update([], []) is before
        assert not [note for note in estimator.notes_ if note.step == "labels"]

    def test_one_label_and_all_labels(self, estimator, made):
        estimator.update(7, int(made.y[7]))
        assert estimator.labels_[7] == made.y[7]
        estimator.update(np.arange(367), made.y)
        assert estimator.posterior_.mean == made.y.mean()
        np.testing.assert_array_equal(estimator.labels_, made.y)
        for gamma in (0.0, 0.5, estimator.contamination_, 1.0):
            np.testing.assert_array_equal(estimator.labelled_rows_.labels_at(gamma), made.y)
        with pytest.raises(ValueError, match=r"gamma must lie between 0 and 1, got 1\.5"):
            estimator.labelled_rows_.labels_at(1.5)
        assert "Every row has a label." in estimator.fit_.lines[-1]
        with pytest.raises(ValueError, match="n must be at most 0, the number of rows"):
            estimator.suggest(1)

    def test_lines_at_the_edges(self, estimator, made):
        fit, rows = estimator.fit_, np.arange(367)
        told = fit.update(rows, made.y, at_random=False)
        assert told.lines[-1] == "Every row has a label."
        assert len(told.lines) == 3
        nearly = fit.update(rows[:357], made.y[:357], at_random=False)
        assert nearly.lines[-1].startswith("Next: label 10 random rows.")
        last = fit.update(rows[1:], np.zeros(366, int))
        assert last.lines[-1] == "Next: label the last row to know the share."
        assert estimator.labelled_rows_.labels_at(0.0).sum() == 0

    def test_told_rows_are_noted(self, estimator):
        estimator.update([3, 4], [1, 1], at_random=False)
        notes = [note for note in estimator.notes_ if note.step == "labels"]
        assert "2 known rows were not chosen at random" in notes[1].message

    def test_a_fit_without_solution_gets_an_answer_from_labels(self):
        flat = GammaGMM("precomputed", n_runs=1, n_components=2, max_restarts=0, random_state=0)
        scores = np.random.default_rng(0).normal(size=(60, 1))
        with pytest.warns(NoSolutionWarning):
            flat.fit(scores)
        assert not flat.posterior_.has_estimate
        rows = np.arange(20)
        posterior = flat.update(rows, (rows < 2).astype(int))
        assert 0.02 < posterior.mean < 0.4
        assert known_sentence(20, 2, flat.fit_.fitted_posterior) in flat.fit_.lines[1]


def test_known_rows_are_sorted_and_leave_the_others():
    known = KnownRows.none().add([7, 3], [1, 0], at_random=True, n_rows=10)
    assert known.unknown(10).tolist() == [0, 1, 2, 4, 5, 6, 8, 9]
    left = known.rows_left(Sample.whole(10))
    assert left.share(0.3) == pytest.approx(2 / 8)
    assert left.share(0.05) == 0.0
    assert KnownRows.none().rows_left(Sample.whole(10)).share(0.3) == 0.3


class TestFind:
    def test_the_first_rows_of_the_ranking_are_picked(self):
        scores, y = planted()
        rows = LabelledRows(scores)
        first = rows.suggest(10, purpose="find")
        assert first.tolist() == np.argsort(-scores)[:10].tolist()
        rows = rows.update(first, y[first], purpose="find")
        assert rows.suggest(5, purpose="find").tolist() == np.argsort(-scores)[10:15].tolist()
        known = rows.known_rows
        assert known.picked.all()
        assert not known.at_random.any()
        assert not known.listed.any()

    @pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
    def test_the_order_of_random_picked_and_listed_rows_does_not_matter(self, order):
        scores, y = planted(200, 12)
        spread = LabelledRows(scores).suggest(20, random_state=0)
        picked = np.setdiff1d(np.argsort(-scores)[:15], spread)
        listed = np.append(spread[:2], 199)
        calls = [(spread, True, "share"), (picked, True, "find"), (listed, False, "share")]
        rows = LabelledRows(scores)
        for own, at_random, purpose in (calls[i] for i in order):
            rows = rows.update(own, y[own], at_random=at_random, purpose=purpose)
        assert rows.known_rows.at_random.sum() == 18
        assert set(rows.known_rows.rows[rows.known_rows.listed]) == set(listed.tolist())
        assert set(rows.known_rows.rows[rows.known_rows.picked]) == set(picked) - set(listed)
        # Eighteen rows are a sample of those outside the list; the picks are bounds.
        twin = LabelledRows(np.random.default_rng(0).permutation(scores))
        twin = twin.update(listed, y[listed], at_random=False)
        twin = twin.update(np.setdiff1d(spread, listed), y[np.setdiff1d(spread, listed)])
        twin = twin.update(picked, y[picked], purpose="find")
        assert rows.posterior.mean == twin.posterior.mean

    def test_a_picked_row_can_become_a_random_one_and_not_back(self):
        rows = LabelledRows(np.arange(50.0)).update([49, 48], [1, 0], purpose="find")
        rows = rows.update([3, 48, 20], [0, 0, 0])
        assert rows.known_rows.rows[rows.known_rows.at_random].tolist() == [3, 20, 48]
        rows = rows.update([48], [0], purpose="find")
        assert rows.known_rows.at_random.sum() == 3

    def test_a_sample_after_picks_includes_the_picked_rows(self):
        """Without them the sample would miss the anomalies that were found."""
        scores, y = planted(300, 20, noise=0.1)
        rows = LabelledRows(scores)
        picked = rows.suggest(20, purpose="find")
        rows = rows.update(picked, y[picked], purpose="find")
        spread = rows.suggest(300, random_state=0)
        assert sorted(spread.tolist()) == list(range(300))
        shares = []
        for seed in range(60):
            spread = rows.suggest(60, random_state=seed)
            shares.append(y[spread].mean())
        assert np.mean(shares) == pytest.approx(20 / 300, abs=4 * np.std(shares) / np.sqrt(60))

    @pytest.mark.parametrize("n_anomalies", [20, 80])
    def test_rows_that_are_picked_do_not_bias_the_share(self, n_anomalies):
        """Thirty random rows, then seventy picks by a ranking that knows the truth."""
        held, exact, biased = [], [], []
        for seed in range(200):
            scores, y = planted(1000, n_anomalies, seed=seed)
            rows = LabelledRows(scores)
            spread = np.random.default_rng(seed).permutation(1000)[:30]
            rows = rows.update(spread, y[spread])
            picked = rows.suggest(70, purpose="find")
            after = rows.update(picked, y[picked], purpose="find")
            low, high = after.posterior.interval()
            held.append(low <= y.mean() <= high)
            low, high = after.exact_interval()
            exact.append(low <= y.mean() <= high)
            assert low >= after.known_rows.labels.sum() / 1000
            known = after.known_rows
            wrong = LabelledRows(np.zeros(1000)).update(known.rows, known.labels)
            biased.append(wrong.posterior.mean)
            ends = rows.posterior.interval()
            least = after.known_rows.labels.sum() / 1000
            # The interval of the sample alone, clipped: it cannot lose the truth.
            np.testing.assert_allclose(
                after.posterior.interval(), np.clip(ends, least, least + 0.9), atol=1e-12
            )
            assert held[-1] == (ends[0] <= y.mean() <= ends[1])
        assert np.mean(exact) >= 0.9 - 4 * np.sqrt(0.09 / 200)
        assert np.mean(biased) > 1.7 * n_anomalies / 1000  # as a random sample they would be

    def test_rows_from_the_top_are_not_taken_for_a_sample(self):
        scores, y = planted()
        rows = LabelledRows(scores)
        first = rows.suggest(10, purpose="find")
        with pytest.warns(LabelsWarning, match="top of the ranking"):
            rows.update(first, y[first])
        for seed in range(50):
            spread = rows.suggest(30, random_state=seed)
            for n in (1, 2, 5, 30):
                rows.update(spread[:n], y[spread[:n]])
        # All labels so far, passed once more.
        rows = rows.update(spread, y[spread]).update(first, y[first], purpose="find")
        known = rows.known_rows
        with pytest.warns(LabelsWarning, match="top of the ranking"):
            rows.update(known.rows, known.labels)

    def test_the_expected_width_knows_of_picked_rows(self):
        scores, y = planted(200, 20)
        rows = LabelledRows(scores)
        chosen = np.random.default_rng(0).permutation(200)[:30]
        rows = rows.update(chosen, y[chosen])
        picked = rows.suggest(100, purpose="find")
        after = rows.update(picked, y[picked], purpose="find")
        low, high = after.posterior.interval()
        assert after.expected_width(0) == pytest.approx(high - low, abs=0.01)
        widths = [after.expected_width(n) for n in range(0, 171, 10)]
        assert (np.diff(widths) <= 1e-12).all()
        assert widths[-1] == 0.0
        assert after.expected_width(10) < rows.expected_width(10)

    def test_a_group_with_picked_rows_alone_needs_a_random_one(self):
        groups = np.array(["a"] * 90 + ["b"] * 10)
        rows = LabelledRows(np.arange(100.0)).update([95, 96], [1, 0], purpose="find")
        with pytest.raises(ValueError, match="n must be at least 10 for a row of each group"):
            rows.suggest(5, by=groups)

    def test_questions_that_make_no_sense(self):
        rows = LabelledRows(np.arange(30.0))
        with pytest.raises(ValueError, match="purpose must be 'share' or 'find', got 'both'"):
            rows.suggest(3, purpose="both")
        with pytest.raises(ValueError, match="purpose must be 'share' or 'find', got None"):
            rows.update([1], [0], purpose=None)
        with pytest.raises(ValueError, match="by needs purpose='share'"):
            rows.suggest(3, purpose="find", by=np.zeros(30))
        with pytest.raises(ValueError, match="n must be at most 30"):
            rows.suggest(31, purpose="find")


def test_a_second_list_is_compared_with_the_rows_outside_the_first():
    rows = LabelledRows(np.arange(200.0)).update(range(100), np.zeros(100), at_random=False)
    drawn = np.arange(100, 200, 5)
    rows = rows.update(drawn, np.zeros(20))
    others = np.setdiff1d(np.arange(100, 200), drawn)[::2][:30]
    # 20 of the 100 other rows are random ones, so 6 of 30 are expected.
    with pytest.warns(LabelsWarning, match=r"None of the 20 rows .* 30 rows, although about 6 are"):
        rows.update(others, np.zeros(30), at_random=False)


def test_the_top_is_that_of_the_rows_that_could_have_been_drawn():
    scores = np.random.default_rng(0).permutation(300).astype(float)
    order = np.argsort(-scores)
    rows = LabelledRows(scores).update(order[100::10], np.zeros(20))
    rows = rows.update(order[:10], np.ones(10), purpose="find")
    # The 10 picked rows could be drawn again, so that these are no longer the first.
    with pytest.warns(LabelsWarning, match="top of the ranking"):
        rows.update(order[10:25], np.zeros(15))
    rows.update(order[150:165], np.zeros(15))


def test_thirty_rows_are_suggested_by_default():
    assert len(LabelledRows(np.arange(100.0)).suggest(random_state=0)) == 30


class TestSample:
    """Rows that are a sample of a larger table, and some others of it, against brute force."""

    N_ROWS, N_SAMPLED = 400, 100

    @pytest.fixture
    def scores(self, rng):
        """Of all rows of the table."""
        return np.round(rng.normal(size=self.N_ROWS), 2)  # with ties

    @pytest.fixture
    def sample(self, rng):
        numbers = np.sort(rng.choice(self.N_ROWS, self.N_SAMPLED, replace=False))
        others = np.setdiff1d(np.arange(self.N_ROWS), numbers)
        return Sample(self.N_ROWS, self.N_SAMPLED, numbers).with_more(others[[50, 3, 7]])

    @pytest.fixture
    def held(self, scores, sample):
        return LabelledRows(scores[sample.numbers], part=sample)

    @pytest.fixture
    def known(self, held, sample):
        """With labels of rows of the sample, and of the rows outside."""
        drawn, outside = held.suggest(20, random_state=0), np.sort(sample.numbers[-3:])
        labels = (np.arange(20) % 10 == 0).astype(int)
        rows = held.update(drawn, labels)
        return rows.update(outside, [1, 0, 1], purpose="find")

    def test_rows_have_their_numbers_in_the_table(self, held, sample, scores):
        assert held.n_rows == self.N_ROWS
        own = sample.numbers[: self.N_SAMPLED]
        assert np.isin(held.suggest(30, random_state=0), own).all()
        first = held.suggest(10, purpose="find")
        assert np.isin(first, own).all()
        np.testing.assert_array_equal(scores[first], np.sort(scores[own])[::-1][:10])
        lacking = np.setdiff1d(np.arange(self.N_ROWS), sample.numbers)[0]
        with pytest.raises(ValueError, match=f"row {lacking} of the table"):
            held.update([lacking], [0])

    def test_the_share_is_that_of_the_whole_table(self, known, scores, sample):
        numbers = sample.number(known.known_rows.rows)
        whole = LabelledRows(scores)
        for picked in (False, True):
            chosen = known.known_rows.picked == picked
            purpose = "find" if picked else "share"
            labels = known.known_rows.labels[chosen]
            whole = whole.update(numbers[chosen], labels, purpose=purpose)
        assert known.posterior.mean == whole.posterior.mean
        assert known.posterior.interval() == whole.posterior.interval()
        assert known.exact_interval() == whole.exact_interval()
        assert known.expected_width(15) == whole.expected_width(15)
        assert known.n_for_width(0.1) == whole.n_for_width(0.1)

    @pytest.mark.parametrize("gamma", [0.0, 0.01, 0.1, 0.4])
    def test_the_other_rows_are_cut_at_the_share_that_is_left(self, known, gamma, sample):
        labels, rows = known.labels_at(gamma), known.known_rows
        assert labels[rows.rows].tolist() == rows.labels.tolist()
        left = np.setdiff1d(np.arange(self.N_SAMPLED), rows.rows)
        n_left = self.N_ROWS - len(rows)
        share = np.clip((gamma * self.N_ROWS - rows.labels.sum()) / n_left, 0.0, 1.0)
        threshold = np.quantile(known.scores[left], 1.0 - share)
        np.testing.assert_array_equal(labels[left], known.scores[left] > threshold)

    def test_a_row_is_an_anomaly_if_there_are_as_many_as_its_rank(self, known):
        rows, left = known.known_rows, known.known_rows.unknown(self.N_SAMPLED)
        each = (self.N_ROWS - len(rows)) / len(left)
        for place in left[::7]:
            n_above = (known.scores[left] >= known.scores[place]).sum()
            rank = rows.labels.sum() + each * n_above - 0.5
            expected = known.posterior.sf(rank / self.N_ROWS)
            assert known.rank_probability[place] == pytest.approx(expected, rel=1e-9)

    def test_the_probabilities_of_the_sample_have_the_mean_that_is_left(self, known):
        rows, left = known.known_rows, known.known_rows.unknown(self.N_SAMPLED)
        n_left = self.N_ROWS - len(rows)
        expected = (self.N_ROWS * known.posterior.mean - rows.labels.sum()) / n_left
        assert known.probability[left].mean() == pytest.approx(expected, rel=1e-9)

    def test_thresholds_and_precision_are_those_of_the_sample(self, known, held):
        scores = np.sort(held.scores[: self.N_SAMPLED])[::-1]
        assert (held.scores[: self.N_SAMPLED] > held.threshold_at(5)).sum() <= 5
        assert held.threshold_at(5) == scores[5]
        drawn = known.known_rows.at_random
        own = known.known_rows[drawn]
        alone = LabelledRows(held.scores[: self.N_SAMPLED])
        alone = alone.update(own.rows, own.labels)
        assert known.precision_at(10).n_labels == alone.precision_at(10).n_labels

    def test_groups_are_those_of_the_sample(self, known, held):
        groups = np.arange(self.N_SAMPLED) % 3
        own = known.known_rows[known.known_rows.at_random]
        alone = LabelledRows(held.scores[: self.N_SAMPLED]).update(own.rows, own.labels)
        for ours, theirs in zip(known.by_group(groups), alone.by_group(groups), strict=True):
            for name in ("group", "n_rows", "n_labels", "n_anomalies", "mean", "low", "high"):
                assert getattr(ours, name) == getattr(theirs, name)
        flagged = known.labels[: self.N_SAMPLED]
        expected = [int(flagged[groups == group.group].sum()) for group in known.by_group(groups)]
        assert [group.n_flagged for group in known.by_group(groups)] == expected


class TestUseOfLabels:
    """What an audit of the use of labels found."""

    def test_rows_from_the_top_among_random_ones_are_noticed(self):
        scores, y = planted()
        rows = LabelledRows(scores)
        top = rows.suggest(10, purpose="find")
        for seed in range(20):
            spread = rows.suggest(30, random_state=seed)
            mixed = np.union1d(top, spread)
            with pytest.warns(LabelsWarning, match="top of the ranking"):
                rows.update(mixed, y[mixed])
            rows.update(spread, y[spread])
            # In two calls, the rows that came first count too.
            with pytest.warns(LabelsWarning, match="top of the ranking"):
                rows.update(spread, y[spread]).update(top, y[top])

    def test_the_table_order_of_tied_rows_does_not_decide(self):
        """Every second row is an anomaly, and all have the same score."""
        truth = np.arange(1000) % 2
        rows = LabelledRows(np.zeros(1000))
        found = [truth[rows.suggest(30, random_state=seed)].sum() for seed in range(200)]
        assert min(found) > 0
        assert max(found) < 30
        assert np.mean(found) == pytest.approx(15, abs=4 * np.sqrt(30 / 4 / 200))
        again = [rows.suggest(30, random_state=3).tolist() for _ in range(2)]
        assert again[0] == again[1]

    def test_a_corrected_label_replaces_the_first(self):
        rows = LabelledRows(np.zeros(100)).update([3, 4, 5], [0, 0, 1])
        later = rows.update([4, 9], [1, 0])
        assert later.known_rows.labels.tolist() == [0, 1, 1, 0]
        assert rows.known_rows.corrected(later.known_rows).tolist() == [4]
        with pytest.raises(ValueError, match="Row 4 has both labels"):
            later.update([4, 4], [0, 1])

    def test_known_anomalies_do_not_raise_the_total(self):
        rows = LabelledRows(np.zeros(1000))
        listed = rows.update(range(150), np.ones(150), at_random=False).posterior
        found = rows.update(range(150), np.ones(150), purpose="find").posterior
        assert listed.mean == found.mean == pytest.approx(0.167, abs=0.003)
        few = rows.update(range(5), np.ones(5), at_random=False).posterior
        assert few.mean == pytest.approx(rows.posterior.mean, abs=0.002)

    def test_picks_that_contradict_the_sample_leave_an_interval_with_a_width(self):
        rows = LabelledRows(-np.arange(1000.0)).update(range(400, 1000, 6), np.zeros(100))
        rows = rows.update(range(100), np.ones(100), purpose="find")
        for low, high in (rows.posterior.interval(), rows.exact_interval()):
            assert low == 0.1
            assert high > 0.1
