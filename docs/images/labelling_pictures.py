"""Save the labelling page of the demo rows as labelling-light.png and labelling-dark.png."""

from __future__ import annotations

import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from report_pictures import start_chromium, take_screenshot
from selenium.webdriver.common.action_chains import ActionChains

from gammagmm import GammaGMM
from gammagmm.cli.label_page import LabelServer
from gammagmm.datasets import load_demo
from gammagmm.estimator.label_session import LabelSession
from gammagmm.report.label_view import LabelView

N_ANSWERS = 24
HEIGHT = 860


def main() -> None:
    """Answer some rows of the demo data by keyboard and take the pictures."""
    import pandas as pd

    data = load_demo()
    rows = pd.DataFrame(data.X, columns=data.feature_names)
    fit = GammaGMM(random_state=0).fit(rows).fit_
    session = LabelSession(fit, rng=np.random.default_rng(3))
    view = LabelView(session, save=lambda _: None, title="breast-cancer.csv", place="to_label.csv")
    view.extend()
    server = LabelServer(view)
    serving = threading.Thread(target=server.run)
    serving.start()
    with tempfile.TemporaryDirectory() as folder:
        driver = start_chromium(Path(folder))
        try:
            driver.get(server.address)
            time.sleep(2.0)
            for n in range(N_ANSWERS):
                asking = "share" if n < 12 else "find"
                if n == 12:
                    driver.find_element("xpath", "//button[.='Find anomalies']").click()
                    time.sleep(2.0)
                key = "y" if data.y[session.waiting(asking)[0]] else "n"
                ActionChains(driver).send_keys(key).perform()
                time.sleep(0.3)
            while driver.find_elements("css selector", ".why.none"):  # a row with odd values
                ActionChains(driver).send_keys(" ").perform()
                time.sleep(0.5)
            time.sleep(2.0)
            for scheme in ("light", "dark"):
                path = Path(__file__).parent / f"labelling-{scheme}.png"
                take_screenshot(driver, HEIGHT, scheme, path)
        finally:
            driver.quit()
            server.stop()
            serving.join()


if __name__ == "__main__":
    main()
