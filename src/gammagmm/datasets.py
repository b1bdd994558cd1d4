"""The demo set, synthetic rows with a chosen gamma, and benchmark files with labels."""

from __future__ import annotations

import csv
import math
import numbers
import os
import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.checks import as_generator, check_count
from gammagmm.errors import TableError
from gammagmm.readers.arff import ARFF_NUMERIC_TYPES, arff_lines
from gammagmm.readers.arrays import read_archive
from gammagmm.readers.raw_table import numbered_names, shown
from gammagmm.readers.source import Source, refusing

__all__ = [
    "Dataset",
    "benchmark_names",
    "data_folder",
    "load_benchmark",
    "load_demo",
    "make_contaminated",
    "read_dami_arff",
    "read_npz",
]

FloatArray = NDArray[np.float64]
N_CLUSTERS = 3
BOX_MARGIN = 0.1  # global anomalies: box wider by this share of the range, on either side
LOCAL_SCALE = 5.0  # local anomalies: covariances times this
DISPLACEMENT = 3.0  # clustered anomalies: distance in standard deviations, in every feature
TIGHT_SCALE = 0.1  # clustered anomalies: covariance of an inlier cluster times this


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows with known labels.

    Attributes
    ----------
    X : ndarray of shape (n, d)
        The rows, float64.
    y : ndarray of shape (n,)
        1 for an anomaly, 0 for a normal row.
    name : str
        What the set is called.
    feature_names : tuple of str
        One name a column.
    """

    X: FloatArray
    y: NDArray[np.int64]
    name: str
    feature_names: tuple[str, ...]

    @property
    def gamma(self) -> float:
        """Share of anomalies."""
        return float(self.y.mean())

    def __repr__(self) -> str:
        n, d = self.X.shape
        return f"Dataset({self.name!r}, {n} rows, {d} features, gamma={self.gamma:.4f})"


def make_contaminated(n: int, d: int, gamma: float, kind: str, random_state: Any = None) -> Dataset:
    """Synthetic rows of which exactly ``round(gamma * n)`` are anomalies.

    The inliers come from a random mixture of three Gaussians with correlated features. The
    anomalies are of one of the four kinds of ADBench (Han et al., 2022):

    - "global": uniform over the inliers' box, widened by a tenth of its range on either side;
    - "local": the inliers' mixture with its covariances times 5;
    - "clustered": one tight cluster, 3 standard deviations of the inliers away from their mean
      in every feature. ADBench multiplies the cluster means by 5 instead, which moves nothing
      where a mean is 0;
    - "dependency": the inliers' marginal distributions, with the features independent.

    Parameters
    ----------
    n : int
        Number of rows, at least 10.
    d : int
        Number of features; at least 2 for dependency anomalies.
    gamma : float
        Share of anomalies, from 0 to 0.5.
    kind : {"global", "local", "clustered", "dependency"}
        What makes the anomalies anomalous.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        The same whole number gives the same rows.

    Returns
    -------
    Dataset
        The rows, shuffled.

    Examples
    --------
    >>> make_contaminated(200, 3, 0.05, "local", random_state=0)
    Dataset('local', 200 rows, 3 features, gamma=0.0500)
    """
    _check_kind(kind)
    check_count("n", n, 10)
    check_count("d", d, 2 if kind == "dependency" else 1)
    _check_gamma(gamma)
    rng = as_generator(random_state)
    mixture = _random_mixture(d, rng)
    n_anomalies = round(gamma * n)
    inliers = _draw_rows(mixture, n - n_anomalies, 1.0, rng)
    anomalies = _ANOMALIES[kind](mixture, inliers, n_anomalies, rng)
    order = rng.permutation(n)
    y = np.repeat(np.array([0, 1]), [n - n_anomalies, n_anomalies])
    return Dataset(np.vstack([inliers, anomalies])[order], y[order], kind, numbered_names(d))


def _check_kind(kind: Any) -> None:
    if kind not in _ANOMALIES:
        raise ValueError(f"kind must be one of {', '.join(_ANOMALIES)}, got {kind!r}.")


def _check_gamma(gamma: Any) -> None:
    if isinstance(gamma, bool) or not isinstance(gamma, numbers.Real):
        raise TypeError(f"gamma must be a number, got {gamma!r}.")
    if not 0.0 <= float(gamma) <= 0.5:
        raise ValueError(f"gamma must lie between 0 and 0.5, got {gamma!r}.")


@dataclass(frozen=True)
class _Mixture:
    """Gaussian clusters in which one common factor correlates the features.

    A row of cluster k is means + scales * (loadings * factor + sqrt(1 - loadings ** 2) * noise).
    """

    weights: FloatArray  # (K,)
    means: FloatArray  # (K, d)
    scales: FloatArray  # (K, d)
    loadings: FloatArray  # (K, d)


def _random_mixture(d: int, rng: np.random.Generator) -> _Mixture:
    shape = (N_CLUSTERS, d)
    return _Mixture(
        weights=rng.dirichlet(np.full(N_CLUSTERS, 5.0)),
        means=rng.normal(scale=3.0, size=shape),
        scales=rng.uniform(0.5, 1.5, shape),
        loadings=rng.choice([-1.0, 1.0], shape) * rng.uniform(0.6, 0.95, shape),
    )


def _draw_rows(mixture: _Mixture, n: int, scale: float, rng: np.random.Generator) -> FloatArray:
    """Rows from the mixture with its covariances times `scale`."""
    cluster = rng.choice(len(mixture.weights), size=n, p=mixture.weights)
    loadings = mixture.loadings[cluster]
    noise = np.sqrt(1.0 - loadings**2) * rng.standard_normal(loadings.shape)
    deviations = loadings * rng.standard_normal((n, 1)) + noise
    return mixture.means[cluster] + math.sqrt(scale) * mixture.scales[cluster] * deviations


def _global(_: _Mixture, inliers: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    low, high = inliers.min(axis=0), inliers.max(axis=0)
    margin = BOX_MARGIN * (high - low)
    return rng.uniform(low - margin, high + margin, (n, len(low)))


def _local(mixture: _Mixture, _: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    return _draw_rows(mixture, n, LOCAL_SCALE, rng)


def _clustered(
    mixture: _Mixture, inliers: FloatArray, n: int, rng: np.random.Generator
) -> FloatArray:
    signs = rng.choice([-1.0, 1.0], inliers.shape[1])
    centre = inliers.mean(axis=0) + signs * DISPLACEMENT * inliers.std(axis=0)
    cluster = _Mixture(np.ones(1), centre[None], mixture.scales[:1], mixture.loadings[:1])
    return _draw_rows(cluster, n, TIGHT_SCALE, rng)


def _dependency(mixture: _Mixture, _: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    """Every cell from its feature's marginal mixture, with a cluster of its own."""
    feature = np.arange(mixture.means.shape[1])
    cluster = rng.choice(len(mixture.weights), size=(n, len(feature)), p=mixture.weights)
    noise = rng.standard_normal(cluster.shape)
    return mixture.means[cluster, feature] + mixture.scales[cluster, feature] * noise


