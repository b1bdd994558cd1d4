"""How far the answers move between two checkouts, on real score matrices.

    python benchmarks/answers.py BEFORE AFTER [--seeds 5] [--out benchmarks/results/answers.json]

Each checkout fits ``GammaGMM("precomputed")`` with its defaults to the score matrices in the folder
scores of GAMMAGMM_DATA, by several seeds, in a process of its own with its src in PYTHONPATH. The
table has the mean absolute error of the posterior means, CRPS and coverage of the 90 % interval,
each an average over sets and seeds; the mean change of the posterior mean, its mean absolute
change, and the standard deviation of the means over the seeds.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
GRID = np.linspace(0.0, 1.0, 4001)


def answers(n_seeds: int) -> dict[str, list[dict[str, float]]]:
    """What this process's gammagmm says of each score matrix, by seed."""
    from gammagmm import GammaGMM

    warnings.simplefilter("ignore")
    found = {}
    for path in sorted(Path(os.environ["GAMMAGMM_DATA"], "scores").glob("*.npz")):
        with np.load(path) as data:
            S, truth = data["S"], float(data["y"].mean())
        found[path.stem] = []
        for seed in range(n_seeds):
            posterior = GammaGMM("precomputed", random_state=seed).fit(S).posterior_
            low, high = posterior.interval(0.9)
            crps = np.trapezoid((posterior.cdf(GRID) - (truth <= GRID)) ** 2, GRID)
            found[path.stem].append(
                {
                    "mean": posterior.mean,
                    "truth": truth,
                    "crps": float(crps),
                    "holds": float(low <= truth <= high),
                }
            )
        print(path.stem, [round(one["mean"], 4) for one in found[path.stem]], file=sys.stderr)
    return found


def summarise(found: dict[str, list[dict[str, float]]]) -> dict[str, float]:
    """Averages over sets and seeds."""
    ones = [one for own in found.values() for one in own]
    spreads = [np.std([one["mean"] for one in own], ddof=1) for own in found.values()]
    return {
        "MAE": float(np.mean([abs(one["mean"] - one["truth"]) for one in ones])),
        "CRPS": float(np.mean([one["crps"] for one in ones])),
        "coverage": float(np.mean([one["holds"] for one in ones])),
        "spread of seeds": float(np.sqrt(np.mean(np.square(spreads)))),
    }


def changes(before: dict[str, Any], after: dict[str, Any]) -> dict[str, float]:
    """Change of the posterior means, each the average over the seeds of a set."""
    mean = {
        key: np.array([np.mean([one["mean"] for one in own]) for own in found.values()])
        for key, found in (("before", before), ("after", after))
    }
    change = mean["after"] - mean["before"]
    return {"mean change": float(change.mean()), "absolute": float(np.abs(change).mean())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("checkouts", nargs="*", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if not options.checkouts:
        json.dump(answers(options.seeds), sys.stdout)
        return
    found = []
    for checkout in options.checkouts:
        command = [sys.executable, str(Path(__file__)), "--seeds", str(options.seeds)]
        env = os.environ | {"PYTHONPATH": str(checkout.resolve() / "src")}
        done = subprocess.run(command, env=env, stdout=subprocess.PIPE, check=True)
        found.append(json.loads(done.stdout))
    before, after = found
    figures = {
        "before": summarise(before),
        "after": summarise(after),
        "change": changes(before, after),
        "sets": len(before),
        "seeds": options.seeds,
    }
    print(json.dumps(figures, indent=1))
    if options.out:
        options.out.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
