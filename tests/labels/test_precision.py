"""How many of the rows at the top are anomalies."""

from __future__ import annotations

import numpy as np
import pytest

from gammagmm import LabelledRows
from gammagmm.labels.exact_interval import exact_interval
from tests.support.planted_rows import planted

LABELS = (np.arange(40) < 4).astype(int)


def test_with_a_label_for_every_row_there_is_no_row_at_the_top():
    rows = LabelledRows(np.arange(40.0)).update(range(40), LABELS)
    with pytest.raises(ValueError, match="n_for_precision needs rows without a label"):
        rows.n_for_precision(0.5)
    assert rows.n_for_recall == len(rows.certify().rows) == 0


def test_the_number_of_rows_of_a_check_is_that_of_certify():
    rows = LabelledRows(np.arange(400.0)).update(range(360, 400), np.ones(40), purpose="find")
    assert rows.n_for_recall == len(rows.certify(0.8).rows) > 0


def test_questions_that_need_right_labels_are_refused():
    rows = LabelledRows(np.arange(100.0), label_error=0.05).update(range(0, 80, 2), LABELS)
    for ask in (lambda: rows.precision_at(5), lambda: rows.n_for_precision(0.5)):
        with pytest.raises(ValueError, match="needs labels that are right"):
            ask()
    assert rows.precision_of(np.arange(90)) is None


def test_precision_of_the_flagged_rows():
    rows = LabelledRows(np.tile(0.0, 200)).update([0, 1, 2, 3], [1, 1, 0, 1])
    flagged = np.arange(10)
    precision = rows.precision_of(flagged)
    assert (precision.n_flagged, precision.n_labels, precision.n_anomalies) == (10, 4, 3)
    assert precision.share == 0.75
    low, high = exact_interval(10, 4, 3, 0.9)
    assert (precision.low, precision.high) == (low / 10, high / 10)
    assert rows.precision_of(np.arange(100, 110)) is None
    whole = rows.update(np.arange(4, 10), [0] * 6).precision_of(flagged)
    assert (whole.low, whole.share, whole.high) == (0.3, 0.3, 0.3)


def test_a_list_is_no_sample_of_the_flagged_rows():
    rows = LabelledRows(np.tile(0.0, 200)).update([0, 1, 2, 3], [1] * 4, at_random=False)
    flagged = np.arange(40)
    assert rows.precision_of(flagged) is None
    drawn = np.arange(4, 200, 4)
    with_sample = rows.update(drawn, np.zeros(len(drawn))).precision_of(flagged)
    # Nine random rows of the other 36, all normal, and the four anomalies of the list.
    assert (with_sample.n_labels, with_sample.n_anomalies) == (9, 0)
    low, high = exact_interval(36, 9, 0, 0.9)
    ends = (with_sample.share, with_sample.low, with_sample.high)
    assert ends == (4 / 40, (4 + low) / 40, (4 + high) / 40)


def n_shown(rows, precision):
    """The most rows of which the labels show this precision, by a sum over a grid; 0 if none."""
    known, n_rows = rows.known_rows, rows.n_rows
    order = np.argsort(-rows.scores)
    label, drawn = np.full(n_rows, -1), np.zeros(n_rows, dtype=bool)
    label[known.rows], drawn[known.rows] = known.labels, known.at_random
    n, most = 0, 0
    for place, row in enumerate(order):
        n += label[row] < 0
        top = order[: place + 1]
        own = top[drawn[top]]
        wanted = (precision * n + (label[top] == 1).sum()) / (place + 1)
        s, m = (label[own] == 1).sum(), len(own)
        if label[row] >= 0 or wanted >= 1.0 or s <= wanted * m:
            continue
        q = wanted + (1.0 - wanted) * (np.arange(2000) + 0.5) / 2000
        ratios = (q / wanted) ** s * ((1.0 - q) / (1.0 - wanted)) ** (m - s)
        if ratios.mean() >= 10.0:
            most = n
    return most


def test_the_interval_contains_the_share_of_anomalies_at_the_top():
    """Random labels, then picks: the first rows that are left have some share."""
    held, shares, truths = [], [], []
    for seed in range(300):
        scores, y = planted(1000, 150, seed=seed)
        rng = np.random.default_rng(seed)
        chosen = rng.permutation(1000)[:100]
        rows = LabelledRows(scores).update(chosen, y[chosen])
        picked = rows.suggest(20, purpose="find")
        rows = rows.update(picked, y[picked], purpose="find")
        found = rows.precision_at(80)
        truth = y[rows.suggest(80, purpose="find")].mean()
        held.append(found.low - 1e-12 <= truth <= found.high + 1e-12)
        if found.n_labels:
            shares.append(found.share)
            truths.append(truth)
    assert np.mean(held) >= 0.9 - 4 * np.sqrt(0.09 / 300)
    error = np.std(np.subtract(shares, truths)) / np.sqrt(len(shares))
    # The share is clipped to 0 and 1, which moves its mean a little.
    assert np.mean(shares) == pytest.approx(np.mean(truths), abs=0.02 + 4 * error)


