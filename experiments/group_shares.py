"""Shares of groups by their labels: a prior for each group alone, and one that groups share.

`experiments.reliability` writes the figures. The shares of `N_GROUPS` groups are simulated: as
unlike as those of tables, alike, and alike but for one odd group, whose figures are then those of
the case. "own" is the posterior of `LabelledRows.by_group`, whose prior is the same for each group.
"hierarchical" has a Beta distribution of the groups' shares, whose mean and concentration are not
known: the groups borrow from one another.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from joblib import Parallel, delayed
from scipy.special import betainc, betaln

from gammagmm.labels.labelled_share import updated
from gammagmm.posterior.track_record import load_label_prior, load_reference

N_GROUPS, N_LABELS, N_REPEATS, MASS = 10, (3, 10, 30), 1000, 0.9
CONCENTRATIONS = np.geomspace(1.0, 1000.0, 13)
MEANS = (np.arange(40) + 0.5) / 40.0
GRID = np.linspace(0.0, 1.0, 201)

Array = np.ndarray


def unlike(rng: np.random.Generator) -> Array:
    """Shares of groups that have nothing in common."""
    reference = load_reference()
    part = rng.choice(len(reference.weights), size=N_GROUPS, p=reference.weights)
    return rng.beta(reference.a[part], reference.b[part])


def alike(rng: np.random.Generator) -> Array:
    """Shares of groups that differ little."""
    mean = unlike(rng)[0]
    return rng.beta(200.0 * mean + 1e-3, 200.0 * (1.0 - mean), size=N_GROUPS)


def odd(rng: np.random.Generator) -> Array:
    """One group of 50 % among groups of 2 %."""
    return np.append(np.full(N_GROUPS - 1, 0.02), 0.5) + 0.0 * rng.random()


CASES: dict[str, Callable[[np.random.Generator], Array]] = {
    "unlike": unlike,
    "alike": alike,
    "odd": odd,
}


def figures_by_case(workers: Parallel) -> dict[str, dict[str, dict[str, float]]]:
    """The figures by case and number of labels of a group."""
    cases = [(name, n) for name in CASES for n in N_LABELS]
    found = workers(delayed(figures)(name, n) for name, n in cases)
    return {f"{name}/{n}": own for (name, n), own in zip(cases, found, strict=True)}


def figures(case: str, n: int) -> dict[str, dict[str, float]]:
    """Coverage, mean width and CRPS of both posteriors."""
    make, last_only = CASES[case], case == "odd"
    rng, sums = np.random.default_rng(0), {"own": np.zeros(3), "hierarchical": np.zeros(3)}
    for _ in range(N_REPEATS):
        shares = make(rng)
        k = rng.binomial(n, shares)
        for name, cdf in (("own", own(k, n)), ("hierarchical", hierarchical(k, n))):
            each = np.array([_of_group(c, share) for c, share in zip(cdf, shares, strict=True)])
            sums[name] += each[-1] if last_only else each.mean(axis=0)
    names = ("held", "width", "crps")
    return {
        name: dict(zip(names, (total / N_REPEATS).tolist(), strict=True))
        for name, total in sums.items()
    }


def own(k: Array, n: int) -> Array:
    """Distribution functions (G, grid) of the shares, each by its own labels."""
    distinct, places = np.unique(k, return_inverse=True)
    parts = updated(load_label_prior(), n, distinct)
    return np.array([_cdf(*each) for each in zip(*parts, strict=True)])[places]


def hierarchical(k: Array, n: int) -> Array:
    """The same with a common Beta distribution, by a sum over its mean and concentration."""
    prior = load_label_prior()
    edges = np.linspace(0.0, 1.0, len(MEANS) + 1)
    steps = np.diff(prior.cdf(edges))
    m, c = np.meshgrid(MEANS, CONCENTRATIONS, indexing="ij")
    a, b = (m * c).ravel(), ((1.0 - m) * c).ravel()
    logs = np.log(np.repeat(steps, len(CONCENTRATIONS)) + 1e-300)
    logs = logs + sum(betaln(a + x, b + n - x) - betaln(a, b) for x in k)
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    kept = weights > 1e-4
    weights, a, b = weights[kept] / weights[kept].sum(), a[kept], b[kept]
    distinct, places = np.unique(k, return_inverse=True)
    return np.array([_cdf(weights, a + x, b + n - x) for x in distinct])[places]


def _cdf(weights: Array, a: Array, b: Array) -> Array:
    return np.asarray(weights @ betainc(a[:, None], b[:, None], GRID))


def _of_group(cdf: Array, share: float) -> tuple[float, float, float]:
    low, high = np.interp([0.5 * (1.0 - MASS), 0.5 * (1.0 + MASS)], cdf, GRID)
    error = cdf - (share <= GRID)
    return float(low <= share <= high), float(high - low), float((error**2).mean())
