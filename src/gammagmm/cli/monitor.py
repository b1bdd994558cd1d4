"""``gammagmm monitor``: count the new rows beyond the cut of a kept fit, and keep a history."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
from gammagmm.cli.request import check_monitor
from gammagmm.cli.terminal import Echo, print_answer, tell, warnings_as_lines
from gammagmm.cli.training_rows import cluster_of
from gammagmm.errors import Note
from gammagmm.monitoring.periods import order_notes, period_names
from gammagmm.table.preparation import Preparation
from gammagmm.table.table import Table

if TYPE_CHECKING:
    from gammagmm.estimator.fit_result import Fit
    from gammagmm.monitoring.alarms import Ring
    from gammagmm.monitoring.counts import Count, Period
    from gammagmm.monitoring.history import History

__all__ = ["ALARM", "run_monitor"]

Array = NDArray[np.float64]

ALARM = 6
"""Exit code if the share of rows beyond the cut has risen."""
MAX_PERIODS = 14
"""Most periods in the text."""
METHOD = (
    "Fisher's exact test of the newest 1, 2, 4 and 8 periods against all rows before them; the "
    "levels of all tests of the series add up to alpha; with groups, they share half of the level "
    "of a period equally (Bonferroni); that the rate of false alarms is at most alpha holds for "
    "independent rows: it is proved for the tests of groups, and measured for those of all rows, "
    "which include the training rows"
)
START_AGAIN = "Start a new history: the periods before were counted by other scores."
NOT_ANOMALIES = (
    "A row beyond the cut is unusual, which does not make it an anomaly. To know the share of "
    "anomalies, label rows with `gammagmm label`."
)


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
        """The last of the counted periods."""
        return [period for period in self.history.periods if period.name in self.names][-1]

    @property
    def alarms(self) -> list[dict[str, Any]]:
        """The tests that ring in the counted periods, and those that did not ring before the call.

        The second kind occurs if a period was replaced. The group "" means all rows.
        """
        rung_before = set() if self.before is None else {place for place, _ in _rings(self.before)}
        return [
            {
                "period": period,
                "group": group,
                "window": ring.window,
                "p_value": ring.p_value,
                "level": ring.level,
            }
            for (period, group), ring in _rings(self.history)
            if period in self.names or (period, group) not in rung_before
        ]

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


def _rings(history: History) -> list[tuple[tuple[str, str], Ring]]:
    """The tests that ring, each with its period and its group, in the order of the periods."""
    rung = {"": history.rings} | history.group_rings
    return [
        ((period.name, group), ring)
        for t, period in enumerate(history.periods)
        for group, rings in rung.items()
        if (ring := rings[t]) is not None
    ]


def _beyond(count: Count) -> str:
    return f"{count.n_beyond:,} of {count.n_rows:,} rows beyond the cut"


def run_monitor(request: Request, echo: Echo) -> int:
    """Exit code of ``gammagmm monitor``."""
    path, by = cast("Path", request.kept), request.labelling.by
    monitoring = request.monitoring
    history_path = monitoring.history_path(path)
    check_monitor(request, history_path)
    before = _read_history(history_path)
    loaded = open_kept(path)
    if before is not None:
        before.check_fit(loaded.fit.digest, loaded.fit.training_count, monitoring.alpha)
    with cluster_of(request, echo):
        new = read_new_rows(loaded.fit, request)
        wanted = [name for name in (monitoring.time, by) if name is not None]
        with warnings_as_lines(echo):
            fit = loaded.checked()
            found, cells = _score(fit, new, wanted)
    name = monitoring.period or _file_names(request.reading.paths)
    periods = None
    if monitoring.time is not None:
        every = monitoring.every or "day"
        lines = new.raw.lines if new.raw is not None else None
        places = None if lines is None else [lines[row] for row in new.all_places.tolist()]
        periods = period_names(cells[monitoring.time], every, monitoring.time, places)
    groups = None if by is None else cells[by]
    notes = list(new.notes)
    tell(notes, request, echo)
    seen: list[History | None] = []

    def add(earlier: History | None) -> History:
        seen.append(earlier)  # another process may have changed the file since it was checked
        return fit.monitor(
            found,
            periods,
            groups,
            earlier,
            name=name,
            alpha=monitoring.alpha,
            replace=request.running.force,
        )

    from gammagmm.monitoring.history import History

    with warnings_as_lines(echo):
        history = History.update_file(history_path, add)
    before = seen[0]
    if before is not None and periods is not None:
        late = order_notes([period.name for period in before.periods], periods)
        notes += late
        tell(late, request, echo)
    counted = Counted(before, history, {name} if periods is None else set(periods))
    if request.answer.as_json:
        print_answer(_as_json(counted, [*notes, *fit.notes, *counted.changes]))
    else:
        print_answer(_as_text(counted, fit.notes))
    if request.outputs.picture is not None:
        from gammagmm.report.plots import save_picture

        save_picture(history.plot, request.outputs.picture, overwrite=True)
    return _exit_code(counted, request.answer.fail_above, echo)


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


def _as_text(counted: Counted, fit_notes: Sequence[Note]) -> str:
    """The new periods as a table, the groups of the newest one, what has changed, and alarms."""
    history, new, newest = counted.history, counted.names, counted.newest
    records = history.to_records()
    of_all = [line for line in records if line["period"] in new and not line["group"]]
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
    table = [[first, "rows", "beyond the cut", "share", "90% interval", ""]]
    for line in records:
        counts = [f"{line['n_rows']:,}", f"{line['n_beyond']:,}"]
        interval = f"{percent(line['low'])} to {percent(line['high'])}"
        alarm = "alarm" if line["alarm"] else ""
        table.append([one_line(line[first]), *counts, percent(line["share"]), interval, alarm])
    return table


def _sentences(counted: Counted) -> list[str]:
    history, newest = counted.history, counted.newest
    reference = history.reference
    low, high = (percent(end) for end in newest.count.interval())
    n_beyond, n_rows = newest.count.n_beyond, newest.count.n_rows
    lines = [
        f"In {one_line(newest.name)}, {n_beyond:,} of {n_rows:,} rows lie beyond the cut "
        f"({percent(newest.count.share)}, 90% interval {low} to {high}). Of the "
        f"training rows, {reference.n_beyond:,} of {reference.n_rows:,} do "
        f"({percent(reference.share)})."
    ]
    alarms = counted.alarms
    for alarm in alarms:
        where = one_line(alarm["period"])
        where += f", group {one_line(alarm['group'])!r}" if alarm["group"] else ""
        window = f"in the {alarm['window']} periods up to this one " * (alarm["window"] > 1)
        lines.append(
            f"Alarm in {where}: the share of rows beyond the cut {window}is higher than before "
            f"(p = {alarm['p_value']:.1g})."
        )
    if not alarms:
        lines.append("No alarm: the new rows do not show that the share has risen.")
    divided = " It covers all rows and every group (Bonferroni)." if newest.groups else ""
    lines.append(
        "If the rows are independent and nothing changes, the probability of an alarm in the whole "
        f"series is at most {percent(history.alpha)} (measured for the comparison with the "
        f"training rows).{divided}"
    )
    return [*lines, NOT_ANOMALIES]


def _as_json(counted: Counted, notes: Sequence[Note]) -> str:
    history, alarms = counted.history, counted.alarms
    reference = history.reference
    data = {
        "reference": {
            "n_rows": reference.n_rows,
            "n_beyond": reference.n_beyond,
            "share": reference.share,
            "interval_90": list(reference.interval()),
        },
        "periods": [line for line in history.to_records() if line["period"] in counted.names],
        "n_periods": len(history.periods),
        "alpha": history.alpha,
        "method": METHOD,
        "is_alarm": bool(alarms),
        "alarms": alarms,
        "notes": [note.to_data() for note in notes],
    }
    return json.dumps(data, indent=2, allow_nan=False)


def _exit_code(counted: Counted, fail_above: float | None, echo: Echo) -> int:
    """Exit code by ``--fail-above`` and the alarms; messages say which."""
    low, high = counted.newest.count.interval()
    if fail_above is not None and low > fail_above:
        interval = f"the 90% interval {percent(low)} to {percent(high)}"
        echo(f"gammagmm: {interval} lies above --fail-above {fail_above:g}.")
        return ABOVE_LIMIT
    return ALARM if counted.alarms else 0
