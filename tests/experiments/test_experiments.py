"""The reproduction: its parts against independent paths, its runner, and the page it makes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from experiments.accuracy import f1 as f1_table
from experiments.calibrations import LEVELS, calibration_figures, frequencies
from experiments.markup import markdown
from experiments.page import render
from experiments.plan import HERE, Trial, load_plan, small_plan, trials
from experiments.results import Results
from experiments.run import pending, plain
from experiments.tables import TABLES, to_csv
from experiments.trials import KINDS, _before_log
from experiments.turbines import read_turbine
from sklearn.metrics import confusion_matrix, f1_score

from experiments import methods, metrics
from gammagmm import GammaGMM, GammaPosterior
from gammagmm.datasets import make_contaminated
from gammagmm.mixture.score_space import fit_scaler
from gammagmm.posterior.betas import BetaMixture

ROOT = Path(__file__).parents[2]
POSTERIOR = GammaPosterior(0.1, BetaMixture(*np.array([[0.5, 0.4], [5.0, 30.0], [95.0, 170.0]])))


class TestMetrics:
    @pytest.mark.parametrize("truth", [0.0, 0.03, 0.15, 0.6])
    def test_crps_is_expected_distance_less_half_the_spread(self, truth, rng):
        n = 400_000
        first, second = POSTERIOR.sample(n, rng), POSTERIOR.sample(n, rng)
        terms = np.abs(first - truth) - 0.5 * np.abs(first - second)
        found = metrics.crps(POSTERIOR, truth)
        assert found == pytest.approx(terms.mean(), abs=4 * terms.std() / np.sqrt(n))

    def test_crps_of_a_point_is_its_distance(self):
        assert metrics.crps(GammaPosterior.degenerate(), 0.07) == pytest.approx(0.07)

    def test_the_cut_is_that_of_scikit_learns_scores(self, rng):
        S, y = rng.normal(size=(500, 3)), (rng.random(500) < 0.1).astype(int)
        S[:, 1] += 2.0 * y
        found = metrics.evaluate(S, y, 0.08)
        for j in range(3):
            labels = S[:, j] > np.percentile(S[:, j], 92.0)
            _, fp, fn, _ = confusion_matrix(y, labels).ravel()
            assert found["f1"][j] == pytest.approx(f1_score(y, labels))
            assert found["false_alarms"][j] == fp / 500
            assert found["misses"][j] == fn / 500
        assert metrics.evaluate(S, y, 0.0)["f1"] == [0.0, 0.0, 0.0]

    def test_needed_is_the_mass_of_the_smallest_central_interval(self):
        for truth in (0.02, 0.08, 0.2):
            needed = metrics.posterior_figures(POSTERIOR, truth)["needed"]
            inside = POSTERIOR.interval(min(needed + 1e-6, 1 - 1e-9))
            outside = POSTERIOR.interval(needed - 1e-6)
            assert inside[0] <= truth <= inside[1]
            assert not outside[0] <= truth <= outside[1]

    def test_reliability_counts_every_row_once(self, rng):
        probability, y = np.append(rng.random(99), 1.0), rng.integers(0, 2, 100)
        found = metrics.reliability(probability, y)
        assert sum(found["rows"]) == 100
        assert sum(found["anomalies"]) == y.sum()
        inside = (probability >= 0.9) & (probability <= 1.0)
        assert found["rows"][9] == inside.sum()
        assert found["probability"][9] == pytest.approx(probability[inside].sum())

    def test_the_prior_has_the_moments_of_the_shares(self):
        shares = np.array([0.01, 0.03, 0.05, 0.12])
        prior = metrics.beta_prior(shares)
        assert prior.mean == pytest.approx(shares.mean())
        assert prior.std == pytest.approx(shares.std(ddof=1))


class TestCalibration:
    def test_a_calibrated_forecast_lies_on_the_diagonal(self):
        needed = (np.arange(1000) + 0.5) / 1000
        np.testing.assert_allclose(frequencies(needed), LEVELS, atol=1e-3)
        found = calibration_figures(needed.tolist())
        assert found["within_5"] == 1.0
        assert found["largest_off"] < 2e-3

    def test_a_forecast_that_never_holds_the_truth_is_far_off(self):
        found = calibration_figures([1.0] * 20)
        assert found["largest_off"] == pytest.approx(0.99)
        assert found["within_10"] == pytest.approx(10 / 99)


class TestMethods:
    def test_without_the_logarithm_scores_are_only_standardised(self, rng):
        S = rng.gamma(2.0, size=(200, 3))
        before = _before_log(S)
        found = fit_scaler(before).transform(before)
        np.testing.assert_allclose(found, (S - S.mean(axis=0)) / S.std(axis=0), atol=1e-9)

    @pytest.mark.usefixtures("keep_global_random_state")
    def test_a_thresholders_share_is_that_of_its_rule(self, rng):
        Z = rng.normal(size=(400, 2))
        shares = methods.thresholder_shares("IQR", Z, joint=False, seed=0)
        for column, share in zip(Z.T, shares, strict=True):
            q1, q3 = np.percentile(column, [25, 75])
            # PyThresh scales to [0, 1] before, which moves no row across the fence.
            assert share == pytest.approx(np.mean(column >= q3 + 1.5 * (q3 - q1)), abs=0.006)


class TestPlan:
    def test_every_trial_stands_once_and_has_its_own_file(self):
        asked = list(trials(load_plan()))
        assert len(asked) == len(set(asked)) == len({trial.path for trial in asked})
        assert {trial.kind for trial in asked} == set(KINDS)

    def test_the_paper_is_in_it(self):
        plan, paper = load_plan(), Results(load_plan()).paper["tables"]
        assert set(plan["collections"]["paper"]["datasets"]) == set(paper["datasets"])
        names = plan["thresholders"]["names"][: plan["thresholders"]["paper"]]
        assert {*names, "gammaGMM"} == set(paper["rates"])
        assert len(names) == 21

    def test_the_small_plan_asks_every_question(self):
        small = list(trials(small_plan(load_plan())))
        assert {trial.kind for trial in small} == set(KINDS)
        assert len(small) < 100


def test_nan_is_null():
    found = {"a": [float("nan"), 1.0], "b": {"c": float("nan")}}
    assert plain(found) == {"a": [None, 1.0], "b": {"c": None}}


class TestTurbines:
    @pytest.fixture
    def folder(self, tmp_path):
        """Two minutes normal, one failing, one unknown; a sensor reading every 20 s."""
        lines = ["time,wind_speed,power,group"]
        times = [f"2015-11-01 20:{minute:02d}:{s:02d}" for minute in range(4) for s in (0, 20, 40)]
        lines += [f"{t},{i},{10 * i},1" for i, t in enumerate(times)]
        (tmp_path / "15_data.csv").write_text("\n".join(lines) + "\n")
        intervals = {
            "normal": "2015-11-01 20:00:00,2015-11-01 20:02:10",
            "failure": "2015-11-01 20:02:15,2015-11-01 20:02:59",
        }
        for name, interval in intervals.items():
            (tmp_path / f"15_{name}Info.csv").write_text(f"startTime,endTime\n{interval}\n")
        return tmp_path

    def test_rows_are_minutes_labelled_by_interval(self, folder):
        found = read_turbine(folder, 15)
        assert found.name == "T15"
        assert found.feature_names == ("wind_speed", "power")
        # Readings 0 to 2, 3 to 5, then 6 (still normal), and 7 and 8 (failing); the rest unknown.
        np.testing.assert_array_equal(found.X[:, 0], [1.0, 4.0, 6.0, 7.5])
        np.testing.assert_array_equal(found.X[:, 1], 10 * found.X[:, 0])
        assert found.y.tolist() == [0, 0, 0, 1]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Environment with made-up sets under the names of the small plan."""
    folder = tmp_path_factory.mktemp("reproduction")
    (folder / "data" / "paper").mkdir(parents=True)
    for i, name in enumerate(load_plan()["small"]["datasets"]):
        made = make_contaminated(60 + 10 * i, 4, 0.05 + 0.02 * i, "global", random_state=i)
        np.savez(folder / "data" / "paper" / f"{name}.npz", X=made.X, y=made.y)
    places = {"DATA": "data", "RESULTS": "results", "CACHE": "cache"}
    return os.environ | {f"GAMMAGMM_{k}": str(folder / v) for k, v in places.items()}


