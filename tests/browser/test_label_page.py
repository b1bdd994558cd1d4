"""The labelling page in a browser: keys, windows, kills, strangers and hostile names."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import signal
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pandas as pd
import psutil
import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from gammagmm import GammaGMM
from gammagmm.datasets import load_demo
from tests.browser.test_report import assert_no_fault, assert_nothing_scrolls_sideways
from tests.support.browser import IMAGE_NAME, SCRIPT_NAME, chromium, emulate
from tests.support.command_line import COMMAND, QUICK, gammagmm_here, write_csv

pytestmark = pytest.mark.browser

ARABIC = "\u0645\u0628\u0644\u063a"  # amount
TURNED = "total\u202eecirp"
SECONDS = 90


class Page:
    """The command and a browser that shows its page."""

    def __init__(self, driver, folder, *arguments):
        self.driver, self.folder, self.arguments = driver, folder, arguments
        self.sheet = folder / "to_label.csv"
        self.begin()

    def begin(self):
        """Start the command, and open its page."""
        words = ["label", *self.arguments, "--no-browser", "--quiet"]
        self.process = subprocess.Popen(
            [COMMAND, *map(str, words)],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        told = []
        for line in self.process.stderr:
            told.append(line)
            if "on this page" in line:
                self.address = line.split()[-1]
                break
        else:
            raise AssertionError("".join(told))
        self.open()

    def open(self):
        self.driver.get(self.address)
        self.until(lambda: self.card() is not None)

    def until(self, condition):
        WebDriverWait(self.driver, SECONDS).until(lambda _: condition())

    def find(self, place):
        return self.driver.find_element(By.CSS_SELECTOR, place)

    def card(self):
        """Number of the row that is shown; None if there is none."""
        code = "return document.querySelector('.card')?.dataset.row"
        return int(found) if (found := self.driver.execute_script(code)) else None

    def press(self, keys):
        for key in keys:
            ActionChains(self.driver).send_keys(key).perform()

    def settle(self):
        """Wait until the last answer is saved."""
        self.until(lambda: self.find(".state").text.startswith("Saved"))

    def saved(self):
        """Row and answer of each line of the sheet."""
        lines = list(csv.reader(self.sheet.read_text(encoding="utf-8").splitlines()))
        return {int(line[0]): line[-1] for line in lines[1:]}

    def kill(self):
        """End all processes of the command at once, without a chance to tidy up."""
        family = [self.process, *psutil.Process(self.process.pid).children(recursive=True)]
        for process in family:
            with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
        self.process.communicate()

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=60)


@pytest.fixture(scope="module")
def data():
    return load_demo()


@pytest.fixture
def folder(data, tmp_path):
    write_csv(tmp_path / "rows.csv", dict(zip(data.feature_names, data.X.T.tolist(), strict=True)))
    return tmp_path


@pytest.fixture
def begin(driver):
    pages = []

    def begin(folder, *arguments):
        emulate(driver)
        pages.append(Page(driver, folder, *arguments))
        return pages[-1]

    yield begin
    for page in pages:
        page.close()
    driver.get("about:blank")


def keys_of(page, y, n):
    """Answer `n` rows with their true labels, one after the other; the rows and answers."""
    given = {}
    for k in range(n):
        row = page.card()
        given[row] = str(y[row - 1])
        page.press("y" if y[row - 1] else "n")
        ends = (row,) if k == n - 1 else (row, None)
        page.until(lambda ends=ends: page.card() not in ends)
    page.settle()
    return given


def test_thirty_answers_by_keyboard_give_the_posterior_of_python_and_terminal(begin, folder, data):
    page = begin(folder, "rows.csv", *QUICK)
    given = keys_of(page, data.y, 30)
    assert len(given) == 30
    assert page.saved() == given
    assert "30 rows have an answer." in page.find(".card").text
    finish = page.driver.find_element(By.XPATH, "//button[.='Finish']")
    finish.click()
    out, _ = page.process.communicate(timeout=60)
    assert page.process.returncode == 0
    assert "This estimate uses 30 labelled rows" in out

    def posterior(sheet):
        told = gammagmm_here(
            "estimate", "rows.csv", *QUICK, "--labels", sheet, "--json", cwd=folder
        )
        assert told.returncode == 0, told.stderr
        return json.loads(told.stdout)["posterior"]

    keys = "".join("y\n" if label == "1" else "n\n" for label in given.values())
    asked = ("--terminal", "--out", "terminal.csv")
    done = gammagmm_here("label", "rows.csv", *QUICK, *asked, cwd=folder, stdin=keys + "q\n")
    assert done.returncode == 0, done.stderr
    own = GammaGMM(["KNN", "LOF"], n_runs=2, random_state=0, n_jobs=1).fit(data.X)
    rows = np.array(list(given)) - 1
    expected = own.update(rows, data.y[rows])
    assert posterior("to_label.csv") == posterior("terminal.csv")
    assert posterior("to_label.csv")["mean"] == expected.mean
    assert posterior("to_label.csv")["interval_90"] == list(expected.interval())
    assert (folder / "terminal.csv").read_text() == page.sheet.read_text()


def test_undo_unsure_later_reload_and_a_closed_browser(begin, folder, tmp_path):
    page = begin(folder, "rows.csv", *QUICK)
    rows = []
    for key in ("y", "n", "u", " ", "n"):
        page.until(lambda: page.card() is not None)
        rows.append(page.card())
        page.press(key)
        page.until(lambda: page.card() != rows[-1])
    page.settle()
    assert [page.saved()[row] for row in rows] == ["1", "0", "unsure", "", "0"]
    page.press("z")
    page.until(lambda: page.card() == rows[4])
    page.settle()
    assert page.saved()[rows[4]] == ""
    page.press("y")
    page.settle()
    shown = page.card()
    page.driver.refresh()
    page.until(lambda: page.card() == shown)
    with chromium(tmp_path / "another") as other:
        other.get(page.address)
        WebDriverWait(other, SECONDS).until(
            lambda d: (
                d.find_element(By.CSS_SELECTOR, ".card").get_attribute("data-row") == str(shown)
            )
        )
    page.close()
    page.begin()
    assert page.find(".count").text == "3 of 30 answered for the share"
    assert [page.saved()[row] for row in rows] == ["1", "0", "unsure", "", "1"]
    assert page.card() == rows[3]  # the one that was to come later


def test_keys_of_the_browser_and_held_keys_answer_nothing(begin, folder):
    page = begin(folder, "rows.csv", *QUICK)
    row = page.card()
    ActionChains(page.driver).key_down(Keys.CONTROL).send_keys("n").key_up(Keys.CONTROL).perform()
    held = {"key": "y", "repeat": True, "bubbles": True}
    code = "document.body.dispatchEvent(new KeyboardEvent('keydown', arguments[0]))"
    page.driver.execute_script(code, held)
    assert page.card() == row
    # After a click the space bar does not press the same button again.
    page.find(".answer.yes").click()
    page.until(lambda: page.card() != row)
    second = page.card()
    page.press(" ")
    page.until(lambda: page.card() != second)
    page.settle()
    assert (page.saved()[row], page.saved()[second]) == ("1", "")


def test_two_tabs(begin, folder):
    page, driver = begin(folder, "rows.csv", *QUICK), None
    driver = page.driver
    first = driver.current_window_handle
    one = page.card()
    driver.switch_to.new_window("tab")
    second = driver.current_window_handle
    try:
        page.open()
        assert page.card() == one
        page.press("n")
        page.until(lambda: page.card() != one)
        two = page.card()
        driver.switch_to.window(first)
        page.until(lambda: page.card() == two)  # it has looked what is new
        page.press("y")
        page.until(lambda: page.card() != two)
        page.settle()
        assert (page.saved()[one], page.saved()[two]) == ("0", "1")
        driver.switch_to.window(second)
        page.until(lambda: page.card() not in (one, two))
        assert page.find(".count").text == "2 of 30 answered for the share"
    finally:
        driver.switch_to.window(second)
        driver.close()
        driver.switch_to.window(first)


def test_a_second_person_whose_answers_differ(begin, folder):
    page = begin(folder, "rows.csv", *QUICK)
    rows = []
    for _ in range(2):
        page.until(lambda: page.card() is not None)
        rows.append(page.card())
        page.press("n")
        page.until(lambda: page.card() != rows[-1])
    page.settle()
    page.close()
    page.arguments = (*page.arguments, "--person", "Ann")
    page.begin()
    assert page.card() not in rows
    page.driver.find_element(By.XPATH, "//button[.='Second answers']").click()
    page.until(lambda: page.card() == rows[0])
    page.settle()
    assert "first person" not in page.find("main").text  # what the other said is not shown before
    page.press("y")
    page.until(lambda: page.card() == rows[1])
    page.press("n")
    page.until(lambda: page.card() is None)
    page.settle()
    assert f"Row {rows[0]}: first person normal, Ann anomaly" in page.find(".disputed").text
    lines = list(csv.DictReader(page.sheet.read_text().splitlines()))
    told = {int(line["row"]): line for line in lines}
    for row, own in zip(rows, ("1", "0"), strict=True):
        line = told[row]
        answers = line["anomaly by first person"], line["anomaly by Ann"], line["anomaly"]
        assert answers == ("0", own, own)


def test_a_kill_between_two_answers_loses_nothing(begin, folder, data):
    page = begin(folder, "rows.csv", *QUICK)
    given = {}
    for _ in range(3):
        given |= keys_of(page, data.y, 2)
        page.kill()
        row = page.card()
        page.press("y")
        page.until(lambda: page.find(".alarm").is_displayed())
        assert "Your last answer is not saved." in page.find(".alarm").text
        assert page.card() == row
        assert {row: label for row, label in page.saved().items() if label} == given
        page.begin()
        assert page.card() == row


STRANGE = """<script>
const body = '{"kind": "undo"}', results = [], headers = { "Content-Type": "application/json" };
const ask = (options) => fetch("TARGETapi", { method: "POST", body, ...options })
  .then((answer) => results.push(answer.type), () => results.push("refused"));
