"""`GammaGMM.save` and `GammaGMM.load`: the same answers in another process, and new rows too."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
import warnings
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from pyod.models.knn import KNN

from gammagmm import GammaGMM, MixturePrior
from gammagmm.errors import DetectorError, SavedFileError, SavedFitWarning
from tests.support.mutated_files import mutate
from tests.support.saved_fits import change_array, change_value, members, npy, packed

# Two detectors and two runs are fast, and may leave most starts without a solution.
pytestmark = pytest.mark.filterwarnings("ignore::gammagmm.errors.UnsolvedRunsWarning")

SETTINGS = {"n_components": 10, "n_runs": 2, "n_draws": 100}
N_CHANGED = 2000
LOAD = """
import sys, warnings
import numpy as np
warnings.simplefilter("error")
from tests.estimator.test_kept_fit import answers
from gammagmm import GammaGMM
for path in sys.argv[2:]:
    print(answers(GammaGMM.load(path), np.load(sys.argv[1])))
"""


def table():
    """120 rows with columns of several kinds, of which the first seven stand apart."""
    rng = np.random.default_rng(5)
    X = np.column_stack(
        [rng.normal(size=(120, 2)), np.exp(rng.normal(size=120)), rng.integers(0, 9, 120)]
    )
    X[:7] += [9.0, -7.0, 20.0, 15.0]
    return X


def new_rows():
    X = table()[::3] + 0.25
    X[:2] *= 5.0
    return X


def answers(estimator, new):
    """The digest of all answers for training rows and new rows, to the bit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arrays = [
            estimator.scores_,
            estimator.fit_.score_space,
            estimator.decision_scores_,
            estimator.labels_,
            estimator.decision_function(new),
            estimator.predict_proba(new),
            estimator.predict(new),
            estimator.posterior_.pdf(np.linspace(0.0, 1.0, 50)),
        ]
    values = [estimator.threshold_, sorted(estimator.thresholds_.items()), estimator.fit_.ranking]
    digest = hashlib.sha256(repr([*map(repr, values), estimator.summary().lines]).encode())
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def fit_preset(preset):
    return GammaGMM(preset, random_state=1, **SETTINGS).fit(table())


def fit_updated():
    """Labels of both kinds and all three ways, a ranking learned from them, and a generator."""
    rng = np.random.Generator(np.random.MT19937(np.random.SeedSequence([3, 4])))
    estimator = GammaGMM(["KNN", "LOF", "IForest"], random_state=rng, **SETTINGS).fit(table())
    estimator.update([0, 1, 30, 60, 90], [1, 1, 0, 0, 0])
    estimator.update([2, 99], [1, 0], at_random=False)
    estimator.update([3], [1], purpose="find")
    assert estimator.fit_.ranking == "learned"
    return estimator


def fit_named():
    """A table with an index, a prior, names of detectors, and a sample for the fit."""
    frame = pd.DataFrame(table(), columns=["a", "b", "c", "d"])
    frame.index = pd.Index([f"row {i} \u00e9" for i in range(120)], name="id")
    return GammaGMM(
        {"near": "KNN", "forest": "IForest"},
        scale="robust",
        learn=False,
        mixture_prior=MixturePrior(np.diag([1.0, 2.0]), concentration=0.1),
        max_fit_rows=100,
        p_high=0.15,
        random_state=np.random.RandomState(0),
        **SETTINGS,
    ).fit(frame)


def fit_scores():
    scores = GammaGMM(["KNN", "LOF"], random_state=0, **SETTINGS).fit(table()).scores_
    return GammaGMM("precomputed", random_state=0, **SETTINGS).fit(scores)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("kept")


@pytest.fixture(scope="module")
def classic():
    return fit_preset("classic")


@pytest.fixture(scope="module")
def named():
    return fit_named()


@pytest.fixture(scope="module")
def updated_file(folder):
    """The file of a fit with labels."""
    fit_updated().save(folder / "updated.fit")
    return folder / "updated.fit"


def in_a_new_process(folder, estimators):
    """The digest of the answers of each estimator after it was saved and loaded elsewhere."""
    np.save(folder / "new.npy", new_rows())
    paths = []
    for number, estimator in enumerate(estimators):
        paths.append(folder / f"{number}.fit")
        estimator.save(paths[-1], overwrite=True)
    command = [sys.executable, "-c", LOAD, folder / "new.npy", *paths]
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), os.getcwd()]))
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": path},
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_a_new_process_gives_the_same_answers_to_the_bit(classic, named, folder):
    estimators = [classic, fit_preset("fast"), fit_updated(), named]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the new rows as an array have no names
        expected = [answers(estimator, new_rows()) for estimator in estimators]
    assert len(set(expected)) == 4
    assert in_a_new_process(folder, estimators) == expected


