"""The report in a browser."""

from __future__ import annotations

import base64
import copy
import csv
import hashlib
import json
import re
import shutil
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from selenium.common.exceptions import NoAlertPresentException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.common.print_page_options import PrintOptions
from selenium.webdriver.support.ui import Select, WebDriverWait

from gammagmm import GammaGMM
from gammagmm.cli.sheet import read_sheet
from gammagmm.datasets import load_demo, make_contaminated
from gammagmm.posterior.separate_rows import SeparateRows
from gammagmm.report.findings import MISS_COSTS, N_STEPS
from gammagmm.report.page import write_report
from gammagmm.table.table import Groups
from tests.support.browser import FORMULA_NAME, IMAGE_NAME, SCRIPT_NAME, emulate
from tests.support.command_line import QUICK, gammagmm_here, write_csv
from tests.support.tables import knowing, table_of

pytestmark = pytest.mark.browser

AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"
ROWS = "most_anomalous_rows"
MAX_LISTED = 40  # rows that the page names before "and 7 more"
ANSWERS = {0: "anomaly", 2: "normal", 29: "anomaly"}  # by position in the table
STORED = "Your answers are stored in this browser"
NOT_STORED = "Your answers are not stored"


def text_of(page, name):
    return page.find_element(By.ID, name).text


def cells(page, table):
    """Texts of a table, one list for each row, the head first; pictures as the words they have."""
    code = "return [...document.getElementById(arguments[0]).rows].map("
    code += "row => [...row.cells].map(cell => cell.dataset.text ?? cell.textContent.trim()))"
    return page.execute_script(code, table)


def column(page, table, index):
    return [row[index] for row in cells(page, table)[1:]]


def flagged(page):
    shown = re.fullmatch(r"([\d,]+) of ([\d,]+)", text_of(page, "flagged"))
    return tuple(int(number.replace(",", "")) for number in shown.groups())


def changed(page):
    """How many rows the page says change, in which direction, and the names it lists."""
    words = text_of(page, "changed")
    if words == "These are the same rows as at the estimated share.":
        return 0, "", []
    pattern = (
        r"([\d,]+) (more|fewer) rows? than at the estimated share: (.*?)(?: and (\d+) more)?\."
    )
    count, way, names, rest = re.fullmatch(pattern, words).groups()
    listed = names.split(", ")
    assert int(count) == len(listed) + int(rest or 0)
    return int(count), way, listed


def assert_shows(page, reported, gamma):
    """The panel shows what Python answers for the share `gamma`."""
    estimator = reported.estimator
    labels = estimator.labelled_rows_.labels_at(gamma)
    assert flagged(page) == (labels.sum(), len(labels))
    folded = [page.find_element(By.ID, f"t{i}") for i in range(len(estimator.fit_.detector_names))]
    own = [cell.get_attribute("textContent") for cell in folded]
    shown = [float(text) for text in (text_of(page, "threshold"), *own)]
    scores = np.column_stack([estimator.decision_scores_, estimator.scores_])
    # Six digits are shown: half a unit of the sixth, and the rounding of the tenth before.
    expected = np.percentile(scores, 100.0 * (1.0 - gamma), axis=0)
    np.testing.assert_allclose(shown, expected, rtol=5.001e-6)
    assert_lists_changes(page, reported, labels)


def assert_lists_changes(page, reported, labels):
    differ = labels != reported.estimator.labels_
    count, way, listed = changed(page)
    assert count == differ.sum()
    assert way == ("" if count == 0 else "more" if labels[differ].all() else "fewer")
    order = np.argsort(-reported.estimator.decision_scores_, kind="stable")
    assert listed == [reported.ids[i] for i in order if differ[i]][:MAX_LISTED]


def move_slider(page, value):
    code = "const slider = document.getElementById('gamma'); slider.value = arguments[0];"
    page.execute_script(code + "slider.dispatchEvent(new Event('input'))", value)


def test_the_control_shows_the_numbers_of_labels_at_by_keyboard(page, reported):
    slider = page.find_element(By.ID, "gamma")
    start = int(slider.get_attribute("value"))
    assert start == round(1000 * reported.estimator.posterior_.mean)
    moves = {Keys.ARROW_RIGHT: 1, Keys.ARROW_UP: 2, Keys.ARROW_LEFT: 1, Keys.END: N_STEPS}
    for key, place in moves.items():
        slider.send_keys(key)
        step = int(slider.get_attribute("value"))
        assert step == (place if key == Keys.END else start + place)
        assert text_of(page, "chosen") == f"{step / 10:.1f}%"
        assert_shows(page, reported, step / 1000)


