import numpy as np
import pytest
from scipy.stats import gaussian_kde

from gammagmm.posterior.separate_rows import (
    are_close_together,
    find_separate_rows,
    first_valley,
)

NAMES = ["A", "B", "C", "D"]


def two_humps(n=1000, share=0.1, distance=8.0, seed=0):
    """Scores (n,) of which the last share lies in a second hump."""
    scores = np.random.default_rng(seed).normal(size=n)
    scores[n - round(share * n) :] += distance
    return scores


@pytest.mark.parametrize("seed", range(5))
def test_the_valley_is_that_of_a_kernel_density(seed):
    scores = two_humps(distance=5.0, seed=seed)
    found = first_valley(scores)
    iqr = np.subtract(*np.percentile(scores, [75, 25]))
    bandwidth = 0.9 * min(scores.std(), iqr / 1.34) * len(scores) ** -0.2
    density = gaussian_kde(scores, bandwidth / scores.std(ddof=1))
    grid = np.linspace(1.0, 3.5, 2001)  # between the two humps
    values = density(grid)
    peak = density(np.linspace(3.0, 6.0, 1001)).max()
    assert density(found.at)[0] == pytest.approx(values.min(), abs=0.02 * peak)
    assert found.depth == pytest.approx(1.0 - values.min() / peak, abs=0.02)


def test_a_gap_is_cut_in_its_middle():
    found = first_valley(two_humps(distance=100.0))
    assert found.depth == pytest.approx(1.0)
    assert 30.0 < found.at < 70.0


@pytest.mark.parametrize(
    ("share", "is_found"), [(0.004, False), (0.005, True), (0.5, True), (0.51, False)]
)
def test_from_five_rows_to_half_of_them_count(share, is_found):
    # One hump has no other valley as deep.
    found = first_valley(two_humps(share=share, distance=50.0))
    assert (found is not None and found.depth > 0.9) == is_found


@pytest.mark.parametrize("scores", [np.ones(100), np.arange(9.0)])
def test_scores_without_a_density_have_no_valley(scores):
    assert first_valley(scores) is None


def test_a_value_that_many_rows_share_is_no_hump():
    # Nearly half of the rows have the lowest score, the others are spread evenly above a gap.
    spread = 5.0 + np.arange(400) / 100
    assert first_valley(np.append(np.zeros(600), spread)) is None
    # The same with rounding errors.
    assert first_valley(np.append(1e-12 * np.arange(600), spread)) is None
    # Six hundred different scores are a hump.
    assert first_valley(np.append(np.arange(600) / 500, spread)).depth > 0.9


def test_copies_of_rows_change_nothing():
    scores = two_humps(distance=6.0)
    copies = np.repeat(scores, np.random.default_rng(0).integers(1, 9, size=len(scores)))
    found, expected = first_valley(copies), first_valley(scores)
    assert found.at == pytest.approx(expected.at, abs=0.02)
    assert found.depth == pytest.approx(expected.depth, abs=1e-2)


def test_the_rest_has_most_of_the_rows_and_of_the_distinct_scores():
    rest, group = np.arange(100) / 100, 5.0 + np.arange(90) / 100
    assert first_valley(np.append(rest, group)).depth > 0.9
    assert first_valley(np.append(rest, np.repeat(group, 2))) is None  # most of the rows
    assert first_valley(np.append(np.repeat(rest[:80], 2), group)) is None  # most of the scores


