"""The periods that were counted -> a state, a table, and a file that grows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from gammagmm._support.checks import check_probability
from gammagmm._support.documents import (
    MAX_DOCUMENT_BYTES,
    Form,
    Reader,
    read_document,
    record_to_data,
    to_text,
)
from gammagmm._support.files import clear_parts, locked, write_document
from gammagmm._support.text import counted, listed, one_line, percent
from gammagmm.errors import HistoryError, MissingExtraError
from gammagmm.monitoring.alarms import PER_PERIODS, Series
from gammagmm.monitoring.columns import LEVEL, MovedColumn, moved_columns
from gammagmm.monitoring.counts import Count, Period, check_rows
from gammagmm.monitoring.label_shares import LabelShare, label_shares
from gammagmm.monitoring.parts import Parts
from gammagmm.monitoring.periods import weekdays_of
from gammagmm.monitoring.sentences import state_words
from gammagmm.monitoring.states import State, find_states
from gammagmm.monitoring.variation import Sums, usual_for, usual_range
from gammagmm.monitoring.watched_row import WatchedRow

__all__ = ["ALPHA", "History"]

FORM = Form("gammagmm/history", 5, "history", "Start a new history with --history.")
ALPHA = 0.05
"""Probability of a false alarm in 100 periods, unless another one is chosen."""


@dataclass(frozen=True, repr=False)
class History:
    """The rows above the threshold of one fit, period by period, with a state.

    `GammaGMM.monitor` makes a history and adds rows to it. The state says whether the share of rows
    above the threshold has risen or fallen, since when, and whether it is back. Without a change,
    100 periods have an alarm with a probability of at most `alpha` if all rows are independent;
    this is proved after the first 30 periods. It is about `alpha` if two rows of a period have a
    correlation of at most 0.005, as measured, and higher if periods vary more. The first 30 quiet
    periods of a series are those from which their level and their variation are learned. A history
    is a frozen value: adding rows gives a new one.

    The page "Monitoring new rows" of the documentation shows it in use.

    Attributes
    ----------
    fit : str
        Digest of the fit, whose cut all periods have in common.
    reference : Count
        The training rows above the threshold.
    alpha : float, default=0.05
        Probability of a false alarm in 100 periods.
    periods : tuple of Period, default=()
        The periods, in the order in which they were added.
    acknowledged : tuple of str, default=()
        Names of the periods after which the series starts again, see `acknowledge`.
    columns : dict of Parts, default={}
        The training rows in each part of each column, by which `moved_columns` compares them.

    Examples
    --------
    >>> from gammagmm import GammaGMM
    >>> from gammagmm.datasets import make_contaminated
    >>> X = make_contaminated(800, 2, 0.05, "global", random_state=0).X
    >>> estimator = GammaGMM(["HBOS", "KNN"], n_runs=1, random_state=0).fit(X[:400])
    >>> history = estimator.monitor(X[400:600], name="monday")
    >>> estimator.monitor(1.5 * X[600:], name="tuesday", history=history)
    History(2 periods; tuesday: 118 of 200 rows above the threshold, 59.0%; raised since tuesday)
    """

    fit: str
    reference: Count
    alpha: float = ALPHA
    periods: tuple[Period, ...] = ()
    acknowledged: tuple[str, ...] = ()
    columns: dict[str, Parts] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_probability("alpha", self.alpha)
        names = [period.name for period in self.periods]
        if len(set(names)) < len(names):
            raise ValueError("two periods have the same name")
        if self.acknowledged != tuple(name for name in names if name in self.acknowledged):
            raise ValueError("the acknowledged periods are not among the periods, or not in order")
        for own in (period.columns for period in self.periods if period.columns):
            if {name: len(counts) for name, counts in own.items()} != {
                name: len(parts.counts) for name, parts in self.columns.items()
            }:
                raise ValueError("a period has other columns, or other parts of them")
        check_rows(self.reference.n_rows + sum(period.count.n_rows for period in self.periods))

    @property
    def newest(self) -> Period:
        """The last period."""
        if not self.periods:
            raise HistoryError("The history has no period yet", "Add rows with monitor.")
        return self.periods[-1]

    @cached_property
    def states(self) -> list[State]:
        """The state after each period, for all rows."""
        counts = [period.count for period in self.periods]
        return find_states(counts, self.reference, self._levels, self.starts, self._weekdays)

    @cached_property
    def group_states(self) -> dict[str, list[State]]:
        """The same for the rows of each group, by the name of the group.

        A group is compared with its own earlier periods, because the training rows have no groups.
        The groups with rows in a period share half of its level equally.
        """
        names = sorted({name for period in self.periods for name in period.groups})
        levels = self._levels / [max(len(period.groups), 1) for period in self.periods]
        nothing = Count(0, 0)
        return {
            name: find_states(
                [period.groups.get(name, nothing) for period in self.periods],
                nothing,
                levels,
                self.starts,
                self._weekdays,
            )
            for name in names
        }

    @property
    def state(self) -> State:
        """The state after the newest period, for all rows."""
        return State("learning", len(self.periods), 0) if self._is_new else self.states[-1]

    @property
    def _is_new(self) -> bool:
        """Whether the series starts again with the next period."""
        return self.newest.name in self.acknowledged[-1:]

    @cached_property
    def _weekdays(self) -> list[int] | None:
        """The weekday of each period, from 0 for Monday; None if the periods are not days."""
        return weekdays_of(period.name for period in self.periods)

    def changed_groups(self, t: int = -1) -> dict[str, State]:
        """The groups whose share has changed and is not back, with their states.

        Parameters
        ----------
        t : int, default=-1
            Place of a period; -1 is the newest one.

        Returns
        -------
        dict of State
            The states after this period, by the names of the groups.
        """
        if t == -1 and self._is_new:
            return {}
        return {name: own[t] for name, own in self.group_states.items() if own[t].is_alarm}

    @cached_property
    def all_columns(self) -> list[MovedColumn]:
        """Every column, with its distance between the quiet periods and those of a change.

        The column with the most deviations is the first one. The list is empty if all rows
        together show no change, and without columns.
        """
        state = self.state
        if not (state.is_alarm and self.columns):
            return []
        first = max([0, *(start for start in self.starts if start <= state.since)])
        quiet = [t for t in range(first, state.since) if t not in self.changed_places]
        before = [self.periods[t].columns for t in quiet]
        now = [period.columns for period in self.periods[state.since :]]
        return moved_columns(self.columns, before, now)

    @cached_property
    def changed_places(self) -> set[int]:
        """Places of the periods of all changes.

        They begin with the window that showed the change, and end before the one that showed that
        the share is back.
        """
        found: set[int] = set()
        pairs = enumerate(self.states)
        for (kind, since), run in groupby(pairs, lambda pair: (pair[1].kind, pair[1].since)):
            *_, (last, state) = run
            if state.is_alarm:
                found.update(range(since, last + 1))
            elif kind == "back":
                found.difference_update(range(since, last + 1))
        return found

    @cached_property
    def usual_ranges(self) -> list[tuple[float, float]]:
        """For each period, the range in which 90 % of the shares lie if nothing changes.

        It comes from the quiet periods before and their variation. It is NaN for a period without
        rows.
        """
        series = Series([period.count for period in self.periods], self._weekdays)
        quiet, extra, found = series.between(0, 0), Sums.of(self.reference), []
        starts, has_rows = set(self.starts), [period.count.n_rows > 0 for period in self.periods]
        for t, is_full in enumerate(has_rows):
            if t in starts:
                quiet, extra = series.between(0, 0), Sums()
            window = series.between(t, t + 1)
            usual = usual_for(window, quiet, extra)
            found.append(usual_range(window.total, usual) if is_full else (np.nan, np.nan))
            if is_full and t not in self.changed_places:
                quiet = quiet + window
        return found

    @property
    def moved_columns(self) -> list[MovedColumn]:
        """The columns that differ clearly between the quiet periods and those of a change.

        The column that differs most is the first one. If no column differs, one is named in at most
        5 % of the series (measured).
        """
        return [column for column in self.all_columns if column.p_value <= LEVEL]

    @property
    def _levels(self) -> Any:
        """Level of each period for all rows, and for the groups together."""
        level = self.alpha / PER_PERIODS
        halves = [0.5 * level if period.groups else level for period in self.periods]
        return np.array(halves, dtype=float)

    @property
    def starts(self) -> list[int]:
        """Places of the periods, except the first one, with which the series starts again."""
        names = set(self.acknowledged)
        return [t + 1 for t, period in enumerate(self.periods) if period.name in names]

    def acknowledge(self) -> History:
        """The history, whose series starts again after the newest period.

        The earlier periods stay in the table and in the picture. The next ones are compared with
        each other only, so that a new level becomes the usual one.

        Returns
        -------
        History
            The new history.

        Raises
        ------
        HistoryError
            The history has no period.
        """
        name = self.newest.name
        done = self.acknowledged
        return self if name in done else replace(self, acknowledged=(*done, name))

    def add(self, periods: Iterable[Period], *, replace_periods: bool = False) -> History:
        """The history with more periods.

        Parameters
        ----------
        periods : iterable of Period
            The new periods.
        replace_periods : bool, default=False
            Whether the new periods take the place of those with the same name or table.

        Returns
        -------
        History
            The new history.

        Raises
        ------
        HistoryError
            A table was counted already, or a period exists, and `replace_periods` is False.
        """
        new = {period.name: period for period in periods}
        digests = {period.digest for period in new.values() if period.digest}
        again = [p.name for p in self.periods if p.digest in digests]
        clash = [p.name for p in self.periods if p.name in new]
        if again and not replace_periods:
            raise HistoryError(
                f"These rows were counted already, as {listed(again)}",
                "Give other rows. With --force (replace=True), these periods are replaced, or "
                "dropped if the rows have another period now.",
            )
        if clash and not replace_periods:
            raise HistoryError(
                f"The history has rows of {listed(clash)} already",
                "If these are rows of another period, name it with --period (name=), or give "
                "--time (periods=). To replace the period, give all of its rows together, with "
                "--force (replace=True).",
            )
        kept = [p for p in self.periods if p.name in new or p.digest not in digests]
        placed = [new.pop(p.name, p) for p in kept]
        acknowledged = self._acknowledged_among({p.name for p in placed})
        return replace(self, periods=(*placed, *new.values()), acknowledged=acknowledged)

    def _acknowledged_among(self, names: set[str]) -> tuple[str, ...]:
        """The acknowledged periods; in the place of one that is dropped, the one before it."""
        found: dict[str, None] = {}
        last = None
        for period in self.periods:
            last = period.name if period.name in names else last
            if period.name in self.acknowledged and last is not None:
                found[last] = None
        return tuple(found)

    def check_fit(self, fit: str, reference: Count, alpha: float | None) -> None:
        """Refuse another fit, its `reference`, and another `alpha` than that of the history.

        Parameters
        ----------
        fit : str
            Digest of the fit.
        reference : Count
            The training rows, and how many lie above its threshold.
        alpha : float or None
            Probability of a false alarm; None is that of the history.

        Raises
        ------
        HistoryError
            One of them differs.
        """
        if fit != self.fit or reference != self.reference:
            raise HistoryError(
                "The history belongs to another fit, or to the same fit before its labels changed",
                "Start a new history for this fit.",
            )
        if alpha is not None and alpha != self.alpha:
            raise HistoryError(
                f"The history was started with alpha {self.alpha}, not {alpha}",
                "Leave alpha out, or start a new history.",
            )

    @cached_property
    def label_shares(self) -> list[LabelShare]:
        """The share of anomalies in each period with labels, from its labels.

        With few labels, the share of a period is pulled towards what is usual in labelled tables,
        as that of a group is in `LabelledRows.by_group`.
        """
        return label_shares(self.periods)

    def to_frame(self) -> Any:
        """The periods, and the groups of each period, as a data frame.

        Returns
        -------
        pandas.DataFrame
            A line for each period, and for each group of a period. Columns: period, group ("" for
            all rows), n_rows, n_above, share, low and high (the exact 90 % range), and state.

        Raises
        ------
        MissingExtraError
            pandas is not installed.
        """
        try:
            import pandas as pd
        except ModuleNotFoundError:
            raise MissingExtraError("to_frame needs pandas", "pandas", name="pandas") from None
        return pd.DataFrame(self.to_records())

    def to_records(self) -> list[dict[str, Any]]:
        """The lines of `to_frame`.

        Returns
        -------
        list of dict
            The values of each line by the names of the columns.
        """
        lines = []
        states = {"": self.states} | self.group_states
        for t, period in enumerate(self.periods):
            for group, count in ({"": period.count} | period.groups).items():
                low, high = count.interval()
                lines.append(
                    {
                        "period": period.name,
                        "group": group,
                        "n_rows": count.n_rows,
                        "n_above": count.n_above,
                        "share": count.share,
                        "low": low,
                        "high": high,
                        "state": states[group][t].kind,
                    }
                )
        return lines

    def plot(self, ax: Any = None) -> Any:
        """Draw the shares with their intervals over time.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.
        """
        from gammagmm.report.plots import plot_history

        return plot_history(self, ax)

    def report(
        self, path: Any, rows: Sequence[WatchedRow] = (), *, overwrite: bool = False
    ) -> None:
        """Write the history as one HTML page that needs no other file.

        Parameters
        ----------
        path : str or os.PathLike
            Name of the file.
        rows : sequence of WatchedRow, default=()
            Rows above the threshold that the page shows, the most anomalous first.
        overwrite : bool, default=False
            Whether an existing file is replaced.

        Raises
        ------
        FileExistsError
            The file exists and `overwrite` is False.
        """
        from gammagmm.report.watch import write_watch

        write_watch(self, path, rows, overwrite)

    def save(self, path: Any, *, overwrite: bool = False) -> None:
        """Write the history as JSON, completely or not at all.

        Parameters
        ----------
        path : str or os.PathLike
            Name of the file.
        overwrite : bool, default=False
            Whether an existing file is replaced.

        Raises
        ------
        FileExistsError
            The file exists and `overwrite` is False.
        HistoryError
            The file would be larger than `load` allows.
        """
        text = to_text(FORM.header | record_to_data(self), is_compact=True)
        if len(text) > MAX_DOCUMENT_BYTES:
            raise HistoryError(
                f"The history is not saved: its file would have {len(text):,} bytes, and at most "
                f"{MAX_DOCUMENT_BYTES:,} can be read again",
                "Start a new history with --history.",
            )
        write_document(text, path, overwrite)

    @classmethod
    def load(cls, path: Any) -> History:
        """The history that `save` wrote.

        Parameters
        ----------
        path : str or os.PathLike
            Name of the file.

        Returns
        -------
        History
            The history.

        Raises
        ------
        SavedFileError
            The file is damaged, or `save` did not write it.
        """
        reader = Reader(FORM, str(path))
        data = reader.parse(read_document(path, reader))
        return reader.record(cls, "history", reader.body(data))

    @classmethod
    def update_file(cls, path: Any, change: Callable[[History | None], History]) -> History:
        """Change the history in a file that several processes may change.

        The file is locked while it is read, changed and written, so that no period is lost. If the
        process ends at any moment, the file has the last complete history.

        Parameters
        ----------
        path : str or os.PathLike
            Name of the file; it is made if it does not exist.
        change : callable
            ``change(history)`` returns the new history; `history` is that of the file, or None if
            there is no file. For example
            ``lambda history: estimator.monitor(X, history=history)``.

        Returns
        -------
        History
            The new history.

        Raises
        ------
        HistoryError
            Another process keeps the file locked, `change` refuses, or the file becomes too large.
        SavedFileError
            The file is damaged, or `save` did not write it.
        """
        path = Path(path).resolve()  # two names of one file have one lock
        try:
            with locked(path):
                clear_parts(path)
                changed = change(cls.load(path) if Path(path).exists() else None)
                changed.save(path, overwrite=True)
        except TimeoutError as error:
            raise HistoryError(
                f"The history cannot be changed: {error}", "Try again when that process has ended."
            ) from error
        return changed

    def __repr__(self) -> str:
        n_periods = counted(len(self.periods), "period")
        if not self.periods:
            return f"History({n_periods})"
        period = self.newest
        count, words = period.count, "no rows"
        if count.n_rows:
            words = f"{count.n_above} of {count.n_rows} rows above the threshold"
            words += f", {percent(count.share)}"
        state = self.state_words(self.state)
        return f"History({n_periods}; {one_line(period.name)}: {words}; {state})"

    def state_words(self, state: State) -> str:
        """A state of this history in words, such as "raised since 2026-03-04".

        Parameters
        ----------
        state : State
            One of `states` or `group_states`.

        Returns
        -------
        str
            The words.
        """
        return state_words(self, state)

    def _repr_html_(self) -> str:
        from gammagmm.report.notebook import history_html

        return history_html(self)