@pytest.mark.parametrize("step", [1, 2, 5, 9, 14, 20, 26, 33, 41, 50, 65, 80, 100, 150, 220, 299])
def test_the_control_shows_the_numbers_of_labels_at(page, reported, step):
    move_slider(page, step)
    assert text_of(page, "chosen") == f"{step / 10:.1f}%"
    assert_shows(page, reported, step / 1000)
    words = page.find_element(By.ID, "gamma").get_attribute("aria-valuetext")
    n_flagged = reported.estimator.labelled_rows_.labels_at(step / 1000).sum()
    assert words == f"{step / 10:.1f}%, {n_flagged} rows flagged"


def test_the_control_moves_a_line_in_the_picture(page):
    pictures = page.find_elements(By.CSS_SELECTOR, "svg[data-end]")
    shown = [picture for picture in pictures if picture.is_displayed()]
    assert len(shown) == 2
    for picture in shown:
        ticks = picture.find_elements(By.CSS_SELECTOR, "text.tick:not(.rows)")
        for tick in ticks[:-1]:
            step = round(10 * float(tick.text.rstrip("%")))
            move_slider(page, step)
            line = picture.find_element(By.CSS_SELECTOR, "line.cursor")
            assert line.get_attribute("visibility") == "visible"
            own, other = (
                float(each.get_attribute(x).rstrip("%")) for each, x in ((line, "x1"), (tick, "x"))
            )
            assert own == pytest.approx(other, abs=0.01)
    # At the estimate there is a line already.
    page.find_element(By.XPATH, "//button[.='mean']").click()
    assert line.get_attribute("visibility") == "hidden"
    end = page.execute_script("return document.querySelector('figure svg').dataset.end = 0.09")
    move_slider(page, round(1000 * end) + 1)
    first = page.find_element(By.CSS_SELECTOR, "figure svg line.cursor")
    assert first.get_attribute("visibility") == "hidden"


def test_the_buttons_show_the_mean_and_the_ends_of_the_interval(page, reported):
    posterior = reported.estimator.posterior_
    shares = (*posterior.interval(), posterior.mean)
    names = ("lower end", "upper end", "mean")
    for name, share in zip(names, shares, strict=True):
        page.find_element(By.XPATH, f"//button[.='{name}']").click()
        assert_shows(page, reported, share)


def test_the_costs_show_the_rows_whose_probability_suffices(page, reported):
    estimator = reported.estimator
    probability = estimator.fit_.probability
    select = Select(page.find_element(By.ID, "costs"))
    counts = []
    for cost in MISS_COSTS:
        plural = "" if cost == 1.0 else "s"
        select.select_by_visible_text(f"a miss costs as much as {cost:g} false alarm{plural}")
        labels = (probability > 1.0 / (1.0 + cost)).astype(int)
        counts.append(labels.sum())
        assert flagged(page) == (counts[-1], len(labels))
        assert_lists_changes(page, reported, labels)
    assert len(set(counts)) > 3


def test_a_cost_after_the_upper_end_moves_the_slider_and_shows_its_thresholds(page, reported):
    estimator = reported.estimator
    page.find_element(By.XPATH, "//button[.='upper end']").click()
    slider = page.find_element(By.ID, "gamma")
    before = int(slider.get_attribute("value"))
    select = Select(page.find_element(By.ID, "costs"))
    select.select_by_visible_text("a miss costs as much as 0.2 false alarms")
    n_flagged = int((estimator.fit_.probability > 1.0 / 1.2).sum())
    share = n_flagged / len(estimator.labels_)
    assert int(slider.get_attribute("value")) == round(1000 * share) < before
    assert text_of(page, "chosen") == f"{share:.1%}"
    words = slider.get_attribute("aria-valuetext")
    assert words == f"{share:.1%}, {n_flagged} rows flagged"
    # The thresholds of `labels_at` at this share flag these rows and no other.
    assert_shows(page, reported, share)
    assert "–" not in page.find_element(By.CSS_SELECTOR, ".panel").text
    # Another choice ends the choice by costs.
    for choose in (lambda: move_slider(page, 20), lambda: slider.send_keys(Keys.ARROW_RIGHT)):
        select.select_by_index(3)
        choose()
        assert select.first_selected_option.text == "choose"


def open_parts(page):
    """Unfold every part of the page."""
    code = "document.querySelectorAll('details').forEach(part => { part.open = true })"
    page.execute_script(code)


def use_every_control(page):
    for step in (0, 100, N_STEPS):
        move_slider(page, step)
    Select(page.find_element(By.ID, "costs")).select_by_index(3)
    for button in page.find_elements(By.TAG_NAME, "button"):
        open_parts(page)
        button.click()


def requested(page):
    """Addresses that the page asked for since it was opened."""
    events = [json.loads(entry["message"])["message"] for entry in page.get_log("performance")]
    asked = [event for event in events if event["method"] == "Network.requestWillBeSent"]
    return [event["params"]["request"]["url"] for event in asked]


