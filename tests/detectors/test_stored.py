"""Stored detectors: the same scores to the bit, and bytes that were forged run nothing."""

from __future__ import annotations

import io
import json
import warnings
import zipfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

from gammagmm.detectors.fit import score_rows
from gammagmm.detectors.presets import NAMES, resolve_detectors
from gammagmm.detectors.stored import (
    StoredDetector,
    StoredDetectors,
    Training,
    check_name,
    even_places,
    from_bytes,
    to_bytes,
)
from gammagmm.errors import DetectorError, SavedFileError
from tests.support.saved_fits import change_array, members, npy, packed

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


def of_training(name, **size):
    """The members of the bytes of a fitted detector, and its training."""
    detector, X = fitted(name, **size)
    training = Training(X, detector.decision_scores_)
    return members(io.BytesIO(to_bytes(name, detector, training))), training


def test_the_parameters_are_ours_and_only_the_seed_is_stored():
    files, training = of_training("LODA")
    assert json.loads(files["document.json"]) == {"detector": "LODA"}
    again = from_bytes("LODA", packed(files | {"random_state.npy": npy(np.array(7))}), training)
    assert again.get_params() == resolve_detectors(["LODA"], 1500)[0]["LODA"].get_params() | {
        "random_state": 7
    }


@pytest.mark.parametrize(
    "document",
    [
        *(None, 1, [], {}, "HBOS", ["HBOS"], {"detector": None}, {"detector": ["HBOS"]}),
        *({"detector": "KNN"}, {"detector": "os.system"}, {"detector": "HBOS", "n_bins": 5}),
        {"type": "dict", "content": [["n_bins", 5]]},
    ],
)
def test_other_documents_are_refused(document):
    files, training = of_training("HBOS")
    forged = packed(files | {"document.json": json.dumps(document)})
    for read in (check_name, lambda name, content: from_bytes(name, content, training)):
        with pytest.raises(SavedFileError):
            read("HBOS", forged)


def test_a_detector_is_not_read_as_another_one():
    files, _ = of_training("IForest")
    for name in ("KNN", "HBOS", "os.system"):
        with pytest.raises(SavedFileError, match=name):
            check_name(name, packed(files))


def test_damaged_and_compressed_bytes_are_refused():
    files, _ = of_training("HBOS")
    compressed = packed(files, zipfile.ZIP_DEFLATED)
    others = [packed({}), packed({"document.json": b"[" * 9999})]
    for wrong in (b"", packed(files)[:-30], compressed, *others):
        with pytest.raises(SavedFileError):
            check_name("HBOS", wrong)


def test_rows_with_other_columns_than_the_fit_are_refused():
    detector, X = fitted("KNN")
    content = to_bytes("KNN", detector, Training(X[:7], np.zeros(7)))
    with pytest.raises(ValueError, match="rows"):
        from_bytes("KNN", content, Training(X[:7, :4], np.zeros(7)))


def test_paths_through_the_trees_of_a_forest_have_room():
    """scikit-learn writes each path without a check into memory for the greatest depth."""
    detector, X = fitted("IForest")
    training = Training(X, detector.decision_scores_)
    again = from_bytes("IForest", to_bytes("IForest", detector, training), training)
    for tree, before in zip(again.estimators_, detector.estimators_, strict=True):
        assert tree.get_depth() == before.get_depth() > 0
        paths = tree.decision_path(X[:50]), before.decision_path(X[:50])
        assert (paths[0] != paths[1]).nnz == 0


def with_root(**values):
    """The change of nodes that sets these values of the first one, which has children."""

    def change(nodes):
        nodes = nodes.copy()
        for field, value in values.items():
            nodes[field][0] = value
        return nodes

    return change


def with_late_parent(nodes):
    """The nodes with a child of the first one after a child of its own."""
    nodes = nodes.copy()
    lefts = nodes["left_child"]
    side = "left_child" if lefts[lefts[0]] != -1 else "right_child"
    parent = nodes[side][0]
    child = lefts[parent]
    nodes[[parent, child]] = nodes[[child, parent]]
    nodes[side][0], nodes["left_child"][child] = child, parent
    return nodes


NODES = {
    "a parent after its child": with_late_parent,
    "its own child": with_root(left_child=0),
    "a child of two": with_root(left_child=2, right_child=2),
    "no right child": with_root(right_child=-1),
    "a leaf with a child": with_root(left_child=-1),
    "a child far away": with_root(right_child=2**40),
    "a negative child": with_root(left_child=-5),
    "a column far away": with_root(feature=2**40),
    "a negative column": with_root(feature=-1),
    "no threshold": with_root(threshold=np.nan),
    "no rows": with_root(n_node_samples=0),
    "too many rows": with_root(n_node_samples=2**40),
}
SHAPES = {
    "empty": lambda array: array[:0],
    "shorter": lambda array: array[:-1],
    "longer": lambda array: np.concatenate([array, array]),
    "narrower": lambda array: array[..., :-1],
    "flat": lambda array: array.ravel()[:1],
    "with one more axis": lambda array: array[..., None],
    "scalar": lambda array: array.ravel()[0],
}
TYPES = (np.float32, np.float16, ">f8", np.int8, np.int64, np.uint64, bool, complex, "U3")
NUMBERS = {"f": (np.nan, np.inf, -np.inf), "i": (-5, -(2**31), 2**31 - 1, 2**40)}


