"""Score space -> the rows that are visibly separate from the rest, if there are some.

A person looks at the histogram of the scores for a second hump beyond a valley. Here every detector
is looked at in this way, and rows are reported if detectors of several kinds see the same ones.

Rows with equal scores count once in the histogram. In a discrete or zero-inflated column, many rows
share a value, and the density of the rows has a hump there and a valley beside it, although nothing
separates that value from the next one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["SeparateRows", "find_separate_rows"]

Array = NDArray[np.float64]

MIN_DEPTH = 0.45
"""1 - (density in the valley) / (density of the lower hump beside it), at least.

The trials "groups" count the tables without a group in which shallower valleys find one.
"""
MIN_ROWS = 5
"""Fewest rows that are reported."""
MIN_OVERLAP = 0.8
"""Two detectors see the same rows if they share this much of the rows that either sees."""
MIN_KINDS = 2
"""Fewest kinds of detectors that must see the same rows."""
SAME_KIND = {"LSCP": "LOF"}
"""LSCP has the scores of LOF with several numbers of neighbours, so that both see the same."""

_CELLS_PER_BANDWIDTH = 5
_MAX_CELLS = 20_000
_DIGITS = 6
"""Scores, in standard deviations, are equal if they agree to so many digits: a different order of
summation changes the distances of equal rows by rounding errors."""
_MAX_COMPARED = 1000
"""Most rows of the group, and of the rest, whose distances are computed."""


@dataclass(frozen=True, eq=False)
class SeparateRows:
    """Rows that are visibly separate from the rest.

    Attributes
    ----------
    rows : ndarray of shape (n_rows,) or None
        Positions among the training rows, from 0; None in a `FitSummary`, which has no rows.
    n_rows : int
        Number of rows.
    share : float
        Share of all rows.
    depth : float
        Median over the detectors of 1 - (density in the valley) / (density of the lower hump).
    detectors : tuple of str
        The detectors that see them.
    is_cluster : bool or None, default=None
        Whether they lie close together: the median distance between two of them is shorter than the
        median distance from one of them to a row of the rest. None if only scores are known.
    """

    rows: NDArray[np.intp] | None
    n_rows: int
    share: float
    depth: float
    detectors: tuple[str, ...]
    is_cluster: bool | None = None


@dataclass(frozen=True)
class Valley:
    """A valley in the density of a detector's scores."""

    at: float
    depth: float  # 1 - density in the valley / density of the lower hump beside it


def find_separate_rows(
    Z: Array, names: list[str], X: Array | None = None, min_depth: float = MIN_DEPTH
) -> SeparateRows | None:
    """The rows of the score space `Z` (n, M) that are separate from the rest, or None.

    Nearly the same rows lie beyond the valleys of detectors of several kinds. Of several such sets,
    it is the one whose valleys are deepest in total, and the rows are those beyond at least half of
    these valleys. `X` (n, d) are the columns that the detectors have, if they are known.
    """
    found = {column: first_valley(Z[:, column], min_depth) for column in range(Z.shape[1])}
    valleys = {column: valley for column, valley in found.items() if valley is not None}
    if not valleys:
        return None
    beyond = np.stack([Z[:, column] > valley.at for column, valley in valleys.items()])
    counts = beyond.sum(axis=1)
    both = beyond.astype(np.float32) @ beyond.astype(np.float32).T
    agree = both >= MIN_OVERLAP * (counts[:, None] + counts - both)
    depths = np.array([valley.depth for valley in valleys.values()])
    seen = np.array([names[column] for column in valleys])
    kinds = np.array([SAME_KIND.get(name, name) for name in seen])
    is_enough = np.array([len(set(kinds[own])) >= MIN_KINDS for own in agree])
    if not is_enough.any():
        return None
    chosen = agree[np.argmax(np.where(is_enough, agree @ depths, 0.0))]
    rows = np.flatnonzero(2 * beyond[chosen].sum(axis=0) >= chosen.sum())
    seen_by = tuple(seen[chosen].tolist())
    depth = float(np.median(depths[chosen]))
    is_cluster = None if X is None else are_close_together(X, rows)
    return SeparateRows(rows, len(rows), len(rows) / len(Z), depth, seen_by, is_cluster)


def are_close_together(X: Array, rows: NDArray[np.intp]) -> bool:
    """Whether some `rows` of `X` (n, d) are closer to each other than to the rest.

    The median distance between two of them is compared with that between one of them and a row of
    the rest; of many rows, evenly spaced ones are compared. Rows that surround the rest are farther
    from each other, on opposite sides.
    """
    from scipy.spatial.distance import cdist, pdist

    others = np.delete(np.arange(len(X)), rows)
    group, rest = X[_evenly_spaced(rows)], X[_evenly_spaced(others)]
    return bool(np.median(pdist(group)) < np.median(cdist(group, rest)))


def _evenly_spaced(rows: NDArray[np.intp]) -> NDArray[np.intp]:
    return rows[:: -(-len(rows) // _MAX_COMPARED)]


def first_valley(scores: Array, min_depth: float = MIN_DEPTH) -> Valley | None:
    """The lowest valley of the density of `scores` (n,) that is deep enough, or None.

    The density is a kernel estimate with Silverman's bandwidth, 0.9 min(deviation, interquartile
    range / 1.34) m^(-1/5), of the m distinct scores. At most half of the rows, and at least
    `MIN_ROWS` and at most half of the distinct scores, lie beyond the valley.
    """
    from scipy.ndimage import gaussian_filter1d

    if (deviation := scores.std()) == 0.0:
        return None
    distinct = deviation * np.unique(np.round(scores / deviation, _DIGITS))
    m = len(distinct)
    lower, upper = np.quantile(distinct, [0.25, 0.75])
    spread = min(distinct.std(), (upper - lower) / 1.34)
    if m < 2 * MIN_ROWS or spread == 0.0:
        return None
    bandwidth = 0.9 * spread * m**-0.2
    low, high = distinct[0] - 3.0 * bandwidth, distinct[-1] + 3.0 * bandwidth
    n_cells = int(min(np.ceil(_CELLS_PER_BANDWIDTH * (high - low) / bandwidth), _MAX_CELLS))
    counts, edges = np.histogram(distinct, bins=n_cells, range=(low, high))
    width = edges[1] - edges[0]
    density = gaussian_filter1d(counts.astype(np.float64), bandwidth / width, mode="constant")
    beyond = m - np.cumsum(counts)  # distinct scores above the upper edge of each cell
    hump_before = np.maximum.accumulate(density)
    hump_after = np.maximum.accumulate(density[::-1])[::-1]
    depth = 1.0 - density / np.minimum(hump_before, hump_after)
    # Each valley is a run of cells that are deep enough: where it starts, and where it ends.
    turns = np.flatnonzero(np.diff(np.pad(depth >= min_depth, 1).astype(np.int8)))
    for start, end in turns.reshape(-1, 2):
        valley = depth[start:end]
        # Where the density is 0 all along, in the middle of the gap.
        deepest = np.flatnonzero(valley == valley.max())
        place = int(start + deepest[len(deepest) // 2])
        n_beyond = np.count_nonzero(scores > edges[place + 1])
        if MIN_ROWS <= beyond[place] <= m / 2 and n_beyond <= len(scores) / 2:
            return Valley(float(edges[place + 1]), float(depth[place]))
    return None