@pytest.mark.long
def test_a_new_process_gives_the_same_answers_of_the_preset_paper(folder):
    paper = fit_preset("paper")
    assert in_a_new_process(folder, [paper]) == [answers(paper, new_rows())]


def test_parameters_index_prior_and_names_come_back(named, folder):
    named.save(folder / "named.fit")
    loaded = GammaGMM.load(folder / "named.fit")
    before, after = named.get_params(), loaded.get_params()
    prior, other = (vars(each.pop("mixture_prior")) for each in (before, after))
    np.testing.assert_array_equal(prior.pop("covariance"), other.pop("covariance"))
    assert (after.pop("random_state"), prior) == (None, other)
    del before["random_state"]
    assert after == before
    pd.testing.assert_frame_equal(loaded.to_frame(), named.to_frame())
    assert loaded.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    assert loaded.fit_.detector_names == ["near", "forest"]
    assert loaded.notes_ == named.notes_
    with pytest.raises(ValueError, match="Feature names"):
        loaded.predict(pd.DataFrame(new_rows(), columns=["a", "b", "c", "x"]))


def test_precomputed_scores_and_an_index_of_numbers(folder):
    estimator = fit_scores()
    estimator.fit(pd.DataFrame(estimator.scores_, index=pd.Index(range(7, 127), name="n")))
    estimator.save(folder / "scores.fit")
    loaded = GammaGMM.load(folder / "scores.fit")
    assert answers(loaded, loaded.scores_) == answers(estimator, estimator.scores_)
    assert loaded.fit_.table.container.index.tolist() == list(range(7, 127))
    assert (loaded.fit_.table.container.index.name, loaded.detectors_) == ("n", {})


def test_an_index_of_another_shape_is_refused(folder):
    estimator = fit_scores()
    estimator.fit(pd.DataFrame(estimator.scores_, index=range(7, 127)))
    estimator.save(folder / "index.fit")
    files = members(folder / "index.fit")
    numbers = np.load(io.BytesIO(files["index.numbers.npy"]))
    for changed in (numbers[:, None], numbers[1:]):
        (folder / "index.fit").write_bytes(packed(files | {"index.numbers.npy": npy(changed)}))
        with pytest.raises(SavedFileError):
            GammaGMM.load(folder / "index.fit")


def test_labels_go_on_after_loading(updated_file):
    updated, loaded = fit_updated(), GammaGMM.load(updated_file)
    assert loaded.known_rows_.rows.tolist() == [0, 1, 2, 3, 30, 60, 90, 99]
    for estimator in (updated, loaded):
        estimator.update([50, 5], [0, 1])
    assert answers(loaded, new_rows()) == answers(updated, new_rows())


def fit_own():
    """A detector that has no name, and one that has."""
    detectors = {"mine": KNN(), "LOF": "LOF"}
    return GammaGMM(detectors, random_state=0, **SETTINGS).fit(table())


@pytest.fixture(scope="module")
def own_file(folder):
    with pytest.warns(SavedFitWarning, match="mine"):
        fit_own().save(folder / "own.fit")
    return folder / "own.fit"


def test_own_detectors_are_missing_and_everything_else_is_there(own_file, folder):
    estimator, loaded = fit_own(), GammaGMM.load(own_file)
    assert loaded.detectors == {"mine": None, "LOF": "LOF"}
    np.testing.assert_array_equal(loaded.labels_, estimator.labels_)
    assert repr(loaded.posterior_) == repr(estimator.posterior_)
    loaded.update([0, 40], [1, 0])
    for method in (loaded.predict, loaded.decision_function, loaded.predict_proba):
        with pytest.raises(DetectorError, match="mine"):
            method(new_rows())
    with pytest.warns(SavedFitWarning, match="mine"):
        loaded.save(folder / "own again.fit")


