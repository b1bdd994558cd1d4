import numpy as np
from experiments.new_rows import unclipped_consensus
from experiments.plan import load_plan, trials
from experiments.results import read_file, result_file

from gammagmm.mixture.score_space import fit_scaler


def factors(scale, key):
    """Share of new rows that are flagged / the estimate, by dataset."""
    found = read_file(result_file("new_rows"))
    asked = [t for t in trials(load_plan()) if t.kind == "new_rows" and t.variant == scale]
    return {
        trial.dataset: (found[trial] if key == "all" else found[trial][key])["flagged"]
        / found[trial]["estimate"]
        for trial in asked
    }


def test_units_do_not_change_how_many_new_rows_are_flagged():
    found = factors("standard", "all")
    assert len(found) == 20
    assert min(found.values()) >= 0.5
    assert max(found.values()) <= 2.0


def test_without_scaling_and_limit_nearly_all_rows_could_be_flagged():
    assert max(factors("none", "unclipped").values()) > 5.0


def test_the_unlimited_consensus_is_that_of_the_training_rows():
    scores = np.random.default_rng(0).lognormal(size=(100, 3))
    scaler = fit_scaler(scores)
    np.testing.assert_allclose(
        unclipped_consensus(scores, scaler), scaler.transform(scores).mean(axis=1)
    )
    assert unclipped_consensus(10.0 * scores, scaler).max() > scaler.consensus(10.0 * scores).max()
