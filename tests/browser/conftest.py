"""A report with hostile names, and a headless Chromium that has it open."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gammagmm import GammaGMM
from gammagmm.datasets import load_demo
from gammagmm.estimator.reasons import usual_values
from gammagmm.report.page import write_report
from tests.support.browser import FORMULA_NAME, IMAGE_NAME, SCRIPT_NAME, chromium, emulate
from tests.support.tables import knowing


@dataclass(frozen=True)
class Reported:
    """A fitted estimator, the names of its rows, and the file of its report."""

    estimator: Any
    ids: np.ndarray  # (n,) names of the rows
    path: Path


@pytest.fixture(scope="session")
def reported(tmp_path_factory):
    X = load_demo().X
    estimator = GammaGMM(["KNN", "LOF", "IForest", "HBOS"], n_runs=2, random_state=0).fit(X)
    order = np.argsort(-estimator.decision_scores_, kind="stable")
    ids = np.array([f"patient {i}" for i in range(len(X))], dtype=object)
    ids[order[0]] = FORMULA_NAME
    # The first row that a larger share adds.
    ids[order[estimator.labels_.sum()]] = IMAGE_NAME
    columns = np.array([f"feature {j}" for j in range(X.shape[1])], dtype=object)
    columns[most_outstanding(X, order[0])] = SCRIPT_NAME
    path = tmp_path_factory.mktemp("report") / "report.html"
    names = {"name": "<i>demo</i> & more", "ids": tuple(ids)}
    write_report(knowing(estimator.fit_, tuple(columns), **names), path)
    return Reported(estimator, ids, path)


def most_outstanding(X, row):
    """The column in which a row stands out most."""
    (reasons,) = usual_values(X, range(X.shape[1])).reasons(X[[row]])
    return int(reasons[0].column)


@pytest.fixture(scope="session")
def driver(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture
def page(driver, reported):
    """The driver with the report just opened, 1280 pixels wide; logs and storage empty before."""
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    emulate(driver)
    stored = {"origin": "file://", "storageTypes": "local_storage"}
    driver.execute_cdp_cmd("Storage.clearDataForOrigin", stored)
    for kind in ("performance", "browser"):
        driver.get_log(kind)
    driver.get(reported.path.as_uri())
    return driver
