"""Time that `from gammagmm import GammaGMM` adds to `import sklearn.mixture`, in new processes.

    python benchmarks/imports.py

Writes benchmarks/results/imports.json.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys

from timing import SOURCE, measure

CODE = """
import time
start = time.perf_counter()
import sklearn.mixture
middle = time.perf_counter()
from gammagmm import GammaGMM, GammaPosterior, GammaThreshold, estimate_contamination
print(middle - start, time.perf_counter() - middle)
"""


def seconds():
    """Seconds for scikit-learn's mixtures, and for this package on top of them."""
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    done = subprocess.run(
        [sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=True
    )
    return [float(word) for word in done.stdout.split()]


def imports(quick):
    """Medians over several processes."""
    n_times = 1 if quick else 7
    theirs, ours = zip(*(seconds() for _ in range(n_times)), strict=True)
    return {
        "processes": n_times,
        "sklearn_mixture_seconds": statistics.median(theirs),
        "gammagmm_on_top_seconds": statistics.median(ours),
        "gammagmm_on_top_longest_seconds": max(ours),
    }


if __name__ == "__main__":
    measure(__doc__, {"imports": imports})
