"""Ordered components + averaged conditionals -> the posterior of the contamination factor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gammagmm._support.checks import as_generator, check_count, check_number, check_probability
from gammagmm.posterior.beta_binomials import BetaBinomialMixture
from gammagmm.posterior.betas import BetaMixture
from gammagmm.posterior.components import Components
from gammagmm.posterior.link import AveragedConditionals, n_anomalous_pmf

__all__ = ["GammaPosterior", "combine_runs", "posterior_words", "run_posterior"]

Array = NDArray[np.float64]


@dataclass(frozen=True, repr=False, eq=False)
class GammaPosterior:
    """Posterior of the contamination factor: an atom at 0 and a mixture of Beta distributions.

    Fits, labels and `load` make posteriors; all of their methods return new values.

    The page "Assumptions and posterior" of the documentation shows it in use.

    Attributes
    ----------
    prob_zero : float
        Probability that there are no anomalies.
    betas : object
        The shares above 0; ``betas.weights`` and `prob_zero` sum to 1. They are a mixture of Beta
        distributions with the parameters ``betas.a`` and ``betas.b``. With labels of single rows,
        these are shares of a finite number of rows, which have Beta-binomial distributions.
    standard_error : float, default=nan
        Monte Carlo error of the mean, from the finite number of draws; NaN after `given`.
    between_runs : float, default=nan
        Standard deviation of the mean over the variational runs; NaN for one run or after `given`.
    n_labels : int, default=0
        Number of labelled rows that the posterior uses, without those that were not chosen at
        random; 0 for the posterior of a fit alone. `given` keeps it.
    is_model : bool, default=True
        Whether it comes from the model alone, so that its interval is a model range, which contains
        the true share less often than it says; False with labels and for `reference`.
    may_be_zero : bool, default=False
        Whether labels of rows that were chosen at random do not show that there are anomalies: none
        of the labelled rows is one, or no more than false alarms explain (see `label_error`). The
        equal-tailed interval then starts at 0.

    Examples
    --------
    >>> posterior = GammaPosterior.reference()
    >>> posterior
    GammaPosterior(mean=0.088, 90% interval 0.002 to 0.263)
    >>> posterior.given(high=0.05)
    GammaPosterior(mean=0.014, 90% interval 0.001 to 0.044)
    """

    prob_zero: float
    betas: BetaMixture | BetaBinomialMixture
    standard_error: float = np.nan
    between_runs: float = np.nan
    n_labels: int = 0
    is_model: bool = True
    may_be_zero: bool = False

    @classmethod
    def degenerate(cls) -> GammaPosterior:
        """The point mass at 0, which the paper prescribes if there is no solution.

        Returns
        -------
        GammaPosterior
            A posterior whose `is_degenerate` is True.
        """
        empty = np.empty(0)
        return cls(1.0, BetaMixture(empty, empty, empty))

    @classmethod
    def reference(cls) -> GammaPosterior:
        """The distribution of the share of anomalies in labelled real tables.

        It is the prior for a table of which nothing is known; it does not use any of its rows. A
        mixture of Beta distributions, fitted to the shares of the tables of the track record.

        Returns
        -------
        GammaPosterior
            The distribution.

        Examples
        --------
        >>> GammaPosterior.reference()
        GammaPosterior(mean=0.088, 90% interval 0.002 to 0.263)
        """
        from gammagmm.posterior.track_record import load_reference

        return cls(0.0, load_reference(), is_model=False)

    @property
    def is_degenerate(self) -> bool:
        """Whether all probability lies at 0."""
        return self.prob_zero == 1.0

    @property
    def has_estimate(self) -> bool:
        """Whether there is an estimate; not so for a fit in which no run has a solution.

        Such a fit has all probability at 0, and so has a table whose rows are all known to be
        normal, which has an estimate.
        """
        return len(self.betas) > 0

    @property
    def range_name(self) -> str:
        """What `interval` is called: "model range", or "90% interval" where it holds as often."""
        return "model range" if self.is_model else "90% interval"

    @property
    def mean(self) -> float:
        """Posterior mean."""
        return self.betas.moment(1)

    @property
    def std(self) -> float:
        """Posterior standard deviation."""
        return float(np.sqrt(max(self.betas.moment(2) - self.betas.moment(1) ** 2, 0.0)))

    @property
    def median(self) -> float:
        """Posterior median."""
        return self._quantile(0.5)

    def pdf(self, x: ArrayLike) -> Array:
        """Density of the shares above 0.

        It integrates to 1 - `prob_zero`. With labels of single rows, the shares are multiples of
        1 / n_rows, and the probability of each is spread evenly over an interval of this length.

        Parameters
        ----------
        x : array-like of floats
            Shares.

        Returns
        -------
        ndarray
            The density at each share.
        """
        return _evaluate(self.betas.pdf, x)

    def cdf(self, x: ArrayLike) -> Array:
        """P(gamma <= x), the atom at 0 included.

        Parameters
        ----------
        x : array-like of floats
            Shares.

        Returns
        -------
        ndarray
            The probability for each share.
        """
        return _evaluate(lambda x: np.where(x >= 0.0, self.prob_zero + self.betas.cdf(x), 0.0), x)

    def sf(self, x: ArrayLike) -> Array:
        """P(gamma > x), precise in the upper tail.

        Parameters
        ----------
        x : array-like of floats
            Shares.

        Returns
        -------
        ndarray
            The probability for each share.
        """
        return _evaluate(lambda x: np.where(x >= 0.0, self.betas.sf(x), 1.0), x)

    def prob_above(self, x: float) -> float:
        """P(gamma > x) for one share.

        Parameters
        ----------
        x : float
            A share.

        Returns
        -------
        float
            The probability.
        """
        return float(self.sf(x))

    def ppf(self, q: ArrayLike) -> Array:
        """Quantiles: the smallest x with P(gamma <= x) >= q.

        Parameters
        ----------
        q : array-like of floats
            Probabilities from 0 to 1.

        Returns
        -------
        ndarray
            The share for each probability.

        Raises
        ------
        ValueError
            A probability lies outside 0 to 1.
        """
        q = np.asarray(q, dtype=np.float64)
        if np.any((q < 0.0) | (q > 1.0)):
            raise ValueError(f"q must lie between 0 and 1, got {q!r}.")
        return _evaluate(np.vectorize(self._quantile, otypes=[np.float64]), q)

    def interval(
        self, mass: float = 0.9, kind: Literal["equal-tailed", "hdi"] = "equal-tailed"
    ) -> tuple[float, float]:
        """Credible interval.

        Parameters
        ----------
        mass : float, default=0.9
            Probability of the interval.
        kind : "equal-tailed" or "hdi", default="equal-tailed"
            "equal-tailed" leaves the same probability below and above; it starts at 0 if
            `may_be_zero` is True. "hdi" is the shortest single interval (`modes` shows whether the
            posterior has several humps).

        Returns
        -------
        tuple of two floats
            Both ends of the interval.
        """
        check_probability("mass", mass)
        equal_tailed = self._interval_from(0.5 * (1.0 - mass), mass)
        if self.may_be_zero:
            equal_tailed = 0.0, equal_tailed[1]
        if kind == "equal-tailed":
            return equal_tailed
        if kind != "hdi":
            raise ValueError(f"kind must be 'equal-tailed' or 'hdi', got {kind!r}.")
        candidates = [equal_tailed, self._interval_from(0.0, mass)]
        if not self.is_degenerate and self.prob_zero < 1.0 - mass:
            candidates.append(self._interval_from(self._shortest_start(mass), mass))
        return min(candidates, key=lambda ends: ends[1] - ends[0])

    def contains(self, share: float, mass: float = 0.9) -> bool:
        """Whether a share lies in the equal-tailed credible interval.

        Both ends of the interval count as inside.

        Parameters
        ----------
        share : float
            The share.
        mass : float, default=0.9
            Probability of the interval.

        Returns
        -------
        bool
            Whether it lies inside.

        Examples
        --------
        >>> posterior = GammaPosterior.reference()
        >>> posterior.contains(0.05), posterior.contains(0.3)
        (True, False)
        >>> posterior.contains(0.3, mass=0.99)
        True
        """
        check_number("share", share)
        low, high = self.interval(mass)
        return bool(low <= share <= high)

    def modes(self, prominence: float = 0.1) -> Array:
        """Local maxima of the density, lowest first: more than one means several humps.

        Parameters
        ----------
        prominence : float, default=0.1
            A hump counts if it rises above its surroundings by `prominence` times the highest
            density.

        Returns
        -------
        ndarray
            The shares at the maxima.
        """
        from scipy.signal import find_peaks

        if self.is_degenerate:
            return np.empty(0)
        grid = self.betas.grid()
        density = self.pdf(grid)
        # A maximum at an end of the grid is one, too.
        peaks, _ = find_peaks(np.pad(density, 1), prominence=prominence * density.max())
        return np.asarray(grid[peaks - 1])

    def sample(self, n: int, random_state: Any = None) -> Array:
        """Independent draws, zeros from the atom included.

        Parameters
        ----------
        n : int
            Number of draws.
        random_state : int or Generator or RandomState or None, default=None
            The only source of randomness; the same seed gives the same draws.

        Returns
        -------
        ndarray of shape (n,)
            The draws.
        """
        check_count("n", n, 1)
        rng = as_generator(random_state)
        draws = np.zeros(n)
        is_positive = rng.random(n) >= self.prob_zero
        if not self.is_degenerate:
            draws[is_positive] = self.betas.sample(int(is_positive.sum()), rng)
        return draws

    def given(self, low: float = 0.0, high: float = 1.0) -> GammaPosterior:
        """Posterior given that low <= gamma <= high, for example "certainly below 5 %".

        Parameters
        ----------
        low : float, default=0.0
            Smallest share that is possible.
        high : float, default=1.0
            Largest share that is possible.

        Returns
        -------
        GammaPosterior
            The new posterior.

        Raises
        ------
        ValueError
            The posterior gives no probability to these shares.
        """
        if not 0.0 <= low < high <= 1.0:
            raise ValueError(f"given needs 0 <= low < high <= 1, got low={low!r}, high={high!r}.")
        prob_zero = self.prob_zero if low == 0.0 else 0.0
        betas = self.betas.restrict(low, high)
        total = prob_zero + betas.weights.sum()
        if not total > 0.0:
            raise ValueError(f"The posterior gives no probability to gamma in [{low}, {high}].")
        scaled = betas.scale(1.0 / total)
        return GammaPosterior(
            prob_zero / total,
            scaled,
            n_labels=self.n_labels,
            is_model=self.is_model,
            may_be_zero=self.may_be_zero and low == 0.0,
        )

    def summary(self) -> dict[str, Any]:
        """The posterior as a dictionary of plain numbers.

        Returns
        -------
        dict
            Mean, standard deviation, median and other figures, by name. The interval is called
            "model_range" if `is_model` is True, and "interval_90" otherwise.
        """
        return {
            "mean": self.mean,
            "std": self.std,
            "median": self.median,
            "model_range" if self.is_model else "interval_90": list(self.interval()),
            "prob_zero": self.prob_zero,
            "prob_above_0.15": self.prob_above(0.15),
            "modes": self.modes().tolist(),
            "standard_error": self.standard_error,
            "between_runs": self.between_runs,
            "n_labels": self.n_labels,
            "is_degenerate": self.is_degenerate,
        }

    def plot(self, ax: Any = None) -> Any:
        """Draw the density with the atom, the interval and the mean.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.
        """
        from gammagmm.report.plots import plot_posterior

        return plot_posterior(self, ax)

    def to_arviz(self, n_draws: int = 4000, random_state: Any = None) -> Any:
        """One chain of independent draws of ``gamma`` for ArviZ, zeros from the atom included.

        Parameters
        ----------
        n_draws : int, default=4000
            Number of draws.
        random_state : int or Generator or RandomState or None, default=None
            The only source of randomness; the same seed gives the same draws.

        Returns
        -------
        arviz.InferenceData or xarray.DataTree
            The former with ArviZ 0.x, the latter with ArviZ 1.x.

        Raises
        ------
        MissingExtraError
            ArviZ is not installed.
        """
        from gammagmm.posterior.arviz import to_arviz

        return to_arviz(self, n_draws, random_state)

    def save(self, path: Any, *, overwrite: bool = False) -> None:
        """Write the posterior as versioned JSON with exact floats.

        The file is written completely or not at all.

        Parameters
        ----------
        path : str or os.PathLike
            Name of the file.
        overwrite : bool, default=False
            Whether an existing file is replaced.

        Raises
        ------
        FileExistsError
            The file exists and `overwrite` is False.
        """
        from gammagmm.posterior.storage import save_posterior

        save_posterior(self, path, overwrite)

    @classmethod
    def load(cls, path: Any) -> GammaPosterior:
        """The posterior that `save` wrote; nothing in the file is executed.

        Parameters
        ----------
        path : str or os.PathLike
            Name of the file.

        Returns
        -------
        GammaPosterior
            The posterior.

        Raises
        ------
        SavedFileError
            The file is damaged, or `save` did not write it.
        """
        from gammagmm.posterior.storage import load_posterior

        return load_posterior(path)

    def __repr__(self) -> str:
        return f"GammaPosterior({posterior_words(self)})"

    def _repr_html_(self) -> str:
        from gammagmm.report.notebook import posterior_html

        return posterior_html(self)

    def _quantile(self, q: float) -> float:
        if self.prob_zero > 0.0 and q <= self.prob_zero:
            return 0.0
        return self.betas.quantile(q - self.prob_zero, 1.0 - q)

    def _interval_from(self, start: float, mass: float) -> tuple[float, float]:
        return self._quantile(start), self._quantile(min(start + mass, 1.0))

    def _shortest_start(self, mass: float) -> float:
        """The lower tail probability of the shortest interval of `mass` that excludes the atom."""
        grid = self.betas.grid()
        cdf = self.cdf(grid)
        starts = np.linspace(self.prob_zero, 1.0 - mass, 2001)
        lengths = np.interp(starts + mass, cdf, grid) - np.interp(starts, cdf, grid)
        return float(starts[np.argmin(lengths)])


def _evaluate(function: Callable[[Array], Array], x: ArrayLike) -> Array:
    """``function(x)``, and NaN where `x` is NaN, as in SciPy."""
    x = np.asarray(x, dtype=np.float64)
    is_nan = np.isnan(x)
    return np.where(is_nan, np.nan, function(np.where(is_nan, 0.0, x)))[()]


def run_posterior(
    components: Components, conditionals: AveragedConditionals, p0: float
) -> GammaPosterior:
    """Posterior of one solved run.

    p0 . (point mass at 0) + (1 - p0) . sum over k >= 1 of w_k . Beta(A_k, A_K - A_k), with
    w_k proportional to E[P(C* = k)] from the averaged conditionals (Equations 3 and 4).
    """
    # Deviation D6: the atom is p0 itself, not the average of 1 - P(c_1) over the draws.
    # Deviation D11: the mixture over k in closed form, not an average over k within each draw.
    weights = n_anomalous_pmf(conditionals.mean[1:])
    cumulative = components.cumulative_alpha
    a = cumulative[: len(weights)]
    betas = BetaMixture((1.0 - p0) * weights, a, cumulative[-1] - a)
    error = (1.0 - p0) * mean_error(a / cumulative[-1], conditionals)
    return GammaPosterior(p0, betas, standard_error=error)


def mean_error(shares: Array, conditionals: AveragedConditionals) -> float:
    """Monte Carlo error of m_1 + sum over k >= 2 of (m_k - m_k-1) . q_2 ... q_k (delta method).

    `shares` holds m_k, the expected total weight of the first k components.
    """
    steps, q = np.diff(shares), conditionals.mean[1:]
    # The derivative with respect to q_t is reached[t] . ahead[t]: the factors before t, and after.
    reached = np.append(1.0, np.cumprod(q))[: len(q)]
    ahead = np.zeros(len(q) + 1)
    for t in range(len(q) - 1, -1, -1):
        ahead[t] = steps[t] + (q[t + 1] * ahead[t + 1] if t + 1 < len(q) else 0.0)
    variance = np.square(reached * ahead[:-1]) @ conditionals.error_variance[1:]
    return float(np.sqrt(variance))


def posterior_words(posterior: GammaPosterior) -> str:
    """Mean and interval, for the `repr` of a posterior and of everything that has one."""
    if posterior.is_degenerate:
        return "point mass at 0"
    low, high = posterior.interval()
    return f"mean={posterior.mean:.3f}, {posterior.range_name} {low:.3f} to {high:.3f}"


def combine_runs(posteriors: Sequence[GammaPosterior]) -> GammaPosterior:
    """Equal mixture of the solved runs' posteriors; the point mass at 0 if no run is solved.

    Runs use no labels, so its `n_labels` is 0.
    """
    if not posteriors:
        return GammaPosterior.degenerate()
    n_runs = len(posteriors)
    betas = BetaMixture(
        np.concatenate([p.betas.weights for p in posteriors]) / n_runs,
        np.concatenate([p.betas.a for p in posteriors]),
        np.concatenate([p.betas.b for p in posteriors]),
    )
    return GammaPosterior(
        prob_zero=posteriors[0].prob_zero,
        betas=betas,
        standard_error=float(np.sqrt(sum(p.standard_error**2 for p in posteriors))) / n_runs,
        between_runs=float(np.std([p.mean for p in posteriors], ddof=1)) if n_runs > 1 else np.nan,
    )
