"""The result of a fit as one frozen value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gammagmm._support.checks import as_generator, warn_user
from gammagmm._support.text import percent
from gammagmm.detectors.fit import DetectorInfo, FittedDetectors, score_rows
from gammagmm.distributed.collection import (
    Collection,
    index_of_part,
    is_collection,
    open_collection,
)
from gammagmm.errors import DetectorError, NewRowsWarning, Note, SeparateRowsWarning
from gammagmm.estimator.parameters import Plan
from gammagmm.estimator.reasons import UsualValues, reason_words, usual_values
from gammagmm.estimator.rows import check_columns, new_rows, read_more
from gammagmm.estimator.space import Space, score_space
from gammagmm.labels.anomaly_probability import Calibration
from gammagmm.labels.group_shares import GroupShare
from gammagmm.labels.known_rows import KnownRows, Purpose, check_rows_known
from gammagmm.labels.label_error import NO_ERROR
from gammagmm.labels.label_warnings import check_rates
from gammagmm.labels.labelled_rows import LabelledRows
from gammagmm.labels.learned_ranking import Inputs, LearnedRanking, Learning, learn_ranking
from gammagmm.labels.precision import Precision
from gammagmm.labels.search import rows_to_find
from gammagmm.labels.sentences import (
    error_sentence,
    find_sentence,
    known_sentence,
    more_sentence,
    precision_sentence,
    ranking_sentence,
    recall_sentence,
    stop_sentence,
)
from gammagmm.mixture.score_space import ScoreScaler
from gammagmm.monitoring.counts import Count, Period, ScoredRows, count_periods, row_digests
from gammagmm.monitoring.history import ALPHA, History
from gammagmm.monitoring.parts import training_parts
from gammagmm.monitoring.periods import empty_days
from gammagmm.posterior.decisions import cut_off, is_anomaly, is_far_above
from gammagmm.posterior.evidence import Evidence, contradiction, find_evidence
from gammagmm.posterior.gamma_posterior import GammaPosterior, combine_runs
from gammagmm.posterior.run_notes import describe_runs
from gammagmm.posterior.runs import Run, solved_posteriors
from gammagmm.posterior.sentences import (
    flagged_sentence,
    how_sentence,
    model_lines,
    rows_sentence,
    sentence,
    separate_words,
)
from gammagmm.posterior.separate_rows import find_separate_rows
from gammagmm.table.container import Container
from gammagmm.table.preparation import Preparation
from gammagmm.table.sample import Sample
from gammagmm.table.scaling import ColumnScaler
from gammagmm.table.table import Groups, Table

__all__ = [
    "Answering",
    "Fit",
    "RowAnswers",
    "Truth",
    "complete_fit",
    "cut_rows",
]

Array = NDArray[np.float64]

CORRECTED = "labels.corrected"
"""Code of a note about labels that were replaced, which stays when more labels come."""


@dataclass(frozen=True, repr=False, eq=False)
class Fit:
    """Everything that a fit found.

    Of a large table on Dask, the training rows are a random sample.

    The page "Assumptions and posterior" of the documentation shows it in use.

    Attributes
    ----------
    plan : object
        The checked parameters of the fit; an internal part.
    table : object
        The training rows and what is known of them; of a large table, with other rows that were
        asked for. An internal part, see `preparation`, `sample` and `rows`.
    column_scaler : object or None
        The map that scales the columns for the detectors; None where they are not scaled.
    detectors : mapping
        Fitted detectors by name; None for each column of precomputed scores. Those of a fit that
        was loaded from a file are made when they are first asked for; a user's own object that the
        file does not have is None.
    detector_info : tuple of DetectorInfo
        Seconds, rows, status and reason of every detector, including those skipped.
    scaler : object
        The map from raw scores to the score space.
    space : object
        The scores of the rows; an internal part.
    runs : tuple of Run
        The variational runs.
    posterior : GammaPosterior
        Posterior of the contamination factor, with the labels of known rows.
    fitted_posterior : GammaPosterior
        The same without these labels.
    known : KnownRows
        The rows, with their labels, that `update` was given, by their places among `rows`.
    learning : Learning or None
        What these labels taught about the ranking; None without labels, and with ``learn=False``.
    evidence : Evidence
        What speaks for and against the estimate without labels.
    labels : ndarray of shape (n_rows,)
        1 for a training row above the threshold, else 0; a known row has its own label.
    threshold : float
        The score of the ranking in use that a new row exceeds if it is called an anomaly.
    thresholds : dict
        Each detector's own raw-scale threshold for new rows at the estimate, by name.
    own_notes : tuple of Note
        What was changed, skipped or approximated after the rows were prepared, see `notes`.

    Examples
    --------
    >>> from gammagmm import GammaGMM
    >>> from gammagmm.datasets import load_demo
    >>> estimator = GammaGMM(["KNN", "LOF", "HBOS"], n_runs=2, random_state=0)
    >>> fit = estimator.fit(load_demo().X).fit_
    >>> fit.n_rows, fit.n_flagged, fit.posterior
    (367, 38, GammaPosterior(mean=0.102, model range 0.076 to 0.129))
    >>> fit.update([0, 1, 2], [0, 0, 0]).known_rows.rows.tolist(), len(fit.known_rows)
    ([0, 1, 2], 0)
    """

    plan: Plan
    table: Table
    column_scaler: ColumnScaler | None
    detectors: Mapping[str, Any]
    detector_info: tuple[DetectorInfo, ...]
    scaler: ScoreScaler
    space: Space
    runs: tuple[Run, ...]
    posterior: GammaPosterior
    fitted_posterior: GammaPosterior
    known: KnownRows
    learning: Learning | None
    evidence: Evidence
    labels: NDArray[np.int_]
    threshold: float
    thresholds: dict[str, float]
    own_notes: tuple[Note, ...]

    @property
    def preparation(self) -> Preparation:
        """How the columns of the training rows became numbers.

        `used` and `left_out` have the names of columns; the rest is internal.
        """
        return self.table.preparation

    @property
    def sample(self) -> Sample:
        """Which rows of the table are held: all of them, or the training rows and some others."""
        return self.table.sample

    @property
    def rows(self) -> Array:
        """The rows (n_held, n_numbers) that are held, as numbers."""
        return self.table.values

    @property
    def notes(self) -> tuple[Note, ...]:
        """Everything that was changed, skipped or approximated."""
        return (*self.table.notes, *self.own_notes)

    @property
    def n_rows(self) -> int:
        """Number of training rows."""
        return self.sample.n_sampled

    @property
    def known_rows(self) -> KnownRows:
        """The rows, with their labels, that `update` was given, by their numbers in the table."""
        return self.known.numbered(self.sample)

    @property
    def n_flagged(self) -> int:
        """Number of training rows with the label 1."""
        return int(self.labels.sum())

    @property
    def detector_names(self) -> list[str]:
        """Names of the detectors whose scores are used."""
        return list(self.detectors)

    @property
    def scores(self) -> Array:
        """Raw scores (n_rows, n_detectors) of the training rows."""
        return self.space.scores[: self.n_rows]

    @property
    def score_space(self) -> Array:
        """The scores after logarithm and standardisation."""
        return self.space.values[: self.n_rows]

    @property
    def decision_scores(self) -> Array:
        """Score (n_rows,) of the ranking in use.

        The consensus is the mean of the score space over the detectors. A learned ranking blends it
        with what the labels of known rows taught.
        """
        return self.space.decision_scores[: self.n_rows]

    @property
    def ranking(self) -> str:
        """The ranking in use: "consensus" or "learned"."""
        is_learned = self.learning is not None and self.learning.ranking is not None
        return "learned" if is_learned else "consensus"

    @property
    def probability(self) -> Array:
        """Probability (n_rows,) that a training row is an anomaly.

        It is 0 or 1 for a known row, unless labels may be wrong (`label_error`).
        It is calibrated on labelled real tables and by the labels of known rows, see
        `GammaGMM.predict_proba`.
        """
        return self.held.probability[: self.n_rows]

    @property
    def answers(self) -> RowAnswers:
        """The answers for the training rows."""
        return self.held[: self.n_rows]

    def answers_new(self, rows: Array) -> RowAnswers:
        """The answers for new `rows` (n, d) in memory; warns as `predict` does."""
        answers = self.answering(rows)
        self.check_flagged(int(answers.labels.sum()), len(answers.labels))
        return answers

    @property
    def answering(self) -> Answering:
        """The function that gives the answers for new rows, without a warning."""
        detectors = None if self.plan.is_precomputed else dict(self.detectors)
        if missing := [name for name, each in (detectors or {}).items() if each is None]:
            raise DetectorError(
                "This fit was loaded from a file, which does not have the detectors "
                f"{', '.join(missing)}, so it cannot score new rows",
                "Give them to GammaGMM.load if they are your own, or fit the rows again.",
            )
        return Answering(
            detectors,
            np.flatnonzero([info.status == "ok" for info in self.detector_info]),
            self.column_scaler,
            self.scaler,
            None if self.learning is None else self.learning.ranking,
            self.labelled_rows.calibration,
            self.threshold,
        )

    def grouped(self, groups: NDArray[Any]) -> Fit:
        """The fit whose rows belong to these `groups` (n_rows,)."""
        return replace(self, table=replace(self.table, groups=Groups(groups)))

    @property
    def group_shares(self) -> list[GroupShare]:
        """The flagged rows and the share of anomalies of each group, the largest groups first."""
        if self.table.groups is None:
            return []
        return list(self.labelled_rows.by_group(self.table.groups.first(self.n_rows).values))

    @property
    def truth(self) -> Truth | None:
        """How the result compares with labels that the method did not use."""
        truth, labels = self.table.truth, self.labels
        if truth is None:
            return None
        share = float(truth.mean())
        return Truth(
            share=share,
            is_inside=self.posterior.contains(share),
            hits=int((labels & truth).sum()),
            false_alarms=int((labels & (1 - truth)).sum()),
            misses=int(((1 - labels) & truth).sum()),
        )

    def with_table(self, table: Table) -> Fit:
        """The fit that holds all rows of `table`, of which the first ones are its own."""
        rows = table.values[len(self.space) :]
        if not len(rows):
            return replace(self, table=table)
        answers = self.answering(rows)
        more, _ = score_space(answers.own, self.scaler)
        more = replace(more, decision_scores=answers.scores, honest_scores=answers.scores)
        return replace(self, table=table, space=self.space + more)

    def holding(self, numbers: NDArray[np.intp]) -> Fit:
        """The fit that holds the rows of its table with these numbers as well."""
        lacking = self.sample.not_held(numbers)
        return self.with_table(read_more(self.table, lacking)) if len(lacking) else self

    def holding_first_rows(self, n: int) -> Fit:
        """The fit that holds the `n` first rows without a label of the whole table as well."""
        collection = self.table.collection
        if self.sample.is_whole or collection is None:
            return self
        return self.holding(np.sort(self._first_rows(collection, n)))

    def rows_to_find(self, n: int, random_state: Any = None) -> NDArray[np.intp]:
        """Numbers of `n` rows without a label of the whole table, to find anomalies among them.

        In memory, rows with the same score are in a random order.
        """
        collection = self.table.collection
        if self.sample.is_whole or collection is None:
            return self.labelled_rows.suggest(n, purpose="find", random_state=random_state)
        if self.ranking == "consensus":
            return self._first_rows(collection, n)
        consensus = replace(self.space, decision_scores=self.space.consensus)
        alone = replace(self, space=consensus, learning=None)
        first = (each._first_rows(collection, n) for each in (self, alone))
        fit = self.holding(np.union1d(*first))
        rng, unknown = as_generator(random_state), fit.known.unknown(fit.sample.n_held)
        return fit.sample.number(rows_to_find(fit.labelled_rows, unknown, n, rng))

    def _first_rows(self, collection: Collection, n: int) -> NDArray[np.intp]:
        """Numbers of the `n` first rows without a label in the ranking of a `collection`."""
        known = self.known_rows.rows
        score = partial(
            _scores_of_part,
            preparation=self.preparation,
            answering=self.answering,
            held=self.held_by_number,
        )
        first = collection.first(score, n + len(known))
        return first[~np.isin(first, known)][:n]

    def usual_values(self) -> UsualValues:
        """The usual values of the columns, by the training rows."""
        rows = self.rows[: self.n_rows]
        encoded, others = self.preparation.encoded, self.preparation.other_texts
        return usual_values(rows, self.table.columns, encoded, others)

    @property
    def lines(self) -> list[str]:
        """The answer in words, in at most five lines: what is known first, and what to do last."""
        return [" ".join(filter(None, line.values())) for line in self.told.values()]

    @property
    def told(self) -> dict[str, dict[str, str]]:
        """The sentences of each line by what they say, by what the line is about.

        Without labels these are "share", "cut", "model" and "next". With labels they are "answer",
        "labels", "chosen" if no label says something about other rows, "ranking", "found" and
        "next".
        """
        known, n_detectors, n_rows = self.known, len(self.detectors), self.sample.n_rows
        flagged, why = rows_sentence(self.n_flagged, self.n_rows, n_rows), ""
        if self.sample.is_whole or not len(known):  # labelled rows may lie outside a sample
            expected = float(self.probability.sum())
            may_be_wrong = any(self.plan.label_error) and self.posterior.n_labels
            reason = "label error" if may_be_wrong else "ties"
            reason = reason if len(known) else "no labels"
            why = flagged_sentence(self.n_flagged, expected, reason)
        if not len(known):
            return model_lines(
                self.posterior,
                self.evidence,
                n_detectors,
                n_rows,
                (flagged, why),
                self._label_command,
            )
        labels = known_sentence(len(known), int(known.labels.sum()), self.fitted_posterior)
        answer = {"share": sentence(self.posterior), "flagged": flagged, "sum": why}
        told = {"answer": answer, "labels": {"known": labels}}
        ranking = None if self.learning is None else ranking_sentence(self.learning)
        ranked = {} if ranking is None else {"ranking": {"used": ranking}}
        if self.posterior.n_labels:
            return told | self._told_at_random(labels, ranked)
        if len(known) == n_rows:
            return told | {"next": {"what": more_sentence(0, 0)}}  # no row is left to rank
        told["chosen"] = {
            "how": "The labelled rows were not chosen at random and say nothing about the other "
            "rows; the estimate for those rests on the prior distribution."
        }
        n_next = min(30, n_rows - len(known))
        following = {
            "what": f"Next: label {n_next} random rows.",
            "how": how_sentence(self._label_command),
        }
        return told | ranked | {"next": following}

    @property
    def _label_command(self) -> str:
        """The command that labels the rows of a file; empty for rows in Python."""
        return self.table.commands.label if self.table.commands else ""

    def _told_at_random(
        self, labels: str, ranked: Mapping[str, dict[str, str]]
    ) -> dict[str, dict[str, str]]:
        """What the labels of rows that were chosen at random tell, `labels` being its begin."""
        known, precision, rows = self.known, self.precision, self.labelled_rows
        found, separate = {}, self.evidence.separate_rows
        if known.picked.any():
            found["found"] = {"what": recall_sentence(rows.left)}
        elif precision is not None and known.listed.any():
            found["found"] = {"what": precision_sentence(precision)}
        elif separate is not None:
            words = separate_words(self.posterior, separate, len(self.detectors))
            found["found"] = {"what": f"There are {words}."}
        about = {"known": labels, "error": error_sentence(rows.label_error)}
        following = {"what": self._next_line(rows)}
        if not known.picked.any() and len(known) < rows.n_rows - 1:  # nobody has searched yet
            command = self.table.commands.find if self.table.commands else ""
            following["find"] = find_sentence(command)
        return {"labels": about, **ranked, **found, "next": following}

    def _next_line(self, rows: LabelledRows) -> str:
        """What to do after labels of random rows and, perhaps, a search."""
        n_left, n = rows.n_rows - len(self.known), rows.n_for_recall
        if self.known.picked.any() and n_left and n:
            return stop_sentence(n, self.table.commands.check if self.table.commands else "")
        if any(rows.label_error):  # how much more labels buy is not known
            return more_sentence(None, n_left)
        low, high = self.posterior.interval()
        n_more = rows.n_for_width(0.5 * (high - low)) if high > low else 0
        return more_sentence(n_more, n_left)

    def check_flagged(self, n_flagged: int, n_rows: int) -> None:
        """Warn if `n_flagged` of `n_rows` new rows are far too many."""
        # Where the estimate is 0, one of the training rows might have been flagged as well.
        share = max(self.posterior.mean, 1.0 / self.n_rows)
        if is_far_above(n_flagged, n_rows, share):
            warn_user(
                f"predict flags {n_flagged} of {n_rows} rows ({percent(n_flagged / n_rows)}), "
                f"although the fit estimated {percent(self.posterior.mean)} anomalies. The new "
                "rows may differ from the training rows in units, columns or preparation: compare "
                "them.",
                NewRowsWarning,
            )

    @property
    def training_count(self) -> Count:
        """The training rows above the threshold of new rows; rows in lists do not count."""
        if not len(self.known):
            return Count(self.n_rows, self.n_flagged)
        rows = self.known.rows_outside_lists(self.sample).rows
        scores = self.space.honest_scores[rows]
        return Count(len(rows), int(is_anomaly(scores, self.threshold).sum()))

    @property
    def digest(self) -> str:
        """Text that is the same for fits with the same cut, by which a history knows its fit."""
        # Rounded, because another machine may compute other last digits.
        cuts = [f"{name}={cut:.9g}" for name, cut in sorted(self.thresholds.items())]
        words = [str(self.training_count), f"{self.threshold:.9g}", *cuts]
        return sha256("\n".join(words).encode()).hexdigest()

    def reasons(self, X: Any = None) -> Any:
        """In which columns each row is unusual, in words; see `GammaGMM.reasons`."""
        usual = self.usual_values()
        if X is None:
            return [reason_words(each) for each in usual.reasons(self.rows[: self.n_rows])]
        if not is_collection(X):
            return [reason_words(each) for each in usual.reasons(new_rows(X, self.preparation))]
        check_columns(X, self.preparation)
        return open_collection(X).frame(_reasons_of_part, self.preparation, usual)["reason"]

    def monitor(
        self,
        scored: ScoredRows,
        periods: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        history: History | None = None,
        *,
        name: str | None = None,
        alpha: float | None = None,
        replace: bool = False,
        rows: Array | None = None,
        labels: ArrayLike | None = None,
    ) -> History:
        """The `history`, or a new one, with new rows; see `GammaGMM.monitor`.

        Without the `rows` themselves, their columns are not counted.
        """
        if history is None:
            alpha = ALPHA if alpha is None else alpha
            texts = self.preparation.encoded
            parts = training_parts(self.rows[: self.n_rows], self.table.columns, texts)
            history = History(self.digest, self.training_count, alpha, columns=parts)
        history.check_fit(self.digest, self.training_count, alpha)
        own_name = str(len(history.periods) + 1) if name is None else name
        counted = count_periods(
            is_anomaly(scored.scores, self.threshold),
            scored.digests,
            periods,
            groups,
            own_name,
            rows,
            history.columns,
            labels,
            scored.n_filled,
            self.plan.label_error,
        )
        known = {period.name for period in history.periods}
        gaps = set(empty_days(period.name for period in counted)) - known
        if gaps:
            counted += [Period(day, Count(0, 0)) for day in gaps]
            counted.sort(key=lambda period: period.name)
        history = history.add(counted, replace_periods=replace)
        own = [period.labels for period in counted if period.labels is not None]
        n, k = sum(each.n_labels for each in own), sum(each.n_anomalies for each in own)
        check_rates(n, k, self.plan.label_error)
        return history

    @cached_property
    def labelled_rows(self) -> LabelledRows:
        """The training rows with their scores and the labels of the known rows."""
        space = self.space
        honest_scores = space.honest_scores if self.ranking == "learned" else None
        part = None if self.sample.is_whole else self.sample
        fitted = self.fitted_posterior
        consensus = space.consensus if self.ranking == "learned" else None
        error = self.plan.label_error
        return LabelledRows(
            space.decision_scores, self.known, honest_scores, part, fitted, error, consensus
        )

    @property
    def precision(self) -> Precision | None:
        """Share of anomalies among the rows that the fit flags without labels.

        It comes from those of them that are known, and is None if none is.
        """
        if not len(self.known):
            return None
        consensus = self.space.consensus[: self.n_rows]
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
            Numbers of rows of the table, from 0.
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
        fit = self.holding(check_rows_known(rows, self.sample.n_rows))
        labelled = fit.labelled_rows.update(rows, labels, at_random=at_random, purpose=purpose)
        return fit.with_labels(labelled)

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
            columns = self._as_detectors_have(self.rows)
            inputs = Inputs(space.values, space.consensus, columns)
            plan = self.plan
            learning = learn_ranking(
                inputs, known, plan.learning_seed, self.n_rows, plan.label_error
            )
            scores, honest_scores = learning.scores, learning.honest_scores
            space = replace(space, decision_scores=scores, honest_scores=honest_scores)
            sampled = slice(self.n_rows)
            learning = replace(
                learning, scores=scores[sampled], honest_scores=honest_scores[sampled]
            )
        is_kept = {note: note.step != "labels" or note.code == CORRECTED for note in self.own_notes}
        notes = [note for note in self.own_notes if is_kept[note]]
        if len(corrected := self.known.corrected(known)):
            rows = ", ".join(str(number) for number in self.sample.number(corrected).tolist())
            notes.append(Note.of(CORRECTED, "known rows", rows=rows))
        notes += _label_notes(known, learning)
        posterior = labelled.posterior
        return replace(
            self,
            known=known,
            learning=learning,
            space=space,
            posterior=posterior,
            own_notes=tuple(notes),
            **cut_rows(
                space,
                self.sample,
                known,
                labelled.cut_share,
                self.detector_names,
                self.plan.label_error,
            ),
        )

    @property
    def detector_columns(self) -> Array | None:
        """The training rows as the detectors have them; None for precomputed scores."""
        return self._as_detectors_have(self.rows[: self.n_rows])

    def _as_detectors_have(self, rows: Array) -> Array | None:
        if self.plan.is_precomputed:
            return None
        return rows if self.column_scaler is None else self.column_scaler.transform(rows)

    def frame(self) -> Any:
        """The answer for each training row as a data frame of the kind that the rows came in."""
        columns = self.answers.columns(self.detector_names)
        return self.table.container.first(self.n_rows).frame(columns)

    def frame_of(self, X: Any) -> Any:
        """The same for new rows `X`; a lazy dask data frame for a collection on Dask.

        The training rows of a collection have the answers of the fit.
        """
        if not is_collection(X):
            columns = self.answers_new(new_rows(X, self.preparation)).columns(self.detector_names)
            return Container.of(X).frame(columns)
        check_columns(X, self.preparation)
        collection = open_collection(X)
        shared: tuple[Any, ...] = (self.preparation, self.answering, self.detector_names)
        own = self.table.collection
        if own is not None and own.is_of(collection.X):
            return collection.frame(answers_of_part, *shared, self.held_by_number)
        return collection.frame(answers_of_part, *shared)

    @property
    def held(self) -> RowAnswers:
        """The answers for all rows that are held."""
        space, labelled = self.space, self.labelled_rows
        answers = labelled.probability, labelled.labels
        return RowAnswers(space.decision_scores, *answers, space.scores)

    @property
    def held_by_number(self) -> tuple[NDArray[np.intp], RowAnswers]:
        """Numbers of the rows that are held, in rising order, and the answers for them."""
        numbers = self.sample.number(self.sample.all_places)
        order = np.argsort(numbers)
        return numbers[order], self.held[order]

    def __repr__(self) -> str:
        of_table = "" if self.sample.is_whole else f" sampled of {self.sample.n_rows}"
        counts = f"{self.n_rows} rows{of_table}, {self.n_flagged} flagged"
        counts += f", {len(self.detectors)} detectors"
        return "\n  ".join([f"Fit({counts})", *self.lines])

    def _repr_html_(self) -> str:
        from gammagmm.report.notebook import fit_html

        return fit_html(self)

    def plot(self, ax: Any = None) -> Any:
        """Draw the scores of the rows in their order, with the cut and its uncertainty.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.
        """
        from gammagmm.report.plots import plot_ranking

        return plot_ranking(self, ax)


@dataclass(frozen=True)
class Truth:
    """The result beside labels that the method did not use.

    Attributes
    ----------
    share : float
        Share of anomalies by these labels.
    is_inside : bool
        Whether the interval of the posterior contains it.
    hits : int
        Number of flagged anomalies.
    false_alarms : int
        Number of flagged rows that are normal.
    misses : int
        Number of anomalies that are not flagged.
    """

    share: float
    is_inside: bool
    hits: int
    false_alarms: int
    misses: int


def complete_fit(
    plan: Plan,
    table: Table,
    fitted: FittedDetectors,
    column_scaler: ColumnScaler | None,
    space: Space,
    scaler: ScoreScaler,
    runs: tuple[Run, ...],
    notes: list[Note],
) -> Fit:
    """The fit whose runs are done: posterior, labels, and warnings about its runs."""
    posterior, known = combine_runs(solved_posteriors(runs)), KnownRows.none()
    names = list(fitted.detectors)
    X = None
    if not plan.is_precomputed:
        X = table.values[: len(space)]
        X = X if column_scaler is None else column_scaler.transform(X)
    separate = find_separate_rows(space.values, names, X)
    for note, category in describe_runs(
        runs,
        plan.constraints,
        plan.max_iter,
        accelerated=plan.accelerated,
        n_separate=0 if separate is None else separate.n_rows,
    ):
        notes.append(note)
        if category is not None:
            warn_user(note.message, category)
    if (against := contradiction(separate, posterior)) is not None:
        notes.append(against)
        warn_user(against.message, SeparateRowsWarning)
    evidence = find_evidence(runs, plan.constraints, separate, plan.run_rng.spawn(1)[0])
    return Fit(
        plan=plan.without_progress(),
        table=table,
        column_scaler=column_scaler,
        detectors=fitted.detectors,
        detector_info=tuple(fitted.info),
        scaler=scaler,
        space=space,
        runs=runs,
        posterior=posterior,
        fitted_posterior=posterior,
        known=known,
        learning=None,
        evidence=evidence,
        own_notes=tuple(notes),
        **cut_rows(space, table.sample, known, posterior.mean, names),
    )


def cut_rows(
    space: Space,
    sample: Sample,
    known: KnownRows,
    gamma: float,
    names: Sequence[str],
    label_error: tuple[float, float] = NO_ERROR,
) -> dict[str, Any]:
    """Labels and thresholds of a fit whose rows are cut at the share `gamma`.

    A known row keeps its label; the other rows are cut at the share that is left for them. New
    rows are like the rows outside lists, labelled or not, and are cut as these would be.
    """
    rows = LabelledRows(space.decision_scores, known, None, sample, None, label_error)
    labels = rows.labels_at(gamma)[: sample.n_sampled]
    outside = rows.rows_outside_lists
    share = outside.share(gamma)
    threshold = float(cut_off(space.honest_scores[outside.rows], share))
    own = cut_off(space.scores[outside.rows], share).tolist()
    thresholds = dict(zip(names, own, strict=True))
    return {"labels": labels, "threshold": threshold, "thresholds": thresholds}


def _label_notes(known: KnownRows, learning: Learning | None) -> list[Note]:
    """What the labels changed."""
    n_anomalies = known.labels.sum()
    notes = [Note.of("labels.posterior", "posterior", n_known=len(known), n_anomalies=n_anomalies)]
    if n_listed := int(known.listed.sum()):
        notes.append(Note.of("labels.listed", "known rows", n_rows=n_listed))
    if n_picked := int(known.picked.sum()):
        notes.append(Note.of("labels.picked", "known rows", n_rows=n_picked))
    if learning is not None:
        notes.append(Note.of("labels.ranking", "ranking", words=ranking_sentence(learning)))
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

    @property
    def n_below_half(self) -> int:
        """Number of flagged rows that are probably no anomalies."""
        return int((self.probability[self.labels == 1] < 0.5).sum())

    def __getitem__(self, rows: Any) -> RowAnswers:
        """The answers for these rows."""
        return RowAnswers(*(own[rows] for own in vars(self).values()))

    def replaced(self, first: int, numbers: NDArray[np.intp], answers: RowAnswers) -> RowAnswers:
        """The same with the `answers` for the rows with these `numbers`, which rise.

        These are the rows with the numbers `first`, `first` + 1, ...
        """
        inside = slice(*np.searchsorted(numbers, [first, first + len(self.scores)]))
        places = numbers[inside] - first
        changed = []
        for mine, given in zip(vars(self).values(), vars(answers).values(), strict=True):
            copied = mine.copy()
            copied[places] = given[inside]
            changed.append(copied)
        return RowAnswers(*changed)

    def columns(self, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Columns by name: score, probability and label, then the raw score of each detector."""
        first = {"score": self.scores, "probability": self.probability, "label": self.labels}
        return first | {f"score_{name}": x for name, x in zip(names, self.own.T, strict=True)}


