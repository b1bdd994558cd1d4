"""What notebooks show of each result."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from gammagmm import GammaGMM, History
from gammagmm.datasets import make_contaminated
from gammagmm.labels.known_rows import KnownRows
from gammagmm.monitoring.counts import Count, Period
from gammagmm.report import palette
from tests.report.test_svg import Page

# Small fits are fast, and may leave most starts without a solution.
pytestmark = pytest.mark.filterwarnings("ignore::gammagmm.errors.UnsolvedRunsWarning")

SOURCE = Path(palette.__file__).parent


@pytest.fixture(scope="module")
def estimator():
    data = make_contaminated(400, 3, 0.1, "global", random_state=0)
    estimator = GammaGMM(["KNN", "HBOS"], n_runs=1, random_state=0).fit(data.X)
    rows = estimator.suggest(60, random_state=0)
    estimator.update(rows, data.y[rows])
    return estimator


def objects(estimator):
    names = np.array(["<b>a", "b"])[np.arange(400) % 2]
    period = Period("<b>monday", Count(100, 4))
    return {
        "answer": estimator,
        "fit": estimator.fit_,
        "posterior": estimator.posterior_,
        "evidence": estimator.evidence_,
        "known": estimator.known_rows_,
        "labels": estimator.labelled_rows_,
        "groups": estimator.labelled_rows_.by_group(names),
        "history": History("", Count(2000, 80)).add([period]),
    }


def test_each_result_has_a_picture_of_its_own(estimator):
    shown = {kind: each._repr_html_() for kind, each in objects(estimator).items()}
    for kind, text in shown.items():
        page = Page(text)
        assert page.open == []
        tag, attributes = page.seen[0]
        assert (tag, attributes["class"]) == ("div", f"gammagmm-{kind}")
        assert "svg" in {tag for tag, _ in page.seen}
        # Nothing runs and nothing is loaded.
        assert {"script", "style", "link", "img", "iframe", "b"}.isdisjoint(t for t, _ in page.seen)
        assert not any(name.startswith("on") or name == "href" for _, a in page.seen for name in a)
        assert len(text) < 40_000
        assert not re.search(r"\b(nan|inf)\b", text)
    assert len(set(shown.values())) == len(shown)


def test_the_answer_has_the_lines_of_the_fit(estimator):
    words = Page(estimator._repr_html_()).words
    for line in estimator.fit_.lines:
        assert line in words
    detectors = Page(estimator.fit_._repr_html_()).words
    assert "KNN" in detectors
    assert "KNN" not in words


def test_the_evidence_is_each_other_answer_and_the_record(estimator):
    words = Page(estimator.evidence_._repr_html_()).words
    for each in estimator.evidence_.assumptions:
        assert each.words in words
        assert np.isnan(each.mean) or f"{each.mean:.1%}" in words
    assert f"{estimator.evidence_.track_record.held():.0%}" in words


def test_known_rows_are_counted_by_how_they_were_chosen(estimator):
    data = make_contaminated(400, 3, 0.1, "global", random_state=0)
    known = estimator.fit_.update([5], data.y[[5]], at_random=False).known_rows
    words = Page(known._repr_html_()).words
    at_random = known.at_random
    assert f"chosen at random{at_random.sum()}{known.labels[at_random].sum()}" in words
    assert f"in lists{known.listed.sum()}{known.labels[known.listed].sum()}" in words
    assert "picked" not in words
    assert "0 rows" in Page(KnownRows.none()._repr_html_()).words


def test_an_empty_history_and_an_empty_period_say_so():
    history = History("", Count(2000, 80))
    assert "no period" in Page(history._repr_html_()).words
    words = Page(history.add([Period("sunday", Count(0, 0))])._repr_html_()).words
    assert "sunday has no rows." in words
    assert "of 0 rows" not in words


def test_pages_and_pictures_have_the_same_colours():
    """By the style sheet: the first colour of each variable is the one on white paper."""
    text = (SOURCE / "style.css").read_text(encoding="utf-8")
    variables = dict(re.findall(r"--(\w+): light-dark\((#\w{6})", text))
    for name in ("accent", "alarm", "ink", "muted", "line"):
        assert getattr(palette, name.upper()) == variables[name]
