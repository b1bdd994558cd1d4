"""The posterior under other constraints, and with other detectors."""

import numpy as np
import pytest

from gammagmm import GammaGMM
from gammagmm.datasets import make_contaminated
from gammagmm.mixture.prior import MixturePrior
from gammagmm.posterior.link import Constraints
from gammagmm.posterior.runs import fit_runs, plan_runs
from gammagmm.posterior.sensitivity import DrawnRun, draw_runs, leave_one_out, relink


@pytest.fixture(scope="module")
def fitted():
    X = make_contaminated(300, 4, 0.05, "global", random_state=2).X
    return GammaGMM(["KNN", "LOF", "HBOS", "COPOD"], n_runs=3, random_state=0).fit(X)


def test_the_default_answer_is_the_estimators(fitted):
    drawn = draw_runs(fitted.runs_, np.random.default_rng(0))
    theirs, n_unsolved = relink(drawn, Constraints())
    ours = fitted.posterior_
    error = 4 * np.hypot(ours.standard_error, theirs.standard_error)
    assert n_unsolved == 0
    assert theirs.mean == pytest.approx(ours.mean, abs=error)
    again, _ = relink(drawn, Constraints(p0=0.1))
    assert again.prob_zero == 0.1


def test_other_answers_are_those_of_a_new_fit_on_the_same_mixtures(fitted):
    drawn = draw_runs(fitted.runs_, np.random.default_rng(0))
    again = GammaGMM("precomputed", p_high=0.05, n_runs=3, random_state=0)
    expected = again.fit(fitted.scores_).posterior_
    found, _ = relink(drawn, Constraints(p_high=0.05))
    error = 4 * np.hypot(found.standard_error, expected.standard_error)
    assert [r.elbo for r in again.runs_] == [r.elbo for r in fitted.runs_]
    assert found.mean == pytest.approx(expected.mean, abs=error)


def test_at_the_representative_values_both_answers_hold(fitted):
    """The link was solved there, so the posterior meets p_high to the digit."""
    solved = [run for run in fitted.runs_ if run.status == "solved"]
    assert solved
    for run in solved:
        low, high = run.reachable
        at_expected = [DrawnRun(run.components, run.components.anomalousness[:, None])]
        for p_high in (0.01, 0.5 * (max(low, 1e-6) + min(high, 0.02))):
            posterior, n_unsolved = relink(at_expected, Constraints(p_high=p_high))
            assert n_unsolved == 0
            assert posterior.prob_above(0.15) == pytest.approx(p_high, rel=1e-6)


def test_runs_without_a_solution_are_counted(fitted):
    drawn = draw_runs(fitted.runs_, np.random.default_rng(0))
    posterior, n_unsolved = relink(drawn, Constraints(p_high=1e-300))
    assert n_unsolved == len(fitted.runs_)
    assert posterior.is_degenerate


def test_leaving_one_out_is_a_fit_without_its_column(fitted):
    found = leave_one_out(fitted.score_space_, Constraints(), np.random.default_rng(0))
    assert len(found) == 1 + len(fitted.detector_names_)
    again = leave_one_out(fitted.score_space_, Constraints(), np.random.default_rng(0), n_jobs=2)
    assert [p.mean for p in again] == pytest.approx([p.mean for p in found], rel=1e-9)
    # Without the last one, by a mixture fitted to the other columns from the same start.
    Z = np.ascontiguousarray(fitted.score_space_[:, :-1])
    stream = np.random.default_rng(0).spawn(2 + len(fitted.detector_names_))[-1]
    settings, _ = plan_runs(len(Z), MixturePrior().resolve(Z), Constraints(), 100)
    (run,) = fit_runs(Z, settings, (1, 5), stream)
    assert found[-1].mean == pytest.approx(run.posterior.mean if run.posterior else 0.0, rel=1e-9)
    assert found[-1].mean != found[0].mean