def changed(array):
    """What the array is changed to, by a name of the change."""
    shapes = SHAPES if array.ndim else {"with an axis": lambda array: array[None]}
    others = {name: change(array) for name, change in shapes.items()}
    if array.dtype.names is not None:
        return others | {name: change(array) for name, change in NODES.items()}
    others |= {str(kind): array.astype(kind) for kind in TYPES if array.dtype != kind}
    for number in NUMBERS[array.dtype.kind]:
        for place in {0, array.size - 1} if array.dtype != np.int32 or number < 2**31 else ():
            others[f"{number} at {place}"] = array.copy()
            others[f"{number} at {place}"].flat[place] = number
    return others | {HUGE: np.full(array.shape, 1e308)}


HUGE = "huge numbers"
"""Not refused, since they are finite, but sums of them are not."""


def outcomes(name):
    """(array, change, what came of it) for each array of the detector and each change."""
    warnings.simplefilter("ignore")
    # More support vectors than libsvm is used for.
    detector, X = fitted(name, n_rows=2100 if name == "OCSVM" else 300)
    content = to_bytes(name, detector, Training(X[:7], np.zeros(7)))
    files, before = members(io.BytesIO(content)), score_rows({name: detector}, X[:20] * 1.1)
    found = []
    for place in [each for each in files if each.endswith(".npy")]:
        without = {key: part for key, part in files.items() if key != place}
        array = np.load(io.BytesIO(files[place]))
        others = {how: without | {place: npy(each)} for how, each in changed(array).items()}
        for how, forged in (others | {"missing": without}).items():
            if forged == files:
                continue
            part = StoredDetector(name, np.frombuffer(packed(forged), dtype=np.uint8), None)
            stored = StoredDetectors({name: part}, X[:7], np.zeros((7, 1)), "The file")
            try:
                scores = score_rows({name: stored[name]}, X[:20] * 1.1)
                found.append((place, how, "same" if np.array_equal(scores, before) else "other"))
            except (SavedFileError, DetectorError) as error:
                found.append((place, how, type(error).__name__))
    return found


@pytest.fixture(scope="module")
def another_process():
    """Where compiled code that follows a wrong number would end another process than this."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        yield pool


@pytest.mark.parametrize("name", NAMES)
def test_arrays_that_the_detector_cannot_have_are_refused_or_change_nothing(name, another_process):
    if name in ("AE", "VAE"):
        pytest.importorskip("torch")
    found = another_process.submit(outcomes, name).result()
    assert {"SavedFileError", "same"} <= {outcome for *_, outcome in found}
    # A deviation may be infinite, see below.
    free = {(place, how) for place, how, _ in found if how == HUGE}
    free |= {("X_std.npy", f"{number} at {end}") for number in NUMBERS["f"] for end in (0, 4)}
    wrong = [each for each in found if each[:2] not in free]
    assert [each for each in wrong if each[2] not in ("SavedFileError", "same")] == []
    is_free = {"scores.npy", "random_state.npy", "seeds.npy"}  # new rows are scored without them
    for place, how, outcome in wrong:
        if outcome == "same":
            assert place in is_free or "num_batches" in place, (place, how)


@pytest.mark.parametrize("name", NAMES)
def test_forged_numbers_are_refused_or_give_scores(name):
    """And they never end the process, as compiled code would that follows a wrong number."""
    detector, X = fitted(name)
    training, rng = Training(X[:7], np.zeros(7)), np.random.default_rng(7)
    files = members(io.BytesIO(to_bytes(name, detector, training)))
    arrays = [each for each in files if each.endswith(".npy")]
    n_refused = 0
    for _ in range(N_FORGED):
        place = str(rng.choice(arrays))
        other = npy(change_array(np.load(io.BytesIO(files[place])), rng))
        try:
            again = from_bytes(name, packed(files | {place: other}), training)
        except Exception:
            n_refused += 1
            continue
        try:
            scores = score_rows({name: again}, X[:20])
        except DetectorError:
            continue
        assert scores.shape == (20, 1)
    assert 0 < n_refused < N_FORGED


def test_a_network_may_have_a_column_whose_squares_are_too_large():
    detector, X = fitted("AE", n_rows=100)
    X[:, 0] *= 1e200
    with np.errstate(over="ignore"):
        detector.fit(X)
    training = Training(X, detector.decision_scores_)
    again = from_bytes("AE", to_bytes("AE", detector, training), training)
    np.testing.assert_array_equal(again.X_std, detector.X_std)
    assert np.isinf(again.X_std[0])


def test_rows_are_tried_evenly():
    assert even_places(3).tolist() == [0, 1, 2]
    places = even_places(100_000)
    assert len(places) == 200
    assert (places[0], places[-1]) == (0, 99_999)
    assert np.ptp(np.diff(places)) <= 1