def test_own_detectors_can_be_given(own_file):
    estimator = fit_own()
    mine = estimator.detectors_["mine"]
    loaded = GammaGMM.load(own_file, detectors={"mine": mine})
    assert answers(loaded, new_rows()) == answers(estimator, new_rows())
    assert loaded.get_params()["detectors"] == {"mine": mine, "LOF": "LOF"}
    assert loaded.notes_ == estimator.notes_


def test_other_detectors_than_the_own_ones_are_refused_or_named(own_file):
    for wrong in ({"mine": KNN()}, {"LOF": KNN().fit(table())}, {"theirs": KNN().fit(table())}):
        with pytest.raises(DetectorError, match=next(iter(wrong))):
            GammaGMM.load(own_file, detectors=wrong)
    with pytest.warns(SavedFitWarning, match="mine") as caught:
        loaded = GammaGMM.load(own_file, detectors={"mine": KNN(n_neighbors=3).fit(table())})
    assert len(caught) == 1
    assert [note.subject for note in loaded.notes_ if note.step == "load"] == ["mine"]


def saved_with(path, versions, changes=()):
    """Write to `path` what it has, as if other `versions` of packages had written it."""
    files = members(path)
    data = json.loads(files["document.json"])
    data["versions"] |= versions
    files |= {"document.json": json.dumps(data).encode(), **dict(changes)}
    path.write_bytes(packed(files))


def test_with_other_versions_the_detectors_are_tried(classic, folder):
    classic.save(folder / "classic.fit", overwrite=True)
    saved_with(folder / "classic.fit", {"scikit-learn": "0.1"})
    loaded = GammaGMM.load(folder / "classic.fit")  # warnings are errors
    assert loaded.notes_ == classic.notes_
    assert answers(loaded, new_rows()) == answers(classic, new_rows())


def test_a_detector_that_has_changed_is_named(classic, folder):
    path = folder / "changed.fit"
    classic.save(path)
    name = f"stored.{classic.fit_.detector_names.index('LOF')}.new_scores.npy"
    scores = np.load(io.BytesIO(members(path)[name]))
    scores[5:8] += 0.01
    saved_with(path, {}, {name: npy(scores)})
    GammaGMM.load(path)  # with the same versions they are not tried
    saved_with(path, {"pyod": "0.1"})
    with pytest.warns(SavedFitWarning, match=r"LOF scores 3 of 120 .* pyod 0\.1, now ") as caught:
        loaded = GammaGMM.load(path)
    assert len(caught) == 1
    assert (loaded.notes_[-1].step, loaded.notes_[-1].subject) == ("load", "LOF")
    np.testing.assert_array_equal(loaded.predict(new_rows()), classic.predict(new_rows()))


def test_a_detector_that_cannot_be_made_is_named(classic, folder):
    path = folder / "failing.fit"
    classic.save(path)
    name = f"stored.{classic.fit_.detector_names.index('KNN')}.state.npy"
    files = members(io.BytesIO(np.load(io.BytesIO(members(path)[name])).tobytes()))
    changed = packed(files | {"scores.npy": npy(np.ones(7))})
    saved_with(path, {}, {name: npy(np.frombuffer(changed, dtype=np.uint8))})
    with pytest.raises(SavedFileError, match="KNN"):
        GammaGMM.load(path).predict(new_rows())
    saved_with(path, {"scikit-learn": "0.1"})
    with pytest.warns(SavedFitWarning, match="KNN cannot score new rows any more"):
        loaded = GammaGMM.load(path)
    np.testing.assert_array_equal(loaded.labels_, classic.labels_)
    with pytest.raises(DetectorError, match="the detectors KNN,"):
        loaded.predict(new_rows())


def test_a_loaded_fit_of_a_sampled_table_scores_its_other_rows(folder):
    arrays = pytest.importorskip("dask.array")
    X = np.concatenate([table(), table() + 0.5])
    lazy = arrays.from_array(X, chunks=(80, 4))
    names = ["KNN", "IForest", "HBOS"]
    estimator = GammaGMM(names, max_rows=100, random_state=0, **SETTINGS).fit(lazy)
    estimator.save(folder / "sampled.fit")
    loaded = GammaGMM.load(folder / "sampled.fit")
    assert (loaded.fit_.sample.n_rows, loaded.fit_.n_rows) == (240, 100)
    expected = estimator.decision_function(lazy).compute()
    np.testing.assert_array_equal(loaded.decision_function(X), expected)
    np.testing.assert_array_equal(loaded.decision_function(lazy).compute(), expected)


