"""The labelling widget in a real JupyterLab and in marimo: the estimator has the answers."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager

import nbformat
import numpy as np
import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from gammagmm import GammaGMM
from gammagmm.datasets import load_demo
from tests.support.browser import chromium, emulate

pytestmark = [
    pytest.mark.filterwarnings(
        "ignore:.* starts had no solution:gammagmm.errors.UnsolvedRunsWarning"
    ),
    pytest.mark.skipif(
        not (shutil.which("chromium") and shutil.which("chromedriver")), reason="needs Chromium"
    ),
]

FIT = """from gammagmm import GammaGMM
from gammagmm.datasets import load_demo
detector = GammaGMM(["KNN", "LOF"], n_runs=2, random_state=0).fit(load_demo().X)
"""
WRITE = """import json
known = detector.known_rows_
found = {"rows": known.rows.tolist(), "labels": known.labels.tolist()}
found |= {"at_random": known.at_random.tolist(), "mean": detector.posterior_.mean}
with open("known.json", "w") as file:
    json.dump(found, file)
"""
ROWS = 10
SECONDS = 120


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@contextmanager
def serving(folder, address, *arguments):
    """A notebook server that has answered, with `folder` as its place."""
    places = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "XDG_CONFIG_HOME")
    environment = os.environ | {name: str(folder / "own" / name) for name in places}
    with (folder / "log.txt").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", *arguments], cwd=folder, stdout=log, stderr=log, env=environment
        )
        try:
            end = time.monotonic() + SECONDS
            while True:
                try:
                    urllib.request.urlopen(address, timeout=5).read()
                    break
                except OSError:
                    text = (folder / "log.txt").read_text()
                    assert process.poll() is None, text
                    assert time.monotonic() < end, text
                    time.sleep(0.5)
            yield
        finally:
            process.kill()
            process.wait()


def wait(driver, condition):
    return WebDriverWait(driver, SECONDS).until(condition)


def answer_rows(driver, root, y):
    """Answer ten rows by keyboard, and say which rows they were."""
    rows = []
    card = root.find_element(By.CSS_SELECTOR, ".card")
    wait(driver, lambda _: card.get_attribute("data-row"))
    for _ in range(ROWS):
        row = int(card.get_attribute("data-row").replace(",", "")) - 1
        rows.append(row)
        root.find_element(By.CSS_SELECTOR, "h2[tabindex]").send_keys("y" if y[row] else "n")
        before = str(row + 1)
        wait(driver, lambda _, b=before: card.get_attribute("data-row") not in (b, ""))
    state = root.find_element(By.CSS_SELECTOR, ".state")
    wait(driver, lambda _: state.text == "Saved")
    return rows


def check_answers(folder, rows, y):
    """The file of the last cell has what `update` gives with the same labels."""
    end = time.monotonic() + SECONDS
    while not (folder / "known.json").exists():
        assert time.monotonic() < end
        time.sleep(0.2)
    time.sleep(0.5)
    found = json.loads((folder / "known.json").read_text())
    assert found["rows"] == sorted(rows)
    assert found["labels"] == y[sorted(rows)].tolist()
    assert all(found["at_random"])
    own = GammaGMM(["KNN", "LOF"], n_runs=2, random_state=0).fit(load_demo().X)
    assert found["mean"] == own.update(np.array(rows), y[rows]).mean


def test_jupyterlab(tmp_path):
    notebook = nbformat.v4.new_notebook()
    first = FIT + "detector.label(random_state=0)"
    notebook.cells = [nbformat.v4.new_code_cell(text) for text in (first, WRITE)]
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(notebook, tmp_path / "rows.ipynb")
    port, y = free_port(), load_demo().y
    address = f"http://127.0.0.1:{port}/"
    options = (f"--port={port}", "--no-browser", "--IdentityProvider.token=", "--allow-root")
    arguments = ("jupyterlab", *options, "--ServerApp.password=")
    with serving(tmp_path, f"{address}api", *arguments), chromium(tmp_path / "profile") as driver:
        emulate(driver, width=1400)
        driver.get(f"{address}lab/tree/rows.ipynb?reset")
        run_cell(driver, 0)
        root = wait(driver, lambda d: d.find_elements(By.CSS_SELECTOR, ".gammagmm-widget"))[0]
        rows = answer_rows(driver, root, y)
        driver.save_screenshot(str(tmp_path / "jupyterlab.png"))
        run_cell(driver, 1)
        check_answers(tmp_path, rows, y)


def run_cell(driver, number):
    """Run a cell of the notebook once a kernel is there."""
    wait(driver, lambda d: "| Idle" in d.find_element(By.CSS_SELECTOR, "body").text)
    cells = [c for c in driver.find_elements(By.CSS_SELECTOR, ".cm-content") if c.is_displayed()]
    cells[number].click()
    ActionChains(driver).key_down(Keys.SHIFT).send_keys(Keys.ENTER).key_up(Keys.SHIFT).perform()


MARIMO = """import marimo
app = marimo.App()

@app.cell
def _():
    {fit}
    widget = detector.label(random_state=0)
    widget
    return detector, widget

@app.cell
def _():
    import marimo as mo
    button = mo.ui.run_button(label="write the labels")
    button
    return button, mo

@app.cell
def _(button, detector, mo):
    mo.stop(not button.value)
    {write}
    return

if __name__ == "__main__":
    app.run()
"""


def indented(text):
    return text.rstrip().replace("\n", "\n    ")


def test_marimo(tmp_path):
    app = MARIMO.format(fit=indented(FIT), write=indented(WRITE))
    (tmp_path / "rows.py").write_text(app)
    port, y = free_port(), load_demo().y
    address = f"http://127.0.0.1:{port}/"
    options = ("--headless", "--no-token", "--host=127.0.0.1", f"--port={port}")
    arguments = ("marimo", "run", "rows.py", *options)
    with serving(tmp_path, f"{address}health", *arguments), chromium(tmp_path / "p") as driver:
        emulate(driver, width=1400)
        driver.get(address)
        host = wait(driver, lambda d: d.find_elements(By.CSS_SELECTOR, "marimo-anywidget"))[0]
        root = wait(
            driver, lambda d: host.shadow_root.find_elements(By.CSS_SELECTOR, ".gammagmm-widget")
        )[0]
        rows = answer_rows(driver, root, y)
        driver.save_screenshot(str(tmp_path / "marimo.png"))
        button = driver.find_element(By.CSS_SELECTOR, "marimo-button")
        button.shadow_root.find_element(By.CSS_SELECTOR, "button").click()
        check_answers(tmp_path, rows, y)
