"""Passes over blocks of rows -> scores, score space, mixtures: the method where the rows are.

No new mathematics: what a step needs of the rows adds up over blocks, and the step is the same.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.deadlines import OutOfTimeError
from gammagmm.blocks.collection import Blocks
from gammagmm.detectors.fit import (
    FitSettings,
    FittedDetectors,
    fit_detectors,
    given_scores,
    score_rows,
)
from gammagmm.detectors.presets import scores_batches
from gammagmm.detectors.scoring import check_alike
from gammagmm.errors import DetectorError
from gammagmm.mixture.fit import Ascent, begin
from gammagmm.mixture.prior import ResolvedPrior
from gammagmm.mixture.score_space import ScoreScaler, judge_detectors, score_range
from gammagmm.mixture.starts import fit_kmeans, nearest_centres, start_rows
from gammagmm.mixture.statistics import Statistics, block_statistics, start_statistics
from gammagmm.posterior.runs import Run, RunSettings, Start, make_run

__all__ = [
    "ScoreSpace",
    "Scored",
    "consensus_and_own",
    "fit_sample",
    "given_blocks",
    "keep_usable_blocks",
    "open_score_space",
    "random_rows",
    "score_all",
]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Scored:
    """Raw scores of all rows in blocks, with the detectors that gave them.

    `fitted.scores` are those of the rows `sample`, which the detectors were fitted on.
    """

    fitted: FittedDetectors
    scores: Blocks
    sample: NDArray[np.intp]


def fit_sample(
    X: Blocks, detectors: Mapping[str, Any], rng: np.random.Generator, settings: FitSettings
) -> tuple[FittedDetectors, NDArray[np.intp]]:
    """Detectors fitted on a uniform sample of `max_fit_rows` rows, and the rows of the sample."""
    # Deviation D13: the paper fits every detector on all rows.
    rows = sample_rows(X.n_rows, settings.max_fit_rows, rng)
    sample = X.take(rows)
    fitted = fit_detectors(detectors, sample, rng, replace(settings, max_fit_rows=None))
    if len(rows) < X.n_rows and not settings.deadline.is_over:
        fitted = _able_to_score(fitted, sample)
    return fitted, rows


def score_all(X: Blocks, fitted: FittedDetectors, rows: NDArray[np.intp]) -> Scored:
    """Scores of all rows by detectors that were fitted on `rows`.

    Those have the scores of the fit, the others are scored as new ones.
    """
    places = np.searchsorted(rows, X.offsets)
    own = [
        (rows[start:end] - first, fitted.scores[start:end])
        for start, end, first in zip(places[:-1], places[1:], X.offsets[:-1], strict=True)
    ]
    n_detectors = len(fitted.detectors)
    scores = X.map(_score_block, fitted.detectors, each=own, n_columns=n_detectors)
    return Scored(fitted, scores, rows)


def sample_rows(
    n_rows: int, max_fit_rows: int | None, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Numbers of the rows to fit detectors on: those that a fit in memory would take."""
    if max_fit_rows is None or n_rows <= max_fit_rows:
        return np.arange(n_rows)
    # The first child that `fit_detectors` will spawn from `rng`, without spawning it.
    (first,) = deepcopy(rng).spawn(1)
    return np.sort(first.choice(n_rows, max_fit_rows, replace=False))


def _able_to_score(fitted: FittedDetectors, sample: Array) -> FittedDetectors:
    """Those that score a new row; the reason of each other goes into its record."""
    failed: dict[str, str] = {}
    for name, detector in fitted.detectors.items():
        if scores_batches(detector):
            failed[name] = "it scores rows by their batch, not by a fit"
            continue
        try:
            score_rows({name: detector}, sample[:2])
        except DetectorError as error:
            failed[name] = f"{error}"
    return _without(fitted, failed)


