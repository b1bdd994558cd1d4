"""The result of a fit as one frozen value, and the partial result of a fit that timed out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gammagmm._support.checks import warn_user
from gammagmm._support.progress import Progress
from gammagmm._support.table_encoder import TableEncoder
from gammagmm._support.text import percent
from gammagmm.detectors.fit import DetectorInfo, FittedDetectors, score_rows
from gammagmm.detectors.presets import named_detectors
from gammagmm.errors import DetectorError, FitTimeoutError, NewRowsWarning, Note
from gammagmm.estimator.parameters import Plan
from gammagmm.estimator.protocols import Columns, Cut, Scores, Space
from gammagmm.estimator.reasons import UsualValues, usual_values
from gammagmm.estimator.scaling import ColumnScaler
from gammagmm.inspection.known_rows import KnownRows, Purpose
from gammagmm.inspection.labelled_rows import GroupShare, LabelledRows, Precision
from gammagmm.inspection.learned_ranking import Inputs, LearnedRanking, Learning
from gammagmm.mixture.score_space import ScoreScaler
from gammagmm.monitoring.counts import Count, count_periods
from gammagmm.monitoring.history import ALPHA, History
from gammagmm.posterior.decisions import (
    RankTable,
    cut_off,
    is_anomaly,
    is_far_above,
    probability_at,
)
from gammagmm.posterior.evidence import Evidence, find_evidence
from gammagmm.posterior.gamma_posterior import GammaPosterior, combine_runs
from gammagmm.posterior.runs import Run, describe_runs, solved_posteriors
from gammagmm.posterior.sentences import (
    evidence_lines,
    exact_sentence,
    group_sentence,
    known_sentence,
    more_sentence,
    precision_sentence,
    ranking_sentence,
    rows_sentence,
    sentence,
)

__all__ = [
    "Fit",
    "PartialFit",
    "Probabilities",
    "RowAnswers",
    "Scoring",
    "check_runs",
    "check_time",
    "complete_fit",
]

Array = NDArray[np.float64]


@dataclass(frozen=True, repr=False, eq=False)
class Fit:
    """Everything that a fit found.

    Scores and labels are arrays, or lazy dask arrays for rows on Dask.

    The page "Assumptions and posterior" of the documentation shows it in use.

    Attributes
    ----------
    plan : object
        The checked parameters of the fit; an internal part.
    columns : object
        The columns of the training rows; an internal part.
    column_scaler : object or None
        The map that scales the columns for the detectors; None where they are not scaled.
    detectors : dict
        Fitted detectors by name; None for each column of precomputed scores, and for every detector
        of a fit that was loaded from a file.
    detector_info : tuple of DetectorInfo
        Seconds, rows, status and reason of every detector, including those skipped.
    space : object
        The training rows with their scores; an internal part.
    runs : tuple of Run
        The variational runs.
    posterior : GammaPosterior
        Posterior of the contamination factor, with the labels of known rows.
    fitted_posterior : GammaPosterior
        The same without these labels.
    known_rows : KnownRows
        The rows, with their labels, that `update` was given.
    learning : Learning or None
        What these labels taught about the ranking; None without labels, and with ``learn=False``.
    evidence : Evidence
        What the estimate without labels rests on.
    cut : object
        Labels and thresholds at the posterior mean; an internal part, see `labels` and
        `thresholds`.
    notes : tuple of Note
        Everything that was changed, skipped or approximated.

    Examples
    --------
    >>> from gammagmm import GammaGMM
    >>> from gammagmm.datasets import load_demo
    >>> estimator = GammaGMM(["KNN", "LOF", "HBOS"], n_runs=2, random_state=0)
    >>> fit = estimator.fit(load_demo().X).fit_
    >>> fit.n_rows, fit.n_flagged, fit.posterior
    (367, 38, GammaPosterior(mean=0.103, 90% interval 0.077 to 0.130))
    >>> fit.update([0, 1, 2], [0, 0, 0]).known_rows.rows.tolist(), len(fit.known_rows)
    ([0, 1, 2], 0)
    """

    plan: Plan
    columns: Columns
    column_scaler: ColumnScaler | None
    detectors: dict[str, Any]
    detector_info: tuple[DetectorInfo, ...]
    space: Space
    runs: tuple[Run, ...]
    posterior: GammaPosterior
    fitted_posterior: GammaPosterior
    known_rows: KnownRows
    learning: Learning | None
    evidence: Evidence
    cut: Cut
    notes: tuple[Note, ...]

    @property
    def encoder(self) -> TableEncoder | None:
        """The map from the columns as they were given to numbers; None where they were numbers."""
        return self.columns.encoder

    @property
    def n_rows(self) -> int:
        """Number of training rows."""
        return self.space.n_rows

    @property
    def n_flagged(self) -> int:
        """Number of training rows with the label 1."""
        return self.cut.n_flagged

    @property
    def detector_names(self) -> list[str]:
        """Names of the detectors whose scores are used."""
        return list(self.detectors)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the columns; empty where the table had none."""
        return () if self.columns.names is None else tuple(map(str, self.columns.names))

    @property
    def number_names(self) -> tuple[str, ...]:
        """Names of the columns of numbers that they became; empty where the table had none."""
        names = self.columns.number_names
        return () if names is None else tuple(map(str, names))

    @property
    def scores(self) -> Any:
        """Raw scores (n_rows, n_detectors) of the training rows."""
        self.space.check_rows_present("scores")
        return self.space.scores

    @property
    def score_space(self) -> Any:
        """The scores after logarithm and standardisation."""
        self.space.check_rows_present("score_space")
        return self.space.values

    @property
    def decision_scores(self) -> Any:
        """Score (n_rows,) of the ranking in use.

        The consensus is the mean of the score space over the detectors. A learned ranking blends it
        with what the labels of known rows taught.
        """
        self.space.check_rows_present("decision_scores")
        return self.space.decision_scores

    @property
    def ranking(self) -> str:
        """The ranking in use: "consensus" or "learned"."""
        return "consensus" if self._learned is None else "learned"

    @property
    def _learned(self) -> LearnedRanking | None:
        return None if self.learning is None else self.learning.ranking

    @property
    def labels(self) -> Any:
        """1 for a training row above the threshold, else 0; a known row has its own label."""
        self.space.check_rows_present("labels")
        return self.cut.labels

    @property
    def threshold(self) -> float:
        """The score of the ranking in use that a new row exceeds if it is called an anomaly."""
        return self.cut.threshold

    @property
    def thresholds(self) -> dict[str, float]:
        """Each detector's own raw-scale threshold for new rows at the estimate, by name."""
        return self.cut.thresholds

    @property
    def probability(self) -> Array:
        """Probability (n_rows,) that a training row is an anomaly; 0 or 1 for a known row."""
        self.check_in_memory("probability")
        if len(self.known_rows):
            return self.labelled_rows.probability
        ranks = self.space.ranks(self.known_rows)
        return probability_at(self.posterior, ranks.shares_at_least(self.decision_scores))

    @property
    def score_new(self) -> Scoring:
        """The function that gives new rows their scores by the ranking in use."""
        missing = [name for name, each in self.detectors.items() if each is None]
        if missing and not self.plan.is_precomputed:
            named = named_detectors(self.plan.detectors)
            own = [name for name, choice in named.items() if choice is None]
            raise DetectorError(
                "This fit was loaded from a file, which does not have the detectors "
                f"{', '.join(own or missing)}, so it cannot score new rows",
                "Fit the training rows again.",
            )
        used = np.flatnonzero([info.status == "ok" for info in self.detector_info])
        detectors = None if self.plan.is_precomputed else self.detectors
        return Scoring(detectors, used, self.column_scaler, self.space.scaler, self._learned)

    @property
    def probabilities_new(self) -> Probabilities:
        """The function that gives new rows their probabilities of normal and anomaly."""
        return Probabilities(self.score_new, self.space.ranks(self.known_rows), self.posterior)

    @property
    def answers(self) -> RowAnswers:
        """The answers for the training rows."""
        return RowAnswers(self.decision_scores, self.probability, self.labels, self.scores)

    def answers_new(self, rows: Array) -> RowAnswers:
        """The answers for new `rows` (n, d) in memory; warns as `labels_new` does."""
        scoring = self.score_new
        own, columns = scoring.raw(rows)
        scores = scoring.combine(own, columns)
        shares = self.space.ranks(self.known_rows).shares_at_least(scores)
        probability = probability_at(self.posterior, shares)
        return RowAnswers(scores, probability, self.labels_new(scores), own)

    def usual_values(self, names: Sequence[str] = ()) -> UsualValues:
        """The usual values of the columns, by the training rows; `names` are those of the columns.

        Without `names`, they are the names of the training table, or x1, x2, ...
        """
        self.check_in_memory("reasons")
        rows = cast("Array", self.space.rows)
        numbered = tuple(f"x{j}" for j in range(1, rows.shape[1] + 1))
        return usual_values(rows, names or self.number_names or numbered)

    @property
    def lines(self) -> list[str]:
        """The estimate and what it rests on, in at most five lines."""
        answer = f"{sentence(self.posterior)} {rows_sentence(self.n_flagged, self.n_rows)}"
        known, n_detectors = self.known_rows, len(self.detectors)
        if not len(known):
            in_memory = self.space.is_in_memory
            evidence = evidence_lines(
                self.posterior, self.evidence, n_detectors, in_memory=in_memory
            )
            return [answer, *evidence]
        labels = known_sentence(len(known), int(known.labels.sum()), self.fitted_posterior)
        precision = self.precision
        ranking = [] if self.learning is None else [ranking_sentence(self.learning)]
        if not self.posterior.n_labels:
            chosen = (
                "The labelled rows were not chosen at random and say nothing about the other rows; "
                "the estimate for those rests on the prior distribution."
            )
            if precision is not None:
                labels = f"{labels} {precision_sentence(precision)}"
            if len(known) == self.n_rows:
                return [answer, labels, more_sentence(0, 0)]  # no row is left to rank
            n_next = min(30, self.n_rows - len(known))
            following = f"Next: label {n_next} rows that suggest or gammagmm inspect chooses."
            return [answer, labels, chosen, *ranking, following]
        rows = self.labelled_rows
        exact = exact_sentence(rows.exact_interval(), int(known.labels.sum()))
        low, high = self.posterior.interval()
        n_more = rows.n_for_width(0.5 * (high - low)) if high > low else 0
        found = group_sentence(self.posterior, self.evidence, n_detectors)
        if precision is not None and known.listed.any():
            found = precision_sentence(precision)
        following = more_sentence(n_more, self.n_rows - len(known))
        return [answer, f"{labels} {exact}", *ranking, found, following]

    def labels_new(self, scores: Any) -> Any:
        """Labels of new rows with these scores; warns if far too many rows are flagged.

        Scores on Dask give lazy labels, without a warning.
        """
        labels: Any = is_anomaly(scores, self.threshold)
        # Where the estimate is 0, one of the training rows might have been flagged as well.
        share = max(self.posterior.mean, 1.0 / self.n_rows)
        if isinstance(labels, np.ndarray) and is_far_above(labels.sum(), len(labels), share):
            n_flagged, n_rows = int(labels.sum()), len(labels)
            warn_user(
                f"predict flags {n_flagged} of {n_rows} rows ({percent(n_flagged / n_rows)}), "
                f"although the fit estimated {percent(self.posterior.mean)} anomalies. The new "
                "rows may differ from the training rows in units, columns or preparation: compare "
                "them.",
                NewRowsWarning,
            )
        return labels

    @property
    def training_count(self) -> Count:
        """The training rows beyond the cut of new rows; rows in lists do not count."""
        if not len(self.known_rows):
            return Count(self.n_rows, self.n_flagged)
        rows = self.known_rows.rows_outside_lists(self.n_rows).rows
        scores = self.decision_scores if self.learning is None else self.learning.honest_scores
        return Count(len(rows), int(is_anomaly(scores[rows], self.threshold).sum()))

    @property
    def digest(self) -> str:
        """Text that is the same for fits with the same cut, by which a history knows its fit."""
        # Rounded, because another machine may compute other last digits.
        cuts = [f"{name}={cut:.9g}" for name, cut in sorted(self.thresholds.items())]
        words = [str(self.training_count), f"{self.threshold:.9g}", *cuts]
        return sha256("\n".join(words).encode()).hexdigest()

    def monitor(
        self,
        rows: Array,
        periods: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        history: History | None = None,
        *,
        name: str | None = None,
        alpha: float | None = None,
        replace: bool = False,
    ) -> History:
        """The `history`, or a new one, with the new `rows` (n, d); see `GammaGMM.monitor`."""
        if history is None:
            history = History(self.digest, self.training_count, ALPHA if alpha is None else alpha)
        history.check_fit(self.digest, self.training_count, alpha)
        is_beyond = is_anomaly(self.score_new(rows), self.threshold)
        own_name = str(len(history.periods) + 1) if name is None else name
        counted = count_periods(is_beyond, rows, periods, groups, own_name)
        return history.add(counted, replace_periods=replace)

    def check_in_memory(self, question: str) -> None:
        """Refuse a `question` that needs the training rows in memory if they are on Dask."""
        if not self.space.is_in_memory:
            raise NotImplementedError(
                f"{question} needs the training rows in memory, and they are on Dask: fit on a "
                "sample of them instead."
            )

    @property
    def labelled_rows(self) -> LabelledRows:
        """The training rows with their scores and the labels of the known rows."""
        self.check_in_memory("the labels of rows")
        honest_scores = None if self.learning is None else self.learning.honest_scores
        return LabelledRows(self.decision_scores, self.known_rows, honest_scores)

    def by_group(self, groups: Any) -> tuple[GroupShare, ...]:
        """The flagged rows in each group of training rows, and its share by its own labels.

        Parameters
        ----------
        groups : array-like of shape (n_rows,)
            The group of each training row.

        Returns
        -------
        tuple of GroupShare
            The groups, the largest first.
        """
        self.check_in_memory("by_group")
        return self.labelled_rows.by_group(groups, self.labels)

    @property
    def precision(self) -> Precision | None:
        """Share of anomalies among the rows that the fit flags without labels.

        It comes from those of them that are known, and is None if none is.
        """
        if not len(self.known_rows):
            return None
        consensus = self.space.consensus
        without = is_anomaly(consensus, float(cut_off(consensus, self.fitted_posterior.mean)))
        return self.labelled_rows.precision_of(np.flatnonzero(without))

    def update(
        self,
        rows: ArrayLike,
        labels: ArrayLike,
        *,
        at_random: bool = True,
        purpose: Purpose = "share",
    ) -> Fit:
        """The fit with the labels of some training rows; see `GammaGMM.update`.

        Parameters
        ----------
        rows : array-like of shape (n,)
            Positions of training rows, from 0.
        labels : array-like of shape (n,)
            1 for an anomaly, 0 for a normal row.
        at_random : bool, default=True
            Whether the rows were chosen blindly.
        purpose : "share" or "find", default="share"
            "find" for rows that ``suggest(purpose="find")`` has chosen.

        Returns
        -------
        Fit
            The new fit.
        """
        self.check_in_memory("update")
        labelled = self.labelled_rows.update(rows, labels, at_random=at_random, purpose=purpose)
        return self.with_labels(labelled)

    def with_labels(self, labelled: LabelledRows) -> Fit:
        """The fit with the labels of `labelled`, which `labelled_rows` was updated to.

        They update the posterior. With ``learn=True``, the ranking is learned from all of them; the
        posterior does not depend on it.
        """
        known = labelled.known_rows
        if not len(known):
            return self
        space, learning = self.space, None
        if self.plan.learn:
            space, learning = self.space.learn(known, self.plan.learning_seed)
        notes = [note for note in self.notes if note.step != "labels"]
        notes += _label_notes(known, learning)
        posterior = labelled.posterior
        return replace(
            self,
            known_rows=known,
            learning=learning,
            space=space,
            posterior=posterior,
            cut=space.cut(self.detector_names, posterior.mean, known),
            notes=tuple(notes),
        )

    def to_parquet(self, folder: Any, overwrite: bool, progress: Progress) -> None:
        """Write the answers for rows on Dask to Parquet files, completely or not at all.

        `progress` is called for each block.
        """
        self.space.write(self, folder, overwrite, progress)

    def __getstate__(self) -> dict[str, Any]:
        """The state without the rows on a cluster."""
        is_here = self.space.is_in_memory
        return vars(self) | {"cut": self.cut if is_here else replace(self.cut, labels=None)}

    def __repr__(self) -> str:
        answer = repr(self.posterior).removeprefix("GammaPosterior(").removesuffix(")")
        counts = f"{self.n_rows} rows, {self.n_flagged} flagged, {len(self.detectors)} detectors"
        return "\n  ".join([f"Fit({counts}, {answer})", *self.lines[1:]])

    def _repr_html_(self) -> str:
        from gammagmm.report.svg import posterior_html

        return posterior_html(self.posterior, self.lines)


