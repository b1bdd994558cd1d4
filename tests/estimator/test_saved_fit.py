"""A saved fit: every answer comes back to the bit, and any other file is refused."""

from __future__ import annotations

import io
import json
import os
import pickle
import subprocess
import sys
import zipfile
from dataclasses import fields, replace
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

from gammagmm import GammaGMM
from gammagmm._support import archives
from gammagmm.cli.output import answer_json, answer_text, labels_csv
from gammagmm.errors import (
    DetectorWarning,
    NoSolutionWarning,
    SavedFileError,
    SaveError,
    UnsolvedRunsWarning,
)
from gammagmm.estimator.saved_fit import SavedIndex, load_fit, save_fit
from gammagmm.estimator.summary import summarise
from gammagmm.posterior.storage import posterior_to_text
from gammagmm.report.findings import find
from gammagmm.report.page import render
from gammagmm.table.container import Container
from tests.support.flat_detector import Flat
from tests.support.needs import needs_posix
from tests.support.saved_fits import members, npy, packed
from tests.support.tables import knowing

SETTINGS = {"n_components": 10, "n_runs": 2, "n_draws": 100, "random_state": 0}
KEY = "rows 5d41, parameters 402a"


class Saved(NamedTuple):
    """A fitted estimator, its rows, and the file of its fit."""

    estimator: GammaGMM
    X: np.ndarray
    path: object

    @property
    def fit(self):
        return self.estimator.fit_

    def load(self, path=None, key=KEY):
        return load_fit(path or self.path, key)


def save(estimator, X, folder):
    path = folder / "rows.fit"
    save_fit(estimator.fit(X).fit_, path, KEY, False)
    return Saved(estimator, np.asarray(X), path)


def six_apart():
    """100 rows, of which the first six stand apart."""
    X = np.random.default_rng(3).normal(size=(100, 4))
    X[:6] += 8.0
    return X


def fit_plain(folder):
    X = six_apart()
    X[:3] -= 16.0  # on the other side
    return save(GammaGMM(["KNN", "LOF", "IForest"], **SETTINGS), X, folder)


def fit_named(folder):
    """Rows with names of columns, of which one is constant, and another scale."""
    table = pd.DataFrame(six_apart(), columns=["a", "b", "é\u2028", "<i>"])
    table["flat"] = 7.0
    estimator = GammaGMM(["KNN", "LOF"], scale="robust", progress=lambda *_: None, **SETTINGS)
    return save(estimator, table, folder)


def fit_skipped(folder):
    """A fit without scales whose second detector was skipped."""
    estimator = GammaGMM({"near": "KNN", "flat": Flat(), "local": "LOF"}, scale=None, **SETTINGS)
    with pytest.warns(DetectorWarning, match="flat"):  # and none that it is not saved
        return save(estimator, six_apart(), folder)


def fit_precomputed(folder):
    """Named scores with a column that is not used."""
    scores = GammaGMM(["KNN", "LOF", "HBOS"], **SETTINGS).fit(six_apart()).scores_
    table = pd.DataFrame(np.insert(scores, 1, 3.0, axis=1), columns=["k", "flat", "l", "h"])
    with pytest.warns(DetectorWarning, match="flat"):
        return save(GammaGMM("precomputed", **SETTINGS), table, folder)


def fit_one_detector(folder):
    with pytest.warns(UnsolvedRunsWarning):
        return save(GammaGMM(["KNN"], **SETTINGS), six_apart(), folder)


def fit_unsolved(folder):
    scores = np.random.default_rng(0).normal(size=(60, 3))
    settings = SETTINGS | {"p_high": 1e-12, "max_restarts": 0}
    with pytest.warns(NoSolutionWarning, match="The model has no estimate"):
        return save(GammaGMM("precomputed", **settings), scores, folder)


KINDS = {
    "plain": fit_plain,
    "named": fit_named,
    "skipped": fit_skipped,
    "precomputed": fit_precomputed,
    "one detector": fit_one_detector,
    "unsolved": fit_unsolved,
}


@pytest.fixture(scope="module")
def saved_fits(tmp_path_factory):
    """Function that gives the saved fit of a kind."""
    made = {}

    def get(kind):
        if kind not in made:
            made[kind] = KINDS[kind](tmp_path_factory.mktemp("fits"))
        return made[kind]

    return get


@pytest.fixture
def plain(saved_fits):
    return saved_fits("plain")


