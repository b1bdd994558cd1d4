"""Posteriors equal those of the paper's method in plain steps, set by set and run by run.

`tests.support.plain_method` computes the method without gammagmm. Its results on benchmark scores
are stored; on the scores of the demo data it runs here.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats

from gammagmm import GammaGMM
from gammagmm.mixture.backends import place_rows
from gammagmm.mixture.fit import ascend
from gammagmm.mixture.prior import MixturePrior
from gammagmm.mixture.score_space import fit_scaler
from gammagmm.mixture.statistics import start_moments
from gammagmm.posterior.link import Constraints
from gammagmm.posterior.runs import RunSettings, make_run
from tests.support.demo_scores import demo_scores
from tests.support.plain_method import GOLDEN, LARGE, SMALL, plain_run
from tests.support.solved_scores import has_content

STORED = json.loads(GOLDEN.read_text(encoding="utf-8"))


def run_from(scores, start):
    """The run of gammagmm from the clusters `start` of a k-means, with plain steps."""
    Z = fit_scaler(scores).transform(scores)
    prior, n_components = MixturePrior().resolve(Z), min(100, len(Z) - 1)
    whitened = prior.whiten(Z)
    moments = start_moments(whitened, np.array(start), n_components)[None]
    ((_, mixture),) = ascend(place_rows(whitened[None], "numpy"), moments, prior, 1500, 1e-3)
    settings = RunSettings(Constraints(), prior, n_components, n_draws=4000)
    return make_run(mixture, settings, np.random.default_rng(0))


def is_same(mean, error, plain):
    """Whether a posterior mean is that of the plain run, up to the error of the draws of both.

    Where delta is 0, the draws do not matter, and rounding is all that is left.
    """
    return abs(mean - plain["mean"]) <= 4.0 * np.hypot(error, plain["error"]) + 1e-9


def assert_same(run, plain):
    assert (run.n_iter, run.status) == (plain["n_iter"], plain["status"])
    assert len(run.components) == plain["n_active"]
    if run.status != "unsolved":
        assert len(run.weights) == plain["n_candidates"]
        assert run.delta == pytest.approx(plain["delta"], rel=1e-4)
        assert is_same(run.posterior.mean, run.posterior.standard_error, plain)


def test_a_run_on_the_demo_data_is_that_of_plain_steps():
    plain = plain_run(demo_scores(), 0)
    run = run_from(demo_scores(), plain["start"])
    assert has_content([run])
    assert_same(run, plain)
    assert not is_same(0.05, run.posterior.standard_error, plain)


@pytest.mark.parametrize("name", SMALL)
def test_runs_on_benchmark_sets_are_those_of_plain_steps(name, benchmark_scores):
    for plain in STORED[name]:
        if "start" in plain:
            assert_same(run_from(benchmark_scores(name), plain["start"]), plain)


def test_most_stored_runs_have_content_and_a_mean_that_no_constant_has():
    runs = [run for name in SMALL for run in STORED[name] if "start" in run]
    solved = [run for run in runs if run["status"] == "solved"]
    assert len(solved) >= 0.8 * len(runs)
    assert min(run["n_candidates"] for run in solved) >= 3
    for constant in np.linspace(0.03, 0.09, 61):
        # The error of a run of gammagmm is about that of a plain run.
        agree = [is_same(constant, run["error"], run) for run in solved]
        assert np.mean(agree) < 0.3


def agreement(found, names):
    """P-value of "the means of runs have the same expectation", by Fisher's method over the sets.

    `found` has the means of the runs on each set. The stored runs come from other starts, so the
    spread over runs is the error of their mean. It is taken to be the same in both, because there
    are only two plain runs on a large set.
    """
    p_values = []
    for means, name in zip(found, names, strict=True):
        plain = [run["mean"] for run in STORED[name] if run["status"] != "unsolved"]
        p_values.append(stats.ttest_ind(means, plain).pvalue)
    return stats.combine_pvalues(p_values).pvalue


def means_of_runs(scores):
    fitted = GammaGMM("precomputed", random_state=0, n_jobs=2).fit(scores)
    return [run.posterior.mean for run in fitted.fit_.runs if run.posterior is not None]


@pytest.mark.long
def test_default_fits_agree_with_plain_steps_on_every_set_and_no_constant_does(benchmark_scores):
    found = [means_of_runs(benchmark_scores(name)) for name in SMALL]
    assert agreement(found, SMALL) > 1e-3
    for constant in np.linspace(0.03, 0.09, 61):
        # Fits with the same spread over runs whose mean is the constant on every set.
        moved = [np.array(means) - np.mean(means) + constant for means in found]
        assert agreement(moved, SMALL) < 1e-9


@pytest.mark.slow
def test_default_fits_agree_with_plain_steps_on_large_sets(benchmark_scores):
    found = [means_of_runs(benchmark_scores(name)) for name in LARGE]
    assert agreement(found, LARGE) > 1e-3
    # No constant is within the spread over runs on all of the sets.
    for constant in np.linspace(0.03, 0.11, 81):
        distances = [abs(np.mean(means) - constant) / np.std(means, ddof=1) for means in found]
        assert max(distances) * np.sqrt(10) > 4.0
