"""The report as text; tests/browser opens it in a browser."""

from __future__ import annotations

import base64
import copy
import hashlib
import html
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from gammagmm import GammaGMM, GammaPosterior
from gammagmm.datasets import make_contaminated
from gammagmm.errors import DetectorWarning, NoSolutionWarning, Note
from gammagmm.labels.sentences import known_sentence, ranking_sentence
from gammagmm.mixture.prior import MixturePrior
from gammagmm.posterior.betas import BetaMixture
from gammagmm.posterior.sentences import NOT_KNOWN
from gammagmm.posterior.separate_rows import SeparateRows
from gammagmm.report.findings import (
    MAX_RANKED,
    MAX_STEP,
    N_STEPS,
    find,
)
from gammagmm.report.page import render, write_report
from gammagmm.report.svg import left_svg, share_svg
from gammagmm.table.table import Commands, Groups
from tests.support.flat_detector import Flat
from tests.support.solved_scores import has_content
from tests.support.tables import knowing

HOSTILE = "<script>alert(1)</script>"
NAMES = (HOSTILE, "height & width", "depth", "mass")


@pytest.fixture(scope="module")
def data():
    return make_contaminated(300, 4, 0.05, "clustered", random_state=2)


@pytest.fixture(scope="module")
def estimator(data):
    detectors = {"KNN": "KNN", "LOF": "LOF", "HBOS": "HBOS", HOSTILE: Flat()}
    # Narrow components, so that several of them may be anomalous.
    prior = MixturePrior(0.05 * np.eye(3))
    estimator = GammaGMM(detectors, n_runs=2, mixture_prior=prior, random_state=0)
    with pytest.warns(DetectorWarning, match="was skipped"):
        estimator.fit(data.X)
    assert has_content(estimator.fit_.runs)
    return estimator


@pytest.fixture(scope="module")
def fitted(estimator):
    return estimator.fit_


@pytest.fixture(scope="module")
def named(fitted, data):
    ids = (HOSTILE, "=1+1", *(f"part {i}" for i in range(298)))
    notes = (Note.of("tables.keys", HOSTILE, words="2 values imputed"),)
    names = {"name": f"{HOSTILE}.csv", "digest": "ab" * 32, "notes": notes}
    return knowing(fitted, NAMES, ids=ids, truth=data.y, **names)


@pytest.fixture(scope="module")
def findings(named):
    return find(named)


@pytest.fixture(scope="module")
def page(findings):
    return render(findings)


class Parsed(HTMLParser):
    """Words outside of scripts and styles, tags, and the contents of each script."""

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


def words_of(page):
    return " ".join(" ".join(Parsed(page).words).split())


def test_every_step_of_the_slider_equals_labels_at(findings, estimator):
    chosen = np.linspace(0, N_STEPS, 20).astype(int)
    for i in chosen:
        step = findings.steps[i]
        assert step.gamma == pytest.approx(MAX_STEP * i / N_STEPS, abs=1e-6)
        if 0.0 < step.gamma < 1.0:
            assert step.n_flagged == estimator.labelled_rows_.labels_at(step.gamma).sum()
        expected = np.percentile(estimator.scores_, 100 * (1 - step.gamma), axis=0)
        np.testing.assert_array_equal(step.thresholds, expected)


def test_the_flagged_rows_are_the_first_of_the_ranking(findings, estimator, named):
    for gamma in (0.01, 0.05, 0.2):
        labels = estimator.labelled_rows_.labels_at(gamma)
        flagged = {named.table.row_names[i] for i in labels.nonzero()[0]}
        assert set(findings.ranking[: labels.sum()]) == flagged


def test_costs_flag_by_probability(findings, estimator):
    probability = estimator.to_frame()["probability"]
    for cost in findings.costs:
        assert cost.cut.n_flagged == (probability > 1 / (1 + cost.miss_cost)).sum()
    counts = [cost.cut.n_flagged for cost in findings.costs]
    assert counts == sorted(counts)


def test_agreement_is_spearmans(findings, fitted):
    from scipy.stats import spearmanr

    for j, name in enumerate(fitted.detector_names):
        expected = spearmanr(fitted.scores[:, j], fitted.decision_scores).statistic
        assert findings.agreement[name] == pytest.approx(expected)


