"""The plan asks for every trial once, and for everything that the paper has."""

from __future__ import annotations

from experiments.plan import Trial, load_plan, small_plan, trials
from experiments.results import Results
from experiments.trials import KINDS


def test_every_trial_is_asked_for_once_and_has_a_name_of_its_own():
    asked = list(trials(load_plan()))
    assert len(asked) == len(set(asked)) == len({str(trial) for trial in asked})
    assert {trial.kind for trial in asked} == set(KINDS)
    assert [Trial.parse(str(trial)) for trial in asked] == asked


def test_the_plan_has_the_papers_datasets_and_estimators():
    plan, paper = load_plan(), Results(load_plan()).paper["tables"]
    assert set(plan["collections"]["paper"]["datasets"]) == set(paper["datasets"])
    names = plan["thresholders"]["names"][: plan["thresholders"]["paper"]]
    assert {*names, "gammaGMM"} == set(paper["rates"])
    assert len(names) == 21


def test_the_small_plan_asks_every_question():
    small = list(trials(small_plan(load_plan())))
    # The packages of "peers" are in an extra of their own.
    assert {trial.kind for trial in small} == set(KINDS) - {"peers"}
    assert len(small) < 100
