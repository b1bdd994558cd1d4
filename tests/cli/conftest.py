"""A table with known anomalies, as a file and fitted."""

from __future__ import annotations

import pytest

from gammagmm import GammaGMM
from gammagmm.datasets import make_contaminated
from tests.support.command_line import write_csv


@pytest.fixture(scope="session")
def data():
    return make_contaminated(300, 4, 0.05, "clustered", random_state=5)


@pytest.fixture(scope="session")
def columns(data):
    names = ("width", "height", "depth", "mass")
    return {name: column.tolist() for name, column in zip(names, data.X.T, strict=True)}


@pytest.fixture(scope="session")
def table(columns, tmp_path_factory):
    return write_csv(tmp_path_factory.mktemp("cli") / "rows.csv", columns)


@pytest.fixture(scope="session")
def fitted(data):
    return GammaGMM(["KNN", "LOF"], n_runs=2, random_state=0).fit(data.X)
