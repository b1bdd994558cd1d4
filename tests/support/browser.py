"""What the browser tests share: Chromium, hostile names, and the width and colours of a page."""

from __future__ import annotations

import shutil
from contextlib import contextmanager

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

SCRIPT_NAME = "<script>alert(1)</script>"
IMAGE_NAME = "<img src=x onerror=alert(1)>"
FORMULA_NAME = "=cmd|' /C calc'!A0"
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")


@contextmanager
def chromium(profile):
    """A headless Chromium with this folder as its profile."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    driver = webdriver.Chrome(options, Service(shutil.which("chromedriver")))
    try:
        yield driver
    finally:
        driver.quit()


def emulate(driver, width=1280, scheme="light", media=""):
    """Set the width, the colour scheme and the medium of the page."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})
