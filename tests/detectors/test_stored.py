"""Stored detectors: the same scores to the bit, and bytes that were forged run nothing."""

from __future__ import annotations

import io
import json
import zipfile

import numpy as np
import pytest

from gammagmm.detectors.fit import score_rows
from gammagmm.detectors.presets import NAMES, resolve_detectors
from gammagmm.detectors.stored import (
    OBJECTS,
    PLAIN,
    Training,
    check_types,
    even_places,
    from_bytes,
    to_bytes,
)
from gammagmm.errors import DetectorError, SavedFileError
from tests.support.saved_fits import change_array, change_value, members, npy, packed

# With more than 15 columns, neighbours are searched without a tree; with fewer rows, the compiled
# functions are not used.
SIZES = {"many rows": (1500, 5), "many columns": (120, 18)}
N_FORGED = 40


def fitted(name, n_rows=1500, n_columns=5):
    """The detector, and the rows that it was fitted on."""
    X = np.random.default_rng(4).normal(size=(n_rows, n_columns))
    detector = resolve_detectors([name], n_rows)[0][name]
    if name in ("AE", "VAE"):
        pytest.importorskip("torch")
        detector.epoch_num = 1
    if hasattr(detector, "random_state"):
        detector.random_state = 1
    return detector.fit(X), X


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", NAMES)
def test_a_stored_detector_gives_the_same_scores_to_the_bit(name, size):
    detector, X = fitted(name, *SIZES[size])
    new = np.concatenate([X[:40] + 0.1, X[:40] * 9.0, X[:3]])
    before = score_rows({name: detector}, new)
    # The rows and scores of the fit are those of the detector, or it was fitted on other rows.
    for training in (Training(X, detector.decision_scores_), Training(X[:7], np.zeros(7))):
        content = to_bytes(name, detector, training)
        assert to_bytes(name, detector, training) == content
        again = from_bytes(name, content, training)
        assert type(again) is type(detector)
        assert vars(again).keys() == vars(detector).keys()
        np.testing.assert_array_equal(score_rows({name: again}, new), before)
        np.testing.assert_array_equal(again.decision_scores_, detector.decision_scores_)
        np.testing.assert_array_equal(again.labels_, detector.labels_)


def test_rows_and_scores_of_the_fit_are_not_stored_twice():
    detector, X = fitted("COPOD")
    alone = to_bytes("COPOD", detector, Training(X[:7], np.zeros(7)))
    shared = to_bytes("COPOD", detector, Training(X, detector.decision_scores_))
    assert len(alone) > X.nbytes > 20 * len(shared)
    again = from_bytes("COPOD", shared, Training(X, detector.decision_scores_))
    np.testing.assert_array_equal(again.O, detector.O)


@pytest.mark.parametrize("name", NAMES)
def test_the_types_are_those_that_the_detector_needs(name):
    detector, X = fitted(name)
    content = to_bytes(name, detector, Training(X[:7], np.zeros(7)))
    waiting, found = [json.loads(members(io.BytesIO(content))["document.json"])], set()
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            found.add(value["type"])
            waiting.append(value["content"])
        elif isinstance(value, list):
            waiting += value
    assert found - set(PLAIN) == set(OBJECTS.get(name, ()))


def with_attribute(content, value):
    """The bytes of a state that has this value as one more attribute."""
    files = members(io.BytesIO(content))
    document = json.loads(files["document.json"])
    document["content"].append(["more", value])
    return packed(files | {"document.json": json.dumps(document)})


@pytest.mark.parametrize("name", ["HBOS", "PCA"])
@pytest.mark.parametrize(
    "kind", ["DummyClassifier", "os.mkdir", "__import__", "NearestNeighbors", None, 1, ["dict"], {}]
)
def test_other_types_are_refused_before_anything_is_made(name, kind):
    detector, X = fitted(name)
    training = Training(X, detector.decision_scores_)
    content = to_bytes(name, detector, training)
    node = {"type": kind, "content": [["n_neighbors", 5]]}
    for value in (node, [node], {"type": "tuple", "content": [1, node]}):
        forged = with_attribute(content, value)
        for read in (check_types, lambda name, state: from_bytes(name, state, training)):
            with pytest.raises(ValueError, match=f"{name} does not need the type"):
                read(name, forged)


def test_parts_of_another_form_are_refused():
    detector, X = fitted("HBOS")
    content = to_bytes("HBOS", detector, Training(X, detector.decision_scores_))
    for node in ({}, {"type": "dict"}, {"type": "dict", "content": [], "state": []}):
        with pytest.raises(SavedFileError):
            check_types("HBOS", with_attribute(content, node))


