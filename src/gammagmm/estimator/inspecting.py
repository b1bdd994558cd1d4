"""The questions that a fitted estimator takes once a person looks at some of the rows."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gammagmm._support.checks import as_generator, check_count, check_probability, warn_user
from gammagmm.errors import LabelsWarning, Note
from gammagmm.estimator.answers import Answers
from gammagmm.estimator.rollback import undone_on_failure
from gammagmm.inspection.known_rows import KnownRows
from gammagmm.inspection.labelled_posterior import (
    Belief,
    GammaPrior,
    count_labels,
    labelled_posterior,
    prior_belief,
    rank_cells,
)
from gammagmm.inspection.suggestions import Strategy, expected_width, suggest_rows
from gammagmm.posterior.contamination import Contamination
from gammagmm.posterior.decisions import cut_off, is_anomaly
from gammagmm.posterior.gamma_posterior import GammaPosterior

__all__ = ["Inspecting"]

Array = NDArray[np.float64]


class Inspecting(Answers):
    """Which rows to look at, what their labels say of gamma, and how much more would bring."""

    # Set by `GammaGMM`, in __init__ and in fit.
    trust: float
    fitted_posterior_: GammaPosterior
    known_rows_: KnownRows
    notes_: list[Note]
    scores_: Array
    detector_names_: list[str]
    contamination_: Contamination
    labels_: NDArray[np.int_]
    thresholds_: dict[str, float]

    def suggest(
        self, n: int = 30, strategy: Strategy = "random", random_state: Any = None
    ) -> NDArray[np.int_]:
        """Places of `n` training rows to look at, in an order that can be stopped at any point.

        "random" spreads them evenly over the ranks from a random start: safe whatever the
        detectors are worth. "adaptive" takes every third row so, and between them those whose
        labels are expected to lower the variance of gamma most; it relies on the labels so far, and
        falls back to "random" once they say that the ranking tells nothing. It is better where the
        ranking is nearly perfect, and not on average. Rows that `update` was given are left out.
        """
        self._check_rows_here("suggest")
        rows = self._unknown_rows(n, strategy)
        return suggest_rows(self._belief(), rows, n, strategy, as_generator(random_state))

    def update(
        self, rows: ArrayLike, labels: ArrayLike, *, at_random: bool = True
    ) -> GammaPosterior:
        """The posterior of gamma once the `labels` (1 anomaly, 0 normal) of `rows` are known.

        `rows` are places of training rows, from 0 on. Labels add up: a second call with more
        labels gives what one call with all would. `posterior_`, `contamination_`, the thresholds
        and `labels_` follow; known rows keep their label. Rows that were not chosen blindly (known
        incidents, say) are given with ``at_random=False``: they count for themselves and say
        nothing of others, since taken for a sample they would bias it.
        """
        self._check_rows_here("update")
        if not isinstance(at_random, bool):
            raise TypeError(f"at_random must be True or False, got {at_random!r}.")
        n_rows = len(self.decision_scores_)
        known = self.known_rows_.add(rows, labels, at_random=at_random, n_rows=n_rows)
        with undone_on_failure(self):
            self.known_rows_ = known
            if len(known):
                belief = self._belief()
                self.posterior_ = labelled_posterior(belief)
                self._set_threshold()
                self._note_labels(belief)
        return self.posterior_

    def expected_width(
        self,
        n: int,
        *,
        mass: float = 0.9,
        strategy: Strategy = "random",
        random_state: Any = None,
    ) -> float:
        """How wide the interval of probability `mass` is expected to be after `n` more labels.

        The mean over labels drawn from what is believed now. Once there are labels, compare it
        with the width of ``posterior_.interval(mass)`` to decide whether to go on; before the
        first, that is the fit's own interval, on which `update` hardly relies.
        """
        self._check_rows_here("expected_width")
        check_probability("mass", mass)
        unknown = self._unknown_rows(n, strategy)
        belief, rng = self._belief(), as_generator(random_state)
        return expected_width(belief, suggest_rows(belief, unknown, n, strategy, rng), mass, rng)

    def _unknown_rows(self, n: Any, strategy: Any) -> NDArray[np.int_]:
        """Places of the rows that are not known yet, highest score first, at least `n` of them."""
        check_count("n", n, 1)
        if strategy not in get_args(Strategy):
            raise ValueError(f"strategy must be 'random' or 'adaptive', got {strategy!r}.")
        order = np.argsort(-self.decision_scores_, kind="stable")
        rows = order[~np.isin(order, self.known_rows_.rows)]
        if n > len(rows):
            raise ValueError(f"n must be at most {len(rows)}, the rows not known yet, got {n}.")
        return rows

    def _belief(self) -> Belief:
        """What is thought of the ranking after the labels of the known rows."""
        cells = rank_cells(self.decision_scores_)
        belief = prior_belief(cells, GammaPrior(self.fitted_posterior_, self.trust))
        return belief.given(count_labels(cells, self.known_rows_))

    def _note_labels(self, belief: Belief) -> None:
        """What the labels changed, in place of what was said of fewer labels."""
        known = self.known_rows_
        n_told = int((~known.at_random).sum())
        said = f"the posterior rests on {len(known)} known rows, {known.labels.sum()} anomalies"
        if self.fitted_posterior_.is_degenerate:
            said += "; the fit has no solution and does not enter it"
        else:
            said += f", and to {self.trust:.0%} on the fit's own as what was thought before"
        notes = [Note("labels", "posterior", said)]
        if n_told:
            said = f"{n_told} were not chosen at random: they count for themselves alone"
            notes.append(Note("labels", "known rows", said))
        self.notes_ = [note for note in self.notes_ if note.step != "labels"] + notes
        if not belief.is_precise and belief.unknown.any():
            said = "the labels contradict the ranking: few curves agree with them, and the "
            said += "posterior is imprecise. Other detectors or columns may suit these data better"
            self.notes_.append(Note("labels", "ranking", said))
            warn_user(f"{said[0].upper()}{said[1:]}.", LabelsWarning)

    def _rows_to_cut(self, gamma: float) -> tuple[Any, float]:
        """The rows that are not known, or all where none is left, and their share of anomalies."""
        known, n_rows = self.known_rows_, len(self.decision_scores_)
        if len(known) in (0, n_rows):
            return slice(None), gamma
        unknown = np.delete(np.arange(n_rows), known.rows)
        left = (gamma * n_rows - known.labels.sum()) / len(unknown)
        return unknown, float(np.clip(left, 0.0, 1.0))

    def _set_threshold(self) -> None:
        """Cut the consensus, and each detector's own scores, at the posterior mean.

        A row that is known keeps its label; the others are cut at the share that is left for them.
        """
        self.contamination_ = Contamination(self.posterior_)
        rows, share = self._rows_to_cut(float(self.contamination_))
        self.threshold_ = float(cut_off(self.decision_scores_[rows], share))
        self.labels_ = is_anomaly(self.decision_scores_, self.threshold_)
        self.labels_[self.known_rows_.rows] = self.known_rows_.labels
        own = cut_off(self.scores_[rows], share)
        self.thresholds_ = dict(zip(self.detector_names_, own.tolist(), strict=True))
