"""The logic of labelling: which rows are asked for, whose answers count, and what they give."""

from __future__ import annotations

import numpy as np
import pytest

from gammagmm import GammaGMM
from gammagmm.datasets import load_demo
from gammagmm.estimator.label_session import LabelSession
from gammagmm.labels.sheet import UNNAMED, Sheet
from gammagmm.report.label_view import LabelView, MessageError


@pytest.fixture(scope="module")
def data():
    return load_demo()


@pytest.fixture(scope="module")
def whole(data):
    return GammaGMM(["KNN", "LOF"], scale=None, n_runs=2, random_state=0).fit(data.X)


@pytest.fixture
def begin(whole):
    def begin(sheet=None, **options):
        return LabelSession(whole.fit_, sheet, rng=np.random.default_rng(0), **options)

    return begin


def answer_all(session, asking, n, y):
    """Answer the next `n` rows with their true labels; the rows."""
    rows = []
    for _ in range(n):
        if not session.waiting(asking):
            session.extend(asking, 1)
        rows.append(session.waiting(asking)[0])
        session.answer(rows[-1], int(y[rows[-1]]))
    return rows


def test_the_answers_give_what_update_gives(begin, whole, data):
    session = begin()
    rows = answer_all(session, "share", 12, data.y)
    found = answer_all(session, "find", 8, data.y)
    own = whole.fit_.update(rows, data.y[rows]).update(found, data.y[found], purpose="find")
    assert session.labelled.posterior.mean == own.posterior.mean
    assert session.labelled.posterior.interval() == own.posterior.interval()
    np.testing.assert_array_equal(session.labelled.decision_scores, own.decision_scores)
    progress = session.progress
    assert progress.any_look == own.labelled_rows.interval_at_any_look()
    assert progress.left == own.labelled_rows.left
    assert progress.found == tuple(np.cumsum(data.y[rows + found]))
    assert (progress.n_answers, progress.n_drawn) == (20, 12)


def test_the_interval_at_any_look_is_that_of_rows_in_simple_random_order(whole, data):
    """How rows were drawn that the fit knows already, or a sheet without a word, is not known."""
    rows = whole.fit_.labelled_rows.suggest(10, random_state=0)
    own = whole.fit_.update(rows, data.y[rows])
    assert LabelSession(own).progress.any_look is None
    for is_simple in (True, False):
        sheet = Sheet().extend(rows.tolist(), "share", is_simple=is_simple)
        for row in rows.tolist():
            sheet = sheet.answer(row, int(data.y[row]))
        for session in (LabelSession(own, sheet), LabelSession(own, earlier=[sheet])):
            expected = own.labelled_rows.interval_at_any_look() if is_simple else None
            assert session.progress.any_look == expected
    listed = whole.fit_.update(rows, data.y[rows], at_random=False)
    assert LabelSession(listed).progress.any_look is not None


def test_rows_of_groups_are_not_in_simple_random_order(whole, data):
    """Nor are they in a later session without groups."""
    grouped = LabelSession(whole.fit_.grouped(np.arange(len(data.X)) % 3), n=10)
    answer_all(grouped, "share", 10, data.y)
    assert grouped.progress.any_look is None
    later = LabelSession(whole.fit_, earlier=[grouped.sheet], n=10)
    assert later.progress.any_look is None
    answer_all(later, "share", 10, data.y)
    assert later.progress.any_look is None
    simple = LabelSession(whole.fit_, n=10)
    answer_all(simple, "share", 10, data.y)
    assert LabelSession(whole.fit_, earlier=[simple.sheet]).progress.any_look is not None


def test_rows_to_find_are_the_first_of_the_ranking_that_was_learned_last(begin, whole, data):
    session = begin()
    rows = answer_all(session, "share", 30, data.y)
    learned = whole.fit_.update(rows, data.y[rows])
    session.learn()
    session.extend("find", 3)
    expected = learned.labelled_rows.suggest(3, purpose="find").tolist()
    assert session.waiting("find") == expected
    session.answer(expected[0], 1)
    session.extend("find", 1)  # the ranking of before, until it is learned again
    assert session.waiting("find")[:2] == expected[1:]


def test_a_row_found_before_counts_for_the_share_once_it_is_drawn(begin, data):
    """Otherwise the sample would hold too few, or first of all, rows from the top."""
    drawn = begin()
    drawn.n["share"] = 200
    drawn.extend("share", 0)
    order = drawn.sheet.rows
    session = begin(n=200)
    found = answer_all(session, "find", 100, data.y)
    n_both = 0
    for n in range(1, 60):
        rows = session.waiting("share")
        if not rows:
            session.extend("share", 0)
            rows = session.waiting("share")
        session.answer(rows[0], int(data.y[rows[0]]))
        known = session.labelled_rows.known_rows
        sample = known.rows[known.at_random]
        n_both = len(set(sample) & set(found))
        assert len(sample) >= n
        # All drawn rows have an answer: none was counted before those drawn before it.
        assert set(sample) == {row for row in session.sheet.rows if row not in session.sheet.picked}
    assert n_both > 3
    assert len(order) == 200
    assert len(set(session.sheet.rows)) == len(session.sheet.rows)


