"""What somebody who doubts the software tries first; `make track-record` tries all cases."""

import numpy as np
import pytest
from experiments.made_tables import clean_table, sceptic_table, two_blobs

from gammagmm import GammaGMM

# Large shares of outliers rightly contradict the estimate and leave starts without a solution.
pytestmark = [
    pytest.mark.filterwarnings(f"ignore::gammagmm.errors.{name}")
    for name in ("SeparateRowsWarning", "UnsolvedRunsWarning")
]


@pytest.mark.parametrize(
    ("kind", "share", "n_blobs"),
    [("near", 0.1, 1), ("near", 0.2, 3), ("far", 0.02, 3), ("far", 0.3, 1)],
)
def test_outliers_that_everybody_sees_are_named(kind, share, n_blobs):
    X, y = sceptic_table(kind, share, n_blobs, 500, seed=7)
    fitted = GammaGMM(random_state=0).fit(X)
    separate, codes = fitted.evidence_.separate_rows, {note.code for note in fitted.notes_}
    n_outliers = int(y.sum())
    assert abs(separate.n_rows - n_outliers) <= max(2, 0.1 * n_outliers)
    assert y[separate.rows].mean() > 0.95
    assert separate.is_cluster is False
    assert f"{separate.n_rows} rows" in fitted.fit_.lines[-1]
    is_above = separate.share > fitted.posterior_.interval()[1]
    assert ("evidence.separate rows" in codes) == is_above


def test_a_clean_table_has_no_group():
    fitted = GammaGMM(random_state=0).fit(clean_table("normal", 500, seed=7))
    assert fitted.evidence_.separate_rows is None


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
    plain, scrambled = (GammaGMM(random_state=0).fit(rows) for rows in (X, X * units))
    assert scrambled.posterior_.mean == pytest.approx(plain.posterior_.mean, rel=1e-9)
    rows, again = (each.evidence_.separate_rows.rows for each in (plain, scrambled))
    assert rows.tolist() == again.tolist()


def test_other_answers_hardly_move_the_value_at_a_sharp_gap():
    X, y = sceptic_table("far", 0.1, 1, 2000, seed=8)
    fitted = GammaGMM(["KNN", "IForest", "HBOS"], random_state=0).fit(X)
    assert fitted.posterior_.contains(y.mean())
    assert fitted.evidence_.separate_rows.n_rows == y.sum()
    low, high = fitted.evidence_.means
    assert high - low < fitted.posterior_.std + 0.1 * fitted.posterior_.mean
