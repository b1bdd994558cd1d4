"""Where the anomalies of ordinary files rank, as the files stand and in their clean tables.

    python -m stress.office_ranks

Every file of tests/support/office_files.py is read without an option. Its rows are ranked by the
default detectors, and so are those of its clean table. The figures go to
stress/results/office_ranks.json: the rank correlation over the planted anomalies of all files, of
the rank that each has in its file (from 0 to 1), and the same between two seeds of the detectors,
which is what chance allows.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
from scipy.stats import rankdata, spearmanr
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


def ranks(table: Table, seed: int) -> np.ndarray:
    """The rank of each row by the default detectors, from 0 to 1."""
    plan = check_parameters(GammaGMM(random_state=seed).get_params(deep=False))
    fitted, _, _ = score_training_rows(table, plan)
    space, _ = score_space(fitted.scores)
    return rankdata(space.consensus) / len(space)


def main(arguments: list[str] | None = None) -> int:
    """Exit code: 1 where the correlation is below LEAST; the figures go to a file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="seed of the files")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    found: dict[str, list[list[float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for file in office_files(options.seed):
            rows = list(file.anomalies)
            clean = clean_table(file)
            own = [ranks(read_table(file, Path(folder)), 0), ranks(clean, 0), ranks(clean, 1)]
            found[file.name] = [rank[rows].tolist() for rank in own]
            print(file.name, figures({file.name: found[file.name]}), flush=True)
    summary = {"seed": options.seed, "n_files": len(found), **figures(found)}
    print(summary)
    options.results.parent.mkdir(parents=True, exist_ok=True)
    options.results.write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    return int(summary["rank_correlation"] < LEAST)


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