def complete_fit(
    plan: Plan,
    columns: Columns,
    scores: Scores,
    space: Space,
    runs: tuple[Run, ...],
    notes: list[Note],
) -> Fit:
    """The fit whose runs are done: posterior, labels, and warnings about its runs."""
    fitted, notes = scores.fitted, [*scores.notes, *notes, *space.notes]
    for note, category in describe_runs(
        runs, plan.constraints, plan.max_iter, accelerated=plan.accelerated
    ):
        notes.append(note)
        if category is not None:
            warn_user(note.message, category)
    posterior, known = combine_runs(solved_posteriors(runs)), KnownRows.none()
    names = list(fitted.detectors)
    evidence = find_evidence(
        runs, plan.constraints, posterior, space.find_group(names), plan.run_rng.spawn(1)[0]
    )
    return Fit(
        plan=plan.without_progress(),
        columns=columns,
        column_scaler=scores.column_scaler,
        detectors=fitted.detectors,
        detector_info=tuple(fitted.info),
        space=space,
        runs=runs,
        posterior=posterior,
        fitted_posterior=posterior,
        known_rows=known,
        learning=None,
        evidence=evidence,
        cut=space.cut(names, posterior.mean, known),
        notes=tuple(notes),
    )


def _label_notes(known: KnownRows, learning: Learning | None) -> list[Note]:
    """What the labels changed."""
    message = (
        f"the posterior uses {len(known)} known rows ({known.labels.sum()} anomalies) and, for the "
        "other rows, the distribution of the share in labelled real tables as its prior; it does "
        "not use the mixtures"
    )
    notes = [Note("labels", "posterior", message)]
    if n_told := int(known.listed.sum()):
        message = f"{n_told} known rows were not chosen at random; they count only as themselves"
        notes.append(Note("labels", "known rows", message))
    if n_picked := int(known.picked.sum()):
        message = (
            f"{n_picked} known rows were picked from the top of the ranking; for the posterior, "
            "they only bound the number of anomalies"
        )
        notes.append(Note("labels", "known rows", message))
    if learning is not None:
        notes.append(Note("labels", "ranking", ranking_sentence(learning)))
    return notes


