"""The trials that plan.toml asks for."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
EXACT: dict[str, Any] = {
    "scale": None,
    "tol": 1e-3,
    "max_mixture_rows": None,
    "max_restarts": 100,
}
"""Parameters of the reproduction: columns as they are, plain steps and all rows, as the paper."""


@dataclass(frozen=True, order=True)
class Trial:
    """One experiment, and one line of a result file: a `kind` on a dataset, in one `variant`."""

    kind: str  # a key of trials.KINDS
    collection: str
    dataset: str
    variant: str

    @classmethod
    def parse(cls, name: str) -> Trial:
        """The trial whose `str` is `name`."""
        return cls(*name.split("/"))

    def __str__(self) -> str:
        return "/".join((self.kind, self.collection, self.dataset, self.variant))


def load_plan() -> dict[str, Any]:
    """The contents of plan.toml."""
    with (HERE / "plan.toml").open("rb") as file:
        return tomllib.load(file)


def small_plan(plan: dict[str, Any]) -> dict[str, Any]:
    """The plan of `make reproduce-small`: four small datasets, every question."""
    small = plan["small"]
    few = {"repeats": small["repeats"]}
    return plan | {
        "collections": {"paper": plan["collections"]["paper"] | {"datasets": small["datasets"]}},
        "thresholders": plan["thresholders"] | {"names": small["thresholders"]},
        "subsets": plan["subsets"] | few,
        "ablation": plan["ablation"] | {"fits": ["no_log", "KNN"]},
        "dose": plan["dose"]
        | few
        | {"levels": [0.0, 0.1], "thresholders": small["thresholders"]}
        | {"datasets": [], "separable": {"rows": 300, "features": 5}},
        "labels": plan["labels"] | {"draws": small["repeats"]},
        "learning": plan["learning"]
        | {"draws": small["repeats"]}
        | {"finding": plan["learning"]["finding"] | {"draws": small["repeats"]}}
        | {"peers": plan["learning"]["peers"] | {"draws": 0}},
        "pyod_agreement": plan["pyod_agreement"] | {"datasets": small["datasets"][:1]},
        "settings": {"variants": small["settings"], "datasets": small["datasets"][:1]},
        "seeds": plan["seeds"] | {"values": [0, 1], "thresholders": ["IQR"]},
        "row_order": {"orders": [0, 1], "datasets": small["datasets"][:1]},
        "new_rows": plan["new_rows"]
        | {"datasets": {"paper": small["datasets"][-1:]}, "variants": ["standard"]},
        "deep_agreement": {"datasets": small["datasets"][:1], "networks": ["AE"]},
        "record": plan["record"] | {"collections": ["paper"], "datasets": small["datasets"][:1]},
        "sceptic": {"kinds": ["far"], "shares": [0.2], "blobs": [1], "rows": [500], "seeds": 1},
        "clean": {"kinds": ["normal"], "rows": [200], "seeds": 1},
        "groups": plan["groups"] | {"kinds": ["zeros"], "rows": [500], "seeds": 1},
        "quiet": plan["quiet"] | {"splits": 1, "presets": ["fast"], "datasets": {"made": ["t3"]}},
        "subsample": plan["subsample"] | {"shares": {small["datasets"][-1]: [0.5]}},
    }


def trials(plan: dict[str, Any]) -> Iterator[Trial]:
    """Every trial of the plan, the paper's own questions first."""
    for collection, part in plan["collections"].items():
        for dataset in part["datasets"]:
            yield from _method_trials(plan, collection, dataset)
    for dataset in plan["collections"]["paper"]["datasets"]:
        for size, repeat in subset_cases(plan):
            yield Trial("subset", "paper", dataset, f"{size}-{repeat}")
        for variant in plan["ablation"]["fits"]:
            yield Trial("ablation", "paper", dataset, variant)
    for collection, dataset in dose_sets(plan):
        for repeat in range(plan["dose"]["repeats"]):
            yield Trial("dose", collection, dataset, str(repeat))
    yield from _detector_trials(plan)
    yield from _settings_trials(plan)
    yield from _seeds_trials(plan)
    yield from _evidence_trials(plan)
    yield from _new_rows_trials(plan)
    yield from _quiet_trials(plan)


def subset_cases(plan: dict[str, Any]) -> list[tuple[int, int]]:
    """Number of detectors and repeat of question 4's fits; all detectors are fitted once."""
    plan = plan["subsets"]
    some = [(size, repeat) for size in plan["sizes"] for repeat in range(plan["repeats"])]
    return [*some, (len(plan["detectors"]), 0)]


