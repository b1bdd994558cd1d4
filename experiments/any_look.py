"""Intervals while one labels: how often they miss at some look.

    python -m experiments.any_look

writes results/any_look.json: the probability that the interval for a number of labels fixed before,
and the one at any look, miss the true share after one of the labels 1, ..., `N_LABELS`. For rows in
simple random order, the path of the number of anomalies is a Markov chain, whose probability is
computed exactly. For rows that are spread over a ranking, every start of the spread is tried.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import numpy as np

from experiments.results import RESULTS
from gammagmm._support.files import write_document
from gammagmm.labels.any_look import interval_at_any_look
from gammagmm.labels.exact_interval import exact_interval
from gammagmm.labels.suggestions import spread_evenly
from gammagmm.posterior.track_record import load_label_prior

N_LABELS, MASS = 100, 0.9
N_ROWS, N_SPREAD = 10_000, 1000
SHARES = (0.0, 0.0003, 0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
SPREAD_SHARES = (0.01, 0.05, 0.1, 0.2, 0.3, 0.5)
FILE = RESULTS / "any_look.json"

Interval = Callable[[int, int, int], tuple[int, int]]
METHODS: dict[str, Interval] = {
    "fixed": lambda n_rows, n, k: exact_interval(n_rows, n, k, MASS),
    "any look": lambda n_rows, n, k: interval_at_any_look(n_rows, n, k, MASS, load_label_prior()),
}


def main() -> None:
    found = {}
    for name, interval in METHODS.items():
        ends, spread = table(interval, N_ROWS), table(interval, N_SPREAD)
        found[name] = {
            "random": {f"{share:g}": missed(ends, N_ROWS, share) for share in SHARES},
            "spread": {
                pattern: {
                    f"{share:g}": missed_by_spread(spread, labels(N_SPREAD, share))
                    for share in SPREAD_SHARES
                }
                for pattern, labels in PATTERNS.items()
            },
        }
    write_document(json.dumps(found, indent=1) + "\n", FILE, overwrite=True)


def table(interval: Interval, n_rows: int) -> np.ndarray:
    """Ends (N_LABELS + 1, N_LABELS + 1, 2) by the number of labels and of anomalies."""
    ends = np.zeros((N_LABELS + 1, N_LABELS + 1, 2), dtype=int)
    for n in range(1, N_LABELS + 1):
        for k in range(n + 1):
            ends[n, k] = interval(n_rows, n, k)
    return ends


def missed(ends: np.ndarray, n_rows: int, share: float) -> float:
    """P(the interval misses at some look) if rows are drawn in simple random order."""
    total = round(share * n_rows)
    p_held = np.zeros(N_LABELS + 2)  # of k anomalies so far, and no miss
    p_held[0] = 1.0
    for n in range(1, N_LABELS + 1):
        k = np.arange(N_LABELS + 2)
        p_next = np.clip((total - k) / (n_rows - n + 1), 0.0, 1.0)
        p_held = p_held * (1.0 - p_next) + np.append(0.0, (p_held * p_next)[:-1])
        is_inside = (ends[n, :, 0] <= total) & (total <= ends[n, :, 1])
        p_held[:-1] *= is_inside
        p_held[n + 1 :] = 0.0
    return float(1.0 - p_held.sum())


def missed_by_spread(ends: np.ndarray, labels: np.ndarray) -> float:
    """The share of all starts of the spread for which the interval misses at some look."""
    total = int(labels.sum())
    held = []
    for order in _spreads(len(labels)):
        found = np.cumsum(labels[order[:N_LABELS]])
        own = ends[np.arange(1, N_LABELS + 1), found]
        held.append(((own[:, 0] <= total) & (total <= own[:, 1])).all())
    return 1.0 - float(np.mean(held))


def _spreads(n_rows: int) -> Iterator[np.ndarray]:
    """Every order in which `spread_evenly` can take the rows."""
    for start in range(n_rows):
        yield spread_evenly(np.arange(n_rows), _Start(start))  # type: ignore[arg-type]


class _Start:
    """In place of a random generator: the start is given."""

    def __init__(self, start: int) -> None:
        self.start = start

    def integers(self, n_rows: int) -> int:
        return self.start % n_rows


def _first(n_rows: int, share: float) -> np.ndarray:
    return (np.arange(n_rows) < round(share * n_rows)).astype(int)


def _periodic(n_rows: int, share: float) -> np.ndarray:
    """Every (1 / share)-th row."""
    return (
        np.floor(np.arange(1, n_rows + 1) * share) > np.floor(np.arange(n_rows) * share)
    ).astype(int)


def _blocks(n_rows: int, share: float) -> np.ndarray:
    """Blocks of 34 rows, of which the first ones are anomalies."""
    return (np.arange(n_rows) % 34 < round(34 * share)).astype(int)


PATTERNS = {
    "perfect ranking": _first,
    "no ranking": lambda n, share: np.random.default_rng(0).permutation(_first(n, share)),
    "periodic": _periodic,
    "blocks": _blocks,
}

if __name__ == "__main__":
    main()