_Draw = Callable[[_Mixture, FloatArray, int, np.random.Generator], FloatArray]
_ANOMALIES: dict[str, _Draw] = {
    "global": _global,
    "local": _local,
    "clustered": _clustered,
    "dependency": _dependency,
}
DEMO_SEED = 0
N_DEMO_ANOMALIES = 10
ARFF_LABELS = {"yes": 1, "no": 0}
ARFF_ATTRIBUTE = re.compile(r"""@attribute\s+('[^']*'|"[^"]*"|[^\s{]+)\s*(.+)""", re.IGNORECASE)


def load_demo() -> Dataset:
    """Breast-cancer data with all 357 benign rows and 10 of the malignant ones as anomalies.

    Made like the paper's WDBC from the copy that scikit-learn bundles: the malignant rows are
    drawn without replacement by ``numpy.random.default_rng(DEMO_SEED)``. The rows keep the order
    of the file.

    Examples
    --------
    >>> load_demo()
    Dataset('breast-cancer', 367 rows, 30 features, gamma=0.0272)
    """
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer()
    is_malignant = bunch.target == list(bunch.target_names).index("malignant")
    rng = np.random.default_rng(DEMO_SEED)
    drawn = rng.choice(np.flatnonzero(is_malignant), N_DEMO_ANOMALIES, replace=False)
    rows = np.sort(np.concatenate([np.flatnonzero(~is_malignant), drawn]))
    y = is_malignant[rows].astype(np.int64)
    return Dataset(bunch.data[rows], y, "breast-cancer", tuple(map(str, bunch.feature_names)))


