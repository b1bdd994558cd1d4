"""Compiled inner loops of LSCP: nearest rows, and the detectors that suit them."""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import KDTree

from gammagmm._support.compiled import compiled

__all__ = [
    "Ensemble",
    "Tree",
    "copy_tree",
    "find_nearest",
    "local_scores",
    "nearest",
    "searchable",
]

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
# Squared distances and numbers of the nearest rows so far, as a heap: the farthest comes first.
# Minus infinity follows the last distance, so that every left child has a right sibling.
Heap: TypeAlias = tuple[FloatArray, IntArray]
# Nodes that a search still has to visit, and the squared distances to their boxes.
Stack: TypeAlias = tuple[IntArray, FloatArray]

# The places in a leaf are a multiple of this, so that vector instructions leave no remainder.
_LANES = 16
# A search postpones one node on each level of the tree, and no tree has this many levels.
_MAX_LEVELS = 64
# scikit-learn searches fewer rows in the time that it takes to load our search, and on a new
# machine nobody has to wait until it is compiled.
_LEAST_ROWS = 1_000
_EPSILON = float(np.finfo(np.float64).eps)


class Tree(NamedTuple):
    """A k-d tree: nodes 2 i + 1 and 2 i + 2 are the halves of node i, the last nodes the leaves."""

    points: FloatArray  # (n_leaves, d, n_places) rows in each leaf; infinite in unused places
    rows: IntArray  # (n_leaves, n_places) their row numbers
    bounds: FloatArray  # (n_nodes, 2, d) least and greatest value of each feature


class Ensemble(NamedTuple):
    """The parts of M fitted detectors and n training rows that LSCP needs to score rows."""

    labels: FloatArray  # (n,) pseudo ground truth
    scores: FloatArray  # (n, M) standardised training scores
    tree_of: IntArray  # (n_subspaces,) which tree belongs to each subspace
    threshold: int  # rows of a region are among the nearest in more subspaces than this
    n_bins: int
    n_selected: int


def searchable(tree: KDTree) -> Tree | KDTree:
    """The tree for `find_nearest`: in our layout if it has many rows, else as it is."""
    return tree if len(tree.data) < _LEAST_ROWS else copy_tree(tree)