@dataclass(frozen=True)
class Answering:
    """The answers for new rows (n, d), from each row and the fit alone.

    `detectors` are None where the rows are raw scores, of which the columns `used` count.
    `column_scaler` scales the columns for the detectors, and `scaler` the scores. The score is that
    of the `ranking`, or the consensus if it is None.
    """

    detectors: dict[str, Any] | None
    used: NDArray[np.intp]
    column_scaler: ColumnScaler | None
    scaler: ScoreScaler
    ranking: LearnedRanking | None
    calibration: Calibration
    threshold: float

    def __call__(self, rows: Array) -> RowAnswers:
        """The answers for `rows`."""
        own, scores = self._score(rows)
        labels = is_anomaly(scores, self.threshold)
        return RowAnswers(scores, self.calibration(scores), labels, own)

    def scores(self, rows: Array) -> Array:
        """Score (n,) of each of `rows` by the ranking in use."""
        return self._score(rows)[1]

    def probabilities(self, rows: Array) -> Array:
        """Probabilities (n, 2) of normal and anomaly of each of `rows`."""
        p_anomaly = self.calibration(self.scores(rows))
        return np.column_stack([1.0 - p_anomaly, p_anomaly])

    def scores_and_digests(self, rows: Array) -> Array:
        """Score of each of `rows`, and the number by which it is recognised (n, 2)."""
        return np.column_stack([self.scores(rows), row_digests(rows)])

    def _score(self, rows: Array) -> tuple[Array, Array]:
        """Raw scores (n, M) of `rows`, and their scores (n,)."""
        if self.detectors is None:
            own, columns = rows[:, self.used], None
        else:
            columns = rows if self.column_scaler is None else self.column_scaler.transform(rows)
            own = score_rows(self.detectors, columns)
        if self.ranking is None:
            return own, self.scaler.consensus(own)
        space = self.scaler.transform(own)
        return own, self.ranking.scores(Inputs(space, space.mean(axis=1), columns))