def data_folder() -> Path | None:
    """Folder of the benchmark collections, or None where there is none.

    The environment variable ``GAMMAGMM_DATA`` names it; without that it is ``../shared/data``
    beside the working directory or beside the checkout.

    Examples
    --------
    >>> folder = data_folder()
    >>> folder is None or folder.is_dir()
    True
    """
    named = os.environ.get("GAMMAGMM_DATA")
    if named:
        if not Path(named).is_dir():
            raise FileNotFoundError(f"GAMMAGMM_DATA is {named!r}, which is not a folder.")
        return Path(named)
    checkout = Path(__file__).resolve().parents[2]
    candidates = (place.parent / "shared" / "data" for place in (Path.cwd(), checkout))
    return next(filter(Path.is_dir, candidates), None)


def benchmark_names(collection: str = "paper") -> tuple[str, ...]:
    """Names of the datasets in a collection, sorted.

    Examples
    --------
    >>> names = benchmark_names() if data_folder() else ("WDBC",)
    >>> "WDBC" in names
    True
    """
    return tuple(sorted(_benchmark_files(collection)))


def load_benchmark(name: str, collection: str = "paper") -> Dataset:
    """Dataset `name` of a collection in the data folder.

    Examples
    --------
    >>> dataset = load_benchmark("WDBC") if data_folder() else load_demo()
    >>> int(dataset.y.sum()), dataset.X.shape
    (10, (367, 30))
    """
    files = _benchmark_files(collection)
    if name not in files:
        raise FileNotFoundError(
            f"There is no dataset {name!r} in {collection!r}. "
            f"There are: {', '.join(sorted(files))}."
        )
    return _READERS[files[name].suffix](files[name])


def read_npz(path: str | os.PathLike[str]) -> Dataset:
    """Dataset in an .npz file that holds ``X`` (n, d) and ``y`` (n,), where 1 is an anomaly.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(Path(folder, "small.npz"), X=[[0.5], [9.0]], y=[0, 1])
    ...     read_npz(Path(folder, "small.npz"))
    Dataset('small', 2 rows, 1 features, gamma=0.5000)
    """
    path = _existing_file(path)
    if not zipfile.is_zipfile(path):
        raise TableError(f"{path} is not an .npz file. Write it with numpy.savez.")
    arrays = read_archive(Source(str(path), ".npz", path.read_bytes()), ("X", "y"))
    if lacking := sorted({"X", "y"} - arrays.keys()):
        raise TableError(f"{path} must hold arrays X and y: it has no {lacking[0]}.")
    X, y = arrays["X"], arrays["y"]
    are_numbers = X.dtype.kind in "biuf" and y.dtype.kind in "biuf"
    if X.ndim != 2 or not are_numbers or y.shape != X.shape[:1]:
        raise TableError(
            f"{path} must hold numbers X of shape (n, d) and y of shape (n,), got X of shape "
            f"{X.shape} and type {X.dtype}, y of shape {y.shape} and type {y.dtype}."
        )
    return _checked_dataset(path, X, y, numbered_names(X.shape[1]))


def read_dami_arff(path: str | os.PathLike[str]) -> Dataset:
    r"""Dataset in an ARFF file of the DAMI collection (Campos et al., 2016).

    The attribute ``outlier`` holds yes or no, an attribute ``id`` is dropped, and every other
    attribute is numeric.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lines = "@ATTRIBUTE a REAL", "@ATTRIBUTE outlier {yes,no}", "@DATA", "1,no", "9,yes"
    ...     _ = Path(folder, "small.arff").write_text("\n".join(lines))
    ...     read_dami_arff(Path(folder, "small.arff"))
    Dataset('small', 2 rows, 1 features, gamma=0.5000)
    """
    path = _existing_file(path)
    lines = arff_lines(_arff_text(path))
    names = _arff_names(path, lines)
    rows = [_arff_row(f"{path}, line {line}", text, names) for line, text in lines]
    columns = tuple(name for name in names if name.lower() not in {"id", "outlier"})
    X = np.array([values for values, _ in rows]).reshape(len(rows), len(columns))
    return _checked_dataset(path, X, np.array([label for _, label in rows]), columns)


