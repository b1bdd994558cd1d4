"""A fit -> what it found and how, as plain values: for JSON and for the report."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal

from gammagmm._support.documents import Plain, Writer, record_to_data
from gammagmm.detectors.fit import DetectorInfo
from gammagmm.errors import Note
from gammagmm.estimator.fit_result import Fit, Truth
from gammagmm.labels.labelled_rows import ShareIfWrong
from gammagmm.labels.learned_ranking import RankingCheck
from gammagmm.labels.precision import Precision
from gammagmm.labels.recall import AnomaliesLeft
from gammagmm.posterior.evidence import Evidence
from gammagmm.posterior.gamma_posterior import GammaPosterior
from gammagmm.posterior.runs import Run

__all__ = ["FitSummary", "LabelSummary", "installed_versions", "summarise"]

PACKAGES = ("gammagmm", "numpy", "scipy", "scikit-learn", "pyod", "joblib")


@dataclass(frozen=True)
class LabelSummary:
    """How many rows a person has labelled, and what the labels show without a prior.

    Attributes
    ----------
    n_rows : int
        Number of rows with a label.
    n_at_random : int
        Number of those that were chosen at random.
    n_picked : int
        Number of those that were picked from the top of the ranking.
    n_anomalies : int
        Number of anomalies among the rows with a label.
    low : float
        Lower end of the exact 90 % confidence interval of the share of anomalies, for a number of
        labels that was fixed before.
    high : float
        Upper end of this interval.
    low_any_look : float
        Lower end of the 90 % confidence interval that is valid if it is checked after every label.
        This is proved for rows in simple random order, and measured for rows that are spread
        evenly.
    high_any_look : float
        Upper end of this interval.
    precision : Precision or None
        Share of anomalies among the rows that are flagged without labels; None if none of them that
        was chosen at random has a label, and with a `label_error`.
    left : AnomaliesLeft
        How many anomalies are left among the rows without a label.
    label_error : tuple of two floats
        The probabilities that a normal row is labelled an anomaly, and an anomaly normal.
    if_wrong : tuple of ShareIfWrong
        The share, outside lists, if 2 % and if 5 % of the labels were wrong; empty if `label_error`
        is given, and without rows that were chosen at random.
    """

    n_rows: int
    n_at_random: int
    n_picked: int
    n_anomalies: int
    low: float
    high: float
    low_any_look: float
    high_any_look: float
    precision: Precision | None
    left: AnomaliesLeft
    label_error: tuple[float, float]
    if_wrong: tuple[ShareIfWrong, ...]


@dataclass(frozen=True, repr=False)
class FitSummary:
    """What a fitted `GammaGMM` found, without its rows, scores and detectors.

    ``gammagmm estimate --json`` and the report are made from it.

    The page "Saving a fit" of the documentation shows it in use.

    Attributes
    ----------
    posterior : GammaPosterior
        Posterior of the contamination factor, with the labels.
    fitted_posterior : GammaPosterior
        The same without labels.
    evidence : Evidence
        What speaks for and against the estimate without labels, without the positions of rows.
    labels : LabelSummary or None
        What is known of the labels; None without labels.
    ranking : "consensus" or "learned"
        The ranking in use.
    check : RankingCheck or None
        How a learned ranking compares with the consensus on labelled rows.
    n_rows : int
        Number of training rows.
    n_table_rows : int
        Number of rows of the table, of which the training rows are all or a random sample.
    n_features : int
        Number of columns of the table.
    n_flagged : int
        Number of training rows with the label 1.
    threshold : float
        The score of the ranking in use above which a new row is called an anomaly.
    feature_names : tuple of str
        Names of the columns; empty where the table had none.
    detectors : tuple of DetectorInfo
        Seconds, rows, status and reason of every detector.
    thresholds : dict
        Each detector's raw-scale threshold at the estimate, by name.
    runs : tuple of Run
        The variational runs.
    parameters : dict
        Parameters of the estimator; what is no text, number, boolean or None as its `repr`.
    truth : Truth or None
        How the result compares with the labels in the column that ``columns={"truth": ...}`` or
        ``--truth`` names; None without one.
    notes : tuple of Note
        Everything that was changed, skipped or approximated.
    versions : dict
        Versions of Python and of the packages that the answer depends on.
    lines : tuple of str
        The answer in words: what is known first, and what to do last.

    Examples
    --------
    >>> from gammagmm import GammaGMM
    >>> from gammagmm.datasets import load_demo
    >>> estimator = GammaGMM(["KNN", "LOF", "HBOS"], n_runs=2, random_state=0)
    >>> estimator = estimator.fit(load_demo().X)
    >>> summary = estimator.summary()
    >>> summary.n_rows, summary.n_flagged, summary.posterior
    (367, 38, GammaPosterior(mean=0.102, model range 0.076 to 0.129))
    """

    posterior: GammaPosterior
    fitted_posterior: GammaPosterior
    evidence: Evidence
    labels: LabelSummary | None
    ranking: Literal["consensus", "learned"]
    check: RankingCheck | None
    n_rows: int
    n_table_rows: int
    n_features: int
    n_flagged: int
    threshold: float
    feature_names: tuple[str, ...]
    detectors: tuple[DetectorInfo, ...]
    thresholds: dict[str, float]
    runs: tuple[Run, ...]
    parameters: dict[str, Plain]
    truth: Truth | None
    notes: tuple[Note, ...]
    versions: dict[str, str]
    lines: tuple[str, ...]

    def to_data(self) -> dict[str, Any]:
        """The summary as plain values; a value that does not exist is None.

        Returns
        -------
        dict
            The attributes by name. Posteriors and runs are their figures, and notes have their
            words.
        """
        return record_to_data(self) | {
            "posterior": _figures(self.posterior),
            "fitted_posterior": _figures(self.fitted_posterior),
            "runs": [_run_data(run) for run in self.runs],
            "notes": [note.to_data() for note in self.notes],
        }

    def __repr__(self) -> str:
        n_ok = sum(detector.status == "ok" for detector in self.detectors)
        counts = f"{self.n_rows} rows, {self.n_flagged} flagged, {n_ok} detectors"
        return "\n  ".join([f"FitSummary({counts})", *self.lines])


def _figures(posterior: GammaPosterior) -> dict[str, Any]:
    """Mean, interval and the like; None where a figure does not exist."""
    found = posterior.summary()
    return {name: None if value != value else value for name, value in found.items()}


def _run_data(run: Run) -> dict[str, Any]:
    """The figures of a run, without its components."""
    low, high = run.reachable
    figures = {
        "status": run.status,
        "tau": run.tau,
        "delta": run.delta,
        "reachable_low": low,
        "reachable_high": high,
        "reached": run.reached,
        "mean": run.mean,
        "elbo": run.elbo,
        "n_iter": run.n_iter,
        "converged": run.converged,
        "n_restarts": run.n_restarts,
        "n_components": len(run.components.alpha),
    }
    data: dict[str, Any] = Writer().value("runs", figures)
    return data


def summarise(fit: Fit) -> FitSummary:
    """The summary of a fit."""
    return FitSummary(
        posterior=fit.posterior,
        fitted_posterior=fit.fitted_posterior,
        evidence=fit.evidence.without_rows(),
        labels=_labels(fit),
        ranking="learned" if fit.ranking == "learned" else "consensus",
        check=None if fit.learning is None else fit.learning.check,
        n_rows=fit.n_rows,
        n_table_rows=fit.sample.n_rows,
        n_features=fit.preparation.n_columns,
        n_flagged=fit.n_flagged,
        threshold=fit.threshold,
        feature_names=fit.preparation.columns or (),
        detectors=fit.detector_info,
        thresholds=fit.thresholds,
        runs=fit.runs,
        parameters=fit.plan.parameters,
        truth=fit.truth,
        notes=fit.notes,
        versions=installed_versions(),
        lines=tuple(fit.lines),
    )


def _labels(fit: Fit) -> LabelSummary | None:
    known = fit.known
    if not len(known):
        return None
    rows = fit.labelled_rows
    low, high = rows.exact_interval()
    low_any_look, high_any_look = rows.interval_at_any_look()
    return LabelSummary(
        n_rows=len(known),
        n_at_random=int(known.at_random.sum()),
        n_picked=int(known.picked.sum()),
        n_anomalies=int(known.labels.sum()),
        low=low,
        high=high,
        low_any_look=low_any_look,
        high_any_look=high_any_look,
        precision=fit.precision,
        left=rows.left,
        label_error=rows.label_error,
        if_wrong=rows.if_wrong,
    )


def installed_versions() -> dict[str, str]:
    """Versions of Python and of the packages that the answer depends on."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # a source tree that was never installed
            continue
    return found
