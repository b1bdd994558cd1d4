"""The column that moved is named first, and none if nothing has changed."""

from __future__ import annotations

import numpy as np
import pytest

from gammagmm.monitoring.columns import LEVEL, moved_columns
from gammagmm.monitoring.parts import count_parts, training_parts

NAMES = ["a", "b", "c", "d", "e"]


@pytest.fixture(scope="module")
def parts():
    return training_parts(rows_of(1000, np.random.default_rng(0)), NAMES)


def rows_of(n_rows, rng, moved=None):
    """Rows with a normal, a skewed, a binary, a discrete and a zero-inflated column."""
    rows = rng.normal(size=(n_rows, 5))
    rows[:, 1] = np.exp(rows[:, 1])
    rows[:, 2] = rows[:, 2] > 1.0
    rows[:, 3] = np.rint(rows[:, 3])
    rows[:, 4] = np.maximum(rows[:, 4], 0.5)
    if moved is not None:
        rows[: n_rows // 2, moved] += rows[:, moved].std()
    return rows


def periods_of(parts, n_periods, rng, moved=None):
    return [count_parts(rows_of(200, rng, moved), parts) for _ in range(n_periods)]


@pytest.mark.parametrize("n_before", [0, 10, 40])
@pytest.mark.parametrize("moved", range(5))
def test_the_column_that_moved_is_the_first_one(parts, moved, n_before):
    rng = np.random.default_rng(moved)
    before, now = periods_of(parts, n_before, rng), periods_of(parts, 3, rng, moved)
    found = moved_columns(parts, before, now)
    assert [column.name for column in found if column.p_value <= LEVEL] == [NAMES[moved]]
    assert found[0].name == NAMES[moved]
    assert found[0].is_higher
    assert found[0].distance > 0.1


def test_the_distance_is_that_of_kolmogorov_and_smirnov_at_the_ends(parts):
    rng = np.random.default_rng(7)
    X, Y = rows_of(3000, rng), rows_of(500, rng, 0)
    before = [count_parts(X[100 * t : 100 * (t + 1)], parts) for t in range(30)]
    found = {c.name: c for c in moved_columns(parts, before, [count_parts(Y, parts)])}
    for j, name in enumerate(NAMES):
        ends = parts[name].ends
        gaps = [abs((X[:, j] <= end).mean() - (Y[:, j] <= end).mean()) for end in ends]
        assert found[name].distance == pytest.approx(max(gaps), abs=1e-12)
        assert sum(found[name].now) == pytest.approx(1.0)


@pytest.mark.parametrize("n_before", [0, 10, 40])
def test_without_a_change_hardly_a_column_is_named(parts, n_before):
    rng, n_named, n_series = np.random.default_rng(n_before), 0, 60
    for _ in range(n_series):
        before, now = periods_of(parts, n_before, rng), periods_of(parts, 3, rng)
        n_named += moved_columns(parts, before, now)[0].p_value <= LEVEL
    assert n_named <= LEVEL * n_series + 2.0 * np.sqrt(LEVEL * n_series)


def test_days_without_rows_are_no_quiet_periods(parts):
    rng = np.random.default_rng(2)
    before, now = periods_of(parts, 10, rng), periods_of(parts, 3, rng, 1)
    nothing = count_parts(np.empty((0, 5)), parts)
    expected = moved_columns(parts, before, now)
    assert moved_columns(parts, [*before, *[nothing] * 30], [*now, nothing]) == expected
    assert moved_columns(parts, before, [nothing]) == []


def test_a_column_keeps_the_end_that_was_tested(parts):
    rng = np.random.default_rng(3)
    for own in moved_columns(parts, periods_of(parts, 10, rng), periods_of(parts, 3, rng, 3)):
        below, below_now = own.below
        assert below == pytest.approx(np.cumsum(own.before)[own.end])
        assert below_now == pytest.approx(np.cumsum(own.now)[own.end])
        assert own.is_higher == (below_now < below)
        assert abs(below - below_now) <= own.distance + 1e-12


def test_without_columns_or_rows_nothing_has_moved(parts):
    assert moved_columns({}, [], [{}]) == []
    assert moved_columns(parts, [], [{}]) == []


def test_parts_have_ends_that_rise_and_all_rows():
    rng = np.random.default_rng(1)
    X = np.column_stack([rows_of(500, rng), np.zeros(500)])
    names = [*NAMES, "constant"]
    parts = training_parts(X, names)
    for j, name in enumerate(names):
        assert (np.diff(parts[name].ends) > 0).all()
        assert sum(parts[name].counts) == 500
        assert parts[name].counts[0] == (X[:, j] <= parts[name].ends[0]).sum()
    assert parts["constant"].counts == (500, 0)
    assert parts["c"].ends == (0.0,)
    texts = training_parts(X, names, ["c"])
    assert [name for name in names if texts[name].is_text] == ["c"]
