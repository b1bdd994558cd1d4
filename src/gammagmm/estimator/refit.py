"""A fit without its detectors -> the same fit with detectors that are fitted again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from gammagmm._support.checks import warn_user
from gammagmm.detectors.fit import FitSettings, FittedDetectors, fit_detectors
from gammagmm.detectors.presets import named_detectors, resolve_detectors
from gammagmm.errors import Note, SavedFitWarning
from gammagmm.estimator.fit_result import Fit
from gammagmm.estimator.summary import installed_versions

__all__ = ["refit_detectors", "version_words"]


def refit_detectors(fit: Fit, versions: Mapping[str, str]) -> Fit:
    """The fit with its detectors, fitted to its training rows with the seeds of the first time.

    `versions` are those with which the fit was saved. A detector that now scores the training rows
    differently is told in a `SavedFitWarning` and a note; the answers for the training rows stay as
    they were saved. Detectors that are a user's own objects are not fitted again: the fit then
    cannot score new rows.
    """
    plan, columns = fit.plan, fit.detector_columns
    if columns is None or None in named_detectors(plan.detectors).values():
        return fit
    made, _ = resolve_detectors(plan.detectors, fit.n_rows, plan.max_fit_rows, plan.is_fit_by_cost)
    settings = FitSettings(plan.max_fit_rows, n_jobs=plan.n_jobs, is_by_cost=plan.is_fit_by_cost)
    fitted = fit_detectors(made, columns, plan.detector_rng, settings, only=fit.detector_names)
    notes = _changes(fit, fitted, versions)
    for note in notes:
        warn_user(f"Detector {note.subject} {note.message}.", SavedFitWarning)
    detectors = {name: fitted.detectors.get(name) for name in fit.detector_names}
    return replace(fit, detectors=detectors, notes=(*fit.notes, *notes))


def _changes(fit: Fit, fitted: FittedDetectors, versions: Mapping[str, str]) -> list[Note]:
    """A note for each detector that is not what it was."""
    reasons = {info.name: info.reason for info in fitted.info}
    now = dict(zip(fitted.detectors, fitted.scores.T, strict=True))
    notes = []
    for name, saved in zip(fit.detector_names, fit.scores.T, strict=True):
        if name not in now:
            notes.append(Note.of("load.missing", name, reason=reasons[name]))
        elif not np.array_equal(saved, now[name]):
            n_changed = int((saved != now[name]).sum())
            changed = {"n_changed": n_changed, "n_rows": len(saved)}
            words = version_words(versions)
            notes.append(Note.of("load.other scores", name, **changed, versions=words))
    return notes


def version_words(versions: Mapping[str, str]) -> str:
    """The versions that have changed since the fit was saved."""
    present = installed_versions()
    changed = [
        f"{name} {versions.get(name, 'none')}, now {present.get(name, 'none')}"
        for name in sorted({*versions, *present})
        if versions.get(name) != present.get(name)
    ]
    return f"saved with {'; '.join(changed)}" if changed else "saved with the same versions"
