"""A fit -> everything that a report shows, as plain values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from gammagmm._support.text import visible
from gammagmm.estimator.fit_result import Fit
from gammagmm.estimator.reasons import ColumnShape, Reason
from gammagmm.estimator.summary import FitSummary, summarise
from gammagmm.labels.group_shares import GroupShare
from gammagmm.posterior.decisions import cost_cut, cut_off
from gammagmm.posterior.runs import Run, first_solved, solved_posteriors
from gammagmm.report.curves import RankCurve, rank_curve, share_end
from gammagmm.table.table import Table

__all__ = [
    "MAX_SHOWN",
    "Findings",
    "ShareCut",
    "find",
]

Array = NDArray[np.float64]
Reasons = list[tuple[Reason, ...]]

N_STEPS = 300
"""Steps of the slider for gamma."""
MAX_STEP = 0.30
"""The share at the end of the slider, unless `max_gamma` or the interval reaches further."""
MAX_NAME = 60
"""Most characters of a row's name that a report shows."""
MAX_RANKED = 2000
"""Most rows that a report names, the most anomalous first."""
MAX_SHOWN = 50
"""Most rows in the table of the most anomalous rows."""
MAX_TO_LABEL = 30
"""Most rows that a report suggests for labelling."""
MISS_COSTS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
"""Costs of a missed anomaly, in false alarms."""


@dataclass(frozen=True)
class ShareCut:
    """The rows that are flagged if the share of anomalies is `gamma`."""

    gamma: float
    n_flagged: int
    threshold: float  # of the ranking in use, for rows without a label
    thresholds: tuple[float, ...]  # of each detector's raw scores, for new rows


@dataclass(frozen=True)
class CostCut:
    """The rows that are flagged if a missed anomaly costs `miss_cost` false alarms."""

    miss_cost: float
    cut: ShareCut  # at the share of the rows that are flagged


@dataclass(frozen=True)
class Component:
    """A component of the mixture."""

    share: float  # expected share of the rows
    p_anomalous: float


@dataclass(frozen=True)
class RankedRow:
    """A row near the top of the ranking."""

    name: str
    score: float
    probability: float
    is_separate: bool  # from the rest
    reasons: tuple[Reason, ...]  # the columns in which it is unusual


@dataclass(frozen=True)
class RowToLabel:
    """A row that a person should label."""

    number: int  # in the file, from 1
    name: str
    values: tuple[Reason, ...]  # farthest from their medians; none without the rows


@dataclass(frozen=True)
class Found:
    """Anomalies among the first rows that were labelled at random, in the order of two rankings.

    Each row is ranked without what was learned from its own label.
    """

    consensus: tuple[int, ...]
    learned: tuple[int, ...]


@dataclass(frozen=True)
class Findings:
    """Everything that a report shows."""

    summary: FitSummary
    table: Table
    told: dict[str, dict[str, str]]  # sentences, see `Fit.told`
    command: str  # the next step, for a shell or for Python; empty if there is none
    is_file: bool  # whether the command is one for a shell
    curve: RankCurve
    shapes: dict[tuple[str, str | None], ColumnShape]  # of the columns of the reasons
    separate_rows: tuple[str, ...]  # names of rows separate from the rest, `MAX_SHOWN` at most
    humps: tuple[float, ...]  # of the posterior, if every run has several
    mean: ShareCut
    lower_end: ShareCut  # of the posterior's interval
    upper_end: ShareCut
    steps: tuple[ShareCut, ...]  # of the slider
    costs: tuple[CostCut, ...]
    found: Found | None  # None if the ranking is not learned, or cannot be checked
    ranking: tuple[str, ...]  # names of the rows, most anomalous first, `MAX_RANKED` at most
    agreement: dict[str, float]  # rank correlation of each detector with the consensus
    components: tuple[Component, ...]  # most anomalous first
    n_below_half: int  # flagged rows that are probably no anomalies
    has_picked: bool  # whether rows from the top of the ranking have labels
    top_rows: tuple[RankedRow, ...]
    to_label: tuple[RowToLabel, ...]
    groups: tuple[GroupShare, ...]  # the largest first; empty if the rows have none


