"""``gammagmm monitor``: count the new rows above the threshold, and keep a history."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.text import one_line, percent
from gammagmm.cli.estimate import ABOVE_LIMIT
from gammagmm.cli.kept import open_kept
from gammagmm.cli.new_rows import prepare_part, read_new_rows
from gammagmm.cli.options import Request
from gammagmm.cli.request import UsageError, check_monitor
from gammagmm.cli.sheet import label_of_cell
from gammagmm.cli.terminal import Echo, print_answer, tell, warnings_as_lines
from gammagmm.cli.training_rows import cluster_of
from gammagmm.errors import NoRowsError, Note
from gammagmm.monitoring.periods import period_names
from gammagmm.table.preparation import Preparation
from gammagmm.table.table import Table

if TYPE_CHECKING:
    from gammagmm.cli.monitor_output import Counted
    from gammagmm.estimator.fit_result import Fit
    from gammagmm.estimator.saved_fit import LoadedFit
    from gammagmm.monitoring.counts import ScoredRows
    from gammagmm.monitoring.history import History
    from gammagmm.monitoring.watched_row import WatchedRow

__all__ = ["FALLEN", "RAISED", "run_monitor"]

Array = NDArray[np.float64]

RAISED, FALLEN = 6, 7
"""Exit codes if the share of rows above the threshold has risen or fallen, and is not back."""
MAX_FLAGGED = 50
"""Most rows above the threshold in the report."""


@dataclass(frozen=True)
class NewRows:
    """The rows of a call."""

    scored: ScoredRows
    periods: list[str] | None  # "" for a row without a time
    groups: list[str] | None
    labels: Array | None  # 1, 0 or NaN
    rows: Array | None  # None where they are not in memory
    flagged: Sequence[WatchedRow]  # the first rows above the threshold
    notes: list[Note]


def run_monitor(request: Request, echo: Echo) -> int:
    """Exit code of ``gammagmm monitor``."""
    path = cast("Path", request.kept)
    monitoring = request.monitoring
    history_path = monitoring.history_path(path)
    check_monitor(request, history_path)
    before = _read_history(history_path)
    loaded = open_kept(path)
    if before is not None:
        before.check_fit(loaded.fit.digest, loaded.fit.training_count, monitoring.alpha)
    if not request.reading.paths:
        return _acknowledge(history_path, request)
    fit, new = _new_rows(loaded, request, echo)
    tell(new.notes, request, echo)
    name = monitoring.period or _file_names(request.reading.paths)
    names = {name} if new.periods is None else set(new.periods)
    seen: list[History | None] = []

    def add(earlier: History | None) -> History:
        seen.append(earlier)  # another process may have changed the file since it was checked
        if earlier is None and not names:
            raise UsageError(
                f"{name} has no rows with a time, and there is no history yet",
                "Name the period with --period instead.",
            )
        if monitoring.acknowledge and earlier is not None:
            earlier = earlier.acknowledge()
        return fit.monitor(
            new.scored,
            new.periods,
            new.groups,
            earlier,
            name=name,
            alpha=monitoring.alpha,
            replace=request.running.force,
            rows=new.rows,
            labels=new.labels,
        )

    from gammagmm.cli.monitor_output import Counted, monitor_json, monitor_text
    from gammagmm.monitoring.history import History

    with warnings_as_lines(echo):
        history = History.update_file(history_path, add)
    known = set() if seen[0] is None else {period.name for period in seen[0].periods}
    names |= {period.name for period in history.periods} - known  # with days without rows
    counted = Counted(seen[0], history, names)
    tell(counted.late, request, echo)
    if request.answer.as_json:
        notes = [*new.notes, *counted.late, *fit.notes, *counted.changes]
        print_answer(monitor_json(counted, notes))
    else:
        print_answer(monitor_text(counted, fit.notes))
    _draw(history, request, new.flagged)
    return _exit_code(counted, request.answer.fail_above, echo)


def _draw(history: History, request: Request, flagged: Sequence[WatchedRow] = ()) -> None:
    """Write the picture and the report, if they are asked for."""
    if request.outputs.picture is not None:
        from gammagmm.report.plots import save_picture

        save_picture(history.plot, request.outputs.picture, overwrite=True)
    if request.outputs.report is not None:
        history.report(request.outputs.report, flagged, overwrite=True)


def _new_rows(loaded: LoadedFit, request: Request, echo: Echo) -> tuple[Fit, NewRows]:
    """The new rows, scored. A file without rows has none of them, if it has the columns."""
    monitoring, by = request.monitoring, request.labelling.by
    asked = monitoring.time, by, monitoring.label_column
    wanted = [name for name in asked if name is not None]
    with cluster_of(request, echo):
        try:
            new = read_new_rows(loaded.fit, request, 0)
        except NoRowsError as error:
            return _no_rows(loaded, request, wanted, error, echo)
        with warnings_as_lines(echo):
            fit = loaded.checked()
            scored, cells = _score(fit, new, wanted)
    periods = None if monitoring.time is None else _periods(new, cells, request)
    labels = None
    if monitoring.label_column is not None:
        labels = _labels(cells[monitoring.label_column], monitoring.label_column)
    in_memory = new.collection is None
    flagged: Sequence[WatchedRow] = ()
    if in_memory and request.outputs.report is not None:
        flagged = _flagged(fit, new, scored.scores, periods, request)
    rows = NewRows(
        scored,
        periods,
        None if by is None else cells[by],
        labels,
        new.values if in_memory else None,
        flagged,
        list(new.notes),
    )
    return fit, _with_times(rows, request)


def _with_times(new: NewRows, request: Request) -> NewRows:
    """The rows without those that have no time, where one is asked for, and notes about these."""
    column, periods = request.monitoring.time, new.periods
    if column is None or periods is None:
        return new
    rows, notes = [row for row, name in enumerate(periods) if name], list(new.notes)
    if n_blank := len(periods) - len(rows):
        notes.append(Note.of("history.no time", column, n_blank=n_blank, n_rows=len(periods)))
    if not rows:
        notes.append(Note.of("history.no period", _file_names(request.reading.paths)))
    if not n_blank:
        return replace(new, notes=notes)
    return replace(
        new,
        scored=new.scored[rows],
        periods=[periods[row] for row in rows],
        groups=None if new.groups is None else [new.groups[row] for row in rows],
        labels=None if new.labels is None else new.labels[rows],
        rows=None if new.rows is None else new.rows[rows],
        notes=notes,
    )


def _no_rows(
    loaded: LoadedFit, request: Request, wanted: Sequence[str], error: NoRowsError, echo: Echo
) -> tuple[Fit, NewRows]:
    """No rows: a period without rows or, with --time, no period.

    Several files and a missing column, also of those that are `wanted`, are refused.
    """
    used = loaded.fit.preparation.used
    lacking = [name for name in (*used, *wanted) if name not in error.columns]
    if lacking or len(request.reading.paths) > 1:
        raise error
    with warnings_as_lines(echo):
        fit = loaded.checked()
    rows = np.empty((0, loaded.fit.preparation.n_outputs))
    groups = None if request.labelling.by is None else list[str]()
    periods = None if request.monitoring.time is None else list[str]()
    from gammagmm.monitoring.counts import ScoredRows

    nothing = ScoredRows(np.empty(0), np.empty(0))
    new = NewRows(nothing, periods, groups, None, rows, (), [])
    return fit, _with_times(new, request)


def _flagged(
    fit: Fit, new: Table, scores: Array, periods: list[str] | None, request: Request
) -> list[WatchedRow]:
    """The first rows above the threshold, with their reasons."""
    from gammagmm.estimator.reasons import flag_words
    from gammagmm.monitoring.watched_row import WatchedRow

    order = np.argsort(-scores, kind="stable")
    order = order[scores[order] > fit.threshold]
    name = request.monitoring.period or _file_names(request.reading.paths)
    named = ((row, name if periods is None else periods[row]) for row in order.tolist())
    first = [(row, period) for row, period in named if period][:MAX_FLAGGED]
    usual, names = fit.usual_values().renamed(new), new.row_names
    reasons = usual.reasons(new.values[[row for row, _ in first]])
    return [
        WatchedRow(names[row], period, float(scores[row]), flag_words(why))
        for (row, period), why in zip(first, reasons, strict=True)
    ]


def _labels(cells: Sequence[str], column: str) -> Array:
    """1, 0 or NaN for each cell of the column with labels."""
    found = [label_of_cell(cell, f"Column {column!r}") for cell in cells]
    return np.array([np.nan if label is None else label for label in found], dtype=np.float64)


def _periods(new: Table, cells: dict[str, list[str]], request: Request) -> list[str]:
    """The name of the period of each row, by ``--time`` and ``--every``."""
    column = cast("str", request.monitoring.time)
    lines = new.raw.lines if new.raw is not None else None
    places = None if lines is None else [lines[row] for row in new.all_places.tolist()]
    return period_names(cells[column], request.monitoring.every or "day", column, places)


def _read_history(path: Path) -> History | None:
    from gammagmm.monitoring.history import History

    return History.load(path) if path.exists() else None


def _file_names(paths: Sequence[str]) -> str:
    return ", ".join("standard input" if path == "-" else Path(path).name for path in paths)


def _score(fit: Fit, table: Table, names: Sequence[str]) -> tuple[ScoredRows, dict[str, list[str]]]:
    """The scores of all new rows, and their cells of the columns with `names`."""
    from gammagmm.monitoring.counts import ScoredRows

    score = fit.answering.scores_and_digests
    if table.collection is None:
        parts: Sequence[Any] = [score_rows(table, score, names)]
    else:
        for name in names:
            table.column(name)  # refuses an unknown name before the work
        shared = table.preparation, table.name, score, names
        parts = table.collection.gather(score_part, *shared)
    cells = {name: [cell for _, own in parts for cell in own[j]] for j, name in enumerate(names)}
    return ScoredRows.joined([scored for scored, _ in parts]), cells


def score_part(
    part: Any,
    first: int,
    preparation: Preparation,
    source: str,
    score: Callable[[Array], Array],
    names: Sequence[str],
) -> tuple[ScoredRows, list[list[str]]]:
    """The same of a part of files on Dask, whose first row has the number `first`."""
    return score_rows(prepare_part(part, first, preparation, source), score, names)


def score_rows(
    table: Table, score: Callable[[Array], Array], names: Sequence[str]
) -> tuple[ScoredRows, list[list[str]]]:
    """The same of the rows of a table, which may have none."""
    from gammagmm.monitoring.counts import ScoredRows

    cells = [table.column(name) for name in names]
    scores, digests = score(table.values).T if len(table) else np.empty((2, 0))
    return ScoredRows(scores, digests, table.n_gaps), cells


def _acknowledge(path: Path, request: Request) -> int:
    """Start the series of the history again after its newest period."""
    from gammagmm.cli.monitor_output import history_data
    from gammagmm.monitoring.history import History

    history = History.update_file(path, lambda found: cast("History", found).acknowledge())
    _draw(history, request)
    if request.answer.as_json:
        print_answer(json.dumps(history_data(history), indent=2, allow_nan=False))
    else:
        name = one_line(history.newest.name)
        print_answer(
            f"The series starts again after {name}: the next periods are compared with each other."
        )
    return 0


def _exit_code(counted: Counted, fail_above: float | None, echo: Echo) -> int:
    """Exit code by ``--fail-above`` and the state; messages say which."""
    if fail_above is not None and counted.newest.count.n_rows:
        low, high = counted.newest.count.interval()
        if low > fail_above:
            interval = f"the exact range (90%) {percent(low)} to {percent(high)}"
            echo(f"gammagmm: {interval} lies above --fail-above {fail_above:g}.")
            return ABOVE_LIMIT
    history = counted.history
    kinds = {state.kind for state in (history.state, *history.changed_groups().values())}
    return RAISED if "raised" in kinds else FALLEN if "fallen" in kinds else 0
