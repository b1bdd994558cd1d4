"""Both backends against scikit-learn and against each other."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib import cpu_count
from threadpoolctl import threadpool_limits

from gammagmm.errors import MixtureError
from gammagmm.mixture.backends import NumpyRows, TorchRows, check_backend, count_threads
from gammagmm.mixture.fit import ascend
from gammagmm.mixture.m_step import MStep
from gammagmm.mixture.prior import MixturePrior
from gammagmm.mixture.statistics import start_moments
from tests.support.mixture_steps import iterate
from tests.support.mixtures import fit_mixture, labels_of
from tests.support.needs import needs_torch
from tests.support.sklearn_mixture import (
    assert_same_parameters,
    sklearn_iteration,
    sklearn_start,
)

BACKENDS = [(NumpyRows, 1e-9), pytest.param(TorchRows, 1e-7, marks=needs_torch)]
ROWS = [NumpyRows, pytest.param(TorchRows, marks=needs_torch)]


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
    labels = labels_of(Z, 60, np.random.default_rng(1))
    oracle = sklearn_start(Z, labels, 60, prior)
    rows, start = rows_of(prior.whiten(Z)[None]), start_moments(prior.whiten(Z), labels, 60)
    for parameters, elbo in iterate(rows, start[None], prior, 8):
        bound = sklearn_iteration(oracle, Z)
        assert_same_parameters(parameters[0], oracle, rtol)
        assert abs(elbo[0] - bound) <= rtol * abs(bound)


@needs_torch
@pytest.mark.parametrize("accelerated", [False, True])
def test_torch_stops_at_the_same_iteration_as_numpy(accelerated, benchmark_space):
    Z = benchmark_space("Glass")
    prior = MixturePrior().resolve(Z)
    labels, whitened = labels_of(Z, 30, np.random.default_rng(0)), prior.whiten(Z)
    start = start_moments(whitened, labels, 30)[None]
    fits = []
    for rows in (NumpyRows(whitened[None]), TorchRows(whitened[None], "cpu")):
        ((_, mixture),) = ascend(rows, start, prior, 1500, 1e-3, accelerated=accelerated)
        fits.append(mixture)
    numpy, torch = fits
    assert torch.n_iter == numpy.n_iter
    np.testing.assert_allclose(torch.means, numpy.means, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(torch.elbo, numpy.elbo, rtol=1e-10)


@pytest.mark.usefixtures("two_threads")
def test_blocks_of_any_size_and_any_number_of_threads_give_the_same_mixture(benchmark_space):
    Z = benchmark_space("Cardiotocography")
    prior = MixturePrior().resolve(Z)
    labels, Z = labels_of(Z, 40, np.random.default_rng(0)), prior.whiten(Z)
    start = start_moments(Z, labels, 40)[None]
    ((_, whole),) = ascend(NumpyRows(Z[None], 1, len(Z)), start, prior, 60, 1e-3)
    for n_threads, block_rows in ((1, 1000), (2, 77), (1, None), (3, None)):
        ((_, other),) = ascend(NumpyRows(Z[None], n_threads, block_rows), start, prior, 60, 1e-3)
        assert other.n_iter == whole.n_iter
        np.testing.assert_allclose(other.elbo, whole.elbo, rtol=1e-10)
        for name in ("means", "covariances", "weight_concentration"):
            ours, theirs = getattr(other, name), getattr(whole, name)
            np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)
    one, three = NumpyRows(Z[None], 1), NumpyRows(Z[None], 3)
    coefficients = MStep(one, prior)(start).coefficients
    np.testing.assert_array_equal(
        one.statistics(coefficients).moments, three.statistics(coefficients).moments
    )


@pytest.mark.parametrize(("rows_of", "rtol"), BACKENDS)
@pytest.mark.parametrize("accelerated", [False, True])
def test_runs_fitted_together_equal_runs_fitted_alone(rows_of, rtol, accelerated, rng):
    spaces = np.stack([rng.normal(size=(400, 3)) * scale for scale in (1.0, 1.5, 0.7)])
    prior = MixturePrior().resolve(spaces[0])
    whitened = prior.whiten(spaces)
    starts = np.stack([start_moments(Z, rng.integers(0, 9, 400), 9) for Z in whitened])
    how = {"max_iter": 300, "tol": 1e-2, "accelerated": accelerated}
    together = dict(ascend(rows_of(whitened), starts, prior, **how))
    for run in range(3):
        rows = rows_of(whitened[run : run + 1])
        ((_, alone),) = ascend(rows, starts[run : run + 1], prior, **how)
        assert (together[run].n_iter, together[run].converged) == (alone.n_iter, alone.converged)
        np.testing.assert_allclose(together[run].means, alone.means, rtol=rtol, atol=rtol)
    assert len({mixture.n_iter for mixture in together.values()}) > 1
    # Runs that share their rows need them once.
    shared = dict(ascend(rows_of(whitened[:1]), starts[[0, 0]], prior, **how))
    assert [shared[0].elbo, shared[1].elbo] == pytest.approx([together[0].elbo] * 2, rel=1e-12)


@needs_torch
@pytest.mark.parametrize("log_norm", [-4000.0, -700.0, -561.0, -550.0, 0.0, 99.0, 140.0, 4000.0])
def test_torch_measures_any_log_norm(log_norm, rng):
    # A reference component can measure log norms from -560 to 100.
    Z, coefficients = rng.normal(size=(1, 300, 2)), rng.normal(size=(1, 9, 6))
    coefficients[..., 0] += log_norm
    numpy, rows = NumpyRows(Z).statistics(coefficients), TorchRows(Z, "cpu")
    torch = rows.statistics(rows.to_backend(coefficients))
    if bool(torch.entropy.isnan().any()):
        assert log_norm not in (-550.0, 0.0)
        torch = rows.careful().statistics(rows.to_backend(coefficients))
    np.testing.assert_allclose(torch.moments, numpy.moments, atol=1e-9)
    np.testing.assert_allclose(torch.entropy, numpy.entropy, atol=1e-7)


@needs_torch
@pytest.mark.parametrize("accelerated", [False, True])
@pytest.mark.parametrize("scale", [1e-40, 1e150])
def test_torch_fits_rows_of_any_density(scale, accelerated, rng):
    Z = scale * rng.normal(size=(200, 2))
    prior = MixturePrior().resolve(Z)
    whitened = prior.whiten(Z)
    start = start_moments(whitened, rng.integers(0, 9, 200), 9)[None]
    numpy, torch = (
        next(ascend(rows, start, prior, 30, 1e-3, accelerated=accelerated))[1]
        for rows in (NumpyRows(whitened[None]), TorchRows(whitened[None], "cpu"))
    )
    np.testing.assert_allclose(torch.elbo, numpy.elbo, rtol=1e-10)


@needs_torch
def test_torch_adds_up_blocks(rng, monkeypatch):
    Z, coefficients = rng.normal(size=(2, 300, 2)), rng.normal(size=(2, 9, 6))
    monkeypatch.setattr(TorchRows, "BLOCK_ROWS", {"cpu": 130})
    rows = TorchRows(Z, "cpu")
    numpy, torch = (
        NumpyRows(Z).statistics(coefficients),
        rows.statistics(rows.to_backend(coefficients)),
    )
    np.testing.assert_allclose(torch.moments, numpy.moments, atol=1e-9)
    np.testing.assert_allclose(torch.entropy, numpy.entropy, atol=1e-7)


@pytest.mark.parametrize("rows_of", ROWS)
class TestInverses:
    def test_they_are_numpys(self, rows_of, rng):
        rows = rows_of(rng.normal(size=(1, 5, 2)))
        for size in (1, 2, 7):
            roots = rng.normal(size=(3, 4, size, size + 3))
            matrices = roots @ roots.swapaxes(2, 3)
            i, j = np.triu_indices(size)
            found = rows.invert(rows.to_backend(matrices[..., i, j]))
            inverses, log_det = map(rows.to_numpy, found)
            np.testing.assert_allclose(inverses, np.linalg.inv(matrices)[..., i, j], rtol=1e-9)
            np.testing.assert_allclose(log_det, -0.5 * np.linalg.slogdet(matrices)[1])

    def test_only_a_matrix_that_is_not_positive_definite_gives_nan(self, rows_of, rng):
        rows = rows_of(rng.normal(size=(1, 5, 2)))
        good, negative, indefinite = [2.0, 0.0, 4.0], [-1.0, 0.0, 4.0], [1.0, 2.0, 1.0]
        found = rows.invert(rows.to_backend(np.array([good, negative, indefinite])))
        inverses, log_det = map(rows.to_numpy, found)
        np.testing.assert_allclose(inverses[0], [0.5, 0.0, 0.25])
        np.testing.assert_array_equal(np.isnan(log_det), [False, True, True])


@pytest.mark.usefixtures("two_threads")
def test_fits_in_two_threads_at_once_give_each_its_own_answer(benchmark_space):
    tables = {name: benchmark_space(name) for name in ("Glass", "Stamps")}
    alone = {name: fit_mixture(Z, 20).elbo for name, Z in tables.items()}
    with ThreadPoolExecutor(2) as pool:
        names = ["Glass", "Stamps"] * 4
        together = list(pool.map(lambda n: fit_mixture(tables[n], 20).elbo, names))
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


def assert_sound(Z, n_components, rows_of=NumpyRows, accelerated=False):
    """Finite parameters, and a bound that falls by no more than 1e-10 of itself."""
    prior = MixturePrior().resolve(Z)
    labels = labels_of(Z, n_components, np.random.default_rng(0))
    whitened = prior.whiten(Z)
    start = start_moments(whitened, labels, n_components)
    previous = -np.inf
    steps = iterate(rows_of(whitened[None]), start[None], prior, 20, accelerated=accelerated)
    for (parameters,), (elbo,) in steps:
        assert all(np.isfinite(value).all() for value in vars(parameters).values())
        assert np.isfinite(elbo)
        slack = 1e-10 * max(abs(previous), abs(elbo)) if np.isfinite(previous) else 0.0
        assert elbo >= previous - slack
        previous = elbo


@settings(max_examples=60, deadline=None, derandomize=True)
@given(degenerate_rows(), st.sampled_from([1, 5, 40]), st.booleans())
def test_degenerate_tables_are_fitted_soundly_or_refused(table, n_components, accelerated):
    with suppress(MixtureError):
        assert_sound(np.array(table), n_components, accelerated=accelerated)


@needs_torch
@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    repeated_columns(),
    st.sampled_from([1, 5, 30, 100]),
    st.sampled_from([NumpyRows, TorchRows]),
    st.booleans(),
)
def test_tables_with_repeated_columns_are_fitted_soundly(Z, n_components, rows_of, accelerated):
    assert_sound(Z, n_components, rows_of, accelerated)


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
@pytest.mark.parametrize("rows_of", ROWS)
@pytest.mark.parametrize("accelerated", [False, True])
def test_named_degenerate_cases_are_fitted_soundly(Z, rows_of, accelerated):
    assert_sound(Z, 10, rows_of, accelerated)


@needs_torch
@pytest.mark.parametrize("n_components", [1, 3])
def test_far_outliers_give_the_same_mixture_on_both_backends(n_components, rng):
    Z = rng.normal(size=(2000, 10))
    Z[:3] += 40.0
    numpy = fit_mixture(Z, n_components)
    torch = fit_mixture(Z, n_components, backend="torch", device="cpu")
    assert torch.n_iter == numpy.n_iter
    np.testing.assert_allclose(torch.elbo, numpy.elbo, rtol=1e-9)


@needs_torch
def test_an_unknown_backend_is_refused_and_a_missing_torch_gives_the_command(monkeypatch):
    with pytest.raises(ValueError, match="backend must be one of numpy, torch, got 'cuda'"):
        check_backend("cuda")
    with pytest.raises(ValueError, match="device='cuda:0' needs backend='torch'"):
        check_backend("numpy", "cuda:0")
    with pytest.raises(ValueError, match="device must be a PyTorch device, got 'abacus'"):
        check_backend("torch", "abacus")
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"pip install 'gammagmm\[deep\]'"):
        check_backend("torch")


@pytest.mark.parametrize("rows_of", ROWS)
@pytest.mark.parametrize("diagonal", [(-1.0, 1.0), (1.0, -1.0)])
def test_a_matrix_that_fails_at_any_row_gives_nan(rows_of, diagonal):
    rows = rows_of(np.zeros((1, 3, 2)))
    matrices = np.array([[diagonal[0], 0.0, diagonal[1]], [4.0, 1.0, 9.0]])
    inverses, log_det = map(rows.to_numpy, rows.invert(rows.to_backend(matrices)))
    assert np.isnan([*inverses[0], log_det[0]]).all()
    expected = np.linalg.inv([[4.0, 1.0], [1.0, 9.0]])
    np.testing.assert_allclose(inverses[1], expected[[0, 0, 1], [0, 1, 1]], rtol=1e-12)
    assert log_det[1] == pytest.approx(-0.5 * np.log(35.0))


def test_threads_are_those_asked_for_up_to_the_cores():
    with threadpool_limits(1):
        assert count_threads(1) == 1
        assert count_threads(10**6) == cpu_count()
