"""Processor time of `import gammagmm`, and of its public names after `import sklearn.mixture`.

    python benchmarks/imports.py

Each time is measured in new processes, for this version and for an earlier commit in turn. Writes
benchmarks/results/imports.json.
"""

from __future__ import annotations

import os
import subprocess
import sys

from timing import SOURCE, checked_out, measure

EARLIER = "06da2fb"
CODE = """
import time
start = time.process_time()
import gammagmm
alone = time.process_time()
import sklearn.mixture
theirs = time.process_time()
from gammagmm import GammaGMM, GammaPosterior, GammaThreshold, estimate_contamination
print(alone - start, theirs - alone, time.process_time() - theirs)
"""


def seconds(source):
    """Seconds for the package, for scikit-learn's mixtures, and for the names on top of them."""
    environment = os.environ | {"PYTHONPATH": str(source)}
    done = subprocess.run(
        [sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=True
    )
    return [float(word) for word in done.stdout.split()]


def imports(quick):
    """The shortest times over several processes."""
    n_times = 1 if quick else 15
    with checked_out(EARLIER) as earlier:
        seconds(earlier)  # which compiles its bytecode
        pairs = [(seconds(SOURCE), seconds(earlier)) for _ in range(n_times)]
    ours, before = (
        [min(column) for column in zip(*one, strict=True)] for one in zip(*pairs, strict=True)
    )
    return {
        "processes": n_times,
        "earlier": EARLIER,
        "gammagmm_seconds": ours[0],
        "earlier_gammagmm_seconds": before[0],
        "sklearn_mixture_seconds": ours[1],
        "gammagmm_on_top_seconds": ours[2],
        "earlier_on_top_seconds": before[2],
    }


if __name__ == "__main__":
    measure(__doc__, {"imports": imports})
