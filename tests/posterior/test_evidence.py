from dataclasses import replace

import numpy as np
import pytest

from gammagmm import GammaGMM, GammaPosterior
from gammagmm.posterior import evidence as module
from gammagmm.posterior.assumptions import Assumption
from gammagmm.posterior.betas import BetaMixture
from gammagmm.posterior.evidence import contradiction, find_evidence
from gammagmm.posterior.link import Constraints
from gammagmm.posterior.runs import count_starts
from gammagmm.posterior.separate_rows import SeparateRows
from gammagmm.posterior.track_record import load_track_record

POSTERIOR = GammaPosterior(0.01, BetaMixture(*np.array([[0.99], [50.0], [950.0]])))


def separate(share):
    return SeparateRows(np.arange(7), 7, share, 0.9, ("KNN", "LOF"))


def found_for(means, monkeypatch, separate_rows=None):
    others = tuple(Assumption(("p_high",), 0.01, 0.1, 0.15, 0.25, mean) for mean in means)
    monkeypatch.setattr(module, "find_assumptions", lambda *_: others)
    return find_evidence([], Constraints(), separate_rows, np.random.default_rng(0))


def test_means_are_the_ends_of_other_answers(monkeypatch):
    assert found_for([0.05, 0.02, np.nan, 0.03], monkeypatch).means == (0.02, 0.05)
    assert np.isnan(found_for([np.nan] * 4, monkeypatch).means).all()


def test_it_is_told_in_one_line(monkeypatch):
    found = replace(found_for([0.02, 0.05], monkeypatch), n_starts=12, n_unsolved_starts=3)
    ends, starts = "other answers give 0.020 to 0.050", "3 of 12 starts unsolved"
    assert repr(found) == f"Evidence({ends}, {starts}, no separate rows)"
    assert repr(replace(found, separate_rows=separate(0.02))).endswith(", 7 separate rows (2.0%))")


def test_a_group_above_the_range_contradicts_the_estimate():
    low, high = POSTERIOR.interval()
    assert contradiction(None, POSTERIOR) is None
    for share in (0.99 * low, 0.05, high):
        assert contradiction(separate(share), POSTERIOR) is None
    share = 1.01 * high
    note = contradiction(separate(share), POSTERIOR)
    assert note.code == "evidence.separate rows"
    assert note.fields == {"n_rows": 7, "share": share, "high": high}


def test_a_group_without_an_estimate_contradicts_it():
    assert contradiction(None, GammaPosterior.degenerate()) is None
    note = contradiction(separate(0.01), GammaPosterior.degenerate())
    assert note.code == "evidence.no estimate"
    assert note.fields == {"n_rows": 7, "share": 0.01}


def test_the_rows_of_the_group_can_be_left_out(monkeypatch):
    found = found_for([0.0], monkeypatch, separate(0.02))
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
    assert (evidence.n_starts, evidence.n_unsolved_starts) == count_starts(fitted.fit_.runs)
    fitted.update([0, 1, 30, 40], [1, 1, 0, 0])
    assert fitted.evidence_ is evidence


@pytest.mark.filterwarnings("ignore::gammagmm.errors.UnsolvedRunsWarning")
def test_the_same_seed_gives_the_same_evidence():
    scores = np.random.default_rng(0).standard_t(3, size=(200, 3)) ** 2
    first, second = (
        GammaGMM("precomputed", n_runs=2, max_restarts=100, random_state=3).fit(scores).evidence_
        for _ in range(2)
    )
    assert first.assumptions == second.assumptions
