"""Rows with scores, some of which have labels: their share of anomalies, and what to label next."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gammagmm._support.checks import (
    as_generator,
    check_count,
    check_number,
    check_probability,
    check_share,
)
from gammagmm.labels.anomaly_probability import Calibration, calibrate
from gammagmm.labels.exact_interval import Side
from gammagmm.labels.group_shares import GroupShares, check_groups, group_shares
from gammagmm.labels.known_rows import KnownRows, Purpose, RowsLeft, check_rows_known
from gammagmm.labels.label_error import (
    NO_ERROR,
    Agreement,
    agreement,
    check_label_error,
    p_anomaly,
    posterior_with_errors,
    without_errors,
)
from gammagmm.labels.label_warnings import check_list, check_not_top, check_rates
from gammagmm.labels.labelled_share import LabelCounts, count_labels, expected_width, n_for_width
from gammagmm.labels.precision import (
    Precision,
    labels_at_top,
    n_for_precision,
    precision_at,
    precision_of,
)
from gammagmm.labels.recall import (
    AnomaliesLeft,
    RecallCheck,
    anomalies_left,
    n_to_certify,
)
from gammagmm.labels.search import rows_to_find
from gammagmm.labels.share_by_labels import (
    any_look_shares,
    exact_shares,
    has_errors,
    posterior_by_labels,
)
from gammagmm.labels.sheet import RECALL
from gammagmm.labels.suggestions import by_falling_score, spread_evenly, spread_over_groups
from gammagmm.posterior.decisions import cut_off, exact_ranks, is_anomaly, probability_at
from gammagmm.posterior.gamma_posterior import GammaPosterior, posterior_words
from gammagmm.posterior.track_record import load_label_prior, load_reference, load_slopes
from gammagmm.table.sample import Sample

__all__ = ["LabelledRows", "ShareIfWrong"]

Array = NDArray[np.float64]

LABEL_ERRORS = 0.02, 0.05
"""Shares of wrong labels for which the answer tells what it would be."""


@dataclass(frozen=True)
class ShareIfWrong:
    """The share of anomalies if some of the labels were wrong, by `LabelledRows.posterior_if`.

    Attributes
    ----------
    label_error : float
        Probability that a label is wrong.
    mean : float
        Posterior mean of the share.
    low : float
        Lower end of the 90 % interval.
    high : float
        Upper end of this interval.
    """

    label_error: float
    mean: float
    low: float
    high: float


@dataclass(frozen=True, eq=False, repr=False)
class LabelledRows:
    """Rows with scores, of which some have labels.

    The page "Labels for the ranking, groups and batches" of the documentation shows it in use.

    Attributes
    ----------
    scores : ndarray of shape (n_rows,)
        Scores of the ranking in use; a higher score is more anomalous.
    known_rows : KnownRows, default=KnownRows.none()
        The rows that have labels.
    honest_scores : ndarray of shape (n_rows,) or None, default=None
        The same for a ranking that was learned from labels, with the scores of known rows by
        rankings that were not learned from their own labels; None stands for `scores`.
    part : Sample or None, default=None
        Which rows of a larger table these are; None for a table of their own.
    fitted : GammaPosterior or None, default=None
        The posterior without labels; None for the distribution of the share in labelled real
        tables.
    label_error : float or tuple of two floats, default=(0.0, 0.0)
        The probability that a label is wrong, below 0.5; two numbers are those that a normal row is
        labelled an anomaly, and that an anomaly is labelled normal. The posterior, the
        probabilities, the intervals from the labels and `left` take them into account as soon as
        one of the rows was chosen at random. No row is known for sure then: the share of the
        posterior and of the intervals is that of the rows from which these rows were drawn, without
        lists. Other rows say nothing about it, but those of "find" are subtracted in `left`.
        Methods that need labels that are right raise an error.
    consensus : ndarray of shape (n_rows,) or None, default=None
        Scores by the detectors alone, for the purpose "find" beside a ranking that was learned from
        labels; None stands for `scores`.

    Examples
    --------
    >>> rows = LabelledRows(np.arange(1000.0)).update([3, 500, 900], [0, 0, 1])
    >>> rows
    LabelledRows(1000 rows, 3 labels, mean=0.188, 90% interval 0.032 to 0.468)
    >>> rows.exact_interval(mass=0.95, side="upper")
    (0.001, 0.864)
    """

    scores: Array
    known_rows: KnownRows = field(default_factory=KnownRows.none)
    honest_scores: Array | None = None
    part: Sample | None = None
    fitted: GammaPosterior | None = None
    label_error: tuple[float, float] = NO_ERROR
    consensus: Array | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "label_error", check_label_error(self.label_error))

    @cached_property
    def sample(self) -> Sample:
        """Which rows of the table these are."""
        return Sample.whole(len(self.scores)) if self.part is None else self.part

    @property
    def n_rows(self) -> int:
        """Number of rows of the table, of which these may be a sample."""
        return self.sample.n_rows

    @cached_property
    def posterior(self) -> GammaPosterior:
        """Posterior of the share of anomalies among these rows, from the labels alone.

        Without labels it is that of the fit or, for a batch, the distribution of the share in
        labelled real tables, see `GammaPosterior.reference`.
        """
        if self.fitted is not None and not len(self.known_rows):
            return self.fitted
        return self._by_labels

    @property
    def _has_errors(self) -> bool:
        return has_errors(self._counts, self.label_error)

    @property
    def labels(self) -> NDArray[np.int_]:
        """1 for an anomaly at the mean of the posterior, else 0; a known row has its label."""
        return self.labels_at(self.cut_share)

    @cached_property
    def cut_share(self) -> float:
        """The share of anomalies at which the rows are cut.

        This is the mean of the posterior. If labels may be wrong, that of a share that is clipped
        to what the picked rows leave possible.
        """
        posterior, left = self.posterior, self.rows_left
        if not self._has_errors or left.n_anomalies is None:
            return posterior.mean
        low = left.n_anomalies / left.n_rows
        high = low + left.n_left / left.n_rows
        inside = posterior.betas.restrict(low, high).moment(1)
        return float(low * posterior.cdf(low) + inside + high * posterior.sf(high))

    @property
    def rows_left(self) -> RowsLeft:
        """The rows to rank and to cut: those without a label, or all where none or all have one."""
        left, counts = self.known_rows.rows_left(self.sample), self._counts
        if not self._has_errors or left.n_anomalies is None:
            return left
        # The share is that of the rows outside the sample and lists, which have the picked ones.
        called = counts.n_picked_anomalies / max(counts.n_picked, 1)
        n_anomalies = counts.n_picked * without_errors(called, self.label_error)
        return replace(left, n_rows=counts.n_outside, n_anomalies=n_anomalies)

    @property
    def rows_outside_lists(self) -> RowsLeft:
        """The rows that are as new rows are: those outside lists, or all where all are in one."""
        outside = self.known_rows.rows_outside_lists(self.sample)
        return replace(outside, n_anomalies=None) if self._has_errors else outside

    @property
    def probability(self) -> Array:
        """Calibrated probability (n_rows,) that a row is an anomaly; a known row has its label.

        If labels may be wrong, a known row has the probability that follows from its score and its
        label. The probabilities of the other rows add up to the expected number of anomalies: with
        labels that of `left`, and without labels that of the distribution of the share in labelled
        real tables.
        """
        probability, known = self.calibration(self.scores), self.known_rows
        probability[known.rows] = known.labels
        if self._has_errors:
            before = self.calibration(self._honest_scores[known.rows])
            probability[known.rows] = p_anomaly(before, known.labels, self.label_error)
        return probability

    @cached_property
    def calibration(self) -> Calibration:
        """The probability of a row, which may be a new one, by its score."""
        known, honest_scores = self.known_rows, self._honest_scores
        outside, left = self.rows_outside_lists, self.rows_left
        drawn, reference = known[known.at_random], load_slopes()
        if self.honest_scores is not None:
            weights = reference.learned
        else:
            weights = reference.consensus if len(drawn) else reference.unlabelled
        return calibrate(
            honest_scores[outside.rows],
            self.scores[left.rows],
            self._share_left,
            (honest_scores[drawn.rows], drawn.labels),
            (reference.slopes, weights),
            self.label_error,
        )

    @property
    def _share_left(self) -> float:
        """Expected share of anomalies among the rows without a label."""
        if not len(self.known_rows):
            return load_reference().moment(1)
        return self.rows_left.share(self.cut_share)

    @property
    def rank_probability(self) -> Array:
        """P(gamma > share of rows scored at least as high) (n_rows,), the paper's quantity.

        This is the posterior probability that a row belongs to the anomalous share, which is the
        probability that it is an anomaly only if the ranking is right. With labels, the rows left
        are ranked after the known anomalies, and a known row has its label.
        """
        if not len(self.known_rows):
            ranks = exact_ranks(self.scores[: self.sample.n_sampled])
            return probability_at(self.posterior, ranks.shares_at_least(self.scores))
        ranks = self.rows_left.ranks(self.scores)
        probability = probability_at(self.posterior, ranks.shares_at_least(self.scores))
        probability[self.known_rows.rows] = self.known_rows.labels
        return probability

    def labels_at(self, gamma: float) -> NDArray[np.int_]:
        """Labels if the share of anomalies were `gamma`.

        Parameters
        ----------
        gamma : float
            Share of anomalies, from 0 to 1.

        Returns
        -------
        ndarray of shape (n_rows,)
            1 for an anomaly, 0 for a normal row; known rows keep their labels.
        """
        check_share("gamma", gamma)
        left = self.rows_left
        threshold = float(cut_off(self.scores[left.rows], left.share(gamma)))
        labels = is_anomaly(self.scores, threshold)
        labels[self.known_rows.rows] = self.known_rows.labels
        return labels

    def update(
        self,
        rows: ArrayLike,
        labels: ArrayLike,
        *,
        at_random: bool = True,
        purpose: Purpose = "share",
    ) -> LabelledRows:
        """The same rows with more labels.

        Parameters
        ----------
        rows : array-like of shape (n,)
            Positions of rows, from 0.
        labels : array-like of shape (n,)
            1 for an anomaly, 0 for a normal row. The label of a row that has one already is
            replaced; a row with the purpose "find" whose label is corrected keeps this purpose.
        at_random : bool, default=True
            Pass False for rows that were not chosen blindly: they count as themselves only. Pass a
            list of such rows completely, with those that `suggest` has chosen.
        purpose : "share" or "find", default="share"
            Pass "find" for rows that ``suggest(purpose="find")`` has chosen; `at_random` does not
            matter then.

        Returns
        -------
        LabelledRows
            The new value.

        Raises
        ------
        ValueError
            A row is given twice with both labels, or does not exist.
        """
        if not isinstance(at_random, bool):
            raise TypeError(f"at_random must be True or False, got {at_random!r}.")
        picked = _check_purpose(purpose) == "find"
        numbers = check_rows_known(rows, self.n_rows)
        if len(lacking := self.sample.not_held(numbers)):
            raise ValueError(f"The row {lacking[0]} of the table is not among the rows held.")
        places = self.sample.places(numbers)
        known = self.known_rows.add(
            places,
            labels,
            at_random=at_random,
            picked=picked,
            n_rows=self.sample.n_held,
            sample=self.part,
        )
        if not at_random and not picked:
            check_list(self._counts, len(known) - len(self.known_rows), len(np.unique(rows)))
        check_not_top(self.known_rows, known, self._honest_scores, self.sample.n_sampled)
        updated = replace(self, known_rows=known)
        check_rates(updated._counts.n_drawn, updated._counts.n_found, self.label_error)
        return updated

    def suggest(
        self,
        n: int = 30,
        *,
        purpose: Purpose = "share",
        spread: bool = True,
        by: Any = None,
        random_state: Any = None,
    ) -> NDArray[np.int_]:
        """Positions of rows to label, ordered so that you can stop after any row.

        Parameters
        ----------
        n : int, default=30
            Number of rows.
        purpose : "share" or "find", default="share"
            "share" spreads the rows evenly over the ranking from a random start. Rows that were
            labelled with the purpose "find" take part as well, because the sample would be biased
            without them; other rows with labels do not. "find" gives the first rows of the ranking
            without labels. If it was learned from labels, the `consensus` is tried as well, and is
            followed once it finds more.
        spread : bool, default=True
            Pass False for simple random rows in a random order, without regard to the ranking:
            `interval_at_any_look` is proved for these. Only for the purpose "share", without
            groups.
        by : array-like of shape (n_rows,), default=None
            Groups of the rows: each group then has rows in proportion to its size, and `n` must be
            large enough for one row of each group without a label. Only for the purpose "share".
        random_state : int or Generator or RandomState or None, default=None
            Chooses the random start of the purpose "share", and the order of rows with the same
            score for both purposes.

        Returns
        -------
        ndarray of shape (n,)
            Positions of rows, from 0.

        Raises
        ------
        ValueError
            There are fewer than `n` rows to choose from, or `n` is too small for the groups.
        """
        check_count("n", n, 1)
        is_find = _check_purpose(purpose) == "find"
        if is_find and by is not None:
            raise ValueError("by needs purpose='share': the first rows have no groups.")
        if not spread and (is_find or by is not None):
            raise ValueError("spread=False needs purpose='share' and no groups.")
        known, n_held = self.known_rows, self.sample.n_sampled
        unknown = (known if is_find else known[~known.picked]).unknown(n_held)
        if n > len(unknown):
            which = "without a label" if is_find else "outside the sample and the lists so far"
            raise ValueError(
                f"n must be at most {len(unknown)}, the number of rows {which}, got {n}."
            )
        rng = as_generator(random_state)
        if not spread:
            return self.sample.number(unknown[np.argsort(rng.random(len(unknown)))[:n]])
        if is_find:
            return self.sample.number(rows_to_find(self, unknown, n, rng))
        ranked = by_falling_score(unknown, self.scores[unknown], rng)
        if by is None:
            return self.sample.number(spread_evenly(ranked, rng)[:n])
        groups = check_groups(by, self.sample.n_sampled)
        self._check_group_sizes(groups, unknown, n)
        return self.sample.number(spread_over_groups(ranked, groups[ranked], n, rng))

    def _check_group_sizes(self, groups: NDArray[Any], unknown: NDArray[np.int_], n: int) -> None:
        """Refuse an `n` that leaves groups without a label, since the sample is proportional."""
        names, counts = np.unique(groups[unknown], return_counts=True)
        known = self.known_rows
        drawn = known.rows[~known.picked]
        is_new = ~np.isin(names, groups[drawn[drawn < len(groups)]])
        n_needed = int(np.ceil(len(unknown) / counts[is_new].min())) if is_new.any() else 0
        if n < n_needed:
            smallest = names[is_new][np.argmin(counts[is_new])]
            raise ValueError(
                f"n must be at least {n_needed} for a row of each group, got {n}: the group "
                f"{smallest.item()!r} has {counts[is_new].min()} of {len(unknown)} rows. Ask for "
                "more rows, or put small groups together."
            )

    def expected_width(self, n: int, *, mass: float = 0.9) -> float:
        """Expected width of the credible interval after more labels.

        Parameters
        ----------
        n : int
            Number of further labels.
        mass : float, default=0.9
            Probability of the interval.

        Returns
        -------
        float
            Mean of the width over the possible labels.
        """
        check_count("n", n, 0)
        check_probability("mass", mass)
        self._check_right_labels("expected_width")
        n_outside = self._counts.n_outside
        if n > n_outside:
            raise ValueError(
                f"n must be at most {n_outside}, the number of rows outside the sample and the "
                f"lists so far, got {n}."
            )
        return expected_width(self._counts, load_label_prior(), n, mass)

    def n_for_width(self, width: float, *, mass: float = 0.9) -> int:
        """Number of further labels after which the interval is expected to be `width` wide.

        Parameters
        ----------
        width : float
            Width of the interval, above 0 and at most 1.
        mass : float, default=0.9
            Probability of the interval.

        Returns
        -------
        int
            The smallest number of labels whose expected width is at most `width`.
        """
        check_number("width", width)
        check_probability("mass", mass)
        self._check_right_labels("n_for_width")
        if not 0.0 < width <= 1.0:
            raise ValueError(f"width must be above 0 and at most 1, got {width!r}.")
        return n_for_width(self._counts, load_label_prior(), width, mass)

    def exact_interval(self, mass: float = 0.9, *, side: Side = "both") -> tuple[float, float]:
        """Confidence interval of the share from the labels alone, for a fixed number of them.

        The number of labels must have been decided before; `interval_at_any_look` is for labels
        that one looks at while they come in.

        If the rows with ``at_random=True`` were drawn at random from all rows outside lists
        (``at_random=False``), it contains the true share with at least the probability `mass`,
        whatever the share is. Each end of a two-sided interval holds by itself with the probability
        (1 + `mass`) / 2.

        With a `label_error`, no row is known for sure. The interval is then that of the share among
        the rows from which these rows were drawn, however many of them have labels.

        Parameters
        ----------
        mass : float, default=0.9
            Probability with which the interval contains the true share.
        side : "both" or "upper" or "lower", default="both"
            "upper" gives the interval of "at most", "lower" that of "at least"; the other end is
            then certain.

        Returns
        -------
        tuple of two floats
            Both ends of the interval.
        """
        check_probability("mass", mass)
        if side not in get_args(Side):
            raise ValueError(f"side must be 'both', 'upper' or 'lower', got {side!r}.")
        return exact_shares(self._counts, self.label_error, mass, side)

    def interval_at_any_look(self, mass: float = 0.9) -> tuple[float, float]:
        """Confidence interval of the share from the labels, for any number of them.

        If rows with ``at_random=True`` are labelled one after the other in simple random order
        (``suggest(spread=False)``), the intervals after each label all contain the true share with
        at least the probability `mass`, whatever the share is. So you can look after every label
        and stop when you like. It is wider than `exact_interval`. For rows that are spread over the
        ranking this is not proved; if the ranking has a pattern, it can be wrong. With a
        `label_error`, the share is that of the rows from which these rows were drawn.

        Parameters
        ----------
        mass : float, default=0.9
            Probability with which all intervals contain the true share.

        Returns
        -------
        tuple of two floats
            Both ends of the interval.

        Examples
        --------
        >>> rows = LabelledRows(np.arange(1000.0)).update([3, 500, 900], [0, 0, 1])
        >>> rows.interval_at_any_look(), rows.exact_interval()
        ((0.007, 0.916), (0.017, 0.864))
        """
        check_probability("mass", mass)
        return any_look_shares(self._counts, self.label_error, mass)

    def by_group(self, groups: Any) -> GroupShares:
        """The flagged rows in each group of rows, and its share by its own labels.

        Parameters
        ----------
        groups : array-like of shape (n_rows,)
            The group of each row.

        Returns
        -------
        GroupShares
            A tuple of `GroupShare`, the largest groups first. ``pandas.DataFrame(groups)`` has a
            line for each.
        """
        n_sampled, known = self.sample.n_sampled, self.known_rows
        return group_shares(
            check_groups(groups, n_sampled),
            self.labels[:n_sampled] == 1,
            known[known.rows < n_sampled],
            self.label_error,
        )

    def precision_of(self, flagged: NDArray[np.int_]) -> Precision | None:
        """Share of anomalies among flagged rows.

        It comes from the flagged rows that were chosen at random. Rows of a list and rows that were
        picked to find anomalies are known, but no sample of the others.

        Parameters
        ----------
        flagged : ndarray of ints
            Positions of the flagged rows.

        Returns
        -------
        Precision or None
            The share and its interval; None if no flagged row that was chosen at random has a
            label, unless all flagged rows have labels, and with a `label_error`.
        """
        return None if any(self.label_error) else precision_of(flagged, self.known_rows)

    def posterior_if(self, label_error: float | tuple[float, float]) -> GammaPosterior:
        """The posterior of the share if labels are wrong with a known probability.

        It shows how much an answer depends on right labels. It uses the rows that were chosen at
        random. No row is known for sure then, so rows of lists and picked rows say nothing, and the
        share is that of the rows from which the others were drawn.

        Parameters
        ----------
        label_error : float or tuple of two floats
            The probability that a label is wrong, below 0.5. Two numbers are those that a normal
            row is called an anomaly, and that an anomaly is called normal.

        Returns
        -------
        GammaPosterior
            The posterior.

        Examples
        --------
        >>> rows = LabelledRows(np.arange(1000.0)).update(range(0, 1000, 25), [1] + [0] * 39)
        >>> for label_error in (0.0, 0.02, 0.05):
        ...     print(rows.posterior_if(label_error))
        GammaPosterior(mean=0.035, 90% interval 0.004 to 0.095)
        GammaPosterior(mean=0.020, 90% interval 0.000 to 0.076)
        GammaPosterior(mean=0.017, 90% interval 0.000 to 0.067)
        """
        counts, error = self._counts, check_label_error(label_error)
        return posterior_with_errors(counts.n_drawn, counts.n_found, load_label_prior(), error)

    @property
    def if_wrong(self) -> tuple[ShareIfWrong, ...]:
        """The share if 2 % and if 5 % of the labels were wrong.

        It is that of `posterior_if`: if there are lists, of the rows outside them. It is empty if
        `label_error` is given, and without rows that were chosen at random.
        """
        if any(self.label_error) or not self.known_rows.at_random.any():
            return ()
        posteriors = ((error, self.posterior_if(error)) for error in LABEL_ERRORS)
        return tuple(ShareIfWrong(error, p.mean, *p.interval()) for error, p in posteriors)

    def agreement(self, rows: ArrayLike, labels: ArrayLike) -> Agreement:
        """How often second labels of known rows agree with the first ones.

        They are those of another person, or of one who does not know the first answers. They show
        how often labels are wrong, and change nothing else.

        Parameters
        ----------
        rows : array-like of shape (n,)
            Positions of rows that have a label.
        labels : array-like of shape (n,)
            The second labels, 0 or 1.

        Returns
        -------
        Agreement
            The number of rows on which both agree, and the rate of wrong labels that follows.

        Examples
        --------
        >>> rows = LabelledRows(np.arange(1000.0)).update(range(0, 1000, 25), [1] + [0] * 39)
        >>> found = rows.agreement([0, 25, 50, 75, 100, 125], [1, 0, 0, 1, 0, 0])
        >>> found.n_agree, round(found.label_error, 2)
        (5, 0.09)
        """
        places = self.sample.places(check_rows_known(rows, self.n_rows))
        known = self.known_rows
        if len(np.setdiff1d(places, known.rows)):
            raise ValueError("agreement needs rows that have a label already.")
        return agreement(known.labels[np.searchsorted(known.rows, places)], labels)

    @property
    def left(self) -> AnomaliesLeft:
        """How many anomalies are left among the rows without a label, by the posterior.

        It holds as the 90 % interval of the posterior does, after any mix of labels. Without rows
        that were chosen at random, it rests on the prior distribution.
        """
        counts, left = self._counts, self.rows_left
        ends = self.posterior.interval()
        if self._has_errors:  # then the share is not that of all rows, of which some are known
            shares = [left.share(share) for share in (self.cut_share, *ends)]
            totals = counts.n_anomalies + counts.n_left * np.array(shares)
        else:
            totals = self.n_rows * np.array([self.posterior.mean, *ends])
        mean, low, high = totals.tolist()
        return anomalies_left(counts.n_left, counts.n_anomalies, mean, (low, high))

    def certify(
        self, recall: float = RECALL, *, mass: float = 0.9, random_state: Any = None
    ) -> RecallCheck:
        """Random rows whose labels can show that a share `recall` of all anomalies is found.

        Look at all of them. Without an anomaly among them, this share is found with at least the
        confidence `mass`; ``result(labels)`` says what other labels show. Use it once you have
        stopped to look for anomalies. The rows are chosen from those without a label: pass them to
        `update` with ``purpose="find"`` afterwards, because they are no sample of the whole table.

        Parameters
        ----------
        recall : float, default=0.8
            Share of all anomalies, between 0 and 1.
        mass : float, default=0.9
            Confidence of the statement. It is that of one check; several checks hold together with
            less.
        random_state : int or Generator or RandomState or None, default=None
            Chooses the rows.

        Returns
        -------
        RecallCheck
            The rows to label, and what their labels will show.

        Examples
        --------
        >>> rows = LabelledRows(np.arange(1000.0))
        >>> rows = rows.update(range(960, 1000), [1] * 40, purpose="find")
        >>> check = rows.certify(0.8, random_state=0)
        >>> len(check.rows), check.result([0] * len(check.rows)).is_certified
        (181, True)
        """
        check_probability("recall", recall)
        check_probability("mass", mass)
        self._check_right_labels("certify")
        if not self.sample.is_whole:
            raise ValueError("certify needs all rows in memory, and these are a sample of a table.")
        counts, unknown = self._counts, self.known_rows.unknown(self.n_rows)
        n = n_to_certify(counts.n_left, counts.n_anomalies, recall, mass)
        rows = as_generator(random_state).permutation(unknown)[:n]
        return RecallCheck(rows, counts.n_left, counts.n_anomalies, recall, mass)

    def _check_right_labels(self, name: str) -> None:
        """Refuse the method `name`, which does not know that labels may be wrong."""
        if any(self.label_error):
            raise ValueError(f"{name} needs labels that are right: use it with label_error=0.")

    @property
    def n_for_recall(self) -> int | None:
        """How many random rows ``certify()`` asks for; None if it cannot be used."""
        if any(self.label_error) or not self.sample.is_whole:
            return None
        return n_to_certify(self._counts.n_left, self._counts.n_anomalies, RECALL, 0.9)

    def threshold_at(self, n: int) -> float:
        """The score that `n` of the rows exceed.

        Known rows count too, with scores that do not know their labels.

        Parameters
        ----------
        n : int
            Number of rows, from 0 to one less than all rows.

        Returns
        -------
        float
            The score. Fewer than `n` rows exceed it if rows have the same score.
        """
        check_count("n", n, 0)
        n_rows = self.sample.n_sampled
        if n >= n_rows:
            raise ValueError(f"n must be below {n_rows}, the number of rows, got {n}.")
        scores = self._honest_scores[:n_rows]
        return float(np.partition(scores, n_rows - n - 1)[n_rows - n - 1])

    def precision_at(self, n: int) -> Precision:
        """Share of anomalies among the first rows without a label.

        It comes from the labels of rows that were chosen at random and that rank as high, by a
        ranking that was not learned from their own labels. The interval is exact if the ranking is
        not learned, and approximate if it is.

        Parameters
        ----------
        n : int
            Number of rows from the top of the ranking.

        Returns
        -------
        Precision
            The share, its interval and the labels that they come from.
        """
        check_count("n", n, 1)
        self._check_right_labels("precision_at")
        n_left = len(self.known_rows.unknown(self.sample.n_sampled))
        if n > n_left:
            raise ValueError(
                f"n must be at most {n_left}, the number of rows without a label, got {n}."
            )
        return precision_at(self._top(), n)

    def n_for_precision(self, precision: float) -> int:
        """The most rows from the top of the ranking of which a share `precision` are anomalies.

        With a probability of about 90 %, the true share is not smaller, although the number is
        chosen by the labels. It is proved for the share of all rows at the top, known ones
        included, in the ranking by the consensus, if each row is labelled independently with the
        same probability; for the rows of `suggest`, it was measured. `precision_at` is for a number
        of rows that was fixed before.

        Parameters
        ----------
        precision : float
            Share of anomalies among these rows, between 0 and 1.

        Returns
        -------
        int
            Number of rows.

        Raises
        ------
        ValueError
            The labels do not show that the rows at the top reach this share, no row chosen at
            random has a label, or every row has one.
        """
        check_probability("precision", precision)
        self._check_right_labels("n_for_precision")
        if not self.known_rows.at_random.any():
            raise ValueError("n_for_precision needs labels of rows that were chosen at random.")
        return n_for_precision(self._top(), precision)

    def _top(self) -> NDArray[np.int_]:
        known, n_sampled = self.known_rows[~self.known_rows.listed], self.sample.n_sampled
        known = known[known.rows < n_sampled]
        left = self.scores[self.known_rows.unknown(n_sampled)]
        return labels_at_top(known, self._honest_scores[known.rows], left)

    @property
    def _honest_scores(self) -> Array:
        return self.scores if self.honest_scores is None else self.honest_scores

    @cached_property
    def _by_labels(self) -> GammaPosterior:
        """The posterior from the labels; without labels, the distribution in labelled tables."""
        return posterior_by_labels(self._counts, self.label_error)

    @cached_property
    def _counts(self) -> LabelCounts:
        return count_labels(self.known_rows, self.n_rows)

    def __repr__(self) -> str:
        answer = posterior_words(self.posterior)
        return f"LabelledRows({self.n_rows} rows, {len(self.known_rows)} labels, {answer})"

    def _repr_html_(self) -> str:
        from gammagmm.report.notebook import labelled_html

        return labelled_html(self)

    @property
    def found_in_order(self) -> NDArray[np.int_]:
        """Anomalies among the first rows that were labelled at random, in the ranking's order.

        Each row is ranked without what was learned from its own label.
        """
        known = self.known_rows[self.known_rows.at_random]
        order = np.argsort(-self._honest_scores[known.rows], kind="stable")
        return np.cumsum(known.labels[order])

    def plot(self, ax: Any = None) -> Any:
        """Draw how many anomalies are found if labelled rows are looked at in the ranking's order.

        The rows are those that were labelled at random.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.
        """
        from gammagmm.report.plots import plot_labels

        return plot_labels(self, ax)


def _check_purpose(purpose: Any) -> Purpose:
    """`purpose`, or a ValueError."""
    if purpose not in get_args(Purpose):
        raise ValueError(f"purpose must be 'share' or 'find', got {purpose!r}.")
    return cast("Purpose", purpose)
