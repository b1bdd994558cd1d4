"""The page of a history shows its periods, its state, the columns, the rows and the labels."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from gammagmm import History
from gammagmm.monitoring.columns import MovedColumn
from gammagmm.monitoring.counts import Count, Labels, Period
from gammagmm.monitoring.parts import count_parts, training_parts
from gammagmm.monitoring.watched_row import WatchedRow
from gammagmm.report.watch import MAX_DRAWN, ColumnLine, render_watch

HOSTILE = "<script>alert(1)</script>"


def made_history(n_quiet=35, n_changed=4, n_labels=10):
    """A history in which the second column and the share rise together."""
    rng = np.random.default_rng(0)
    parts = training_parts(rng.normal(size=(1000, 2)), [HOSTILE, "b"])
    periods = []
    for t in range(n_quiet + n_changed):
        rows, is_changed = rng.normal(size=(200, 2)), t >= n_quiet
        rows[:100, 1] += is_changed
        beyond = int(rng.binomial(200, 0.2 if is_changed else 0.05))
        labels = Labels(n_labels, t % 3) if n_labels else None
        counts = count_parts(rows, parts)
        periods.append(Period(f"{HOSTILE} {t}", Count(200, beyond), {}, str(t), counts, labels))
    return History("", Count(1000, 50), periods=tuple(periods), columns=parts)


@pytest.fixture(scope="module")
def page():
    rows = [WatchedRow(f"row {i} {HOSTILE}", "today", 3.0 - i, "a is 3") for i in range(3)]
    return render_watch(made_history(), rows)


def test_the_page_needs_no_other_file_and_runs_no_script(page):
    assert HOSTILE not in page
    assert "<script" not in page
    assert "default-src 'none'" in page
    assert not re.search(r"(src|href)=\"(?!#)", page)
    assert not re.search(r"url\(|@import", page)


def test_the_picture_has_a_mark_for_each_period_and_the_changed_ones_differ(page):
    history = made_history()
    assert history.state.kind == "raised"
    n_changed = len(history.changed_places)
    assert page.count('<circle class="accent quiet"') == len(history.periods) - n_changed
    assert page.count('<path class="alarm changed"') == n_changed
    assert page.count('<rect class="accent usual"') == len(history.periods)


def test_the_column_that_moved_comes_first_and_the_rows_are_shown(page):
    columns = page[page.index('id="columns"') : page.index('id="rows"')]
    assert re.findall(r"<tr><td>(.*?)</td>", columns)[0] == "b"
    assert columns.count(">clearly<") == 1
    rows = page[page.index('id="rows"') : page.index('id="labels"')]
    assert rows.count("<tr><td>row ") == 3


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ({"is_text": True}, "12.0% of the rows, now 40.0%"),
        ({}, "12.0% of the values were above 0, now 40.0%"),
        (
            {"ends": (0.0, 7.5), "before": (0.5, 0.2, 0.3), "now": (0.2, 0.2, 0.6), "end": 1},
            "70.0% of the values were at most 7.5, now 40.0%",
        ),
    ],
)
def test_a_difference_is_told_at_the_tested_end(own, words):
    moved = MovedColumn("a", 0.3, 0, 5.0, 0.01, (0.0,), (0.88, 0.12), (0.6, 0.4), False)
    assert ColumnLine.of(replace(moved, **own)).words == words


def test_code_is_marked_and_not_between_backticks(page):
    assert "`" not in re.sub("<style>.*?</style>", "", page, flags=re.S)
    assert "<code>gammagmm label</code>" in page
    assert "<code>--acknowledge</code>" in page


def test_the_shares_are_labelled_beside_the_picture_that_is_scrolled(page):
    axis = page[page.index('class="axis"') : page.index('class="periods"')]
    periods = page[page.index('class="periods"') : page.index("Table of the periods")]
    assert re.findall(r">([\d.]+)%</text>", axis)
    assert not re.findall(r">([\d.]+)%</text>", periods)


def test_filled_values_are_shown_where_there_are_some(page):
    assert "filled values" not in page
    history = made_history()
    *others, newest = history.periods
    filled = render_watch(replace(history, periods=(*others, replace(newest, n_filled=7))))
    assert '<td class="n">7</td>' in filled
    assert "7 missing values were filled in" in filled


def test_the_labels_have_a_line_for_each_period(page):
    labels = page[page.index('id="labels"') : page.index('id="method"')]
    assert labels.count("<tr><td>") == 39


def test_parts_without_content_are_left_out():
    history = History("", Count(1000, 50)).add([Period("empty", Count(0, 0))])
    page = render_watch(history)
    assert not re.search('id="(columns|rows|labels)"', page)
    assert "<circle" not in page


def test_many_periods_are_cut_to_the_newest_ones():
    periods = tuple(Period(f"day {t:04}", Count(100, 4)) for t in range(MAX_DRAWN + 20))
    page = render_watch(History("", Count(1000, 40), periods=periods).acknowledge())
    assert page.count('<circle class="accent quiet"') == MAX_DRAWN
    assert "day 0019" not in page
    assert "day 0119" in page


def test_a_report_is_replaced_only_on_request(tmp_path):
    history = made_history(3, 0, 0)
    history.report(tmp_path / "watch.html")
    with pytest.raises(FileExistsError):
        history.report(tmp_path / "watch.html")
    history.report(tmp_path / "watch.html", overwrite=True)
