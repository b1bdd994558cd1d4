"""The figures of docs/explanations/reliability-inputs.md, from the long runs in stress/results.

``python -m stress.page`` writes them into the page.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "stress" / "results"
PAGE = ROOT / "docs" / "explanations" / "reliability-inputs.md"
MARKS = ("<!-- figures of stress/results, by python -m stress.page -->", "<!-- end -->")
KINDS = {
    "scores": "scores; 1 run, 1 to 10 components, 1 restart",
    "defaults": "scores; all defaults",
    "data": "rows; all defaults, detectors included",
}
ANSWERS = ("answered", "point mass at 0")


def figures() -> str:
    """The tables and sentences between the two MARKS of the page."""
    return "\n\n".join([random_tables(), mutated_files(), kills_and_failures(), repeated_fits()])


def shown_figures() -> str:
    """The figures that the page shows now."""
    return PAGE.read_text(encoding="utf-8").split(MARKS[0])[1].split(MARKS[1])[0].strip()


def write_figures() -> None:
    """Replace the figures that the page shows."""
    before, rest = PAGE.read_text(encoding="utf-8").split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    PAGE.write_text(f"{before}{MARKS[0]}\n{figures()}\n{MARKS[1]}{after}", encoding="utf-8")


def results(name: str) -> dict[str, Any]:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def table(header: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    lines = [header, tuple("---" for _ in header), *rows]
    return "\n".join(f"| {' | '.join(map(str, cells))} |" for cells in lines)


def random_tables() -> str:
    header = ("random tables of", "tried", *ANSWERS, "rejected", "faults", "longest")
    rows = []
    for name, found in results("pipeline").items():
        counts = [found["outcomes"].get(word, 0) for word in ANSWERS]
        refused = found["inputs"] - sum(counts) - found["n_failures"]
        numbers = (f"{n:,}" for n in (found["inputs"], *counts, refused, found["n_failures"]))
        rows.append((KINDS[name], *numbers, f"{found['slowest']:g} s"))
    return table(header, rows)


def mutated_files() -> str:
    found = results("readers")
    readers = found["readers"]
    total, read, refused, failed = (
        sum(one[word] for one in readers.values())
        for word in ("inputs", "accepted", "refused", "failed")
    )
    slowest = max(readers, key=lambda name: readers[name]["slowest_s"])
    largest = max(readers, key=lambda name: readers[name]["largest_peak_mb"])
    kinds = ", ".join(f"`{one['reader']}`, {one['fault']}" for one in found["faults"]) or "none"
    header = ("mutated files", "read", "rejected", "faults", "longest", "most additional memory")
    row = (
        f"{total:,} of {len(readers)} kinds in {found['minutes']:.0f} minutes",
        *(f"{count:,}" for count in (read, refused, failed)),
        f"{readers[slowest]['slowest_s']:.2f} s (`{slowest}`)",
        f"{readers[largest]['largest_peak_mb']:g} MB (`{largest}`)",
    )
    return (
        f"{table(header, [row])}\n\nThe faults: {kinds}. `stress/results/readers.json` has the "
        "figures of each kind."
    )


def kills_and_failures() -> str:
    kills = results("kills")
    killed = "SIGKILL at a random moment while five kinds of output are written"
    failed = "a step of writing fails, or the size of the file is limited"
    rows = [
        (killed, kills["kills"], kills["torn_by_kills"], kills["parts_left"]),
        (failed, kills["faults"], kills["torn_by_faults"], "none"),
    ]
    return table(("fault", "injected", "files lost or damaged", "partial files left"), rows)


def repeated_fits() -> str:
    soak = results("soak")
    few, sizes = soak["warm_up"], (soak["mib_after_warm_up"], soak["mib_at_the_end"])
    return (
        f"{soak['fits']} fits in one process: {sizes[0]:.0f} MiB in fits {few + 1} to {2 * few}, "
        f"{sizes[1]:.0f} MiB in the last {few} (medians), {soak['growth']:+.1%}."
    )
