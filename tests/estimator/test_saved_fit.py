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
    DetectorError,
    DetectorWarning,
    NoSolutionWarning,
    SavedFileError,
    SavedFitWarning,
    SaveError,
)
from gammagmm.estimator.frames import Container
from gammagmm.estimator.saved_fit import load_fit, save_fit
from gammagmm.estimator.saved_parts import SavedIndex
from gammagmm.estimator.summary import summarise
from gammagmm.posterior.storage import posterior_to_text
from gammagmm.report.findings import find
from gammagmm.report.origin import Origin
from gammagmm.report.page import render
from tests.support.flat_detector import Flat
from tests.support.mutated_files import JSON_VALUES, mutate
from tests.support.needs import needs_posix
from tests.support.saved_fits import members, npy, packed

SETTINGS = {"n_components": 10, "n_runs": 2, "n_draws": 100, "random_state": 0}
KEY = "rows 5d41, parameters 402a"
N_MUTATIONS = 300
N_CHANGED_MEMBERS = 150


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
    return save(GammaGMM(["KNN", "LOF", "IForest"], **SETTINGS), six_apart(), folder)


def fit_named(folder):
    """Rows with names of columns, of which one is constant, and another scale."""
    table = pd.DataFrame(six_apart(), columns=["a", "b", "é\u2028", "<i>"])
    table["flat"] = 7.0
    estimator = GammaGMM(["KNN", "LOF"], scale="robust", progress=lambda *_: None, **SETTINGS)
    return save(estimator, table, folder)


def fit_skipped(folder):
    """A fit without scales whose second detector was skipped."""
    estimator = GammaGMM({"near": "KNN", "flat": Flat(), "local": "LOF"}, scale=None, **SETTINGS)
    with pytest.warns(DetectorWarning, match="flat"), pytest.warns(SavedFitWarning, match="flat"):
        return save(estimator, six_apart(), folder)


def fit_precomputed(folder):
    """Named scores with a column that is not used."""
    scores = GammaGMM(["KNN", "LOF", "HBOS"], **SETTINGS).fit(six_apart()).scores_
    table = pd.DataFrame(np.insert(scores, 1, 3.0, axis=1), columns=["k", "flat", "l", "h"])
    with pytest.warns(DetectorWarning, match="flat"):
        return save(GammaGMM("precomputed", **SETTINGS), table, folder)


def fit_one_detector(folder):
    return save(GammaGMM(["KNN"], **SETTINGS), six_apart(), folder)


def fit_unsolved(folder):
    scores = np.random.default_rng(0).normal(size=(60, 3))
    settings = SETTINGS | {"p_high": 1e-12, "max_restarts": 0}
    with pytest.warns(NoSolutionWarning, match="No solution in any of 2 runs"):
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


def saved_index(fit):
    return SavedIndex.of(fit.container.index)


def parts(fit):
    """Everything in a fit but its plan, its detectors and the default index."""
    index = None if saved_index(fit) is None else fit.container.index.tolist()
    fit = replace(fit, container=replace(fit.container, index=index))
    names = [each.name for each in fields(fit) if each.name not in ("plan", "detectors")]
    return plain_data([getattr(fit, name) for name in names])


def outputs(fit, X):
    """What the command line and the report write."""
    origin = Origin()
    texts = [make(fit, origin) for make in (answer_text, answer_json, labels_csv)]
    return [*texts, posterior_to_text(fit.posterior), render(find(fit, origin))]


@pytest.mark.parametrize("kind", KINDS)
def test_every_part_comes_back_to_the_bit(kind, saved_fits):
    saved = saved_fits(kind)
    fit, loaded = saved.fit, saved.load()
    assert parts(loaded) == parts(fit)
    assert loaded.detector_names == fit.detector_names
    assert loaded.feature_names == fit.feature_names
    assert loaded.plan.parameters == fit.plan.parameters
    assert (loaded.plan.progress, loaded.plan.verbose) == (None, 0)
    x = np.linspace(0.0, 1.0, 101)
    assert loaded.posterior.pdf(x).tobytes() == fit.posterior.pdf(x).tobytes()
    assert repr(loaded) == repr(fit)
    assert plain_data(summarise(loaded)) == plain_data(summarise(fit))
    pd.testing.assert_frame_equal(loaded.frame(), fit.frame())


