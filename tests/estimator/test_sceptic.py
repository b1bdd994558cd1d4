"""What somebody who doubts the software tries first; `make track-record` tries all cases."""

import numpy as np
import pytest
from experiments.made_tables import clean_table, sceptic_table, two_blobs

from gammagmm import GammaGMM


def answer(X):
    fitted = GammaGMM(random_state=0).fit(X)
    return fitted.posterior_, fitted.evidence_, "\n".join(fitted.fit_.lines)


@pytest.mark.parametrize(
    ("kind", "share", "n_blobs"),
    [("near", 0.1, 1), ("near", 0.2, 3), ("far", 0.02, 3), ("far", 0.3, 1)],
)
def test_outliers_that_everybody_sees_are_named(kind, share, n_blobs):
    X, y = sceptic_table(kind, share, n_blobs, 500, seed=7)
    posterior, evidence, lines = answer(X)
    n_outliers = int(y.sum())
    separate = evidence.separate_rows
    assert abs(separate.n_rows - n_outliers) <= max(2, 0.1 * n_outliers)
    assert y[separate.rows].mean() > 0.95
    assert separate.is_cluster is False
    assert f"{separate.n_rows} rows ({separate.share:.1%}) are separate" in lines
    if separate.share > posterior.interval()[1]:
        assert "the estimate excludes some of them" in lines


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_a_wrong_interval_is_never_silent(share):
    X, y = sceptic_table("cluster", share, 1, 500, seed=7)
    posterior, evidence, lines = answer(X)
    is_warned = evidence.separate_rows is not None or evidence.rests_on == "assumptions"
    assert posterior.contains(y.mean()) or is_warned
    assert "of the 90% intervals of default fits contained the true share" in lines


def test_a_clean_table_has_no_group_and_rests_on_assumptions():
    _, evidence, lines = answer(clean_table("normal", 500, seed=7))
    assert evidence.separate_rows is None
    assert evidence.rests_on == "assumptions"
    assert "No rows are separate" in lines
    assert "Next: set p0, p_high and high_gamma to what you know" in lines


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("share", [0.1, 0.3])
def test_zeros_are_no_group(share, seed):
    rng = np.random.default_rng(seed)
    amounts = np.exp(rng.normal(size=(1000, 6)))
    X = np.where(rng.random((1000, 6)) < share, amounts, 0.0)
    # The mixture has no part in the group.
    fitted = GammaGMM(n_runs=1, n_components=5, random_state=0).fit(X)
    assert fitted.evidence_.separate_rows is None
    scores = GammaGMM("precomputed", n_runs=1, n_components=5, random_state=0).fit(fitted.scores_)
    assert scores.evidence_.separate_rows is None


def test_a_smaller_blob_is_a_cluster():
    X, y = two_blobs(900, seed=2)
    fitted = GammaGMM(n_runs=1, n_components=5, random_state=0).fit(X)
    separate = fitted.evidence_.separate_rows
    assert separate.rows.tolist() == np.flatnonzero(y).tolist()
    assert separate.is_cluster is True
    scores = GammaGMM("precomputed", n_runs=1, n_components=5, random_state=0).fit(fitted.scores_)
    assert scores.evidence_.separate_rows.rows.tolist() == separate.rows.tolist()
    assert scores.evidence_.separate_rows.is_cluster is None


def test_units_do_not_matter():
    X, _ = sceptic_table("near", 0.1, 1, 500, seed=7)
    units = 2.0 ** np.array([-10, 0, 3, 13, 20])
    plain, scrambled = answer(X), answer(X * units)
    assert scrambled[0].mean == pytest.approx(plain[0].mean, rel=1e-9)
    assert scrambled[1].separate_rows.rows.tolist() == plain[1].separate_rows.rows.tolist()


def test_a_sharp_gap_rests_on_the_data():
    X, y = sceptic_table("far", 0.1, 1, 2000, seed=8)
    fitted = GammaGMM(["KNN", "IForest", "HBOS"], random_state=0).fit(X)
    assert fitted.posterior_.contains(y.mean())
    assert fitted.evidence_.separate_rows.n_rows == y.sum()
    assert fitted.evidence_.rests_on == "data"
    assert "The estimate rests on the data: other values" in fitted.fit_.lines[2]
