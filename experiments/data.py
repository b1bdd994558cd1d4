"""Datasets by name, and their detectors' scores, which are computed once and kept in cache/."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from experiments.datasets import NO_FOLDER, MissingDataError, data_folder, load_benchmark
from gammagmm.datasets import Dataset
from gammagmm.detectors.fit import FitSettings, fit_detectors
from gammagmm.detectors.presets import detector_parts, plan_rows, resolve_detectors
from gammagmm.detectors.usable import keep_usable
from gammagmm.mixture.score_space import fit_scaler

CACHE = Path(os.environ.get("GAMMAGMM_CACHE", Path(__file__).parent / "cache"))
TURBINE = re.compile(r"T(15|21)")
NO_SENSORS = ("time", "group")  # `group` numbers the batches of rows


@dataclass(frozen=True)
class Scored:
    """A dataset's labels and its detectors' raw training scores."""

    S: np.ndarray  # (n, M)
    names: list[str]  # of the M detectors
    y: np.ndarray  # (n,)
    info: list[dict]  # one record for each detector, including those left out

    @property
    def gamma(self) -> float:
        return float(self.y.mean())


def load(collection: str, name: str) -> Dataset:
    """The dataset, from the folder that GAMMAGMM_DATA names."""
    folder, match = data_folder(), TURBINE.fullmatch(name)
    if folder is None or match is None:
        return load_benchmark(name, collection)
    if not (folder / "turbines" / f"{match[1]}_data.csv").is_file():
        raise MissingDataError(f"no turbines/{match[1]}_data.csv in the data folder")
    return read_turbine(folder / "turbines", int(match[1]))


def cache_path(collection: str, name: str) -> Path:
    return CACHE / collection / f"{name}.npz"


def scored(collection: str, name: str) -> Scored:
    """The scores that `score` has kept."""
    if not cache_path(collection, name).is_file():
        load(collection, name)  # raises if the data are missing
        raise RuntimeError("its detectors failed")
    with np.load(cache_path(collection, name), allow_pickle=False) as kept:
        info = json.loads(str(kept["info"]))
        return Scored(kept["S"], kept["names"].tolist(), kept["y"], info)


def enlarged_scores(name: str, n_rows: int, noise: float, seed: int) -> Scored:
    """`n_rows` rows drawn with replacement from the scores of the paper's detectors.

    Normal noise with this standard deviation, in the score space, makes all of them different.
    """
    folder = data_folder()
    if folder is None:
        raise RuntimeError(NO_FOLDER)
    if not (folder / "scores" / f"{name}.npz").is_file():
        raise MissingDataError(f"no scores/{name} in the data folder")
    with np.load(folder / "scores" / f"{name}.npz", allow_pickle=False) as kept:
        S, names, y = kept["S"], kept["names"].tolist(), kept["y"]
    rng = np.random.default_rng(seed)
    drawn = rng.integers(len(S), size=n_rows)
    space = fit_scaler(S).transform(S)[drawn] + noise * rng.normal(size=(n_rows, S.shape[1]))
    return Scored(np.exp(space), names, y[drawn], [])


def score(collection: str, name: str, part: dict, seed: int) -> Scored:
    """Scores of the collection's preset on the dataset, also kept in the cache."""
    dataset = load(collection, name)
    made = scores_of(dataset.X, dataset.y, part, seed)
    _keep(made, cache_path(collection, name))
    return made


def seeded_scores(collection: str, name: str, part: dict, seed: int) -> Scored:
    """Scores of the collection's preset with this seed, computed unless the cache has them.

    The detectors that use no random numbers are fitted once for all seeds.
    """
    path = cache_path(f"{collection}-seed-{seed}", name)
    if not path.is_file():
        dataset = load(collection, name)
        fixed = cache_path(f"{collection}-fixed", name)
        if not fixed.is_file():
            _keep(scores_of(dataset.X, dataset.y, part, seed, is_random=False), fixed)
        alike = scored(f"{collection}-fixed", name)
        own = scores_of(dataset.X, dataset.y, part, seed, is_random=True)
        _keep(_joined(alike, own, resolve_detectors(part["preset"], len(alike.y))[0]), path)
    return scored(f"{collection}-seed-{seed}", name)


