"""Random tables, ordinary and bad, drawn from a seed or by Hypothesis.

A `Recipe` describes a table in a few words, short enough for a report of a fault, and `make_table`
gives the same table for it every time. `grouped_scores` draws scores that have a solution.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

__all__ = [
    "CONTAINERS",
    "TRANSFORMS",
    "VALUES",
    "Recipe",
    "grouped_scores",
    "make_table",
    "random_recipe",
    "recipes",
    "small_tables",
]

Array = NDArray[np.float64]
MAX_ROWS, MAX_COLUMNS = 500, 12


@dataclass(frozen=True)
class Recipe:
    """A table: its size, its values, the transforms applied to it, and its container."""

    n_rows: int
    n_columns: int
    values: tuple[str, ...]  # one or two of VALUES; the columns alternate between them
    transforms: tuple[str, ...]  # any of TRANSFORMS, in this order
    container: str  # one of CONTAINERS
    seed: int


def make_table(recipe: Recipe) -> Any:
    """The table of `recipe`, in its container."""
    rng = np.random.default_rng(recipe.seed)
    kinds = [recipe.values[j % len(recipe.values)] for j in range(recipe.n_columns)]
    columns = [VALUES[kind](rng, recipe.n_rows) for kind in kinds]
    X = np.column_stack(columns).astype(np.float64)
    for name in recipe.transforms:
        X = TRANSFORMS[name](rng, X)
    return CONTAINERS[recipe.container](X)


def random_recipe(rng: np.random.Generator) -> Recipe:
    """A random recipe: every kind of value is equally likely, and small tables are more likely."""
    return Recipe(
        n_rows=_log_uniform(rng, MAX_ROWS),
        n_columns=_log_uniform(rng, MAX_COLUMNS),
        values=tuple(map(str, rng.choice(list(VALUES), size=rng.integers(1, 3)))),
        transforms=_random_transforms(rng),
        container="array" if rng.random() < 0.5 else str(rng.choice(list(CONTAINERS))),
        seed=int(rng.integers(2**32)),
    )


def recipes(max_rows: int = MAX_ROWS) -> st.SearchStrategy[Recipe]:
    """Strategy for recipes; they shrink towards few plain rows."""
    return st.builds(
        Recipe,
        n_rows=st.integers(1, max_rows),
        n_columns=st.integers(1, MAX_COLUMNS),
        values=st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=2).map(tuple),
        transforms=st.lists(st.sampled_from(list(TRANSFORMS)), max_size=2).map(tuple),
        container=st.sampled_from(list(CONTAINERS)),
        seed=st.integers(0, 2**32 - 1),
    )


def small_tables(max_rows: int = 30, max_columns: int = 4) -> st.SearchStrategy[Array]:
    """Strategy for small tables, drawn cell by cell: any float, or few distinct ones."""
    anything = st.floats(allow_nan=True, allow_infinity=True, width=64)
    finite = st.floats(allow_nan=False, allow_infinity=False)
    few = st.sampled_from([0.0, -0.0, 1.0, 1.0 + 2**-52, 5e-324, 1e300, -1e300])
    shape = st.tuples(st.integers(1, max_rows), st.integers(1, max_columns))
    return shape.flatmap(
        lambda size: st.one_of(*(_filled(size, e) for e in (anything, finite, few)))
    )


def _filled(shape: tuple[int, int], elements: st.SearchStrategy[float]) -> st.SearchStrategy[Array]:
    n = shape[0] * shape[1]
    return st.lists(elements, min_size=n, max_size=n).map(lambda v: np.array(v).reshape(shape))


def grouped_scores(n_rows: int, n_detectors: int, rng: np.random.Generator) -> Array:
    """Raw scores (n_rows, n_detectors) of five groups; the most anomalous groups are the smallest.

    Most mixtures of such scores have a solution.
    """
    group = rng.choice(5, size=n_rows, p=[0.55, 0.3, 0.08, 0.04, 0.03])
    centre, spread = np.array([0.0, 1.2, 2.6, 4.0, 5.2])[group], np.array([0.3, 0.3, 0.2, 0.2, 0.3])
    noise = rng.normal(size=(n_rows, n_detectors)) * spread[group][:, None]
    return np.exp(centre[:, None] + noise)


def _random_transforms(rng: np.random.Generator) -> tuple[str, ...]:
    """Up to two of TRANSFORMS, and often shared anomalies: few tables without them are solved."""
    drawn = rng.choice(list(TRANSFORMS), size=max(int(rng.integers(-2, 3)), 0))
    return (*map(str, drawn), *(["shared anomalies"] if rng.random() < 0.5 else []))


def _log_uniform(rng: np.random.Generator, largest: int) -> int:
    return int(np.floor(np.exp(rng.uniform(0.0, np.log(largest + 1.0)))))


Values = Callable[[np.random.Generator, int], Any]


def _contaminated(rng: np.random.Generator, n: int) -> Array:
    """Gamma-distributed scores; a twentieth of the rows is shifted by 8."""
    return rng.gamma(2.0, size=n) + 8.0 * (rng.random(n) < 0.05)


def _magnitudes(rng: np.random.Generator, n: int) -> Array:
    return rng.choice([-1.0, 1.0], size=n) * 10.0 ** rng.uniform(-300.0, 300.0, size=n)


def _nearly_constant(rng: np.random.Generator, n: int) -> Array:
    """One value, except for differences of a few units in the last place."""
    value = 10.0 ** rng.uniform(-10.0, 10.0)
    return value + np.spacing(value) * rng.integers(0, 4, size=n)


VALUES: dict[str, Values] = {
    "contaminated": _contaminated,
    "normal": lambda rng, n: rng.normal(size=n),
    "lognormal": lambda rng, n: rng.lognormal(0.0, 3.0, size=n),
    "cauchy": lambda rng, n: rng.standard_cauchy(size=n),
    "integers": lambda rng, n: rng.integers(-3, 4, size=n),
    "large integers": lambda rng, n: rng.integers(-(2**62), 2**62, size=n),
    "booleans": lambda rng, n: rng.random(n) < 0.2,
    "ties": lambda rng, n: np.round(rng.normal(size=n), 1),
    "two clusters": lambda rng, n: rng.normal(5.0 * (rng.random(n) < 0.5), 0.01),
    "one outlier": lambda rng, n: np.where(np.arange(n) == n // 2, 1e6, rng.normal(size=n)),
    "constant": lambda rng, n: np.full(n, rng.normal()),
    "nearly constant": _nearly_constant,
    "far from 0": lambda rng, n: 1e9 + rng.normal(size=n),
    "tiny": lambda rng, n: 1e-300 * rng.normal(size=n),
    "near the offset": lambda rng, n: 10.0 ** rng.uniform(-16.0, -1.0) * rng.random(n),
    "subnormal": lambda rng, n: 5e-324 * rng.integers(0, 5, size=n),
    "huge": lambda rng, n: 1e300 * rng.normal(size=n),
    "magnitudes": _magnitudes,
}


def _spoil(value: float) -> Callable[[np.random.Generator, Array], Array]:
    """A transform that puts `value` into a few cells of one column, or into all of them."""

    def transform(rng: np.random.Generator, X: Array) -> Array:
        rows = rng.integers(len(X), size=1 + int(rng.integers(3)))
        X[rows if rng.random() < 0.7 else slice(None), rng.integers(X.shape[1])] = value
        return X

    return transform


def _nearly_collinear(rng: np.random.Generator, X: Array) -> Array:
    with np.errstate(all="ignore"):
        X[:, -1] = X[:, 0] * (1.0 + 1e-9 * rng.normal(size=len(X)))
    return X


def _shared_anomalies(rng: np.random.Generator, X: Array) -> Array:
    """Up to a tenth of the rows is shifted in every column, as if the detectors agreed."""
    rows = rng.random(len(X)) < rng.uniform(0.01, 0.1)
    with np.errstate(all="ignore"):
        spread = np.ptp(X, axis=0, keepdims=True)
        X[rows] += 2.0 * np.where(np.isfinite(spread), spread, 0.0)
    return X


def _correlated(rng: np.random.Generator, X: Array) -> Array:
    with np.errstate(all="ignore"):
        return 0.2 * X + X[:, :1]


TRANSFORMS: dict[str, Callable[[np.random.Generator, Array], Array]] = {
    "NaN": _spoil(np.nan),
    "infinity": _spoil(np.inf),
    "minus infinity": _spoil(-np.inf),
    "the largest float": _spoil(np.finfo(np.float64).max),
    "duplicate rows": lambda rng, X: X[rng.integers(max(len(X) // 4, 1), size=len(X))],
    "duplicate columns": lambda rng, X: X[:, rng.integers(X.shape[1], size=X.shape[1])],
    "nearly collinear": _nearly_collinear,
    "sorted": lambda rng, X: np.sort(X, axis=0),
    "shared anomalies": _shared_anomalies,
    "correlated": _correlated,
    "one row repeated": lambda rng, X: np.where(np.arange(len(X))[:, None] < 0.9 * len(X), X[0], X),
}


def _frame(X: Array, dtype: Any = None) -> Any:
    import pandas as pd

    columns = [f"detector {j}" for j in range(X.shape[1])]
    return pd.DataFrame(X, columns=columns, index=np.arange(len(X))[::-1], dtype=dtype)


def _whole(X: Array) -> NDArray[np.int64]:
    """`X` as int64, clipped to its range; NaN and infinities become 0."""
    bounded = np.clip(np.nan_to_num(X, posinf=0.0, neginf=0.0), -(2.0**62), 2.0**62)
    return bounded.astype(np.int64)


def _read_only(X: Array) -> Array:
    X.setflags(write=False)
    return X


def _single(X: Array) -> NDArray[np.float32]:
    with np.errstate(all="ignore"):
        return X.astype(np.float32)


def _several_types(X: Array) -> NDArray[np.object_]:
    """Python integers where a value is whole, Python floats elsewhere."""
    cells = X.astype(object)
    is_whole = np.isfinite(X) & (np.floor(X) == X)
    cells[is_whole] = [int(value) for value in X[is_whole]]
    return cells


CONTAINERS: dict[str, Callable[[Array], Any]] = {
    "array": lambda X: X,
    "Fortran order": np.asfortranarray,
    "every other": lambda X: np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2],
    "backwards": lambda X: X[::-1, ::-1],
    "read-only": _read_only,
    "big-endian": lambda X: X.astype(">f8"),
    "float32": _single,
    "int64": _whole,
    "bool": lambda X: np.nan_to_num(X) > 0.0,
    "object": lambda X: X.astype(object),
    "objects of several types": _several_types,
    "list": lambda X: X.tolist(),
    "tuple of arrays": tuple,
    "frame": _frame,
    "frame of nullable numbers": lambda X: _frame(X, "Float64"),
    "text": lambda X: X.astype(str),
    "one column less": lambda X: X[:, 1:],
    "one row only": lambda X: X[:1],
    "no rows": lambda X: X[:0],
    "one axis": lambda X: X[:, 0],
    "three axes": lambda X: X[None],
    "complex": lambda X: X.astype(np.complex128),
}
