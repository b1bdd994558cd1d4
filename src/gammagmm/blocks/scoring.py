"""Rows in blocks -> raw scores in blocks, by detectors fitted on a sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm.blocks.collection import Blocks
from gammagmm.detectors.fit import (
    FitSettings,
    FittedDetectors,
    Sample,
    check_alike,
    combine_scores,
    fit_detectors,
    given_scores,
    score_rows,
)
from gammagmm.detectors.presets import scores_batches
from gammagmm.detectors.usable import ScoreRange, judge_detectors, score_range
from gammagmm.errors import DetectorError
from gammagmm.mixture.fit import start_rows
from gammagmm.mixture.score_space import ScoreScaler

__all__ = [
    "Scored",
    "consensus_and_own",
    "fit_sample",
    "given_blocks",
    "keep_usable_blocks",
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
    places = np.searchsorted(rows, _drawn_rows(X.n_rows, settings.max_fit_rows, rng))
    sample = X.take(rows)
    fitted = fit_detectors(detectors, sample, rng, settings, Sample(places, X.n_rows))
    if len(rows) < X.n_rows and not settings.deadline.is_over:
        fitted = _able_to_score(fitted, sample)
    return fitted, rows


def score_all(X: Blocks, fitted: FittedDetectors, rows: NDArray[np.intp]) -> Scored:
    """Scores of all rows by detectors that were fitted on `rows`.

    The rows that were fitted keep the scores of the fit; the others are scored as new rows.
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
    """Numbers of the rows to fit detectors on; a fit in memory would draw the same rows."""
    return np.sort(_drawn_rows(n_rows, max_fit_rows, rng))


def _drawn_rows(
    n_rows: int, max_fit_rows: int | None, rng: np.random.Generator
) -> NDArray[np.intp]:
    """The rows of the sample in the order in which they are drawn."""
    if max_fit_rows is None or n_rows <= max_fit_rows:
        return np.arange(n_rows)
    # The first child that `fit_detectors` will spawn from `rng`, without spawning it.
    (first,) = deepcopy(rng).spawn(1)
    return first.choice(n_rows, max_fit_rows, replace=False)


def _able_to_score(fitted: FittedDetectors, sample: Array) -> FittedDetectors:
    """The detectors that can score a new row; the records of the others say why they cannot."""
    failed: dict[str, str] = {}
    for name, detector in fitted.detectors.items():
        if scores_batches(detector):
            failed[name] = "its score for a row depends on the other rows in the same call"
            continue
        try:
            score_rows({name: detector}, sample[:2])
        except DetectorError as error:
            failed[name] = error.what
    return fitted.without(failed)


def _score_block(X: Array, detectors: dict[str, Any], own: tuple[NDArray[np.intp], Array]) -> Array:
    """Raw scores (n, M) of a block; `own` holds places and scores of the rows fitted on."""
    return combine_scores(X, *own, partial(_score_new, detectors))


def _score_new(detectors: dict[str, Any], X: Array) -> Array:
    """Scores (n, M) of new rows; NaN from a detector that fails, which is left out later."""
    scores = np.full((len(X), len(detectors)), np.nan)
    for column, named in enumerate(detectors.items()):
        with suppress(DetectorError):
            scores[:, column] = score_rows(dict([named]), X)[:, 0]
    return scores


def given_blocks(X: Blocks, names: Sequence[str] | None) -> Scored:
    """Precomputed scores, under `names` or score_1, score_2, ..."""
    empty = given_scores(np.empty((0, X.n_columns)), names)
    info = [replace(record, n_rows=X.n_rows) for record in empty.info]
    kept = X.map(np.asarray)
    return Scored(replace(empty, info=info), kept, np.empty(0, dtype=np.intp))


def keep_usable_blocks(scored: Scored, rows: NDArray[np.intp]) -> tuple[Scored, ScoreRange]:
    """The detectors whose scores can be used, and the range of the scores of each.

    `rows` are random rows, by which the rows fitted on are compared with the others.
    """
    fitted = scored.fitted.without(_unlike(scored, rows))
    names = list(scored.fitted.detectors)
    seen = scored.scores.summarise(score_range)[[name in fitted.detectors for name in names]]
    usable = fitted.with_info(judge_detectors(fitted, seen))
    is_kept = [name in usable.detectors for name in names]
    if not all(is_kept):
        columns = np.flatnonzero(is_kept)
        scored = replace(scored, scores=scored.scores.map(_select, columns, n_columns=len(columns)))
    used = seen[[name in usable.detectors for name in fitted.detectors]]
    return replace(scored, fitted=usable), used


def _unlike(scored: Scored, rows: NDArray[np.intp]) -> dict[str, str]:
    """Detectors that score the rows they were fitted on differently, with the reason."""
    new_rows = rows[~np.isin(rows, scored.sample)]
    if not len(new_rows) or not len(scored.sample):
        return {}
    unlike: dict[str, str] = {}
    own, new = scored.fitted.scores, scored.scores.take(new_rows)
    for column, name in enumerate(scored.fitted.detectors):
        if not np.isfinite(new[:, column]).all():
            continue  # all rows decide about it
        try:
            check_alike(own[:, column], new[:, column], "raise max_fit_rows")
        except ValueError as error:
            unlike[name] = str(error)
    return unlike


def _select(scores: Array, columns: NDArray[np.intp]) -> Array:
    return np.ascontiguousarray(scores[:, columns])


def random_rows(n_rows: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Numbers of START_ROWS random rows, or of all rows where there are fewer."""
    rows = start_rows(n_rows, rng)
    return np.arange(n_rows) if rows is None else np.sort(rows)


def consensus_and_own(scores: Array, scaler: ScoreScaler) -> Array:
    """Consensus score of each row beside its raw scores: shape (n, 1 + M)."""
    return np.column_stack([scaler.consensus(scores), scores])
