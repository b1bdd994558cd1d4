"""Stored results of fixed scores and starts -> tests/golden/results.json.

A change of the numbers is declared: the reason given here is stored with them, and a test looks for
the same words in CHANGELOG.md.

    python -m stress.store_results "the words of the CHANGELOG"
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm.datasets import load_demo
from stress.starts import follow, grouped_scores, numbers, rank_labels, space_of

STORED = Path(__file__).parents[1] / "tests" / "golden" / "results.json"

Array = NDArray[np.float64]


def demo_scores() -> Array:
    """Five scores of the demo set's rows that need no detector: distances by formula."""
    X = load_demo().X
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    distances = np.sort(np.sqrt(np.square(Z[:, None] - Z).sum(axis=-1)), axis=1)
    return np.column_stack(
        [
            np.abs(Z).max(axis=1),
            np.square(Z).sum(axis=1),
            distances[:, 1],
            distances[:, 5],
            distances[:, 20],
        ]
    )


def cases() -> dict[str, tuple[Array, int, int]]:
    """Raw scores, components and iterations, by name."""
    made = {
        f"{n_rows} rows, {n_detectors} detectors": grouped_scores(
            n_rows, n_detectors, np.random.default_rng([n_rows, n_detectors])
        )
        for n_rows, n_detectors in [(500, 6), (2000, 2), (5000, 10)]
    }
    sizes = {"500 rows, 6 detectors": (10, 100), "2000 rows, 2 detectors": (30, 50)}
    found = {name: (scores, *sizes.get(name, (20, 30))) for name, scores in made.items()}
    return found | {"demo": (demo_scores(), 10, 50)}


def result(scores: Array, n_components: int, n_iter: int) -> dict[str, Any]:
    """What is stored of a case: plain numbers of the posterior and of the way to it."""
    steps = follow(space_of(scores), rank_labels(scores, n_components), n_iter)
    return {
        **numbers(steps.posterior),
        "elbo": steps.mixture.elbo,
        "n_iter": steps.mixture.n_iter,
        "n_active": len(steps.components),
        "tau": steps.link.tau,
        "delta": steps.link.delta,
        "standard_error": steps.posterior.standard_error,
    }


def main(reason: str) -> None:
    found = {name: result(*case) for name, case in cases().items()}
    stored = {"declared": reason, "results": found}
    STORED.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(" ".join(sys.argv[1:]))