def test_no_request_leaves_the_page_and_nothing_fails(page, reported, tmp_path):
    allow_downloads(page, tmp_path)
    use_every_control(page)
    wait_for(page, tmp_path / f"{ROWS}.csv")
    addresses = [url for url in requested(page) if not url.startswith(("blob:", "data:"))]
    assert addresses == [reported.path.as_uri()]
    assert page.get_log("browser") == []


def test_the_policy_refuses_what_it_does_not_name(page):
    code = "const image = new Image(); image.src = 'https://example.org/x.png';"
    code += "const script = document.createElement('script'); script.text = 'window.ran = 1';"
    page.execute_script(code + "document.body.append(image, script)")
    assert page.execute_script("return window.ran") is None
    refused = []

    def both(page):
        refused.extend(entry["message"] for entry in page.get_log("browser"))
        return len(refused) == 2

    WebDriverWait(page, 10).until(both)
    assert all("Content Security Policy" in message for message in refused)


def test_hostile_names_stay_text(page):
    move_slider(page, N_STEPS)
    with pytest.raises(NoAlertPresentException):
        _ = page.switch_to.alert.text
    assert page.execute_script("return document.querySelectorAll('img, i').length") == 0
    assert IMAGE_NAME in changed(page)[2]
    rows = cells(page, ROWS)
    assert rows[1][0] == FORMULA_NAME
    assert rows[1][2].startswith(f"{SCRIPT_NAME} 116.4 is far above the usual ")
    assert IMAGE_NAME in [row[0] for row in rows]
    assert page.title == "Anomalies in <i>demo</i> & more"


def press(page, table, head, key):
    """Press a head of a table; what it then says of the order."""
    path = f"//table[@id='{table}']//th[button[normalize-space()='{head}']]"
    cell = page.find_element(By.XPATH, path)
    button = cell.find_element(By.TAG_NAME, "button")
    button.click() if key == "click" else button.send_keys(key)
    return cell.get_attribute("aria-sort")


def as_number(text):
    return float(text.removeprefix("below ").rstrip("%").replace(",", ""))


@pytest.mark.parametrize("key", ["click", Keys.ENTER, Keys.SPACE])
@pytest.mark.parametrize(("head", "index"), [("score", -1), ("P(anomaly)", 1)])
def test_numbers_are_sorted_as_numbers(page, head, index, key):
    before = cells(page, ROWS)[1:]
    for way, falls in (("ascending", False), ("descending", True)):
        assert press(page, ROWS, head, key) == way
        numbers = [as_number(text) for text in column(page, ROWS, index)]
        assert numbers == sorted(numbers, reverse=falls)
    assert len(set(numbers)) > 10
    assert sorted(cells(page, ROWS)[1:]) == sorted(before)


def write_cells(page, table, index, texts):
    code = "const [table, index, texts] = arguments; texts.forEach((text, i) => { document"
    code += ".getElementById(table).tBodies[0].rows[i].cells[index].textContent = text; })"
    page.execute_script(code, table, index, texts)


def test_numbers_are_sorted_however_they_are_written(page):
    open_parts(page)
    write_cells(page, "detectors", 4, ["10.2%", "", "9.5%", "below 0.001%"])
    press(page, "detectors", "agreement", "click")
    assert column(page, "detectors", 4) == ["below 0.001%", "9.5%", "10.2%", ""]
    press(page, "detectors", "agreement", "click")
    assert column(page, "detectors", 4) == ["10.2%", "9.5%", "below 0.001%", ""]
    write_cells(page, "detectors", 2, ["10,000", "2,000", "300", "1,000,000"])
    press(page, "detectors", "rows fitted", "click")
    assert column(page, "detectors", 2) == ["300", "2,000", "10,000", "1,000,000"]


def test_ids_with_numbers_are_sorted_by_these(page):
    press(page, ROWS, "row", "click")
    ids = [name for name in column(page, ROWS, 0) if name.startswith("patient ")]
    assert ids == sorted(ids, key=lambda name: int(name.removeprefix("patient ")))


def test_words_are_sorted_by_the_alphabet_and_only_one_head_says_so(page):
    open_parts(page)
    press(page, ROWS, "P(anomaly)", "click")
    press(page, "detectors", "seconds", "click")
    assert press(page, "detectors", "detector", "click") == "ascending"
    assert column(page, "detectors", 0) == ["HBOS", "IForest", "KNN", "LOF"]
    said = page.find_elements(By.CSS_SELECTOR, "#detectors th[aria-sort]")
    assert [cell.text for cell in said] == ["detector"]


def allow_downloads(page, folder):
    where = {"behavior": "allow", "downloadPath": str(folder)}
    page.execute_cdp_cmd("Browser.setDownloadBehavior", where)


def wait_for(page, path):
    WebDriverWait(page, 20).until(lambda _: path.exists() and path.stat().st_size > 0)


