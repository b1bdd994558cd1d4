from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from gammagmm import GammaGMM, GammaPosterior
from gammagmm.posterior import evidence as module
from gammagmm.posterior.assumptions import Assumption
from gammagmm.posterior.betas import BetaMixture
from gammagmm.posterior.evidence import find_evidence
from gammagmm.posterior.link import Constraints
from gammagmm.posterior.separate_rows import SeparateRows
from gammagmm.posterior.track_record import load_track_record

POSTERIOR = GammaPosterior(0.01, BetaMixture(*np.array([[0.99], [50.0], [950.0]])))
GIVEN = stats.beta(50.0, 950.0)  # the same, given that there are anomalies


def found_for(moves, monkeypatch, posterior=POSTERIOR, separate_rows=None):
    others = tuple(
        Assumption(("p_high",), 0.01, 0.1, 0.15, 0.25, 0.99 * (GIVEN.mean() + move * GIVEN.std()))
        for move in moves
    )
    monkeypatch.setattr(module, "find_assumptions", lambda *_: others)
    return find_evidence([], Constraints(), posterior, separate_rows, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("moves", "word"),
    [
        ([0.0, 0.49, -0.49], "data"),
        ([0.0, 0.51, 0.0], "assumptions"),
        ([0.0, 0.0, -0.51], "assumptions"),
        ([0.0, np.nan, 0.0], "assumptions"),
    ],
)
def test_answers_that_move_the_mean_by_half_a_deviation_count(moves, word, monkeypatch):
    assert found_for(moves, monkeypatch).rests_on == word


def test_another_p0_alone_does_not_count(monkeypatch):
    same = Assumption(("p0",), 0.1, 0.01, 0.15, 0.25, 0.9 * GIVEN.mean())
    assert POSTERIOR.mean - same.mean > 0.5 * POSTERIOR.std
    monkeypatch.setattr(module, "find_assumptions", lambda *_: (same,))
    found = find_evidence([], Constraints(), POSTERIOR, None, np.random.default_rng(0))
    assert found.rests_on == "data"


def test_without_an_estimate_it_rests_on_assumptions(monkeypatch):
    found = found_for([np.nan] * 4, monkeypatch, GammaPosterior.degenerate())
    assert found.rests_on == "assumptions"
    assert np.isnan(found.means).all()


def test_it_is_told_in_one_line(monkeypatch):
    found = found_for([-1.0, 1.0, np.nan], monkeypatch)
    low, high = found.means
    ends = (0.99 * (0.05 - GIVEN.std()), 0.99 * (0.05 + GIVEN.std()))
    assert (low, high) == pytest.approx(ends)
    others = f"other answers give {low:.3f} to {high:.3f}"
    assert repr(found) == f"Evidence(rests on assumptions, {others}, no separate rows)"
    separate = SeparateRows(np.arange(7), 7, 0.02, 0.9, ("KNN", "LOF"))
    assert repr(replace(found, separate_rows=separate)).endswith(", 7 separate rows (2.0%))")


def test_the_rows_of_the_group_can_be_left_out(monkeypatch):
    separate = SeparateRows(np.arange(7), 7, 0.02, 0.9, ("KNN", "LOF"))
    found = found_for([0.0], monkeypatch, separate_rows=separate)
    assert found.without_rows().separate_rows.rows is None
    assert found.without_rows().separate_rows.share == 0.02
    assert found_for([0.0], monkeypatch).without_rows().separate_rows is None


def test_every_fit_has_it():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(400, 4))
    scores[:20] += 12.0
    fitted = GammaGMM("precomputed", n_runs=2, random_state=0).fit(scores)
    evidence = fitted.evidence_
    assert evidence is fitted.fit_.evidence
    assert evidence.separate_rows.rows.tolist() == list(range(20))
    assert evidence.constraints == Constraints()
    assert evidence.track_record == load_track_record()
    assert len(evidence.assumptions) == 4
    fitted.update([0, 1, 30, 40], [1, 1, 0, 0])
    assert fitted.evidence_ is evidence


def test_the_same_seed_gives_the_same_evidence():
    scores = np.random.default_rng(0).standard_t(3, size=(200, 3)) ** 2
    first, second = (
        GammaGMM("precomputed", n_runs=2, max_restarts=100, random_state=3).fit(scores).evidence_
        for _ in range(2)
    )
    assert first.assumptions == second.assumptions
