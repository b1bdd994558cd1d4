"""Datasets by name, and each one's detector scores, computed once and kept in cache/."""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from experiments.turbines import read_turbine
from gammagmm.datasets import Dataset, data_folder, load_benchmark
from gammagmm.detectors.fit import FitSettings, fit_detectors
from gammagmm.detectors.presets import resolve_detectors
from gammagmm.detectors.usable import keep_usable
from gammagmm.estimator.parameters import AUTO_FIT_ROWS

CACHE = Path(os.environ.get("GAMMAGMM_CACHE", Path(__file__).parent / "cache"))
TURBINE = re.compile(r"T(15|21)")


class MissingDataError(Exception):
    """The dataset is not at hand."""


@dataclass(frozen=True)
class Scored:
    """A dataset's labels and its detectors' raw training scores."""

    S: np.ndarray  # (n, M)
    names: list[str]  # of the M detectors
    y: np.ndarray  # (n,)
    info: list[dict]  # what became of every detector

    @property
    def gamma(self) -> float:
        return float(self.y.mean())


def load(collection: str, name: str) -> Dataset:
    """The dataset, or a `MissingDataError` that says what is not there."""
    folder = data_folder()
    if folder is None:
        raise MissingDataError("no data folder: set GAMMAGMM_DATA")
    if match := TURBINE.fullmatch(name):
        if not (folder / "turbines" / f"{match[1]}_data.csv").is_file():
            raise MissingDataError(f"no turbines/{match[1]}_data.csv in the data folder")
        return read_turbine(folder / "turbines", int(match[1]))
    try:
        return load_benchmark(name, collection)
    except FileNotFoundError as error:
        raise MissingDataError(f"no {collection}/{name} in the data folder") from error


def cache_path(collection: str, name: str) -> Path:
    return CACHE / collection / f"{name}.npz"


def scored(collection: str, name: str) -> Scored:
    """The kept scores; `score` has made them, or the data are missing."""
    if not cache_path(collection, name).is_file():
        load(collection, name)
        raise RuntimeError("its detectors failed")
    with np.load(cache_path(collection, name), allow_pickle=False) as kept:
        info = json.loads(str(kept["info"]))
        return Scored(kept["S"], kept["names"].tolist(), kept["y"], info)


def score(collection: str, name: str, part: dict, seed: int) -> Scored:
    """Fit the detectors of the collection's preset on the dataset, and keep their scores."""
    dataset = load(collection, name)
    made = scores_of(dataset.X, dataset.y, part, seed)
    path = cache_path(collection, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = path.with_suffix(".part.npz")
    np.savez_compressed(whole, S=made.S, names=made.names, y=made.y, info=json.dumps(made.info))
    whole.replace(path)
    return made


def scores_of(X: np.ndarray, y: np.ndarray, part: dict, seed: int) -> Scored:
    """Training scores of the preset's detectors, as `GammaGMM` takes them."""
    limit = None if part["max_fit_rows"] == "all" else AUTO_FIT_ROWS
    detectors, _ = resolve_detectors(part["preset"], len(X), limit)
    rng = np.random.default_rng(seed)
    usable = keep_usable(fit_detectors(detectors, X, rng, FitSettings(limit)))
    info = [asdict(record) | {"traceback": ""} for record in usable.info]
    return Scored(usable.scores, list(usable.detectors), y, info)
