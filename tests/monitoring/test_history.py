"""A history grows, is saved whole, refuses a second count, and divides its level among groups."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pytest

from gammagmm import History
from gammagmm._support.documents import MAX_DOCUMENT_BYTES
from gammagmm.errors import HistoryError, SavedFileError
from gammagmm.monitoring.alarms import PER_PERIODS
from gammagmm.monitoring.counts import Count, Labels, Period
from gammagmm.monitoring.parts import count_parts, training_parts
from gammagmm.monitoring.states import find_states

EMPTY = History("fit", Count(2000, 80))
LABELS = {"n_labels": 4, "n_anomalies": 2, "label_error": [0.0, 0.0]}


def days(beyond, first=0, digest="{}"):
    return [
        Period(f"day {first + i:03}", Count(500, k), digest=digest.format(first + i))
        for i, k in enumerate(beyond)
    ]


def in_groups(beyond, n_rows=100):
    """Periods with a dict from group to number of rows above the threshold."""
    return [
        Period(
            f"day {t:03}",
            Count(n_rows * len(own), sum(own.values())),
            {group: Count(n_rows, k) for group, k in own.items()},
        )
        for t, own in enumerate(beyond)
    ]


def test_a_history_grows_and_the_state_names_its_period():
    history = EMPTY.add(days([20, 18, 22]))
    assert history.state.kind == "learning"
    assert repr(history) == (
        "History(3 periods; day 002: 22 of 500 rows above the threshold, 4.4%; learning)"
    )
    history = history.add(days([100], 3))
    assert history.state_words(history.state) == "raised since day 003"
    assert (history.newest.name, len(history.periods)) == ("day 003", 4)


def test_rows_are_not_counted_twice():
    history = EMPTY.add(days([20, 18]))
    with pytest.raises(HistoryError, match=r"counted already, as 'day 001'.*--force"):
        history.add([Period("another name", Count(500, 18), digest="1")])
    with pytest.raises(HistoryError, match="has rows of 'day 001' already"):
        history.add([Period("day 001", Count(400, 18), digest="new")])
    many = EMPTY.add(days([20] * 5, digest="same"))
    with pytest.raises(HistoryError, match="'day 000', 'day 001', 'day 002'"):
        many.add(days([1], 7, digest="same"))


def test_a_period_that_is_replaced_keeps_its_place():
    history = EMPTY.add(days([20, 18, 19]))
    new = Period("day 001", Count(510, 25), digest="new")
    replaced = history.add([new], replace_periods=True)
    assert [p.count.n_above for p in replaced.periods] == [20, 25, 19]
    # The same table under another name takes the place of the first count.
    again = history.add([Period("monday", Count(500, 18), digest="1")], replace_periods=True)
    assert [p.name for p in again.periods] == ["day 000", "day 002", "monday"]


def test_another_fit_and_another_alpha_are_refused():
    EMPTY.check_fit("fit", EMPTY.reference, None)
    EMPTY.check_fit("fit", EMPTY.reference, 0.05)
    with pytest.raises(HistoryError, match="belongs to another fit"):
        EMPTY.check_fit("other", EMPTY.reference, None)
    with pytest.raises(HistoryError, match="belongs to another fit"):
        EMPTY.check_fit("fit", Count(2000, 81), None)
    with pytest.raises(HistoryError, match=r"started with alpha 0\.05, not 0\.01"):
        EMPTY.check_fit("fit", EMPTY.reference, 0.01)
    with pytest.raises(ValueError, match="alpha must lie strictly between 0 and 1"):
        History("", Count(10, 1), alpha=1.0)
    with pytest.raises(HistoryError, match="has no period yet"):
        _ = EMPTY.newest


def test_a_group_is_compared_with_its_own_past_at_its_part_of_the_level():
    quiet = [{"large": 2, "small": 20}] * 20
    # 20 % are usual for the small group and a rise for the large one.
    history = EMPTY.add(in_groups([*quiet, {"large": 30, "small": 20}]))
    assert list(history.changed_groups()) == ["large"]
    level = 0.05 / PER_PERIODS
    large = [Count(100, k) for k in [2] * 20 + [30]]
    own = find_states(large, Count(0, 0), np.full(21, level / 4.0))
    assert history.group_states["large"] == own
    everything = [Count(200, k) for k in [22] * 20 + [50]]
    own = find_states(everything, EMPTY.reference, np.full(21, level / 2.0))
    assert history.states == own


def test_new_groups_have_no_change_and_groups_may_be_absent():
    beyond = [{"a": 2}] * 5 + [{"b": 90}] + [{"a": 2, "b": 88}]
    history = EMPTY.add(in_groups(beyond))
    assert [history.changed_groups(t) for t in range(7)] == [{}] * 7


@pytest.mark.parametrize("n_between", [None, 1])
def test_groups_without_a_change_have_alarms_at_most_as_often_as_stated(n_between):
    # 12 groups in every period, or in every second one with another number between these.
    rng, n_series, n_rows = np.random.default_rng(1), 40, 100
    nothing = History("", Count(0, 0), alpha=0.2)
    beyond = rng.binomial(n_rows, 0.1, size=(n_series, 40, 12))
    n_alarms = 0
    for series in beyond.tolist():
        present = [own[: n_between if t % 2 else 12] for t, own in enumerate(series)]
        periods = [{f"shop {group}": k for group, k in enumerate(own)} for own in present]
        history = nothing.add(in_groups(periods, n_rows))
        n_alarms += any(s.is_alarm for own in history.group_states.values() for s in own)
    assert n_alarms <= 0.1 * n_series  # half of alpha


def test_each_group_of_a_period_has_its_own_state():
    beyond = [{"a": 2, "b": 2}] * 20 + [{"a": 40}, {"b": 2}, {"a": 40, "b": 40}, {}, {"b": 40}]
    history = EMPTY.add(in_groups(beyond))
    lines = [line for line in history.to_records() if line["period"] == "day 022"]
    assert [line["state"] for line in lines] == ["raised"] * 3


def test_acknowledging_starts_again_and_stays_with_the_periods():
    history = EMPTY.add(days([20] * 35 + [70] * 5))
    assert history.state.kind == "raised"
    again = history.acknowledge()
    assert again.state.kind == "learning"
    assert again.acknowledge() == again
    later = again.add(days([70] * 30, 40))
    assert (later.state.kind, later.state.n_quiet) == ("quiet", 30)
    # A period that is replaced keeps the start; the one before takes that of a dropped one.
    replaced = later.add([Period("day 039", Count(500, 69), digest="n")], replace_periods=True)
    assert replaced.acknowledged == ("day 039",)
    moved = later.add([Period("x", Count(500, 70), digest="39")], replace_periods=True)
    assert moved.acknowledged == ("day 038",)
    with pytest.raises(ValueError, match="acknowledged"):
        History("", Count(10, 1), acknowledged=("nothing",))


def test_the_places_of_a_change_end_where_the_share_is_back():
    history = EMPTY.add(days([20] * 35 + [35] * 14 + [20] * 12))
    assert (history.state.kind, history.state.since) == ("back", 49)
    # It takes two more periods to see that the share is back.
    assert [state.kind for state in history.states[48:52]] == ["raised"] * 3 + ["back"]
    assert history.changed_places == set(range(35, 49))
    again = history.add(days([75] * 5, 61))
    assert again.changed_places == {*range(35, 49), *range(61, 66)}
    assert EMPTY.add(days([20] * 5)).changed_places == set()


def test_a_period_without_rows_is_described_as_such():
    history = EMPTY.add([Period("sunday", Count(0, 0))])
    assert repr(history) == "History(1 period; sunday: no rows; learning)"


def test_quiet_shares_lie_in_the_usual_range_as_often_as_stated():
    rng = np.random.default_rng(3)
    shares = rng.beta(0.05 * 499, 0.95 * 499, size=230)
    history = EMPTY.add(days(rng.binomial(500, shares).tolist()))
    inside = [
        low <= period.count.share <= high
        for period, (low, high) in zip(history.periods, history.usual_ranges, strict=True)
    ][30:]
    assert 0.84 <= np.mean(inside) <= 0.96
    assert np.isnan(EMPTY.add([Period("empty", Count(0, 0))]).usual_ranges[0]).all()


def test_the_usual_range_of_a_day_is_that_of_its_weekday():
    shares = [45 if t % 7 >= 5 else 20 for t in range(70)]
    others = EMPTY.add(Period(f"no {t}", Count(500, k)) for t, k in enumerate(shares))
    first = date(2026, 1, 5)  # a Monday
    names = [(first + timedelta(days=t)).isoformat() for t in range(70)]
    days = EMPTY.add(Period(n, Count(500, k)) for n, k in zip(names, shares, strict=True))
    inside = [
        np.mean([low <= 0.09 <= high for low, high in history.usual_ranges[40:][7::7]])
        for history in (days, others)
    ]
    width = [
        np.mean([high - low for low, high in history.usual_ranges[40:]])
        for history in (days, others)
    ]
    assert inside == [1.0, 1.0]
    assert width[0] < 0.8 * width[1]
    assert all(high < 0.09 for low, high in days.usual_ranges[42:47])


def test_the_share_of_labels_is_shrunk_as_that_of_groups_is():
    periods = [
        Period("a", Count(500, 20), labels=Labels(10, 0)),
        Period("b", Count(500, 20)),
        Period("c", Count(500, 20), labels=Labels(10, 5)),
    ]
    first, last = EMPTY.add(periods).label_shares
    assert [(own.period, own.n_labels, own.n_anomalies) for own in (first, last)] == [
        ("a", 10, 0),
        ("c", 10, 5),
    ]
    assert 0.0 < first.mean < 0.1
    assert 0.2 < last.mean < 0.5
    assert last.low < last.mean < last.high


def test_the_column_that_moved_is_named_and_only_in_a_change():
    rng = np.random.default_rng(4)
    parts = training_parts(rng.normal(size=(1000, 3)), ["a", "b", "c"])

    def period(t, beyond, step):
        rows = rng.normal(size=(500, 3))
        rows[:250, 2] -= step
        return Period(f"{t}", Count(500, beyond), {}, f"{t}", count_parts(rows, parts))

    history = replace(EMPTY, columns=parts)
    history = history.add(period(t, 20, 0.0) for t in range(12))
    assert history.all_columns == history.moved_columns == []
    history = history.add(period(t, 100, 1.0) for t in range(12, 15))
    (moved,) = history.moved_columns
    assert (moved.name, moved.is_higher, len(history.all_columns)) == ("c", False, 3)
    assert history.acknowledge().moved_columns == []


def test_the_table_has_a_line_for_each_period_and_group():
    history = EMPTY.add(in_groups([{"a": 2, "b": 3}, {"a": 1}]))
    frame = history.to_frame()
    assert frame["group"].tolist() == ["", "a", "b", "", "a"]
    assert frame["n_above"].tolist() == [5, 2, 3, 1, 1]
    assert frame.loc[1, ["low", "high"]].tolist() == list(Count(100, 2).interval())
    assert set(frame["state"]) == {"learning"}


def test_a_saved_history_is_the_same_and_is_replaced_only_on_request(tmp_path):
    history = EMPTY.add(in_groups([{"a": 2, "b": 3}, {"ü": 1}])).acknowledge()
    path = tmp_path / "h.json"
    history.save(path)
    assert History.load(path) == history
    with pytest.raises(FileExistsError):
        history.save(path)
    assert "\n" not in path.read_text(encoding="utf-8").strip()
    history.add(days([3], 9)).save(path, overwrite=True)
    assert len(History.load(path).periods) == 3


def test_a_history_that_could_not_be_read_again_is_not_written(tmp_path):
    path = tmp_path / "h.json"
    history = EMPTY.add(days([2, 3]))
    history.save(path)
    large = history.add([Period("x" * MAX_DOCUMENT_BYTES, Count(500, 20))])
    with pytest.raises(HistoryError):
        large.save(path, overwrite=True)
    assert History.load(path) == history


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(schema="gammagmm/posterior"), "schema must be 'gammagmm/history'"),
        (lambda d: d.update(version=6), "Upgrade gammagmm"),
        (lambda d: d.update(version=2), r"earlier version.*new history with --history\."),
        (lambda d: d.update(alpha=0), "alpha must lie strictly between 0 and 1"),
        (lambda d: d.pop("fit"), "missing or unexpected fields: fit"),
        (lambda d: d["reference"].update(n_above=2001), "cannot lie above the threshold"),
        (lambda d: d["periods"][0]["count"].update(n_rows=1.5), "must be a whole number"),
        (lambda d: d["periods"][0]["count"].update(n_rows=-1), "cannot lie above the threshold"),
        (lambda d: d["periods"][0]["count"].update(n_rows=10**12), "at most 10,000,000,000 rows"),
        (lambda d: d["reference"].update(n_rows=10**30), "at most 10,000,000,000 rows"),
        (lambda d: [p["count"].update(n_rows=10**10) for p in d["periods"]], "at most 10,000"),
        (lambda d: d["periods"].append(d["periods"][0]), "two periods have the same name"),
        (lambda d: d["periods"][0].update(groups=[1]), "must be an object"),
        (lambda d: d["periods"][0].update(columns={"a": [1]}), "rows of the period"),
        (lambda d: d["periods"][0].update(columns={"a": [100, 400]}), "other columns"),
        (lambda d: d["periods"][0].update(labels=LABELS | {"n_labels": 1}), "anomalies"),
        (lambda d: d["periods"][0].update(labels=LABELS | {"label_error": [0, 0.5]}), "below 0.5"),
        (lambda d: d["periods"][0].update(labels=LABELS | {"label_error": [0.1]}), "2 items"),
        (
            lambda d: d.update(columns={"a": {"ends": [1.0], "counts": [1], "is_text": False}}),
            "for each part",
        ),
        (lambda d: d["periods"][0].update(n_filled=-1), "negative"),
        (lambda d: d.update(acknowledged=["x"]), "acknowledged"),
        (lambda d: d.update(periods={}), "must be a list"),
    ],
)
def test_a_damaged_history_is_a_typed_error(tmp_path, change, message):
    path = tmp_path / "h.json"
    EMPTY.add(days([2, 3])).save(path)
    data = json.loads(path.read_text(encoding="utf-8"))
    change(data)
    path.write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(SavedFileError, match=message):
        History.load(path)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"[1]", b'{"schema": "gammagmm/history"'])
def test_a_foreign_file_is_a_typed_error(tmp_path, content):
    (tmp_path / "h.json").write_bytes(content)
    with pytest.raises(SavedFileError):
        History.load(tmp_path / "h.json")