def test_the_fits_have_what_a_file_can_have(saved_fits):
    assert saved_fits("plain").fit.evidence.group.n_rows == 6
    assert saved_fits("skipped").fit.column_scaler is None
    assert len(saved_fits("named").fit.column_scaler.kept) == 4
    assert saved_fits("unsolved").fit.posterior.is_degenerate
    # The order of the memory is not the usual one, and sums depend on it.
    assert not saved_fits("plain").fit.scores.flags.c_contiguous


@pytest.mark.parametrize("kind", KINDS)
def test_the_outputs_are_those_of_the_fit(kind, saved_fits):
    saved = saved_fits(kind)
    assert outputs(saved.load(), saved.X) == outputs(saved.fit, saved.X)


@pytest.mark.parametrize("kind", ["plain", "precomputed", "unsolved"])
def test_labels_update_it_as_they_update_the_fit(kind, saved_fits):
    saved = saved_fits(kind)
    fit, loaded = saved.fit, saved.load()
    rows = fit.labelled_rows.suggest(12, random_state=0)
    np.testing.assert_array_equal(loaded.labelled_rows.suggest(12, random_state=0), rows)
    labels = (np.arange(12) < 2).astype(int)
    updated, expected = loaded.update(rows, labels), fit.update(rows, labels)
    assert parts(updated) == parts(expected)
    assert outputs(updated, saved.X) == outputs(expected, saved.X)


@pytest.mark.parametrize("kind", ["plain", "named", "skipped", "precomputed"])
def test_labels_teach_it_what_they_teach_the_fit(kind, saved_fits):
    saved = saved_fits(kind)
    rows = np.append([0, 1, 2, 3], np.arange(10, 100, 4))
    labels = (rows < 6).astype(int)
    updated, expected = saved.load().update(rows, labels), saved.fit.update(rows, labels)
    assert expected.ranking == "learned"
    assert parts(updated) == parts(expected)
    assert outputs(updated, saved.X) == outputs(expected, saved.X)


def test_it_cannot_score_new_rows_without_its_detectors(plain):
    loaded = plain.load()
    assert loaded.detectors == {"KNN": None, "LOF": None, "IForest": None}
    for name in ("score_new", "probabilities_new"):
        with pytest.raises(DetectorError, match="not have the detectors KNN, LOF, IForest, so it"):
            getattr(loaded, name)


def test_precomputed_scores_need_no_detectors(saved_fits):
    saved = saved_fits("precomputed")
    loaded = saved.load()
    new = saved.X[:7] + 0.1
    np.testing.assert_array_equal(loaded.score_new(new), saved.fit.score_new(new))
    expected = saved.fit.probabilities_new(new)
    np.testing.assert_array_equal(loaded.probabilities_new(new), expected)


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
    assert (data["schema"], data["version"], data["key"]) == ("gammagmm/saved-fit", 3, KEY)
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
    for index in (pd.Index(np.arange(100) / 2), pd.RangeIndex(100, name=7)):
        with pytest.raises(SaveError, match=r"must consist of .* or texts\. Call reset_index\(\)"):
            save_fit(replace(fit, container=Container(index=index)), path, KEY, False)
    other = replace(fit.space, consensus=fit.space.consensus + 1e-15)
    with pytest.raises(SaveError, match="its parts do not follow from scores and runs"):
        save_fit(replace(fit, space=other), path, KEY, False)
    runs = (replace(fit.runs[0], weights=np.array([np.nan])), fit.runs[1])
    with pytest.raises(
        SavedFileError, match=r"The data to write cannot be .*runs\.weights must be"
    ):
        save_fit(replace(fit, runs=runs), path, KEY, False)
    assert os.listdir(tmp_path) == []