def test_components_are_those_of_a_run(findings, fitted):
    p_anomalous = np.array([component.p_anomalous for component in findings.components])
    run = next(run for run in fitted.runs if run.posterior)
    assert sum(component.share for component in findings.components) == pytest.approx(1.0)
    # At least k are anomalous: 1 - P(none) for the first, then one weight less each.
    assert p_anomalous[0] == pytest.approx(0.99)
    assert p_anomalous[1] == pytest.approx(0.99 - run.posterior.betas.weights[0])
    assert (np.diff(p_anomalous) <= 1e-12).all()


def test_the_top_row_has_the_column_in_which_it_stands_out(data, fitted):
    X = data.X.copy()
    top = int(np.argmax(fitted.decision_scores))
    X[top, 2] = np.median(X[:, 2]) + 50 * X[:, 2].std()
    fitted = knowing(fitted, values=X)
    found = find(knowing(fitted, NAMES)).top_rows[0]
    assert found.name == str(top + 1)
    reason = found.reasons[0]
    assert (reason.column, reason.value) == ("depth", X[top, 2])
    assert reason.deviations > 40
    assert find(fitted).top_rows[0].reasons[0].column == "x3"


def test_the_page_shows_the_findings(page, fitted, data):
    words = words_of(page)
    low, high = fitted.posterior.interval()
    told = fitted.told
    # What is known comes first, then the threshold, the estimate and its record, and what to do.
    flagged = f"{fitted.labels.sum()} of 300 rows are flagged"
    value, record, others, _ = told["model"].values()
    first, _, gain = told["next"].values()
    first = first.removeprefix("Next: l")
    order = [NOT_KNOWN, flagged, value, record, first, "label()", gain]
    places = [words.index(each) for each in order]
    assert places == sorted(places)
    assert f"{low:.1%} to {high:.1%}" in value
    first = words[: words.index("Technical details")]
    assert not re.search(r"p0|p_high|high_gamma|γ|90% interval is|90% interval:", first)
    assert told["cut"]["sum"] in words
    assert others in words
    place = "inside" if low <= data.gamma <= high else "outside"
    assert (
        f"{data.gamma:.1%} of the rows are anomalies. This share is {place} the model range."
        in words
    )
    assert "skipped: constant" in words
    assert "2 values imputed" in words
    assert "Limits of the method" in words
    assert "ab" * 32 in words


def test_the_page_shows_the_evidence(named):
    separate = SeparateRows(np.array([5, 9, 200]), 3, 0.01, 0.9, ("KNN", "LOF"))
    fitted = replace(named, evidence=replace(named.evidence, separate_rows=separate))
    findings = find(fitted)
    words, evidence = words_of(render(findings)), fitted.evidence
    told = fitted.told
    first = told["next"]["what"].removeprefix("Next: l")
    assert all(each in words for each in (*told["model"].values(), first))
    assert "3 rows (1.0%) are separate from the rest in the scores of KNN, LOF." in words
    for other in evidence.assumptions:
        assert other.words in words
    for level in evidence.track_record.levels:
        assert f"{level.mass:.0%} {level.held:.0%} {level.standard_error:.1%}" in words
    order = sorted(separate.rows, key=lambda row: -fitted.decision_scores[row])
    assert list(findings.separate_rows) == [fitted.table.row_names[row] for row in order]
    assert ", ".join(findings.separate_rows[:2]) in words


def test_groups_are_shown_by_size_with_their_intervals(fitted, data, findings, page):
    assert findings.groups == ()
    assert 'id="groups"' not in page
    groups = np.array([HOSTILE] * 150 + ["b"] * 100 + [f"c{i}" for i in range(50)], dtype=object)
    found = find(knowing(fitted, groups=Groups(groups, f"{HOSTILE}-2")))
    text = render(found)
    words = words_of(text[text.index('id="groups"') : text.index('id="technical"')])
    assert f"Groups by {HOSTILE}-2" in words
    places = []
    for group in found.groups[:30]:
        numbers = f"{group.n_rows} {group.n_flagged} {group.n_flagged / group.n_rows:.1%}"
        interval = f"{group.low_flagged:.1%} to {group.high_flagged:.1%}"
        places.append(words.index(f"{group.group} {numbers} {interval}"))
    assert places == sorted(places)
    assert "22 smaller groups with 22 rows are not shown." in words
    assert f"{found.groups[30].group} 1" not in words
    assert text.count('<circle class="share"') <= 30
    assert "by the labels of the group" not in words


