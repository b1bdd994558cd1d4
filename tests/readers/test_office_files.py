"""Ordinary files of offices are read as they are meant, and answered without options."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from gammagmm import GammaGMM
from gammagmm.cli.columns import columns_text
from gammagmm.cli.options import Reading
from gammagmm.cli.request import choices_of, read_table
from gammagmm.cli.said import MAX_LINES, said_lines
from gammagmm.cli.words import COMMAND
from gammagmm.errors import ColumnsWarning
from gammagmm.estimator.parameters import check_parameters
from gammagmm.estimator.rows import open_rows
from gammagmm.readers.registry import read_raw
from gammagmm.table.preparation import Choices, prepare
from tests.support.office_faults import faults_of, is_quietly_wrong
from tests.support.office_files import office_files

pytest.importorskip("pyarrow")
pytest.importorskip("python_calamine")

N_SEEDS = 3


@pytest.mark.parametrize("seed", range(N_SEEDS))
def test_ordinary_files_are_answered_without_options(seed, tmp_path):
    files = office_files(seed)
    found = {file.name: faults_of(file, tmp_path / file.name) for file in files}
    wrong = {name: faults for name, faults in found.items() if faults}
    assert len(wrong) <= 0.05 * len(files), wrong
    assert not any(map(is_quietly_wrong, wrong.values())), wrong


def test_files_and_clean_frames_give_the_same_numbers_and_short_notes(tmp_path):
    """So they give the same fit: of any table with true numbers, plain texts and gaps as gaps."""
    for file in office_files(0):
        (tmp_path / file.name).write_bytes(file.content)
        reading = Reading(paths=[str(tmp_path / file.name)])
        raw = read_table(reading)
        prepared = prepare(raw, choices_of(reading), COMMAND)
        cells = {
            own.name: own.values if own.kind == "number" else [text or None for text in own.texts]
            for own in file.columns
        }
        plan = check_parameters(GammaGMM().get_params(deep=False))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ColumnsWarning)
            found = open_rows(pd.DataFrame(cells), GammaGMM(), plan)
        assert found.columns == prepared.columns, file.name
        np.testing.assert_array_equal(found.values, prepared.values, err_msg=file.name)
        assert len(said_lines(prepared.notes)) <= MAX_LINES
        n_lines = len(columns_text(raw, choices_of(reading)).splitlines())
        assert n_lines <= len(file.columns) + 20, file.name


def test_with_the_codes_of_gaps_the_numbers_are_those_of_the_clean_table(tmp_path):
    choices = replace(Choices().with_strict(False), missing_codes=("auto",))
    for file in office_files(0):
        path = tmp_path / file.name
        path.write_bytes(file.content)
        prepared, clean = prepare(read_raw(path), choices, COMMAND), file.clean_table()
        places = [prepared.columns.index(own.name) for own in prepared.preparation.encoder.numbers]
        filled = np.where(
            np.isnan(clean.numbers), np.nanmedian(clean.numbers, axis=0), clean.numbers
        )
        found = prepared.values[:, places]
        np.testing.assert_allclose(found, filled, rtol=1e-9, err_msg=file.name)
        assert {own.name for own in prepared.preparation.encoder.texts} >= set(clean.categories)