def test_nothing_is_fitted_at_load(classic, folder, monkeypatch):
    classic.save(folder / "classic.fit", overwrite=True)
    loaded = GammaGMM.load(folder / "classic.fit")
    for name, detector in classic.detectors_.items():
        monkeypatch.setattr(type(detector), "fit", None)
        assert loaded.detectors_[name].fit is None
    np.testing.assert_array_equal(loaded.predict(new_rows()), classic.predict(new_rows()))


def test_a_ranking_that_has_changed_is_told(updated_file, folder):
    files = members(updated_file)
    learned = np.load(io.BytesIO(files["learned_scores.npy"]))
    files["learned_scores.npy"] = npy(np.nextafter(learned, 9.0))
    (folder / "ranking.fit").write_bytes(packed(files))
    with pytest.warns(SavedFitWarning, match="The ranking was learned again from the labels and "):
        loaded = GammaGMM.load(folder / "ranking.fit")
    assert loaded.notes_[-1].subject == "ranking"


def test_unknown_parameters_are_refused(classic, folder):
    classic.save(folder / "classic.fit", overwrite=True)
    files = members(folder / "classic.fit")
    data = json.loads(files["document.json"])
    data["parameters"]["odd"] = 1
    files["document.json"] = json.dumps(data).encode()
    (folder / "odd.fit").write_bytes(packed(files))
    with pytest.raises(SavedFileError, match="parameters that GammaGMM does not have: odd"):
        GammaGMM.load(folder / "odd.fit")


def test_an_existing_file_stays_unless_told(classic, folder):
    path = folder / "mine.fit"
    path.write_text("mine")
    with pytest.raises(FileExistsError):
        classic.save(path)
    with pytest.raises(SavedFileError, match="cannot be read as a saved fit"):
        GammaGMM.load(path)


class Trap:
    """Makes a folder if it is unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


def change_members(files, trap, rng):
    """The members after a mutation: two are swapped, or one has other bytes, numbers or values."""
    kind = int(rng.integers(1, 6))
    files = dict(files)
    names = [name for name in files if name.endswith(".npy")]
    name, other = (str(each) for each in rng.choice(names, 2, replace=False))
    if kind == 1:
        files[name], files[other] = files[other], files[name]
    elif kind == 2:
        files["document.json"] = change_value(files["document.json"], rng)
    elif kind == 3:
        files[name] = npy(change_array(np.load(io.BytesIO(files[name])), rng))
    elif kind == 4:
        file = io.BytesIO()
        np.save(file, np.array([Trap(trap)], dtype=object), allow_pickle=True)
        files[name] = file.getvalue()
    else:
        files[name] = mutate(files[name], "npy", rng)
    return files


def count_mutations(n_files, file):
    """How many changed files are refused, give the same answers, and give others.

    The first counts are those of files with changed bytes or members, the others of files whose
    digest was computed again.
    """
    rng, path, trap = np.random.default_rng(11), file.with_name("mutated"), file.with_name("sprung")
    content, expected = file.read_bytes(), answers(GammaGMM.load(file), new_rows())
    counts = {False: Counter(), True: Counter()}
    for number in range(n_files):
        is_forged = number % 2 == 1
        if number % 4:
            changed = change_members(members(io.BytesIO(content)), trap, rng)
            path.write_bytes(packed(changed, is_forged=is_forged))
        else:
            path.write_bytes(mutate(content, "npz", rng))
        counts[is_forged][outcome(path, expected)] += 1
        assert not trap.exists()
    return counts[False], counts[True]


def outcome(path, expected):
    """What happens to a file that was changed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SavedFitWarning)
        try:
            is_same = answers(GammaGMM.load(path), new_rows()) == expected
        except SavedFileError:
            return "refused"
        except DetectorError:  # its detectors are no named ones
            return "refused for new rows"
    return "same" if is_same else "other"


def test_changed_files_are_refused_or_give_a_fit_and_nothing_is_run(updated_file):
    changed, forged = count_mutations(60, updated_file)
    assert changed.keys() <= {"refused", "same"}
    assert forged["refused"] > 15


@pytest.mark.long
def test_two_thousand_changed_files(updated_file):
    changed, forged = count_mutations(N_CHANGED, updated_file)
    print(changed, forged)  # noqa: T201
    assert changed.keys() <= {"refused", "same"}
    assert changed["refused"] > 800
    assert forged["refused"] > 500