def test_groups_with_labels_have_their_shares_by_labels(estimator, fitted, data):
    rows = estimator.suggest(40, random_state=1)
    groups = np.where(np.arange(300) < 200, "a", "b").astype(object)
    groups[np.setdiff1d(np.arange(300), rows)[:3]] = "without labels"
    found = find(fitted.update(rows, data.y[rows]).grouped(groups))
    text = render(found)
    start = text.index("Share of anomalies by group")
    words = words_of(text[start : text.index('id="technical"')])
    for group in found.groups[:2]:
        ends = (group.low, group.high), (group.low_exact, group.high_exact)
        shares = " ".join(
            [f"{group.mean:.1%}", *(f"{low:.1%} to {high:.1%}" for low, high in ends)]
        )
        assert f"{group.group} {group.n_labels} {group.n_anomalies} {shares}" in words
    assert "without labels" not in words
    assert "without labels 3" in words_of(text[:start])


def test_a_table_without_separate_rows_says_so(fitted, findings):
    evidence = replace(fitted.evidence, separate_rows=None)
    summary = replace(findings.summary, evidence=evidence)
    bare = replace(findings, summary=summary, separate_rows=())
    assert "In no pair of detectors are the same rows separate" in words_of(render(bare))


def test_separate_rows_are_marked(fitted):
    top = np.argsort(-fitted.decision_scores, kind="stable")[[0, 2]]
    for separate in (SeparateRows(top, 2, 0.01, 0.9, ("KNN", "LOF")), None):
        fit = replace(fitted, evidence=replace(fitted.evidence, separate_rows=separate))
        page = render(find(fit))
        words = words_of(page)
        told = "2 rows (1.0%) are separate from the rest in the scores of KNN, LOF."
        assert (told in words) == ("The most anomalous of them:" in words) == (separate is not None)
        assert page.count("<td>yes</td><td") == (0 if separate is None else 2)


def test_humps_are_told_where_every_run_has_them(fitted, findings):
    one = GammaPosterior(0.01, BetaMixture(*np.array([[0.99], [50.0], [950.0]])))
    two = GammaPosterior(0.01, BetaMixture(*np.array([[0.5, 0.49], [50.0, 300.0], [950.0, 700.0]])))
    runs = tuple(replace(run, posterior=two) for run in fitted.runs)
    found = find(replace(fitted, runs=runs, fitted_posterior=two)).humps
    assert found == pytest.approx(two.modes())
    assert "The posterior density has several humps" in words_of(
        render(replace(findings, humps=found))
    )
    one_run = (runs[0], *(replace(run, posterior=one) for run in runs[1:]))
    assert find(replace(fitted, runs=one_run, fitted_posterior=two)).humps == ()


def test_names_stay_text(page):
    parsed = Parsed(page)
    assert len(parsed.scripts) == 2
    assert "alert(1)" not in parsed.scripts[1]
    assert json.loads(parsed.scripts[0])["ranked"].count(HOSTILE) == 1
    assert any(HOSTILE in words for words in parsed.words)
    # There is no handler, address or style attribute for the policy to block.
    for tag, attributes in parsed.tags:
        assert not any(name.startswith("on") or name == "style" for name in attributes)
        assert not {"src", "action"} & set(attributes), tag
        assert attributes.get("href", "#").startswith("#")


def test_the_policy_allows_only_the_style_sheet_and_the_script(page):
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


def test_the_method_replaces_a_file_only_with_overwrite(estimator, data, tmp_path):
    path = tmp_path / "report.html"
    estimator.report(path)
    assert "unusual values" in path.read_text(encoding="utf-8")
    with pytest.raises(FileExistsError, match=r"report\.html already exists"):
        estimator.report(path)
    estimator.report(path, overwrite=True)


def test_a_fit_without_a_solution_has_no_estimate():
    scores = np.repeat([[0.0, 0.0], [1.0, 1.0]], 50, axis=0)
    options = {"n_runs": 1, "max_restarts": 0, "n_components": 2, "random_state": 0}
    with pytest.warns(NoSolutionWarning):
        estimator = GammaGMM("precomputed", **options).fit(scores)
    page = render(find(estimator.fit_))
    assert "No run found a solution" in page
    words, told = words_of(page), estimator.fit_.told
    first = told["next"]["what"].removeprefix("Next: l")
    assert all(each in words for each in (*told["model"].values(), first))
    # No line stands for an estimate that there is not.
    first = page[: page.index('id="rows"')]
    assert 'class="cut"' not in page
    assert "atom" not in first
    assert "first guess" not in first
    assert "model range:" not in words


