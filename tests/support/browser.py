"""What the browser tests share: hostile names, and the width and colours of a page."""

from __future__ import annotations

SCRIPT_NAME = "<script>alert(1)</script>"
IMAGE_NAME = "<img src=x onerror=alert(1)>"
FORMULA_NAME = "=cmd|' /C calc'!A0"


def emulate(driver, width=1280, scheme="light", media=""):
    """Set the width, the colour scheme and the medium of the page."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})
