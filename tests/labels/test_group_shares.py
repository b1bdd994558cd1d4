"""Flagged rows and shares of groups."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.stats import binomtest

from gammagmm import LabelledRows


def test_shares_by_group():
    groups = np.array([f"g{i % 3}" for i in range(200)])
    rows = LabelledRows(np.arange(200.0)).update(range(6), [1, 0, 0, 1, 0, 0])
    found = rows.by_group(groups)
    assert [share.group for share in found] == ["g0", "g1", "g2"]
    assert [share.n_rows for share in found] == [67, 67, 66]
    assert [(share.n_labels, share.n_anomalies) for share in found] == [(2, 2), (2, 0), (2, 0)]
    alone = LabelledRows(np.arange(67.0)).update([0, 1], [1, 1]).posterior
    assert found[0].mean == alone.mean
    assert found[0].mean > found[1].mean


def test_flagged_rows_by_group_have_exact_intervals():
    groups = np.repeat(["small", "large", "none", "all"], [3, 150, 40, 7])
    rows = [0, *range(5, 20), *range(193, 200)]
    flagged = np.zeros(200, dtype=int)
    flagged[rows] = 1
    found = LabelledRows(np.arange(200.0)).update(np.arange(200), flagged).by_group(groups)
    assert [share.group for share in found] == ["large", "none", "all", "small"]
    for share in found:
        inside = groups == share.group
        assert (share.n_rows, share.n_flagged) == (inside.sum(), flagged[inside].sum())
        assert share.share_flagged == flagged[inside].mean()
        exact = binomtest(share.n_flagged, share.n_rows).proportion_ci(0.9, method="exact")
        assert (share.low_flagged, share.high_flagged) == pytest.approx(exact, rel=1e-12)
        assert share.n_labels == share.n_rows
    assert found[-1].high_flagged - found[-1].low_flagged > 0.8
    rows = LabelledRows(np.arange(200.0))
    without = rows.by_group(groups)
    assert sum(share.n_flagged for share in without) == rows.labels.sum() > 0
    assert {share.n_labels for share in without} == {0}
    assert np.isnan([(share.mean, share.low, share.high) for share in without]).all()


@pytest.mark.parametrize(
    ("values", "names"),
    [
        (np.array(["a", None, 3.5, np.nan], dtype=object), ["(missing)", "3.5", "a"]),
        (np.array([2.0, np.nan, 1.0, np.nan]), ["(missing)", 1.0, 2.0]),
        (np.array(["2024-01-02", "NaT"] * 2, dtype="M8[D]"), ["(missing)", "2024-01-02"]),
        (np.array(["nan", "", "b", ""]), ["(missing)", "b", "nan"]),
        (pd.Series(["a", pd.NA, "b", pd.NA], dtype="string"), ["(missing)", "a", "b"]),
        (pd.Series([1, 1, 2, 2], dtype="category"), [1, 2]),
    ],
)
def test_rows_without_a_group_are_one_group(values, names):
    found = LabelledRows(np.arange(4.0)).by_group(values)
    assert sorted(map(str, names)) == sorted(str(share.group) for share in found)
    sizes = [share.n_rows for share in found]
    assert (sizes, sum(sizes)) == (sorted(sizes, reverse=True), 4)


@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 1.0])
def test_the_exact_interval_holds_for_an_odd_group(share):
    """By enumeration, for 300 rows with 20 labels beside 700 rows with a share of 2 %."""
    total, found = round(300 * share), np.arange(21)
    groups = np.repeat(["odd", "others"], [300, 700])
    rows = LabelledRows(np.zeros(1000)).update(range(300, 350), np.arange(50) < 1)
    is_held = []
    for k in found:
        odd = rows.update(range(20), np.arange(20) < k).by_group(groups)[1]
        assert (odd.group, odd.n_labels) == ("odd", 20)
        is_held.append(odd.low_exact <= total / 300 <= odd.high_exact)
    p_found = stats.hypergeom.pmf(found, 300, total, 20)
    assert p_found @ np.array(is_held) >= 0.9 - 1e-9
    assert np.isnan([rows.by_group(groups)[1].low_exact, rows.by_group(groups)[1].high_exact]).all()


def test_the_share_of_a_group_takes_errors_into_account():
    groups = np.repeat(["a", "b"], [60, 40])
    rows = LabelledRows(np.arange(100.0), label_error=(0.02, 0.1)).update(
        range(40), np.arange(40) < 4
    )
    group, without = rows.by_group(groups)
    alone = LabelledRows(np.arange(60.0), label_error=(0.02, 0.1)).update(
        range(40), np.arange(40) < 4
    )
    assert (group.mean, group.low, group.high) == (
        alone.posterior.mean,
        *alone.posterior.interval(),
    )
    assert (group.low_exact, group.high_exact) == alone.exact_interval()
    assert (without.n_labels, np.isnan(without.mean)) == (0, True)