def _joined(first: Scored, second: Scored, names: Iterable[str]) -> Scored:
    """The detectors of both, in the order of `names`."""
    columns = dict(
        zip([*first.names, *second.names], np.hstack([first.S, second.S]).T, strict=True)
    )
    kept = [name for name in names if name in columns]
    scores = np.column_stack([columns[name] for name in kept])
    return Scored(scores, kept, first.y, [*first.info, *second.info])


def classic_scores(collection: str, name: str, seed: int) -> Scored:
    """Scores of the default detectors on the dataset, computed unless the cache has them."""
    path = cache_path(f"classic-{collection}", name)
    if path.is_file():
        return scored(f"classic-{collection}", name)
    dataset = load(collection, name)
    made = scores_of(dataset.X, dataset.y, {"preset": "classic", "max_fit_rows": "auto"}, seed)
    _keep(made, path)
    return made


def _keep(made: Scored, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Workers may compute the same scores at the same time.
    whole = path.with_suffix(f".{os.getpid()}.part.npz")
    np.savez_compressed(whole, S=made.S, names=made.names, y=made.y, info=json.dumps(made.info))
    whole.replace(path)


def scores_of(
    X: np.ndarray, y: np.ndarray, part: dict, seed: int, is_random: bool | None = None
) -> Scored:
    """Training scores of the preset's detectors, as `GammaGMM` with `scale=None` has them.

    `is_random` selects the detectors that use random numbers, or the others.
    """
    limit = None if part["max_fit_rows"] == "all" else "auto"
    rows = plan_rows(part["preset"], *X.shape, limit)
    detectors, _ = resolve_detectors(part["preset"], len(X), rows)
    if is_random is not None:
        detectors = {
            name: detector
            for name, detector in detectors.items()
            if uses_random_numbers(detector) == is_random
        }
    rng = np.random.default_rng(seed)
    usable = keep_usable(fit_detectors(detectors, X, rng, FitSettings(rows)))
    info = [asdict(record) | {"traceback": ""} for record in usable.info]
    return Scored(usable.scores, list(usable.detectors), y, info)


def uses_random_numbers(detector: Any) -> bool:
    return any(hasattr(part, "random_state") for part in detector_parts(detector))


def read_turbine(folder: Path, number: int) -> Dataset:
    """Mean of each sensor over each minute, labelled by interval, from a competition's CSV files.

    The label is 1 in a failure interval and 0 in a normal interval; other readings are dropped. For
    turbine 15 the folder holds 15_data.csv with a column `time` and one column for each sensor, and
    15_normalInfo.csv and 15_failureInfo.csv with the columns startTime and endTime.
    """
    import pandas as pd

    table = pd.read_csv(folder / f"{number}_data.csv", parse_dates=["time"])
    sensors = [name for name in table.columns if name not in NO_SENSORS]
    label = pd.Series(-1, index=table.index)
    for name, value in (("normal", 0), ("failure", 1)):
        label[_inside(table["time"], folder / f"{number}_{name}Info.csv")] = value
    known = label >= 0
    # A minute with both labels becomes two rows.
    keys = [table["time"][known].dt.floor("min"), label[known].rename("label")]
    minutes = table.loc[known, sensors].groupby(keys).mean()
    y = minutes.index.get_level_values("label").to_numpy()
    return Dataset(minutes.to_numpy(float), y, f"T{number}", tuple(sensors))


def _inside(times: Any, path: Path) -> Any:
    """Whether each time lies in one of the file's intervals, which include their ends."""
    import pandas as pd

    inside = pd.Series(False, index=times.index)
    intervals = pd.read_csv(path, parse_dates=["startTime", "endTime"])
    for start, end in zip(intervals["startTime"], intervals["endTime"], strict=True):
        inside |= times.between(start, end)
    return inside
