"""Names of hours, days, weeks and months."""

from __future__ import annotations

import pytest

from gammagmm.errors import TableError
from gammagmm.monitoring.periods import empty_days, order_notes, period_names, weekdays_of

TIMES = ["2025-12-29 23:59:59", " 2026-01-01", "2026-01-04T10:00:00+02:00"]


@pytest.mark.parametrize(
    ("every", "names"),
    [
        ("hour", ["2025-12-29T23", "2026-01-01T00", "2026-01-04T10"]),
        ("day", ["2025-12-29", "2026-01-01", "2026-01-04"]),
        ("week", ["2026-W01", "2026-W01", "2026-W01"]),  # a week has one year, by ISO 8601
        ("month", ["2025-12", "2026-01", "2026-01"]),
    ],
)
def test_a_time_has_the_name_of_its_period(every, names):
    assert period_names(TIMES, every, "time") == names


def test_dates_may_be_written_in_other_ways():
    assert period_names(["31.12.2025", "1.1.2026 08:30"], "day", "t") == [
        "2025-12-31",
        "2026-01-01",
    ]
    assert period_names(["12/31/2025", "1/1/2026"], "month", "t") == ["2025-12", "2026-01"]
    assert period_names(["31/12/2025", "1/1/2026"], "month", "t") == ["2025-12", "2026-01"]


def test_times_that_cannot_be_read_are_counted_and_the_first_is_named():
    cells = ["2026-01-01", "03.01.26", None, "2026-01-02"]
    with pytest.raises(TableError, match=r"1 of 4 rows have a time.*in row 2: '03\.01\.26'"):
        period_names(cells, "day", "day")
    with pytest.raises(TableError, match=r"Column 'day': .*in line 7: '03\.01\.26'"):
        period_names(cells, "day", "day", [2, 7, 8, 9])


def test_a_blank_cell_has_no_period():
    names = ["", "2026-01-02", "", ""]
    assert period_names([None, "2.1.2026", "", "  "], "day", "day") == names
    assert period_names(["", None], "day", "day") == ["", ""]
    assert period_names([], "day", "day") == []


def test_names_that_are_no_dates_have_no_order():
    known = ["2026-03-02", "monday.csv", "2026-W10"]
    found = order_notes(known, ["a.csv", "2026-03-01"])
    assert [(note.code, note.subject) for note in found] == [
        ("history.earlier", "2026-03-01"),
        ("history.length", "2026-03-01"),
    ]
    assert [note.fields for note in found] == [{"newest": "2026-03-02"}, {"other": "2026-W10"}]
    assert order_notes(known, ["a.csv", "2026-03-02"]) == []
    assert order_notes(["monday.csv"], ["2026-03-01"]) == []


def test_a_date_that_can_be_read_in_two_ways_is_refused():
    with pytest.raises(TableError, match="not clear whether '05/03/2026' has the day or the month"):
        period_names(["05/03/2026", "06/03/2026"], "day", "day")


def test_days_have_weekdays_and_other_periods_have_none():
    assert weekdays_of(["2024-02-29", "2026-03-01", "2026-03-02"]) == [3, 6, 0]
    for other in ("2026-W09", "2026-03", "2026-03-01T09", "monday", "2026-02-30"):
        assert weekdays_of(["2026-03-01", other]) is None


def test_days_between_are_empty_unless_they_are_the_majority():
    assert empty_days(["2026-03-01", "2026-02-27"]) == ["2026-02-28"]
    assert empty_days(["2026-03-06", "2026-03-09"]) == ["2026-03-07", "2026-03-08"]
    assert empty_days(["2026-03-06", "2026-03-10"]) == []
    assert empty_days(["2026-03-06", "2062-03-07"]) == []
    assert empty_days(["2026-W09", "2026-W11"]) == empty_days([]) == []
