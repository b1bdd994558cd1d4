"""The demo set and the benchmark readers; synthetic data come from `synthetic`."""

from __future__ import annotations

import csv
import os
import re
import zipfile
from collections.abc import Callable, Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm.errors import TableError
from gammagmm.readers.arrays import read_archive
from gammagmm.readers.raw_table import shown
from gammagmm.readers.source import Source, refusing
from gammagmm.synthetic import Dataset, make_contaminated, numbered_names

__all__ = [
    "Dataset",
    "arff_lines",
    "benchmark_names",
    "data_folder",
    "load_benchmark",
    "load_demo",
    "make_contaminated",
    "read_dami_arff",
    "read_npz",
]

DEMO_SEED = 0
N_DEMO_ANOMALIES = 10

ARFF_LABELS = {"yes": 1, "no": 0}
ARFF_NUMERIC_TYPES = frozenset({"real", "numeric", "integer"})
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


def arff_lines(text: str) -> Iterator[tuple[int, str]]:
    """Line number and text of whatever is neither blank nor a comment."""
    stripped = ((i, line.strip()) for i, line in enumerate(text.splitlines(), start=1))
    return ((i, line) for i, line in stripped if line and not line.startswith("%"))


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
