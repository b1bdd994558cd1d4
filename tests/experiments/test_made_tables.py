import numpy as np
import pytest
from experiments.made_tables import (
    CLEAN,
    RADII,
    clean_table,
    sceptic_table,
    shaped_table,
    two_blobs,
)
from experiments.plan import load_plan


@pytest.mark.parametrize("kind", ["near", "far"])
def test_outliers_lie_on_a_shell_around_one_blob(kind):
    X, y = sceptic_table(kind, 0.2, 1, 500, seed=0)
    assert (X.shape, y.sum()) == ((500, 5), 100)
    distances = np.linalg.norm(X[y == 1], axis=1)
    assert RADII[kind][0] <= distances.min() < distances.max() <= RADII[kind][1]
    assert np.linalg.norm(X[y == 0], axis=1).max() < 6.0


def test_outliers_are_far_from_every_blob():
    X, y = sceptic_table("near", 0.3, 3, 2000, seed=1)
    apart = np.linalg.norm(X[y == 1][:, None] - X[y == 0], axis=2).min(axis=1)
    assert apart.min() > 1.0
    assert np.median(apart) > 4.0


def test_a_cluster_is_tight_and_apart():
    X, y = sceptic_table("cluster", 0.1, 1, 500, seed=0)
    centre = X[y == 1].mean(axis=0)
    assert 7.5 < np.linalg.norm(centre) < 12.5
    assert X[y == 1].std(axis=0).max() < 0.7


def test_seeds_make_other_tables_and_the_same_seed_the_same():
    one, _ = sceptic_table("far", 0.05, 3, 500, seed=0)
    again, _ = sceptic_table("far", 0.05, 3, 500, seed=0)
    other, _ = sceptic_table("far", 0.05, 3, 500, seed=1)
    np.testing.assert_array_equal(one, again)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("kind", CLEAN)
def test_clean_tables(kind):
    X = clean_table(kind, 200, seed=0)
    assert X.shape == (200, 5)
    assert np.isfinite(X).all()
    np.testing.assert_array_equal(X, clean_table(kind, 200, seed=0))


@pytest.mark.parametrize("kind", load_plan()["groups"]["kinds"][:-1])
def test_shaped_tables(kind):
    X = shaped_table(kind, 500, seed=0)
    assert len(X) == 500
    assert 2 <= X.shape[1] <= 10
    assert np.isfinite(X).all()
    np.testing.assert_array_equal(X, shaped_table(kind, 500, seed=0))
    n_distinct = len(np.unique(X[:, 0]))
    if kind in ("poisson", "zeros", "discrete", "duplicates"):
        assert n_distinct <= 300
    elif kind != "mixed":
        assert n_distinct == 500


def test_two_blobs_are_of_one_size_and_apart():
    X, y = two_blobs(1000, seed=0)
    small, large = X[y == 1], X[y == 0]
    assert len(small) == 80
    assert 7.0 < np.linalg.norm(small.mean(axis=0) - large.mean(axis=0)) < 31.0
    np.testing.assert_allclose(small.std(axis=0), 1.0, atol=4 / np.sqrt(2 * 80))
    np.testing.assert_allclose(large.std(axis=0), 1.0, atol=4 / np.sqrt(2 * 920))