def test_a_saved_table_is_the_one_shown_and_runs_nothing_in_a_spreadsheet(page, tmp_path):
    allow_downloads(page, tmp_path)
    press(page, ROWS, "P(anomaly)", "click")
    page.find_element(By.CSS_SELECTOR, f"button[data-save={ROWS}]").click()
    wait_for(page, tmp_path / f"{ROWS}.csv")
    with (tmp_path / f"{ROWS}.csv").open(encoding="utf-8-sig", newline="") as file:
        saved = list(csv.reader(file))
    shown = cells(page, ROWS)
    assert len(shown) == 51
    row = next(row for row in shown if row[0] == FORMULA_NAME)
    row[0] = f"'{FORMULA_NAME}"
    assert saved == shown


def test_answers_are_saved_as_a_sheet_that_estimate_takes(page, reported, tmp_path):
    allow_downloads(page, tmp_path)
    rows = reported.estimator.suggest(30, spread=False, random_state=0)
    assert column(page, "to_label", 0) == [str(row + 1) for row in rows]
    fields = page.find_elements(By.CSS_SELECTOR, "#to_label select")
    Select(fields[0]).select_by_visible_text("anomaly")
    Select(fields[2]).select_by_visible_text("normal")
    page.find_element(By.CSS_SELECTOR, "button[data-save=to_label]").click()
    wait_for(page, tmp_path / "to_label.csv")
    sheet = read_sheet(tmp_path / "to_label.csv", table_of(load_demo().X))
    assert sheet.rows == tuple(rows.tolist())
    assert sheet.answered(picked=False) == ([rows[0], rows[2]], [1, 0])
    assert sheet.picked == frozenset()


def give_answers(page, answers=ANSWERS):
    more = page.find_element(By.CSS_SELECTOR, "button[data-shorten=to_label]")
    if more.text == "Show all 30 rows":
        more.click()
    fields = page.find_elements(By.CSS_SELECTOR, "#to_label select")
    for place, word in answers.items():
        Select(fields[place]).select_by_visible_text(word)


def assert_answers(page, answers, kept=STORED):
    """The table shows these answers, and the words above it their number."""
    code = "return [...document.querySelectorAll('#to_label select')].map("
    words = page.execute_script(code + "field => field.selectedOptions[0].text)")
    assert {place: word for place, word in enumerate(words) if word} == answers
    verb = "is" if len(answers) == 1 else "are"
    assert text_of(page, "labelled") == f"{len(answers)} of 30 rows {verb} labelled."
    assert text_of(page, "kept").startswith(kept)


def test_answers_survive_a_reload_and_a_move_of_the_file(page, reported, tmp_path):
    assert_answers(page, {})
    give_answers(page, {1: "normal"})
    assert_answers(page, {1: "normal"})
    give_answers(page, ANSWERS | {1: ""})
    for _ in range(2):
        page.refresh()
        assert_answers(page, ANSWERS)
    page.get(Path(shutil.copy(reported.path, tmp_path)).as_uri())
    assert_answers(page, ANSWERS)


def test_answers_are_not_shown_in_a_report_of_other_data(page, reported, tmp_path):
    give_answers(page)
    names = {"name": "<i>demo</i> & more", "ids": tuple(reported.ids)}
    fit = knowing(reported.estimator.fit_, **names)
    others = {
        "digest": knowing(fit, digest="a1"),
        "rows": knowing(fit, places=np.arange(1, 1 + fit.n_rows)),
    }
    for name, other in others.items():
        path = tmp_path / f"{name}.html"
        write_report(other, path)
        page.get(path.as_uri())
        assert_answers(page, {})
    give_answers(page, {3: "normal"})
    page.get(reported.path.as_uri())
    assert_answers(page, ANSWERS)


def test_cleared_answers_can_be_brought_back_until_the_next_answer(page):
    button = page.find_element(By.ID, "clear")
    button.click()
    assert button.text == "Clear answers"
    give_answers(page)
    button.click()
    assert_answers(page, {})
    assert button.text == "Undo clear"
    button.click()
    assert_answers(page, ANSWERS)
    page.refresh()
    assert_answers(page, ANSWERS)
    page.find_element(By.ID, "clear").send_keys(Keys.ENTER)
    give_answers(page, {4: "normal"})
    assert text_of(page, "clear") == "Clear answers"
    page.find_element(By.ID, "clear").click()
    page.refresh()
    assert_answers(page, {})
    assert text_of(page, "clear") == "Clear answers"
    assert page.execute_script("return localStorage.length") == 0


def test_two_tabs_with_the_same_report_show_the_same_answers(page, reported):
    first = page.current_window_handle
    page.switch_to.new_window("tab")
    try:
        page.get(reported.path.as_uri())
        give_answers(page)
    finally:
        page.close()
        page.switch_to.window(first)
    WebDriverWait(page, 10).until(lambda _: text_of(page, "labelled").startswith("3 "))
    assert_answers(page, ANSWERS)


