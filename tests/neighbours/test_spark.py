"""All rows of a Spark table get the answers that the estimator gives in memory."""

from __future__ import annotations

import os

import numpy as np
import pytest

from tests.support.example_scripts import GUIDES, run_with_names, show
from tests.support.needs import needs_spark

pytestmark = needs_spark


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """The names of the script, whose session is open, and its output."""
    names, printed = run_with_names("with_spark", tmp_path_factory.mktemp("spark"))
    yield names, printed
    names["spark"].stop()
    os.environ.pop("PYSPARK_PYTHON")


@pytest.fixture(scope="module")
def example(ran):
    return ran[0]


@pytest.fixture(scope="module")
def rows(example):
    """The rows in memory; the position is the id."""
    return example["rows"].set_index("id")


@pytest.fixture(scope="module")
def scored(example):
    """Function that scores a table, when it is computed, with the function of the script."""
    score, schema = example["score"], example["schema"]

    def scored(table):
        return table.mapInPandas(lambda parts: map(score, parts), schema)

    return scored


def test_the_guide_shows_the_script_and_its_output(ran):
    assert show("with_spark", ran[1]) in (GUIDES / "spark.md").read_text(encoding="utf-8")


def test_each_row_is_there_once_with_the_answers_of_memory_to_the_bit(example, rows):
    estimator = example["estimator"]
    found = example["answers"].toPandas().set_index("id").sort_index()
    assert found.index.tolist() == list(range(20_000))
    np.testing.assert_array_equal(found[rows.columns], rows)
    np.testing.assert_array_equal(found["score"], estimator.decision_function(rows))
    np.testing.assert_array_equal(found["probability"], estimator.predict_proba(rows)[:, 1])
    np.testing.assert_array_equal(found["label"], estimator.predict(rows))


def test_the_labels_of_the_sample_rank_all_rows(example):
    estimator, truth = example["estimator"], example["data"].y
    assert estimator.posterior_.n_labels == 30
    assert estimator.fit_.ranking == "learned"
    found = example["answers"].toPandas()
    first = found.nlargest(truth.sum(), "score")["id"]
    assert truth[first].mean() > 0.9  # 0.05 by chance


def test_the_parts_do_not_matter(example, rows, scored):
    for n_rows, n_parts in ((1000, 1), (1000, 3), (3, 7)):  # the last parts are empty or one row
        some = example["rows"].sample(n_rows, random_state=0)
        table = example["spark"].createDataFrame(some).repartition(n_parts)
        found = scored(table).toPandas().set_index("id").loc[some["id"], "score"]
        expected = example["estimator"].decision_function(rows.loc[some["id"]])
        np.testing.assert_array_equal(found, expected)


def test_a_table_without_a_column_is_refused_by_its_name(example, scored):
    from pyspark.errors import PythonException

    with pytest.raises(PythonException, match=r"\bx3\b"):
        scored(example["table"].drop("x3")).collect()


def test_a_file_without_a_column_is_refused_by_its_name(example, scored, tmp_path):
    from pyspark.errors import PythonException

    table = example["spark"].createDataFrame(example["rows"][:100])
    table.write.parquet(f"{tmp_path}/all")
    table.drop("x3").write.parquet(f"{tmp_path}/less")
    files = (
        example["spark"].read.schema(table.schema).parquet(f"{tmp_path}/all", f"{tmp_path}/less")
    )
    with pytest.raises(PythonException, match=r"\bx3\b"):
        scored(files).collect()
