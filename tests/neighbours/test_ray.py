"""All rows of a Ray dataset get the answers that the estimator gives in memory."""

from __future__ import annotations

import os
from itertools import pairwise

import numpy as np
import pytest

from tests.support.example_scripts import GUIDES, code, run_with_names
from tests.support.needs import needs_ray

pytestmark = needs_ray


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """The names of the script, with Ray still running."""
    names, _ = run_with_names("with_ray", tmp_path_factory.mktemp("ray"))
    yield names
    names["ray"].shutdown()
    os.environ.pop("RAY_USAGE_STATS_ENABLED")


@pytest.fixture(scope="module")
def rows(example):
    """The rows in memory; the position is the id."""
    return example["rows"].set_index("id")


@pytest.fixture(scope="module")
def scored(example):
    """Function that scores parts of the rows with the function of the script."""

    def scored(parts):
        table = example["ray"].data.from_pandas(parts)
        return table.map_batches(example["score"], batch_format="pandas").to_pandas()

    return scored


def test_the_lines_that_the_guide_shows_are_those_of_the_script():
    page = (GUIDES / "spark.md").read_text(encoding="utf-8")
    shown = page.split("## Ray")[1].split("```py\n")[1].split("```")[0]
    assert len(shown.splitlines()) == 2
    assert all(line in code("with_ray").splitlines() for line in shown.splitlines())


def test_each_row_is_there_once_with_the_answers_of_memory_to_the_bit(example, rows):
    estimator = example["estimator"]
    found = example["answers"].to_pandas().set_index("id").sort_index()
    assert found.index.tolist() == list(range(20_000))
    np.testing.assert_array_equal(found[rows.columns], rows)
    np.testing.assert_array_equal(found["score"], estimator.decision_function(rows))
    np.testing.assert_array_equal(found["probability"], estimator.predict_proba(rows)[:, 1])
    np.testing.assert_array_equal(found["label"], estimator.predict(rows))


def test_the_labels_of_the_sample_rank_all_rows(example):
    estimator, truth = example["estimator"], example["data"].y
    assert estimator.posterior_.n_labels == 30
    assert estimator.fit_.ranking == "learned"
    found = example["answers"].to_pandas().astype({"id": int, "score": float})
    first = found.nlargest(truth.sum(), "score")["id"]
    assert truth[first].mean() > 0.9  # 0.05 by chance


def test_the_parts_do_not_matter(example, rows, scored):
    some = example["rows"].sample(1000, random_state=0)
    expected = example["estimator"].decision_function(rows.loc[some["id"]])
    for cuts in ([], [0, 1, 1, 400]):  # parts that are empty or have one row
        ends = [0, *cuts, len(some)]
        parts = [some[a:b] for a, b in pairwise(ends)]
        found = scored(parts).set_index("id").loc[some["id"], "score"]
        np.testing.assert_array_equal(found, expected)


def test_a_part_without_a_column_is_refused_by_its_name(example, scored):
    some = example["rows"]
    with pytest.raises(example["ray"].exceptions.RayTaskError, match=r"\bx3\b"):
        scored([some[:500], some[500:1000].drop(columns="x3")])
