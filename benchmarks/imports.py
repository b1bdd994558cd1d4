"""Time that `from gammagmm import GammaGMM` adds to `import sklearn.mixture`, in new processes.

    python benchmarks/imports.py

Writes benchmarks/results/imports.json.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from pathlib import Path

OUT = Path(__file__).parent / "results" / "imports.json"
N_TIMES = 15
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
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    return [float(word) for word in done.stdout.split()]


def main():
    times = list(zip(*(seconds() for _ in range(N_TIMES)), strict=True))
    found = {
        "processes": N_TIMES,
        "sklearn_mixture_median_s": round(statistics.median(times[0]), 3),
        "gammagmm_on_top_median_s": round(statistics.median(times[1]), 3),
        "gammagmm_on_top_longest_s": round(max(times[1]), 3),
    }
    OUT.write_text(json.dumps(found, indent=1) + "\n")
    print(found)


if __name__ == "__main__":
    main()
