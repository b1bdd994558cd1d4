"""``gammagmm monitor``: count the new rows above the threshold, and keep a history."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.text import aligned, listed, one_line, percent
from gammagmm.cli.estimate import ABOVE_LIMIT
from gammagmm.cli.kept import open_kept
from gammagmm.cli.new_rows import prepare_part, read_new_rows
from gammagmm.cli.options import Request
from gammagmm.cli.output import MAX_GROUPS
from gammagmm.cli.request import UsageError, check_monitor
from gammagmm.cli.sheet import label_of_cell
from gammagmm.cli.terminal import Echo, print_answer, tell, warnings_as_lines
from gammagmm.cli.training_rows import cluster_of
from gammagmm.errors import NoRowsError, Note
from gammagmm.monitoring.periods import order_notes, period_names
from gammagmm.table.preparation import Preparation
from gammagmm.table.table import Table

if TYPE_CHECKING:
    from gammagmm.estimator.fit_result import Fit
    from gammagmm.estimator.saved_fit import LoadedFit
    from gammagmm.monitoring.counts import Count, Period
    from gammagmm.monitoring.history import History, WatchedRow
    from gammagmm.monitoring.states import State

__all__ = ["FALLEN", "RAISED", "run_monitor"]

Array = NDArray[np.float64]

RAISED, FALLEN = 6, 7
"""Exit codes if the share of rows above the threshold has risen or fallen, and is not back."""
MAX_FLAGGED = 50
"""Most rows above the threshold in the report."""
MAX_PERIODS = 14
"""Most periods in the text."""
METHOD = (
    "the newest 1, 3 and 8 periods are compared with the quiet periods before them, by Fisher's "
    "exact test and by a Beta-binomial test with the variation between quiet periods; both must "
    "show the change; with groups, they share half of the level of a period equally (Bonferroni); "
    "that 100 periods have a false alarm with a probability of at most alpha is proved for "
    "independent rows, except for the comparison with training rows in the first 30 periods; for "
    "periods whose shares differ, the measured probability is about alpha if two rows of a period "
    "have a correlation of at most 0.005, and higher if it is larger"
)
START_AGAIN = "Start a new history: the periods before were counted by other scores."


@dataclass(frozen=True)
class Counted:
    """What a call has counted.

    Attributes
    ----------
    before : History or None
        The history before the call; None if there was none.
    history : History
        The history with the counted periods.
    names : set of str
        Names of the counted periods.
    """

    before: History | None
    history: History
    names: set[str]

    @property
    def newest(self) -> Period:
        """The last of the counted periods, or of all if none was counted."""
        own = [period for period in self.history.periods if period.name in self.names]
        return (own or self.history.periods)[-1]

    @property
    def late(self) -> list[Note]:
        """Notes about counted periods that are earlier than those before, or of another length."""
        known = () if self.before is None else self.before.periods
        return order_notes([period.name for period in known], self.names)

    @property
    def changes(self) -> list[Note]:
        """The periods of the history before the call that were replaced or dropped."""
        now = {period.name: period for period in self.history.periods}
        notes = []
        for was in () if self.before is None else self.before.periods:
            what, own = "", now.get(was.name)
            if own is None:
                what = "dropped"
            elif was.name in self.names:
                what = "replaced"
            subject, groups = f"Period {was.name}", ""
            if own is not None and (lost := sorted(was.groups.keys() - own.groups.keys())):
                reason = "" if own.groups else ", because --by is missing"
                own_note = Note.of("history.groups", subject, reason=reason, groups=listed(lost))
                groups = f" {own_note.message}"
                notes += [] if what else [own_note]
            if what:
                had = {"what": what, "had": _beyond(was.count), "groups": groups}
                notes.append(Note.of("history.period", subject, **had))
        return notes


def _beyond(count: Count) -> str:
    return f"{count.n_beyond:,} of {count.n_rows:,} rows above the threshold"


@dataclass(frozen=True)
class NewRows:
    """The rows of a call."""

    found: Array  # (n, 2) scores and digests
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
            new.found,
            new.periods,
            new.groups,
            earlier,
            name=name,
            alpha=monitoring.alpha,
            replace=request.running.force,
            rows=new.rows,
            labels=new.labels,
        )

    from gammagmm.monitoring.history import History

    with warnings_as_lines(echo):
        history = History.update_file(history_path, add)
    counted = Counted(seen[0], history, names)
    tell(counted.late, request, echo)
    if request.answer.as_json:
        notes = [*new.notes, *counted.late, *fit.notes, *counted.changes]
        print_answer(_as_json(counted, notes))
    else:
        print_answer(_as_text(counted, fit.notes))
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
            found, cells = _score(fit, new, wanted)
    periods = None if monitoring.time is None else _periods(new, cells, request)
    labels = None
    if monitoring.label_column is not None:
        labels = _labels(cells[monitoring.label_column], monitoring.label_column)
    in_memory = new.collection is None
    flagged: Sequence[WatchedRow] = ()
    if in_memory and request.outputs.report is not None:
        flagged = _flagged(fit, new, found[:, 0], periods, request)
    rows = NewRows(
        found,
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
        found=new.found[rows],
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
    new = NewRows(np.empty((0, 2)), periods, groups, None, rows, (), [])
    return fit, _with_times(new, request)


def _flagged(
    fit: Fit, new: Table, scores: Array, periods: list[str] | None, request: Request
) -> list[WatchedRow]:
    """The first rows above the threshold, with their reasons."""
    from gammagmm.estimator.reasons import flag_words
    from gammagmm.monitoring.history import WatchedRow

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


def _score(fit: Fit, table: Table, names: Sequence[str]) -> tuple[Array, dict[str, list[str]]]:
    """Scores and digests (n, 2) of all new rows, and their cells of the columns with `names`."""
    score = fit.answering.scores_and_digests
    if table.collection is None:
        parts: Sequence[Any] = [score_rows(table, score, names)]
    else:
        for name in names:
            table.column(name)  # refuses an unknown name before the work
        shared = table.preparation, table.name, score, names
        parts = table.collection.gather(score_part, *shared)
    cells = {name: [cell for _, own in parts for cell in own[j]] for j, name in enumerate(names)}
    return np.concatenate([found for found, _ in parts]), cells


def score_part(
    part: Any,
    first: int,
    preparation: Preparation,
    source: str,
    score: Callable[[Array], Array],
    names: Sequence[str],
) -> tuple[Array, list[list[str]]]:
    """The same of a part of files on Dask, whose first row has the number `first`."""
    return score_rows(prepare_part(part, first, preparation, source), score, names)


def score_rows(
    table: Table, score: Callable[[Array], Array], names: Sequence[str]
) -> tuple[Array, list[list[str]]]:
    """The same of the rows of a table, which may have none."""
    cells = [table.column(name) for name in names]
    return score(table.values) if len(table) else np.empty((0, 2)), cells


def _acknowledge(path: Path, request: Request) -> int:
    """Start the series of the history again after its newest period."""
    from gammagmm.monitoring.history import History

    history = History.update_file(path, lambda found: cast("History", found).acknowledge())
    _draw(history, request)
    if request.answer.as_json:
        print_answer(json.dumps(_common(history), indent=2, allow_nan=False))
    else:
        name = one_line(history.newest.name)
        print_answer(
            f"The series starts again after {name}: the next periods are compared with each other."
        )
    return 0


def _as_text(counted: Counted, fit_notes: Sequence[Note]) -> str:
    """The new periods as a table, the groups of the newest one, what changed, and the state."""
    history, new, newest = counted.history, counted.names, counted.newest
    records, own = history.to_records(), new or {newest.name}
    of_all = [line for line in records if line["period"] in own and not line["group"]]
    tables = [aligned(_table("period", of_all[-MAX_PERIODS:]), n_words=1)]
    if len(of_all) > MAX_PERIODS:
        tables[0] += f"\nThese are the newest {MAX_PERIODS} of {len(of_all):,} periods."
    of_groups = [r for r in records if r["period"] == newest.name and r["group"] in newest.groups]
    if newest.groups:
        largest = sorted(of_groups, key=lambda line: -line["n_rows"])[:MAX_GROUPS]
        table = aligned(_table("group", largest), n_words=1)
        tables.append(f"Groups in {one_line(newest.name)}:\n{table}")
        if len(of_groups) > MAX_GROUPS:
            tables[-1] += f"\nThese are the {MAX_GROUPS} largest of {len(of_groups):,} groups."
            tables[-1] += " --json prints all."
    changes = [f"{one_line(note.subject)} {one_line(note.message)}" for note in counted.changes]
    changed_detectors = [
        f"Detector {one_line(note.subject)} {one_line(note.message)}. {START_AGAIN}"
        for note in fit_notes
        if note.step == "load"
    ]
    lines = [*changes, *changed_detectors]
    return "\n\n".join([*tables, "\n".join([*lines, *_sentences(counted)])])


def _table(first: str, records: Sequence[dict[str, Any]]) -> list[list[str]]:
    """Head and lines of a table; its first column is the period or the group."""
    table = [[first, "rows", "above the threshold", "share", "exact range (90%)", "state"]]
    for line in records:
        counts = [f"{line['n_rows']:,}", f"{line['n_beyond']:,}"]
        share = percent(line["share"]) if line["n_rows"] else ""
        interval = f"{percent(line['low'])} to {percent(line['high'])}" if line["n_rows"] else ""
        table.append([one_line(line[first]), *counts, share, interval, line["state"]])
    return table


def _sentences(counted: Counted) -> list[str]:
    """What the answer says below the tables."""
    from gammagmm.monitoring.sentences import (
        NOT_ANOMALIES,
        column_words,
        next_sentence,
        promise_sentence,
        state_sentence,
    )

    history, newest = counted.history, counted.newest
    reference = history.reference
    n_beyond, n_rows = newest.count.n_beyond, newest.count.n_rows
    if n_rows:
        low, high = (percent(end) for end in newest.count.interval())
        lines = [
            f"In {one_line(newest.name)}, {n_beyond:,} of {n_rows:,} rows lie above the threshold "
            f"({percent(newest.count.share)}, exact range (90%) {low} to {high}). Of the "
            f"training rows, {reference.n_beyond:,} of {reference.n_rows:,} do "
            f"({percent(reference.share)})."
        ]
    else:
        lines = [f"{one_line(newest.name)} has no rows."]
    groups = [
        f"Group {one_line(name)!r}: {history.state_words(state)}."
        for name, state in history.changed_groups().items()
    ]
    divided = " It covers all rows and every group (Bonferroni)." if newest.groups else ""
    lines += [
        state_sentence(history),
        column_words(history),
        *groups,
        next_sentence(history),
        f"{promise_sentence(history)}{divided}",
        NOT_ANOMALIES,
    ]
    return [line for line in lines if line]


def _common(history: History) -> dict[str, Any]:
    """What every answer says of the history, for JSON."""
    reference = history.reference
    return {
        "reference": {
            "n_rows": reference.n_rows,
            "n_beyond": reference.n_beyond,
            "share": reference.share,
            "exact_range_90": list(reference.interval()),
        },
        "n_periods": len(history.periods),
        "alpha": history.alpha,
        "method": METHOD,
        "state": _state_data(history, history.state),
        "columns": [
            {
                "name": column.name,
                "distance": column.distance,
                "deviations": column.deviations,
                "p_value": column.p_value,
                "is_higher": column.is_higher,
            }
            for column in history.moved_columns
        ],
        "labels": [asdict(share) for share in history.label_shares],
        "groups": {
            name: _state_data(history, state) for name, state in history.changed_groups().items()
        },
    }


def _state_data(history: History, state: State) -> dict[str, Any]:
    names = [period.name for period in history.periods]
    change = state.change
    return {
        "kind": state.kind,
        "is_alarm": state.is_alarm,
        "since": names[state.since] if state.since < len(names) else None,
        "changed": None if state.changed is None else names[state.changed],
        "n_quiet": state.n_quiet,
        "n_learning": state.n_learning,
        "window": change and change.window,
        "p_value": change and change.p_value,
        "level": change and change.level,
        "share_before": change and change.base.share,
    }


def _as_json(counted: Counted, notes: Sequence[Note]) -> str:
    history = counted.history
    records = [line for line in history.to_records() if line["period"] in counted.names]
    data = _common(history) | {
        "periods": [
            {name: None if value != value else value for name, value in line.items()}
            for line in records
        ],
        "notes": [note.to_data() for note in notes],
    }
    return json.dumps(data, indent=2, allow_nan=False)


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