def find(fit: Fit) -> Findings:
    """What a report shows of a fit."""
    table = fit.table
    scores, probability = fit.held.scores, fit.held.probability
    names = _shown_names(table)
    order = _order(fit)
    top, chosen = order[:MAX_SHOWN], _rows_to_label(fit)
    why_top, values_chosen, shapes = _described(fit, top, chosen)
    separate = _separate_rows(fit)
    mean, *ends = cuts_at(fit, np.array([fit.labelled_rows.cut_share, *fit.posterior.interval()]))
    return Findings(
        summary=summarise(fit),
        table=table,
        told=fit.told,
        command=_command(fit),
        is_file=fit.table.commands is not None,
        curve=rank_curve(fit, share_end(fit.posterior)),
        shapes=shapes,
        separate_rows=tuple(names[row] for row in separate[:MAX_SHOWN]),
        humps=_humps(fit),
        mean=mean,
        lower_end=ends[0],
        upper_end=ends[1],
        steps=_steps(fit),
        costs=_costs(fit, probability[: fit.n_rows]),
        found=_found(fit),
        ranking=tuple(names[row] for row in order[:MAX_RANKED]),
        agreement=_agreement(fit),
        components=_components(first_solved(fit.runs)),
        n_below_half=fit.answers.n_below_half,
        has_picked=bool(fit.known.picked.any()),
        top_rows=tuple(
            RankedRow(names[row], float(scores[row]), float(probability[row]), is_separate, reasons)
            for row, is_separate, reasons in zip(
                top, np.isin(top, separate).tolist(), why_top, strict=True
            )
        ),
        to_label=tuple(
            RowToLabel(table.row_number(int(row)), names[row], values)
            for row, values in zip(chosen, values_chosen, strict=True)
        ),
        groups=tuple(fit.group_shares),
    )


def cuts_at(fit: Fit, shares: Array) -> tuple[ShareCut, ...]:
    """The cut at each of `shares`, by the rule of `GammaGMM.labels_at`."""
    left, outside = fit.labelled_rows.rows_left, fit.labelled_rows.rows_outside_lists
    scores, shares_left = fit.decision_scores[left.rows], np.array([*map(left.share, shares)])
    thresholds = cut_off(scores, shares_left)
    own = cut_off(fit.scores[outside.rows], np.array([*map(outside.share, shares)]))
    # A flagged row lies strictly above the threshold, so equal scores are searched from the right.
    n_flagged = len(scores) - np.searchsorted(np.sort(scores), thresholds, side="right")
    sampled = fit.known.rows < fit.n_rows
    if left.n_anomalies is not None:
        n_flagged += int(fit.known.labels[sampled].sum())
    if sampled.sum() == fit.n_rows:
        n_flagged = np.full(len(shares), fit.n_flagged)
    rows = zip(shares.tolist(), n_flagged.tolist(), thresholds.tolist(), own.tolist(), strict=True)
    return tuple(ShareCut(gamma, n, threshold, tuple(each)) for gamma, n, threshold, each in rows)


def _described(
    fit: Fit, top: NDArray[np.intp], chosen: NDArray[np.intp]
) -> tuple[Reasons, Reasons, dict[tuple[str, str | None], ColumnShape]]:
    """The columns in which the rows `top` are unusual, the values of the rows `chosen`, the shapes.

    Rows that are scores themselves have no columns.
    """
    if fit.plan.is_precomputed:
        return [()] * len(top), [()] * len(chosen), {}
    usual = fit.usual_values()
    reasons, values = usual.reasons(fit.rows[top]), usual.described(fit.rows[chosen])
    shown = (reason for each in (*reasons, *values) for reason in each)
    shapes = usual.shapes(fit.rows[: fit.n_rows], {r.key for r in shown if r.share is None})
    return reasons, values, shapes


def _command(fit: Fit) -> str:
    """What a person types to label rows; rows that are no file are labelled in Python."""
    if fit.sample.n_rows == len(fit.known):
        return ""
    return "detector.label()" if fit.table.commands is None else fit.table.commands.label


def _shown_names(table: Table) -> tuple[str, ...]:
    """Names of the rows: long ones are cut, control characters are written out."""
    if table.given_names is None:
        return table.row_names
    cut = (name if len(name) <= MAX_NAME else f"{name[:MAX_NAME]}…" for name in table.given_names)
    return tuple(visible(name) for name in cut)


