"""Questions about the rows at the top, where there is no answer, and errors of labels."""

from __future__ import annotations

import numpy as np
import pytest

from gammagmm import LabelledRows

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


def test_the_share_of_a_group_takes_errors_into_account():
    groups = np.repeat(["a", "b"], [60, 40])
    rows = LabelledRows(np.arange(100.0), label_error=(0.02, 0.1)).update(range(40), LABELS)
    group, without = rows.by_group(groups)
    alone = LabelledRows(np.arange(60.0), label_error=(0.02, 0.1)).update(range(40), LABELS)
    assert (group.mean, group.low, group.high) == (
        alone.posterior.mean,
        *alone.posterior.interval(),
    )
    assert (group.low_exact, group.high_exact) == alone.exact_interval()
    assert (without.n_labels, np.isnan(without.mean)) == (0, True)


def test_wrong_labels_are_told_beside_picks_and_lists():
    rows = LabelledRows(np.arange(100.0)).update(range(40), LABELS)
    found = rows.update(range(90, 100), np.ones(10), purpose="find")
    listed = found.update([50, 60], [1, 0], at_random=False)
    assert rows.if_wrong == found.if_wrong == listed.if_wrong != ()
    for each in found.if_wrong:
        expected = rows.posterior_if(each.label_error)
        assert (each.mean, each.low, each.high) == (expected.mean, *expected.interval())
    assert LabelledRows(np.arange(100.0)).update([3], [1], purpose="find").if_wrong == ()
