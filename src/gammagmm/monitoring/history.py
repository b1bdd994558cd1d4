"""The periods that were counted -> alarms, a table, and a file that grows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from gammagmm._support.checks import check_probability
from gammagmm._support.documents import Form, Reader, read_document, record_to_data, to_text
from gammagmm._support.files import clear_parts, locked, write_document
from gammagmm._support.text import counted, listed, one_line, percent
from gammagmm.errors import HistoryError, MissingExtraError
from gammagmm.monitoring.alarms import Ring, find_rings, period_levels
from gammagmm.monitoring.counts import Count, Period, check_rows

__all__ = ["ALPHA", "History"]

FORM = Form("gammagmm/history", 1, "history", "Give a file that gammagmm monitor wrote.")
ALPHA = 0.05
"""Probability of a false alarm in the whole series, unless another one is chosen."""
TRAINING_WEIGHT = 2
"""This number of training rows counts as one new row in the tests.

The scores of training rows come from detectors that have seen them, so that new rows lie beyond the
cut a little more or less often, even if nothing has changed.
"""


@dataclass(frozen=True, repr=False)
class History:
    """The rows beyond the cut of one fit, period by period, with alarms.

    `GammaGMM.monitor` makes a history and adds rows to it. An alarm says that the share of rows
    beyond the cut has risen. If nothing has changed since the fit, the whole series has an alarm
    with a probability of at most `alpha`, however long it is. For the groups, this is proved if the
    rows are independent. Every test of all rows includes the training rows; for these tests, the
    rate was measured and not proved. A history is a frozen value: adding rows gives a new one.

    The page "Monitoring new rows" of the documentation shows it in use.

    Attributes
    ----------
    fit : str
        Digest of the fit, whose cut all periods have in common.
    reference : Count
        The training rows beyond the cut.
    alpha : float, default=0.05
        Probability of a false alarm in the whole series.
    periods : tuple of Period, default=()
        The periods, in the order in which they were added.

    Examples
    --------
    >>> from gammagmm import GammaGMM
    >>> from gammagmm.datasets import make_contaminated
    >>> X = make_contaminated(800, 2, 0.05, "global", random_state=0).X
    >>> estimator = GammaGMM(["HBOS", "KNN"], n_runs=1, random_state=0).fit(X[:400])
    >>> history = estimator.monitor(X[400:600], name="monday")
    >>> estimator.monitor(1.5 * X[600:], name="tuesday", history=history)
    History(2 periods; tuesday: 118 of 200 rows beyond the cut, 59.0%; alarm)
    """

    fit: str
    reference: Count
    alpha: float = ALPHA
    periods: tuple[Period, ...] = ()

    def __post_init__(self) -> None:
        check_probability("alpha", self.alpha)
        names = [period.name for period in self.periods]
        if len(set(names)) < len(names):
            raise ValueError("two periods have the same name")
        check_rows(self.reference.n_rows + sum(period.count.n_rows for period in self.periods))

    @property
    def newest(self) -> Period:
        """The last period."""
        if not self.periods:
            raise HistoryError("The history has no period yet", "Add rows with monitor.")
        return self.periods[-1]

    @cached_property
    def rings(self) -> list[Ring | None]:
        """The test that rings in each period, for all rows; None where none does."""
        # Rounded so that the reference share is not smaller.
        n, k = self.reference.n_rows, self.reference.n_beyond
        base = Count(n // TRAINING_WEIGHT, min(-(-k // TRAINING_WEIGHT), n // TRAINING_WEIGHT))
        return find_rings([period.count for period in self.periods], base, self._levels)

    @cached_property
    def group_rings(self) -> dict[str, list[Ring | None]]:
        """The same for the rows of each group, by the name of the group.

        A group is compared with its own earlier periods, because the training rows have no groups.
        The groups with rows in a period share half of its level equally, and only they are tested.
        """
        names = sorted({name for period in self.periods for name in period.groups})
        levels = self._levels / [max(len(period.groups), 1) for period in self.periods]
        nothing = Count(0, 0)
        return {
            name: find_rings(
                [period.groups.get(name, nothing) for period in self.periods], nothing, levels
            )
            for name in names
        }

    @property
    def _levels(self) -> Any:
        """Level of each period for all rows, and for the groups together."""
        levels = period_levels(self.alpha, len(self.periods))
        has_groups = np.array([bool(period.groups) for period in self.periods], dtype=bool)
        return np.where(has_groups, 0.5 * levels, levels)

    @property
    def alarms(self) -> tuple[str, ...]:
        """Names of the periods in which all rows, or the rows of a group, ring."""
        rung = [self.rings, *self.group_rings.values()]
        return tuple(
            period.name
            for t, period in enumerate(self.periods)
            if any(rings[t] is not None for rings in rung)
        )

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
        return replace(self, periods=(*placed, *new.values()))

    def check_fit(self, fit: str, reference: Count, alpha: float | None) -> None:
        """Refuse another fit, its `reference`, and another `alpha` than that of the history.

        Parameters
        ----------
        fit : str
            Digest of the fit.
        reference : Count
            The training rows beyond its cut.
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

    def to_frame(self) -> Any:
        """The periods, and the groups of each period, as a data frame.

        Returns
        -------
        pandas.DataFrame
            A line for each period, and for each group of a period. Columns: period, group ("" for
            all rows), n_rows, n_beyond, share, low and high (the exact 90 % interval), and alarm.

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
        rung = {"": self.rings} | self.group_rings
        for t, period in enumerate(self.periods):
            for group, count in ({"": period.count} | period.groups).items():
                low, high = count.interval()
                lines.append(
                    {
                        "period": period.name,
                        "group": group,
                        "n_rows": count.n_rows,
                        "n_beyond": count.n_beyond,
                        "share": count.share,
                        "low": low,
                        "high": high,
                        "alarm": rung[group][t] is not None,
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
        """
        write_document(to_text(FORM.header | record_to_data(self)), path, overwrite)

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
            Another process keeps the file locked, or `change` refuses.
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
        count = f"{period.count.n_beyond} of {period.count.n_rows} rows beyond the cut"
        alarm = "alarm" if period.name in self.alarms else "no alarm"
        share = percent(period.count.share)
        return f"History({n_periods}; {one_line(period.name)}: {count}, {share}; {alarm})"

    def _repr_html_(self) -> str:
        from gammagmm.report.notebook import history_html

        return history_html(self)
