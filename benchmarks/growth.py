"""How the seconds of a fit grow with rows and with columns, ours and the peers'.

    python benchmarks/growth.py [--limit 600]

Made rows: 300 to 10 million with ten columns, and 2,000 with 2 to 500 columns. Each fit runs in a
new process, which is ended after `--limit` seconds of the processor; more rows or columns are then
left out. Every result is written to benchmarks/results/growth.json as soon as it is there. What is
in the file is not measured again, but with a higher limit, what took too long is.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
import time
import warnings
from importlib import import_module
from pathlib import Path

import numpy as np
import psutil

from detectors import pyod_detector
from gammagmm._support.files import write_document
from gammagmm.detectors.presets import PRESETS
from mixture import gamgmm, sklearn_fits
from one_fit import whole_fit
from page import GROWTH_ROWS
from tables import make_rows
from timing import RESULTS, TRIAL, in_new_process, rounded

LIMIT = 600.0
WARM_ROWS = 6_000
ROWS = (300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
COLUMNS = (2, 5, 10, 20, 50, 100, 200, 500)
TABLES = [("rows", n_rows, 10) for n_rows in ROWS]
TABLES += [("columns", GROWTH_ROWS, n_columns) for n_columns in COLUMNS]
TRIAL_TABLES = [("rows", 100, 3), ("rows", 200, 3)]


def pyod_fits(rows, names):
    """In a new process: seconds of PyOD's detectors at their defaults, one after another."""
    X = np.load(rows)
    made = [pyod_detector(name) for name in names]
    warnings.simplefilter("ignore")
    for make in made:
        make().fit(X[:100])  # compiles
    return timed(lambda: [make().fit(X) for make in made])


def timed(work):
    """Seconds of the clock and of the processor."""
    began, used = time.perf_counter(), processor_seconds()
    work()
    used = processor_seconds() - used
    return {"seconds": time.perf_counter() - began, "processor_seconds": used}


def processor_seconds():
    """Of this process and its workers, also of those that have ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    workers = [child.cpu_times() for child in psutil.Process().children(recursive=True)]
    times = [(one.user, one.system) for one in workers] + [(ended.ru_utime, ended.ru_stime)]
    return time.process_time() + sum(map(sum, times))


def limited(method, most, **options):
    """In a new process, which ends after `most` seconds of the processor: those of a method."""
    limit = int(most + time.process_time()) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    if method == "pyod":
        return pyod_fits(**options)
    if method == "gamgmm":
        import_module("pythresh.thresholds.gamgmm")
    return timed(lambda: METHODS[method](**options))


METHODS = {"ours": whole_fit, "gamgmm": gamgmm, "sklearn": sklearn_fits}


def options_of(folder, names):
    """The options of each method for the table and the scores in the folder."""
    rows, scores = str(Path(folder, "rows.npy")), str(Path(folder, "scores.npy"))
    classic = PRESETS["classic"] if names == "classic" else names
    return {
        "ours": {"rows": rows, "detectors": names, "scores": scores},
        "pyod": {"rows": rows, "names": classic},
        "gamgmm": {"scores": scores},
        "sklearn": {"scores": scores},
    }


class Growth:
    """The file of results and a folder for the table at hand."""

    def __init__(self, path, names, limit):
        self.path, self.names, self.limit = path, names, limit
        before = json.loads(path.read_text()) if path.exists() else {"limit": limit, "cases": []}
        # With a higher limit, what took too long is measured again.
        is_kept = limit <= before["limit"]
        cases = [case for case in before["cases"] if is_kept or "seconds" in case]
        self.found = {"cores": os.cpu_count(), "limit": limit, "cases": cases}

    def add(self, axis, n_rows, n_columns):
        """Measure each method on a table, if it is not in the file or known to take too long."""
        own = [case for case in self.found["cases"] if case["axis"] == axis]
        shape = {"axis": axis, "n_rows": n_rows, "n_columns": n_columns}
        done = {case["method"] for case in own if shape.items() <= case.items()}
        done |= {case["method"] for case in own if "seconds" not in case}
        with tempfile.TemporaryDirectory() as folder:
            options = options_of(folder, self.names)
            if done >= options.keys():
                return
            np.save(Path(folder, "rows.npy"), make_rows(n_rows, n_columns=n_columns))
            for method, own in options.items():
                # The scores that our fit finds are the input of the others.
                is_needed = method == "ours" and not done >= {"gamgmm", "sklearn"}
                if method not in done or is_needed:
                    answer = self._measured(method, own)
                    if method not in done:
                        self._keep(shape | {"method": method}, answer)

    def _measured(self, method, options):
        """The figures of a fit; None if it takes too long or needs more memory than there is."""
        try:
            return in_new_process(limited, method=method, most=self.limit, **options)
        except RuntimeError as error:
            print(error, flush=True)
            return None

    def _keep(self, case, answer):
        case |= {} if answer is None else answer
        self.found["cases"].append(case)
        text = json.dumps(rounded(self.found), indent=1)
        write_document(text + "\n", self.path, overwrite=True)
        print(case, flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--limit", type=float, default=LIMIT, help="default: 600")
    parser.add_argument("--quick", action="store_true", help="a trial on tiny tables")
    given = parser.parse_args()
    folder, tables = (TRIAL, TRIAL_TABLES) if given.quick else (RESULTS, TABLES)
    limit = 5.0 if given.quick else given.limit
    folder.mkdir(parents=True, exist_ok=True)
    names = ["KNN", "HBOS"] if given.quick else "classic"
    growth = Growth(folder / "growth.json", names, limit)
    with tempfile.TemporaryDirectory() as place:
        np.save(Path(place, "rows.npy"), make_rows(200 if given.quick else WARM_ROWS))
        in_new_process(whole_fit, **options_of(place, names)["ours"])  # compiles
    for table in tables:
        growth.add(*table)


if __name__ == "__main__":
    main()
