import json
import math
import os
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gammagmm import GammaPosterior, LabelledRows
from gammagmm._support import documents
from gammagmm.errors import SavedFileError
from gammagmm.labels.labelled_share import LabelCounts, labelled_posterior
from gammagmm.posterior.betas import BetaMixture
from gammagmm.posterior.storage import posterior_from_text, posterior_to_text
from gammagmm.posterior.track_record import load_reference
from tests.support.needs import needs_posix

WEIGHTS, A, B = [0.1 + 0.2, 0.69], [1 / 3, 1e-7], [95.0, 12345.678901234567]
# Written by hand, in the promised form.
TEXT = """{"schema": "gammagmm/posterior", "version": 1, "prob_zero": 0.01,
"standard_error": null, "between_runs": 0.002, "n_labels": 0, "is_model": true,
"betas": {"low": 0, "high": 1.0, "weights": [0.5, 0.49], "a": [3, 30.0], "b": [90, 70]}}"""


@pytest.fixture
def posterior():
    return GammaPosterior(0.01, BetaMixture(*np.array([WEIGHTS, A, B])), 0.1 + 0.7)


def fields(posterior):
    """Every number that a posterior holds."""
    betas = posterior.betas
    arrays = [betas.weights, betas.a, betas.b]
    errors = [posterior.standard_error, posterior.between_runs]
    counts = [posterior.n_labels, posterior.is_model]
    numbers = [posterior.prob_zero, *errors, *counts, betas.low, betas.high]
    return [*numbers, *np.concatenate(arrays)]


def assert_same(first, second):
    assert len(first.betas) == len(second.betas)
    np.testing.assert_array_equal(fields(first), fields(second))


def test_a_file_gives_back_every_float(posterior, tmp_path):
    kinds = (posterior, posterior.given(0.0, 0.2), replace(posterior, is_model=False))
    for made in (*kinds, posterior.given(low=1e-3)):
        made.save(tmp_path / "posterior.json", overwrite=True)
        loaded = GammaPosterior.load(tmp_path / "posterior.json")
        assert_same(loaded, made)
        assert (loaded.mean, loaded.interval()) == (made.mean, made.interval())
    assert math.isnan(loaded.standard_error)
    degenerate = GammaPosterior.degenerate()
    degenerate.save(str(tmp_path / "none.json"))
    assert GammaPosterior.load(str(tmp_path / "none.json")).is_degenerate


@given(
    st.lists(st.tuples(*[st.floats(1e-6, 1e6)] * 3), min_size=1, max_size=5),
    st.floats(0.0, 0.999),
    st.one_of(st.just(math.nan), st.floats(0.0, 1.0)),
)
def test_any_posterior_comes_back_to_the_bit(parts, prob_zero, error):
    weights, a, b = np.array(parts).T
    weights *= (1.0 - prob_zero) / weights.sum()
    posterior = GammaPosterior(prob_zero, BetaMixture(weights, a, b), error)
    assert_same(posterior_from_text(posterior_to_text(posterior)), posterior)


def test_the_text_is_the_promised_one(posterior):
    data = json.loads(posterior_to_text(posterior))
    assert data == {
        "schema": "gammagmm/posterior",
        "version": 1,
        "prob_zero": 0.01,
        "standard_error": 0.1 + 0.7,
        "between_runs": None,
        "n_labels": 0,
        "is_model": True,
        "betas": {"low": 0.0, "high": 1.0, "weights": WEIGHTS, "a": A, "b": B},
    }
    read = posterior_from_text(TEXT)
    expected = BetaMixture(np.array([0.5, 0.49]), np.array([3.0, 30.0]), np.array([90.0, 70.0]))
    assert_same(read, GammaPosterior(0.01, expected, np.nan, 0.002))


def test_the_number_of_labels_comes_back(posterior):
    labelled = replace(posterior, n_labels=30)
    text = posterior_to_text(labelled)
    read = posterior_from_text(text)
    assert_same(read, labelled)
    assert (read.n_labels, type(read.n_labels)) == (30, int)
    assert json.loads(text) == json.loads(posterior_to_text(posterior)) | {"n_labels": 30}
    assert pickle.loads(pickle.dumps(labelled)).n_labels == 30


@pytest.mark.parametrize("n_labels", [2.5, -1])
def test_a_wrong_number_of_labels_is_not_written(n_labels, posterior, tmp_path):
    with pytest.raises(SavedFileError):
        replace(posterior, n_labels=n_labels).save(tmp_path / "posterior.json")
    assert os.listdir(tmp_path) == []


