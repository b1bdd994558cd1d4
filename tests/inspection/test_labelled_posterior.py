"""Labels of single rows: the curves, their weights, the posterior, the rows to look at."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from scipy import integrate, stats

from gammagmm import FitSummary, GammaGMM, GammaPosterior
from gammagmm.datasets import load_demo
from gammagmm.errors import LabelsWarning, NoSolutionWarning
from gammagmm.inspection.known_rows import KnownRows
from gammagmm.inspection.labelled_posterior import (
    N_CURVES,
    CellLabels,
    CurvePrior,
    Curves,
    GammaPrior,
    count_labels,
    labelled_posterior,
    prior_belief,
    rank_cells,
)
from gammagmm.inspection.suggestions import expected_width, spread_evenly, suggest_rows
from gammagmm.posterior.betas import BetaMixture
from gammagmm.posterior.sentences import sentence

FITTED = GammaPosterior(0.01, BetaMixture(*np.array([[0.99], [5.0], [95.0]])))
PRIOR = GammaPrior(FITTED, trust=0.3, a=1.0, b=9.0)


@pytest.fixture(scope="module")
def cells():
    return rank_cells(np.random.default_rng(0).permutation(2000) / 7.0)


@pytest.fixture(scope="module")
def belief(cells):
    return prior_belief(cells, PRIOR)


@pytest.fixture(scope="module")
def flat(cells):
    """A belief in flat curves alone: then it is a plain sample of the rows."""
    return prior_belief(cells, PRIOR, CurvePrior(p_flat=1.0))


@pytest.fixture(scope="module")
def made():
    return load_demo()


@pytest.fixture
def estimator(made):
    return GammaGMM(["KNN", "LOF"], scale=None, n_runs=2, random_state=0).fit(made.X)


def labels_of(cells, rows, labels):
    known = KnownRows.none().add(rows, labels, at_random=True, n_rows=cells.n_rows)
    return count_labels(cells, known)


class TestCells:
    def test_the_top_is_told_apart_and_ties_are_not(self):
        cells = rank_cells(np.array([5.0, 1.0, 3.0, 3.0]))
        assert cells.of_row.tolist() == [0, 2, 1, 1]
        np.testing.assert_allclose(np.exp(cells.log_u), [0.125, 0.5, 0.875])

    def test_cells_are_few_and_hold_every_row(self):
        cells = rank_cells(np.random.default_rng(0).normal(size=100_000))
        assert len(cells.counts) < 700
        assert cells.counts.sum() == 100_000
        # u is the share of rows that score higher, whose mean is a half.
        assert np.exp(cells.log_u) @ cells.counts / 100_000 == pytest.approx(0.5)


class TestBelief:
    def test_a_curve_is_the_formula(self):
        curve = Curves(np.array([[-2.0, np.log(1.5), -3.0, 0.5]]), np.array([False]))
        low, step = 1 / (1 + np.exp(3.0)), 1 / (1 + np.exp(-0.5))
        high = low + (1 - low) * step
        for u in (0.01, 0.1, 0.9):
            expected = low + (high - low) / (1 + np.exp(1.5 * (np.log(u) + 2.0)))
            assert curve.at(np.log([u]))[0, 0] == pytest.approx(expected)

    def test_without_labels_gamma_has_the_prior(self, belief):
        order = np.argsort(belief.gamma)
        found = belief.p_zero + np.cumsum(belief.weights[order])
        x = belief.gamma[order][200:-200]
        expected = PRIOR.p_zero + PRIOR.cdf(x)
        assert np.abs(found[200:-200] - expected).max() < 0.01

    def test_a_fit_without_solution_is_not_believed(self):
        prior = GammaPrior(GammaPosterior.degenerate(), trust=0.9, a=1.0, b=9.0)
        assert prior.p_zero == 0.0
        assert prior.cdf(0.2) == pytest.approx(stats.beta(1, 9).cdf(0.2))

    def test_weights_are_prior_times_likelihood(self, belief, cells):
        rows, y = np.array([0, 500, 1500]), [1, 0, 0]
        after = belief.given(labels_of(cells, rows, y))
        rho = belief.curves.at(cells.log_u[cells.of_row[rows]])
        likelihood = rho[:, 0] * (1 - rho[:, 1]) * (1 - rho[:, 2])
        expected = belief.weights * likelihood ** CurvePrior().label_weight
        assert after.p_zero == 0.0
        np.testing.assert_allclose(after.weights, expected / expected.sum(), rtol=1e-9)

    def test_a_flat_curve_makes_it_a_binomial_sample(self, flat, cells):
        """The posterior of gamma is then prior times binomial likelihood, by quadrature."""
        rows = np.arange(0, 2000, 67)[:30]
        after = flat.given(labels_of(cells, rows, [1] * 3 + [0] * 27))

        def density(g):
            prior = 0.3 * FITTED.pdf(g) + 0.7 * stats.beta(1, 9).pdf(g)
            return prior * (g**3 * (1 - g) ** 27) ** CurvePrior().label_weight

        total = integrate.quad(density, 0, 1, points=[0.05, 0.1])[0]
        mean = integrate.quad(lambda g: g * density(g), 0, 1, points=[0.05, 0.1])[0] / total
        gamma = after.curves.at(np.zeros(1))[:, 0]
        found = after.weights @ gamma
        error = np.sqrt(after.weights @ np.square(gamma - found) / after.n_effective)
        assert found == pytest.approx(mean, abs=4 * error)

    def test_redrawn_curves_keep_the_answer(self, belief, cells, monkeypatch):
        order = np.argsort(cells.of_row, kind="stable")
        rows = order[::4]
        labels = labels_of(cells, rows, np.arange(500) < 60)
        again = belief.given(labels)
        monkeypatch.setattr("gammagmm.inspection.labelled_posterior._MAX_ROUNDS", 0)
        once = belief.given(labels)
        assert once.n_effective < 200 < again.n_effective
        means = [b.weights @ b.gamma for b in (once, again)]
        spread = np.sqrt(again.weights @ np.square(again.gamma - means[1]))
        assert means[0] == pytest.approx(means[1], abs=4 * spread / np.sqrt(once.n_effective))


class TestPosterior:
    def test_it_has_the_mean_and_the_variance_of_the_counts(self, belief, cells):
        """Against draws: a curve, then each unknown row by its chance."""
        rows = np.arange(0, 2000, 70)
        after = belief.given(labels_of(cells, rows, (rows < 100).astype(int)))
        posterior = labelled_posterior(after)
        rng, n = np.random.default_rng(1), 20_000
        chosen = rng.choice(len(after.weights), n, p=after.weights)
        drawn = rng.binomial(after.unknown, after.rho[chosen]).sum(axis=1)
        gamma = (after.labels.n_anomalies + drawn) / cells.n_rows
        assert posterior.mean == pytest.approx(gamma.mean(), abs=4 * gamma.std() / np.sqrt(n))
        assert posterior.std == pytest.approx(gamma.std(), rel=0.04)
        for q in (0.05, 0.5, 0.95):
            assert posterior.cdf(np.quantile(gamma, q)) == pytest.approx(q, abs=0.02)

    def test_what_is_known_bounds_it(self, belief, cells):
        rows = np.arange(1000)
        after = belief.given(labels_of(cells, rows, (rows < 300).astype(int)))
        posterior = labelled_posterior(after)
        assert posterior.cdf(0.15 - 1e-12) == 0.0
        assert posterior.sf(0.65) == 0.0
        assert posterior.interval(0.999999)[0] >= 0.15
        assert posterior.sample(1000, 0).min() >= 0.15
        assert posterior.given(low=0.15, high=0.65).mean == pytest.approx(posterior.mean)
        assert posterior.given(high=0.3).sf(0.3) == 0.0
        with pytest.raises(ValueError, match="no probability"):
            posterior.given(high=0.14)
        assert posterior.prob_zero == 0.0

    def test_no_anomaly_at_all_stays_possible_until_one_is_found(self, belief, cells):
        rows = np.arange(0, 2000, 70)
        none = labelled_posterior(belief.given(labels_of(cells, rows, np.zeros(29, int))))
        assert none.prob_zero > PRIOR.p_zero
        assert none.prob_zero + none.betas.weights.sum() == pytest.approx(1.0)

    def test_every_row_labelled_is_the_share_itself(self, belief, cells):
        y = (np.arange(2000) % 40 == 0).astype(int)
        posterior = labelled_posterior(belief.given(labels_of(cells, np.arange(2000), y)))
        assert posterior.mean == posterior.median == 0.025
        assert posterior.interval() == (0.025, 0.025)
        assert posterior.std == posterior.standard_error == 0.0
        assert (posterior.sample(5, 0) == 0.025).all()
        assert posterior.cdf([0.0249, 0.025]).tolist() == [0.0, 1.0]

    @pytest.mark.parametrize("n_anomalies", [0, 100])
    def test_what_is_certain_can_be_drawn_saved_and_said(
        self, belief, cells, n_anomalies, tmp_path
    ):
        y = (np.arange(2000) < n_anomalies).astype(int)
        posterior = labelled_posterior(belief.given(labels_of(cells, np.arange(2000), y)))
        assert posterior.cdf(n_anomalies / 2000) == 1.0
        assert posterior.prob_zero == (n_anomalies == 0)
        assert not posterior.is_degenerate
        assert posterior.interval(0.5, "hdi") == (n_anomalies / 2000,) * 2
        assert "<svg" in posterior._repr_html_()
        assert f"About {n_anomalies / 20:.1f}% of the rows" in sentence(posterior)
        posterior.plot()
        posterior.save(tmp_path / "p.json")
        assert GammaPosterior.load(tmp_path / "p.json").mean == posterior.mean

    def test_all_but_one_row_labelled(self, belief, cells):
        y = (np.arange(1999) % 40 == 0).astype(int)
        posterior = labelled_posterior(belief.given(labels_of(cells, np.arange(1999), y)))
        low, high = posterior.interval(0.999)
        assert y.sum() <= 2000 * low <= 2000 * high <= y.sum() + 1

    def test_told_rows_say_nothing_of_others(self, belief, cells):
        none = KnownRows.none()
        told = none.add(np.arange(20), np.ones(20, int), at_random=False, n_rows=2000)
        after = belief.given(count_labels(cells, told))
        expected = belief.weights / belief.weights.sum()
        np.testing.assert_allclose(after.weights, expected, rtol=1e-9)
        assert labelled_posterior(after).cdf(0.01 - 1e-12) == 0.0

    def test_it_is_saved_and_read_to_the_bit(self, belief, cells, tmp_path):
        rows = np.arange(0, 2000, 70)
        for n in (5, 29):
            labels = labels_of(cells, rows[:n], (rows[:n] < 100).astype(int))
            posterior = labelled_posterior(belief.given(labels))
            posterior.save(tmp_path / f"{n}.json")
            loaded = GammaPosterior.load(tmp_path / f"{n}.json")
            assert loaded.mean == posterior.mean
            assert loaded.interval() == posterior.interval()


class TestSuggestions:
    @pytest.mark.parametrize("n_rows", [700, 891, 1000, 1598])
    def test_every_beginning_is_spread_evenly_and_every_row_comes_once(self, n_rows):
        order = spread_evenly(np.arange(n_rows)[::-1], np.random.default_rng(0))
        assert sorted(order.tolist()) == list(range(n_rows))
        for n in (2, 5, 10, 30, 100):
            taken = np.sort(order[:n])
            gaps = np.diff(np.append(taken, taken[0] + n_rows))
            # Plain random rows have gaps from 0 to several times the mean.
            assert gaps.max() <= 1 + 2.7 * n_rows / n
            assert gaps.min() >= 0.3 * n_rows / n - 1

    def test_each_row_is_as_likely_to_come_first(self):
        rng = np.random.default_rng(0)
        first = [spread_evenly(np.arange(20), rng)[0] for _ in range(4000)]
        counts = np.bincount(first, minlength=20)
        assert stats.chisquare(counts).pvalue > 1e-4

    def test_the_gain_is_the_fall_of_the_variance(self, belief, cells):
        """The first adaptive row against the variance after either label, averaged."""
        from gammagmm.inspection.suggestions import _label_covariance

        covariance, variance = _label_covariance(belief)
        gamma = np.append(belief.rho @ cells.counts / cells.n_rows, 0.0)
        weights = np.append(belief.weights, belief.p_zero)

        def spread(w):
            return w @ np.square(gamma - w @ gamma / w.sum()) / w.sum()

        for cell in (0, len(cells.counts) // 2, len(cells.counts) - 1):
            rho = np.append(belief.rho[:, cell], 0.0)
            p = weights @ rho
            after = p * spread(weights * rho) + (1 - p) * spread(weights * (1 - rho))
            gain = (covariance[cell] @ cells.counts / cells.n_rows) ** 2 / variance[cell]
            assert spread(weights) - after == pytest.approx(gain, rel=1e-6)

    def test_adaptive_asks_where_the_curve_is_in_doubt(self, belief, cells):
        order = np.argsort(cells.of_row, kind="stable")
        rows = suggest_rows(belief, order, 20, "adaptive", np.random.default_rng(0))
        ranks = np.argsort(order)[rows]
        assert len(set(rows.tolist())) == 20
        # Every third row is spread evenly; those between them lie near the top.
        between = np.arange(20) % 3 > 0
        assert ranks[between].max() < 1000 < ranks[~between].max()

    def test_it_does_not_matter_how_many_are_asked_for_at_once(self, belief, cells):
        """After one answer the next row is where the label promises most, not a spread one."""
        order = np.argsort(cells.of_row, kind="stable")
        after = belief.given(labels_of(cells, [order[900]], [0]))
        left = np.delete(order, 900)
        chosen = {
            cells.of_row[suggest_rows(after, left, 1, "adaptive", np.random.default_rng(i))[0]]
            for i in range(5)
        }
        gamma, rho = after.gamma, after.rho
        p = after.weights @ rho
        covariance = (after.weights * (gamma - after.weights @ gamma)) @ rho
        assert chosen == {int(np.argmax(np.square(covariance) / (p * (1 - p))))}

    def test_adaptive_falls_back_where_the_ranking_says_nothing(self, flat, cells):
        order = np.argsort(cells.of_row, kind="stable")
        found = [
            suggest_rows(flat, order, 20, strategy, np.random.default_rng(0)).tolist()
            for strategy in ("random", "adaptive")
        ]
        assert found[0] == found[1]

    def test_expected_width_is_the_mean_of_widths(self, belief, cells):
        rows = np.arange(0, 2000, 67)
        found = expected_width(belief, rows, 0.9, np.random.default_rng(0))
        rng, widths = np.random.default_rng(1), []
        for _ in range(40):
            curve = rng.choice(len(belief.weights), p=belief.weights / belief.weights.sum())
            y = rng.random(len(rows)) < belief.rho[curve, cells.of_row[rows]]
            after = belief.given(labels_of(cells, rows, y.astype(int)))
            widths.append(np.diff(labelled_posterior(after).interval())[0])
        error = np.std(widths) * np.sqrt(1 / 32 + 1 / 40)
        assert found == pytest.approx(np.mean(widths), abs=4 * error)


class TestEstimator:
    def test_labels_move_everything_that_follows_from_the_posterior(self, estimator, made):
        before = estimator.posterior_
        rows = estimator.suggest(30, random_state=0)
        posterior = estimator.update(rows, made.y[rows])
        assert estimator.posterior_ is posterior
        assert estimator.fitted_posterior_ is before
        assert float(estimator.contamination_) == posterior.mean
        above = estimator.decision_scores_ > estimator.threshold_
        unknown = ~np.isin(np.arange(367), rows)
        left = (posterior.mean * 367 - made.y[rows].sum()) / unknown.sum()
        np.testing.assert_array_equal(estimator.labels_[unknown], above[unknown])
        np.testing.assert_array_equal(estimator.labels_[rows], made.y[rows])
        cut = np.percentile(estimator.decision_scores_[unknown], 100 * (1 - left))
        assert estimator.threshold_ == cut
        # As many rows are flagged as the share says, known ones included.
        assert abs(estimator.labels_.sum() - posterior.mean * 367) <= 1
        given = estimator.to_frame()["probability"].to_numpy()[rows]
        np.testing.assert_array_equal(given, made.y[rows])
        probability = estimator.predict_proba(made.X[:5])[:, 1]
        scores = estimator.decision_function(made.X[:5])
        n_higher = [(estimator.decision_scores_ >= score).mean() for score in scores]
        np.testing.assert_allclose(probability, posterior.sf(n_higher))
        assert estimator.summary().posterior.mean == posterior.mean
        [note] = [note for note in estimator.notes_ if note.step == "labels"]
        assert f"30 known rows ({made.y[rows].sum()} anomalies)" in note.message

    def test_the_posterior_counts_the_labels_of_rows_chosen_at_random(
        self, estimator, made, tmp_path
    ):
        fitted = estimator.posterior_
        assert estimator.update([], []).n_labels == 0
        assert estimator.update([0, 1], made.y[:2], at_random=False).n_labels == 0
        rows = estimator.suggest(30, random_state=0)
        posterior = estimator.update(rows, made.y[rows])
        assert posterior.n_labels == 30
        assert estimator.update(rows[:5], made.y[rows[:5]]).n_labels == 30  # the same rows again
        assert (posterior.given(high=0.2).n_labels, fitted.n_labels) == (30, 0)
        assert pickle.loads(pickle.dumps(estimator)).posterior_.n_labels == 30
        assert estimator.contamination_.posterior.n_labels == 30
        estimator.summary().save(tmp_path / "fit.json")
        assert FitSummary.load(tmp_path / "fit.json").posterior.n_labels == 30
        rows = np.arange(367)
        assert estimator.update(rows, made.y).n_labels == 367

    def test_a_fit_forgets_the_labels(self, estimator, made):
        estimator.update([0, 1], [0, 1])
        estimator.fit(made.X)
        assert len(estimator.known_rows_) == 0
        assert estimator.posterior_ is estimator.fitted_posterior_
        assert estimator.posterior_.n_labels == 0

    def test_order_and_number_of_calls_do_not_matter(self, made):
        rows = np.random.default_rng(0).permutation(367)[:40]
        answers = []
        for parts in ([rows], [rows[::-1]], [rows[:13], rows[13:]], [rows, rows[:5]]):
            fresh = GammaGMM(["KNN", "LOF"], scale=None, n_runs=2, random_state=0)
            fresh.fit(made.X)
            for part in parts:
                fresh.update(part, made.y[part])
            answers.append((fresh.posterior_.mean, *fresh.posterior_.interval()))
        assert answers == answers[:1] * 4

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
        with pytest.raises(ValueError, match="n must be at most 0, the number of rows"):
            estimator.suggest(1)

    def test_the_same_seed_gives_the_same_rows_and_never_known_ones(self, estimator, made):
        for strategy in ("random", "adaptive"):
            found = [estimator.suggest(30, strategy, random_state=3) for _ in range(2)]
            np.testing.assert_array_equal(*found)
            assert len(set(found[0].tolist())) == 30
        estimator.update(found[0], made.y[found[0]])
        more = estimator.suggest(300, "adaptive", random_state=3)
        assert not set(more.tolist()) & set(found[0].tolist())

    def test_more_labels_are_expected_to_narrow_it(self, estimator):
        few, many = (estimator.expected_width(n, random_state=0) for n in (5, 100))
        assert many < 0.7 * few

    def test_told_rows_are_noted(self, estimator):
        estimator.update([3, 4], [1, 1], at_random=False)
        notes = [note for note in estimator.notes_ if note.step == "labels"]
        assert "2 known rows were not chosen at random" in notes[1].message
        estimator.update([3], [1])
        assert estimator.known_rows_.at_random.tolist() == [True, False]

    def test_a_fit_without_solution_gets_an_answer_from_labels(self):
        flat = GammaGMM("precomputed", n_runs=1, n_components=2, max_restarts=0, random_state=0)
        scores = np.random.default_rng(0).normal(size=(60, 1))
        with pytest.warns(NoSolutionWarning):
            flat.fit(scores)
        assert flat.posterior_.is_degenerate
        rows = np.arange(20)
        posterior = flat.update(rows, (rows < 2).astype(int))
        assert 0.02 < posterior.mean < 0.4
        assert "has no solution and is not used" in flat.notes_[-1].message

    @pytest.mark.parametrize(
        ("rows", "labels", "error", "message"),
        [
            ([367], [1], ValueError, "rows must be row positions from 0 to 366, got 367"),
            ([-1], [1], ValueError, "rows must be row positions from 0 to 366, got -1"),
            ([0.5], [1], TypeError, "rows must be row positions from 0 to 366"),
            ([[1, 2]], [1], TypeError, "rows must be row positions from 0 to 366"),
            ([True], [1], TypeError, "rows must be row positions from 0 to 366"),
            ([1, 2], [1], ValueError, "rows and labels must have the same length, got 2 and 1"),
            ([1], [2], ValueError, r"labels must be 0 \(normal\) or 1 \(anomaly\), got 2"),
            ([1], [-1], ValueError, "got -1"),
            ([1], [np.nan], ValueError, "got nan"),
            ([1], ["yes"], TypeError, "labels must be 0"),
            ([5, 5], [0, 1], ValueError, "Row 5 has both labels, 0 and 1"),
        ],
    )
    def test_bad_labels_are_refused_and_change_nothing(
        self, estimator, rows, labels, error, message
    ):
        before = estimator.posterior_
        with pytest.raises(error, match=message):
            estimator.update(rows, labels)
        assert estimator.posterior_ is before
        assert len(estimator.known_rows_) == 0

    def test_labels_that_few_curves_agree_with_are_told(self, estimator, monkeypatch):
        monkeypatch.setattr("gammagmm.inspection.labelled_posterior._MIN_EFFECTIVE", 1e6)
        monkeypatch.setattr("gammagmm.inspection.labelled_posterior._MAX_ROUNDS", 1)
        with pytest.warns(LabelsWarning, match="The labels contradict the ranking"):
            estimator.update([1, 2], [0, 1])
        assert "contradict the ranking" in estimator.notes_[-1].message

    def test_a_contradiction_across_calls_is_refused(self, estimator):
        estimator.update([5], [0])
        with pytest.raises(ValueError, match="Row 5 has both labels"):
            estimator.update([5], [1])

    def test_other_bad_arguments(self, estimator):
        with pytest.raises(ValueError, match="strategy must be 'random' or 'adaptive', got 'all'"):
            estimator.suggest(3, "all")
        with pytest.raises(ValueError, match="n must be at most 367"):
            estimator.suggest(368)
        with pytest.raises(ValueError, match="n must be at least 1"):
            estimator.expected_width(0)
        with pytest.raises(ValueError, match="trust must be at least 0 and below 1, got 1"):
            GammaGMM(trust=1).fit(np.eye(5))
        with pytest.raises(TypeError, match="at_random must be True or False, got 'no'"):
            estimator.update([1], [1], at_random="no")


def test_counts_keep_what_was_told_apart(cells):
    known = KnownRows.none().add([1, 2], [1, 0], at_random=True, n_rows=2000)
    known = known.add([3, 4], [1, 0], at_random=False, n_rows=2000)
    counts = count_labels(cells, known)
    for field, row in zip(
        ("anomalies", "normals", "told_anomalies", "told_normals"), range(1, 5), strict=True
    ):
        expected = np.zeros(len(cells.counts), int)
        expected[cells.of_row[row]] = 1
        np.testing.assert_array_equal(getattr(counts, field), expected)
    assert counts.n_anomalies == counts.n_normals == counts.n_at_random == 2
    assert not CellLabels.none(3).known.any()


def test_the_page_tells_the_prior_as_it_is():
    page = (Path(__file__).parents[2] / "docs" / "labels.md").read_text(encoding="utf-8")
    prior, gamma = CurvePrior(), GammaPrior(FITTED, GammaGMM().trust)
    low, high = np.exp(prior.l_range)
    told = [f"uniform between log {low:.2g} and log {high:.2g}"]
    told.append(f"mean log {np.exp(prior.mean[0]):.2g}, deviation {prior.deviation[0]:g}")
    told.append(f"(a flat curve) with probability {prior.p_flat:g}")
    for name, mean, deviation in zip(
        ("logit low", "(1 − low)"), prior.mean[1:], prior.deviation[1:], strict=True
    ):
        told.append(f"{name} | normal, mean {mean:g}, deviation {deviation:g}")
    told.append(f"{gamma.trust:g} times the fitted posterior and {1 - gamma.trust:g} times")
    told.append(f"Beta({gamma.a:g}, {gamma.b:g})")
    told.append(f"{N_CURVES:,} points")
    told.append(f"the power of {prior.label_weight:g}")
    assert [words for words in told if words not in page] == []
