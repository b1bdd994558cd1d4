"""Shares of groups by their labels: a prior for each group alone, and one that groups share.

    python -m experiments.group_shares

writes results/group_shares.json. The shares of `N_GROUPS` groups are simulated: as unlike as those
of tables, alike, and alike but for one odd group, whose figures are then those of the case. "own"
is the posterior of `LabelledRows.by_group`, whose prior is the same for each group. "hierarchical"
has a Beta distribution of the groups' shares, whose mean and concentration are not known: the
groups borrow from one another.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
from scipy.special import betainc, betaln

from experiments.results import RESULTS
from gammagmm._support.files import write_document
from gammagmm.posterior.betas import BetaMixture
from gammagmm.posterior.track_record import load_label_prior, load_reference

N_GROUPS, N_LABELS, N_REPEATS, MASS = 10, (3, 10, 30), 200, 0.9
CONCENTRATIONS = np.geomspace(1.0, 1000.0, 13)
MEANS = (np.arange(40) + 0.5) / 40.0
GRID = np.linspace(0.0, 1.0, 401)
FILE = RESULTS / "group_shares.json"

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


def main() -> None:
    found = {
        f"{name}, {n} labels a group": figures(make, n, name == "odd")
        for name, make in CASES.items()
        for n in N_LABELS
    }
    write_document(json.dumps(found, indent=1) + "\n", FILE, overwrite=True)


def figures(
    make: Callable[[np.random.Generator], Array], n: int, last_only: bool
) -> dict[str, dict[str, float]]:
    """Coverage, mean width and CRPS of both posteriors."""
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
    return np.array([_updated(load_label_prior(), int(x), n) for x in k])


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
    kept = weights > 1e-6
    mixture = BetaMixture(weights[kept] / weights[kept].sum(), a[kept], b[kept])
    return np.array([_cdf(mixture.weights, mixture.a + x, mixture.b + n - x) for x in k])


def _updated(prior: BetaMixture, k: int, n: int) -> Array:
    logs = np.log(prior.weights) + betaln(prior.a + k, prior.b + n - k) - betaln(prior.a, prior.b)
    weights = np.exp(logs - logs.max())
    return _cdf(weights / weights.sum(), prior.a + k, prior.b + n - k)


def _cdf(weights: Array, a: Array, b: Array) -> Array:
    return np.asarray(weights @ betainc(a[:, None], b[:, None], GRID))


def _of_group(cdf: Array, share: float) -> tuple[float, float, float]:
    low, high = np.interp([0.5 * (1.0 - MASS), 0.5 * (1.0 + MASS)], cdf, GRID)
    error = cdf - (share <= GRID)
    return float(low <= share <= high), float(high - low), float((error**2).mean())


if __name__ == "__main__":
    main()
