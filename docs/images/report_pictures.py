"""Save the first screen of the demo report as report-light.png and report-dark.png."""

from __future__ import annotations

import base64
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from gammagmm.datasets import load_demo

NAME = "breast-cancer.csv"

WIDTH, HEIGHT = 1280, 800
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")


def start_chromium(profile: Path) -> webdriver.Chrome:
    """Headless Chromium, as installed on the system, with a new profile."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in (*FLAGS, "--hide-scrollbars", f"--user-data-dir={profile}"):
        options.add_argument(flag)
    return webdriver.Chrome(options, Service(shutil.which("chromedriver")))


def take_screenshot(driver: webdriver.Chrome, height: int, scheme: str, path: Path) -> None:
    """Save a screenshot of the open page, `height` pixels high, in the colour scheme."""
    size = {"width": WIDTH, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    picture = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
    path.write_bytes(base64.b64decode(picture["data"]))


def main() -> None:
    """Write the report of the demo data as a file, open it and save both pictures."""
    data = load_demo()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.html"
        pd.DataFrame(data.X, columns=data.feature_names).to_csv(report.with_name(NAME), index=False)
        command = [sys.executable, "-m", "gammagmm.cli.main", "estimate", NAME]
        subprocess.run([*command, "--report", report.name], check=True, cwd=folder)
        driver = start_chromium(Path(folder) / "profile")
        try:
            driver.get(report.as_uri())
            for scheme in ("light", "dark"):
                path = Path(__file__).parent / f"report-{scheme}.png"
                take_screenshot(driver, HEIGHT, scheme, path)
        finally:
            driver.quit()


if __name__ == "__main__":
    main()
