"""How often the model ranges of gammaGMM contained the truth, and which shares of anomalies occur.

Both were measured on labelled real tables and are stored in ``track_record.json``, which
``python -m experiments.track_record`` writes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm.posterior.betas import BetaMixture

__all__ = [
    "Level",
    "ReferenceSlopes",
    "TrackRecord",
    "load_label_prior",
    "load_reference",
    "load_slopes",
    "load_track_record",
]

FILE = "track_record.json"
UNIFORM_PART = 0.1
"""Weight of Beta(1, 1) in the prior of labels, chosen in experiments/label_prior.py."""


@dataclass(frozen=True)
class Level:
    """How often the model ranges of one nominal probability contained the true share.

    Attributes
    ----------
    mass : float
        The nominal probability.
    held : float
        The share of the tables whose range contained the truth.
    standard_error : float
        Standard error of `held`.
    """

    mass: float
    held: float
    standard_error: float


@dataclass(frozen=True)
class TrackRecord:
    """How well the method did on labelled real tables.

    Attributes
    ----------
    n_tables : int
        Number of tables.
    levels : tuple of Level
        How often the model ranges contained the true share, by their nominal probability: each
        level has the attributes ``mass``, ``held`` and ``standard_error``.
    width_30_labels : float
        Mean width of the 90 % interval after 30 rows of each table were labelled.
    held_30_labels : float
        The share of the tables in which this interval contained the truth.
    """

    n_tables: int
    levels: tuple[Level, ...]
    width_30_labels: float
    held_30_labels: float

    def held(self, mass: float = 0.9) -> float:
        """The share of the tables whose range contained the truth.

        Parameters
        ----------
        mass : float, default=0.9
            Nominal probability of the range, one of those in `levels`.

        Returns
        -------
        float
            The share of the tables.

        Raises
        ------
        ValueError
            There is no level of this probability.
        """
        for level in self.levels:
            if np.isclose(level.mass, mass):
                return level.held
        known = ", ".join(f"{level.mass:g}" for level in self.levels)
        raise ValueError(f"mass must be one of {known}, got {mass!r}.")


@dataclass(frozen=True, eq=False)
class ReferenceSlopes:
    """How steeply P(anomaly) rises along rankings of labelled real tables.

    Each array has the shape (S,). `slopes` are those of the logistic curves of
    `gammagmm.labels.anomaly_probability`. `unlabelled` are the weights under which the labels of
    all rows of the tables are most likely if nothing is known of a table. `consensus` and `learned`
    are weights of the slopes as the tables have them, for the consensus and for rankings that are
    learned from labels.
    """

    slopes: NDArray[np.float64]
    unlabelled: NDArray[np.float64]
    consensus: NDArray[np.float64]
    learned: NDArray[np.float64]


@cache
def load_track_record() -> TrackRecord:
    """The track record in the package."""
    data = _content()
    levels = tuple(Level(**level) for level in data["levels"])
    widths = data["width_30_labels"], data["held_30_labels"]
    return TrackRecord(data["n_tables"], levels, *widths)


def load_reference() -> BetaMixture:
    """The distribution of the shares of anomalies in the labelled tables."""
    parts = _content()["reference"]
    weights, a, b = (np.array(parts[name]) for name in ("weights", "a", "b"))
    return BetaMixture(weights, a, b)


def load_slopes() -> ReferenceSlopes:
    """The slopes of the labelled tables."""
    parts = _content()["slopes"]
    names = ("slopes", "unlabelled", "consensus", "learned")
    return ReferenceSlopes(*(np.array(parts[name]) for name in names))


def load_label_prior() -> BetaMixture:
    """The prior of the share for labels: the reference, with a part Beta(1, 1).

    The shares of the labelled tables end at about 30 %. The part lets labels show a larger one.
    """
    return with_uniform_part(load_reference(), UNIFORM_PART)


def with_uniform_part(reference: BetaMixture, weight: float) -> BetaMixture:
    """The mixture with a part Beta(1, 1) of this `weight`, above 0 and below 1."""
    return BetaMixture(
        np.append((1.0 - weight) * reference.weights, weight),
        np.append(reference.a, 1.0),
        np.append(reference.b, 1.0),
    )


@cache
def _content() -> dict[str, Any]:
    text = files("gammagmm.posterior").joinpath(FILE).read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    return content
