import numpy as np
import pytest
from scipy.stats import gaussian_kde

from gammagmm.posterior.separate_rows import find_separate_rows, first_valley

NAMES = ["A", "B", "C", "D"]


def two_humps(n=1000, share=0.1, distance=8.0, seed=0):
    """Scores (n,) of which the last share lies in a second hump."""
    scores = np.random.default_rng(seed).normal(size=n)
    scores[n - round(share * n) :] += distance
    return scores


@pytest.mark.parametrize("seed", range(5))
def test_the_valley_is_that_of_a_kernel_density(seed):
    scores = two_humps(distance=4.5, seed=seed)
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


def test_scores_that_are_mostly_equal_have_a_valley():
    scores = np.zeros(100)
    scores[:10] = 5.0 + np.arange(10) / 10
    found = first_valley(scores)
    assert found.depth > 0.9
    assert 0.0 < found.at < 5.0


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
    deep = two_humps(3000, 0.15, 4.5)
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