def test_an_existing_file_is_kept_without_overwrite(posterior, tmp_path):
    path = tmp_path / "posterior.json"
    path.write_text("mine")
    with pytest.raises(FileExistsError):
        posterior.save(path)
    assert path.read_text() == "mine"
    posterior.save(path, overwrite=True)
    assert_same(GammaPosterior.load(path), posterior)
    assert os.listdir(tmp_path) == ["posterior.json"]


@needs_posix
def test_a_link_to_nothing_counts_as_an_existing_file(posterior, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileExistsError):
        posterior.save(tmp_path / "link")
    assert os.listdir(tmp_path) == ["link"]


def test_a_name_taken_meanwhile_is_refused(posterior, tmp_path, monkeypatch):
    path = tmp_path / "posterior.json"

    def write_slowly(descriptor):
        path.write_text("another's")

    monkeypatch.setattr(os, "fsync", write_slowly)
    with pytest.raises(FileExistsError):
        posterior.save(path)
    assert path.read_text() == "another's"
    assert os.listdir(tmp_path) == ["posterior.json"]


def test_a_file_system_without_links_works_too(posterior, tmp_path, monkeypatch):
    def refuse(self, target):
        raise PermissionError("no links here")

    monkeypatch.setattr(documents.Path, "hardlink_to", refuse)
    posterior.save(tmp_path / "posterior.json")
    assert_same(GammaPosterior.load(tmp_path / "posterior.json"), posterior)
    with pytest.raises(FileExistsError):
        GammaPosterior.degenerate().save(tmp_path / "posterior.json")
    assert_same(GammaPosterior.load(tmp_path / "posterior.json"), posterior)
    assert os.listdir(tmp_path) == ["posterior.json"]


def test_a_write_that_fails_leaves_what_was_there(posterior, tmp_path, monkeypatch):
    path = tmp_path / "posterior.json"
    posterior.save(path)
    before = path.read_bytes()

    def fail(descriptor):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        GammaPosterior.degenerate().save(path, overwrite=True)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["posterior.json"]


def test_a_posterior_that_could_not_be_read_back_is_not_written(tmp_path):
    bad = GammaPosterior(0.5, BetaMixture(*np.array([[0.2], [5.0], [95.0]])))
    with pytest.raises(SavedFileError):
        bad.save(tmp_path / "posterior.json")
    assert os.listdir(tmp_path) == []


WRONG = {
    "another schema": ("gammagmm/posterior", "other"),
    "a later version": ('"version": 1', '"version": 2'),
    "a version that is no number": ('"version": 1', '"version": true'),
    "a field too few": ('"prob_zero": 0.01,', ""),
    "a field too many": ('"a":', '"more": 1, "a":'),
    "a key twice": ('"a":', '"low": 0, "a":'),
    "a number of labels below 0": ('"n_labels": 0', '"n_labels": -3'),
    "a number of labels that is not whole": ('"n_labels": 0', '"n_labels": 3.0'),
    "a number for a boolean": ('"is_model": true', '"is_model": 1'),
    "text for a number": ("0.01", '"0.01"'),
    "a number that is not finite": ("[0.5, 0.49]", "[1e999, 0.49]"),
    "a number too large for a float": ("[90, 70]", f"[90, 1{'0' * 400}]"),
    "a number for a list": ("[0.5, 0.49]", "0.99"),
    "a probability below 0": ("0.01", "-0.01"),
    "probabilities above 1 together": ("0.01", "0.0100001"),
    "a weight below 0": ("[0.5, 0.49]", "[1.0, -0.01]"),
    "lists of several lengths": ("[0.5, 0.49]", "[0.99]"),
    "a Beta that does not exist": ("[3, 30.0]", "[0, 30.0]"),
    "an empty range": ('"low": 0', '"low": 1.0'),
    "a part without probability": ('"low": 0', '"low": 0.999999'),
    "an error below 0": ("0.002", "-0.002"),
    "a list": (TEXT, "[1]"),
    "brackets without end": (TEXT, "[" * 100_000),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_file_that_is_not_a_posterior_is_refused(kind, tmp_path):
    old, new = WRONG[kind]
    assert old in TEXT
    path = tmp_path / "posterior.json"
    path.write_text(TEXT.replace(old, new, 1))
    with pytest.raises(SavedFileError) as caught:
        GammaPosterior.load(path)
    assert caught.value.what.startswith(str(path))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[0.5, 0.49]", "[0.99, 0.0]"),
        ("[0.5, 0.49]", "[0.5, 0.4900000005]"),  # within rounding of 1 in all
        ("0.002", "0.0"),
        ('"low": 0,', '"low": 0.01,'),
        ('"high": 1.0', '"high": 0.9'),
    ],
)
def test_values_at_the_end_of_their_range_are_read(old, new):
    assert old in TEXT
    text = TEXT.replace(old, new, 1)
    found, data = posterior_from_text(text, "it"), json.loads(text)
    numbers = [*data["betas"]["weights"], data["betas"]["low"], data["betas"]["high"]]
    assert [*found.betas.weights, found.betas.low, found.betas.high] == numbers
    assert (found.between_runs, found.n_labels) == (data["between_runs"], 0)