def _rows_to_label(fit: Fit) -> NDArray[np.intp]:
    n = min(MAX_TO_LABEL, fit.n_rows - len(fit.known))
    if n < 1:
        return np.empty(0, dtype=np.intp)
    numbers = fit.labelled_rows.suggest(n, spread=False, random_state=fit.plan.seed)
    return fit.sample.places(numbers)


def _order(fit: Fit) -> NDArray[np.intp]:
    """Positions of the rows, most anomalous first; those known to be normal come last."""
    known = fit.known
    place = np.ones(fit.sample.n_held)
    place[known.rows] = np.where(known.labels == 1, 0, 2)
    return np.lexsort((-fit.space.decision_scores, place))


def _separate_rows(fit: Fit) -> NDArray[np.intp]:
    """Positions of the rows that are separate from the rest, most anomalous first."""
    separate = fit.evidence.separate_rows
    if separate is None:
        return np.empty(0, dtype=np.intp)
    rows = cast("NDArray[np.intp]", separate.rows)
    return rows[np.argsort(-fit.decision_scores[rows], kind="stable")]


def _humps(fit: Fit) -> tuple[float, ...]:
    """The humps of the fitted posterior, if the posterior of each run has several as well."""
    of_runs = [len(posterior.modes()) for posterior in solved_posteriors(fit.runs)]
    modes = fit.fitted_posterior.modes().tolist()
    return tuple(modes) if len(modes) > 1 < len(of_runs) and min(of_runs) > 1 else ()


def _found(fit: Fit) -> Found | None:
    known, learning = fit.known, fit.learning
    if learning is None or learning.ranking is None or learning.check is None:
        return None
    if not known.labels[known.at_random].any():
        return None
    learned = fit.labelled_rows
    consensus = replace(learned, scores=fit.space.consensus, honest_scores=None)
    return Found(*(tuple(rows.found_in_order.tolist()) for rows in (consensus, learned)))


def _steps(fit: Fit) -> tuple[ShareCut, ...]:
    beyond_interval = np.ceil(20 * fit.posterior.interval()[1]) / 20
    end = min(max(MAX_STEP, fit.plan.constraints.max_gamma, beyond_interval), 1.0)
    return cuts_at(fit, np.linspace(0.0, end, N_STEPS + 1).round(6))


def _costs(fit: Fit, probability: Array) -> tuple[CostCut, ...]:
    """The cut for each of `MISS_COSTS`."""
    n_flagged = np.array([(probability > cost_cut((1.0, cost))).sum() for cost in MISS_COSTS])
    # No tie lies between the flagged rows and the others, so the cut at their share is theirs.
    cuts = cuts_at(fit, n_flagged / fit.n_rows)
    pairs = zip(cuts, n_flagged.tolist(), strict=True)
    cuts = tuple(cut if cut.n_flagged >= n else _below_all(cut, n) for cut, n in pairs)
    return tuple(CostCut(cost, cut) for cost, cut in zip(MISS_COSTS, cuts, strict=True))


def _below_all(cut: ShareCut, n_flagged: int) -> ShareCut:
    """The cut just below the smallest scores, which flags every row without a label."""
    threshold, *own = (float(np.nextafter(x, -np.inf)) for x in (cut.threshold, *cut.thresholds))
    return replace(cut, n_flagged=n_flagged, threshold=threshold, thresholds=tuple(own))


def _agreement(fit: Fit) -> dict[str, float]:
    """Spearman's correlation of each detector's scores with the consensus."""
    consensus = rankdata(fit.space.consensus[: fit.n_rows])
    ranks = rankdata(fit.scores, axis=0)
    correlations = [float(np.corrcoef(column, consensus)[0, 1]) for column in ranks.T]
    return dict(zip(fit.detector_names, correlations, strict=True))


def _components(run: Run) -> tuple[Component, ...]:
    shares = run.components.alpha / run.components.alpha.sum()
    pairs = zip(shares.tolist(), run.p_anomalous.tolist(), strict=True)
    return tuple(Component(share, p) for share, p in pairs)