def test_a_detector_is_not_read_as_another_one():
    detector, X = fitted("IForest")
    content = to_bytes("IForest", detector, Training(X, detector.decision_scores_))
    for name in ("KNN", "HBOS", "os.system"):
        with pytest.raises(ValueError, match=name):
            check_types(name, content)


def test_damaged_and_compressed_bytes_are_refused():
    detector, X = fitted("HBOS")
    content = to_bytes("HBOS", detector, Training(X, detector.decision_scores_))
    compressed = packed(members(io.BytesIO(content)), zipfile.ZIP_DEFLATED)
    others = [packed({}), packed({"document.json": b"[" * 9999})]
    for wrong in (b"", content[:-30], compressed, *others):
        with pytest.raises(SavedFileError):
            check_types("HBOS", wrong)


def change_nodes(state):
    """A forest whose first node has itself as a child: following it would not end."""
    state["left_child"][0] = 0
    return state


def change_columns(state):
    """A forest whose first node tests a column far outside the rows."""
    state["feature"][0] = 2**40
    return state


@pytest.mark.parametrize("change", [change_nodes, change_columns, lambda nodes: nodes[:-1]])
def test_trees_that_lead_nowhere_are_refused(change):
    detector, X = fitted("IForest")
    training = Training(X, detector.decision_scores_)
    files = members(io.BytesIO(to_bytes("IForest", detector, training)))
    arrays = {name: np.load(io.BytesIO(part)) for name, part in files.items() if "npy" in name}
    name = next(name for name, array in arrays.items() if array.dtype.names)
    with pytest.raises(ValueError, match=r"lead nowhere|shape"):
        from_bytes("IForest", packed(files | {name: npy(change(arrays[name]))}), training)


def test_rows_with_other_columns_than_the_fit_are_refused():
    detector, X = fitted("KNN")
    content = to_bytes("KNN", detector, Training(X[:7], np.zeros(7)))
    with pytest.raises(ValueError, match="columns of the fit"):
        from_bytes("KNN", content, Training(X[:7, :4], np.zeros(7)))


def test_an_object_of_another_class_than_the_detector_has_there_is_refused():
    detector, X = fitted("IForest")
    training = Training(X, detector.decision_scores_)
    files = members(io.BytesIO(to_bytes("IForest", detector, training)))
    document = files["document.json"].replace(b"IsolationForest", b"ExtraTreeRegressor")
    with pytest.raises(ValueError, match="no forest"):
        from_bytes("IForest", packed(files | {"document.json": document}), training)


@pytest.mark.parametrize("name", NAMES)
def test_forged_numbers_are_refused_or_give_scores(name):
    """And they never end the process, as compiled code would that follows a wrong number."""
    detector, X = fitted(name)
    training, rng = Training(X, detector.decision_scores_), np.random.default_rng(7)
    files = members(io.BytesIO(to_bytes(name, detector, training)))
    arrays = [each for each in files if each.endswith(".npy")]
    n_refused = 0
    for _ in range(N_FORGED):
        forged = dict(files)
        if rng.random() < 0.5 or not arrays:
            forged["document.json"] = change_value(files["document.json"], rng)
        else:
            place = str(rng.choice(arrays))
            forged[place] = npy(change_array(np.load(io.BytesIO(files[place])), rng))
        try:
            again = from_bytes(name, packed(forged), training)
        except Exception:
            n_refused += 1
            continue
        try:
            scores = score_rows({name: again}, X[:20])
        except DetectorError:
            continue
        assert scores.shape == (20, 1)
    assert 0 < n_refused < N_FORGED


def test_a_network_that_declares_too_much_is_refused_before_memory_is_taken():
    detector, X = fitted("AE")
    training = Training(X, detector.decision_scores_)
    files = members(io.BytesIO(to_bytes("AE", detector, training)))
    document = files["document.json"].replace(b"64, ", b"64000000000, ", 1)
    assert document != files["document.json"]
    with pytest.raises(RuntimeError, match="size mismatch"):
        from_bytes("AE", packed(files | {"document.json": document}), training)


def test_rows_are_tried_evenly():
    assert even_places(3).tolist() == [0, 1, 2]
    places = even_places(100_000)
    assert len(places) == 200
    assert (places[0], places[-1]) == (0, 99_999)
    assert np.ptp(np.diff(places)) <= 1
