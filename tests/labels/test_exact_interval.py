"""The interval with guaranteed coverage, against SciPy's hypergeometric distribution."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from gammagmm.labels.exact_interval import binomial_interval, exact_interval


def inverted(n_rows, n_drawn, n_found, mass, side):
    """All totals that the two tests do not reject, one by one."""
    tail = (1.0 - mass) / (2.0 if side == "both" else 1.0) * (1.0 - 1e-9)
    inside = []
    for total in range(n_found, n_rows - n_drawn + n_found + 1):
        sample = stats.hypergeom(n_rows, total, n_drawn)
        is_not_too_few = side == "upper" or sample.sf(n_found - 1) >= tail
        is_not_too_many = side == "lower" or sample.cdf(n_found) >= tail
        if is_not_too_few and is_not_too_many:
            inside.append(total)
    return inside[0], inside[-1]


@pytest.mark.parametrize("side", ["both", "upper", "lower"])
@pytest.mark.parametrize(
    ("n_rows", "n_drawn", "n_found"),
    [(50, 10, 0), (50, 10, 3), (50, 10, 10), (83, 30, 1), (83, 82, 5), (200, 1, 1), (31, 0, 0)],
)
def test_it_is_the_inverted_test(n_rows, n_drawn, n_found, side):
    for mass in (0.5, 0.9, 0.99):
        found = exact_interval(n_rows, n_drawn, n_found, mass, side)
        assert found == inverted(n_rows, n_drawn, n_found, mass, side)


@pytest.mark.parametrize(("n_rows", "n_drawn"), [(20, 5), (37, 12), (60, 30), (60, 59)])
@pytest.mark.parametrize("side", ["both", "upper", "lower"])
def test_every_share_is_covered_often_enough(n_rows, n_drawn, side):
    """Exhaustive: the coverage of every possible total, without simulation."""
    for mass in (0.8, 0.9, 0.95):
        ends = [exact_interval(n_rows, n_drawn, s, mass, side) for s in range(n_drawn + 1)]
        for total in range(n_rows + 1):
            found = np.arange(max(0, n_drawn - n_rows + total), min(n_drawn, total) + 1)
            p_found = stats.hypergeom.pmf(found, n_rows, total, n_drawn)
            is_inside = [ends[s][0] <= total <= ends[s][1] for s in found]
            assert p_found @ is_inside >= mass - 1e-12


def test_what_people_need():
    # "At most 9.5 % with 95 % confidence after 30 looks without an anomaly": 1 - 0.05 ** (1 / 30).
    _, high = exact_interval(10_000_000, 30, 0, 0.95, "upper")
    assert high / 10_000_000 == pytest.approx(1 - 0.05 ** (1 / 30), abs=1e-6)
    assert exact_interval(1000, 30, 0, 0.9)[1] == exact_interval(1000, 30, 0, 0.95, "upper")[1]
    assert exact_interval(1000, 1000, 70, 0.99) == (70, 70)
    low, high = exact_interval(1000, 999, 70, 0.99)
    assert (low, high) == (70, 71)


@pytest.mark.long
def test_200_000_simulated_tables():
    """Tables of 50 to 10,000 rows with shares from 0 to 40 %, 500 for each of 400 designs.

    The level holds for every design within its Monte Carlo error, and for all tables together.
    """
    rng = np.random.default_rng(20)
    mass, n_tables, n_held, worst = 0.9, 0, 0, 1.0
    for _ in range(400):
        n_rows = round(np.exp(rng.uniform(np.log(50), np.log(10_000))))
        n_drawn = int(rng.integers(1, min(n_rows, 200) + 1))
        total = int(np.floor(rng.uniform(0.0, 0.4) * n_rows)) if rng.random() > 0.1 else 0
        found = rng.hypergeometric(total, n_rows - total, n_drawn, size=500)
        ends = {s: exact_interval(n_rows, n_drawn, s, mass) for s in np.unique(found).tolist()}
        held = sum(ends[s][0] <= total <= ends[s][1] for s in found.tolist())
        worst = min(worst, held / 500)
        n_tables, n_held = n_tables + 500, n_held + held
        assert held / 500 >= mass - 4 * np.sqrt(mass * (1 - mass) / 500)
    assert n_tables == 200_000
    assert n_held / n_tables >= mass


def test_the_binomial_interval_is_that_of_scipy():
    n_rows = np.repeat([1, 2, 3, 40, 100_000], 4)
    n_found = np.array([0, 1, 1, 0, 0, 1, 2, 1, 0, 1, 2, 3, 0, 1, 39, 40, 0, 7, 50_000, 100_000])
    for mass in (0.5, 0.9, 0.99):
        ends = np.column_stack(binomial_interval(n_rows, n_found, mass))
        for k, n, found in zip(n_found.tolist(), n_rows.tolist(), ends, strict=True):
            exact = stats.binomtest(k, n).proportion_ci(mass, method="exact")
            assert found == pytest.approx(tuple(exact), abs=1e-11)  # brentq stops at 2e-12