def _without(fitted: FittedDetectors, failed: Mapping[str, str]) -> FittedDetectors:
    """The same without the detectors that `failed`, a reason each."""
    info = [
        replace(record, status="failed", reason=failed[record.name])
        if record.name in failed
        else record
        for record in fitted.info
    ]
    kept = {name: one for name, one in fitted.detectors.items() if name not in failed}
    columns = [name not in failed for name in fitted.detectors]
    return FittedDetectors(kept, fitted.scores[:, columns], info)


def _score_block(X: Array, detectors: dict[str, Any], own: tuple[NDArray[np.intp], Array]) -> Array:
    """Raw scores (n, M) of a block's rows; `own` are places and scores of those fitted on."""
    places, scores_there = own
    scores = np.empty((len(X), len(detectors)))
    is_new = np.ones(len(X), dtype=bool)
    is_new[places] = False
    scores[places] = scores_there
    for column, named in enumerate(detectors.items()):
        try:
            if is_new.any():
                scores[is_new, column] = score_rows(dict([named]), X[is_new])[:, 0]
        except DetectorError:  # left out, once all blocks are scored
            scores[is_new, column] = np.nan
    return scores


def given_blocks(X: Blocks, names: Sequence[str] | None) -> Scored:
    """Scores that come from elsewhere, under `names` or score_1, score_2, ..."""
    empty = given_scores(np.empty((0, X.n_columns)), names)
    info = [replace(record, n_rows=X.n_rows) for record in empty.info]
    kept = X.map(np.asarray)
    return Scored(replace(empty, info=info), kept, np.empty(0, dtype=np.intp))


def keep_usable_blocks(scored: Scored, rows: NDArray[np.intp]) -> tuple[Scored, Array]:
    """The detectors whose scores can be used, and the smallest score (M,) of each.

    `rows` are random ones, to compare those fitted on with the others.
    """
    fitted = _without(scored.fitted, _unlike(scored, rows))
    names = list(scored.fitted.detectors)
    seen = scored.scores.summarise(score_range)[[name in fitted.detectors for name in names]]
    info = judge_detectors(fitted, seen)
    left_out = {record.name: record.reason for record in info if record.status != "ok"}
    usable = replace(_without(fitted, left_out), info=info)
    is_kept = [name in usable.detectors for name in names]
    if not all(is_kept):
        columns = np.flatnonzero(is_kept)
        scored = replace(scored, scores=scored.scores.map(_select, columns, n_columns=len(columns)))
    lowest = seen.lowest[[name in usable.detectors for name in fitted.detectors]]
    return replace(scored, fitted=usable), lowest


def _unlike(scored: Scored, rows: NDArray[np.intp]) -> dict[str, str]:
    """Detectors whose scores tell the rows fitted on from the others, with the reason."""
    new_rows = rows[~np.isin(rows, scored.sample)]
    if not len(new_rows) or not len(scored.sample):
        return {}
    unlike: dict[str, str] = {}
    own, new = scored.fitted.scores, scored.scores.take(new_rows)
    for column, name in enumerate(scored.fitted.detectors):
        if not np.isfinite(new[:, column]).all():
            continue  # judged by all rows
        try:
            check_alike(own[:, column], new[:, column], "raise max_fit_rows")
        except ValueError as error:
            unlike[name] = str(error)
    return unlike


def _select(scores: Array, columns: NDArray[np.intp]) -> Array:
    return np.ascontiguousarray(scores[:, columns])