def test_no_file_is_the_usual_error(plain, tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing"):
        plain.load(tmp_path / "nothing")


def changed_member(files):
    """The file with a changed number and right checksums, but the digest of before."""
    scores = np.load(io.BytesIO(files["scores.npy"]))
    scores[0, 0] += 1.0
    return packed(files | {"scores.npy": npy(scores)}, is_forged=False)


DROP = object()


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (
            ["schema"],
            "gammagmm/posterior",
            "its schema must be 'gammagmm/saved-fit', got 'gammagmm/po",
        ),
        (["version"], 4, "version 4, this gammagmm reads version 3. Upgrade gammagmm"),
        (["version"], 2, "an earlier version of gammagmm saved it. Fit the rows again"),
        (["rows"], None, "fit.rows must be text, got NoneType"),
        (["parameters", "detectors"], "precomputed", "its choices do not fit to its detectors"),
        (["parameters", "detectors"], "fast", "its choices do not fit to its detectors"),
        (["parameters", "backend"], "cupy", "its parameters are not valid: backend='cupy'"),
        (["parameters", "learn"], DROP, "its parameters are not valid: .*learn"),
        (["parameters", "n_jobs"], "abc", "not valid: n_jobs must be a whole number or None, got"),
        (["parameters", "n_jobs"], 1.5, "not valid: n_jobs must be a whole number or None, got"),
        (["parameters", "n_jobs"], True, "not valid: n_jobs must be a whole number or None, got"),
        (["parameters", "n_jobs"], 0, "its parameters are not valid: n_jobs must not be 0"),
        (["choices"], ["KNN", "LOF"], "there are 3 detectors, but 2 choices"),
        (["choices", 0], "os.system", "its choices do not fit to its detectors"),
        (["detector_seed", "bit_generator"], "default_rng", "must be one of .*PCG64"),
        (["detector_seed", "entropy"], [-1], "a seed must have numbers from 0"),
        (["detector_seed", "pool_size"], 10**9, "a seed must have .* a pool of 4 to 64"),
        (["learning_seed"], -1, "its learning_seed must lie between"),
        (["known_rows", "rows"], "scores", "its member scores.npy is .*used twice"),
        (["index"], {"name": None, "numbers": None, "texts": None}, "either numbers or texts"),
        (["mixture_prior"], {"covariance": None}, "has missing or unexpected fields"),
        (["key"], 7, "key must be text, got int"),
        (["key"], DROP, "key must be text, got NoneType"),
        (["notes"], DROP, "fit has missing or unexpected fields: notes"),
        (["pickle"], "x", "fit has missing or unexpected fields: pickle"),
        (["versions"], ["1"], "fit.versions must be an object, got list"),
        (["versions", "numpy"], 2, "fit.versions.numpy must be text, got int"),
        (["n_features"], 0, "its feature_names do not fit to 0 columns"),
        (["n_features"], 3, "its column_scaler does not fit to 3 columns"),
        (["feature_names"], ["a"], "its feature_names do not fit to 4 columns"),
        (["detectors", 0, "status"], "failed", "but 2 detectors are used"),
        (["detectors", 0, "status"], "odd", "fit.detectors.status must be one of .*, got 'odd'"),
        (["detectors", 0, "seconds"], None, "seconds must hold finite numbers, got NoneType"),
        (["detectors", 0, "name"], "LOF", "its detectors have repeated names"),
        (["detectors", 0, "n_rows"], -1, "its detectors have .* negative numbers of rows"),
        (["scores"], "nowhere", "its member nowhere.npy is missing"),
        (["scores"], [[1.0]], "fit.scores must be text, got list"),
        (["runs", 1, "weights"], "runs.0.weights", "its member runs.0.weights.npy is .*used twice"),
        (["runs"], [], "it has 0 runs instead of 2"),
        (["runs", 0, "tau"], None, "the solution, the weights and the posterior of a run do not"),
        (["runs", 0, "status"], "unsolved", "the solution, the weights and the posterior of a run"),
        (["runs", 0, "posterior"], None, "the solution, the weights and the posterior of a run"),
        (["runs", 0, "n_iter"], -1, "the solution, the weights and the posterior of a run"),
        (["runs", 0, "elbo"], None, "fit.runs.elbo must hold finite numbers, got NoneType"),
        (["runs", 0, "elbo"], 1e999, "fit.runs.elbo must hold finite numbers, got inf"),
        (["runs", 0, "reachable"], [0.1], "fit.runs.reachable must have 2 items, got 1"),
        (["runs", 0, "posterior", "prob_zero"], 0.2, "fit.runs.posterior cannot be .* sum to 1"),
        (["runs", 0, "posterior", "standard_error"], 1e300, "the solution, the weights and the po"),
        (["runs", 0, "components"], None, "fit.runs.components must be an object, got NoneType"),
        (["evidence", "constraints", "p0"], 0.02, "it was fitted with Constraints.p0=0.02"),
        (["evidence", "group", "rows"], None, "the group in its evidence has rows or detectors"),
        (["evidence", "group", "n_rows"], 3, "the group in its evidence has rows or detectors"),
        (["evidence", "group", "detectors"], ["X"], "the group in its evidence has rows or detec"),
    ],
)
def test_a_document_that_does_not_fit_is_refused(place, value, words, plain, tmp_path):
    files = members(plain.path)
    data = json.loads(files["document.json"])
    inside = data
    for name in place[:-1]:
        inside = inside[name]
    if value is DROP:
        del inside[place[-1]]
    else:
        inside[place[-1]] = value
    path = tmp_path / "rows.fit"
    path.write_bytes(packed(files | {"document.json": json.dumps(data)}))
    with pytest.raises(SavedFileError, match=words) as caught:
        plain.load(path)
    assert str(caught.value).startswith(f"{path} cannot be read as a saved fit: ")
    assert caught.value.todo


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        (
            "scores",
            lambda a: a[:, :2],
            r"its scores have the shape \(100, 2\), but 3 detectors are",
        ),
        ("scores", lambda a: a[:1], r"its scores have the shape \(1, 3\)"),
        ("scores", lambda a: a.ravel(), r"its scores have the shape \(300,\)"),
        ("scores", lambda a: a.astype(np.float32), "fit.scores must be an array of finite numbers"),
        (
            "scores",
            lambda a: np.where(a == a.max(), np.inf, a),
            "fit.scores must be an array of fi",
        ),
        ("scores", lambda a: a * 0.0, "scores of KNN cannot be used: every row has the same score"),
        (
            "scores",
            lambda a: a / a.max(axis=0) * 1.7e308,
            "scores of KNN cannot be used: .* too wide",
        ),
        ("scores", lambda a: a.astype("U9"), "fit.scores must be an array of finite numbers"),
        ("scores", lambda a: a.astype(object), "the array scores has no plain numbers"),
        ("rows", lambda a: a[:-1], "its training rows do not fit to its scores and columns"),
        ("rows", lambda a: a[:, :2], "its training rows do not fit to its scores and columns"),
        (
            "known_rows.rows",
            lambda a: a[:0].astype(float),
            "must be an array of .* of the type int64",
        ),
        ("known_rows.rows", lambda a: np.append(a, 3), "its known rows do not fit to 100 rows"),
        ("rows", lambda a: a * np.nan, "fit.rows must be an array of finite numbers"),
        ("column_scaler.kept", lambda a: a[::-1], "its column_scaler does not fit to 4 columns"),
        ("column_scaler.kept", lambda a: a + 1, "its column_scaler does not fit to 4 columns"),
        ("column_scaler.kept", lambda a: a - 1, "its column_scaler does not fit to 4 columns"),
        ("column_scaler.spread", lambda a: -a, "its column_scaler does not fit to 4 columns"),
        ("column_scaler.centre", lambda a: a[:2], "its column_scaler does not fit to 4 columns"),
        ("column_scaler.exponent", lambda a: a * 1.0, "must be an array of .* of the type int32"),
        ("evidence.group.rows", lambda a: a + 500, "the group in its evidence has rows or det"),
        ("evidence.group.rows", lambda a: a[:-1], "the group in its evidence has rows or det"),
        ("runs.0.weights", lambda a: a[:-1], "the solution, the weights and the posterior of a"),
        ("runs.0.components.alpha", lambda a: a[:-1], "have shapes that do not fit together"),
        ("runs.0.components.alpha", lambda a: a[:0], "have shapes that do not fit together"),
        ("runs.0.components.alpha", lambda a: -a, "have parameters that are not positive"),
        ("runs.0.components.means", lambda a: a[:, :2], "have shapes that do not fit together"),
        ("runs.0.components.covariances", lambda a: -a, "have parameters that are not positive"),
        ("runs.1.components.mean_precision", lambda a: a * np.nan, "must be an array of finite"),
        ("runs.1.components.degrees_of_freedom", lambda a: a * 0, "that are not positive"),
    ],
)
def test_an_array_that_does_not_fit_is_refused(name, change, words, plain, tmp_path):
    files = members(plain.path)
    array = np.load(io.BytesIO(files[f"{name}.npy"]))
    path = tmp_path / "rows.fit"
    path.write_bytes(packed(files | {f"{name}.npy": npy(change(array))}))
    with pytest.raises(SavedFileError, match=words) as caught:
        plain.load(path)
    assert caught.value.todo


