"""The benchmark datasets, from the folder that the environment variable GAMMAGMM_DATA names."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from gammagmm.datasets import Dataset
from gammagmm.readers.raw_table import numbered_names
from gammagmm.readers.registry import read_raw

LABELS = {"yes": 1, "no": 0}
NO_FOLDER = "GAMMAGMM_DATA is not set. Set it to the folder that holds the datasets."


class MissingDataError(Exception):
    """The data folder does not hold the dataset."""


def data_folder() -> Path | None:
    """The folder of the collections; None if GAMMAGMM_DATA is not set, or empty."""
    folder = os.environ.get("GAMMAGMM_DATA")
    if not folder:
        return None
    if not Path(folder).is_dir():
        raise FileNotFoundError(f"GAMMAGMM_DATA is {folder!r}, which is not a folder.")
    return Path(folder)


def load_benchmark(name: str, collection: str = "paper") -> Dataset:
    """The dataset in the file `name`.npz or .arff in the folder `collection` of the data folder."""
    folder = data_folder()
    if folder is None:
        raise RuntimeError(NO_FOLDER)
    for suffix, read in ((".npz", _read_npz), (".arff", _read_arff)):
        path = folder / collection / f"{name}{suffix}"
        if path.is_file():
            return read(path)
    raise MissingDataError(f"no {collection}/{name} in the data folder")


def _read_npz(path: Path) -> Dataset:
    """Rows `X` (n, d) with labels `y` (n,), where 1 is an anomaly."""
    with np.load(path, allow_pickle=False) as kept:
        return _checked(path, kept["X"], kept["y"], numbered_names(kept["X"].shape[1]))


def _read_arff(path: Path) -> Dataset:
    """A set of DAMI (Campos et al., 2016): `outlier` is yes or no, and `id` is no data."""
    raw = read_raw(path)
    roles = [name.lower() for name in raw.columns]
    features = [j for j, role in enumerate(roles) if role not in ("id", "outlier")]
    y = [LABELS[(cell or "").lower()] for cell in raw.cells(roles.index("outlier"))]
    X = np.column_stack([raw.data[j].astype(float) for j in features])
    return _checked(path, X, np.array(y), tuple(raw.columns[j] for j in features))


def _checked(path: Path, X: np.ndarray, y: np.ndarray, names: tuple[str, ...]) -> Dataset:
    if y.shape != X.shape[:1] or not np.isin(y, (0, 1)).all() or not np.isfinite(X).all():
        raise ValueError(f"{path} must hold finite numbers and one label, 0 or 1, for each row.")
    return Dataset(X.astype(np.float64), y.astype(np.int64), path.stem, names)
