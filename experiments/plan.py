"""plan.toml -> the trials that it asks for."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULTS = Path(os.environ.get("GAMMAGMM_RESULTS", HERE / "results"))


@dataclass(frozen=True, order=True)
class Trial:
    """One result file: a `kind` of experiment on a dataset, in one `variant`."""

    kind: str  # a key of trials.KINDS
    collection: str
    dataset: str
    variant: str

    @property
    def path(self) -> Path:
        """Where its result stands."""
        folder = RESULTS / "trials" / self.kind / self.collection / self.dataset
        return folder / f"{self.variant}.json"

    def __str__(self) -> str:
        return "/".join((self.kind, self.collection, self.dataset, self.variant))


def load_plan() -> dict[str, Any]:
    """The plan as plan.toml has it."""
    with (HERE / "plan.toml").open("rb") as file:
        return tomllib.load(file)


def small_plan(plan: dict[str, Any]) -> dict[str, Any]:
    """Four small sets, every question: the plan of `make reproduce-small`."""
    small = plan["small"]
    named = plan["thresholders"] | {"names": small["thresholders"]}
    paper = plan["collections"]["paper"] | {"datasets": small["datasets"]}
    few, inspection = {"repeats": small["repeats"]}, plan["inspection"]
    dose = plan["dose"] | few | {"levels": [0.0, 0.1], "thresholders": small["thresholders"]}
    return plan | {
        "collections": {"paper": paper},
        "thresholders": named,
        "subsets": plan["subsets"] | few,
        "ablation": plan["ablation"] | {"fits": ["no_log", "KNN"]},
        "dose": dose | {"datasets": [], "separable": {"rows": 300, "features": 5}},
        "inspection": inspection
        | few
        | {"labels": small["labels"], "made": inspection["made"] | small["made"]}
        | {"thirty": inspection["thirty"] | few},
    }


def trials(plan: dict[str, Any]) -> Iterator[Trial]:
    """Every trial of the plan, the paper's own questions first."""
    for collection, part in plan["collections"].items():
        for dataset in part["datasets"]:
            for kind, variant in _methods(plan):
                yield Trial(kind, collection, dataset, variant)
    for dataset in plan["collections"]["paper"]["datasets"]:
        for size, repeat in subset_cases(plan):
            yield Trial("subset", "paper", dataset, f"{size}-{repeat}")
        for variant in plan["ablation"]["fits"]:
            yield Trial("ablation", "paper", dataset, variant)
    yield from _dose_trials(plan)
    yield from _inspection_trials(plan)


def subset_cases(plan: dict[str, Any]) -> list[tuple[int, int]]:
    """Number of detectors and repeat of question 4's fits; there is one way to take them all."""
    plan = plan["subsets"]
    some = [(size, repeat) for size in plan["sizes"] for repeat in range(plan["repeats"])]
    return [*some, (len(plan["detectors"]), 0)]


def _methods(plan: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "scores", "all"
    yield "gamma", "default"
    for share in plan["constants"]["shares"]:
        yield "constant", f"{share:.2f}"
    yield "constant", "prior"
    for name in plan["thresholders"]["names"]:
        yield "threshold", name


def _dose_trials(plan: dict[str, Any]) -> Iterator[Trial]:
    sets = [("made", "separable")]
    for collection, part in plan["collections"].items():
        sets += [(collection, name) for name in plan["dose"].get("datasets", part["datasets"])]
    for collection, dataset in sets:
        for repeat in range(plan["dose"]["repeats"]):
            yield Trial("dose", collection, dataset, str(repeat))


def inspection_variants(plan: dict[str, Any]) -> list[str]:
    """Ways of choosing rows, the ones with more repeats included."""
    return plan["inspection"]["variants"] + plan["inspection"]["thirty"]["variants"]


def _inspection_trials(plan: dict[str, Any]) -> Iterator[Trial]:
    for collection, part in plan["collections"].items():
        for dataset in part["datasets"]:
            for variant in inspection_variants(plan):
                yield Trial("inspection", collection, dataset, variant)
    made = plan["inspection"]["made"]
    for ranking in made["rankings"]:
        for share in made["shares"]:
            for variant in made["variants"]:
                yield Trial("inspection", "made", f"{ranking}-{share}", variant)
