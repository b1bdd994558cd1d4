"""The report as text; tests/browser looks at it in a browser."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from gammagmm import GammaGMM
from gammagmm.datasets import make_contaminated
from gammagmm.errors import DetectorWarning, NoSolutionWarning, Note
from gammagmm.report.findings import MAX_RANKED, MAX_STEP, N_STEPS, find
from gammagmm.report.origin import Origin
from gammagmm.report.page import render, write_report
from gammagmm.report.svg import posterior_svg
from tests.support.flat_detector import Flat

HOSTILE = "<script>alert(1)</script>"
NAMES = (HOSTILE, "height & width", "depth", "mass")


@pytest.fixture(scope="module")
def data():
    return make_contaminated(300, 4, 0.05, "clustered", random_state=2)


@pytest.fixture(scope="module")
def fitted(data):
    estimator = GammaGMM({"KNN": "KNN", "LOF": "LOF", "HBOS": "HBOS", HOSTILE: Flat()}, n_runs=2)
    estimator.set_params(random_state=0)
    with pytest.warns(DetectorWarning, match="left out"):
        return estimator.fit(data.X)


@pytest.fixture(scope="module")
def origin(data):
    ids = (HOSTILE, "=1+1", *(f"part {i}" for i in range(298)))
    notes = (Note("tables", HOSTILE, "2 values imputed"),)
    return Origin(f"{HOSTILE}.csv", NAMES, ids, "ab" * 32, data.y, notes)


@pytest.fixture(scope="module")
def findings(fitted, data, origin):
    return find(fitted, data.X, origin)


@pytest.fixture(scope="module")
def page(findings):
    return render(findings)


class Parsed(HTMLParser):
    """Words outside of scripts and styles, tags, and what each script holds."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.words, self.tags, self.scripts, self.open = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.open.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data
        elif not (self.open and self.open[-1] == "style"):
            self.words.append(data)


def test_every_step_of_the_control_is_labels_at(findings, fitted):
    chosen = np.linspace(0, N_STEPS, 20).astype(int)
    for i in chosen:
        step = findings.steps[i]
        assert step.gamma == pytest.approx(MAX_STEP * i / N_STEPS, abs=1e-6)
        if 0.0 < step.gamma < 1.0:
            assert step.n_flagged == fitted.labels_at(step.gamma).sum()
        expected = np.percentile(fitted.scores_, 100 * (1 - step.gamma), axis=0)
        np.testing.assert_array_equal(step.thresholds, expected)


def test_the_rows_flagged_are_the_first_of_the_ranking(findings, fitted, origin):
    for gamma in (0.01, 0.05, 0.2):
        labels = fitted.labels_at(gamma)
        flagged = {origin.ids[i] for i in labels.nonzero()[0]}
        assert set(findings.ranked[: labels.sum()]) == flagged


def test_costs_flag_by_probability(findings, fitted):
    probability = fitted.to_frame()["probability"]
    for cost, n_flagged in findings.costs:
        assert n_flagged == (probability > 1 / (1 + cost)).sum()
    assert [n for _, n in findings.costs] == sorted(n for _, n in findings.costs)


def test_agreement_is_spearmans(findings, fitted):
    from scipy.stats import spearmanr

    for j, name in enumerate(fitted.detector_names_):
        expected = spearmanr(fitted.scores_[:, j], fitted.decision_scores_).statistic
        assert findings.agreement[name] == pytest.approx(expected)


def test_components_are_those_of_a_run(findings, fitted):
    shares, p_anomalous = np.array(findings.components).T
    run = next(run for run in fitted.runs_ if run.posterior)
    assert shares.sum() == pytest.approx(1.0)
    # At least k are anomalous: 1 - P(none) for the first, then one weight less each.
    assert p_anomalous[0] == pytest.approx(0.99)
    assert p_anomalous[1] == pytest.approx(0.99 - run.posterior.betas.weights[0])
    assert (np.diff(p_anomalous) <= 1e-12).all()


def test_what_stands_out_is_far_from_the_median(data, fitted):
    X = data.X.copy()
    top = int(np.argmax(fitted.decision_scores_))
    X[top, 2] = np.median(X[:, 2]) + 50 * X[:, 2].std()
    found = find(fitted, X, Origin(columns=NAMES)).standouts[0]
    assert found.row == str(top + 1)
    name, value, z = found.features[0]
    assert (name, value) == ("depth", X[top, 2])
    iqr = np.subtract(*np.percentile(X[:, 2], [75, 25]))
    assert z == pytest.approx((value - np.median(X[:, 2])) / (iqr / 1.349))
    assert find(fitted).standouts[0].features == ()


