"""A fit -> what it found and how, as plain values that are saved as JSON."""

from __future__ import annotations

import platform
from dataclasses import dataclass, fields
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal

import numpy as np

from gammagmm._support.documents import Form, Reader, read_document, record_to_data, to_text
from gammagmm._support.files import write_document
from gammagmm.detectors.fit import Status
from gammagmm.errors import Note
from gammagmm.estimator.fit_result import Fit
from gammagmm.estimator.parameters import Plain
from gammagmm.posterior.evidence import Evidence
from gammagmm.posterior.gamma_posterior import GammaPosterior
from gammagmm.posterior.storage import posterior_of, posterior_to_data

__all__ = ["DetectorSummary", "FitSummary", "RunSummary", "installed_versions", "summarise"]

FORM = Form("gammagmm/fit", 2, "summary of a fit")
PACKAGES = ("gammagmm", "numpy", "scipy", "scikit-learn", "pyod", "joblib")


@dataclass(frozen=True)
class DetectorSummary:
    """Status and threshold of one detector.

    Attributes
    ----------
    name : str
        Name of the detector.
    status : "ok" or "failed" or "timeout" or "constant"
        How the fit ended; "constant" if all rows got the same score.
    reason : str
        Why it was skipped; empty if it was not.
    seconds : float
        Wall time of its fit and scores.
    n_rows : int
        Number of rows it was fitted on.
    threshold : float
        Its raw-scale threshold at the estimate; NaN if it was skipped.
    """

    name: str
    status: Status
    reason: str
    seconds: float
    n_rows: int
    threshold: float


@dataclass(frozen=True)
class RunSummary:
    """One variational run without its components; values that a run does not have are NaN.

    Attributes
    ----------
    status : "solved" or "slack" or "unsolved"
        "slack" if `p_high` does not bind; "unsolved" if the run cannot meet it.
    tau : float
        Intercept of the sigmoid 1 / (1 + exp(tau + delta . r)) of the anomalousness r of a
        component.
    delta : float
        Slope of the sigmoid.
    reachable_low : float
        The smallest P(gamma >= high_gamma) that this mixture allows.
    reachable_high : float
        The largest P(gamma >= high_gamma) that this mixture allows.
    reached : float
        P(gamma >= high_gamma) of this run's posterior, to compare with `p_high`.
    mean : float
        Mean of this run's posterior.
    elbo : float
        The bound.
    n_iter : int
        Number of iterations.
    converged : bool
        Whether the bound converged.
    n_restarts : int
        Number of earlier starts of this run that had no solution.
    n_components : int
        Number of active components.
    """

    status: Literal["solved", "slack", "unsolved"]
    tau: float
    delta: float
    reachable_low: float
    reachable_high: float
    reached: float
    mean: float
    elbo: float
    n_iter: int
    converged: bool
    n_restarts: int
    n_components: int


