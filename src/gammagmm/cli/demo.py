"""``gammagmm demo``: the estimate for a bundled dataset whose labels are known."""

from __future__ import annotations

from dataclasses import replace

from gammagmm.cli.commands import label_commands
from gammagmm.cli.estimate import estimate_rows
from gammagmm.cli.options import Reading, Request
from gammagmm.cli.request import check_request
from gammagmm.cli.terminal import Echo, print_answer
from gammagmm.datasets import load_demo
from gammagmm.table.preparation import Preparation
from gammagmm.table.sample import Sample
from gammagmm.table.table import Table

__all__ = ["run_demo"]


def run_demo(request: Request, echo: Echo) -> int:
    """Exit code of ``gammagmm demo``."""
    check_request(request, needs_files=False)
    dataset = load_demo()
    X, names = dataset.X, dataset.feature_names
    preparation, sample = Preparation(names, len(names)), Sample.whole(len(X))
    commands = label_commands(replace(request, reading=Reading(["YOUR_FILE.csv"])), None)
    table = Table(X, preparation, sample, dataset.name, truth=dataset.y, commands=commands)
    code = estimate_rows(table, request, echo)
    if not request.answer.as_json:
        n_true, n_rows = int(dataset.y.sum()), len(dataset.y)
        print_answer(
            f"By the known labels, which the method did not use, {n_true} of {n_rows} rows are "
            "anomalies."
        )
    return code
