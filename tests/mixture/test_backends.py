"""Both backends against scikit-learn and against each other."""

from __future__ import annotations

import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import reduce
from operator import add

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gammagmm.errors import MixtureError
from gammagmm.mixture.backends import NumpyRows, TorchRows, check_backend
from gammagmm.mixture.fit import ascend, fit_mixture, restore, start_labels, update
from gammagmm.mixture.prior import MixturePrior
from gammagmm.mixture.statistics import block_statistics, start_statistics
from tests.support.sklearn_mixture import (
    assert_same_parameters,
    sklearn_iteration,
    sklearn_start,
)

BACKENDS = [(NumpyRows, 1e-9), (TorchRows, 1e-7)]


def with_ties_and_near_duplicates(Z):
    """`Z` with a third of its rows replaced by exact copies, and a third by copies up to 1e-9."""
    third = len(Z) // 3
    Z = Z.copy()
    Z[third : 2 * third] = Z[:third]
    Z[2 * third : 3 * third] = Z[:third] + 1e-9 * np.sin(np.arange(third))[:, None]
    return Z


@pytest.mark.parametrize(("rows_of", "rtol"), BACKENDS)
@pytest.mark.parametrize("name", ["Cardiotocography", "Stamps"])
def test_iterates_equal_scikit_learns_on_ties_and_near_duplicates(
    rows_of, rtol, name, benchmark_space
):
    Z = with_ties_and_near_duplicates(benchmark_space(name))
    prior = MixturePrior().resolve(Z)
    labels = start_labels(Z, 60, np.random.default_rng(1))
    oracle = sklearn_start(Z, labels, 60, prior)
    rows = rows_of(prior.whiten(Z))
    state = update(start_statistics(rows.Z, labels, 60), prior)
    for _ in range(25):
        bound = sklearn_iteration(oracle, Z)
        state = update(rows.statistics(state.coefficients), prior)
        assert_same_parameters(restore(state.parameters, prior), oracle, rtol)
        assert abs(state.elbo - bound) <= rtol * abs(bound)


def test_torch_stops_at_the_same_iteration_as_numpy(benchmark_space):
    Z = benchmark_space("Glass")
    ours = fit_mixture(Z, 30, random_state=0)
    torch = fit_mixture(Z, 30, random_state=0, backend="torch", device="cpu")
    assert torch.n_iter == ours.n_iter
    np.testing.assert_allclose(torch.means, ours.means, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(torch.elbo, ours.elbo, rtol=1e-10)


def test_blocks_of_any_size_and_any_number_of_threads_give_the_same_mixture(benchmark_space):
    Z = benchmark_space("Cardiotocography")
    prior = MixturePrior().resolve(Z)
    labels, Z = start_labels(Z, 40, np.random.default_rng(0)), prior.whiten(Z)
    start = start_statistics(Z, labels, 40)

    class Blocks:
        def __init__(self, size):
            self.parts = [Z[i : i + size] for i in range(0, len(Z), size)]

        def statistics(self, coefficients):
            return reduce(add, (block_statistics(part, coefficients) for part in self.parts))

    whole = ascend(Blocks(len(Z)), start, prior, 60, 1e-3)
    for rows in (Blocks(1000), Blocks(77), NumpyRows(Z, 1), NumpyRows(Z, 3)):
        other = ascend(rows, start, prior, 60, 1e-3)
        assert other.n_iter == whole.n_iter
        np.testing.assert_allclose(other.elbo, whole.elbo, rtol=1e-10)
        for name in ("means", "covariances", "weight_concentration"):
            ours, theirs = getattr(other, name), getattr(whole, name)
            np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)
    one, three = NumpyRows(Z, 1), NumpyRows(Z, 3)
    coefficients = update(start, prior).coefficients
    np.testing.assert_array_equal(
        one.statistics(coefficients).moments, three.statistics(coefficients).moments
    )


@pytest.mark.parametrize("log_norm", [-4000.0, -700.0, -561.0, -550.0, 0.0, 99.0, 140.0, 4000.0])
def test_torch_measures_any_log_norm(log_norm, rng):
    # A reference component can measure log norms from -560 to 100.
    Z, coefficients = rng.normal(size=(300, 2)), rng.normal(size=(9, 6))
    coefficients[:, 0] += log_norm
    numpy, torch = NumpyRows(Z).statistics(coefficients), TorchRows(Z).statistics(coefficients)
    np.testing.assert_allclose(torch.moments, numpy.moments, atol=1e-9)
    np.testing.assert_allclose(torch.entropy, numpy.entropy, atol=1e-7)


@pytest.mark.parametrize("rows_of", [NumpyRows, TorchRows])
def test_rows_travel_to_other_processes(rows_of, rng):
    Z, coefficients = rng.normal(size=(3000, 2)), rng.normal(size=(4, 6))
    rows = rows_of(Z)
    again = pickle.loads(pickle.dumps(rows))
    np.testing.assert_array_equal(
        again.statistics(coefficients).moments, rows.statistics(coefficients).moments
    )


def test_fits_in_two_threads_at_once_give_each_its_own_answer(benchmark_space):
    tables = {name: benchmark_space(name) for name in ("Glass", "Stamps")}
    alone = {name: fit_mixture(Z, 20, random_state=0).elbo for name, Z in tables.items()}
    with ThreadPoolExecutor(2) as pool:
        names = ["Glass", "Stamps"] * 4
        together = list(pool.map(lambda n: fit_mixture(tables[n], 20, random_state=0).elbo, names))
    np.testing.assert_allclose(together, [alone[name] for name in names], rtol=1e-9)