@dataclass(frozen=True, eq=False)
class RowAnswers:
    """What a fit says about rows.

    `scores` (n,) are those of the ranking in use, `probability` (n,) and `labels` (n,) belong to
    them, and `own` (n, M) are the raw scores of the detectors.
    """

    scores: Array
    probability: Array
    labels: NDArray[np.int_]
    own: Array

    @property
    def order(self) -> NDArray[np.intp]:
        """Positions of the rows, most anomalous first; known anomalies first, known others last."""
        return np.lexsort((-self.scores, -self.probability))


@dataclass(frozen=True)
class Scoring:
    """Score (n,) of new rows (n, d), from each row and the fit alone.

    `detectors` are None where the rows are raw scores, of which the columns `used` count.
    `column_scaler` scales the columns for the detectors, and `scaler` the scores. The score is that
    of the `ranking`, or the consensus if it is None.
    """

    detectors: dict[str, Any] | None
    used: NDArray[np.intp]
    column_scaler: ColumnScaler | None
    scaler: ScoreScaler
    ranking: LearnedRanking | None = None

    def __call__(self, rows: Array) -> Array:
        """Score of each of `rows`."""
        return self.combine(*self.raw(rows))

    def raw(self, rows: Array) -> tuple[Array, Array | None]:
        """Raw scores (n, M) of `rows`, and the rows as the detectors have them."""
        if self.detectors is None:
            return rows[:, self.used], None
        columns = rows if self.column_scaler is None else self.column_scaler.transform(rows)
        return score_rows(self.detectors, columns), columns

    def combine(self, scores: Array, columns: Array | None) -> Array:
        """Score (n,) of rows with these raw scores."""
        if self.ranking is None:
            return self.scaler.consensus(scores)
        space = self.scaler.transform(scores)
        return self.ranking.scores(Inputs(space, space.mean(axis=1), columns))