def test_rows_that_are_all_known_to_be_normal_have_an_estimate(fitted):
    known = fitted.update(np.arange(300), np.zeros(300, dtype=int))
    words = words_of(render(find(known)))
    assert "About 0.0% of the rows are anomalies" in words
    assert "Every row has a label." in words
    assert find(known).command == ""
    assert 'id="command"' not in render(find(known))


def test_the_next_step_can_be_copied(fitted):
    commands = Commands(
        "gammagmm label 'my rows.csv' --id key", "", "gammagmm label --purpose find"
    )
    found = find(knowing(fitted, name="my rows.csv", commands=commands))
    assert found.command == commands.label
    assert html.escape(commands.label).replace("x27", "39") in render(found)
    assert commands.label in found.told["next"]["how"]
    assert find(knowing(fitted, commands=None)).command == "detector.label()"


def test_many_rows_stay_under_one_megabyte():
    scores = np.random.default_rng(0).normal(size=(100_000, 8))
    scores[:2000] += 4.0
    options = {"n_runs": 1, "n_components": 5, "max_iter": 5, "p_high": 0.9, "max_restarts": 0}
    with pytest.warns(UserWarning, match="stopped at max_iter|no solution|no estimate"):
        estimator = GammaGMM("precomputed", **options, random_state=0).fit(scores)
    ids = tuple("客" * 90 + f"{i:012d}" for i in range(100_000))
    page = render(find(knowing(estimator.fit_, name="big.csv", ids=ids)))
    assert len(page.encode()) < 1_000_000
    data = json.loads(Parsed(page).scripts[0])
    assert len(data["ranked"]) == MAX_RANKED
    assert "Only the 2,000 most anomalous rows are listed." in words_of(page)


def test_the_report_has_the_names_of_the_rows(named, tmp_path):
    write_report(named, tmp_path / "report.html")
    assert "part 7" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_labels_of_rows_are_shown_with_the_posterior_before_them(estimator, fitted, data):
    rows = estimator.suggest(20, random_state=1)
    known = fitted.update(rows, data.y[rows])
    findings = find(knowing(known, NAMES))
    page, n_found = render(findings), int(data.y[rows].sum())
    words = words_of(page)
    assert known_sentence(20, n_found, known.fitted_posterior) in words
    assert "The posterior without the labels." in words
    assert share_svg(known.fitted_posterior) in page
    assert share_svg(known.posterior, findings.curve) in page
    # What is found, what is left and the recall stand on the first screen.
    left, first = known.labelled_rows.left, page[: page.index('id="rows"')]
    assert left_svg(left) in first
    told = words_of(first)
    assert f"about {left.recall:.1%} of all anomalies ({left.low_recall:.1%} to" in told
    low, high = known.posterior.interval()
    assert f"{low:.1%} to {high:.1%} ({300 * low:.0f} to {300 * high:.0f} rows)" in told
    assert f"About {known.posterior.mean:.1%} of the rows" in told
    assert 'suggest(purpose="find") shows' in told
    # The other intervals stand in the details.
    assert "use only the labels" not in told
    assert "use only the labels" in words
    n_likely = n_found + left.mean
    is_up = np.ceil(n_likely) == known.n_flagged != np.round(n_likely)
    assert ("The number of flagged rows is rounded up." in told) == is_up
    assert "after half of them" in page.lower()
    suggested = {row.number for row in findings.to_label}
    assert len(suggested) == 30
    assert not suggested & {row + 1 for row in rows}


def taught(estimator, y):
    """A copy whose ranking is learned from 60 rows chosen at random and 10 from the top."""
    model = copy.deepcopy(estimator)
    rows = model.suggest(60, random_state=1)
    model.update(rows, y[rows])
    top = model.suggest(10, purpose="find")
    model.update(top, y[top], purpose="find")
    assert model.fit_.ranking == "learned"
    return model


@pytest.fixture(scope="module")
def learned(estimator, data):
    return taught(estimator, data.y)


