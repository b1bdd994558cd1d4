"""Every detector class of the installed PyOD, found in its source; the skipped ones and why."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyod.models
import pytest

BASES = {"BaseDetector", "BaseDeepLearningDetector"}

# Reasons, and the detectors that are skipped for them. A new detector of PyOD is tested.
SKIPPED = {
    "base class": ("BaseDeepLearningDetector",),
    "graphs": ("ANOMALOUS", "AnomalyDAE", "CONAD", "CoLA", "DOMINANT", "GUIDE", "Radar", "SCAN"),
    "time series": (
        *("AnomalyTransformer", "KShape", "LSTMAD", "MatrixProfile", "SAND", "SpectralResidual"),
        "TimeSeriesOD",
    ),
    "sound, pictures and text": ("AudioAE", "EmbeddingOD", "MultiModalOD"),
    "labels": ("XGBOD", "DevNet"),
    "combo": ("FeatureBagging",) if find_spec("combo") is None else (),
    # It takes numbers only, and its random projections cannot be seeded.
    "suod": ("SUOD",),
}


def find_detectors():
    """Module and file of each detector class, by its name."""
    found = {}
    for module in pkgutil.iter_modules(pyod.models.__path__):
        path = Path(pyod.models.__path__[0], f"{module.name}.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and BASES & {b.id for b in _plain(node.bases)}:
                found[node.name] = (f"pyod.models.{module.name}", path)
    return found


def _plain(bases):
    return [base for base in bases if isinstance(base, ast.Name)]


FOUND = find_detectors()
# The networks, and the parameters that make each as small as possible.
DEEP = {
    "AE1SVM": {"epochs": 1},
    "ALAD": {"epochs": 1, "batch_size": 16},
    "AnoGAN": {"epochs": 1, "batch_size": 16},
    "AutoEncoder": {"epoch_num": 1, "verbose": 0},
    "DIF": {"n_ensemble": 2, "n_estimators": 2, "max_samples": 16},
    "DeepSVDD": {"n_features": 3, "epochs": 1, "verbose": 0},
    "LUNAR": {"n_epochs": 1, "verbose": 0},
    "MO_GAAL": {"stop_epochs": 1},
    "SO_GAAL": {"epoch_num": 1, "verbose": 0},
    "VAE": {"epoch_num": 1, "verbose": 0},
}
TABULAR = sorted(set(FOUND) - {name for names in SKIPPED.values() for name in names} - set(DEEP))
TAKES_LONG = ("AnoGAN", "LOCI", "ROD", "SOD")


def one_by_one(names):
    """The names as parameters of a test; the slowest detectors run in `make test-long`."""
    return [pytest.param(n, marks=pytest.mark.long) if n in TAKES_LONG else n for n in names]


def make_detector(name, contamination):
    """The detector with that contamination, a seed if it takes one, and its defaults otherwise."""
    detector_class = getattr(importlib.import_module(FOUND[name][0]), name)
    options = {"random_state": 0} if takes_seed(detector_class) else {}
    options |= DEEP.get(name, {})
    if name == "LSCP":
        from pyod.models.lof import LOF

        options |= {"detector_list": [LOF(n_neighbors=5), LOF(n_neighbors=10)], "n_bins": 2}
    return detector_class(contamination=contamination, **options)


def takes_seed(detector_class):
    return "random_state" in inspect.signature(detector_class.__init__).parameters


def rows_for(name, n_rows, seed):
    """Rows of three columns (one column for MAD), a few of them far from the rest."""
    rng = np.random.default_rng(seed)
    n_far = n_rows // 12
    rows = np.vstack([rng.normal(size=(n_rows - n_far, 3)), rng.normal(5.0, 1.0, size=(n_far, 3))])
    return rows[:, :1] if name == "MAD" else rows