def test_all_or_nothing_may_lie_at_zero():
    nothing = TEXT.replace("0.01", "0.0").replace("[0.5, 0.49]", "[0.5, 0.5]")
    assert posterior_from_text(nothing, "it").prob_zero == 0.0
    everything = TEXT.replace("0.01", "1.0").replace("[0.5, 0.49]", "[0.0, 0.0]")
    assert posterior_from_text(everything, "it").prob_zero == 1.0


LABELLED = posterior_to_text(
    LabelledRows(np.arange(60.0)).update(np.arange(30), np.zeros(30)).posterior
)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"n_rows": 60', '"n_rows": 0'),
        ('"n_rows": 60', '"n_rows": 29'),
        ('"n_anomalies": 0', '"n_anomalies": -1'),
        ('"first": 1', '"first": 32'),
        ('"last": 30', '"last": 31'),
        ('"last": 30', '"low": 0.0, "last": 30'),
    ],
)
def test_counts_that_are_impossible_are_refused(old, new):
    assert old in LABELLED
    with pytest.raises(SavedFileError):
        posterior_from_text(LABELLED.replace(old, new, 1))


BOUNDED = posterior_to_text(
    LabelledRows(np.arange(60.0))
    .update(np.arange(0, 60, 3), np.zeros(20))
    .update([59, 58], [1, 0], purpose="find")
    .posterior
)


def test_bounds_come_back():
    posterior = posterior_from_text(BOUNDED)
    assert posterior.betas.bounds == (1, 39)
    assert posterior_to_text(posterior) == BOUNDED
    assert posterior.cdf(0.9 / 60) == 0.0
    assert '"least"' not in LABELLED


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"least": 1', '"least": 2'),
        ('"most": 39', '"most": 38'),
        ('"most": 39', '"most": 41'),
        ('"least": 1,', ""),
    ],
)
def test_bounds_that_are_impossible_are_refused(old, new):
    assert old in BOUNDED
    with pytest.raises(SavedFileError):
        posterior_from_text(BOUNDED.replace(old, new, 1))


def test_counts_that_take_too_much_memory_are_refused(tmp_path):
    n = 10**9
    text = LABELLED.replace('"n_rows": 60', f'"n_rows": {n}').replace(
        '"n_left": 30', f'"n_left": {n - 30}'
    )
    (tmp_path / "posterior.json").write_text(text.replace('"last": 30', f'"last": {n - 30}'))
    with pytest.raises(SavedFileError):
        GammaPosterior.load(tmp_path / "posterior.json")


def test_a_pickle_is_never_run(tmp_path):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "sprung"),)

    (tmp_path / "posterior.json").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(SavedFileError):
        GammaPosterior.load(tmp_path / "posterior.json")
    assert not (tmp_path / "sprung").exists()


def test_a_file_too_large_is_refused_unread(tmp_path):
    path = tmp_path / "large.json"
    with path.open("wb") as file:
        file.truncate(documents.MAX_DOCUMENT_BYTES + 1)  # takes no room on the disk
    with pytest.raises(SavedFileError):
        GammaPosterior.load(path)


@needs_posix
def test_an_endless_source_is_refused(monkeypatch):
    monkeypatch.setattr(documents, "MAX_DOCUMENT_BYTES", 1000)
    with pytest.raises(SavedFileError):
        GammaPosterior.load("/dev/zero")


def test_no_file_is_the_usual_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        GammaPosterior.load(tmp_path / "nothing")


def test_the_limit_on_shares_counts_each_of_them(monkeypatch):
    data = json.loads(LABELLED)["betas"]
    n_cells = len(data["weights"]) * (data["last"] - data["first"] + 1)
    monkeypatch.setattr("gammagmm.posterior.storage.MAX_CELLS", n_cells)
    assert posterior_from_text(LABELLED).mean > 0.0
    monkeypatch.setattr("gammagmm.posterior.storage.MAX_CELLS", n_cells - 1)
    with pytest.raises(SavedFileError):
        posterior_from_text(LABELLED)


def test_bounds_may_reach_the_last_row():
    """As after picks that are all anomalies."""
    posterior = labelled_posterior(LabelCounts(60, 10, 1, 0, 0, 5, 5), load_reference())
    assert posterior.betas.bounds == (5, posterior.betas.n_left)
    again = posterior_from_text(posterior_to_text(posterior))
    np.testing.assert_array_equal(again.betas.pmf, posterior.betas.pmf)