def test_the_page_says_what_was_found(page, fitted, data):
    words = " ".join(" ".join(Parsed(page).words).split())
    low, high = fitted.posterior_.interval()
    assert (
        f"About {fitted.posterior_.mean:.1%} anomalies, between {low:.1%} and {high:.1%}" in words
    )
    assert f"{fitted.labels_.sum()} of 300 rows are flagged." in words
    assert f"have {data.gamma:.1%} anomalies" in words
    assert "left out: constant" in words
    assert "2 values imputed" in words
    assert "What this method cannot tell" in words
    assert "ab" * 32 in words
    for name in ("KNN", "LOF", "HBOS"):
        assert f"without {name}" in words


def test_what_a_file_says_stays_text(page):
    parsed = Parsed(page)
    assert len(parsed.scripts) == 2
    assert "alert(1)" not in parsed.scripts[1]
    assert json.loads(parsed.scripts[0])["ranked"].count(HOSTILE) == 1
    assert any(HOSTILE in words for words in parsed.words)
    # No handler, no address, no style attribute: nothing that a policy would have to stop.
    for tag, attributes in parsed.tags:
        assert not any(name.startswith("on") or name == "style" for name in attributes)
        assert not {"src", "href", "action"} & set(attributes), tag


def test_the_policy_allows_the_two_blocks_and_nothing_else(page):
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)[1]
    script = re.search(r"<script>(.*?)</script>", page, re.DOTALL)[1]
    hashes = {}
    for name, text in (("style", style), ("script", script)):
        digest = hashlib.sha256(text.encode()).digest()
        hashes[name] = f"'sha256-{base64.b64encode(digest).decode()}'"
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules.pop("default-src") == "'none'"
    assert rules == {
        "base-uri": "'none'",
        "form-action": "'none'",
        "style-src": hashes["style"],
        "script-src": hashes["script"],
    }


def test_the_method_writes_it_and_replaces_only_when_told(fitted, data, tmp_path):
    path = tmp_path / "report.html"
    fitted.report(path, data.X)
    assert "what stands out" in path.read_text(encoding="utf-8")
    with pytest.raises(FileExistsError, match=r"report\.html exists already"):
        fitted.report(path)
    fitted.report(path, overwrite=True)
    with pytest.raises(ValueError, match="X must hold the 300 training rows, got 299"):
        fitted.report(path, data.X[1:], overwrite=True)


def test_no_answer_is_said(tmp_path):
    scores = np.repeat([[0.0, 0.0], [1.0, 1.0]], 50, axis=0)
    options = {"n_runs": 1, "max_restarts": 0, "n_components": 2, "random_state": 0}
    with pytest.warns(NoSolutionWarning):
        fitted = GammaGMM("precomputed", **options).fit(scores)
    page = render(find(fitted))
    assert "There is no answer for these data" in page
    assert "No run found a solution" in page
    assert "This does not mean that the data are clean." in page


def test_many_rows_stay_under_two_megabytes():
    scores = np.random.default_rng(0).normal(size=(100_000, 8))
    scores[:2000] += 4.0
    fitted = GammaGMM("precomputed", n_runs=1, n_components=5, max_iter=5, p_high=0.9)
    with pytest.warns(UserWarning, match="stopped at max_iter|no solution|No solution"):
        fitted.set_params(random_state=0, max_restarts=0).fit(scores)
    ids = tuple("客" * 90 + f"{i:012d}" for i in range(100_000))
    page = render(find(fitted, np.tile(scores, (1, 3))[:, :20], Origin("big.csv", ids=ids)))
    assert len(page.encode()) < 2_000_000
    data = json.loads(Parsed(page).scripts[0])
    assert len(data["ranked"]) == MAX_RANKED


def test_write_report_takes_an_origin(fitted, origin, tmp_path):
    write_report(fitted, tmp_path / "report.html", None, origin)
    assert "part 7" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_labels_of_rows_are_shown_before_and_after(fitted, data):
    known = copy.deepcopy(fitted)
    rows = known.suggest(20, random_state=1)
    known.update(rows, data.y[rows])
    page = render(find(known, data.X, Origin(columns=NAMES)))
    words = " ".join(" ".join(Parsed(page).words).split())
    n_found = int(data.y[rows].sum())
    found = "1 anomaly" if n_found == 1 else f"{n_found} anomalies"
    assert f"This estimate uses 20 labelled rows ({found})." in words
    assert "The same before a person looked at 20 rows." in words
    assert page.count("<svg") == 2
    assert posterior_svg(known.fitted_posterior_) in page
    asked = {row for row, _, _ in find(known, data.X).to_inspect}
    assert len(asked) == 30
    assert not asked & {str(row + 1) for row in rows}


def test_rows_to_look_at_have_their_number_in_the_file(fitted, data):
    origin = Origin(rows=tuple(range(100, 100 + len(data.X))))
    rows = fitted.suggest(30, random_state=fitted.random_state)
    found = find(fitted, data.X, origin).to_inspect
    assert [number for number, _, _ in found] == [str(row + 101) for row in rows]
