"""Result files -> the tables, the figures and the page.

python -m experiments.publish [--small]
"""

from __future__ import annotations

import sys

import matplotlib as mpl

from experiments.figures import FIGURES
from experiments.page import render
from experiments.plan import HERE, RESULTS, load_plan, small_plan
from experiments.results import Results
from experiments.tables import TABLES, to_csv
from gammagmm._support.files import write_document

DOCS = HERE.parent / "docs"


def publish(results: Results) -> None:
    """Write everything that is made from the results; the small run stays out of the docs."""
    is_whole = results.plan == load_plan()
    pictures = DOCS / "images" / "reproduction" if is_whole else RESULTS / "figures"
    page = DOCS / "reproduction.md" if is_whole else RESULTS / "reproduction.md"
    for folder in (RESULTS / "tables", pictures):
        folder.mkdir(parents=True, exist_ok=True)
    for name, table in TABLES.items():
        write_document(to_csv(table(results)), RESULTS / "tables" / f"{name}.csv", overwrite=True)
    # The same results give the same files.
    with mpl.rc_context({"svg.hashsalt": "gammagmm"}):
        for name, draw in FIGURES.items():
            draw(results).savefig(pictures / f"{name}.svg", metadata={"Date": None})
    write_document(render(results), page, overwrite=True)


if __name__ == "__main__":
    plan = load_plan()
    publish(Results(small_plan(plan) if "--small" in sys.argv else plan))
