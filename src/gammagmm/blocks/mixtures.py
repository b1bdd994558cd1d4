"""Score space in blocks -> mixtures, with one pass over the rows for each iteration."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.processes import OutOfTimeError
from gammagmm.blocks.collection import Blocks
from gammagmm.mixture.fit import Ascent, begin, fit_kmeans, nearest_centres, start_rows
from gammagmm.mixture.prior import ResolvedPrior
from gammagmm.mixture.score_space import ScoreScaler
from gammagmm.mixture.statistics import Statistics, block_statistics, start_statistics
from gammagmm.posterior.runs import Run, RunSettings, Start, make_run

__all__ = ["ScoreSpace", "open_score_space"]

Array = NDArray[np.float64]


def whiten_block(scores: Array, scaler: ScoreScaler, prior: ResolvedPrior) -> Array:
    """A block of raw scores (n, M) in the coordinates of the mixture's fit."""
    return np.ascontiguousarray(prior.whiten(scaler.transform(scores)))


@dataclass(frozen=True)
class ScoreSpace:
    """The score space in blocks: raw scores, the scaler, and rows in the fit's coordinates."""

    scores: Blocks
    scaler: ScoreScaler
    rows: Blocks

    def fit_starts(self, settings: RunSettings, starts: list[Start]) -> list[Run | None]:
        """A run from each start, None where the deadline came first; all share the passes."""
        runs: dict[int, Run] = {}
        with suppress(OutOfTimeError):
            self._fit_into(runs, settings, starts)
        return [runs.get(i) for i in range(len(starts))]

    def _fit_into(self, runs: dict[int, Run], settings: RunSettings, starts: list[Start]) -> None:
        """Add the run of each start to `runs` when it is done, by the start's number."""
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
        """One ascent for each generator, from its own k-means."""
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
        """One iteration of the ascents that are not done, in one pass."""
        active = [i for i, ascent in enumerate(ascents) if not ascent.is_done]
        if active:
            coefficients = [ascents[i].state.coefficients for i in active]
            packed = self.rows.summarise(_summarise_block, coefficients)
            for i, statistics in zip(active, _unpack(packed), strict=True):
                ascents[i] = ascents[i].step(statistics)


def open_score_space(scores: Blocks, scaler: ScoreScaler, prior: ResolvedPrior) -> ScoreSpace:
    """The score space of raw `scores`, with its rows on the workers."""
    return ScoreSpace(scores, scaler, scores.merged(whiten_block, scaler, prior))


def _start_block(
    scores: Array, fitted: list[Any], n_components: int, scaler: ScoreScaler, prior: ResolvedPrior
) -> Array:
    """Packed statistics of a block whose rows belong to the nearest centre of each k-means."""
    Z = scaler.transform(scores)
    rows = prior.whiten(Z)
    return _pack([start_statistics(rows, nearest_centres(one, Z), n_components) for one in fitted])


def _summarise_block(rows: Array, coefficients: list[Array]) -> Array:
    """Packed statistics of a block under the coefficients of each run."""
    return _pack([block_statistics(rows, one) for one in coefficients])


def _pack(statistics: list[Statistics]) -> Array:
    """Moments of several runs (R, K, n_features + 1); the last column holds the entropy."""
    return np.stack(
        [
            np.column_stack([one.moments, np.append(one.entropy, np.zeros(len(one.moments) - 1))])
            for one in statistics
        ]
    )


def _unpack(packed: Array) -> list[Statistics]:
    return [Statistics(np.ascontiguousarray(one[:, :-1]), float(one[0, -1])) for one in packed]
