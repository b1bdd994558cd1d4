"""`Fit`: one frozen value that holds what the estimator shows, and gives a new one for labels."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError
from html import escape

import numpy as np
import pytest

from gammagmm import Fit, GammaGMM, GammaPosterior
from gammagmm.datasets import make_contaminated
from gammagmm.estimator.summary import summarise
from gammagmm.labels.sentences import find_sentence
from gammagmm.posterior.storage import posterior_to_text
from tests.support.solved_scores import SOLVED, grouped_scores, has_content

SETTINGS = {"n_components": 15, "n_runs": 2, "n_draws": 100, "random_state": 0}


@pytest.fixture(scope="module")
def data():
    return make_contaminated(200, 4, 0.05, "clustered", random_state=1).X


@pytest.fixture(scope="module")
def fitted(data):
    return GammaGMM(["KNN", "LOF", "IForest"], **SETTINGS).fit(data)


def test_the_attributes_of_the_estimator_are_parts_of_it(fitted):
    fit = fitted.fit_
    assert isinstance(fit, Fit)
    for name in ("posterior", "detectors", "labels", "thresholds", "evidence"):
        assert getattr(fitted, f"{name}_") is getattr(fit, name)
    for name in ("scores", "decision_scores"):
        np.testing.assert_array_equal(getattr(fitted, f"{name}_"), getattr(fit, name))
    assert fitted.threshold_ == fit.threshold
    assert fitted.notes_ == list(fit.notes)
    assert [info.name for info in fit.detector_info] == ["KNN", "LOF", "IForest"]
    assert fit.detector_names == ["KNN", "LOF", "IForest"]
    assert (fit.n_rows, fit.n_flagged) == (200, fitted.labels_.sum())
    assert fit.plan.parameters["n_runs"] == 2


def test_a_rank_probability_is_that_of_gamma_above_the_share_of_rows_that_score_as_high(fitted):
    scores = fitted.decision_scores_
    found = fitted.labelled_rows_.rank_probability
    for row in (0, 17, int(np.argmax(scores))):
        share = (scores >= scores[row]).mean()
        expected = fitted.posterior_.sf(share)
        assert found[row] == pytest.approx(expected, rel=1e-12)


def test_the_probabilities_add_up_to_the_mean_of_the_reference_without_labels(fitted):
    fit = fitted.fit_
    total = fit.n_rows * GammaPosterior.reference().mean
    assert fit.probability.sum() == pytest.approx(total, rel=1e-9)
    rows = fit.labelled_rows.suggest(20, random_state=0)
    updated = fit.update(rows, np.zeros(20, dtype=int))
    assert updated.probability.sum() == pytest.approx(fit.n_rows * updated.posterior.mean, rel=1e-9)


def test_it_is_frozen(fitted):
    with pytest.raises(FrozenInstanceError):
        fitted.fit_.posterior = None


def test_labels_give_a_new_one_and_leave_the_old(fitted):
    fit = fitted.fit_
    before = posterior_to_text(fit.posterior)
    rows = fit.labelled_rows.suggest(12, random_state=0)
    updated = fit.update(rows, np.arange(12) % 2)
    assert posterior_to_text(fit.posterior) == before
    assert (len(fit.known_rows), len(updated.known_rows)) == (0, 12)
    assert updated.fitted_posterior is fit.posterior
    assert updated.posterior.mean > fit.posterior.mean
    np.testing.assert_array_equal(updated.labels[rows], np.arange(12) % 2)
    np.testing.assert_array_equal(updated.probability[rows], np.arange(12) % 2)
    assert {note.step for note in updated.notes} - {note.step for note in fit.notes} == {"labels"}
    # The estimator's own update gives the same.
    own = pickle.loads(pickle.dumps(fitted))
    assert posterior_to_text(own.update(rows, np.arange(12) % 2)) == posterior_to_text(
        updated.posterior
    )


def test_new_rows_are_cut_as_the_rows_outside_lists_by_scores_that_do_not_know_their_labels(rng):
    scores = grouped_scores(rng)
    fit = GammaGMM("precomputed", **SOLVED, random_state=0).fit(scores).fit_
    assert has_content(fit.runs)
    # Labels that are hard to learn: a row's own label moves its score.
    truth = (np.arange(300) >= 246).astype(int) ^ (rng.random(300) < 0.2)
    drawn, listed = rng.permutation(300)[:80], np.arange(250, 290)
    updated = fit.update(listed, truth[listed], at_random=False).update(drawn, truth[drawn])
    assert updated.ranking == "learned"
    outside = np.setdiff1d(np.arange(300), listed)
    share = (300 * updated.posterior.mean - truth[listed].sum()) / len(outside)
    assert 0.0 < share < 1.0
    honest = updated.learning.honest_scores[outside]
    assert abs(honest - updated.decision_scores[outside]).max() > 0.5
    assert updated.threshold == pytest.approx(np.percentile(honest, 100 * (1 - share)), rel=1e-12)
    for name, column in zip(updated.detector_names, scores[outside].T, strict=True):
        expected = np.percentile(column, 100 * (1 - share))
        assert updated.thresholds[name] == pytest.approx(expected, rel=1e-12)
    # The rows without labels are cut at what is left for them, by the ranking itself.
    known = np.union1d(drawn, listed)
    left = np.setdiff1d(np.arange(300), known)
    share_left = (300 * updated.posterior.mean - truth[known].sum()) / len(left)
    ranked = updated.decision_scores[left]
    expected = ranked > np.percentile(ranked, 100 * (1 - np.clip(share_left, 0.0, 1.0)))
    np.testing.assert_array_equal(updated.labels[left], expected)
    np.testing.assert_array_equal(updated.labels[known], truth[known])


def test_it_travels_and_keeps_no_callback(data):
    heard = []
    fitted = GammaGMM(["KNN", "LOF"], **SETTINGS, progress=lambda *told: heard.append(told)).fit(
        data
    )
    assert heard
    copy = pickle.loads(pickle.dumps(fitted.fit_))
    np.testing.assert_array_equal(copy.labels, fitted.labels_)
    np.testing.assert_array_equal(copy.probability, fitted.fit_.probability)
    assert summarise(copy).n_rows == 200


def test_its_parameters_are_those_of_the_fit(data):
    fitted = GammaGMM(["KNN", "LOF"], **SETTINGS).fit(data).set_params(n_runs=7)
    assert fitted.summary().parameters["n_runs"] == 2


def test_a_detector_that_cannot_show_itself_is_fitted(data):
    class Silent:
        def fit(self, X):
            self.centre = X.mean(axis=0)

        def decision_function(self, X):
            return np.abs(X - self.centre).sum(axis=1)

        def __repr__(self):
            raise RuntimeError("no name")

    detectors = {"KNN": "KNN", "LOF": "LOF", "silent": Silent()}
    fitted = GammaGMM(detectors, **SETTINGS).fit(data)
    assert "detectors" in fitted.summary().parameters


def test_four_lines_tell_what_is_known_without_labels(fitted):
    fit = fitted.fit_
    assert len(fit.lines) == 4
    assert f"{fit.n_flagged} of {fit.n_rows} rows" in fit.lines[1]
    assert f"{fit.posterior.mean:.1%}" in fit.lines[2]
    assert repr(fit).splitlines()[1:] == [f"  {line}" for line in fit.lines]
    assert escape(fit.lines[0]) in fit._repr_html_()


def test_lines_with_labels_end_with_what_to_do_as_well(fitted):
    labelled = fitted.fit_.update([0, 1, 2], [0, 0, 0])
    answer, labels, ranking, *group, following = labelled.lines
    assert answer.startswith(f"About {labelled.posterior.mean:.1%} of the rows are anomalies (90%")
    assert ranking.startswith("All labels are of one kind, so the rows are still ranked by the")
    assert labels.startswith("This estimate uses 3 labelled rows (0 anomalies).")
    assert "%" not in labels.partition("Without labels")[0]  # one interval, that of the answer
    assert len(group) == (labelled.evidence.separate_rows is not None)
    low, high = labelled.posterior.interval()
    n_more = labelled.labelled_rows.n_for_width(0.5 * (high - low))
    told = f"Next: about {n_more} more labels would make this interval half as wide."
    assert labelled.told["next"] == {"what": told, "find": find_sentence()}
    assert following == f"{told} {find_sentence()}"
    searched = labelled.update([3], [1], purpose="find")
    assert "find" not in searched.told["next"]
    chosen = fitted.fit_.update([0, 1, 2], [0, 0, 0], at_random=False)
    _, labels, reason, _, following = chosen.lines
    assert "This estimate uses 3 labelled rows" in labels
    assert reason.startswith("The labelled rows were not chosen at random and say nothing about")
    assert following.startswith("Next: label 30 random rows.")