def run_module(name, *options, env):
    command = [sys.executable, "-m", f"experiments.{name}", *options]
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=True)


def results_of(env):
    return sorted(Path(env["GAMMAGMM_RESULTS"], "trials").rglob("*.json"))


def kill_in_the_middle(env):
    """Start a run, and kill it with its workers after the third result."""
    command = [sys.executable, "-m", "experiments.run", "--small"]
    process = subprocess.Popen(command, cwd=ROOT, env=env, start_new_session=True)
    while len(results_of(env)) < 3:
        assert process.poll() is None
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.mark.long
def test_a_killed_run_goes_on_and_is_published(place):
    kill_in_the_middle(place)
    before = {path: path.stat().st_mtime_ns for path in results_of(place)}
    assert 3 <= len(before) < 82
    printed = run_module("run", "--small", env=place).stdout
    n_asked = len(list(trials(small_plan(load_plan()))))
    n_done = int(re.match(r"(\d+) trials to do", printed)[1])
    # All that had no file, and perhaps scores that had one but were not in the cache.
    assert n_asked - len(before) <= n_done <= n_asked - len(before) + 4
    found = {path: json.loads(path.read_text()) for path in results_of(place)}
    assert len(found) == n_asked
    assert {result["status"] for result in found.values()} == {"ok"}
    kept = [path for path in before if "scores" not in path.parts]
    assert all(path.stat().st_mtime_ns == before[path] for path in kept)
    assert run_module("run", "--small", env=place).stdout == "0 trials to do\n"
    check_posterior(place)
    check_published(place)


