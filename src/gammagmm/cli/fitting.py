"""The fit of a command: the one that `label` has kept beside its sheet, or a new one."""

from __future__ import annotations

import gc
import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gammagmm._support.progress import progress_bar
from gammagmm._support.text import one_line
from gammagmm.cli.options import FIT_SUFFIX, Method, Request
from gammagmm.cli.request import choices_of
from gammagmm.cli.terminal import Echo, tell
from gammagmm.errors import SavedFileError
from gammagmm.table.table import Table

if TYPE_CHECKING:
    from gammagmm.estimator.fit_result import Fit
    from gammagmm.estimator.gamma_gmm import GammaGMM

__all__ = ["fit_rows", "kept_fit"]


def kept_fit(
    table: Table,
    request: Request,
    sheets: Sequence[Path],
    echo: Echo,
    *,
    keep: Path | None = None,
) -> Fit:
    """The fit that `label` has kept beside one of the `sheets`, if it is one of these rows.

    Otherwise it is a new fit, which is kept beside the sheet `keep`. It holds all rows of `table`.
    """
    tell(table.notes, request, echo)
    return _kept_or_new(table.sampled, request, sheets, echo, keep).with_table(table)


def _kept_or_new(
    table: Table, request: Request, sheets: Sequence[Path], echo: Echo, keep: Path | None
) -> Fit:
    if not sheets:
        return fit_rows(table, request)
    key = _fit_key(table, request)
    for sheet in sheets:
        path = sheet.with_suffix(FIT_SUFFIX)
        # What is not a fit is replaced only if the user asked for that.
        is_strict = sheet == keep and not request.running.force
        if path.is_file() and (found := _load(path, key, is_strict, echo)) is not None:
            return found  # the numbers are the same; what names or labels the rows may differ
    fit = fit_rows(table, request)
    if keep is not None:
        from gammagmm.estimator.saved_fit import save_fit

        save_fit(fit, keep.with_suffix(FIT_SUFFIX), key, overwrite=True)
    return fit


def _load(path: Path, key: str, is_strict: bool, echo: Echo) -> Fit | None:
    """The fit in the file at `path`, or None if it is another one or damaged."""
    from gammagmm.estimator.saved_fit import load_fit

    try:
        found = load_fit(path, key)
    except SavedFileError as error:
        if is_strict:
            raise
        echo(f"note: {one_line(error.what)}. The rows are fitted again.")
        return None
    if found is None:
        name = one_line(str(path))
        echo(f"note: {name} has a fit of other rows or options. The rows are fitted again.")
    return found


def _fit_key(table: Table, request: Request) -> str:
    """Text that is the same for the same rows, options and versions."""
    from gammagmm.estimator.summary import installed_versions

    options = asdict(request.method) | {
        "jobs": None,
        "columns": table.columns,
        "shape": [table.sample.n_rows, *table.values.shape],
    }
    options |= installed_versions()
    digest = sha256(np.ascontiguousarray(table.values).data)
    digest.update(json.dumps(options, sort_keys=True).encode())
    return digest.hexdigest()


def fit_rows(table: Table, request: Request) -> Fit:
    """The fit, with a progress bar if standard error is a terminal."""
    from gammagmm.estimator.cost import expected_seconds
    from gammagmm.estimator.parameters import check_parameters

    gc.freeze()  # what has been imported
    gc.enable()
    estimator = _estimator(request)
    plan = check_parameters(estimator.get_params(deep=False))
    expected = expected_seconds(plan, *table.values.shape)
    with progress_bar("fit", expected, request.running.quiet) as progress:
        return estimator._fit_table(table, replace(plan, progress=progress)).fit_


def _detectors(method: Method) -> str | list[str]:
    """A preset, or a list of names."""
    from gammagmm.detectors.presets import NAMES

    names = [name.strip() for name in method.detectors.split(",")]
    return names[0] if len(names) == 1 and names[0] not in NAMES else names


def _estimator(request: Request) -> GammaGMM:
    """The estimator with the options of the command."""
    from gammagmm.estimator.gamma_gmm import GammaGMM

    method = request.method
    return GammaGMM(
        _detectors(method),
        scale=None if method.scale == "none" else method.scale,
        learn=method.learn,
        label_error=method.label_error,
        p0=method.p0,
        p_high=method.p_high,
        high_gamma=method.high_gamma,
        max_gamma=method.max_gamma,
        n_runs=method.runs,
        timeout=method.timeout,
        detector_timeout=method.detector_timeout,
        columns=choices_of(request.reading).columns,
        strict=request.reading.strict,
        random_state=method.seed,
        n_jobs=method.jobs,
    )