def test_a_header_that_declares_too_much_is_refused_before_memory_is_taken(plain, tmp_path):
    files = members(plain.path)
    # As long as it was, and 800 times as many bytes.
    files["scores.npy"] = files["scores.npy"].replace(b"(100, 3), } ", b"(100, 2400)}", 1)
    path = tmp_path / "rows.fit"
    path.write_bytes(packed(files))
    with pytest.raises(SavedFileError, match="the array scores has no plain numbers or a wrong si"):
        plain.load(path)


def test_compressed_members_and_large_files_are_refused(plain, tmp_path, monkeypatch):
    path = tmp_path / "rows.fit"
    bomb = members(plain.path) | {"zeros.npy": npy(np.zeros(10_000_000))}
    path.write_bytes(packed(bomb, zipfile.ZIP_DEFLATED))
    with pytest.raises(SavedFileError, match="its table of contents is damaged, or its members ar"):
        plain.load(path)
    monkeypatch.setattr(archives, "MAX_BYTES", 1000)
    with pytest.raises(SavedFileError, match=r"it is larger than 1,000 bytes\. Fit the rows again"):
        plain.load()


def test_other_files_are_refused_and_nothing_is_run(plain, tmp_path):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "sprung"),)

    files = members(plain.path)
    trap = np.array([[Trap()]], dtype=object)
    file = io.BytesIO()
    np.save(file, trap, allow_pickle=True)
    contents = {
        "it is empty or not a file": [b""],
        "it is damaged or not a saved file": [b"PK\5\6", pickle.dumps(Trap()), b"\0" * 10_000],
        "the array scores has no plain": [packed(files | {"scores.npy": file.getvalue()})],
        "its member document.json is missing": [packed({}), packed({"X.npy": npy(np.eye(2))})],
        "it was changed after it was saved": [changed_member(files)],
        "it is not JSON": [packed({"document.json": b"["}), packed({"document.json": b"[" * 9999})],
        "can't decode byte": [packed({"document.json": b"\xff"})],
        "its schema must be": [packed({"document.json": b"[]"})],
    }
    path = tmp_path / "rows.fit"
    for words, each in contents.items():
        for content in each:
            path.write_bytes(content)
            with pytest.raises(SavedFileError, match=words):
                plain.load(path)
    assert not (tmp_path / "sprung").exists()