def degenerate_rows():
    """Small tables with repeated rows, repeated columns, constants and far outliers."""
    values = st.one_of(
        st.floats(-5, 5), st.sampled_from([0.0, 1.0, 1.0 + 1e-12, -2.5]), st.floats(-1e6, 1e6)
    )
    shape = st.tuples(st.integers(2, 30), st.integers(1, 3))
    return shape.flatmap(
        lambda s: st.lists(
            st.lists(values, min_size=s[1], max_size=s[1]), min_size=s[0], max_size=s[0]
        )
    )


@st.composite
def repeated_columns(draw):
    """Gaussian tables in which every column after some comes again, and some rows too."""
    n_rows, n_detectors = draw(st.integers(3, 60)), draw(st.integers(2, 10))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    Z = rng.normal(size=(n_rows, n_detectors))
    Z[:, draw(st.integers(1, n_detectors)) :] = Z[:, :1]
    Z[n_rows - draw(st.integers(0, n_rows // 2)) :] = Z[0]
    return Z


def assert_sound(Z, n_components, rows_of=NumpyRows):
    """Finite parameters, and a bound that falls by no more than 1e-10 of itself."""
    prior = MixturePrior().resolve(Z)
    labels = start_labels(Z, n_components, np.random.default_rng(0))
    rows = rows_of(prior.whiten(Z))
    state = update(start_statistics(rows.Z, labels, n_components), prior)
    previous = -np.inf
    for _ in range(20):
        state = update(rows.statistics(state.coefficients), prior)
        restored = restore(state.parameters, prior)
        assert all(np.isfinite(value).all() for value in vars(restored).values())
        assert np.isfinite(state.elbo)
        assert (
            state.elbo >= previous - 1e-10 * max(abs(previous), abs(state.elbo))
            or previous == -np.inf
        )
        previous = state.elbo


@settings(max_examples=60, deadline=None, derandomize=True)
@given(degenerate_rows(), st.sampled_from([1, 5, 40]))
def test_degenerate_tables_are_fitted_soundly_or_refused(table, n_components):
    with suppress(MixtureError):
        assert_sound(np.array(table), n_components)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    repeated_columns(), st.sampled_from([1, 5, 30, 100]), st.sampled_from([NumpyRows, TorchRows])
)
def test_tables_with_repeated_columns_are_fitted_soundly(Z, n_components, rows_of):
    assert_sound(Z, n_components, rows_of)


@pytest.mark.parametrize(
    "Z",
    [
        np.array([[0.0, 1.0], [2.0, 3.0]]),
        np.ones((40, 3)),
        np.repeat(np.random.default_rng(0).normal(size=(50, 1)), 2, axis=1),
        np.vstack([np.random.default_rng(0).normal(size=(300, 3)), np.full((1, 3), 1e6)]),
        np.random.default_rng(0).normal(size=(5, 4)),
    ],
    ids=["two rows", "identical rows", "identical detectors", "a row at 1e6", "few rows"],
)
@pytest.mark.parametrize("rows_of", [NumpyRows, TorchRows])
def test_named_degenerate_cases_are_fitted_soundly(Z, rows_of):
    assert_sound(Z, 10, rows_of)


@pytest.mark.parametrize("n_components", [1, 3])
def test_far_outliers_give_the_same_mixture_on_both_backends(n_components, rng):
    Z = rng.normal(size=(2000, 10))
    Z[:3] += 40.0
    numpy = fit_mixture(Z, n_components, random_state=0)
    torch = fit_mixture(Z, n_components, random_state=0, backend="torch", device="cpu")
    assert torch.n_iter == numpy.n_iter
    np.testing.assert_allclose(torch.elbo, numpy.elbo, rtol=1e-9)


@pytest.mark.parametrize(
    ("Z", "message"),
    [
        (np.ones(5), r"Z must have shape \(n >= 2, m >= 1\), got \(5,\)"),
        (np.ones((1, 3)), r"Z must have shape \(n >= 2, m >= 1\), got \(1, 3\)"),
        (np.array([[1.0, np.nan], [0.0, 1.0]]), "Z must be finite, got 1 values"),
    ],
)
def test_rows_of_a_wrong_shape_or_not_finite_are_refused(Z, message):
    with pytest.raises(ValueError, match=message):
        fit_mixture(Z, 2)


def test_an_unknown_backend_is_refused_and_a_missing_torch_gives_the_command(monkeypatch):
    with pytest.raises(ValueError, match="backend must be one of numpy, torch, got 'cuda'"):
        check_backend("cuda")
    with pytest.raises(ValueError, match="device='cuda:0' needs backend='torch'"):
        check_backend("numpy", "cuda:0")
    with pytest.raises(ValueError, match="device must be a PyTorch device, got 'abacus'"):
        check_backend("torch", "abacus")
    with pytest.raises(TypeError, match="prior must be a MixturePrior or None, got 'identity'"):
        fit_mixture(np.eye(3), 2, prior="identity")
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"pip install 'gammagmm\[deep\]'"):
        check_backend("torch")