def test_a_row_is_judged_by_its_honest_score():
    """A ranking that has learned the labels by heart looks right on them."""
    scores = np.arange(100.0)
    rows = LabelledRows(scores).update([5, 50, 95], [1, 0, 0])
    assert rows.precision_at(10).n_labels == 1
    learned = scores.copy()
    learned[[5, 50, 95]] = [200.0, 0.0, 0.0]
    by_heart = LabelledRows(learned, rows.known_rows)
    assert by_heart.precision_at(10).share == 1.0
    honest = LabelledRows(learned, rows.known_rows, scores)
    assert honest.precision_at(10).share == 0.0


def test_the_number_of_rows_for_a_precision():
    scores = np.arange(1000.0)
    # Labelled from the top: an anomaly, an anomaly, a normal row, an anomaly, ...
    drawn = np.arange(995, 0, -10)
    rows = LabelledRows(scores).update(drawn, (drawn > 800) & (drawn != 935))
    for precision in (0.7, 0.5, 0.3, 0.1):
        assert rows.n_for_precision(precision) == n_shown(rows, precision)


@pytest.mark.parametrize(("n", "n_rows"), [(30, 400), (400, 4000)])
@pytest.mark.parametrize("precision", [0.3, 0.5])
def test_the_true_precision_is_rarely_smaller(precision, n, n_rows):
    """In the worst case, every number of rows at the top just misses the share."""
    n_wrong, n_repeats = 0, 40
    for seed in range(n_repeats):
        rng = np.random.default_rng(seed)
        y = rng.permutation(np.arange(n_rows) < round(n_rows * precision) - 1).astype(int)
        chosen = rng.permutation(n_rows)[:n]
        rows = LabelledRows(-np.arange(float(n_rows))).update(chosen, y[chosen])
        try:
            found = rows.n_for_precision(precision)
        except ValueError:
            continue
        n_wrong += y[rows.suggest(found, purpose="find")].mean() < precision
    assert n_wrong <= 0.1 * n_repeats


def test_a_precision_that_is_not_reached():
    rows = LabelledRows(np.arange(100.0)).update([90, 50, 10], [0, 1, 0])
    with pytest.raises(ValueError, match=r"the largest estimate is 0\.5\. Label more"):
        rows.n_for_precision(0.9)
    with pytest.raises(ValueError, match="needs labels of rows that were chosen at random"):
        LabelledRows(np.arange(100.0)).n_for_precision(0.5)


def test_the_threshold_of_a_number_of_rows():
    rows = LabelledRows(np.arange(100.0)).update([98, 30, 20], [0, 1, 0])
    # Labelled rows count too: new data have such rows as well.
    assert rows.threshold_at(3) == 96.0
    assert rows.threshold_at(0) == 99.0
    assert rows.threshold_at(99) == 0.0
    with pytest.raises(ValueError, match="n must be below 100, the number of rows, got 100"):
        rows.threshold_at(100)
    with pytest.raises(ValueError, match="n must be at most 97, the number of rows without a"):
        rows.precision_at(98)


def test_every_number_of_rows_is_tried():
    """With picks, the share changes between two labels as well."""
    rng = np.random.default_rng(0)
    n_reached = 0
    for seed in range(30):
        scores, y = planted(120, 60, seed=seed)
        chosen = rng.permutation(120)[:40]
        rows = LabelledRows(scores).update(chosen, y[chosen])
        picked = rows.suggest(10, purpose="find")
        rows = rows.update(picked, y[picked], purpose="find")
        if expected := n_shown(rows, 0.2):
            n_reached += 1
            assert rows.n_for_precision(0.2) == expected
        else:
            with pytest.raises(ValueError, match="The labels do not show"):
                rows.n_for_precision(0.2)
    assert 10 < n_reached < 30


def test_picked_rows_are_no_sample_of_the_flagged_rows():
    """Of 100 flagged rows, the first 12 are the anomalies."""
    y = (np.arange(1000) < 12).astype(int)
    scores, flagged = -np.arange(1000.0), np.arange(100)
    held = []
    for seed in range(60):
        chosen = np.random.default_rng(seed).permutation(1000)[:300]
        rows = LabelledRows(scores).update(chosen, y[chosen])
        picked = rows.suggest(10, purpose="find")
        rows = rows.update(picked, y[picked], purpose="find")
        found = rows.precision_of(flagged)
        assert found.n_labels == np.isin(chosen, flagged).sum()
        assert found.low >= y[rows.known_rows.rows].sum() / 100
        held.append(found.low <= 0.12 <= found.high)
    assert np.mean(held) >= 0.9 - 4 * np.sqrt(0.09 / 60)
    only = LabelledRows(scores).update(picked, y[picked], purpose="find")
    assert only.precision_of(flagged) is None


def test_the_interval_of_the_precision_is_that_of_the_rows_at_the_top():
    scores = -np.arange(200.0)
    drawn = np.arange(0, 200, 4)
    rows = LabelledRows(scores).update(drawn, (drawn < 40).astype(int))
    found = rows.precision_at(60)
    # The first 60 rows without a label are among the first 80, of which 20 have one.
    assert (found.n_labels, found.n_anomalies, found.share) == (20, 10, pytest.approx(0.5))
    low, high = exact_interval(80, 20, 10, 0.9)
    assert (found.low, found.high) == pytest.approx(((low - 10) / 60, (high - 10) / 60))
