"""Notes about runs that did not converge, were restarted, miss p_high or have no solution."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gammagmm.errors import MixtureConvergenceWarning, NoSolutionWarning, UnsolvedRunsWarning
from gammagmm.estimator.gamma_gmm import GammaGMM
from gammagmm.mixture.prior import MixturePrior
from gammagmm.posterior.link import Constraints
from gammagmm.posterior.run_notes import describe_runs
from gammagmm.posterior.runs import RunSettings, fit_runs
from tests.support.solved_scores import SOLVED, grouped_scores, has_content


@pytest.fixture(scope="module")
def run():
    """A run with a solution."""
    rng = np.random.default_rng(0)
    Z = np.vstack([rng.normal(size=(300, 2)), rng.normal(4.0, 0.5, size=(12, 2))])
    settings = RunSettings(Constraints(p_high=0.02), MixturePrior().resolve(Z), 5, n_draws=50)
    (fitted,) = fit_runs(Z, settings, (1, 0), rng)
    return replace(fitted, status="solved", reachable=(0.001, 0.5), reached=0.01, n_restarts=0)


def test_every_kind_of_run_has_its_note(run):
    slack = replace(run, status="slack", reachable=(0.001, 0.008), n_restarts=1)
    # It was given up before its last iteration.
    unsolved = replace(
        run, status="unsolved", reachable=(0.2, 0.5), posterior=None, converged=False, n_iter=30
    )
    capped = replace(run, converged=False, n_iter=40, n_restarts=2)
    assert describe_runs((run, run), Constraints(), 40) == []
    described = describe_runs((run, slack, unsolved, capped), Constraints(), 40)
    asked = {"high_gamma": 0.15, "p_high": 0.01}
    cause = {"low": 0.2, "high": 0.5, "max_gamma": 0.25, "is_first_large": False}
    cause |= {"n_separate": 0} | asked
    assert [(note.code, category, note.fields) for note, category in described] == [
        (
            "mixture.max_iter",
            MixtureConvergenceWarning,
            {"n_capped": 1, "n_runs": 4, "max_iter": 40, "raised": "max_iter or tol"},
        ),
        ("link.starts", UnsolvedRunsWarning, {"n_unsolved": 4, "n_starts": 7}),
        ("link.slack", None, {"n_slack": 1, "n_runs": 4, "most": 0.008} | asked),
        ("link.unsolved", None, {"n_unsolved": 1, "n_runs": 4} | cause),
    ]
    (starts, silent), (note, category) = describe_runs((unsolved, unsolved), Constraints(), 40)
    assert (starts.code, silent) == ("link.starts", None)
    assert starts.fields == {"n_unsolved": 2, "n_starts": 2}
    assert (note.code, category) == ("link.no solution", NoSolutionWarning)
    assert note.fields == {"n_runs": 2} | cause


@pytest.mark.parametrize(
    ("n_restarts", "category"), [(1, None), (2, None), (3, UnsolvedRunsWarning)]
)
def test_most_starts_are_more_than_half(run, n_restarts, category):
    runs = (run, replace(run, n_restarts=n_restarts))
    ((note, found),) = describe_runs(runs, Constraints(), 40)
    assert (note.code, found) == ("link.starts", category)
    assert note.fields == {"n_unsolved": n_restarts, "n_starts": n_restarts + 2}


def test_of_several_slack_runs_the_most_that_one_can_reach_counts(run):
    slack = replace(run, status="slack", reachable=(0.001, 0.008))
    other = replace(slack, reachable=(0.001, 0.003))
    for several in ((slack, other), (other, slack)):
        ((note, _),) = describe_runs((*several, run), Constraints(), 40)
        assert (note.code, note.fields["n_slack"], note.fields["most"]) == ("link.slack", 2, 0.008)


@pytest.mark.parametrize(
    ("reached", "mean"),
    [
        ([0.005, 0.005], None),
        ([0.02, 0.02], None),
        ([0.0049, 0.0049], 0.0049),
        ([0.0201, 0.0201], 0.0201),
        ([0.03, 0.001], None),  # the posterior has the mean of both
        ([0.08, 0.004], 0.042),
        ([0.002, 0.001], 0.0015),
    ],
)
def test_a_posterior_far_from_p_high_is_noted(run, reached, mean):
    runs = [replace(run, reached=each) for each in reached]
    # Neither a slack nor an unsolved run counts.
    slack = replace(run, status="slack", reached=0.008)
    unsolved = replace(run, status="unsolved", posterior=None, reached=np.nan)
    described = describe_runs((*runs, slack, slack, unsolved), Constraints(), 40)
    missed = [note.fields for note, _ in described if note.code == "link.missed"]
    if mean is None:
        assert missed == []
        return
    (fields,) = missed
    assert fields["reached"] == pytest.approx(mean)
    assert (fields["n_solved"], fields["p_high"]) == (2, 0.01)
    assert fields["change"] == ("lower" if mean > 0.01 else "raise")


@pytest.mark.parametrize(("n_detectors", "is_far"), [(4, False), (3, True)])
def test_a_fit_notes_how_far_its_posterior_is_from_p_high(n_detectors, is_far):
    scores = grouped_scores(np.random.default_rng(0), 200, n_detectors)
    estimator = GammaGMM("precomputed", **SOLVED, random_state=0).fit(scores)
    assert has_content(estimator.fit_.runs, 2)
    notes = [note for note in estimator.notes_ if note.code == "link.missed"]
    n_draws = 20_000
    share = np.mean(estimator.posterior_.sample(n_draws, 0) >= 0.15)
    assert (share > 2 * SOLVED["p_high"]) == is_far == bool(notes)
    for note in notes:
        error = 4 * np.sqrt(share / n_draws)
        assert note.fields["reached"] == pytest.approx(share, abs=error)


def test_a_large_first_component_is_the_cause_only_if_every_unsolved_run_has_it(run):
    unsolved, first = replace(run, status="unsolved", posterior=None), run.components
    large = replace(first, alpha=np.where(np.arange(len(first)) == 0, 1e6, first.alpha))
    above = replace(unsolved, components=large)
    assert above.first_share > 0.25 > unsolved.first_share
    for runs, is_cause in (
        ((above, above), True),
        ((above, unsolved), False),
        ((unsolved,), False),
    ):
        *_, (note, _) = describe_runs(runs, Constraints(), 40)
        assert note.fields["is_first_large"] is is_cause
        assert ("raise max_gamma" in note.message) == is_cause