@pytest.mark.parametrize("n_rows", [600, 6000])
@pytest.mark.parametrize("n_columns", [1, 2, 6])
def test_a_group_is_a_cluster_if_its_rows_lie_close_together(n_rows, n_columns):
    rng = np.random.default_rng(n_columns)
    X = rng.normal(size=(n_rows, n_columns))
    rows = rng.permutation(n_rows)[: n_rows // 5]
    directions = rng.normal(size=(len(rows), n_columns))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    around, beside = X.copy(), X.copy()
    around[rows] = 20.0 * directions
    beside[rows] += 20.0 * directions[0]
    assert not are_close_together(around, rows)
    assert are_close_together(beside, rows)


def test_only_rows_tell_whether_a_group_is_a_cluster():
    Z = np.column_stack([two_humps(seed=seed) for seed in range(3)])
    assert find_separate_rows(Z, NAMES).is_cluster is None
    assert find_separate_rows(Z, NAMES, Z).is_cluster is True
    Z[950:] *= -1.0  # as far, on the other side
    assert find_separate_rows(np.abs(Z), NAMES, Z).is_cluster is False


def test_detectors_that_see_the_same_rows_make_a_group():
    Z = np.column_stack([two_humps(seed=seed) for seed in range(4)])
    Z[:, 3] = np.random.default_rng(9).normal(size=1000)  # sees nothing
    group = find_separate_rows(Z, NAMES)
    assert group.detectors == ("A", "B", "C")
    assert group.rows.tolist() == list(range(900, 1000))
    assert (group.n_rows, group.share) == (100, 0.1)
    assert 0.9 < group.depth <= 1.0


def test_a_detector_that_sees_nothing_has_no_vote():
    heavy_tailed = np.sort(np.random.default_rng(0).standard_t(3, size=1000))
    Z = np.column_stack([two_humps(), heavy_tailed])
    assert first_valley(Z[:, 0]).depth > 0.9
    assert find_separate_rows(Z, NAMES) is None


@pytest.mark.parametrize("seed", range(5))
def test_more_than_half_of_the_rows_are_not_apart(seed):
    # The flank of the larger hump is no valley either.
    rng = np.random.default_rng(seed)
    low = rng.normal(0.0, 0.3, size=(420, 2))
    Z = np.vstack([low, rng.normal(4.0, 1.0, size=(580, 2))])
    assert first_valley(Z[:, 0]) is None
    assert find_separate_rows(Z, NAMES) is None


def test_detectors_of_one_kind_make_none():
    """LSCP has the scores of LOF."""
    Z = np.column_stack([two_humps(), two_humps()])
    assert find_separate_rows(Z, ["LOF", "LSCP"]) is None
    assert find_separate_rows(Z, ["LOF", "KNN"]).detectors == ("LOF", "KNN")
    # Of two sets, it is the one with two kinds, although the other one has deeper valleys.
    other = np.roll(two_humps(distance=5.0), 300)
    both = find_separate_rows(np.column_stack([Z, other, other]), ["LOF", "LSCP", "KNN", "HBOS"])
    assert both.detectors == ("KNN", "HBOS")


def test_detectors_that_see_other_rows_make_none():
    Z = np.column_stack([two_humps(seed=seed) for seed in range(2)])
    Z[:, 1] = Z[::-1, 1]
    assert find_separate_rows(Z, NAMES) is None
    assert find_separate_rows(Z[:, :1], NAMES) is None


def test_a_row_needs_half_of_the_valleys():
    Z = np.column_stack([two_humps(seed=seed) for seed in range(4)])
    Z[900, :3] = 0.0
    Z[901, :2] = 0.0
    group = find_separate_rows(Z, NAMES)
    assert group.detectors == tuple(NAMES)
    assert 900 not in group.rows
    assert 901 in group.rows


def test_shallow_valleys_do_not_count():
    # The rows are the same in each column, in another unit.
    shallow = two_humps(3000, 0.15, 3.3)
    deep = two_humps(3000, 0.15, 5.0)
    assert find_separate_rows(np.column_stack([shallow, 2.0 * shallow]), NAMES) is None
    assert find_separate_rows(np.column_stack([deep, 2.0 * deep]), NAMES).share == pytest.approx(
        0.15, abs=0.01
    )


def test_all_rows_beyond_the_first_of_several_gaps_belong_to_the_group():
    Z = np.column_stack([two_humps(seed=seed) for seed in range(3)])
    Z[990:] += 1000.0
    assert find_separate_rows(Z, NAMES).rows.tolist() == list(range(900, 1000))


def test_units_do_not_matter():
    Z = np.column_stack([two_humps(seed=seed) for seed in range(3)])
    expected = find_separate_rows(Z, NAMES)
    found = find_separate_rows(Z * [1e-6, 1.0, 1e6] + [0.0, 5.0, -3.0], NAMES)
    assert found.rows.tolist() == expected.rows.tolist()
    assert found.depth == pytest.approx(expected.depth, abs=1e-6)


def test_detectors_agree_from_four_fifths_of_the_rows_that_either_sees():
    def seeing(rows):
        scores = np.random.default_rng(1).normal(size=200)
        scores[rows] += 50.0
        return scores

    first, second = seeing(range(9)), seeing(range(1, 10))  # 8 of 10 rows
    assert find_separate_rows(np.column_stack([first, second]), NAMES).detectors == ("A", "B")
    second[10] += 50.0  # 8 of 11
    assert find_separate_rows(np.column_stack([first, second]), NAMES) is None


def test_a_gap_is_cut_within_a_cell_of_its_middle():
    scores = two_humps(distance=100.0)
    iqr = np.subtract(*np.percentile(scores, [75, 25]))
    cell = 0.9 * min(scores.std(), iqr / 1.34) * len(scores) ** -0.2 / 5
    middle = 0.5 * (scores[:900].max() + scores[900:].min())
    # The upper edge of the cell in the middle.
    assert 0.5 * cell < first_valley(scores).at - middle < 1.5 * cell


def test_two_detectors_outweigh_a_deeper_valley_of_another():
    Z = np.column_stack([two_humps(distance=100.0)[::-1], *(two_humps(seed=s) for s in (1, 2))])
    assert first_valley(Z[:, 0]).depth >= max(first_valley(Z[:, j]).depth for j in (1, 2))
    assert find_separate_rows(Z, NAMES).detectors == ("B", "C")