def test_a_check_cannot_be_drawn_again(begin, data):
    """Rows that were seen, skipped, or left unsure stay in it, and no others come after them."""
    session = begin()
    answer_all(session, "find", 30, data.y)
    session.extend("check", 0)
    rows = session.waiting("check")
    assert rows
    session.skip(rows[0])
    session.answer(rows[1], None)
    session.n["find"], session.n["share"] = 60, 60
    for asking in ("check", "find", "share"):
        assert session.extend(asking, 5) == 0
    assert session.sheet.checked == set(rows)
    for row in rows[2:]:
        session.answer(row, int(data.y[row]))
    assert session.progress.check is None  # an unsure row is no normal one
    session.ask_skipped()
    assert set(session.waiting("check")) == set(rows[:2])
    for row in rows[:2]:
        session.answer(row, int(data.y[row]))
    assert session.progress.check.n_labels == len(rows)


def test_a_page_with_a_check_asks_for_nothing_else(begin, data):
    session = begin()
    answer_all(session, "find", 30, data.y)
    view = LabelView(session, "find", save=lambda session: None)
    begun = view.handle({"kind": "ask", "asking": "check"})
    assert begun["switches"] == ["check"]
    view.handle({"kind": "skip", "row": begun["cards"][0]["row"]})
    for asking in ("share", "find"):
        with pytest.raises(MessageError):
            view.handle({"kind": "ask", "asking": asking})
    again = LabelView(begin(session.sheet), "share", save=lambda session: None)
    assert again.asking == "check"
    assert set(again.session.sheet.checked) == set(session.sheet.checked)


def test_undo_takes_the_answers_back_in_their_order(begin):
    session = begin()
    session.extend("share", 0)
    one, two, three = session.waiting("share")[:3]
    session.answer(two, 1)  # another window has answered the second row first
    session.answer(one, 0)
    session.skip(three)
    assert [session.undo() for _ in range(4)] == [three, one, two, None]
    assert session.sheet.n_answers == 0
    assert session.waiting("share")[0] == two


def test_skipped_and_unsure_rows_are_asked_for_again_on_request(begin):
    session = begin(n=3)
    session.extend("share", 0)
    one, two, three = session.waiting("share")
    session.skip(one)
    session.answer(two, None)
    session.answer(three, 1)
    assert session.waiting("share") == []
    assert session.sheet.unsure == {two}
    assert session.progress.n_unsure == 1
    assert begin(session.sheet).waiting("share") == [one]
    session.ask_skipped()
    assert session.waiting("share") == [one, two]
    session.answer(two, 0)
    assert session.sheet.unsure == frozenset()


def test_answers_of_two_people_are_kept_and_the_last_one_counts(begin):
    first = begin(n=4)
    first.extend("share", 0)
    rows = first.waiting("share")
    for row in rows[:3]:
        first.answer(row, 0)
    second = begin(first.sheet, person="ann")
    assert second.waiting("share") == [rows[3]]
    assert second.waiting("again") == list(rows[:3])
    second.answer(rows[0], 1)
    second.answer(rows[1], 0)
    assert second.sheet.said == {UNNAMED: {rows[0]: 0, rows[1]: 0}, "ann": {rows[0]: 1, rows[1]: 0}}
    assert second.sheet.disputed == second.progress.disputed == (rows[0],)
    assert second.sheet.label_of(rows[0]) == 1
    assert second.waiting("again") == [rows[2]]
    third = begin(second.sheet, person="bo")
    third.answer(rows[0], 0)
    assert third.sheet.label_of(rows[0]) == 0
    assert third.undo() == rows[0]
    assert third.sheet.label_of(rows[0]) == 1
    assert third.sheet.said == second.sheet.said


def test_labels_of_the_fit_stay(whole, data):
    fit = whole.fit_.update([5, 6, 7], data.y[[5, 6, 7]])
    session = LabelSession(fit, n=5, rng=np.random.default_rng(0))
    rows = answer_all(session, "share", 5, data.y)
    assert not {5, 6, 7} & set(rows)
    assert set(session.labelled.known_rows.rows) == {5, 6, 7, *rows}


def test_no_more_rows_than_the_table_has(whole):
    rows = range(360)
    sheet = Sheet(tuple(rows), (0,) * 360)
    session = LabelSession(whole.fit_, n=30, earlier=[sheet], rng=np.random.default_rng(0))
    assert session.extend("share", 0) == 7
    assert sorted(session.waiting("share")) == list(range(360, 367))