def check_posterior(env):
    """The result of one set is what the estimator says of the scores in the cache."""
    path = Path(env["GAMMAGMM_RESULTS"], "trials/gamma/paper/Glass/default.json")
    result = json.loads(path.read_text())
    with np.load(Path(env["GAMMAGMM_CACHE"], "paper/Glass.npz")) as kept:
        fitted = GammaGMM("precomputed", random_state=0).fit(kept["S"])
        assert kept["S"].shape == (80, 10)
    assert result["figures"]["mean"] == pytest.approx(fitted.posterior_.mean, rel=1e-9)
    assert result["truth"] == pytest.approx(round(0.09 * 80) / 80)


def check_published(env):
    run_module("publish", "--small", env=env)
    folder = Path(env["GAMMAGMM_RESULTS"])
    assert {path.stem for path in (folder / "tables").iterdir()} == set(TABLES)
    page = (folder / "reproduction.md").read_text(encoding="utf-8")
    assert "On the 4 sets at hand" in page
    assert "$" not in page


@pytest.fixture(scope="module")
def results():
    return Results(load_plan())


class TestPage:
    """The committed page, tables and results belong together."""

    def test_the_page_is_made_from_the_results(self, results):
        page = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
        assert page == render(results)

    @pytest.mark.parametrize("name", TABLES)
    def test_the_tables_are_made_from_the_results(self, name, results):
        committed = (HERE / "results" / "tables" / f"{name}.csv").read_text(encoding="utf-8")
        assert committed == to_csv(TABLES[name](results))

    def test_no_measured_number_is_typed_by_hand(self):
        """What the template itself says in digits: names, the paper's settings, the plan's."""
        text = (HERE / "page.md").read_text(encoding="utf-8")
        text = re.sub(r"`[^`]*`|\]\([^)]*\)|\$\{\w+\}|^\|.*$|^#.*$", "", text, flags=re.MULTILINE)
        known = {"T15", "T21", "F1", "Table 2", "Table 3", "Table 4", "1e-9", "p0"}
        known |= {"constant 5 %", "constant 10 %", "within 5 %", "within 10 %", "beyond 10 %"}
        known |= {"90 % interval", "paper's 22", "of 22 methods", "20 %", "slope 1", "5,000 rows"}
        known |= {"22 further sets"}
        for words in sorted(known, key=len, reverse=True):
            text = re.sub(re.escape(words).replace(r"\ ", r"\s+"), "", text)
        assert re.findall(r"[^\s]*\d[^\s]*", text) == []

    def test_f1_deterioration_from_the_files_themselves(self, results):
        """gammaGMM's figure for Question 3, computed in another way."""
        losses = []
        folder = HERE / "results" / "trials"
        for path in sorted((folder / "gamma" / "paper").rglob("default.json")):
            found = json.loads(path.read_text())
            if found["status"] != "ok":
                continue
            name = path.parent.name
            scores = json.loads((folder / "scores" / "paper" / name / "all.json").read_text())
            best = max(scores["at_truth"]["f1"])
            pairs = zip(scores["at_truth"]["f1"], found["cut"]["f1"], strict=True)
            ratios = [cut / best - 1.0 for at_truth, cut in pairs if at_truth == best > 0.0]
            losses += [sum(ratios) / len(ratios)] if ratios else []
        row = f1_table(results)[0]
        assert row["f1_deterioration"] == pytest.approx(sum(losses) / len(losses), abs=1e-12)


def test_markdown_shows_what_is_missing_as_a_dash():
    rows = [{"a": 1.25, "b": "x"}, {"b": "y"}]
    assert markdown(rows, {"a": ".1f", "b": ""}).splitlines()[2:] == ["| 1.2 | x |", "| – | y |"]


def test_pending_asks_for_scores_that_others_need(tmp_path, monkeypatch):
    monkeypatch.setattr("experiments.plan.RESULTS", tmp_path)
    monkeypatch.setattr("experiments.data.CACHE", tmp_path / "cache")
    todo = pending(small_plan(load_plan()), ["gamma"])
    assert [trial.kind for trial in todo] == ["scores"] * 4 + ["gamma"] * 4
    scores = Trial("scores", "paper", "WBC", "all")
    scores.path.parent.mkdir(parents=True)
    scores.path.write_text('{"status": "no data"}')
    assert scores not in pending(small_plan(load_plan()), ["gamma"])
