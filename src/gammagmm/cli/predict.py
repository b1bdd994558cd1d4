"""``gammagmm predict``: the answers of a kept fit for new rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from gammagmm._support.files import write_document
from gammagmm._support.text import listed, one_line, percent
from gammagmm.cli.estimate import print_answer, warnings_as_lines, write_folder
from gammagmm.cli.fitting import Echo, tell
from gammagmm.cli.kept import kept_path, open_kept
from gammagmm.cli.large import cluster_of, open_files
from gammagmm.cli.options import Request
from gammagmm.cli.output import N_DECIMALS, aligned, rows_csv
from gammagmm.cli.request import check_predict, read_table
from gammagmm.cli.words import COMMAND
from gammagmm.errors import Note, TableError
from gammagmm.readers.raw_table import RawTable
from gammagmm.table.frames import frame_table
from gammagmm.table.preparation import Preparation
from gammagmm.table.table import Table

if TYPE_CHECKING:
    from gammagmm.estimator.fit_result import Fit, RowAnswers
    from gammagmm.estimator.reasons import UsualValues
    from gammagmm.estimator.saved_fit import LoadedFit

__all__ = ["Predicted", "answer_new_rows", "prepare_new_rows", "run_predict"]

MAX_LISTED = 10_000
"""Most flagged rows of files on Dask that are listed as JSON."""
N_SHOWN = 10
"""Most rows that are shown without --out."""


@dataclass(frozen=True, eq=False)
class Predicted:
    """New rows and what a fit says about them."""

    fit: Fit
    table: Table
    answers: RowAnswers
    usual: UsualValues
    counts: tuple[int, int] | None = None  # of all rows and the flagged ones, if these are a part

    def reasons(self, places: Sequence[int]) -> list[str]:
        """In which columns the rows at these places stand out, in words."""
        from gammagmm.estimator.reasons import flag_words, reason_words

        found = self.usual.reasons(self.table.values[places])
        is_flagged = self.answers.labels[places] == 1
        return [
            flag_words(reasons) if flagged else reason_words(reasons)
            for reasons, flagged in zip(found, is_flagged, strict=True)
        ]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.answers.labels) if self.counts is None else self.counts[0]

    @property
    def n_flagged(self) -> int:
        """Number of rows with the label 1."""
        return int(self.answers.labels.sum()) if self.counts is None else self.counts[1]


def run_predict(request: Request, echo: Echo) -> int:
    """Exit code of ``gammagmm predict``."""
    path = kept_path(cast("Path", request.kept))
    request = replace(request, kept=path)
    check_predict(request)
    loaded = open_kept(path)
    if request.engine.name == "dask":
        with cluster_of(request, echo):
            return _predict_large(loaded, request, echo)
    reading = request.reading
    raw = read_table(reading)
    table = prepare_new_rows(loaded.fit, raw, reading.id)
    table = replace(table, notes=(*request.running.notes, *table.notes))
    tell(table.notes, request, echo)
    with warnings_as_lines(echo):
        fit = loaded.checked()
        predicted = answer_new_rows(fit, table)
    labels, answer = request.outputs.out, request.answer
    print_answer(_as_json(predicted) if answer.as_json else _as_text(predicted, labels is None))
    if labels is not None:
        content = rows_csv(
            table.row_names,
            table.values,
            predicted.answers,
            predicted.usual,
            fit.detector_names,
            is_sorted=answer.is_sorted,
        )
        write_document(content, labels, request.running.force)
    return 0


def _predict_large(loaded: LoadedFit, request: Request, echo: Echo) -> int:
    """The same for Parquet files on Dask: all rows are counted, and the first ones are shown."""
    name, collection = open_files(request.reading)
    head = frame_table(collection.take(np.arange(0)), name)  # for the names of its columns
    first = prepare_new_rows(loaded.fit, head, request.reading.id, 0)
    preparation = first.preparation
    tell((*request.running.notes, *first.notes), request, echo)
    with warnings_as_lines(echo):
        from gammagmm.cli.large_parts import first_of_part, prepare_part

        fit = loaded.checked()
        as_json = request.answer.as_json
        n_listed = MAX_LISTED if as_json else N_SHOWN
        found = collection.gather(
            first_of_part, preparation, name, fit.answering, n_listed, as_json
        )
        n_rows, n_flagged = (sum(each) for each in list(zip(*found, strict=True))[:2])
        numbers = np.concatenate([each[2] for each in found])
        keys = np.concatenate([each[3] for each in found])
        fit.check_flagged(n_flagged, n_rows)
        order = np.lexsort((-keys[:, 1], -keys[:, 0]))[:n_listed]
        shown = np.sort(numbers[order])
        table = prepare_part(collection.take(shown), shown, preparation, name)
        table = replace(table, notes=first.notes)
        answers = fit.answering(table.values)
        predicted = Predicted(fit, table, answers, fit.usual_values(), (n_rows, n_flagged))
    labels, answer = request.outputs.out, request.answer
    print_answer(_as_json(predicted) if answer.as_json else _as_text(predicted, labels is None))
    if labels is not None:
        write_folder(labels, request, fit, collection, preparation)
    return 0


def prepare_new_rows(
    fit: Fit, raw: RawTable, id_column: str | None = None, n_least: int = 1
) -> Table:
    """The new rows as numbers, prepared as the training rows were; `id_column` names the rows.

    The columns of a fit of an array are found by their order, with a note.
    """
    preparation, said = fit.preparation, list[Note]()
    if id_column is not None:
        if id_column not in raw.columns:
            raise TableError(f"{raw.source} has no column {id_column!r}", "Check --id.")
        preparation = replace(preparation, id=id_column)
    if preparation.columns is None:
        preparation, note = _by_order(preparation, raw)
        said.append(note)
    table = preparation.apply(raw, COMMAND, n_least=n_least)
    return replace(table, notes=(*said, *table.notes))


def _by_order(preparation: Preparation, raw: RawTable) -> tuple[Preparation, Note]:
    """The preparation of an array for a file, with the names of the columns of the file."""
    given = [name for name in raw.columns if name != preparation.id]
    if len(given) != preparation.n_columns:
        raise TableError(
            f"{raw.source} has {len(given)} columns, and the training rows have "
            f"{preparation.n_columns}",
            "Give a file with the columns of the training rows; --id names a column to leave out.",
        )
    note = Note.of("tables.by order", raw.source, columns=listed(given))
    return preparation.renamed(given), note


def answer_new_rows(fit: Fit, table: Table) -> Predicted:
    """What a fit with its detectors says about new rows."""
    # The columns of a fit of an array have the names of the file.
    usual = replace(fit.usual_values(), names=table.columns)
    return Predicted(fit, table, fit.answers_new(table.values), usual)


def _as_text(predicted: Predicted, shows_rows: bool) -> str:
    """How many rows are flagged and, if asked for, the first rows with their reasons."""
    n_rows, n_flagged = predicted.n_rows, predicted.n_flagged
    fit, answers = predicted.fit, predicted.answers
    lines = [
        f"{n_flagged:,} of {n_rows:,} new rows are flagged ({percent(n_flagged / n_rows)}). Among "
        f"the training rows, {fit.n_flagged:,} of {fit.n_rows:,} are flagged "
        f"({percent(fit.n_flagged / fit.n_rows)})."
    ]
    if not shows_rows:
        return lines[0]
    names = predicted.table.row_names
    lines_of_rows = [["id", "score", "probability", "flagged", "reason"]]
    first = answers.order[:N_SHOWN].tolist()
    for i, reason in zip(first, predicted.reasons(first), strict=True):
        numbers = [f"{answers.scores[i]:.3g}", percent(float(answers.probability[i]))]
        flagged = "yes" if answers.labels[i] else "no"
        lines_of_rows.append([one_line(names[i]), *numbers, flagged, one_line(reason)])
    heading = f"The {len(lines_of_rows) - 1} most anomalous of them:" if n_rows > 1 else ""
    return "\n\n".join(filter(None, [*lines, heading])) + "\n" + aligned(lines_of_rows, n_words=5)


def _as_json(predicted: Predicted) -> str:
    """Counts, and a record for each flagged row, the most anomalous first."""
    table, answers, names = predicted.table, predicted.answers, predicted.table.row_names
    flagged = [i for i in answers.order.tolist() if answers.labels[i]]
    data = {
        "n_rows": predicted.n_rows,
        "n_flagged": predicted.n_flagged,
        "threshold": predicted.fit.threshold,
        "flagged": [
            {
                "row": table.row_number(i),
                "id": names[i],
                "score": float(answers.scores[i]),
                "probability": round(float(answers.probability[i]), N_DECIMALS),
                "reason": reason,
            }
            for i, reason in zip(flagged, predicted.reasons(flagged), strict=True)
        ],
        "notes": [note.to_data() for note in (*table.notes, *predicted.fit.notes)],
    }
    return json.dumps(data, indent=2, allow_nan=False)
