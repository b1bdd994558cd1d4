"""What users of version 0.1 wrote still works with a warning, and their files can be read."""

from __future__ import annotations

import importlib
import re
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import gammagmm
from gammagmm import FitSummary, GammaGMM, GammaPosterior
from gammagmm.errors import SavedFileError
from tests.support.command_line import gammagmm_here, write_csv
from tests.support.solved_scores import SOLVED, grouped_scores

OLD_FILES = Path(__file__).parents[1] / "golden" / "version_0_1"
"""Files that version 0.1 wrote for the scores of `old_scores`."""
OLD_MEAN, OLD_INTERVAL = 0.04610653446970793, (0.012203286992681786, 0.09512461937283617)
"""What version 0.1 printed for them."""
SETTINGS = {"detectors": "precomputed", "n_runs": 1, "n_components": 6, "n_draws": 4}


def old_scores():
    scores = np.exp(np.random.default_rng(3).normal(size=(60, 3)))
    scores[:4] *= np.exp(4)
    return scores


@pytest.fixture(scope="module")
def fitted():
    scores = grouped_scores(np.random.default_rng(0))
    return GammaGMM("precomputed", random_state=0, **SOLVED).fit(scores)


def warned_once(work, message):
    """The result of `work`, which gives one FutureWarning with this message, at its own line."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = work()
    assert [(each.category, str(each.message)) for each in caught] == [(FutureWarning, message)]
    assert caught[0].filename == work.__code__.co_filename
    return result


def no_effect(name):
    return f"{name} has no effect since version 0.2 and will be removed in version 0.3. "


def test_a_fit_with_trust_is_the_fit_without_it(fitted):
    scores = fitted.scores_
    estimator = clone(fitted).set_params(trust=0.1)
    message = no_effect("trust") + "The labels alone give the posterior: leave it out."
    again = warned_once(lambda: estimator.fit(scores), message)
    assert again.posterior_.mean == fitted.posterior_.mean
    assert again.summary().parameters == fitted.summary().parameters
    assert "trust" not in repr(fitted)


def test_a_saved_fit_has_no_deprecated_parameter(fitted, tmp_path):
    estimator = clone(fitted).set_params(trust=0.1)
    with pytest.warns(FutureWarning, match="trust"):
        estimator.fit(fitted.scores_)
    estimator.save(tmp_path / "kept.fit")
    assert GammaGMM.load(tmp_path / "kept.fit").trust == "deprecated"


@pytest.mark.parametrize("strategy", ["random", "adaptive"])
def test_rows_to_label_do_not_depend_on_the_strategy(fitted, strategy):
    message = no_effect("strategy") + "The rows are spread over the ranking: leave it out."
    expected = fitted.suggest(20, random_state=3).tolist()
    given = {"random_state": 3}
    assert warned_once(lambda: fitted.suggest(20, strategy, **given), message).tolist() == expected
    named = warned_once(lambda: fitted.suggest(20, strategy=strategy, **given), message)
    assert named.tolist() == expected


def test_the_expected_width_ignores_what_its_simulation_needed(fitted):
    expected = fitted.expected_width(30)
    message = no_effect("random_state") + "Nothing is simulated: leave it out."
    assert warned_once(lambda: fitted.expected_width(30, random_state=0), message) == expected
    message = no_effect("strategy") + "The rows are spread over the ranking: leave it out."
    assert warned_once(lambda: fitted.expected_width(30, strategy="random"), message) == expected


@pytest.mark.parametrize(
    ("module", "name"), [("gammagmm.prior", "MixturePrior"), ("gammagmm.summary", "FitSummary")]
)
def test_documented_modules_lead_to_the_public_name(module, name):
    message = (
        f"The module {module} will be removed in version 0.3. Write: from gammagmm import {name}"
    )
    code = compile(f"from {module} import {name} as found", __file__, "exec")
    space = {"__name__": "users_module"}
    sys.modules.pop(module, None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exec(code, space)
    assert [(each.category, str(each.message)) for each in caught] == [(FutureWarning, message)]
    assert space["found"] is getattr(gammagmm, name)
    with pytest.raises(AttributeError, match=re.escape(f"module '{module}' has no attribute 'X'")):
        _ = importlib.import_module(module).X


def test_old_options_of_the_command_line_print_a_line(tmp_path):
    rows = np.random.default_rng(0).normal(size=(60, 3))
    rows[:3] += 6
    write_csv(tmp_path / "rows.csv", {f"x{i}": column for i, column in enumerate(rows.T)})
    common = ("rows.csv", "--detectors", "HBOS,COPOD", "--runs", "1", "--jobs", "1", "--quiet")
    plain = gammagmm_here("estimate", *common, cwd=tmp_path)
    done = gammagmm_here("estimate", *common, "--trust", "0.2", cwd=tmp_path)
    line = f"warning: {no_effect('--trust')}Leave it out.\n"
    assert (done.returncode, done.stderr) == (0, line + plain.stderr)
    outputs = [re.sub(r" \d+\.\d(?= )", " SECONDS", each.stdout) for each in (done, plain)]
    assert outputs[0] == outputs[1]

    inspected = ("inspect", *common, "--n", "5", "--out")
    plain = gammagmm_here(*inspected, "plain.csv", cwd=tmp_path)
    done = gammagmm_here(
        *inspected, "old.csv", "--strategy", "adaptive", "--trust", "0.2", cwd=tmp_path
    )
    assert done.stderr == line + line.replace("--trust", "--strategy") + plain.stderr
    assert (tmp_path / "old.csv").read_text() == (tmp_path / "plain.csv").read_text()
    assert "--trust" not in gammagmm_here("estimate", "--help").stdout


def test_settings_of_version_0_1_restore_its_answer():
    estimator = GammaGMM(
        **SETTINGS, max_restarts=20, tol=1e-3, max_mixture_rows=None, scale=None, random_state=1
    )
    posterior = estimator.fit(old_scores()).posterior_
    assert posterior.mean == pytest.approx(OLD_MEAN, rel=1e-9)
    assert posterior.interval() == pytest.approx(OLD_INTERVAL, rel=1e-6)


def test_posteriors_and_summaries_of_version_0_1_can_be_read():
    posterior = GammaPosterior.load(OLD_FILES / "posterior.json")
    assert posterior.mean == pytest.approx(OLD_MEAN, rel=1e-12)
    assert posterior.interval() == pytest.approx(OLD_INTERVAL, rel=1e-9)
    assert posterior.n_labels == 0
    summary = FitSummary.load(OLD_FILES / "summary.json")
    assert summary.posterior.mean == posterior.mean
    assert summary.versions["gammagmm"] == "0.1.0"
    assert summary.parameters["trust"] == 0.1
    assert (summary.evidence, summary.lines) == (None, ())


def test_a_labelled_posterior_of_version_0_1_is_refused_with_advice():
    with pytest.raises(SavedFileError, match=r"gammagmm 0\.1 wrote it, with labels") as caught:
        GammaPosterior.load(OLD_FILES / "labelled_posterior.json")
    assert caught.value.todo == (
        "Use the labels again: `gammagmm estimate --inspected`, or GammaGMM.update."
    )