@needs_posix
def test_an_endless_source_is_refused(plain):
    with pytest.raises(SavedFileError, match="it is empty or not a file"):
        plain.load("/dev/zero")


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A fit whose file is small."""
    scores = GammaGMM(["KNN", "LOF"], **SETTINGS).fit(six_apart()).scores_
    return save(GammaGMM("precomputed", **SETTINGS), scores, tmp_path_factory.mktemp("small"))


def test_damaged_files_are_refused_or_give_the_same_fit(small, tmp_path):
    rng, path, expected = np.random.default_rng(1), tmp_path / "rows.fit", parts(small.fit)
    content, n_refused = small.path.read_bytes(), 0
    for _ in range(N_MUTATIONS):
        path.write_bytes(mutate(content, "npz", rng))
        try:
            loaded = load_fit(path, KEY)
        except SavedFileError:
            n_refused += 1
        else:
            # Some bytes of a zip file mean nothing, such as the dates.
            assert loaded is None or parts(loaded) == expected
    assert n_refused > 0.8 * N_MUTATIONS


def change_member(content, rng):
    """The file with one member changed; its sizes and checksums are right."""
    files = members(io.BytesIO(content))
    if rng.random() < 0.5:
        name = str(rng.choice(list(files)))
        return packed(files | {name: mutate(files[name], "npy", rng)})
    data = inside = json.loads(files["document.json"])
    place = "runs"
    while isinstance(inside[place], dict | list) and inside[place] and rng.random() < 0.9:
        inside = inside[place]
        keys = list(inside) if isinstance(inside, dict) else range(len(inside))
        place = keys[int(rng.integers(len(keys)))]
    inside[place] = JSON_VALUES[int(rng.integers(len(JSON_VALUES)))]
    return packed(files | {"document.json": json.dumps(data)})


def test_files_with_other_numbers_are_refused_or_give_a_fit(small, tmp_path):
    rng, path = np.random.default_rng(2), tmp_path / "rows.fit"
    content, n_refused = small.path.read_bytes(), 0
    for _ in range(N_CHANGED_MEMBERS):
        path.write_bytes(change_member(content, rng))
        try:
            loaded = load_fit(path, KEY)
        except SavedFileError:
            n_refused += 1
        else:
            assert loaded.n_rows == 100
            assert len(loaded.lines) == 4
    assert 0 < n_refused < N_CHANGED_MEMBERS


def test_loading_imports_no_detectors(plain):
    code = f"""
import sys
from gammagmm.estimator.saved_parts import SavedIndex
from gammagmm.estimator.saved_fit import load_fit
print(load_fit({str(plain.path)!r}, {KEY!r}).n_flagged)
unused = {{"pyod", "numba", "sklearn", "scipy.stats", "pandas", "matplotlib", "torch"}}
print(unused & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.split("\n")[:2] == [str(plain.fit.n_flagged), "set()"]
