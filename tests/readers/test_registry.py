"""The suffix of a file chooses its reader."""

from __future__ import annotations

import gzip
import hashlib

import pytest

from gammagmm.errors import TableError
from gammagmm.readers.registry import read_raw


def test_suffix_is_case_insensitive_and_text_paths_work(write):
    assert read_raw(str(write("a\n1", "TABLE.CSV"))).data[0].tolist() == [1.0]


@pytest.mark.parametrize("name", ["table.xls", "table"])
def test_unknown_suffix(write, name):
    message = r"has the suffix '(\.xls)?', which cannot be read\. Save .* formats: \.csv, \.tsv, "
    with pytest.raises(TableError, match=message):
        read_raw(write("a\n1", name))


def test_an_empty_file_of_any_format(write):
    with pytest.raises(TableError, match=r"table\.npy is empty\. Give a file with at least one"):
        read_raw(write(b"", "table.npy"))


def test_the_digest_is_that_of_the_file(write):
    for content, name in [(b"a\n1\n", "t.csv"), (gzip.compress(b"a\n1\n"), "t.csv.gz")]:
        assert read_raw(write(content, name)).digest == hashlib.sha256(content).hexdigest()


def test_a_file_that_is_one_table_has_no_other(write):
    message = r"table\.csv is a single table, so it has no table 'b'\. Leave out --table: it names"
    with pytest.raises(TableError, match=message):
        read_raw(write("a\n1\n"), table="b")