const read = () => fetch("TARGET").then(() => results.push("read"), () => results.push("refused"));
const mode = "no-cors";
Promise.all([ask({ headers }), ask({ mode }), ask({ mode, headers }), read()])
  .then(() => { document.title = results.join(" "); });
</script><iframe src="TARGET"></iframe>"""


class Stranger(BaseHTTPRequestHandler):
    """Another page of this machine, which knows the whole address."""

    target = ""

    def do_GET(self):
        self.send_response(200)
        code = STRANGE.replace("TARGET", self.target)
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(code.encode())

    def log_message(self, *_):
        pass


def test_a_page_of_a_stranger_is_refused_and_a_wrong_token_too(begin, folder):
    page = begin(folder, "rows.csv", *QUICK)
    row = page.card()
    page.press("y")
    page.settle()
    Stranger.target = page.address
    server = ThreadingHTTPServer(("127.0.0.1", 0), Stranger)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        page.driver.get(f"http://127.0.0.1:{server.server_address[1]}/")
        page.until(lambda: page.driver.title)
        # What a page without rights may send at all has no answer that it can read.
        assert set(page.driver.title.split()) <= {"refused", "opaque"}
        assert page.driver.title.split().count("refused") >= 2
        page.driver.switch_to.frame(0)
        assert not page.driver.find_elements(By.CSS_SELECTOR, ".card")
        page.driver.switch_to.default_content()
    finally:
        server.shutdown()
        server.server_close()
    assert page.saved()[row] == "1"  # nothing was undone
    wrong = page.address[:-10] + "x" * 9 + "/"
    page.driver.get(wrong)
    assert page.find("body").text == "Forbidden"
    page.open()


def test_it_loads_nothing_from_outside(begin, folder):
    page = begin(folder, "rows.csv", *QUICK)
    for kind in ("performance", "browser"):
        page.driver.get_log(kind)
    page.driver.refresh()
    page.until(lambda: page.card() is not None)
    page.press("nn")
    page.settle()
    logged = [json.loads(each["message"])["message"] for each in page.driver.get_log("performance")]
    asked = {
        each["params"]["request"]["url"]
        for each in logged
        if each["method"] == "Network.requestWillBeSent"
    }
    assert asked
    assert all(url.startswith((page.address, "data:")) for url in asked)
    assert [each for each in page.driver.get_log("browser") if each["level"] == "SEVERE"] == []


@pytest.fixture
def hostile(tmp_path):
    """Rows with markup and text from right to left in names, ids and cells."""
    rng = np.random.default_rng(0)
    n = 150
    columns = {
        SCRIPT_NAME: rng.normal(size=n),
        ARABIC: rng.normal(size=n),
        TURNED: rng.gamma(2, 1, n),
    }
    columns |= {f"column with a long name, number {i}" * 3: rng.normal(size=n) for i in range(3)}
    columns["id"] = [f"{IMAGE_NAME} {i}" for i in range(n)]
    columns["kind"] = [("<b>bold</b>", "\u05d0\u05d1\u05d2", "plain")[i % 3] for i in range(n)]
    write_csv(tmp_path / "rows.csv", columns)
    return tmp_path


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_fault_and_nothing_scrolls_sideways(begin, hostile, width, scheme):
    page = begin(hostile, "rows.csv", "--id", "id", *QUICK)
    emulate(page.driver, width, scheme)
    for keys in ("", "ynu", "n"):
        page.press(keys)
        page.settle()
        assert_no_fault(page.driver)
        assert_nothing_scrolls_sideways(page.driver)
    text = page.find("main").text
    assert SCRIPT_NAME in text
    assert IMAGE_NAME in text
    assert ARABIC in text
    assert "\\u202e" in text
    assert not page.driver.find_elements(By.CSS_SELECTOR, "main script, main img, main b b")
    page.driver.find_element(By.XPATH, "//button[.='Finish']").click()
    page.until(lambda: "Finished" in page.find(".card").text)
    assert not page.find(".answers").is_displayed()
    assert page.find("main .command button").text == "Copy"
    assert "--id id" in page.find("main .command code").text
    assert_no_fault(page.driver)


def test_a_check_says_whether_one_may_stop(begin, tmp_path, data):
    """Sixty rows, all of whose anomalies are found by the first answers."""
    chosen = np.append(np.flatnonzero(data.y), np.flatnonzero(data.y == 0)[:50])
    columns = dict(zip(data.feature_names, data.X[chosen].T.tolist(), strict=True))
    write_csv(tmp_path / "rows.csv", columns)
    page = begin(tmp_path, "rows.csv", *QUICK, "--n", 12)

    def may_stop():
        return "may" in page.find(".stop").get_attribute("class").split()

    def asking(words):
        return page.driver.find_element(By.XPATH, f"//button[.='{words}']")

    def switches():
        return page.driver.find_elements(By.CSS_SELECTOR, ".asking button")

    keys_of(page, data.y[chosen], 12)
    assert not may_stop()
    asking("Find anomalies").click()
    page.settle()
    while sum(label == "1" for label in page.saved().values()) < data.y.sum():
        keys_of(page, data.y[chosen], 1)
    asking("Check").click()
    page.settle()
    n_left = len(chosen) - sum(label != "" for label in page.saved().values())
    assert [each.text for each in switches()] == ["Check"]
    assert not may_stop()
    n_check = int(page.find(".count").text.split()[2])
    assert 0 < n_check <= n_left
    keys_of(page, np.zeros(len(chosen), dtype=int), n_check)
    assert may_stop()
    page.close()
    sheet = ("--labels", "to_label.csv")
    told = gammagmm_here("estimate", "rows.csv", *QUICK, *sheet, cwd=tmp_path)
    assert f"Of the {n_check} random rows of the check, none is an anomaly" in told.stdout


WIDGET = """
const [width, done] = arguments;
document.body.className = "";
const [main, title, host] = ["main", "h1", "div"].map((tag) => document.createElement(tag));
title.textContent = "Notebook";
host.style.width = `${width}px`;
main.append(title, host);
document.body.replaceChildren(main);
document.title = "Notebook";
import("./label.js").then(({ default: widget, post }) => {
  const listeners = [], send = post("api");
  widget.render({ el: host, model: {
    on: (name, listener) => listeners.push(listener), off: () => {},
    send: async ({ id, message }) => {
      const answer = await send(message);
      for (const listener of listeners) listener({ id, answer });
    },
  } });
  const ready = () => (host.querySelector(".tile") ? done(true) : setTimeout(ready, 50));
  ready();
});
"""


@pytest.mark.parametrize("width", [1100, 700, 380])
def test_the_widget_has_no_fault_in_a_wide_and_in_a_narrow_cell(begin, folder, width):
    """The front end of the widget; its messages go to the server instead of to a kernel."""
    page = begin(folder, "rows.csv", *QUICK)
    page.press("y")
    page.settle()
    assert page.driver.execute_async_script(WIDGET, width)
    widget = page.find(".gammagmm-widget")
    assert widget.size["width"] == width
    card, aside = (widget.find_element(By.CSS_SELECTOR, name).rect for name in (".card", "aside"))
    is_beside = aside["x"] >= card["x"] + card["width"]
    assert is_beside == (width == 1100)
    code = "return arguments[0].scrollWidth <= arguments[0].clientWidth"
    assert page.driver.execute_script(code, widget)
    assert_no_fault(page.driver)


def test_rows_on_dask(begin, tmp_path, data):
    pytest.importorskip("dask")
    frame = pd.DataFrame(data.X, columns=data.feature_names)
    frame.to_parquet(tmp_path / "rows.parquet")
    page = begin(tmp_path, "rows.parquet", "--engine", "dask", "--jobs", "2", *QUICK)
    given = keys_of(page, data.y, 3)
    assert page.saved().items() >= given.items()
    page.driver.find_element(By.XPATH, "//button[.='Finish']").click()
    out, _ = page.process.communicate(timeout=90)
    assert "This estimate uses 3 labelled rows" in out


@pytest.fixture
def wide(tmp_path):
    rng = np.random.default_rng(0)
    columns = {f"sensor {i:03d}": rng.normal(size=300) for i in range(200)}
    columns["sensor 117"][40] = 50.0
    write_csv(tmp_path / "rows.csv", columns)
    return tmp_path


def test_200_columns(begin, wide):
    page = begin(wide, "rows.csv", "--purpose", "find", "--detectors", "HBOS,ECOD", "--runs", 2)
    assert len(page.driver.find_elements(By.CSS_SELECTOR, ".tile")) == 12
    row = page.card()
    page.find("details summary").click()
    page.until(lambda: len(page.driver.find_elements(By.CSS_SELECTOR, ".tile")) == 200)
    names = {part.text for part in page.driver.find_elements(By.CSS_SELECTOR, ".tile .name")}
    assert names == {f"sensor {i:03d}" for i in range(200)}
    assert_nothing_scrolls_sideways(page.driver)
    page.press("n")
    page.until(lambda: page.card() != row)
    assert len(page.driver.find_elements(By.CSS_SELECTOR, ".tile")) == 200  # still open
    page.settle()


def test_each_answer_counts_with_10_000_rows(begin, tmp_path):
    """With the ranking learned after each answer, and a person who answers twice a second.

    How long the next card takes: benchmarks/label_page.py.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10_000, 20))
    y = np.zeros(10_000, dtype=int)
    y[:400] = 1
    X[:400, :3] += 6.0
    write_csv(tmp_path / "rows.csv", {f"x{i}": column for i, column in enumerate(X.T.tolist())})
    page = begin(tmp_path, "rows.csv", "--detectors", "HBOS,ECOD,KNN", "--runs", 1, "--n", 60)
    shown = []
    for n in range(40):
        if n == 20:
            page.driver.find_element(By.XPATH, "//button[.='Find anomalies']").click()
            page.settle()
            time.sleep(2.0)
        shown.append(page.card())
        page.press("y" if y[shown[-1] - 1] else "n")
        time.sleep(0.5)
    page.settle()
    answers = {row: str(y[row - 1]) for row in shown}
    assert len(answers) == 40
    assert {row: label for row, label in page.saved().items() if label} == answers
