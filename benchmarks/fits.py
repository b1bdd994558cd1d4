"""Whole fits of the present code and of an earlier commit, each in a new process.

    python benchmarks/fits.py            300 to 10,000 rows with the preset "classic"
    python benchmarks/fits.py --large    to 100,000 rows with "classic", 1,000,000 with "fast"

The earlier commit is checked out into a temporary folder. Beside both stand one evaluation of
PyThresh's GAMGMM and ten mixtures of scikit-learn on the scores that the fit found, where they end
within LIMIT seconds. Writes benchmarks/results/fits.json, with --large one file for each size.
"""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
from functools import partial
from pathlib import Path

import numpy as np

from mixture import gamgmm, sklearn_fits
from one_fit import whole_fit
from timing import ROOT, SOURCE, in_new_process, measure

EARLIER = "63c04a8"
"""The last commit with plain steps on all rows, one run after another."""
LIMIT = 60.0
LARGE_LIMIT = 150.0
N_COLUMNS = 10
WARM_ROWS = 6_000


def make_rows(n_rows, seed=0, n_columns=N_COLUMNS):
    """Rows in eight clusters; 2% of the rows are spread over the whole space."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(scale=3.0, size=(8, n_columns))
    X = centres[rng.integers(8, size=n_rows)] + rng.normal(size=(n_rows, n_columns))
    is_anomaly = rng.random(n_rows) < 0.02
    X[is_anomaly] = rng.uniform(-10.0, 10.0, size=(int(is_anomaly.sum()), n_columns))
    return X


@contextlib.contextmanager
def checked_out(commit):
    """The folder with the package of another commit."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "earlier"
        git = ["git", "-C", str(ROOT), "worktree"]
        options = {"check": True, "capture_output": True}
        subprocess.run([*git, "add", "--detach", str(place), commit], **options)
        try:
            yield place / "src"
        finally:
            subprocess.run([*git, "remove", "--force", str(place)], **options)


class Bench:
    """Fits of one table after another, in a temporary folder."""

    def __init__(self, folder, earlier=None, limit=LIMIT, n_runs=10):
        self.folder, self.limit, self.n_runs = Path(folder), limit, n_runs
        self.sources = {"ours": SOURCE} | ({"earlier": earlier} if earlier else {})
        self.others = {"gamgmm": gamgmm, "sklearn": sklearn_fits}

    def warm_up(self, detectors, n_rows=WARM_ROWS):
        """Compile what a fit needs, which the later processes load from a cache."""
        rows = self._save("warm", make_rows(n_rows))
        for source in self.sources.values():
            in_new_process(whole_fit, source=source, rows=rows, detectors=detectors, n_runs=1)

    def case(self, name, X, detectors, n_repeats=1):
        """Figures of a table: of each commit the shortest fit, and of the other methods."""
        rows, scores = self._save("rows", X), str(self.folder / "scores.npy")
        found = {"name": name, "n_rows": len(X), "detectors": detectors}
        for which, source in self.sources.items():
            kept = {"scores": scores} if which == "ours" else {}
            fit = partial(in_new_process, whole_fit, source=source, n_runs=self.n_runs, **kept)
            fits = [fit(rows=rows, detectors=detectors) for _ in range(n_repeats)]
            found[which] = min(fits, key=lambda one: one["seconds"])
            print(name, which, found[which], flush=True)
        if "earlier" in found:
            found["ratio"] = found["earlier"]["seconds"] / found["ours"]["seconds"]
        for which, method in list(self.others.items()):
            answer = in_new_process(method, scores=scores, limit=self.limit)
            if answer is None and which == "sklearn":
                del self.others[which]  # with more rows, it takes longer; GAMGMM may not
            found[which] = answer or {"limit": self.limit}
            print(name, which, found[which], flush=True)
        return found

    def _save(self, name, X):
        path = self.folder / f"{name}.npy"
        np.save(path, X)
        return str(path)


def fits(quick):
    """The tables for which each fit takes seconds."""
    if quick:
        with tempfile.TemporaryDirectory() as folder:
            bench = Bench(folder, limit=2.0, n_runs=2)
            return {"cases": [bench.case("made", make_rows(100), ["KNN", "HBOS"])]}
    from experiments.datasets import load_benchmark

    with tempfile.TemporaryDirectory() as folder, checked_out(EARLIER) as earlier:
        bench = Bench(folder, earlier)
        bench.warm_up("classic")
        tables = [
            ("made", make_rows(300)),
            ("made", make_rows(1_000)),
            ("PageBlocks", load_benchmark("PageBlocks").X),
        ]
        cases = [bench.case(name, X, "classic", 2) for name, X in tables]
        bench.others = {}  # left out, to keep `make bench` short
        cases.append(bench.case("made", make_rows(10_000), "classic"))
    return {"earlier": EARLIER, "limit_seconds": LIMIT, "cases": cases}


def large_fit(quick, n_rows, detectors, is_compared, limit=None):
    """One large table; `limit` is that of GAMGMM, which is left out without one."""
    n_rows, detectors = (200, ["HBOS"]) if quick else (n_rows, detectors)
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        is_compared = is_compared and not quick
        earlier = stack.enter_context(checked_out(EARLIER)) if is_compared else None
        bench = Bench(folder, earlier, limit)
        bench.others = {"gamgmm": gamgmm} if limit and not quick else {}
        bench.warm_up(detectors, n_rows if quick else WARM_ROWS)
        case = bench.case("made", make_rows(n_rows), detectors)
    return {"earlier": EARLIER, "limit_seconds": limit, "cases": [case]}


LARGE = {
    "fits_classic_20000": (20_000, "classic", True, LARGE_LIMIT),
    "fits_classic_100000": (100_000, "classic", True),
    "fits_fast_20000": (20_000, "fast", False),
    "fits_fast_100000": (100_000, "fast", False),
    "fits_fast_1000000": (1_000_000, "fast", False),
}

if __name__ == "__main__":
    large = {name: lambda quick, case=case: large_fit(quick, *case) for name, case in LARGE.items()}
    measure(__doc__, {"fits": fits}, large)
