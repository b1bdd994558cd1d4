"""Folders of Parquet files, read and written without a cluster."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import pytest

from gammagmm.distributed.parquet import (
    FolderError,
    check_folder,
    matching_files,
    read_parquet,
    write_parquet,
)
from gammagmm.errors import TableError

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")

FRAME = pd.DataFrame({"a": np.arange(7.0), "b": np.arange(7.0) ** 2})


@pytest.fixture(autouse=True)
def _one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def write(folder, frame=FRAME, overwrite=False):
    """The calls of the progress callback."""
    calls = []
    parts = dd.from_pandas(frame, npartitions=3)
    write_parquet(parts, folder, overwrite, lambda *call: calls.append(call), None)
    return calls


def test_each_partition_is_a_file_and_all_are_read_again(tmp_path):
    calls = write(tmp_path / "rows")
    assert sorted(os.listdir(tmp_path / "rows")) == [f"part-0000{i}.parquet" for i in range(3)]
    assert [call[:2] for call in calls] == [(f"block {i}", "written") for i in (1, 2, 3)]
    assert all(0.0 <= seconds < 60.0 for *_, seconds in calls)
    for paths in ([str(tmp_path / "rows")], [str(tmp_path / "rows" / "*.parquet")]):
        pd.testing.assert_frame_equal(read_parquet(paths).compute(), FRAME, check_names=False)
    assert os.listdir(tmp_path) == ["rows"]


def test_row_groups_are_partitions(tmp_path):
    FRAME.to_parquet(tmp_path / "rows.parquet", row_group_size=3)
    assert read_parquet([str(tmp_path / "rows.parquet")]).npartitions == 3


def test_earlier_results_are_replaced_only_if_asked(tmp_path):
    write(tmp_path / "rows")
    with pytest.raises(FolderError, match="rows already exists"):
        write(tmp_path / "rows")
    write(tmp_path / "rows", 2.0 * FRAME, overwrite=True)
    again = read_parquet([str(tmp_path / "rows")]).compute()
    np.testing.assert_array_equal(again["b"], 2.0 * FRAME["b"])
    assert os.listdir(tmp_path) == ["rows"]


def test_a_link_is_not_replaced(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "mine", target_is_directory=True)
    with pytest.raises(FolderError, match="link"):
        check_folder(tmp_path / "link", True)
    assert (tmp_path / "link").is_symlink()


def test_a_folder_with_other_files_or_the_inputs_is_not_replaced(tmp_path):
    write(tmp_path / "rows")
    inputs = [str(tmp_path / "rows" / "part-00001.parquet")]
    assert check_folder(tmp_path / "rows", True, [str(tmp_path / "other.parquet")]).name == "rows"
    with pytest.raises(FolderError, match="rows contains the input files"):
        check_folder(tmp_path / "rows", True, inputs)
    (tmp_path / "rows" / "part-1.parquet").touch()
    with pytest.raises(FolderError, match="files that gammagmm did not write"):
        check_folder(tmp_path / "rows", True)
    (tmp_path / "file").touch()
    with pytest.raises(FolderError, match="files that gammagmm did not write"):
        check_folder(tmp_path / "file", True)


@pytest.mark.parametrize("folder", ["s3://bucket/rows", "", "..", "/"])
def test_the_folder_must_be_a_local_name(folder):
    with pytest.raises(ValueError, match="folder must be the path of a local folder"):
        check_folder(folder, True)


def test_files_are_found_by_name_or_pattern(tmp_path):
    for name in ("b.parquet", "a.parquet", "c.csv"):
        (tmp_path / name).touch()
    names = [str(tmp_path / name) for name in ("a.parquet", "b.parquet")]
    assert matching_files(str(tmp_path / "*.parquet")) == names
    assert matching_files(names[1]) == names[1:]
    assert matching_files("s3://bucket/*.parquet") == ["s3://bucket/*.parquet"]
    with pytest.raises(TableError, match="no file matches it"):
        matching_files(str(tmp_path / "*.feather"))
    with pytest.raises(TableError, match=r"c\.csv cannot be read as Parquet"):
        read_parquet([str(tmp_path / "c.csv")])
