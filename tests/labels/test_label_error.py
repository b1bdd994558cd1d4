"""Labels that may be wrong, against integration and enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, special, stats

from gammagmm import GammaGMM, GammaPosterior, LabelledRows
from gammagmm.datasets import load_demo
from gammagmm.labels.anomaly_probability import log_likelihoods
from gammagmm.labels.label_error import agreement, posterior_with_errors
from gammagmm.labels.sentences import more_sentence
from gammagmm.posterior.betas import BetaMixture
from gammagmm.posterior.sentences import flagged_sentence
from gammagmm.posterior.track_record import load_label_prior

PRIOR = BetaMixture(np.array([0.4, 0.6]), np.array([1.5, 1.0]), np.array([12.0, 1.0]))


@pytest.mark.parametrize("error", [(0.05, 0.05), (0.1, 0.0), (0.02, 0.3)])
@pytest.mark.parametrize(("n", "s"), [(10, 0), (30, 4), (30, 30)])
def test_it_is_the_integral_over_the_share(n, s, error):
    false_alarm, miss = error

    def density(theta):
        p = theta * (1 - miss) + (1 - theta) * false_alarm
        parts = zip(PRIOR.weights, PRIOR.a, PRIOR.b, strict=True)
        prior = sum(weight * stats.beta.pdf(theta, a, b) for weight, a, b in parts)
        return prior * stats.binom.pmf(s, n, p)

    whole = integrate.quad(density, 0, 1, epsabs=1e-14, epsrel=1e-10, limit=200)[0]
    found = posterior_with_errors(n, s, PRIOR, error)
    for x in (0.02, 0.1, 0.4, 0.9):
        below = integrate.quad(density, 0, x, epsabs=1e-14, epsrel=1e-10, limit=200)[0]
        assert found.cdf(x) == pytest.approx(below / whole, abs=1e-6)


@pytest.mark.parametrize("error", [(0.0, 0.02), (0.05, 0.05), (0.2, 0.0), (0.45, 0.45)])
@pytest.mark.parametrize(("n", "s"), [(1000, 500), (3000, 0), (3000, 150), (3000, 2990)])
def test_many_labels_have_the_integral_as_well(n, s, error):
    """By a sum over the logits of the share, in logarithms."""
    false_alarm, miss = error
    logits = np.linspace(-40.0, 40.0, 400_001)
    theta, others = special.expit(logits), special.expit(-logits)
    parts = zip(PRIOR.weights, PRIOR.a, PRIOR.b, strict=True)
    logs = np.log(sum(w * stats.beta.pdf(theta, a, b) for w, a, b in parts) * theta * others)
    called = theta * (1 - miss) + others * false_alarm
    logs += special.xlogy(s, called)
    logs += special.xlogy(n - s, theta * miss + others * (1 - false_alarm))
    density = np.exp(logs - logs.max())
    mean = density @ theta / density.sum()
    found = posterior_with_errors(n, s, PRIOR, error)
    assert found.mean == pytest.approx(mean, rel=1e-6)
    assert found.std == pytest.approx(
        np.sqrt(density @ (theta - mean) ** 2 / density.sum()), rel=1e-4
    )


def test_without_errors_it_is_the_posterior_of_a_large_table():
    rows = LabelledRows(np.zeros(200_000)).update(range(0, 200_000, 5000), np.arange(40) < 3)
    without = rows.posterior_if(0.0)
    np.testing.assert_allclose(without.interval(), rows.posterior.interval(), atol=2e-5)
    assert isinstance(without, GammaPosterior)
    assert without.n_labels == 40


@pytest.mark.parametrize("error", [0.02, 0.05, 0.1])
def test_the_right_rate_keeps_the_coverage(error):
    """By enumeration, on average over the prior; without the rate the interval misses."""
    n, prior = 100, load_label_prior()
    found = np.arange(n + 1)
    shares = GammaPosterior(0.0, prior).ppf((np.arange(100) + 0.5) / 100)
    p = shares * (1 - error) + (1 - shares) * error
    p_found = stats.binom.pmf(found, n, p[:, None])
    held = {}
    for assumed in (0.0, error):
        posteriors = [posterior_with_errors(n, k, prior, (assumed,) * 2) for k in found]
        for kind, ends in (
            ("quantiles", [each.ppf([0.05, 0.95]) for each in posteriors]),
            ("interval", [each.interval() for each in posteriors]),
        ):
            low, high = np.array(ends).T
            is_held = (low <= shares[:, None]) & (shares[:, None] <= high)
            held[kind, assumed] = (p_found * is_held).sum() / 100
    assert held["quantiles", error] == pytest.approx(0.9, abs=0.01)
    assert held["interval", error] >= held["quantiles", error]  # it may start at 0
    assert held["interval", 0.0] < 0.8


@pytest.mark.parametrize("error", [(0.02, 0.02), (0.05, 0.1), (0.0, 0.1)])
@pytest.mark.parametrize("n", [30, 100])
@pytest.mark.parametrize("share", [0.0, 0.0003, 0.01])
def test_a_share_near_zero_is_inside(error, n, share):
    """By enumeration: labels that say "anomaly" may all be false alarms."""
    p_called = share * (1.0 - error[1]) + (1.0 - share) * error[0]
    posteriors = [posterior_with_errors(n, k, load_label_prior(), error) for k in range(n + 1)]
    held = [each.contains(share) for each in posteriors]
    assert stats.binom.pmf(np.arange(n + 1), n, p_called) @ held >= 0.9
    assert not posteriors[n].may_be_zero


def test_thirty_normal_labels_that_may_be_wrong_leave_zero_possible(tmp_path):
    posterior = posterior_with_errors(30, 0, load_label_prior(), (0.02, 0.02))
    assert posterior.interval()[0] == 0.0
    posterior.save(tmp_path / "posterior.json")
    for same in (GammaPosterior.load(tmp_path / "posterior.json"), posterior.given(high=0.5)):
        assert same.interval()[0] == 0.0
    assert posterior.given(low=0.01).interval()[0] > 0.01
    assert posterior_with_errors(0, 0, load_label_prior(), (0.02, 0.02)).interval()[0] > 0.0


def test_two_labels_of_the_same_rows_imply_the_rate():
    rng = np.random.default_rng(0)
    truth = rng.random(40_000) < 0.1
    first, second = ((truth ^ (rng.random(40_000) < 0.05)).astype(int) for _ in range(2))
    found = agreement(first, second)
    assert found.label_error == pytest.approx(0.05, abs=0.005)
    assert found.low < found.label_error < found.high < found.low + 0.005
    assert agreement([0, 1], [0, 1]).label_error == agreement([0, 1], [0, 1]).low == 0.0
    assert agreement([0, 1], [1, 0]).label_error == 0.5
    for wrong in (([], []), ([1], [1, 0])):
        with pytest.raises(ValueError, match="those of the same rows"):
            agreement(*wrong)


@pytest.mark.parametrize("error", [0.0, 0.02, 0.1])
def test_the_interval_of_the_rate_holds(error):
    """By enumeration, for 40 rows with two labels."""
    p_differ = 2.0 * error * (1.0 - error)
    intervals = [agreement(np.zeros(40), np.arange(40) < k) for k in range(41)]
    held = [each.low <= error <= each.high for each in intervals]
    assert stats.binom.pmf(np.arange(41), 40, p_differ) @ held >= 0.9


def test_second_labels_are_compared_with_the_first():
    rows = LabelledRows(np.zeros(50)).update([3, 5, 9], [0, 1, 1])
    found = rows.agreement([9, 3], [1, 1])
    assert (found.n_rows, found.n_agree) == (2, 1)
    assert rows.known_rows.labels.tolist() == [0, 1, 1]
    with pytest.raises(ValueError, match="have a label already"):
        rows.agreement([3, 4], [0, 0])


@pytest.mark.parametrize("error", [0.5, -0.1, (0.1, 0.6), (0.1, 0.1, 0.1)])
def test_rates_are_below_one_half(error):
    rows = LabelledRows(np.zeros(50)).update([1, 2], [0, 1])
    with pytest.raises(ValueError, match="label_error must"):
        rows.posterior_if(error)


ERROR = 0.03, 0.2


def rows_with_errors(label_error=ERROR, n=200, seed=0):
    rng = np.random.default_rng(seed)
    rows = LabelledRows(rng.normal(size=n), label_error=label_error)
    known = rng.permutation(n)[:40]
    return rows.update(known, (rng.random(40) < 0.2).astype(int))


def test_the_answer_takes_the_rate_into_account():
    rows, without = rows_with_errors(), rows_with_errors((0.0, 0.0))
    assert rows.posterior.summary() == without.posterior_if(ERROR).summary()
    assert rows.if_wrong == ()
    for each in without.if_wrong:
        expected = without.posterior_if(each.label_error)
        assert (each.mean, each.low, each.high) == (expected.mean, *expected.interval())
    assert [each.label_error for each in without.if_wrong] == [0.02, 0.05]


def test_the_probability_of_a_labelled_row_is_that_of_bayes_theorem():
    """By counting what would happen to many rows with the same score."""
    rows, rng = rows_with_errors(), np.random.default_rng(1)
    known = rows.known_rows
    before = rows.calibration(rows.scores[known.rows])
    is_anomaly = rng.random((200_000, len(known))) < before
    p_called = np.where(is_anomaly, 1.0 - ERROR[1], ERROR[0])
    is_same = (rng.random(is_anomaly.shape) < p_called) == known.labels
    expected = (is_anomaly & is_same).sum(axis=0) / is_same.sum(axis=0)
    np.testing.assert_allclose(rows.probability[known.rows], expected, atol=0.015)
    left = known.unknown(rows.n_rows)
    assert rows.probability[left].mean() == pytest.approx(rows.posterior.mean)


def test_the_slopes_have_the_likelihood_of_labels_that_may_be_wrong():
    z, labels = np.array([-1.0, 0.3, 2.5]), np.array([0, 1, 1])
    slopes, intercepts = np.array([0.0, 1.5]), np.array([-2.0, -3.0])
    found = log_likelihoods(z, labels, slopes, intercepts, ERROR)
    for i in range(2):
        p = 1.0 / (1.0 + np.exp(-intercepts[i] - slopes[i] * z))
        called = p * (1.0 - ERROR[1]) + (1.0 - p) * ERROR[0]
        expected = np.log(np.where(labels == 1, called, 1.0 - called)).sum()
        assert found[i] == pytest.approx(expected)


# Every possible number of labels, of which some contradict the rate.
@pytest.mark.filterwarnings(
    "ignore:.*the labels contradict the label_error:gammagmm.errors.LabelsWarning"
)
@pytest.mark.parametrize("method", ["exact_interval", "interval_at_any_look"])
@pytest.mark.parametrize("share", [0.0, 0.05, 0.3])
def test_the_intervals_from_the_labels_hold_with_errors(method, share):
    n, n_rows = 60, 20_000
    p_called = share * (1.0 - ERROR[1]) + (1.0 - share) * ERROR[0]
    held = 0.0
    for k in range(n + 1):
        rows = LabelledRows(np.zeros(n_rows), label_error=ERROR)
        low, high = getattr(rows.update(np.arange(n), np.arange(n) < k), method)()
        held += stats.binom.pmf(k, n, p_called) * (low - 1e-5 <= share <= high + 1e-5)
    assert held >= 0.9


# Every possible number of labels, of which some contradict the rate.
@pytest.mark.filterwarnings(
    "ignore:.*the labels contradict the label_error:gammagmm.errors.LabelsWarning"
)
@pytest.mark.parametrize("method", ["exact_interval", "interval_at_any_look"])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.4])
def test_they_hold_if_all_rows_have_labels(method, share):
    """The rows have this share, and then a share of the rows from which they were drawn."""
    n, n_true = 300, round(300 * share)
    false_alarm, miss = ERROR
    found = np.arange(n + 1)
    in_anomalies = stats.binom.pmf(np.arange(n_true + 1), n_true, 1.0 - miss)
    in_others = stats.binom.pmf(np.arange(n - n_true + 1), n - n_true, false_alarm)
    of_rows = np.convolve(in_anomalies, in_others)
    of_source = stats.binom.pmf(found, n, share * (1.0 - miss) + (1.0 - share) * false_alarm)
    rows, ends = LabelledRows(np.zeros(n), label_error=ERROR), []
    likely = found[of_rows + of_source > 1e-6]
    for k in likely:
        ends.append(getattr(rows.update(np.arange(n), np.arange(n) < k), method)())
    low, high = np.array(ends).T
    is_held = (low <= share) & (share <= high)
    for p_found in (of_rows, of_source):
        assert p_found[likely] @ is_held >= 0.9


# Every possible number of labels, of which some contradict the rate.
@pytest.mark.filterwarnings(
    "ignore:.*the labels contradict the label_error:gammagmm.errors.LabelsWarning"
)
@pytest.mark.parametrize("side", ["upper", "lower"])
@pytest.mark.parametrize("share", [0.02, 0.3])
def test_an_interval_on_one_side_has_the_whole_probability_there(side, share):
    n = 60
    p_called = share * (1.0 - ERROR[1]) + (1.0 - share) * ERROR[0]
    held = 0.0
    for k in range(n + 1):
        rows = LabelledRows(np.zeros(1000), label_error=ERROR)
        rows = rows.update(np.arange(n), np.arange(n) < k)
        low, high = rows.exact_interval(side=side)
        held += stats.binom.pmf(k, n, p_called) * (low <= share <= high)
        both = rows.exact_interval(0.8)
        assert (low, high) == ((0.0, both[1]) if side == "upper" else (both[0], 1.0))
    assert held >= 0.9


@pytest.mark.parametrize("seed", range(12))
def test_random_rows_finds_and_lists_give_one_answer(seed):
    """What is left, the probabilities and the flags agree, in a ranking that is good."""
    rng = np.random.default_rng(seed)
    y = (np.arange(1000) < rng.integers(5, 200)).astype(int)
    scores = -np.arange(1000.0) + rng.normal(size=1000) * rng.choice([0.1, 100.0])
    error = (rng.choice([0.0, 0.02, 0.05]), rng.choice([0.02, 0.1]))
    rows = LabelledRows(scores, label_error=error)
    drawn = rows.suggest(30, random_state=rng)
    rows = rows.update(drawn, y[drawn])
    picked = rows.suggest(int(rng.integers(1, 120)), purpose="find")
    rows = rows.update(picked, y[picked], purpose="find")
    n_listed = int(rng.choice([0, 40]))
    listed = rng.permutation(1000)[:n_listed]
    if n_listed:
        rows = rows.update(listed, y[listed], at_random=False)
    left = rows.known_rows.unknown(1000)
    known = rows.known_rows
    found = known.labels[known.picked]
    n_outside = len(left) + len(found)
    share = rows.posterior_if(error)
    called = (found.mean() - error[0]) / (1.0 - sum(error))
    theta = share.sample(200_000, random_state=0)
    n_found = len(found) * np.clip(called, 0.0, 1.0)
    each = np.clip(theta * n_outside - n_found, 0.0, len(left))
    assert rows.posterior.summary() == share.summary()
    expected = pytest.approx(each.mean(), abs=4.0 * each.std() / np.sqrt(len(theta)))
    assert rows.left.mean == expected
    ends = np.clip(np.array(share.interval()) * n_outside - n_found, 0.0, len(left))
    assert (rows.left.low, rows.left.high) == pytest.approx(tuple(ends), abs=1e-9)
    assert rows.probability[left].sum() == pytest.approx(rows.left.mean)
    assert rows.labels[left].sum() == pytest.approx(rows.left.mean, abs=1.0)
    assert rows.if_wrong == ()


def test_an_error_changes_nothing_without_random_rows():
    every = [
        LabelledRows(np.arange(1000.0), label_error=error).update(range(150), np.ones(150), **how)
        for error in ((0.0, 0.0), (0.05, 0.05))
        for how in ({"at_random": False}, {"purpose": "find"})
    ]
    for rows in every:
        assert rows.posterior.summary() == every[0].posterior.summary()
        assert rows.probability.sum() == pytest.approx(1000 * rows.posterior.mean)
        assert rows.left == every[0].left


def test_after_a_search_that_found_all_few_are_left():
    y = (np.arange(1000) < 100).astype(int)
    rows = LabelledRows(-np.arange(1000.0), label_error=(0.02, 0.02))
    drawn = rows.suggest(30, random_state=0)
    rows = rows.update(drawn, y[drawn])
    picked = rows.suggest(90, purpose="find")
    rows = rows.update(picked, y[picked], purpose="find")
    left = rows.left
    assert left.n_found == 93
    assert left.low <= 7.0 <= left.mean <= left.high < 90.0
    assert rows.probability.sum() == pytest.approx(rows.labels.sum(), abs=2.0)


def test_what_is_left_is_the_share_of_the_rows_without_a_label():
    rows = rows_with_errors()
    low, high = rows.posterior.interval()
    left = rows.left
    np.testing.assert_allclose(
        [left.mean, left.low, left.high], 160 * np.array([rows.posterior.mean, low, high])
    )
    with pytest.raises(ValueError, match="certify needs labels that are right"):
        rows.certify()
    with pytest.raises(ValueError, match="expected_width needs labels that are right"):
        rows.expected_width(10)
    with pytest.raises(ValueError, match="n_for_width needs labels that are right"):
        rows.n_for_width(0.1)


@pytest.mark.filterwarnings("ignore::gammagmm.errors.UnsolvedRunsWarning")
def test_a_fit_keeps_the_rate(tmp_path):
    X = load_demo().X
    fitted = GammaGMM(["KNN", "LOF"], n_runs=2, random_state=0, label_error=0.05).fit(X)
    fitted.update(np.arange(0, 120, 4), np.arange(30) < 3)
    assert fitted.labelled_rows_.label_error == (0.05, 0.05)
    assert fitted.posterior_.summary() == fitted.labelled_rows_.posterior_if(0.05).summary()
    assert "Each label is taken to be wrong with a probability of 5.0%." in str(fitted.fit_)
    told, expected = fitted.fit_.told, fitted.fit_.probability.sum()
    assert told["next"]["what"] == more_sentence(None, 337)
    # No two rows have the same score, so ties are not the reason.
    reason = flagged_sentence(fitted.fit_.n_flagged, expected, "label error")
    assert told["answer"]["sum"] == reason != ""
    fitted.update(fitted.suggest(40, purpose="find"), np.ones(40), purpose="find")
    rows = fitted.labelled_rows_
    left = rows.known_rows.unknown(len(X))
    assert fitted.labels_[left].sum() == pytest.approx(rows.left.mean, abs=1.0)
    np.testing.assert_array_equal(fitted.labels_, rows.labels)
    assert fitted.batch(X).label_error == (0.05, 0.05)
    fitted.save(tmp_path / "fit.gmm")
    loaded = GammaGMM.load(tmp_path / "fit.gmm")
    assert loaded.posterior_.summary() == fitted.posterior_.summary()
    np.testing.assert_array_equal(loaded.fit_.probability, fitted.fit_.probability)


@pytest.mark.parametrize("error", [0.5, -0.1, "often", None])
def test_the_estimator_refuses_other_rates(error):
    with pytest.raises(ValueError, match="label_error must"):
        GammaGMM("fast", label_error=error).fit(np.zeros((20, 2)))


def test_wrong_labels_are_told_beside_picks_and_lists():
    rows = LabelledRows(np.arange(100.0)).update(range(40), (np.arange(40) < 4).astype(int))
    found = rows.update(range(90, 100), np.ones(10), purpose="find")
    listed = found.update([50, 60], [1, 0], at_random=False)
    assert rows.if_wrong == found.if_wrong == listed.if_wrong != ()
    for each in found.if_wrong:
        expected = rows.posterior_if(each.label_error)
        assert (each.mean, each.low, each.high) == (expected.mean, *expected.interval())
    assert LabelledRows(np.arange(100.0)).update([3], [1], purpose="find").if_wrong == ()


@pytest.mark.filterwarnings("ignore:The model has no:gammagmm.errors.NoSolutionWarning")
def test_a_rate_that_is_not_used_is_no_reason_for_a_sum():
    """Without random rows, the known ones are right, and equal scores are the reason."""
    X = np.repeat(load_demo().X[:60], 6, axis=0)
    fitted = GammaGMM(["HBOS", "IForest"], n_runs=2, random_state=0, label_error=0.05).fit(X)
    fitted.update([0, 1], [1, 0], purpose="find")
    fit = fitted.fit_
    ties = flagged_sentence(fit.n_flagged, float(fit.probability.sum()), "ties")
    assert fit.told["answer"]["sum"] == ties != ""
