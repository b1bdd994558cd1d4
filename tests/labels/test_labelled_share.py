"""The closed form of the labels, against integration and enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from gammagmm import GammaPosterior
from gammagmm._support.text import percent
from gammagmm.labels.exact_interval import exact_interval
from gammagmm.labels.known_rows import KnownRows
from gammagmm.labels.labelled_share import (
    N_OUTCOMES,
    LabelCounts,
    _outcomes,
    count_labels,
    expected_width,
    labelled_posterior,
    n_for_width,
    prior_of,
)
from gammagmm.posterior.betas import BetaMixture
from gammagmm.posterior.sentences import sentence
from gammagmm.posterior.track_record import UNIFORM_PART, load_label_prior, load_reference

PRIOR = BetaMixture(np.array([0.3, 0.7]), np.array([1.1, 1.8]), np.array([146.0, 12.5]))
CASES = [
    LabelCounts(n_rows=40, n_drawn=10, n_found=2, n_told=0, n_told_anomalies=0),
    LabelCounts(n_rows=40, n_drawn=10, n_found=0, n_told=0, n_told_anomalies=0),
    LabelCounts(n_rows=60, n_drawn=12, n_found=1, n_told=20, n_told_anomalies=9),
    LabelCounts(n_rows=60, n_drawn=12, n_found=0, n_told=20, n_told_anomalies=0),
    LabelCounts(n_rows=60, n_drawn=2, n_found=0, n_told=3, n_told_anomalies=3),
    LabelCounts(n_rows=31, n_drawn=30, n_found=4, n_told=0, n_told_anomalies=0),
]


def quadrature():
    """Points of (0, 1) and their weights: Gauss-Legendre on pieces that are short near 0."""
    points, weights = np.polynomial.legendre.leggauss(80)
    ends = np.array([0.0, 1e-8, 1e-6, 1e-4, 0.002, 0.01, 0.03, 0.1, 0.3, 0.6, 1.0])
    half = 0.5 * np.diff(ends)[:, None]
    return (ends[:-1, None] + half * (1.0 + points)).ravel(), (half * weights).ravel()


def predictive(counts, n):
    """P(k anomalies among the next n rows), k = 0, ..., n, by integration over theta."""
    theta, weights = quadrature()
    parts = zip(PRIOR.weights, PRIOR.a, PRIOR.b, strict=True)
    prior = sum(weight * stats.beta.pdf(theta, a, b) for weight, a, b in parts)
    seen = theta**counts.n_found * (1 - theta) ** (counts.n_drawn - counts.n_found)
    masses = stats.binom.pmf(np.arange(n + 1)[:, None], n, theta) @ (weights * prior * seen)
    return masses / masses.sum()


@pytest.mark.parametrize("counts", CASES)
def test_it_is_the_integral_over_the_share(counts):
    posterior = labelled_posterior(counts, PRIOR)
    shares = (counts.n_anomalies + np.arange(counts.n_left + 1)) / counts.n_rows
    expected = predictive(counts, counts.n_left)
    np.testing.assert_allclose(posterior.cdf(shares), np.cumsum(expected), rtol=1e-8)
    assert posterior.mean == pytest.approx(shares @ expected, rel=1e-8)
    none = expected[0] if counts.n_anomalies == 0 else 0.0
    assert posterior.prob_zero == pytest.approx(none, rel=1e-8)
    assert posterior.n_labels == counts.n_drawn
    assert posterior.standard_error == 0.0
    assert posterior.cdf(shares[0] - 1e-9) == 0.0


def test_without_told_rows_it_is_a_sample_from_a_finite_table():
    """Another path: a Beta-binomial prior of all anomalies, and hypergeometric labels."""
    counts = LabelCounts(n_rows=200, n_drawn=30, n_found=3, n_told=0, n_told_anomalies=0)
    total = np.arange(201)
    prior = sum(
        weight * stats.betabinom.pmf(total, 200, a, b)
        for weight, a, b in zip(PRIOR.weights, PRIOR.a, PRIOR.b, strict=True)
    )
    expected = prior * stats.hypergeom.pmf(3, 200, total, 30)
    expected /= expected.sum()
    posterior = labelled_posterior(counts, PRIOR)
    np.testing.assert_allclose(posterior.cdf(total / 200), np.cumsum(expected), atol=1e-12)


PICKED = [
    LabelCounts(200, 30, 3, 0, 0, n_picked=20, n_picked_anomalies=12),
    LabelCounts(200, 30, 0, 0, 0, n_picked=20, n_picked_anomalies=0),
    LabelCounts(200, 30, 0, 25, 20, n_picked=10, n_picked_anomalies=0),
    LabelCounts(200, 30, 1, 25, 20, n_picked=100, n_picked_anomalies=10),
    LabelCounts(200, 0, 0, 0, 0, n_picked=10, n_picked_anomalies=9),
    LabelCounts(200, 50, 2, 0, 0, n_picked=149, n_picked_anomalies=7),
]


@pytest.mark.parametrize("counts", PICKED)
def test_picked_rows_bound_the_number_of_anomalies(counts):
    """The same path: a number that the picks exclude counts as the nearest possible one."""
    n_rows = 200 - counts.n_told
    total = np.arange(n_rows + 1)
    prior = sum(
        weight * stats.betabinom.pmf(total, n_rows, a, b)
        for weight, a, b in zip(PRIOR.weights, PRIOR.a, PRIOR.b, strict=True)
    )
    expected = prior * stats.hypergeom.pmf(counts.n_found, n_rows, total, counts.n_drawn)
    n_found = counts.n_found + counts.n_picked_anomalies
    n_normal = counts.n_drawn + counts.n_picked - n_found
    expected /= expected.sum()
    possible = np.clip(total, n_found, n_rows - n_normal)
    expected = np.bincount(possible, expected, minlength=n_rows + 1)
    posterior = labelled_posterior(counts, PRIOR)
    shares = (total + counts.n_told_anomalies) / 200
    np.testing.assert_allclose(posterior.cdf(shares), np.cumsum(expected), atol=1e-11)
    assert posterior.mean == pytest.approx(shares @ expected, rel=1e-9)
    assert posterior.prob_zero == pytest.approx(expected[0] if shares[0] == 0 else 0.0, abs=1e-12)
    assert posterior.n_labels == counts.n_drawn


def test_picks_that_a_sample_made_almost_impossible_are_believed():
    counts = LabelCounts(100_000, 500, 0, 0, 0, n_picked=30_000, n_picked_anomalies=30_000)
    posterior = labelled_posterior(counts, PRIOR)
    assert posterior.ppf(0.001) == 0.3
    # What is possible keeps its proportions, so that the interval has a width.
    assert posterior.interval()[1] == pytest.approx(0.3 + 3.0 / 700.0, abs=3e-4)
    assert posterior.cdf(1.0) == pytest.approx(1.0)


@pytest.mark.parametrize("n_picked", [5, 20, 25, 40, 79])
def test_picks_beyond_the_interval_of_the_sample_truncate(n_picked):
    """Another path: with little on its possible numbers, the posterior is restricted to them."""
    counts = LabelCounts(200, 30, 1, 0, 0, n_picked + 1, n_picked)
    total = np.arange(201)
    prior = sum(
        weight * stats.betabinom.pmf(total, 200, a, b)
        for weight, a, b in zip(PRIOR.weights, PRIOR.a, PRIOR.b, strict=True)
    )
    expected = prior * stats.hypergeom.pmf(1, 200, total, 30)
    expected /= expected.sum()
    possible = np.clip(total, n_picked + 1, 170)
    clipped = np.bincount(possible, expected, minlength=201)
    truncated = np.where(total == possible, expected, 0.0)
    share = min(1.0, (1.0 - clipped.max()) / 0.05)
    mixed = share * clipped + (1.0 - share) * truncated / truncated.sum()
    posterior = labelled_posterior(counts, PRIOR)
    np.testing.assert_allclose(posterior.cdf(total / 200), np.cumsum(mixed), atol=1e-9)


@pytest.mark.parametrize("drawn", [(0, 0), (30, 1), (30, 6)])
@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("n_rows", [60, 400])
def test_one_more_label_changes_little(n_rows, drawn, label):
    """Nor does it where what is known contradicts the prior, or the sample."""
    n_outside, left, highest = n_rows - drawn[0], [], []
    for k in range(1, n_outside):
        counts = LabelCounts(n_rows, *drawn, 0, 0, k, k * label)
        posterior = labelled_posterior(counts, prior_of(counts))
        low, high = posterior.interval()
        # The last row may be known nearly for sure.
        assert low < high or counts.n_left == 1
        left.append(n_rows * posterior.mean - counts.n_anomalies)
        highest.append(n_rows * high)
    assert np.abs(np.diff(left)).max() < 1.6
    assert np.abs(np.diff(highest)).max() <= 0.02 * n_rows + 6


@pytest.mark.parametrize("share", [0.25, 0.3, 0.5, 0.8])
@pytest.mark.parametrize("is_list", [True, False])
def test_known_anomalies_alone_say_little_about_the_other_rows(share, is_list):
    """Reference tables have fewer: a part Beta(1, 1) has its weight above what is known."""
    k = round(1000 * share)
    told, picked = (k, 0) if is_list else (0, k)
    counts = LabelCounts(1000, 0, 0, told, told, picked, picked)
    posterior = labelled_posterior(counts, prior_of(counts))
    # Shares above the reference are uniform with a weight of a tenth, of which the 5 % above the
    # interval are a half. Its tail has a part of this weight.
    middle = (1.0 + share) / 2.0
    assert posterior.interval()[0] == share
    assert posterior.interval()[1] <= middle + 0.01
    if share >= 0.5:
        assert posterior.interval()[1] == pytest.approx(middle, abs=0.01)
    assert share < posterior.mean < share + 0.07


@pytest.mark.parametrize("n_left", [1, 2, 9, 60])
@pytest.mark.parametrize("label", [0, 1])
def test_few_rows_that_are_left_can_be_of_either_kind(n_left, label):
    """Another path: the reference of all rows, by enumeration, where no row was drawn blindly.

    Less than 10 % off the more probable end, a part Beta(1, 1) comes in as the reference loses it.
    What is beyond an end is put on it, as far as 10 % stay off it, and left out beyond that.
    """
    n_known, total, reference = 1000 - n_left, np.arange(1001), load_reference()
    possible = np.clip(total, label * n_known, label * n_known + n_left)

    def clipped(p):
        at = np.bincount(possible, p, minlength=1001)
        inside = at[possible.min() : possible.max() + 1]
        return at, min(1.0, min(inside[1:].sum(), inside[:-1].sum()) / UNIFORM_PART)

    parts = zip(reference.weights, reference.a, reference.b, strict=True)
    before = sum(weight * stats.betabinom.pmf(total, 1000, a, b) for weight, a, b in parts)
    uniform = 1.0 - clipped(before)[1]
    prior = (1.0 - uniform) * before + uniform / 1001
    at, share = clipped(prior)
    within = np.where(total == possible, prior, 0.0)
    expected = share * at + (1.0 - share) * within / within.sum()

    counts = LabelCounts(1000, 0, 0, n_known, label * n_known)
    posterior = labelled_posterior(counts, prior_of(counts))
    np.testing.assert_allclose(posterior.cdf(total / 1000), np.cumsum(expected), atol=1e-9)
    assert posterior.prob_zero == pytest.approx(expected[0], rel=1e-9)
    low, high = posterior.interval()
    assert low < high


@pytest.mark.parametrize("counts", PICKED)
def test_picks_clip_the_interval_to_what_is_possible(counts):
    """The interval without the picks, clipped: it cannot lose a true share."""
    without = LabelCounts(200, *list(vars(counts).values())[1:5])
    ends = labelled_posterior(without, PRIOR).interval()
    least = counts.n_anomalies / 200
    expected = np.clip(ends, least, least + counts.n_left / 200)
    found = labelled_posterior(counts, PRIOR).interval()
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_with_every_row_picked_or_drawn_it_is_the_share():
    posterior = labelled_posterior(LabelCounts(60, 20, 2, 10, 5, 30, 9), PRIOR)
    assert posterior.mean == 16 / 60
    assert posterior.interval() == (16 / 60, 16 / 60)


@pytest.mark.parametrize("counts", [*CASES[:4], PICKED[0], PICKED[2]])
def test_it_is_a_posterior_like_any_other(counts, tmp_path):
    posterior = labelled_posterior(counts, PRIOR)
    low, high = posterior.interval(0.8, "hdi")
    assert posterior.cdf(high) - posterior.cdf(low - 1e-9) >= 0.8 - 1e-9
    assert high - low <= np.diff(posterior.interval(0.8)) + 1e-12
    assert posterior.given(high=0.3).sf(0.3) == 0.0
    posterior.save(tmp_path / "posterior.json")
    again = GammaPosterior.load(tmp_path / "posterior.json")
    x = np.linspace(0.0, 1.0, 201)
    np.testing.assert_array_equal(again.cdf(x), posterior.cdf(x))
    assert (again.prob_zero, again.n_labels) == (posterior.prob_zero, posterior.n_labels)
    assert "<svg" in posterior._repr_html_()
    posterior.plot()
    assert len(posterior.modes()) >= 1


@pytest.mark.parametrize("n_anomalies", [0, 1, 50, 2000])
def test_with_every_row_labelled_it_is_the_share(n_anomalies, tmp_path):
    posterior = labelled_posterior(LabelCounts(2000, 2000, n_anomalies, 0, 0), PRIOR)
    share = n_anomalies / 2000
    assert posterior.mean == posterior.median == share
    assert posterior.interval() == posterior.interval(0.5, "hdi") == (share, share)
    assert posterior.std == 0.0
    assert (posterior.sample(5, 0) == share).all()
    assert posterior.cdf([share - 1e-4, share]).tolist() == [0.0, 1.0]
    assert posterior.is_degenerate == (n_anomalies == 0)
    assert posterior.has_estimate
    assert sentence(posterior) == f"{percent(share)} of the rows are anomalies."
    assert "<svg" in posterior._repr_html_()
    posterior.plot()
    posterior.save(tmp_path / "p.json")
    again = GammaPosterior.load(tmp_path / "p.json")
    assert (again.mean, again.has_estimate) == (share, True)
    assert (posterior.given(high=1.0).sample(3, 0) == share).all()


def test_without_labels_it_is_the_prior_for_a_finite_table():
    posterior = labelled_posterior(LabelCounts(100_000, 0, 0, 0, 0), PRIOR)
    whole = GammaPosterior(0.0, PRIOR)
    assert posterior.mean == pytest.approx(whole.mean, rel=1e-6)
    np.testing.assert_allclose(posterior.interval(), whole.interval(), atol=2e-5)


@pytest.mark.parametrize("n_found", [0, 7])
def test_it_is_a_consistent_distribution(n_found):
    posterior = labelled_posterior(LabelCounts(500, 300, n_found, 0, 0), PRIOR)
    total = posterior.prob_zero + posterior.betas.weights.sum()
    assert total == pytest.approx(1.0, abs=1e-12)
    x = np.linspace(0.0, 1.0, 1001)
    cdf, sf = posterior.cdf(x), posterior.sf(x)
    assert cdf[0] == posterior.prob_zero
    assert (np.diff(cdf) >= 0.0).all()
    np.testing.assert_allclose(cdf + sf, 1.0, atol=1e-12)
    draws = posterior.sample(4000, 0)
    assert draws.mean() == pytest.approx(posterior.mean, abs=4 * posterior.std / np.sqrt(4000))
    assert draws.min() >= n_found / 500


def test_told_rows_count_as_themselves_only():
    alone = labelled_posterior(LabelCounts(500, 30, 2, 0, 0), PRIOR)
    told = labelled_posterior(LabelCounts(600, 30, 2, 100, 40), PRIOR)
    # The same rows, and 100 others of which all is known.
    assert told.mean * 600 - 40 == pytest.approx(alone.mean * 500, rel=1e-12)
    assert told.std * 600 == pytest.approx(alone.std * 500, rel=1e-9)


def test_counts_keep_what_was_told_apart():
    known = KnownRows.none().add([1, 2, 3], [1, 0, 0], at_random=True, n_rows=20)
    known = known.add([4, 5], [1, 1], at_random=False, n_rows=20)
    counts = count_labels(known, 20)
    assert counts == LabelCounts(20, n_drawn=3, n_found=1, n_told=2, n_told_anomalies=2)
    assert (counts.n_anomalies, counts.n_left) == (3, 15)


class TestWidth:
    COUNTS = LabelCounts(n_rows=3000, n_drawn=20, n_found=1, n_told=5, n_told_anomalies=5)

    def exact(self, counts, n, mass):
        """Every outcome, with its probability by integration, and its own interval."""
        widths = []
        for found in range(n + 1):
            after = LabelCounts(
                counts.n_rows,
                counts.n_drawn + n,
                counts.n_found + found,
                counts.n_told,
                counts.n_told_anomalies,
            )
            low, high = labelled_posterior(after, PRIOR).interval(mass)
            widths.append(high - low)
        return float(predictive(counts, n) @ widths)

    @pytest.mark.parametrize(("n", "mass"), [(0, 0.9), (1, 0.9), (30, 0.9), (12, 0.5)])
    def test_it_is_the_mean_over_the_outcomes(self, n, mass):
        found = expected_width(self.COUNTS, PRIOR, n, mass)
        # The counts are treated as continuous: half a row at either end.
        assert found == pytest.approx(self.exact(self.COUNTS, n, mass), abs=1 / 3000)

    def test_few_rows_left(self):
        counts = LabelCounts(12, 10, 1, 0, 0)
        assert expected_width(counts, PRIOR, 2, 0.9) == 0.0
        # One row is left. Whatever the next label is, it is an anomaly with a probability between
        # 5 and 95 %, so that the interval has both shares.
        assert expected_width(counts, PRIOR, 1, 0.9) == pytest.approx(1 / 12, rel=1e-3)

    def test_more_labels_make_it_narrower_and_many_outcomes_are_thinned(self):
        widths = [
            expected_width(self.COUNTS, PRIOR, n, 0.9) for n in (0, 5, 50, 500, 520, 2000, 2975)
        ]
        assert (np.diff(widths) < 0.0).all()
        assert widths[-1] == 0.0

    @pytest.mark.parametrize("n_found", [0, 40])
    def test_quantiles_stand_for_many_outcomes(self, n_found):
        """Without an anomaly so far, nearly all probability is on few of the outcomes."""
        counts = LabelCounts(10_000, 500, n_found, 0, 0)
        found = expected_width(counts, PRIOR, 3000, 0.9)
        # An interval is a whole number of rows wide.
        assert found == pytest.approx(self.exact(counts, 3000, 0.9), abs=1 / 10_000)

    @pytest.mark.parametrize("width", [0.2, 0.1, 0.05, 0.013, 0.0001])
    def test_the_number_of_labels_is_the_smallest_one(self, width):
        n = n_for_width(self.COUNTS, PRIOR, width, 0.9)
        assert expected_width(self.COUNTS, PRIOR, n, 0.9) <= width
        if n > 0:
            assert expected_width(self.COUNTS, PRIOR, n - 1, 0.9) > width

    def test_no_label_is_needed_for_a_wide_interval(self):
        assert n_for_width(self.COUNTS, PRIOR, 1.0, 0.9) == 0


@pytest.mark.parametrize("n", [N_OUTCOMES - 1, N_OUTCOMES])
def test_more_outcomes_than_the_limit_are_replaced_by_quantiles(n):
    counts = LabelCounts(5_000, 20, 3, 0, 0)
    found, p_found = _outcomes(counts, PRIOR, n)
    assert p_found.sum() == pytest.approx(1.0)
    is_thinned = n == N_OUTCOMES  # there are n + 1 outcomes
    times = p_found * N_OUTCOMES
    assert np.allclose(times, np.rint(times), atol=1e-9) == is_thinned
    assert (len(found) == n + 1) != is_thinned
    # The mean of the number is that of the share, which the labels so far give.
    posterior = labelled_posterior(counts, PRIOR)
    n_left = 5_000 - 20
    mean = (5_000 * posterior.mean - 3) / n_left * n
    assert found @ p_found == pytest.approx(mean, rel=0.01)


@pytest.mark.parametrize("n_picked", [0, 6])
def test_if_every_row_is_known_to_be_normal_the_share_is_zero(n_picked):
    counts = LabelCounts(10, 10 - n_picked, 0, 0, 0, n_picked, 0)
    posterior = labelled_posterior(counts, PRIOR)
    assert (posterior.prob_zero, posterior.mean) == (1.0, 0.0)


def test_a_width_that_is_expected_already_needs_no_label():
    counts = LabelCounts(400, 20, 3, 0, 0)
    width = expected_width(counts, PRIOR, 0, 0.9)
    assert n_for_width(counts, PRIOR, width, 0.9) == 0
    for n in (6, 7):
        assert n_for_width(counts, PRIOR, expected_width(counts, PRIOR, n, 0.9), 0.9) == n


class TestPriorOfLabels:
    """The prior has a part Beta(1, 1), and nothing found means that 0 is possible."""

    N_ROWS, N = 10_000, 30

    def test_the_interval_holds_at_small_and_large_shares_and_is_hardly_wider(self):
        counts = [LabelCounts(self.N_ROWS, self.N, k, 0, 0) for k in range(self.N + 1)]
        ends = np.array([labelled_posterior(c, load_label_prior()).interval() for c in counts])
        reference = load_reference()
        former = np.array([labelled_posterior(c, reference).ppf([0.05, 0.95]) for c in counts])
        parts = zip(reference.weights, reference.a, reference.b, strict=True)
        found = np.arange(self.N + 1)
        p_found = sum(w * stats.betabinom.pmf(found, self.N, a, b) for w, a, b in parts)
        width, former_width = (p_found @ (each[:, 1] - each[:, 0]) for each in (ends, former))
        assert width <= 1.05 * former_width
        held = p_found @ [
            labelled_posterior(count, reference).cdf(high)
            - labelled_posterior(count, reference).cdf(low - 1e-9)
            for count, (low, high) in zip(counts, ends, strict=True)
        ]
        assert held >= 0.89
        for share in (0.0, 0.0003, 0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5):
            p_found = stats.hypergeom.pmf(found, self.N_ROWS, round(share * self.N_ROWS), self.N)
            is_inside = (ends[:, 0] <= share + 1e-12) & (share <= ends[:, 1] + 1e-12)
            assert p_found @ is_inside >= 0.8
        assert p_found @ ((former[:, 0] <= 0.5) & (former[:, 1] >= 0.5)) < 0.6
        assert former[:, 0].min() > 0.0003  # 0 and 0.03 % were never inside

    @pytest.mark.parametrize("n_rows", [31, 101])
    def test_it_never_contradicts_the_exact_interval(self, n_rows):
        """So there is no warning about it."""
        for n in (1, 2, 5, 13, 30):
            for k in range(n + 1):
                posterior = labelled_posterior(LabelCounts(n_rows, n, k, 0, 0), load_label_prior())
                low, high = posterior.interval()
                least, most = exact_interval(n_rows, n, k, 0.9)
                assert low <= most / n_rows
                assert high >= least / n_rows

    def test_nothing_found_by_chance_means_that_zero_is_possible(self):
        found = [LabelCounts(500, n, 0, 0, 0) for n in (1, 10, 300)]
        assert [labelled_posterior(each, PRIOR).interval()[0] for each in found] == [0.0] * 3
        # An anomaly elsewhere, or rows that are no sample, do not show it.
        for other in (LabelCounts(5000, 10, 0, 5, 1), LabelCounts(5000, 0, 0, 5, 0)):
            low, _ = labelled_posterior(other, PRIOR).interval()
            assert low == labelled_posterior(other, PRIOR).ppf(0.05) > 0.0

    def test_the_reference_itself_stays_as_it_was_measured(self):
        assert prior_of(LabelCounts(500, 0, 0, 3, 3)).b.tolist() == load_reference().b.tolist()
        assert GammaPosterior.reference().betas.b.tolist() == load_reference().b.tolist()
        prior = prior_of(LabelCounts(500, 1, 0, 0, 0))
        assert (prior.a[-1], prior.b[-1], prior.weights[-1]) == (1.0, 1.0, UNIFORM_PART)
        assert prior.weights.sum() == pytest.approx(1.0)