def test_what_both_rankings_find_among_the_rows_chosen_at_random(estimator, data):
    # Labels that are hard to learn: a row's own label would move it.
    both = data.X[:, 0] + data.X[:, 1]
    y = (both > np.quantile(both, 0.75)).astype(int)
    model = taught(estimator, y)
    known, learning = model.known_rows_, model.fit_.learning
    assert (known.at_random.sum(), known.picked.sum()) == (60, 10)
    consensus = model.fit_.score_space.mean(axis=1)
    # The scores without a row's own label: the votes of the trees that did not learn from it.
    trees, n_rarer = learning.ranking.trees, min(np.bincount(known.labels))
    inputs = np.column_stack([model.fit_.score_space, consensus, model.fit_.detector_columns])
    unknown = np.setdiff1d(np.arange(300), known.rows)
    votes = trees.predict_proba(inputs[unknown].astype(np.float32))[:, 1]
    out_of_bag = (trees.oob_decision_function_[:, 1] - votes.mean()) / votes.std()
    standardised = (consensus[known.rows] - consensus.mean()) / consensus.std()
    honest = (n_rarer * out_of_bag + standardised) / (n_rarer + 1)
    found = find(model.fit_).found

    def n_found(scores):
        order = sorted(np.flatnonzero(known.at_random), key=lambda i: -scores[i])
        return tuple(np.cumsum(y[known.rows[order]]).tolist())

    assert found.consensus == n_found(consensus[known.rows])
    assert found.learned == n_found(honest)
    assert found.consensus[-1] == found.learned[-1] == known.labels[known.at_random].sum() > 1
    with_own_labels = n_found(model.decision_scores_[known.rows])
    assert len({found.consensus, found.learned, with_own_labels}) == 3


def test_the_page_tells_that_the_ranking_is_learned(learned, data):
    findings = find(learned.fit_)
    page = render(findings)
    words = words_of(page)
    assert (
        "ranked by the consensus of the detectors and by what was learned from the labels." in words
    )
    assert "The ranking is learned from few labels." in words
    assert "It does not improve the ranking" not in words
    assert ranking_sentence(learned.fit_.learning) in words
    assert "the learned ranking has found" in page
    assert "Each row is ranked without its own label." in words
    assert "Their score is above" in words
    assert "consensus score" not in words
    # Known anomalies come first, and known normal rows last.
    known = learned.known_rows_
    labels = dict(zip(known.rows.tolist(), (1 - known.labels).tolist(), strict=True))
    order = np.argsort(-learned.decision_scores_, kind="stable").tolist()
    order.sort(key=lambda row: labels.get(row, 0.5))
    assert findings.ranking == tuple(str(row + 1) for row in order)
    assert [row.score for row in findings.top_rows] == learned.decision_scores_[order[:50]].tolist()


def test_the_page_of_the_consensus_has_no_second_ranking(findings, page, fitted, data):
    normal = np.flatnonzero(data.y == 0)[::10]
    one_kind = fitted.update(normal, data.y[normal], at_random=False)
    of_one_kind = find(one_kind)
    for found, text in ((findings, page), (of_one_kind, render(of_one_kind))):
        words = words_of(text)
        assert (found.summary.ranking, found.found) == ("consensus", None)
        assert "The rows are ranked by the consensus of the detectors." in words
        assert "what was learned from the labels" not in words
        assert "It does not improve the ranking" in words
        assert "Their consensus score is above" in words
        assert "Anomalies found among" not in text


@pytest.mark.parametrize("n_anomalies", [1, 5])
def test_there_is_no_picture_without_a_check_or_without_random_anomalies(fitted, data, n_anomalies):
    anomalies, normal = np.flatnonzero(data.y == 1), np.flatnonzero(data.y == 0)[::10]
    known = fitted.update(anomalies[:n_anomalies], [1] * n_anomalies, purpose="find")
    known = known.update(normal, data.y[normal])
    assert (known.ranking, known.learning.check) == ("learned", None)
    found = find(known)
    assert (found.summary.ranking, found.found) == ("learned", None)
    page = render(found)
    assert "by what was learned from the labels" in words_of(page)
    assert "Anomalies found among" not in page


