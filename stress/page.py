"""Results of the long runs -> the figures of docs/reliability.md.

python -m stress.page
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parents[1] / "docs" / "reliability.md"
MARKS = ("<!-- figures of stress/results, by python -m stress.page -->", "<!-- end -->")
KINDS = {
    "scores": "scores; 1 run, 1 to 10 components, 1 restart",
    "defaults": "scores; all defaults",
    "data": "rows; all defaults, detectors included",
}
ANSWERS = ("answered", "point mass at 0")


def figures() -> str:
    """The tables, from the files of results."""
    parts = (tables_tried, files_tried, faults_tried)
    return "\n\n".join(part() for part in parts)


def results(name: str) -> dict[str, Any]:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def table(header: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    lines = [header, tuple("---" for _ in header), *rows]
    return "\n".join(f"| {' | '.join(map(str, cells))} |" for cells in lines)


def tables_tried() -> str:
    header = ("tables by chance, from", "tried", *ANSWERS, "refused", "faults", "longest")
    rows = []
    for name, found in results("pipeline").items():
        counts = [found["outcomes"].get(word, 0) for word in ANSWERS]
        refused = found["inputs"] - sum(counts) - found["n_failures"]
        numbers = (f"{n:,}" for n in (found["inputs"], *counts, refused, found["n_failures"]))
        rows.append((KINDS[name], *numbers, f"{found['slowest']:g} s"))
    return table(header, rows)


def files_tried() -> str:
    found = results("readers")
    header = ("mutated files of", "tried", "read", "refused", "faults", "longest", "peak raised by")
    rows = [
        (
            f"`{name}`",
            *(f"{one[word]:,}" for word in ("inputs", "accepted", "refused", "failed")),
            f"{one['slowest_s']:.2f} s",
            f"{one['largest_peak_mb']:g} MB",
        )
        for name, one in found["readers"].items()
    ]
    total = sum(one["inputs"] for one in found["readers"].values())
    kinds = ", ".join(f"`{one['reader']}`, {one['fault']}" for one in found["faults"]) or "none"
    return (
        f"{total:,} files in {found['minutes']:.0f} minutes; kinds of fault met on the way, all "
        f"mended and kept in `tests/corpus`: {kinds}.\n\n{table(header, rows)}"
    )


def faults_tried() -> str:
    kills, soak = results("kills"), results("soak")
    killed = "SIGKILL at a random moment while five kinds of output are written"
    failed = "a step of writing that fails, or a file that may not grow"
    rows = [
        (killed, kills["kills"], kills["torn_by_kills"], kills["parts_left"]),
        (failed, kills["faults"], kills["torn_by_faults"], "none"),
    ]
    lost = table(("fault", "injected", "files lost or torn", "hidden parts left"), rows)
    few, sizes = soak["warm_up"], (soak["mib_after_warm_up"], soak["mib_at_the_end"])
    return (
        f"{lost}\n\n{soak['fits']} fits in one process: {sizes[0]:.0f} MiB in the {few} after "
        f"the first {few}, {sizes[1]:.0f} MiB in the last {few} (medians), {soak['growth']:+.1%}."
    )


def main() -> None:
    before, rest = PAGE.read_text(encoding="utf-8").split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    PAGE.write_text(f"{before}{MARKS[0]}\n{figures()}\n{MARKS[1]}{after}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
