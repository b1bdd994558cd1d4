"""Rows with scores, some of which have labels: their share of anomalies, and what to label next."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gammagmm._support.checks import (
    as_generator,
    check_count,
    check_number,
    check_probability,
    check_share,
    warn_user,
)
from gammagmm.errors import LabelsWarning
from gammagmm.inspection.exact_interval import Side, exact_interval, p_between
from gammagmm.inspection.known_rows import KnownRows
from gammagmm.inspection.labelled_share import (
    LabelCounts,
    count_labels,
    expected_width,
    labelled_posterior,
    n_for_width,
)
from gammagmm.inspection.suggestions import spread_evenly, spread_over_groups
from gammagmm.posterior.decisions import cut_off, is_anomaly, probability_at
from gammagmm.posterior.gamma_posterior import GammaPosterior
from gammagmm.posterior.track_record import load_reference

__all__ = ["GroupShare", "LabelledRows", "Precision"]

Array = NDArray[np.float64]

RARE = 0.05
"""Probability below which chance does not explain that two lists of rows have no row in common."""


@dataclass(frozen=True)
class GroupShare:
    """The share of anomalies in one group of rows."""

    group: Any
    n_rows: int
    n_labels: int
    n_anomalies: int  # among the labelled rows
    posterior: GammaPosterior


@dataclass(frozen=True)
class Precision:
    """How many of the flagged rows are anomalies, by those that have labels.

    Attributes
    ----------
    n_flagged, n_labels, n_anomalies : int
        Number of flagged rows, of those with a label, and of anomalies among the latter.
    low, high : float
        Ends of the exact 90 % confidence interval of the share of anomalies among the flagged rows.
        It holds if the flagged rows with labels are a random sample of the flagged rows. It is a
        single number if all of them have labels.
    """

    n_flagged: int
    n_labels: int
    n_anomalies: int
    low: float
    high: float

    @property
    def share(self) -> float:
        """Share of anomalies among the flagged rows with labels."""
        return self.n_anomalies / self.n_labels


@dataclass(frozen=True, eq=False, repr=False)
class LabelledRows:
    """Rows with scores, of which some have labels.

    Attributes
    ----------
    scores : ndarray of shape (n_rows,)
        Consensus scores; a higher score is more anomalous.
    known_rows : KnownRows
        The rows that have labels.

    Examples
    --------
    >>> rows = LabelledRows(np.arange(1000.0)).update([3, 500, 900], [0, 0, 1])
    >>> rows
    LabelledRows(1000 rows, 3 labels, mean=0.155, 90% interval 0.029 to 0.320)
    >>> rows.exact_interval(mass=0.95, side="upper")
    (0.001, 0.864)
    """

    scores: Array
    known_rows: KnownRows = field(default_factory=KnownRows.none)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.scores)

    @cached_property
    def posterior(self) -> GammaPosterior:
        """Posterior of the share of anomalies among these rows, from the labels alone.

        Without labels it is the distribution of the share in labelled real tables, see
        `GammaPosterior.reference`.
        """
        return labelled_posterior(self._counts, load_reference())

    @property
    def labels(self) -> NDArray[np.int_]:
        """1 for an anomaly at the mean of the posterior, else 0; a known row has its label."""
        return self.labels_at(self.posterior.mean)

    @property
    def probability(self) -> Array:
        """Probability (n_rows,) that a row is an anomaly, if the ranking is right."""
        ranks = self.known_rows.rows_left(self.n_rows).ranks(self.scores)
        probability = probability_at(self.posterior, ranks.shares_at_least(self.scores))
        probability[self.known_rows.rows] = self.known_rows.labels
        return probability

    def labels_at(self, gamma: float) -> NDArray[np.int_]:
        """Labels if the share of anomalies were `gamma`; known rows keep their labels."""
        check_share("gamma", gamma)
        left = self.known_rows.rows_left(self.n_rows)
        threshold = float(cut_off(self.scores[left.rows], left.share(gamma)))
        labels = is_anomaly(self.scores, threshold)
        labels[self.known_rows.rows] = self.known_rows.labels
        return labels

    def update(self, rows: ArrayLike, labels: ArrayLike, *, at_random: bool = True) -> LabelledRows:
        """The same rows with more `labels` (1 anomaly, 0 normal), of `rows`.

        Pass ``at_random=False`` for rows that were not chosen blindly: they count as themselves
        only. Pass such a list completely, with rows that `suggest` has chosen as well.
        """
        if not isinstance(at_random, bool):
            raise TypeError(f"at_random must be True or False, got {at_random!r}.")
        known = self.known_rows.add(rows, labels, at_random=at_random, n_rows=self.n_rows)
        if not at_random:
            self._check_list(len(known) - len(self.known_rows), len(np.unique(rows)))
        return replace(self, known_rows=known)

    def _check_list(self, n_new: int, n_given: int) -> None:
        """Warn if rows chosen at random are missing in a list of `n_given` other rows."""
        counts = self._counts
        n_rows = counts.n_rows - counts.n_told
        if n_new < n_given or p_between(0, 0, n_new, counts.n_drawn, n_rows) > RARE:
            return
        n_expected = counts.n_drawn * n_new / n_rows
        warn_user(
            f"None of the {counts.n_drawn} rows that were chosen at random is among these "
            f"{n_new} rows, although about {n_expected:.0f} are expected. If some of them belong "
            "to the list, pass their labels with it (at_random=False; --known on the command "
            "line); otherwise the estimate is biased.",
            LabelsWarning,
        )

    def suggest(self, n: int = 30, *, by: Any = None, random_state: Any = None) -> NDArray[np.int_]:
        """Positions of `n` rows without labels, ordered so that you can stop after any row.

        They are spread evenly over the ranking from a random start. `by` (n_rows,) are groups of
        the rows: each group then has rows in proportion to its size. `n` must be large enough for
        one row of each group without a label.
        """
        check_count("n", n, 1)
        unknown = self.known_rows.unknown(self.n_rows)
        if n > len(unknown):
            raise ValueError(
                f"n must be at most {len(unknown)}, the number of rows without a label, got {n}."
            )
        ranked = unknown[np.argsort(-self.scores[unknown], kind="stable")]
        rng = as_generator(random_state)
        if by is None:
            return spread_evenly(ranked, rng)[:n]
        groups = _check_groups(by, self.n_rows)
        self._check_group_sizes(groups, unknown, n)
        return spread_over_groups(ranked, groups[ranked], n, rng)

    def _check_group_sizes(self, groups: NDArray[Any], unknown: NDArray[np.int_], n: int) -> None:
        """Refuse an `n` that leaves groups without a label, since the sample is proportional."""
        names, counts = np.unique(groups[unknown], return_counts=True)
        is_new = ~np.isin(names, groups[self.known_rows.rows])
        n_needed = int(np.ceil(len(unknown) / counts[is_new].min())) if is_new.any() else 0
        if n < n_needed:
            smallest = names[is_new][np.argmin(counts[is_new])]
            raise ValueError(
                f"n must be at least {n_needed} for a row of each group, got {n}: the group "
                f"{smallest.item()!r} has {counts[is_new].min()} of {len(unknown)} rows. Ask for "
                "more rows, or put small groups together."
            )

    def expected_width(self, n: int, *, mass: float = 0.9) -> float:
        """Expected width of the interval of probability `mass` after `n` more labels."""
        check_count("n", n, 0)
        check_probability("mass", mass)
        n_left = self._counts.n_left
        if n > n_left:
            raise ValueError(
                f"n must be at most {n_left}, the number of rows without a label, got {n}."
            )
        return expected_width(self._counts, load_reference(), n, mass)

    def n_for_width(self, width: float, *, mass: float = 0.9) -> int:
        """Number of further labels after which the interval is expected to be `width` wide."""
        check_number("width", width)
        check_probability("mass", mass)
        if not 0.0 < width <= 1.0:
            raise ValueError(f"width must be above 0 and at most 1, got {width!r}.")
        return n_for_width(self._counts, load_reference(), width, mass)

    def exact_interval(self, mass: float = 0.9, *, side: Side = "both") -> tuple[float, float]:
        """Confidence interval of the share from the labels alone, without a prior.

        If the rows with ``at_random=True`` were drawn at random from those without other labels,
        it contains the true share with at least the probability `mass`, whatever the share is.
        Each end of a two-sided interval holds by itself with the probability (1 + `mass`) / 2.
        `side` "upper" gives "at most", "lower" gives "at least"; the other end is then certain.
        """
        check_probability("mass", mass)
        if side not in get_args(Side):
            raise ValueError(f"side must be 'both', 'upper' or 'lower', got {side!r}.")
        counts = self._counts
        ends = exact_interval(
            counts.n_rows - counts.n_told, counts.n_drawn, counts.n_found, mass, side
        )
        low, high = ((counts.n_told_anomalies + end) / counts.n_rows for end in ends)
        return low, high

    def by_group(self, groups: Any) -> list[GroupShare]:
        """The share of anomalies in each of the `groups` (n_rows,), from the labels in it."""
        names, place = np.unique(_check_groups(groups, self.n_rows), return_inverse=True)
        known, found = self.known_rows, []
        of_known = place[known.rows]
        for group, name in enumerate(names.tolist()):
            own = of_known == group
            inside = KnownRows(known.rows[own], known.labels[own], known.at_random[own])
            n_rows = int((place == group).sum())
            posterior = labelled_posterior(count_labels(inside, n_rows), load_reference())
            n_anomalies = int(inside.labels.sum())
            found.append(GroupShare(name, n_rows, len(inside), n_anomalies, posterior))
        return found

    def precision_of(self, flagged: NDArray[np.int_]) -> Precision | None:
        """Share of anomalies among the rows `flagged`; None if none of them has a label."""
        labels = self.known_rows.labels[np.isin(self.known_rows.rows, flagged)]
        if not len(labels):
            return None
        n_flagged, n_anomalies = len(flagged), int(labels.sum())
        low, high = exact_interval(n_flagged, len(labels), n_anomalies, 0.9)
        return Precision(n_flagged, len(labels), n_anomalies, low / n_flagged, high / n_flagged)

    @property
    def _counts(self) -> LabelCounts:
        return count_labels(self.known_rows, self.n_rows)

    def __repr__(self) -> str:
        answer = repr(self.posterior).removeprefix("GammaPosterior(").removesuffix(")")
        return f"LabelledRows({self.n_rows} rows, {len(self.known_rows)} labels, {answer})"


def _check_groups(groups: Any, n_rows: int) -> NDArray[Any]:
    """`groups` as an array with one value a row."""
    values = np.asarray(groups)
    if values.shape != (n_rows,):
        raise ValueError(
            f"The groups must have one value for each of the {n_rows} rows, got the shape "
            f"{values.shape}."
        )
    # Text and missing values together cannot be sorted.
    return values.astype(str) if values.dtype == object else values
