"""Detectors that fail or whose scores cannot be used, and the records of the others."""

from __future__ import annotations

import numpy as np
import pytest
from pyod.models.knn import KNN
from pyod.models.lscp import LSCP
from sklearn.svm import SVC

from gammagmm.errors import DetectorError, DetectorWarning
from tests.support.detectors import Broken, fit, make_X


class TestLeftOut:
    @pytest.mark.parametrize(
        ("detector", "status", "reason"),
        [
            (Broken("raise"), "failed", "RuntimeError: the disk is full"),
            (Broken("nan"), "failed", "3 of 120 scores are not finite"),
            (
                Broken("shape"),
                "failed",
                r"it returned scores of shape \(120, 2\), expected \(120,\)",
            ),
            (Broken("short"), "failed", r"it returned scores of shape \(119,\), expected \(120,\)"),
            (Broken("text"), "failed", "ValueError: could not convert string to float"),
            (Broken("constant"), "constant", "every row has the same score"),
            (Broken("nearly"), "constant", "every row has the same score"),
            (SVC(), "failed", "TypeError: .*'y'"),
            (LSCP([KNN()]), "failed", "ValueError: detector_list needs 2 detectors"),
        ],
    )
    def test_one_detector_is_left_out(self, detector, status, reason):
        X = make_X()
        with pytest.warns(DetectorWarning, match=f"bad was skipped: .*{reason}") as record:
            fitted = fit({"KNN": "KNN", "bad": detector, "HBOS": "HBOS"}, X)
        assert len(record) == 1
        assert list(fitted.detectors) == ["KNN", "HBOS"]
        np.testing.assert_array_equal(fitted.scores, fit(["KNN", "HBOS"], X).scores)
        assert [info.status for info in fitted.info] == ["ok", status, "ok"]
        assert [info.name for info in fitted.info] == ["KNN", "bad", "HBOS"]
        assert fitted.info[0].reason == ""
        assert all(info.seconds > 0 for info in fitted.info)

    def test_traceback_is_kept(self):
        with pytest.warns(DetectorWarning, match="the disk is full"):
            fitted = fit(["KNN", "LOF", Broken("raise")], make_X())
        assert 'raise RuntimeError("the disk is full")' in fitted.info[2].traceback
        assert fitted.info[0].traceback == ""

    def test_one_warning_each_from_workers_too(self):
        with pytest.warns(DetectorWarning) as record:
            fit(["KNN", Broken("raise"), "OCSVM", Broken("constant")], make_X(), n_jobs=2)
        assert [str(warning.message) for warning in record] == [
            "Detector Broken was skipped: RuntimeError: the disk is full.",
            "Detector Broken_2 was skipped: every row has the same score.",
        ]

    def test_error_lists_every_reason(self):
        match = (
            r"Only 1 of 4 detectors gave usable scores, but 2 are needed. Skipped: "
            r"Broken: RuntimeError: the disk is full; Broken_2: 3 of 120 scores are not finite; "
            r"Broken_3: every row has the same score."
        )
        detectors = [Broken("raise"), Broken("nan"), "KNN", Broken("constant")]
        with pytest.raises(DetectorError, match=match) as caught:
            fit(detectors, make_X())
        assert caught.value.todo == "Choose other detectors, or check that the columns vary."
        assert any("Traceback" in note for note in caught.value.__notes__)

    def test_the_only_detector_fails(self):
        match = r"Only 0 of 1 detectors gave usable scores, but 1 is needed. Skipped: Broken: Runti"
        with pytest.raises(DetectorError, match=match):
            fit([Broken("raise")], make_X())

    def test_identical_rows(self):
        with pytest.raises(DetectorError, match=r"0 of 2 .*KNN: every row.*OCSVM: every row has"):
            fit(["KNN", "OCSVM"], np.ones((20, 2)))

    def test_interrupts_pass(self):
        with pytest.raises(KeyboardInterrupt):
            fit(["KNN", Broken("interrupt")], make_X())

    def test_dividing_by_zero_is_a_reason_and_no_other_warning(self):
        X = make_X()
        X[:, 1] = X[:, 0]  # a component without variance, by whose share PyOD's PCA divides
        X[:, 2] = 0.0
        with pytest.warns(DetectorWarning, match="PCA was skipped: 120 of 120 .*not finite") as w:
            fit(["KNN", "HBOS", "PCA"], X)
        assert len(w) == 1
