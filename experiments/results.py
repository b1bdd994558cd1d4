"""The result files, by trial; tables and figures read nothing else."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from experiments.plan import HERE, Trial, trials

OURS = "gammaGMM"


@dataclass(frozen=True)
class Results:
    """Every result of the plan that is there."""

    plan: dict[str, Any]

    @cached_property
    def all(self) -> dict[Trial, dict[str, Any]]:
        asked = [trial for trial in trials(self.plan) if trial.path.exists()]
        return {trial: json.loads(trial.path.read_text(encoding="utf-8")) for trial in asked}

    @cached_property
    def paper(self) -> dict[str, Any]:
        """What the paper says."""
        with (HERE / "paper.toml").open("rb") as file:
            return tomllib.load(file)

    def get(self, kind: str, collection: str, dataset: str, variant: str) -> dict[str, Any] | None:
        """The result, or None where there is none or it is not ok."""
        found = self.all.get(Trial(kind, collection, dataset, variant))
        return found if found and found["status"] == "ok" else None

    def state(self, kind: str, collection: str, dataset: str, variant: str) -> str:
        """What became of a trial: "ok", its reason, or that it has not run."""
        found = self.all.get(Trial(kind, collection, dataset, variant))
        if found is None:
            return "not run"
        return (
            found["status"] if found["status"] == "ok" else f"{found['status']}: {found['reason']}"
        )

    def datasets(self, collection: str) -> list[str]:
        return self.plan["collections"].get(collection, {"datasets": []})["datasets"]

    @property
    def thresholders(self) -> list[str]:
        return self.plan["thresholders"]["names"]

    @property
    def papers_thresholders(self) -> list[str]:
        return self.thresholders[: self.plan["thresholders"]["paper"]]

    @property
    def methods(self) -> list[str]:
        """Every method, ours first."""
        constants = [f"constant {share:.0%}" for share in self.plan["constants"]["shares"]]
        return [OURS, *self.thresholders, *constants, "prior only"]

    def method(self, name: str, collection: str, dataset: str) -> dict[str, Any] | None:
        """A method's result on a dataset."""
        return self.get(*self.place(name, collection, dataset))

    def place(self, name: str, collection: str, dataset: str) -> tuple[str, str, str, str]:
        """Where a method's result on a dataset stands."""
        if name == OURS:
            return "gamma", collection, dataset, "default"
        if name == "prior only":
            return "constant", collection, dataset, "prior"
        if name.startswith("constant"):
            share = int(name.split()[1].rstrip("%")) / 100
            return "constant", collection, dataset, f"{share:.2f}"
        return "threshold", collection, dataset, name


def found_by(results: Results, collection: str, method: str) -> dict[str, dict[str, Any]]:
    """The method's results by dataset."""
    found = {n: results.method(method, collection, n) for n in results.datasets(collection)}
    return {name: result for name, result in found.items() if result}