def copy_tree(tree: KDTree) -> Tree:
    """The tree of scikit-learn, in the layout that our search needs."""
    data, order, nodes, bounds = tree.get_arrays()
    leaves = nodes[len(nodes) // 2 :]
    sizes = leaves["idx_end"] - leaves["idx_start"]
    places = np.arange(-(-sizes.max() // _LANES) * _LANES)
    is_used = places < sizes[:, None]
    rows = np.where(is_used, order.take(leaves["idx_start"][:, None] + places, mode="clip"), 0)
    points = np.where(is_used[:, :, None], data[rows], np.inf).transpose(0, 2, 1)
    bounds = bounds.transpose(1, 0, 2)
    return Tree(np.ascontiguousarray(points), rows, np.ascontiguousarray(bounds))


def find_nearest(
    tree: Tree | KDTree, queries: FloatArray, n_nearest: int
) -> tuple[FloatArray, IntArray]:
    """Distances and numbers of the tree's rows nearest to each query, nearest first.

    Both have the shape (n_queries, n_nearest).
    """
    if isinstance(tree, Tree):
        squares, rows = nearest(tree, queries, n_nearest)
        return np.sqrt(squares), rows
    return tree.query(queries, n_nearest)


@compiled()
def nearest(tree: Tree, queries: FloatArray, n_nearest: int) -> tuple[FloatArray, IntArray]:
    """Squared distances and numbers of the tree's rows nearest to each query, nearest first.

    Both have the shape (n_queries, n_nearest). The search follows scikit-learn's step by step, so
    that it finds the same rows where several are at the same distance. It is faster: scikit-learn
    squares by pow(), and here the distances to the rows of a leaf are computed together.
    """
    found = np.zeros((len(queries), n_nearest), np.int64)  # row 0 where distances overflow
    all_squares = np.empty((len(queries), n_nearest))
    squares = np.full(n_nearest + 1, -np.inf)
    stack = np.empty(_MAX_LEVELS, np.int64), np.empty(_MAX_LEVELS)
    for i in range(len(queries)):
        squares[:n_nearest] = np.inf
        heap = squares, found[i]
        _search(tree, queries[i], heap, stack)
        _sort(heap)
        all_squares[i] = squares[:n_nearest]
    return all_squares, found


@compiled()
def _search(tree: Tree, query: FloatArray, heap: Heap, stack: Stack) -> None:
    """Fill the heap with the rows nearest to the query."""
    nodes, bounds = stack
    in_leaf = np.empty(tree.rows.shape[1])
    nodes[0], bounds[0] = 0, 0.0
    n_waiting = 1
    while n_waiting > 0:
        n_waiting -= 1
        node = nodes[n_waiting]
        if bounds[n_waiting] > heap[0][0]:
            continue
        leaf = node - (len(tree.rows) - 1)
        if leaf >= 0:
            _fill_squares(tree.points[leaf], query, in_leaf)
            _offer(heap, in_leaf, tree.rows[leaf])
            continue
        left = 2 * node + 1
        at_left, at_right = _box_squares(tree.bounds, left, query)
        near = left if at_left <= at_right else left + 1
        nodes[n_waiting], bounds[n_waiting] = 2 * left + 1 - near, max(at_left, at_right)
        nodes[n_waiting + 1], bounds[n_waiting + 1] = near, min(at_left, at_right)
        n_waiting += 2


@compiled()
def _box_squares(bounds: FloatArray, left: int, query: FloatArray) -> tuple[float, float]:
    """Squared distances from the query to the boxes of node `left` and of the node after it."""
    at_left, at_right = 0.0, 0.0
    for j in range(len(query)):
        value = query[j]
        gap = max(max(bounds[left, 0, j] - value, value - bounds[left, 1, j]), 0.0)
        at_left += gap * gap
        gap = max(max(bounds[left + 1, 0, j] - value, value - bounds[left + 1, 1, j]), 0.0)
        at_right += gap * gap
    return at_left, at_right


@compiled()
def _fill_squares(points: FloatArray, query: FloatArray, squares: FloatArray) -> None:
    """Write the squared distances from the query to the points (d, n_places) to `squares`."""
    squares[:] = 0.0
    for j in range(len(query)):
        value, feature = query[j], points[j]
        for i in range(len(squares)):
            gap = value - feature[i]
            squares[i] += gap * gap


@compiled()
def _offer(heap: Heap, squares: FloatArray, rows: IntArray) -> None:
    """Replace the farthest row in the heap by each of `rows` that is nearer."""
    kept_squares, kept_rows = heap
    for i in range(len(squares)):
        if squares[i] >= kept_squares[0]:
            continue
        hole, child = 0, 1
        while child < len(kept_rows):
            child += int(kept_squares[child + 1] > kept_squares[child])
            if kept_squares[child] <= squares[i]:
                break
            kept_squares[hole], kept_rows[hole] = kept_squares[child], kept_rows[child]
            hole, child = child, 2 * child + 1
        kept_squares[hole], kept_rows[hole] = squares[i], rows[i]


@compiled()
def _sort(heap: Heap) -> None:
    """Sort the heap, nearest first."""
    squares, rows = heap
    for i in range(1, len(rows)):
        square, row, hole = squares[i], rows[i], i
        while hole > 0 and squares[hole - 1] > square:
            squares[hole], rows[hole] = squares[hole - 1], rows[hole - 1]
            hole -= 1
        squares[hole], rows[hole] = square, row


@compiled()
def local_scores(ensemble: Ensemble, nearest: IntArray, scores: FloatArray) -> FloatArray:
    """LSCP's scores (n_rows,) of rows whose nearest rows and standardised scores are given.

    `nearest` has the shape (n_trees, n_rows, n_nearest), `scores` (n_rows, M). A row whose region
    would hold fewer than two rows gets NaN.
    """
    n_seen = len(ensemble.tree_of) * nearest.shape[2]
    seen = np.empty(n_seen, np.int64)
    counts = np.zeros(len(ensemble.labels), np.int64)
    truth, own = np.empty(n_seen), np.empty(n_seen)
    correlations = np.empty(scores.shape[1])
    result = np.full(len(scores), np.nan)
    for i in range(len(scores)):
        size = _fill_region(ensemble, nearest[:, i], counts, seen)
        if size > 0:
            _correlate(ensemble, seen[:size], (truth[:size], own[:size]), correlations)
            result[i] = _competent_mean(ensemble, correlations, scores[i])
    return result


@compiled()
def _fill_region(ensemble: Ensemble, nearest: IntArray, counts: IntArray, seen: IntArray) -> int:
    """Size of the region, whose rows are written to `seen`; 0 if there is no region.

    The threshold falls until two rows exceed it, but not below 1. `counts` (n,) is zero before
    and after.
    """
    n_seen, size, first, second = 0, 0, 0, 0
    for tree in ensemble.tree_of:
        for row in nearest[tree]:
            if counts[row] == 0:
                seen[n_seen] = row
                n_seen += 1
            counts[row] += 1
    for row in seen[:n_seen]:
        if counts[row] > second:
            first, second = max(first, counts[row]), min(first, counts[row])
    threshold = min(ensemble.threshold, second - 1)
    for row in seen[:n_seen]:
        if counts[row] > threshold:
            seen[size] = row
            size += 1
        counts[row] = 0
    return size if threshold >= min(ensemble.threshold, 1) else 0


@compiled()
def _correlate(
    ensemble: Ensemble,
    region: IntArray,
    vectors: tuple[FloatArray, FloatArray],
    correlations: FloatArray,
) -> None:
    """Write each detector's correlation with the pseudo labels in the region, 0 if undefined."""
    truth, own = vectors
    for i in range(len(region)):
        truth[i] = ensemble.labels[region[i]]
    is_defined = _standardise(truth)
    for m in range(len(correlations)):
        for i in range(len(region)):
            own[i] = ensemble.scores[region[i], m]
        correlations[m] = 0.0
        if _standardise(own) and is_defined:
            for i in range(len(region)):
                correlations[m] += truth[i] * own[i]
            correlations[m] = min(max(correlations[m], -1.0), 1.0)
        if len(region) == 2:
            correlations[m] = np.rint(correlations[m])


@compiled()
def _standardise(values: FloatArray) -> bool:
    """Whether the values differ; if they do, they are centred and scaled to length 1 in place."""
    total, top, square = 0.0, 0.0, 0.0
    n_equal = 0
    for value in values:
        total += value
        n_equal += value == values[0]
    if n_equal == len(values):
        return False
    for i in range(len(values)):
        values[i] -= total / len(values)
        top = max(top, abs(values[i]))
    for value in values:
        square += (value / top) * (value / top)
    for i in range(len(values)):
        values[i] /= top * math.sqrt(square)
    return square > 0.0  # NaN is not


@compiled()
def _competent_mean(ensemble: Ensemble, correlations: FloatArray, scores: FloatArray) -> float:
    """Mean score of the detectors in the fullest bins of the histogram of the correlations."""
    first, last = correlations[0], correlations[0]
    for correlation in correlations:
        first, last = min(first, correlation), max(last, correlation)
    # If all detectors have the same correlation, all are used. If the correlations differ only by
    # rounding, PyOD fails: NumPy cannot make bins of that width.
    if last - first < ensemble.n_bins * _EPSILON:
        total = 0.0
        for score in scores:
            total += score
        return total / len(scores)
    edges = np.empty(ensemble.n_bins + 1)
    for b in range(ensemble.n_bins):
        edges[b] = b * ((last - first) / ensemble.n_bins) + first
    edges[ensemble.n_bins] = last
    counts = _bin_counts(correlations, edges)
    least = _nth_largest(counts, ensemble.n_selected)
    total, n_competent = 0.0, 0
    for b in range(len(counts)):
        for m in range(len(scores)):
            if counts[b] >= least and edges[b] <= correlations[m] <= edges[b + 1]:
                total += scores[m]
                n_competent += 1
    return total / n_competent


@compiled()
def _nth_largest(counts: IntArray, n: int) -> int:
    """The count that `n` counts, itself among them, reach. np.sort takes a second to compile."""
    least = 0
    for count in counts:
        n_reached = 0
        for other in counts:
            n_reached += other >= count
        if n_reached >= n:
            least = max(least, count)
    return least


@compiled()
def _bin_counts(values: FloatArray, edges: FloatArray) -> IntArray:
    """Number of values in each bin, as np.histogram counts them."""
    n_bins = len(edges) - 1
    counts = np.zeros(n_bins, np.int64)
    for value in values:
        b = min(int((value - edges[0]) / (edges[n_bins] - edges[0]) * n_bins), n_bins - 1)
        if value < edges[b]:
            b -= 1
        elif b < n_bins - 1 and value >= edges[b + 1]:
            b += 1
        counts[b] += 1
    return counts
