"""Made tables: normal rows with outliers that everybody sees, and tables without any outlier."""

from __future__ import annotations

import numpy as np

N_COLUMNS = 5
BLOB_DISTANCE = 20.0  # of the centres from the origin, in standard deviations of a blob
RADII = {"near": (6.0, 10.0), "far": (30.0, 60.0), "cluster": (8.0, 12.0)}
CLUSTER_SCALE = 0.5
SMALL_BLOB = 0.08


def sceptic_table(
    kind: str, share: float, n_blobs: int, n_rows: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Rows (n_rows, 5) of `n_blobs` normal blobs with a share of outliers, and their labels.

    "near" and "far" outliers lie on a shell of 6 to 10, or 30 to 60, standard deviations around a
    blob, and at least as far from every other blob. A "cluster" is one tight blob of outliers, 8 to
    12 standard deviations from the centre of another blob.
    """
    numbers = [seed, n_rows, n_blobs, round(1000 * share), list(RADII).index(kind)]
    rng = np.random.default_rng(numbers)
    n_outliers = round(share * n_rows)
    centres = _centres(n_blobs, rng)
    inliers = _around(centres, n_rows - n_outliers, rng)
    if kind == "cluster":
        centre = _shell(centres, 1, RADII[kind], rng)
        outliers = centre + CLUSTER_SCALE * rng.normal(size=(n_outliers, N_COLUMNS))
    else:
        outliers = _shell(centres, n_outliers, RADII[kind], rng)
    order = rng.permutation(n_rows)
    y = np.repeat([0, 1], [n_rows - n_outliers, n_outliers])
    return np.vstack([inliers, outliers])[order], y[order]


def clean_table(kind: str, n_rows: int, seed: int) -> np.ndarray:
    """Rows (n_rows, 5) of which none is an outlier."""
    rng = np.random.default_rng([seed, n_rows, list(CLEAN).index(kind)])
    return CLEAN[kind](rng, (n_rows, N_COLUMNS))


CLEAN = {
    "normal": lambda rng, size: rng.normal(size=size),
    "t3": lambda rng, size: rng.standard_t(3, size=size),
    "lognormal": lambda rng, size: rng.lognormal(size=size),
    "uniform": lambda rng, size: rng.uniform(size=size),
    "blobs": lambda rng, size: _around(_centres(3, rng), size[0], rng),
    "integers": lambda rng, size: rng.poisson(4.0, size=size).astype(float),
}


def shaped_table(kind: str, n_rows: int, seed: int) -> np.ndarray:
    """Rows without an outlier, in 2 to 10 independent columns whose shape is `kind`.

    "duplicates" are normal rows drawn with replacement, each 2 to 10 times on average; the columns
    of "mixed" have different shapes.
    """
    kinds = [*SHAPES, "duplicates", "mixed"]
    rng = np.random.default_rng([seed, n_rows, kinds.index(kind)])
    n_columns = int(rng.integers(2, 11))
    if kind == "duplicates":
        rows = rng.normal(size=(n_rows // int(rng.integers(2, 11)), n_columns))
        return rows[rng.integers(len(rows), size=n_rows)]
    shapes = rng.choice(list(SHAPES), size=n_columns) if kind == "mixed" else [kind] * n_columns
    return np.column_stack([SHAPES[shape](rng, n_rows) for shape in shapes])


def two_blobs(n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of two normal blobs, 8 to 30 deviations apart, and labels; the smaller one is 8 %."""
    rng = np.random.default_rng([seed, n_rows])
    n_columns, distance = int(rng.integers(2, 11)), rng.uniform(8.0, 30.0)
    y = rng.permutation(np.arange(n_rows) < round(SMALL_BLOB * n_rows)).astype(int)
    centre = distance * _directions(1, rng, n_columns)
    return rng.normal(size=(n_rows, n_columns)) + centre * y[:, None], y


def _zero_inflated(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.where(rng.random(n) < rng.uniform(0.5, 0.95), 0.0, rng.lognormal(size=n))


def _discrete(rng: np.random.Generator, n: int) -> np.ndarray:
    n_levels = int(rng.integers(2, 8))
    return rng.choice(n_levels, size=n, p=rng.dirichlet(np.full(n_levels, 2.0))).astype(float)


SHAPES = {
    "normal": lambda rng, n: rng.normal(size=n),
    "t2": lambda rng, n: rng.standard_t(2, size=n),
    "lognormal": lambda rng, n: rng.lognormal(size=n),
    "poisson": lambda rng, n: rng.poisson(10.0 ** rng.uniform(-1.5, 1.0), size=n).astype(float),
    "zeros": _zero_inflated,
    "discrete": _discrete,
}


def _centres(n_blobs: int, rng: np.random.Generator) -> np.ndarray:
    if n_blobs == 1:
        return np.zeros((1, N_COLUMNS))
    return BLOB_DISTANCE * _directions(n_blobs, rng)


def _around(centres: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    return centres[rng.integers(len(centres), size=n)] + rng.normal(size=(n, N_COLUMNS))


def _shell(
    centres: np.ndarray, n: int, radii: tuple[float, float], rng: np.random.Generator
) -> np.ndarray:
    """`n` rows between the two radii around a random centre, and not nearer to any other."""
    found = np.empty((0, N_COLUMNS))
    while len(found) < n:
        around = centres[rng.integers(len(centres), size=n)]
        rows = around + rng.uniform(*radii, size=(n, 1)) * _directions(n, rng)
        distances = np.linalg.norm(rows[:, None] - centres, axis=2).min(axis=1)
        found = np.vstack([found, rows[distances >= radii[0] * (1.0 - 1e-9)]])
    return found[:n]


def _directions(n: int, rng: np.random.Generator, n_columns: int = N_COLUMNS) -> np.ndarray:
    directions = rng.normal(size=(n, n_columns))
    return directions / np.linalg.norm(directions, axis=1, keepdims=True)