def test_estimate_takes_answers_that_were_restored(page, tmp_path):
    X = load_demo().X
    ids = [f"patient {i}" for i in range(len(X))]
    columns = {"id": ids} | {f"x{j}": X[:, j] for j in range(X.shape[1])}
    table = write_csv(tmp_path / "rows.csv", columns)
    command = ("estimate", table, "--id", "id", *QUICK)
    done = gammagmm_here(*command, "--report", tmp_path / "report.html")
    assert done.returncode == 0, done.stderr
    page.get((tmp_path / "report.html").as_uri())
    give_answers(page)
    page.refresh()
    allow_downloads(page, tmp_path)
    page.find_element(By.CSS_SELECTOR, "button[data-save=to_label]").click()
    wait_for(page, tmp_path / "to_label.csv")
    done = gammagmm_here(*command, "--labels", tmp_path / "to_label.csv", "--json")
    assert done.returncode == 0, done.stderr
    inspected = json.loads(done.stdout)["labels"]
    assert (inspected["n_rows"], inspected["n_anomalies"]) == (3, 2)


@contextmanager
def script_before(page, code):
    """Run this code in every page before the scripts of the page."""
    added = page.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": code})
    try:
        yield
    finally:
        page.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)


BLOCKED = "Object.defineProperty(window, 'localStorage', {get() {throw new DOMException('no')}})"
MISSING = "Object.defineProperty(window, 'localStorage', {value: null})"
FULL = "Storage.prototype.setItem = () => {throw new DOMException('', 'QuotaExceededError')}"


@pytest.mark.parametrize("code", [BLOCKED, MISSING, FULL], ids=["blocked", "missing", "full"])
def test_without_storage_the_page_works_and_says_that_answers_are_not_stored(page, code, tmp_path):
    with script_before(page, code):
        page.refresh()
        assert_answers(page, {}, kept=STORED if code == FULL else NOT_STORED)
        give_answers(page)
        assert_answers(page, ANSWERS, kept=NOT_STORED)
        allow_downloads(page, tmp_path)
        page.find_element(By.CSS_SELECTOR, "button[data-save=to_label]").click()
        wait_for(page, tmp_path / "to_label.csv")
        page.find_element(By.ID, "clear").click()
        assert_answers(page, {}, kept=STORED if code == FULL else NOT_STORED)
    sheet = read_sheet(tmp_path / "to_label.csv", table_of(load_demo().X))
    assert sheet.answered(picked=False)[1] == [1, 0, 1]
    assert page.get_log("browser") == []


def assert_no_fault(page):
    page.execute_script(AXE.read_text(encoding="utf-8"))
    code = "const done = arguments[0]; axe.run().then(done, fault => done(String(fault)))"
    found = page.execute_async_script(code)
    faults = [
        (fault["id"], fault["impact"], [node["html"] for node in fault["nodes"]])
        for fault in found["violations"]
    ]
    assert faults == []
    assert "color-contrast" in [rule["id"] for rule in found["passes"]]


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_fault(page, width, scheme):
    emulate(page, width, scheme)
    give_answers(page)
    assert_no_fault(page)
    open_parts(page)
    assert_no_fault(page)


def test_a_screen_reader_is_told_the_count_alone_at_each_step(page):
    move_slider(page, 100)
    live = page.find_elements(By.CSS_SELECTOR, "output, [aria-live], [role=status]")
    assert [element.text.partition(".")[0] for element in live] == [
        "0 of 30 rows are labelled",
        text_of(page, "flagged"),
    ]


def assert_nothing_scrolls_sideways(page):
    """Neither the page nor a part of it."""
    code = "return [document.documentElement, ...document.querySelectorAll('body *:not(svg *)')]"
    code += ".filter(part => part.scrollWidth > part.clientWidth && part.clientWidth > 1"
    code += " && getComputedStyle(part).display !== 'inline')"
    code += ".map(part => [part.scrollWidth, part.clientWidth, part.outerHTML.slice(0, 99)])"
    assert page.execute_script(code) == []


def bottom_of(page, place):
    """The lower edge of an element, in pixels from the top of the page."""
    box = page.find_element(By.CSS_SELECTOR, place).rect
    return box["y"] + box["height"]


CROSSED = """
const crossed = [];
for (const svg of document.querySelectorAll("svg[role=img]")) {
  if (!svg.clientWidth) continue;
  const words = [...svg.querySelectorAll("text")]
    .map((text) => [text.textContent, text.getBoundingClientRect()]);
  for (const line of svg.querySelectorAll("line.cut, path.density, path.found")) {
    const matrix = line.getScreenCTM(), length = line.getTotalLength();
    for (let i = 0; i <= 400; i += 1) {
      const { x, y } = line.getPointAtLength(i * length / 400).matrixTransform(matrix);
      for (const [text, box] of words) {
        const isAcross = x > box.left + 1 && x < box.right - 1;
        const isInside = isAcross && y > box.top + 3 && y < box.bottom - 3;
        if (isInside && !crossed.includes(text)) crossed.push(text);
      }
    }
  }
}
return crossed;
"""


