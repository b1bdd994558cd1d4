"""The page of a history in a browser: no fault for axe, no scrolling sideways, no request."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By

from gammagmm.monitoring.watched_row import WatchedRow
from tests.report.test_watch import HOSTILE, made_history
from tests.support.browser import emulate

pytestmark = pytest.mark.browser

AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("watch") / "watch.html"
    rows = [WatchedRow(f"{HOSTILE} {i}", "today", 3.0, "a 7 is above the usual") for i in range(9)]
    made_history().report(path, rows)
    return path


@pytest.fixture
def page(driver, path):
    emulate(driver)
    for kind in ("performance", "browser"):
        driver.get_log(kind)
    driver.get(path.as_uri())
    return driver


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_fault_and_the_page_is_as_wide_as_the_screen(page, width, scheme):
    emulate(page, width, scheme)
    page.execute_script("document.querySelector('details').open = true")
    assert page.execute_script("return document.documentElement.scrollWidth") <= width
    page.execute_script(AXE.read_text(encoding="utf-8"))
    code = "const done = arguments[0]; axe.run().then(done, fault => done(String(fault)))"
    found = page.execute_async_script(code)
    assert [(fault["id"], fault["nodes"][0]["html"]) for fault in found["violations"]] == []
    assert "color-contrast" in [rule["id"] for rule in found["passes"]]


def test_a_narrow_screen_shows_the_newest_period_first(page):
    emulate(page, 390)
    newest = page.find_elements(By.CSS_SELECTOR, ".series .changed")[-1]
    assert 0 < newest.rect["x"] < 390
    label = page.find_elements(By.CSS_SELECTOR, ".series .axis text")[-1]
    assert 0 <= label.rect["x"] < newest.rect["x"]
    heights = {bar.rect["height"] for bar in page.find_elements(By.CSS_SELECTOR, ".parts td svg")}
    assert len(heights) == 1


def test_nothing_is_requested_and_nothing_is_wrong(page):
    events = [json.loads(entry["message"])["message"] for entry in page.get_log("performance")]
    sent = [e["params"] for e in events if e["method"] == "Network.requestWillBeSent"]
    assert {request["request"]["url"] for request in sent} <= {page.current_url}
    assert page.get_log("browser") == []