def answers_of_part(
    part: Any,
    first: int,
    preparation: Preparation,
    answering: Answering,
    names: Sequence[str],
    held: tuple[NDArray[np.intp], RowAnswers] | None = None,
) -> Any:
    """The answers for a part of a table as a pandas frame; `first` is the number of its first row.

    The rows in `held` have the answers that are given there.
    """
    import pandas as pd

    if not len(part):
        empty = np.empty(0)
        made = RowAnswers(empty, empty, empty.astype(int), np.empty((0, len(names))))
    else:
        made = answering(new_rows(part, preparation))
    if held is not None:
        made = made.replaced(first, *held)
    return pd.DataFrame(made.columns(names), index=index_of_part(part, first))


def _scores_of_part(
    part: Any,
    first: int,
    preparation: Preparation,
    answering: Answering,
    held: tuple[NDArray[np.intp], RowAnswers],
) -> Array:
    """The scores of a part; the rows in `held` have those of the fit."""
    return answering(new_rows(part, preparation)).replaced(first, *held).scores


def _reasons_of_part(part: Any, first: int, preparation: Preparation, usual: UsualValues) -> Any:
    """The reasons of a part of a table as a pandas frame."""
    import pandas as pd

    rows = new_rows(part, preparation) if len(part) else np.empty((0, preparation.n_outputs))
    words = [reason_words(each) for each in usual.reasons(rows)]
    index = index_of_part(part, first)
    return pd.DataFrame({"reason": pd.Series(words, index=index, dtype=object)}, index=index)