def assert_words_apart(page):
    """No words of a picture overlap, leave it, or are crossed by a curve or the line of the cut."""
    assert page.execute_script(CROSSED) == []
    code = "return [...document.querySelectorAll('svg[role=img]')].filter(svg => svg.clientWidth)"
    code += ".map(svg => [svg.clientWidth, svg.clientHeight, [...svg.querySelectorAll('text')]"
    code += ".map(text => { const box = text.getBBox();"
    code += "return [box.x, box.y, box.width, box.height] })])"
    pictures = page.execute_script(code)
    for width, height, found in pictures:
        boxes = np.array(found)
        start, stop = boxes[:, :2], boxes[:, :2] + boxes[:, 2:]
        apart = (start[:, None] >= stop[None]) | (start[None] >= stop[:, None])
        assert (apart.any(axis=-1) | np.eye(len(boxes), dtype=bool)).all()
        assert (start >= -1.0).all()
        assert (stop <= [width + 1.0, height + 1.0]).all()
    return len(pictures)


def test_the_words_in_the_picture_do_not_overlap(page):
    for width in (1280, 360):
        emulate(page, width)
        assert assert_words_apart(page) == 2


@pytest.fixture(scope="session")
def learned(reported, tmp_path_factory):
    """The report of the same rows after labels, which change the ranking."""
    data, model = load_demo(), copy.deepcopy(reported.estimator)
    rows = model.suggest(90, random_state=1)
    model.update(rows, data.y[rows])
    assert model.fit_.ranking == "learned"
    path = tmp_path_factory.mktemp("learned") / "report.html"
    write_report(knowing(model.fit_, ids=tuple(reported.ids)), path)
    return replace(reported, estimator=model, path=path)


@pytest.fixture(scope="session")
def grouped(learned, tmp_path_factory):
    """The report after labels, with groups: a hostile name, a long name, and groups of one row."""
    n_rows = len(learned.ids)
    groups = np.array(["north", "south", "w" * 50, IMAGE_NAME], dtype=object)
    groups = groups[np.arange(n_rows) % 7 % 4]
    groups[-40:] = [f"branch {i}" for i in range(40)]
    path = tmp_path_factory.mktemp("grouped") / "report.html"
    known = {"name": "<i>demo</i> & more", "groups": Groups(groups, SCRIPT_NAME)}
    write_report(knowing(learned.estimator.fit_, **known), path)
    return replace(learned, path=path)


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_report_of_groups_has_no_fault(page, grouped, width, scheme):
    page.get(grouped.path.as_uri())
    emulate(page, width, scheme)
    section = page.find_element(By.ID, "groups")
    assert f"Groups by {SCRIPT_NAME}" in section.text
    assert IMAGE_NAME in section.text
    assert "14 smaller groups with 14 rows are not shown." in section.text
    assert_no_fault(page)
    assert_nothing_scrolls_sideways(page)
    point = section.find_element(By.CSS_SELECTOR, "circle.share")
    colour = {"light": "rgb(0, 114, 178)", "dark": "rgb(86, 180, 233)"}[scheme]
    assert point.value_of_css_property("fill") == colour
    assert page.get_log("browser") == []


@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_report_of_a_learned_ranking_has_no_fault(page, learned, width, scheme):
    page.get(learned.path.as_uri())
    emulate(page, width, scheme)
    open_parts(page)
    assert_no_fault(page)
    assert assert_words_apart(page) == 5
    # The colours of the page, not those of the file, which are for white paper.
    colours = []
    for name in ("accent", "alarm"):
        curve = page.find_element(By.CSS_SELECTOR, f"svg.found path.{name}-line")
        assert curve.is_displayed()
        colours.append(curve.value_of_css_property("stroke"))
    left = page.find_element(By.CSS_SELECTOR, "svg.left rect.alarm")
    assert left.value_of_css_property("fill") == colours[1]
    expected = {
        "light": ["rgb(0, 114, 178)", "rgb(179, 71, 0)"],
        "dark": ["rgb(86, 180, 233)", "rgb(240, 153, 90)"],
    }
    assert colours == expected[scheme]
    assert page.get_log("browser") == []