@dataclass(frozen=True)
class Probabilities:
    """Probabilities (n, 2) of normal and anomaly for new rows (n, d)."""

    score: Scoring
    ranks: RankTable
    posterior: GammaPosterior

    def __call__(self, rows: Array) -> Array:
        """Both probabilities of each of `rows`."""
        shares = self.ranks.shares_at_least(self.score(rows))
        p_anomaly = probability_at(self.posterior, shares)
        return np.column_stack([1.0 - p_anomaly, p_anomaly])


@dataclass(frozen=True, eq=False, repr=False)
class PartialFit:
    """The steps of a fit that were finished when it timed out.

    Attributes
    ----------
    detector_names : list of str
        Names of the detectors that were finished: the columns of `scores`.
    detectors : dict
        These detectors, fitted, by name; None for each column of precomputed scores.
    detector_info : list of DetectorInfo
        Seconds, rows, status and reason of every detector, including the others.
    scores : ndarray of shape (n_rows, n_detectors)
        Raw scores of the training rows; a lazy dask array for rows on Dask, or an array without
        rows while only a sample of them has scores.
    runs : tuple of Run, default=()
        The variational runs that were finished.
    posterior : GammaPosterior or None, default=None
        Posterior from the finished runs that have a solution; None where there is no such run.
    """

    detector_names: list[str]
    detectors: dict[str, Any]
    detector_info: list[DetectorInfo]
    scores: Any
    runs: tuple[Run, ...] = ()
    posterior: GammaPosterior | None = None