def dose_sets(plan: dict[str, Any]) -> list[tuple[str, str]]:
    """Collection and dataset of the dose trials."""
    sets = [("made", "separable")]
    for collection, part in plan["collections"].items():
        sets += [(collection, name) for name in plan["dose"].get("datasets", part["datasets"])]
    return sets


def _method_trials(plan: dict[str, Any], collection: str, dataset: str) -> Iterator[Trial]:
    yield Trial("scores", collection, dataset, "all")
    yield Trial("gamma", collection, dataset, "default")
    for share in plan["constants"]["shares"]:
        yield Trial("constant", collection, dataset, f"{share:.2f}")
    yield Trial("constant", collection, dataset, "prior")
    for name in plan["thresholders"]["names"]:
        yield Trial("threshold", collection, dataset, name)


def _detector_trials(plan: dict[str, Any]) -> Iterator[Trial]:
    for dataset in plan["pyod_agreement"]["datasets"]:
        yield Trial("pyod_agreement", "paper", dataset, "all")
    for dataset in plan["deep_agreement"]["datasets"]:
        for network in plan["deep_agreement"]["networks"]:
            yield Trial("deep_agreement", "paper", dataset, network)
    for dataset, shares in plan["subsample"]["shares"].items():
        for share in shares:
            yield Trial("subsample", "paper", dataset, str(share))


def _settings_trials(plan: dict[str, Any]) -> Iterator[Trial]:
    for collection, part in plan["collections"].items():
        for dataset in plan["settings"].get("datasets", part["datasets"]):
            for variant in plan["settings"]["variants"]:
                yield Trial("settings", collection, dataset, variant)
    for dataset in plan["settings"].get("enlarged", {}).get("datasets", []):
        for variant in plan["settings"]["variants"]:
            yield Trial("settings", "enlarged", dataset, variant)


def _seeds_trials(plan: dict[str, Any]) -> Iterator[Trial]:
    for dataset in plan["collections"]["paper"]["datasets"]:
        if dataset not in plan["seeds"]["left_out"]:
            for seed in plan["seeds"]["values"]:
                yield Trial("seeds", "paper", dataset, str(seed))
    for dataset in plan["row_order"]["datasets"]:
        for order in plan["row_order"]["orders"]:
            yield Trial("row_order", "paper", dataset, str(order))


def _evidence_trials(plan: dict[str, Any]) -> Iterator[Trial]:
    for collection, dataset in record_tables(plan):
        yield Trial("record", collection, dataset, "default")
        yield Trial("labels", collection, dataset, "default")
        yield Trial("learning", collection, dataset, "default")
        yield Trial("finding", collection, dataset, "default")
        if plan["learning"]["peers"]["draws"]:
            yield Trial("peers", collection, dataset, "default")
    made = plan["sceptic"]
    for kind, share, n_blobs, n_rows in product(
        made["kinds"], made["shares"], made["blobs"], made["rows"]
    ):
        # Without outliers, all kinds are the same.
        if share > 0.0 or kind == made["kinds"][0]:
            for seed in range(made["seeds"]):
                yield Trial("sceptic", "made", f"{kind}-{share}-{n_blobs}-{n_rows}", str(seed))
    made = plan["clean"]
    for kind, n_rows, seed in product(made["kinds"], made["rows"], range(made["seeds"])):
        yield Trial("clean", "made", f"{kind}-{n_rows}", str(seed))
    made = plan["groups"]
    for kind, n_rows, seed in product(made["kinds"], made["rows"], range(made["seeds"])):
        yield Trial("groups", "made", f"{kind}-{n_rows}", str(seed))


def record_tables(plan: dict[str, Any]) -> list[tuple[str, str]]:
    """Collection and name of the tables of the track record."""
    return [
        (collection, name)
        for collection in plan["record"]["collections"]
        for name in _table_names(plan, collection)
    ]


def _table_names(plan: dict[str, Any], collection: str) -> list[str]:
    if collection in plan["collections"]:
        whole = plan["collections"][collection]["datasets"]
        return list(plan["record"].get("datasets", whole))
    return list(plan["record"][collection])


def _new_rows_trials(plan: dict[str, Any]) -> Iterator[Trial]:
    for collection, datasets in plan["new_rows"]["datasets"].items():
        for dataset in datasets:
            for variant in plan["new_rows"]["variants"]:
                yield Trial("new_rows", collection, dataset, variant)


def _quiet_trials(plan: dict[str, Any]) -> Iterator[Trial]:
    for collection, datasets in plan["quiet"]["datasets"].items():
        for dataset, preset in product(datasets, plan["quiet"]["presets"]):
            yield Trial("quiet", collection, dataset, preset)