def _arff_text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise TableError(
            f"{path} is not UTF-8 at byte {error.start + 1}. Save it as UTF-8."
        ) from error


def _arff_names(path: Path, lines: Iterator[tuple[int, str]]) -> list[str]:
    """Names of the attributes; `lines` is left at the first row."""
    header = dict(takewhile(lambda line: not line[1].lower().startswith("@data"), lines))
    found = ((i, ARFF_ATTRIBUTE.match(text)) for i, text in header.items())
    attributes = [(i, match[1].strip("'\""), match[2].lower()) for i, match in found if match]
    for i, name, kind in attributes:
        if name.lower() not in {"id", "outlier"} and kind.split()[0] not in ARFF_NUMERIC_TYPES:
            raise TableError(
                f"{path}, line {i}: attribute {shown(name)} has the type {shown(kind)}. Take the "
                "version of the file in which every attribute is numeric."
            )
    if [name.lower() for _, name, _ in attributes].count("outlier") != 1:
        raise TableError(
            f"{path} needs exactly one attribute 'outlier' with the values yes and no."
        )
    return [name for _, name, _ in attributes]


def _arff_row(where: str, text: str, names: list[str]) -> tuple[list[float], int]:
    """Values of the features and label of one row."""
    if text.startswith("{"):
        raise TableError(f"{where}: sparse ARFF rows cannot be read. Write every value out.")
    quote = '"' if '"' in text else "'"
    with refusing(where, (csv.Error,), "Correct the line."):
        cells = next(csv.reader([text], quotechar=quote, skipinitialspace=True))
    if len(cells) != len(names):
        raise TableError(f"{where}: found {len(cells)} values for {len(names)} attributes.")
    values, label = [], -1
    for name, cell in zip(names, (cell.strip(" '\"") for cell in cells), strict=True):
        try:
            if name.lower() == "outlier":
                label = ARFF_LABELS[cell.lower()]
            elif name.lower() != "id":
                values.append(float(cell))
        except (KeyError, ValueError) as error:
            expected = "yes or no" if name.lower() == "outlier" else "a number"
            raise TableError(
                f"{where}, {shown(name)}: expected {expected}, found {shown(cell)}."
            ) from error
    return values, label


def _existing_file(path: str | os.PathLike[str]) -> Path:
    if not Path(path).is_file():
        raise TableError(f"{path} does not exist or is not a file. Check the path.")
    return Path(path)


def _checked_dataset(
    path: Path, X: NDArray[Any], y: NDArray[Any], feature_names: tuple[str, ...]
) -> Dataset:
    if not X.size:
        raise TableError(f"{path} holds no rows or no features: X has the shape {X.shape}.")
    if not np.isfinite(X).all():
        row, column = np.argwhere(~np.isfinite(X))[0]
        raise TableError(f"{path}: X[{row}, {column}] is {X[row, column]}, not a finite number.")
    if not np.isin(y, (0, 1)).all():
        raise TableError(f"{path}: y must hold 0 and 1 only, got {np.unique(y)[:5].tolist()}.")
    return Dataset(X.astype(np.float64), y.astype(np.int64), path.stem, feature_names)


def _benchmark_files(collection: str) -> dict[str, Path]:
    """Dataset name -> file."""
    folder = data_folder()
    if folder is None or not (folder / collection).is_dir():
        raise FileNotFoundError(
            f"There is no collection {collection!r} in {folder or 'any data folder'}. Set the "
            "environment variable GAMMAGMM_DATA to the folder that holds it."
        )
    files = sorted((folder / collection).iterdir())
    return {path.stem: path for path in files if path.suffix in _READERS}


_READERS: dict[str, Callable[[Path], Dataset]] = {".npz": read_npz, ".arff": read_dami_arff}
