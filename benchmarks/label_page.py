"""Time from a key to the next card on the labelling page, with the ranking learned beside.

    python benchmarks/label_page.py

Writes benchmarks/results/label_page.json. It needs Chromium and its driver.
"""

from __future__ import annotations

import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By

from timing import SOURCE, measure

FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")
OPTIONS = ("--no-browser", "--detectors", "HBOS,ECOD,KNN", "--runs", "1", "--n", "60")
BETWEEN = 0.5
"""Seconds between two answers."""
# The time until the next card has been painted.
TIMES = """
window.times = [];
const card = document.querySelector(".card");
let pressed = 0, before = "";
document.addEventListener("keydown", () => {
  pressed = performance.now();
  before = card.dataset.row;
}, true);
new MutationObserver(() => {
  if (!card.dataset.row || card.dataset.row === before || !pressed) return;
  const start = pressed;
  pressed = 0;
  requestAnimationFrame(() => setTimeout(() => window.times.push(performance.now() - start)));
}).observe(card, { attributes: true, attributeFilter: ["data-row"] });
"""


def label_page(quick):
    """Milliseconds from key to next card: half of the answers for the share, half to find."""
    n_rows, n_answers = (500, 6) if quick else (10_000, 40)
    rng = np.random.default_rng(0)
    X, is_anomaly = rng.normal(size=(n_rows, 20)), np.arange(n_rows) < n_rows // 25
    X[is_anomaly, :3] += 6.0
    with tempfile.TemporaryDirectory() as folder:
        heads = ",".join(f"x{j}" for j in range(20))
        rows = Path(folder) / "rows.csv"
        np.savetxt(rows, X, delimiter=",", header=heads, comments="", fmt="%.6g")
        process, address = serve(rows)
        try:
            with tempfile.TemporaryDirectory() as profile:
                times = answer(address, Path(profile), is_anomaly, n_answers)
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate()
    return {
        "rows": n_rows,
        "columns": 20,
        "answers": len(times),
        "load": os.getloadavg()[0],
        "median_ms": statistics.median(times),
        "max_ms": max(times),
    }


def serve(rows):
    """The command, and the address of its page."""
    process = subprocess.Popen(
        [sys.executable, "-m", "gammagmm.cli.main", "label", rows.name, *OPTIONS],
        cwd=rows.parent,
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    line = next(line for line in process.stderr if "on this page" in line)
    return process, line.split()[-1]


def answer(address, profile, is_anomaly, n_answers):
    """Answer rows by keys, twice a second; milliseconds until each next card."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    driver = webdriver.Chrome(options, Service(shutil.which("chromedriver")))
    try:
        driver.get(address)
        card = driver.find_element(By.CSS_SELECTOR, "main")
        while not driver.find_elements(By.CSS_SELECTOR, ".tile"):
            time.sleep(0.1)
        driver.execute_script(TIMES)
        for k in range(n_answers):
            if k == n_answers // 2:
                card.find_element(By.XPATH, "//button[.='Find anomalies']").click()
                time.sleep(4 * BETWEEN)
            row = driver.execute_script("return document.querySelector('.card').dataset.row")
            is_yes = is_anomaly[int(row) - 1]
            ActionChains(driver).send_keys("y" if is_yes else "n").perform()
            time.sleep(BETWEEN)
        return driver.execute_script("return window.times")
    finally:
        driver.quit()


if __name__ == "__main__":
    measure(__doc__, {"label_page": label_page})
