"""Presets, names and objects: every input form, sizes for small data, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from pyod.models.hbos import HBOS
from pyod.models.iforest import IForest
from pyod.models.knn import KNN
from pyod.models.loda import LODA
from pyod.models.lof import LOF
from pyod.models.lscp import LSCP
from pyod.models.pca import PCA
from sklearn.covariance import EllipticEnvelope
from sklearn.ensemble import IsolationForest
from sklearn.svm import OneClassSVM

from gammagmm.detectors import presets
from gammagmm.detectors.presets import (
    LEAST_FIT_ROWS,
    NAMES,
    PRESETS,
    is_superlinear,
    plan_rows,
    resolve_detectors,
)
from gammagmm.errors import MissingExtraError, Note
from tests.support.needs import needs_torch


class TestInputForms:
    @pytest.mark.parametrize("preset", ["classic", "fast"])
    def test_presets(self, preset):
        made, notes = resolve_detectors(preset, 500)
        assert tuple(made) == PRESETS[preset]
        assert [type(detector).__name__ for detector in made.values()] == list(PRESETS[preset])
        assert notes == []

    def test_names_of_a_list(self):
        made, _ = resolve_detectors(
            ["KNN", KNN(n_neighbors=7), "KNN", IsolationForest(), "LOF"], 100
        )
        assert list(made) == ["KNN", "KNN_2", "KNN_3", "IsolationForest", "LOF"]
        assert made["KNN_2"].n_neighbors == 7

    def test_dict_keeps_its_names(self):
        made, _ = resolve_detectors({"near": KNN(method="mean"), "tree": "IForest"}, 100)
        assert list(made) == ["near", "tree"]
        assert made["near"].method == "mean"
        assert isinstance(made["tree"], IForest)

    @pytest.mark.parametrize("form", [tuple, list])
    def test_sequences(self, form):
        assert list(resolve_detectors(form(["HBOS", "LODA"]), 100)[0]) == ["HBOS", "LODA"]

    @needs_torch
    def test_every_name_is_known(self):
        assert list(resolve_detectors(list(NAMES), 100)[0]) == list(NAMES)

    @pytest.mark.parametrize("name", ["knn", "KNN", "classics", "precomputed", ""])
    def test_unknown_preset(self, name):
        match = (
            rf"detectors='{name}' is not a preset. Use one of classic, paper, fast, or pass "
            r"a list of these names: KNN, IForest, .*PCA"
        )
        with pytest.raises(ValueError, match=match):
            resolve_detectors(name, 100)

    @pytest.mark.parametrize("detectors", [["KNN", "Knn"], {"a": "Knn"}])
    def test_unknown_name(self, detectors):
        with pytest.raises(
            ValueError, match=r"no detector of the name 'Knn'\. Use some of these names: KNN, .*PCA"
        ):
            resolve_detectors(detectors, 100)

    @pytest.mark.parametrize("detectors", [[], {}, ()])
    def test_empty(self, detectors):
        with pytest.raises(ValueError, match=r"detectors must hold at least one detector, got"):
            resolve_detectors(detectors, 100)

    @pytest.mark.parametrize("detectors", [KNN(), None, 3, {"KNN", "LOF"}])
    def test_neither_preset_nor_list_nor_dict(self, detectors):
        match = r"(?s)detectors must be a preset, or a list or dict of detectors, got .*\. Put a"
        with pytest.raises(TypeError, match=match):
            resolve_detectors(detectors, 100)

    @pytest.mark.parametrize("thing", [5, None, KNN, object(), ["KNN"], np.zeros(3)])
    def test_not_a_detector(self, thing):
        match = r"detectors must be names, or objects that are PyOD .* scikit-learn .*got .* for"
        with pytest.raises(TypeError, match=match):
            resolve_detectors(["KNN", thing], 100)

    def test_keys_are_names(self):
        with pytest.raises(TypeError, match=r"The keys of detectors must be strings, got 1\."):
            resolve_detectors({1: "KNN"}, 100)


def lowered(name, parameter, before, after, n_rows):
    sizes = {"parameter": parameter, "before": before, "after": after, "n_rows": n_rows}
    return Note.of("detectors.lowered", name, **sizes)


class TestSizes:
    def test_sizes_are_lowered_with_a_note_each(self):
        made, notes = resolve_detectors("classic", 12)
        assert notes == [
            lowered("LOF", "n_neighbors", 20, 11, 12),
            lowered("LSCP", "local_region_size", 30, 12, 12),
            lowered("LSCP", "n_neighbors", 20, 10, 12),
            lowered("LSCP", "n_neighbors", 30, 10, 12),
            lowered("LSCP", "n_neighbors", 40, 10, 12),
        ]
        assert notes[0].message == (
            "n_neighbors was lowered from 20 to 11 because the detector is fitted on 12 rows"
        )
        assert made["LOF"].n_neighbors == 11
        assert [lof.n_neighbors for lof in made["LSCP"].detector_list] == [10] * 4

    def test_bins(self):
        made, notes = resolve_detectors([HBOS(n_bins=50), LODA(n_bins=50), HBOS()], 12)
        assert notes == [lowered(name, "n_bins", 50, 12, 12) for name in ("HBOS", "LODA")]
        assert [detector.n_bins for detector in made.values()] == [12, 12, 10]

    @pytest.mark.parametrize("detectors", ["classic", ["KNN"], {"a": "KNN", "b": LOF()}])
    def test_too_few_rows(self, detectors):
        with pytest.raises(ValueError, match=r"X has 9 rows; the detectors need at least 10"):
            resolve_detectors(detectors, 9)

    def test_a_sample_is_noted(self):
        names = ["KNN", "LOF", "HBOS"]
        made, notes = resolve_detectors(names, 200, plan_rows(names, 200, 4, 15))
        assert notes == [
            Note.of("detectors.sampled", "KNN", n_fit=15, n_rows=200),
            Note.of("detectors.sampled", "LOF", n_fit=15, n_rows=200),
            lowered("LOF", "n_neighbors", 20, 14, 15),
        ]
        assert made["LOF"].n_neighbors == 14

    def test_nested_and_derived_detectors_are_superlinear(self):
        class Nearest(KNN):
            pass

        for detector in (LSCP([IForest(), PCA()]), Nearest(), OneClassSVM()):
            assert is_superlinear(detector)
        for detector in (IForest(), IsolationForest(), HBOS(), EllipticEnvelope()):
            assert not is_superlinear(detector)


@pytest.mark.parametrize("missing", [("torch",), ("tqdm",), ("torch", "tqdm")])
@needs_torch
def test_missing_extra(missing, monkeypatch):
    find = presets.find_spec
    monkeypatch.setattr(presets, "find_spec", lambda n: None if n in missing else find(n))
    packages, verb = " and ".join(missing), "are" if len(missing) > 1 else "is"
    needs = f"The detector AE needs {packages}, which {verb} not installed"
    match = rf"{needs}\. Run: pip install 'gammagmm\[deep\]'"
    with pytest.raises(MissingExtraError, match=match):
        resolve_detectors("paper", 100)
    resolve_detectors("classic", 100)


class TestRowPlan:
    def rows(self, n_rows, n_columns, limit="auto"):
        return plan_rows(list(PRESETS["classic"]), n_rows, n_columns, limit).n_fit

    def test_a_number_holds_for_all_slow_detectors(self):
        found = self.rows(100_000, 10, 7_000)
        assert [name for name, n in found.items() if n == 7_000] == ["KNN", "LOF", "OCSVM", "LSCP"]
        assert sorted(set(found.values())) == [7_000, 100_000]

    def test_by_cost_fewer_rows_are_compared_in_more_columns(self):
        found = [self.rows(20_000, n) for n in (5, 20, 80, 500)]
        for name in ("KNN", "LOF", "OCSVM", "LSCP"):
            sizes = [each[name] for each in found]
            assert sizes == sorted(sizes, reverse=True)
            assert sizes[-1] == LEAST_FIT_ROWS
        assert {each["IForest"] for each in found} == {20_000}

    @pytest.mark.parametrize("name", ["KNN", "OCSVM", "LSCP"])
    def test_by_cost_there_is_no_jump(self, name):
        sizes = np.geomspace(1_000, 10**7, 500).astype(int)
        found = np.array([self.rows(int(n), 10)[name] for n in sizes])
        assert found[0] == 1_000
        assert (found >= np.minimum(sizes, LEAST_FIT_ROWS)).all()
        ratios = found[1:] / found[:-1]
        steps = sizes[1:] / sizes[:-1]
        assert ((ratios <= steps * 1.001) & (ratios >= 0.999 / steps)).all()

    def test_small_tables_are_fitted_whole(self):
        for n_rows, n_columns in ((5_000, 20), (5_473, 10), (10_000, 10)):
            found = plan_rows("classic", n_rows, n_columns, "auto").n_fit
            assert found == dict.fromkeys(PRESETS["classic"], n_rows)

    def test_only_a_preset_leaves_out_lscp(self):
        of_preset = plan_rows("classic", 100_000, 10, "auto")
        asked_for = self.rows(100_000, 10)
        assert of_preset.n_fit | {"LSCP": asked_for["LSCP"]} == asked_for
        assert "LSCP" not in of_preset.n_fit
        assert asked_for["LSCP"] >= LEAST_FIT_ROWS
        assert plan_rows("classic", 100_000, 10, 20_000).n_fit["LSCP"] == 20_000
        too_slow = Note.of("detectors.too slow", "LSCP", n_rows=100_000, n_columns=10)
        assert too_slow in resolve_detectors("classic", 100_000, of_preset)[1]

    @needs_torch
    def test_a_name_and_its_object_are_fitted_on_as_many_rows(self):
        for limit in (None, 7_000, "auto"):
            made, _ = resolve_detectors(list(NAMES), 100)
            of_objects = plan_rows(made, 100_000, 10, limit)
            assert of_objects == plan_rows(list(NAMES), 100_000, 10, limit)

    def test_the_note_has_the_number_of_rows(self):
        rows = plan_rows(["KNN", "OCSVM"], 100_000, 10, "auto")
        _, notes = resolve_detectors(["KNN", "OCSVM"], 100_000, rows)
        assert notes == [
            Note.of("detectors.sampled", name, n_fit=n_fit, n_rows=100_000)
            for name, n_fit in rows.n_fit.items()
        ]
