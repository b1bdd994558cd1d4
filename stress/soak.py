"""Many fits in one process: the memory that it holds after the first fits and after the last.

python -m stress.soak
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from tests.support.repeated_fits import fit_repeatedly

RESULTS = Path(__file__).parent / "results" / "soak.json"
N_FITS, N_WARM_UP = 300, 30
MAX_GROWTH = 0.05


def main(arguments: list[str] | None = None) -> int:
    """Exit code: 1 where memory grew by more than MAX_GROWTH; the figures go to a file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fits", type=int, default=N_FITS)
    parser.add_argument("--warm-up", type=int, default=N_WARM_UP)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    found = fit_repeatedly(options.fits, options.warm_up)
    options.results.parent.mkdir(parents=True, exist_ok=True)
    options.results.write_text(json.dumps(found) + "\n", encoding="utf-8")
    print(json.dumps(found))
    return int(found["growth"] > MAX_GROWTH)


if __name__ == "__main__":
    sys.exit(main())
