"""The documentation site in a browser, opened from its folder.

``python -m tests.browser.test_site`` prints the height of every page at two widths.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from tests.support.browser import chromium, emulate
from tests.support.site import build_site

pytestmark = pytest.mark.browser

AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"
DESKTOP, PHONE = 1280, 390
MAX_HEIGHT = 6000
# What is wider than its box: the page, blocks of code and of output, and tables.
MEASURES = """
const words = (found) => found.map((one) => one.innerText.slice(0, 60));
const wide = (selector) => [...document.querySelectorAll(selector)]
    .filter((one) => one.scrollWidth > one.clientWidth + 1);
const boxes = "article pre > code, article .md-typeset__scrollwrap";
return {
    height: document.documentElement.scrollHeight,
    // Less than 0 on a page that just fits: the bar at its side is counted once.
    sideways: Math.max(
        0, document.documentElement.scrollWidth - document.documentElement.clientWidth),
    code: words(wide("article pre, article pre > code")),
    output: words(wide("article .language-text pre, article .language-text pre > code")),
    tables: words(wide("article .md-typeset__scrollwrap")),
    hidden: words(wide(boxes).filter((one) => getComputedStyle(one).overflowX !== "auto")),
};
"""
SEARCHES = {
    "Excel": {"guides/files.html", "guides/command-line.html", "start/install.html"},
    "labels": {"start/labels.html", "guides/labels.html"},
    "labelling": {"start/labels.html"},
    "contamination": {"guides/pyod.html", "reference/contamination.html"},
    "GridSearchCV": {"guides/scikit-learn.html"},
    "threshold": {"guides/new-rows.html"},
    "polars": {"guides/frames.html"},
    "alarm": {"guides/monitoring.html", "explanations/monitoring.html"},
}
N_SEEN = 5  # results that a reader looks at


def measured(driver, site, width):
    """Measures of every page, by its path."""
    emulate(driver, width=width)
    found = {}
    for path in pages(site):
        driver.get(path.as_uri())
        found[path.relative_to(site).as_posix()] = driver.execute_script(MEASURES)
    return found


def pages(site):
    """Every page but one, which is served at any depth, so that its links are absolute."""
    return [path for path in sorted(site.rglob("*.html")) if path.name != "404.html"]


def those_with(found, name):
    return {page: measures[name] for page, measures in found.items() if measures[name]}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return build_site(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module", autouse=True)
def _with_scripts(driver):
    """A test of the report has turned scripts off."""
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


@pytest.fixture(scope="module")
def on_desktop(driver, site):
    return measured(driver, site, DESKTOP)


@pytest.fixture(scope="module")
def on_phone(driver, site):
    return measured(driver, site, PHONE)


def test_no_page_is_too_long(on_desktop):
    heights = {page: measures["height"] for page, measures in on_desktop.items()}
    assert len(heights) > 30
    assert {page: height for page, height in heights.items() if height >= MAX_HEIGHT} == {}


def test_code_output_and_tables_fit_on_a_desktop(on_desktop):
    for name in ("sideways", "code", "output", "tables"):
        assert those_with(on_desktop, name) == {}


def test_on_a_phone_output_wraps_and_code_and_tables_scroll_in_their_boxes(on_phone):
    for name in ("sideways", "output", "hidden"):
        assert those_with(on_phone, name) == {}


def results(driver, word):
    """Addresses of the pages that the search finds first for this word."""
    driver.find_element(By.CLASS_NAME, "md-search__button").click()
    wait = WebDriverWait(driver, 10)
    root = wait.until(lambda _: driver.switch_to.active_element.shadow_root)
    root.find_element(By.CSS_SELECTOR, "input").send_keys(word)

    def found(_):
        links = root.find_elements(By.CSS_SELECTOR, "a[href]")
        return links if links and word.lower() in links[0].text.lower() else None

    links = wait.until(found)
    return [link.get_attribute("href") for link in links[:N_SEEN]]


@pytest.mark.parametrize("word", SEARCHES)
def test_the_search_works_from_a_folder_and_finds_a_fitting_page(word, driver, site):
    emulate(driver)
    driver.get_log("performance")
    driver.get((site / "guides" / "saving.html").as_uri())
    found = [Path(unquote(urlsplit(url).path)) for url in results(driver, word)]
    first = [path.relative_to(site).as_posix() for path in found]
    assert SEARCHES[word] & set(first), first
    assert requested(driver) == {"file"}


def requested(driver):
    """Schemes of all that the pages asked for since the log was read last."""
    messages = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    urls = [
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    ]
    return {url.partition(":")[0] for url in urls} - {"data", "blob"}


def test_the_site_follows_the_colours_of_the_system(driver, site):
    shown = {}
    for scheme in ("light", "dark"):
        emulate(driver, scheme=scheme)
        driver.get((site / "index.html").as_uri())
        body = driver.find_element(By.TAG_NAME, "body")
        shown[scheme] = body.value_of_css_property("background-color")
    red = {scheme: int(colour.split("(")[1].split(",")[0]) for scheme, colour in shown.items()}
    assert red["light"] > 200
    assert red["dark"] < 60


def violations(driver, page, *rules):
    """What axe finds on the page, by all of its rules or by these alone."""
    driver.get(page.as_uri())
    driver.execute_script(AXE.read_text(encoding="utf-8"))
    code = "axe.run(arguments[0]).then((found) => arguments[1](found.violations))"
    options = {"resultTypes": ["violations"]} | ({"runOnly": rules} if rules else {})
    driver.set_script_timeout(120)
    found = driver.execute_async_script(code, options)
    return [(one["id"], node["target"], node["html"]) for one in found for node in one["nodes"]]


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_axe_finds_nothing_on_any_page(width, driver, site):
    emulate(driver, width=width)
    found = {str(page.relative_to(site)): violations(driver, page) for page in pages(site)}
    assert {name: broken for name, broken in found.items() if broken} == {}


@pytest.mark.parametrize("name", ["index.html", "guides/detectors.html", "reference/fit.html"])
def test_all_text_can_be_read_on_a_dark_page(name, driver, site):
    emulate(driver, scheme="dark")
    assert violations(driver, site / name, "color-contrast") == []


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch, chromium(Path(scratch, "profile")) as browser:
        folder = build_site(Path(scratch))
        both = [measured(browser, folder, width) for width in (DESKTOP, PHONE)]
        lines = [f"{'page':<50} {DESKTOP:>6} {PHONE:>6}"]
        lines += [
            f"{page:<50} {both[0][page]['height']:>6} {both[1][page]['height']:>6}"
            for page in both[0]
        ]
        sys.stdout.write("\n".join(lines) + "\n")
