"""Whether ordinary files are read right, and where their anomalies rank.

    python -m stress.office_ranks

The files of tests/support/office_files.py for several seeds are read without an option, and
compared with their truth: how many are answered at the first try, and how many have a wrong value
in a column that is used, without a note. For one of the seeds, the rows of each file are ranked by
the default detectors, and so are those of its clean table. The figures go to
stress/results/office_ranks.json, with the rank correlation over the planted anomalies of all files,
of the rank that each has in its file (from 0 to 1), and the same between two seeds of the
detectors, which is what chance allows.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.stats import rankdata, spearmanr
from tests.support.office_faults import faults_of, is_quietly_wrong
from tests.support.office_files import OfficeFile, office_files

from gammagmm import GammaGMM
from gammagmm.cli.words import COMMAND
from gammagmm.estimator.parameters import check_parameters
from gammagmm.estimator.space import score_space, score_training_rows
from gammagmm.readers.registry import read_raw
from gammagmm.table.frames import frame_table
from gammagmm.table.preparation import Choices, prepare
from gammagmm.table.table import Table

RESULTS = Path(__file__).parent / "results" / "office_ranks.json"
CHOICES = Choices().with_strict(False)
LEAST = 0.98
SEEDS = (0, 1, 2)
"""Seeds of the files that are compared with their truth."""


def read_table(file: OfficeFile, folder: Path) -> Table:
    """The table of a file as the command prepares it without an option."""
    path = folder / file.name
    path.write_bytes(file.content)
    return prepare(read_raw(path), CHOICES, COMMAND)


def clean_table(file: OfficeFile) -> Table:
    """The same columns as true numbers and plain texts, without another row or code of a gap."""
    import pandas as pd

    cells = {}
    for column in file.columns:
        texts = [text or None for text in column.texts]
        cells[column.name] = column.values if column.kind == "number" else texts
    return prepare(frame_table(pd.DataFrame(cells)), CHOICES)


def readings(seeds: Sequence[int], folder: Path) -> dict[str, int]:
    """How many files are read, without a fault, and with a wrong value that is not told."""
    files = [file for seed in seeds for file in office_files(seed)]
    found = [faults_of(file, folder / file.name) for file in files]
    return {
        "n_files": len(files),
        "n_answered": sum(not faults for faults in found),
        "n_quietly_wrong": sum(map(is_quietly_wrong, found)),
    }


def ranks(table: Table, seed: int) -> np.ndarray:
    """The rank of each row by the default detectors, from 0 to 1."""
    plan = check_parameters(GammaGMM(random_state=seed).get_params(deep=False))
    fitted, _, _ = score_training_rows(table, plan)
    space, _ = score_space(fitted.scores)
    return rankdata(space.consensus) / len(space)


def main(arguments: list[str] | None = None) -> int:
    """Exit code: 1 for a wrong value, or a correlation below LEAST; the figures go to a file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="seed of the ranked files")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    found: dict[str, list[list[float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        read = readings(SEEDS, Path(folder))
        print(read, flush=True)
        for file in office_files(options.seed):
            rows = list(file.anomalies)
            clean = clean_table(file)
            own = [ranks(read_table(file, Path(folder)), 0), ranks(clean, 0), ranks(clean, 1)]
            found[file.name] = [rank[rows].tolist() for rank in own]
            print(file.name, figures({file.name: found[file.name]}), flush=True)
    ranked = {"n_files": len(found), **figures(found)}
    summary = {"read": {"seeds": SEEDS, **read}, "ranked": {"seed": options.seed, **ranked}}
    print(summary)
    options.results.parent.mkdir(parents=True, exist_ok=True)
    options.results.write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    is_wrong = read["n_quietly_wrong"] > 0 or ranked["rank_correlation"] < LEAST
    return int(is_wrong)


def figures(found: dict[str, list[list[float]]]) -> dict[str, float]:
    """Rank correlations over all anomalies, and the largest difference of the ranks in a file."""
    as_read, clean, again = (np.concatenate(own) for own in zip(*found.values(), strict=True))
    return {
        "n_anomalies": len(clean),
        "rank_correlation": round(float(spearmanr(as_read, clean).statistic), 4),
        "of_two_seeds": round(float(spearmanr(again, clean).statistic), 4),
        "mean_difference": round(float(np.abs(as_read - clean).mean()), 4),
        "mean_of_two_seeds": round(float(np.abs(again - clean).mean()), 4),
        "largest_difference": round(float(np.abs(as_read - clean).max()), 4),
    }


if __name__ == "__main__":
    sys.exit(main())