def test_the_cuts_of_a_learned_ranking_equal_labels_at(learned):
    findings = find(learned.fit_)
    for step in findings.steps[20::40]:
        assert step.n_flagged == learned.labelled_rows_.labels_at(step.gamma).sum()
    assert findings.mean.n_flagged == learned.labels_.sum()
    unknown = learned.known_rows_.unknown(len(learned.labels_))
    above = learned.decision_scores_[unknown] > findings.mean.threshold
    np.testing.assert_array_equal(above, learned.labels_[unknown])
    assert findings.mean.thresholds == tuple(learned.thresholds_.values())
    probability = learned.to_frame()["probability"]
    for cost in findings.costs:
        assert cost.cut.n_flagged == (probability > 1 / (1 + cost.miss_cost)).sum()


def test_the_agreement_is_that_with_the_consensus_if_the_ranking_is_learned(learned, findings):
    from scipy.stats import spearmanr

    agreement = find(learned.fit_).agreement
    assert agreement == findings.agreement
    consensus = learned.fit_.score_space.mean(axis=1)
    for j, name in enumerate(learned.fit_.detector_names):
        expected = spearmanr(learned.scores_[:, j], consensus).statistic
        other = spearmanr(learned.scores_[:, j], learned.decision_scores_).statistic
        assert agreement[name] == pytest.approx(expected)
        assert abs(expected - other) > 0.01


def test_rows_to_label_have_their_number_in_the_file(estimator, fitted, data):
    rows = estimator.suggest(30, spread=False, random_state=estimator.random_state)
    found = find(knowing(fitted, places=np.arange(100, 100 + len(data.X)))).to_label
    assert [row.number for row in found] == [row + 101 for row in rows]


def test_the_key_of_the_answers_belongs_to_the_data_and_the_rows(named):
    def key(fit):
        return json.loads(Parsed(render(find(fit))).scripts[0])["answers_key"]

    known, in_memory = named.update([0], [0]), knowing(named, digest="")
    others = [
        named,
        known,
        in_memory,
        knowing(known, digest=""),
        knowing(in_memory, name="other.csv"),
        knowing(named, digest="cd" * 32),
        knowing(named, ids=named.table.row_names[::-1]),
        knowing(named, places=np.arange(1, 301)),
    ]
    keys = [key(fit) for fit in others]
    assert len(set(keys)) == len(keys)
    # The notes and the name of a file with a digest do not matter.
    assert key(knowing(named, name="renamed.csv", notes=())) == keys[0]
    assert re.fullmatch("gammagmm [0-9a-f]{64}", keys[0])


def test_control_characters_and_marks_of_direction_are_written_out(fitted, data, findings):
    """In every text that is not ours, without a call at each of them."""
    name = "a\x1b[2J\n\u202e\u2066\x85\ud800\"'&b"
    shown = r"a\x1b[2J\n\u202e\u2066\x85\ud800" + "\"'&b"
    X = data.X.copy()
    top = int(np.argmax(fitted.decision_scores))
    X[top, 0] = 9_999.0
    found = find(
        knowing(
            fitted,
            (name, *NAMES[1:]),
            values=X,
            name=name,
            digest=name,
            ids=(name,) * 300,
            notes=(Note.of("tables.keys", name, words=name),),
        )
    )
    detectors = tuple(replace(d, name=name, reason=name) for d in found.summary.detectors)
    summary = replace(found.summary, detectors=detectors, thresholds={name: 1.0})
    page = render(replace(found, summary=summary))
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800]", page)
    parsed = Parsed(page)
    assert set(json.loads(parsed.scripts[0])["ranked"]) == {shown}
    for place in (
        f"Anomalies in {shown}",
        f"{shown} 9,999",
        f"({shown})",
        f"{shown}: {shown}",
    ):
        assert any(place in words for words in parsed.words), place
    assert {tag for tag, _ in parsed.tags} == {tag for tag, _ in Parsed(render(findings)).tags}


@pytest.mark.parametrize(("start", "is_whole"), [("R-20", True), ("a long name - ", False)])
def test_short_names_of_rows_stay_on_one_line(estimator, start, is_whole):
    ids = tuple(f"{start}{i:05d}" for i in range(300))
    page = render(find(knowing(estimator.fit_, name="rows.csv", ids=ids)))
    cells = re.findall(rf"<td( class=whole)?>{start}\d+</td>", page)
    assert len(cells) >= 50
    assert {bool(cell) for cell in cells} == {is_whole}