def plain_data(value):
    """Everything in a value, with the bits and the order of the memory of its arrays."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        order = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
        return value.shape, value.dtype.str, order, value.tobytes("K")
    if isinstance(value, np.ndarray):
        return value.shape, value.tolist()
    if isinstance(value, tuple | list):
        return [plain_data(item) for item in value]
    if hasattr(value, "estimators_"):
        return [plain_data(tree.tree_.threshold) for tree in value.estimators_]
    if hasattr(value, "__dataclass_fields__"):
        return {each.name: plain_data(getattr(value, each.name)) for each in fields(value)}
    return repr(float(value)) if isinstance(value, float) else value


def parts(fit):
    """Everything in a fit but its plan, its detectors and the default index."""
    index = fit.table.container.index
    has_index = SavedIndex.of(index) is not None
    table = replace(fit.table, container=None, guesses=())
    apart = ("plan", "detectors", "table")
    names = [each.name for each in fields(fit) if each.name not in apart]
    shown = index.tolist() if has_index else None
    return plain_data([shown, table, *(getattr(fit, name) for name in names)])


def outputs(fit):
    """What the command line and the report write."""
    texts = [make(fit) for make in (answer_text, answer_json, labels_csv)]
    return [*texts, posterior_to_text(fit.posterior), render(find(fit))]


@pytest.mark.parametrize("kind", KINDS)
def test_every_part_comes_back_to_the_bit(kind, saved_fits):
    saved = saved_fits(kind)
    fit, loaded = saved.fit, saved.load()
    assert parts(loaded) == parts(fit)
    assert loaded.detector_names == fit.detector_names
    assert loaded.plan.parameters == fit.plan.parameters
    assert loaded.plan.progress is None
    x = np.linspace(0.0, 1.0, 101)
    assert loaded.posterior.pdf(x).tobytes() == fit.posterior.pdf(x).tobytes()
    assert repr(loaded) == repr(fit)
    assert plain_data(summarise(loaded)) == plain_data(summarise(fit))
    pd.testing.assert_frame_equal(loaded.frame(), fit.frame())


def test_the_fits_have_what_a_file_can_have(saved_fits):
    assert saved_fits("plain").fit.evidence.separate_rows.n_rows == 6
    assert saved_fits("skipped").fit.column_scaler is None
    assert len(saved_fits("named").fit.column_scaler.kept) == 4
    assert saved_fits("unsolved").fit.posterior.is_degenerate
    # The order of the memory is not the usual one, and sums depend on it.
    assert not saved_fits("plain").fit.scores.flags.c_contiguous


@pytest.mark.parametrize("kind", KINDS)
def test_the_outputs_are_those_of_the_fit(kind, saved_fits):
    saved = saved_fits(kind)
    assert outputs(saved.load()) == outputs(saved.fit)


@pytest.mark.parametrize("kind", ["plain", "named", "skipped", "precomputed"])
def test_labels_teach_it_what_they_teach_the_fit(kind, saved_fits):
    saved = saved_fits(kind)
    rows = np.append([0, 1, 2, 3], np.arange(10, 100, 4))
    labels = (rows < 6).astype(int)
    updated, expected = saved.load().update(rows, labels), saved.fit.update(rows, labels)
    assert expected.ranking == "learned"
    assert parts(updated) == parts(expected)
    assert outputs(updated) == outputs(expected)


@pytest.mark.parametrize("kind", ["plain", "named", "skipped", "one detector", "precomputed"])
def test_its_detectors_score_new_rows_as_those_of_the_fit_do(kind, saved_fits):
    saved = saved_fits(kind)
    loaded, new = saved.load(), saved.X[:7] + 0.1
    np.testing.assert_array_equal(loaded.answering.scores(new), saved.fit.answering.scores(new))
    np.testing.assert_array_equal(
        loaded.answering.probabilities(new), saved.fit.answering.probabilities(new)
    )
    for name, detector in loaded.detectors.items():
        assert type(detector) is type(saved.fit.detectors[name])
        assert loaded.detectors[name] is detector  # it is made once


def test_with_the_same_versions_they_score_the_training_rows_as_before(saved_fits):
    for kind in ("plain", "named", "one detector"):
        detectors = saved_fits(kind).load().detectors
        assert {detectors.n_changed(name) for name in detectors} == {(0, 100)}


def test_another_key_gives_no_fit(plain):
    assert plain.load(key="another") is None
    assert plain.load(key="") is None


def test_the_same_fit_gives_the_same_bytes(plain, tmp_path):
    save_fit(plain.fit, tmp_path / "again", KEY, False)
    assert (tmp_path / "again").read_bytes() == plain.path.read_bytes()
    save_fit(plain.load(), tmp_path / "loaded", KEY, False)
    assert (tmp_path / "loaded").read_bytes() == plain.path.read_bytes()


def test_the_file_has_what_the_form_promises(plain):
    with np.load(plain.path, allow_pickle=False) as file:
        np.testing.assert_array_equal(file["scores"], plain.fit.scores)
        data = json.loads(file["document.json"])
    assert (data["schema"], data["version"], data["key"]) == ("gammagmm/saved-fit", 9, KEY)
    assert data["versions"]["numpy"] == np.__version__
    assert data["scores"] == "scores"
    assert data["runs"][1]["components"]["means"] == "runs.1.components.means"


def test_an_existing_file_stays_unless_told(plain, tmp_path):
    path = tmp_path / "rows.fit"
    path.write_text("mine")
    with pytest.raises(FileExistsError, match=r"rows\.fit already exists: pass overwrite=True"):
        save_fit(plain.fit, path, KEY, False)
    assert path.read_text() == "mine"
    save_fit(plain.fit, path, KEY, True)
    assert path.read_bytes() == plain.path.read_bytes()
    assert os.listdir(tmp_path) == ["rows.fit"]


def test_fits_that_cannot_be_saved_are_refused(plain, tmp_path):
    fit, path = plain.fit, tmp_path / "rows.fit"
    other = replace(fit.space, decision_scores=fit.space.decision_scores + 1e-15)
    with pytest.raises(SaveError, match="its parts do not follow from scores and runs"):
        save_fit(replace(fit, space=other), path, KEY, False)
    runs = (replace(fit.runs[0], weights=np.array([np.nan])), fit.runs[1])
    with pytest.raises(
        SavedFileError, match=r"The data to write cannot be .*runs\.weights must be"
    ):
        save_fit(replace(fit, runs=runs), path, KEY, False)
    assert os.listdir(tmp_path) == []


INDEXES = {
    "dates": pd.date_range("2024-01-01", periods=100, freq="h", name="at"),
    "levels": pd.MultiIndex.from_product([range(10), list("abcdefghij")]),
    "mixed": pd.Index([1, "1", 2.5, None, *range(96)]),
    "halves": pd.Index(np.arange(100) / 2),
    "name": pd.RangeIndex(100, name=7),
}


@pytest.mark.parametrize("index", INDEXES.values(), ids=INDEXES)
def test_an_index_of_another_kind_becomes_texts_with_a_note(index, plain, tmp_path):
    fit = knowing(plain.fit, container=Container(index=index))
    save_fit(fit, tmp_path / "rows.fit", KEY)
    loaded = load_fit(tmp_path / "rows.fit", KEY)
    texts = [str(each) for each in index]
    name = None if index.name is None else str(index.name)
    assert loaded.frame().index.equals(pd.Index(texts, name=name))
    assert loaded.table.row_names == fit.table.row_names == tuple(texts)
    assert outputs(replace(loaded, table=replace(loaded.table, notes=()))) == outputs(
        replace(fit, table=replace(fit.table, notes=()))
    )
    [note] = [note for note in loaded.notes if note.code == "load.index"]
    assert type(index).__name__ in note.fields["kind"]
    # It is text now, so nothing changes any more.
    save_fit(loaded, tmp_path / "again.fit", KEY)
    assert load_fit(tmp_path / "again.fit", KEY).notes == loaded.notes


def test_the_names_of_the_rows_are_in_the_file_once(plain, tmp_path):
    frame = pd.DataFrame(plain.X, index=[f"row {i}" for i in range(100)], columns=list("abcd"))
    own = save(plain.estimator.__class__(**plain.estimator.get_params()), frame, tmp_path)
    names = [name for name in members(own.path) if name.startswith(("ids", "index"))]
    assert names == ["index.texts.npy"]
    assert own.load().table.row_names == tuple(frame.index)


def test_no_file_is_the_usual_error(plain, tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing"):
        plain.load(tmp_path / "nothing")


def changed_member(files):
    """The file with a changed number and right checksums, but the digest of before."""
    scores = np.load(io.BytesIO(files["scores.npy"]))
    scores[0, 0] += 1.0
    return packed(files | {"scores.npy": npy(scores)}, is_forged=False)


def with_array(name, change):
    """Function that changes an array of a file."""

    def forge(files, data):
        array = np.load(io.BytesIO(files[f"{name}.npy"]))
        files[f"{name}.npy"] = npy(change(array))

    return forge


def with_value(*place):
    """Function that changes a value of the document of a file; the last of `place` is the value."""

    def forge(files, data):
        *names, last, value = place
        for name in names:
            data = data[name]
        data[last] = value

    return forge


def with_label_outside(files, data):
    """A label of a row that does not exist."""
    for name, value in (("rows", 100), ("labels", 1), ("at_random", True), ("picked", False)):
        kind = np.load(io.BytesIO(files[f"known_rows.{name}.npy"])).dtype
        files[f"known_rows.{name}.npy"] = npy(np.array([value], dtype=kind))


def with_other_detector(files, data):
    """The state of a detector with another name, which is the right one in the fit."""
    state = members(io.BytesIO(np.load(io.BytesIO(files["stored.0.state.npy"])).tobytes()))
    forged = packed(state | {"document.json": json.dumps({"detector": "HBOS"})})
    files["stored.0.state.npy"] = npy(np.frombuffer(forged, dtype=np.uint8))


FORGED = {
    "another schema": with_value("schema", "gammagmm/posterior"),
    "an earlier version": with_value("version", 3),
    "a later version": with_value("version", 10),
    "a value of a wrong type": with_value("runs", 0, "elbo", "x"),
    "an array of a wrong type": with_array("scores", lambda a: a.astype(np.float32)),
    "an array of a wrong shape": with_array("rows", lambda a: a[:-1]),
    "columns that do not exist": with_array("column_scaler.kept", lambda a: a + 1),
    "a run that does not fit": with_array("runs.0.components.means", lambda a: a[:, :2]),
    "evidence of other rows": with_array("evidence.separate_rows.rows", lambda a: a + 500),
    "a label of no row": with_label_outside,
    "an unknown detector": with_value("stored", 0, "choice", "os.system"),
    "another detector": with_value("stored", 0, "choice", "HBOS"),
    "the state of another detector": with_other_detector,
}


@pytest.mark.parametrize("kind", FORGED)
def test_a_forged_file_is_refused(kind, plain, tmp_path):
    files = members(plain.path)
    data = json.loads(files["document.json"])
    FORGED[kind](files, data)
    path = tmp_path / "rows.fit"
    path.write_bytes(packed(files | {"document.json": json.dumps(data)}))
    with pytest.raises(SavedFileError) as caught:
        plain.load(path)
    assert str(path) in caught.value.what
    assert caught.value.todo


def test_a_header_that_declares_too_much_is_refused_before_memory_is_taken(plain, tmp_path):
    files = members(plain.path)
    # As long as it was, and 800 times as many bytes.
    files["scores.npy"] = files["scores.npy"].replace(b"(100, 3), } ", b"(100, 2400)}", 1)
    path = tmp_path / "rows.fit"
    path.write_bytes(packed(files))
    with pytest.raises(SavedFileError):
        plain.load(path)


def test_damaged_files_are_refused_and_nothing_is_run(plain, tmp_path, monkeypatch):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "sprung"),)

    files = members(plain.path)
    file = io.BytesIO()
    np.save(file, np.array([[Trap()]], dtype=object), allow_pickle=True)
    bomb = files | {"zeros.npy": npy(np.zeros(10_000_000))}
    contents = [
        *(b"", b"PK\5\6", pickle.dumps(Trap()), b"\0" * 10_000),
        packed(files | {"scores.npy": file.getvalue()}),
        packed(bomb, zipfile.ZIP_DEFLATED),
        changed_member(files),
        *(packed({"document.json": text}) for text in (b"[", b"[" * 9999, b"\xff", b"[]")),
    ]
    path = tmp_path / "rows.fit"
    for content in contents:
        path.write_bytes(content)
        with pytest.raises(SavedFileError):
            plain.load(path)
    assert not (tmp_path / "sprung").exists()
    monkeypatch.setattr(archives, "MAX_ARCHIVE_BYTES", 1000)
    with pytest.raises(SavedFileError):
        plain.load()


@needs_posix
def test_an_endless_source_is_refused(plain):
    with pytest.raises(SavedFileError):
        plain.load("/dev/zero")


def test_loading_imports_no_detectors(plain):
    code = f"""
import sys
from gammagmm.estimator.saved_fit import load_fit
print(load_fit({str(plain.path)!r}, {KEY!r}).n_flagged)
unused = {{"pyod", "numba", "sklearn", "scipy.stats", "pandas", "matplotlib", "torch"}}
print(unused & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.split("\n")[:2] == [str(plain.fit.n_flagged), "set()"]