def random_rows(n_rows: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Numbers of START_ROWS rows at random, or of all where they are fewer."""
    rows = start_rows(n_rows, rng)
    return np.arange(n_rows) if rows is None else np.sort(rows)


def whiten_block(scores: Array, scaler: ScoreScaler, prior: ResolvedPrior) -> Array:
    """Rows of the fit's coordinates, for a block of raw scores (n, M)."""
    return np.ascontiguousarray(prior.whiten(scaler.transform(scores)))


def consensus_and_own(scores: Array, scaler: ScoreScaler) -> Array:
    """Consensus score of each row, and its raw scores (n, M) again: what is cut at the estimate."""
    return np.column_stack([scaler.consensus(scores), scores])


@dataclass(frozen=True)
class ScoreSpace:
    """The score space in blocks: raw scores, their map to it, and rows of the fit's coordinates."""

    scores: Blocks
    scaler: ScoreScaler
    rows: Blocks

    def fit_starts(self, settings: RunSettings, starts: list[Start]) -> list[Run | None]:
        """A run from each start, None where its time is over; they share the passes."""
        runs: dict[int, Run] = {}
        with suppress(OutOfTimeError):
            self._fit_into(runs, settings, starts)
        return [runs.get(i) for i in range(len(starts))]

    def _fit_into(self, runs: dict[int, Run], settings: RunSettings, starts: list[Start]) -> None:
        """Put the run of each start into `runs` when it is done, under the start's number."""
        began = time.perf_counter()
        streams = [stream.spawn(1)[0].spawn(2) for stream, _ in starts]
        ascents = self._begin(settings, [start_rng for start_rng, _ in streams])
        while len(runs) < len(starts):
            for i in [i for i, one in enumerate(ascents) if one.is_done and i not in runs]:
                runs[i] = make_run(ascents[i].mixture(), settings, streams[i][1], starts[i][1])
                seconds = time.perf_counter() - began
                settings.progress(f"run {len(runs)}", runs[i].status, seconds)
            settings.deadline.check()
            self._step(ascents)

    def _begin(self, settings: RunSettings, rngs: list[np.random.Generator]) -> list[Ascent]:
        """An ascent from the k-means of each generator."""
        fitted = [self._fit_kmeans(settings, rng) for rng in rngs]
        shape = (settings.n_components, self.scaler, settings.prior)
        packed = self.scores.summarise(_start_block, fitted, *shape)
        return [
            begin(one, settings.prior, settings.max_iter, settings.tol) for one in _unpack(packed)
        ]

    def _fit_kmeans(self, settings: RunSettings, rng: np.random.Generator) -> Any:
        rows = start_rows(self.scores.n_rows, rng)
        chosen = self.scores.take(np.arange(self.scores.n_rows) if rows is None else rows)
        chosen = self.scaler.transform(chosen)
        return fit_kmeans(chosen, settings.n_components, rng, settings.deadline)

    def _step(self, ascents: list[Ascent]) -> None:
        """One iteration of those that are not done, in one pass."""
        active = [i for i, ascent in enumerate(ascents) if not ascent.is_done]
        if active:
            coefficients = [ascents[i].state.coefficients for i in active]
            packed = self.rows.summarise(_summarise_block, coefficients)
            for i, statistics in zip(active, _unpack(packed), strict=True):
                ascents[i] = ascents[i].step(statistics)


def open_score_space(scores: Blocks, scaler: ScoreScaler, prior: ResolvedPrior) -> ScoreSpace:
    """The score space of raw `scores`, ready for passes."""
    return ScoreSpace(scores, scaler, scores.merged(whiten_block, scaler, prior))


def _start_block(
    scores: Array, fitted: list[Any], n_components: int, scaler: ScoreScaler, prior: ResolvedPrior
) -> Array:
    """Packed statistics of a block's rows, put to the nearest centre of each k-means."""
    Z = scaler.transform(scores)
    rows = prior.whiten(Z)
    return _pack([start_statistics(rows, nearest_centres(one, Z), n_components) for one in fitted])


def _summarise_block(rows: Array, coefficients: list[Array]) -> Array:
    """Packed statistics of a block's rows under the coefficients of each run."""
    return _pack([block_statistics(rows, one) for one in coefficients])


def _pack(statistics: list[Statistics]) -> Array:
    """Moments of several runs (R, K, n_features), each with its entropy in a column more."""
    return np.stack(
        [
            np.column_stack([one.moments, np.append(one.entropy, np.zeros(len(one.moments) - 1))])
            for one in statistics
        ]
    )


def _unpack(packed: Array) -> list[Statistics]:
    return [Statistics(np.ascontiguousarray(one[:, :-1]), float(one[0, -1])) for one in packed]