def test_the_control_shows_the_numbers_of_a_learned_ranking(page, learned):
    page.get(learned.path.as_uri())
    model = learned.estimator
    panel = page.find_element(By.CSS_SELECTOR, ".panel").text
    assert f"Their score is above {text_of(page, 'threshold')}." in panel
    for step in (40, 80, 150):
        move_slider(page, step)
        labels = model.labelled_rows_.labels_at(step / 1000)
        assert flagged(page) == (labels.sum(), len(labels))
        differ = labels != model.labels_
        order = np.argsort(-model.decision_scores_, kind="stable")
        count, _, listed = changed(page)
        assert (count, listed) == (
            differ.sum(),
            [learned.ids[i] for i in order if differ[i]][:MAX_LISTED],
        )
    heads, *rows = cells(page, ROWS)
    assert heads[-1] == "score"
    scores = dict(zip(learned.ids, model.decision_scores_, strict=True))
    assert [row[-1] for row in rows] == [f"{scores[row[0]]:.2f}" for row in rows]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390, 360])
def test_nothing_scrolls_sideways(page, width, scheme):
    emulate(page, width, scheme)
    move_slider(page, N_STEPS)
    assert_nothing_scrolls_sideways(page)
    open_parts(page)
    assert_nothing_scrolls_sideways(page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_answer_next_step_and_rows_are_visible_without_scrolling(page, reported, scheme):
    emulate(page, scheme=scheme)
    assert 0 < bottom_of(page, "#answer") <= 600
    assert 0 < bottom_of(page, f"#{ROWS} tbody tr:nth-child(3)") <= 800
    answer = page.find_element(By.ID, "answer").text
    fit = reported.estimator.fit_
    following = fit.told["next"]
    shown = following["what"].removeprefix("Next: l"), following["gain"]
    assert all(each in answer for each in shown)
    assert f"{fit.n_flagged} of {fit.n_rows} rows are flagged" in answer
    first = np.argsort(-fit.decision_scores, kind="stable")[:3]
    assert all(reported.ids[row] in answer for row in first)


def test_a_phone_shows_the_answers_and_the_next_step_above_the_picture(page):
    emulate(page, width=390)
    places = [bottom_of(page, place) for place in ("h1", ".facts dt", "#command", "#answer figure")]
    assert places == sorted(places)
    assert places[-2] <= 844


def test_the_next_step_is_copied(page, reported):
    page.execute_cdp_cmd("Browser.grantPermissions", {"permissions": ["clipboardReadWrite"]})
    button = page.find_element(By.CSS_SELECTOR, "button[data-copy]")
    button.send_keys(Keys.ENTER)
    WebDriverWait(page, 10).until(lambda _: button.text in {"Copied", "Selected"})
    chosen = page.execute_script("return getSelection().toString()")
    assert chosen == text_of(page, "command") == "detector.label()"


def test_each_unusual_value_has_a_picture_of_its_column(page, reported):
    row = page.find_element(By.CSS_SELECTOR, f"#{ROWS} tbody tr")
    fit = reported.estimator.fit_
    (reasons,) = fit.usual_values().reasons(fit.rows[[np.argmax(fit.decision_scores)]])
    pictures = row.find_elements(By.CSS_SELECTOR, "svg.strip")
    assert len(pictures) == len(reasons) > 0
    for picture in pictures:
        box, mark = picture.rect, picture.find_element(By.TAG_NAME, "circle").rect
        assert box["x"] <= mark["x"]
        assert mark["x"] + mark["width"] <= box["x"] + box["width"] + 1.0
        name = picture.find_element(By.TAG_NAME, "use").get_attribute("href")
        shape = page.execute_script(f"return document.querySelector('{name} path').getBBox().width")
        assert shape > 50.0


def test_the_first_ten_rows_are_shown_until_all_are_asked_for(page):
    def n_shown():
        rows = page.find_elements(By.CSS_SELECTOR, f"#{ROWS} tbody tr")
        return sum(row.is_displayed() for row in rows)

    button = page.find_element(By.CSS_SELECTOR, f"button[data-shorten={ROWS}]")
    for text, expanded, n in (
        ("Show all 50 rows", "false", 10),
        ("Show fewer rows", "true", 50),
        ("Show all 50 rows", "false", 10),
    ):
        assert (button.text, button.get_attribute("aria-expanded"), n_shown()) == (
            text,
            expanded,
            n,
        )
        button.send_keys(Keys.ENTER)


def test_the_technical_details_are_folded_and_open_by_keyboard(page):
    parts = page.find_elements(By.CSS_SELECTOR, "#technical details")
    assert len(parts) >= 8
    assert not any(part.get_attribute("open") for part in parts)
    parts[0].find_element(By.TAG_NAME, "summary").send_keys(Keys.ENTER)
    assert [bool(part.get_attribute("open")) for part in parts] == [True] + [False] * (
        len(parts) - 1
    )
    button = page.find_element(By.ID, "open_all")
    for open_, words in ((True, "Close all"), (False, "Open all")):
        button.send_keys(Keys.ENTER)
        assert {bool(part.get_attribute("open")) for part in parts} == {open_}
        assert button.text == words


SHEETS = {"A4": (21.0, 29.7), "Letter": (21.59, 27.94)}


def n_pages(page, size):
    """Number of pages on paper of this size, in centimetres."""
    options = PrintOptions()
    options.page_width, options.page_height = size
    printed = base64.b64decode(page.print_page(options))
    return len(re.findall(rb"/Type\s*/Page\b", printed))


@pytest.fixture(scope="session")
def larger(tmp_path_factory):
    """The report of 2,000 rows with names of usual length, by all detectors of the preset."""
    X = make_contaminated(2000, 8, 0.05, "clustered", random_state=2).X
    fit = GammaGMM(n_runs=2, random_state=0).fit(X).fit_
    path = tmp_path_factory.mktemp("larger") / "report.html"
    ids = tuple(f"TX-2026-{i:06d}" for i in range(len(X)))
    groups = np.array([f"branch {i}" for i in np.arange(len(X)) % 11 % 6])
    write_report(knowing(fit, name="transactions.csv", ids=ids).grouped(groups), path)
    return path


def test_a_larger_table_prints_on_three_pages_and_fits_the_screens(page, larger):
    page.get(larger.as_uri())
    assert max(n_pages(page, size) for size in SHEETS.values()) <= 3
    for width in (1280, 390):
        emulate(page, width)
        assert_nothing_scrolls_sideways(page)
    emulate(page)
    for place, height in (("#answer", 640), (f"#{ROWS} tbody tr:nth-child(2)", 800)):
        assert bottom_of(page, place) <= height


def test_names_of_sixty_letters_do_not_scroll_sideways(page, reported, tmp_path):
    estimator, path = reported.estimator, tmp_path / "report.html"
    ids = tuple(f"{i:W>60}" for i in range(len(estimator.labels_)))
    separate = SeparateRows(np.arange(40), 40, 0.1, 0.9, ("LOF",))
    evidence = replace(estimator.evidence_, separate_rows=separate)
    columns = tuple("M" * 60 + str(j) for j in range(30))
    fit = knowing(estimator.fit_, columns, name="W" * 200, ids=ids)
    write_report(replace(fit, evidence=evidence), path)
    page.get(path.as_uri())
    open_parts(page)
    for width in (1280, 390):
        emulate(page, width)
        assert_nothing_scrolls_sideways(page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_it_prints_on_three_pages_with_the_technical_part_folded(page, width, scheme):
    emulate(page, width, scheme)
    assert [n_pages(page, size) <= 3 for size in SHEETS.values()] == [True, True]
    # The count counts: unfolded, it takes more.
    open_parts(page)
    assert n_pages(page, SHEETS["A4"]) > 3


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_print_leaves_out_the_control_and_is_dark_on_white(page, reported, scheme):
    controls = [page.find_element(By.CSS_SELECTOR, ".panel")]
    controls += [page.find_element(By.ID, name) for name in ("clear", "kept", "labelled")]
    assert all(control.is_displayed() for control in controls)
    emulate(page, media="print", scheme=scheme)
    assert not any(control.is_displayed() for control in controls)
    words = page.find_element(By.CSS_SELECTOR, "#answer dd")
    assert words.is_displayed()
    assert f"{reported.estimator.fit_.n_flagged} of" in words.text
    assert words.value_of_css_property("color") == "rgba(27, 31, 36, 1)"


def test_without_scripts_everything_but_the_control_is_there(page, reported):
    page.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    page.refresh()
    estimator = reported.estimator
    mean = f"{estimator.posterior_.mean:.1%}"
    assert "not known" in page.find_element(By.TAG_NAME, "h1").text
    told = page.find_element(By.TAG_NAME, "body").text
    assert f"{estimator.labels_.sum()} of {len(estimator.labels_)} rows are flagged" in told
    assert mean in told
    assert page.find_element(By.CSS_SELECTOR, "path.density").is_displayed()
    rows = page.find_elements(By.CSS_SELECTOR, f"#{ROWS} tbody tr")
    assert [row.is_displayed() for row in rows] == [True] * 50
    assert text_of(page, "chosen") == ""
    assert page.find_element(By.CSS_SELECTOR, "noscript p").is_displayed()


def test_the_file_is_small_and_its_only_code_is_the_one_the_policy_names(reported):
    text = reported.path.read_text(encoding="utf-8")
    assert len(text.encode("utf-8")) < 1_000_000
    scripts = re.findall(r"<script([^>]*)>(.*?)</script>", text, re.DOTALL)
    assert [attributes for attributes, _ in scripts] == [
        ' type="application/json" id="data"',
        "",
    ]
    assert len(re.findall("<script", text)) == 2
    digest = base64.b64encode(hashlib.sha256(scripts[1][1].encode("utf-8")).digest()).decode()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)[1]
    assert policy.endswith(f"script-src 'sha256-{digest}'")
    assert policy.startswith("default-src 'none';")