def check_time(plan: Plan, fitted: FittedDetectors, runs: tuple[Run, ...] = ()) -> None:
    """Raise `FitTimeoutError` with the partial results if the deadline of the plan has passed.

    The detectors in `fitted` and the `runs` are finished.
    """
    if not plan.deadline.is_over:
        return
    solved = solved_posteriors(runs)
    posterior = combine_runs(solved) if solved else None
    names = list(fitted.detectors)
    estimate = (
        f". The finished runs estimate {percent(posterior.mean)} anomalies" if posterior else ""
    )
    n_unsolved = len(runs) - len(solved)
    unsolved = f" ({n_unsolved} without a solution)" if n_unsolved else ""
    error = FitTimeoutError(
        f"The fit exceeded timeout={plan.deadline.timeout} s. Finished: {len(names)} of "
        f"{len(fitted.info)} detectors and {len(runs)} of {plan.n_runs} runs{unsolved}{estimate}",
        "Raise timeout, or give fewer rows, detectors or runs.",
        PartialFit(names, fitted.detectors, fitted.info, fitted.scores, runs, posterior),
    )
    error.add_note("The partial results are in this error's so_far.")
    raise error


def check_runs(plan: Plan, fitted: FittedDetectors, runs: tuple[Run, ...]) -> None:
    """Check the time after the last run; a fit that finishes late is not an error."""
    n_restarts = sum(run.n_restarts for run in runs)
    is_unsolved = any(run.status == "unsolved" for run in runs)
    if len(runs) < plan.n_runs or (is_unsolved and n_restarts < plan.max_restarts):
        check_time(plan, fitted, runs)