@dataclass(frozen=True, repr=False)
class FitSummary:
    """What a fitted `GammaGMM` found, without its rows, scores and detectors.

    The page "Saving a fit" of the documentation shows it in use.

    Attributes
    ----------
    posterior : GammaPosterior
        Posterior of the contamination factor.
    evidence : Evidence
        What the estimate without labels rests on, without the positions of rows.
    lines : tuple of str
        The estimate and what it rests on, in words.
    n_rows : int
        Number of rows of the table.
    n_features : int
        Number of columns of the table.
    n_anomalies : int
        Number of rows with the label 1.
    threshold : float
        The score of the ranking in use above which a new row is called an anomaly.
    feature_names : tuple of str
        Names of the columns; empty where the table had none.
    parameters : dict
        Parameters of the estimator; what is no text, number, boolean or None as its `repr`.
    detectors : tuple of DetectorSummary
        Seconds, rows, status, reason and raw-scale threshold of every detector.
    runs : tuple of RunSummary
        The variational runs.
    notes : tuple of Note
        Everything that was changed, skipped or approximated.
    versions : dict
        Versions of Python and of the packages that the answer depends on.

    Examples
    --------
    >>> from gammagmm import GammaGMM
    >>> from gammagmm.datasets import load_demo
    >>> estimator = GammaGMM(["KNN", "LOF", "HBOS"], n_runs=2, random_state=0)
    >>> estimator = estimator.fit(load_demo().X)
    >>> summary = estimator.summary()
    >>> summary.n_rows, summary.n_anomalies, summary.posterior
    (367, 38, GammaPosterior(mean=0.103, 90% interval 0.077 to 0.130))
    """

    posterior: GammaPosterior
    evidence: Evidence
    lines: tuple[str, ...]
    n_rows: int
    n_features: int
    n_anomalies: int
    threshold: float
    feature_names: tuple[str, ...]
    parameters: dict[str, Plain]
    detectors: tuple[DetectorSummary, ...]
    runs: tuple[RunSummary, ...]
    notes: tuple[Note, ...]
    versions: dict[str, str]

    def save(self, path: Any, *, overwrite: bool = False) -> None:
        """Write the summary as JSON with exact floats, completely or not at all.

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
        write_document(to_text(_to_data(self)), path, overwrite)

    @classmethod
    def load(cls, path: Any) -> FitSummary:
        """The summary that `save` wrote; nothing in the file is executed.

        Parameters
        ----------
        path : str or os.PathLike
            Name of the file.

        Returns
        -------
        FitSummary
            The summary.

        Raises
        ------
        SavedFileError
            The file is damaged, or `save` did not write it.
        """
        reader = Reader(FORM, str(path))
        return _summary_of(reader.parse(read_document(path, reader)), reader)

    def __repr__(self) -> str:
        n_ok = sum(detector.status == "ok" for detector in self.detectors)
        answer = repr(self.posterior).removeprefix("GammaPosterior(").removesuffix(")")
        counts = f"{self.n_rows} rows, {self.n_anomalies} anomalies, {n_ok} detectors"
        return "\n  ".join([f"FitSummary({counts}, {answer})", *self.lines[1:]])


def summarise(fit: Fit) -> FitSummary:
    """The summary of a fit."""
    return FitSummary(
        posterior=fit.posterior,
        evidence=fit.evidence.without_rows(),
        lines=tuple(fit.lines),
        n_rows=fit.n_rows,
        n_features=fit.preparation.n_columns,
        n_anomalies=fit.n_flagged,
        threshold=fit.threshold,
        feature_names=fit.feature_names,
        parameters=fit.plan.parameters,
        detectors=tuple(
            DetectorSummary(
                info.name,
                info.status,
                info.reason,
                float(info.seconds),
                int(info.n_rows),
                fit.thresholds.get(info.name, np.nan),
            )
            for info in fit.detector_info
        ),
        runs=tuple(
            RunSummary(
                status=run.status,
                tau=float(run.tau),
                delta=float(run.delta),
                reachable_low=float(run.reachable[0]),
                reachable_high=float(run.reachable[1]),
                reached=float(run.reached),
                mean=np.nan if run.posterior is None else run.posterior.mean,
                elbo=float(run.elbo),
                n_iter=int(run.n_iter),
                converged=bool(run.converged),
                n_restarts=int(run.n_restarts),
                n_components=len(run.components.alpha),
            )
            for run in fit.runs
        ),
        notes=fit.notes,
        versions=installed_versions(),
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


def _to_data(summary: FitSummary) -> dict[str, Any]:
    """The summary as what JSON can hold."""
    data = {field.name: getattr(summary, field.name) for field in fields(summary)}
    for name in ("detectors", "runs", "notes"):
        data[name] = [record_to_data(record) for record in data[name]]
    data["evidence"] = record_to_data(summary.evidence)
    for name in ("lines", "feature_names"):
        data[name] = list(data[name])
    return FORM.header | data | {"posterior": posterior_to_data(summary.posterior)}


def _summary_of(data: Any, reader: Reader) -> FitSummary:
    """The summary that `data`, as JSON gives it, describes."""
    reader.check_header(data)
    names = {field.name for field in fields(FitSummary)}
    reader.check_fields(data, names | FORM.header.keys(), "the file")
    counts = {name: _count(name, data[name], reader) for name in names if name.startswith("n_")}
    return FitSummary(
        posterior=posterior_of(data["posterior"], f"The posterior in {reader.where}"),
        threshold=reader.number("threshold", data["threshold"]),
        evidence=reader.record(Evidence, "evidence", data["evidence"]),
        lines=_texts("lines", data, reader),
        feature_names=_texts("feature_names", data, reader),
        parameters=_plain_values("parameters", data["parameters"], reader),
        detectors=_records(DetectorSummary, "detectors", data, reader),
        runs=_records(RunSummary, "runs", data, reader),
        notes=_records(Note, "notes", data, reader),
        versions={
            name: reader.plain(f"versions.{name}", value, str)
            for name, value in _plain_values("versions", data["versions"], reader).items()
        },
        **counts,
    )


def _count(name: str, value: Any, reader: Reader) -> int:
    if reader.plain(name, value, int) < 0:
        reader.refuse(f"{name} must be at least 0, got {value!r}")
    return int(value)


def _texts(name: str, data: dict[str, Any], reader: Reader) -> tuple[str, ...]:
    return tuple(reader.plain(name, text, str) for text in reader.items(name, data[name]))


def _records(cls: type, name: str, data: dict[str, Any], reader: Reader) -> tuple[Any, ...]:
    return tuple(reader.record(cls, name, item) for item in reader.items(name, data[name]))


def _plain_values(name: str, data: Any, reader: Reader) -> dict[str, Any]:
    """An object of plain values; a float that is not finite, and what is nested, is refused."""
    reader.check_fields(data, set(data) if isinstance(data, dict) else set(), name)
    for key, value in data.items():
        if not (value is None or type(value) in (str, bool)):
            reader.number(f"{name}.{key}", value)
    return dict(data)
