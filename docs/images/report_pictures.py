"""Save the top of the demo report as docs/images/report-light.png and report-dark.png."""

from __future__ import annotations

import base64
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

WIDTH, MARGIN = 1280, 20
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")


def start_chromium(profile: Path) -> webdriver.Chrome:
    """Headless Chromium, as installed on the system, with a new profile."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in (*FLAGS, "--hide-scrollbars", f"--user-data-dir={profile}"):
        options.add_argument(flag)
    return webdriver.Chrome(options, Service(shutil.which("chromedriver")))


def resize(driver: webdriver.Chrome, height: int) -> None:
    """Set the page to the fixed width and to `height` pixels."""
    size = {"width": WIDTH, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def take_picture(driver: webdriver.Chrome, scheme: str, path: Path) -> None:
    """Save a screenshot of the open page, down to the rows that stand out, in the colour scheme."""
    resize(driver, 1500)
    code = "return document.getElementById('rows').getBoundingClientRect().bottom"
    take_screenshot(driver, round(driver.execute_script(code)) + MARGIN, scheme, path)


def take_screenshot(driver: webdriver.Chrome, height: int, scheme: str, path: Path) -> None:
    """Save a screenshot of the open page, `height` pixels high, in the colour scheme."""
    resize(driver, height)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    picture = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
    path.write_bytes(base64.b64decode(picture["data"]))


def main() -> None:
    """Write the demo report, open it and save both pictures."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.html"
        command = [sys.executable, "-m", "gammagmm.cli.main", "demo", "--report", str(report)]
        subprocess.run(command, check=True)
        driver = start_chromium(Path(folder) / "profile")
        try:
            driver.get(report.as_uri())
            for scheme in ("light", "dark"):
                take_picture(driver, scheme, Path(__file__).parent / f"report-{scheme}.png")
        finally:
            driver.quit()


if __name__ == "__main__":
    main()
