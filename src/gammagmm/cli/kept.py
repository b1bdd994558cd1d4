"""The file of a kept fit, in the place of files with rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gammagmm.cli.options import Method, Reading, Request
from gammagmm.cli.request import UsageError

if TYPE_CHECKING:
    from gammagmm.estimator.saved_fit import LoadedFit

__all__ = ["check_kept", "open_kept"]

NEW_FILE = "Give the files with the rows instead of --from."


def open_kept(path: Path) -> LoadedFit:
    """The fit in the file at `path`, with the name of this file if its rows had none."""
    from gammagmm.estimator.saved_fit import read_fit

    loaded = read_fit(path)
    if loaded.fit.table.name is not None:
        return loaded
    table = replace(loaded.fit.table, name=path.name)
    return replace(loaded, fit=replace(loaded.fit, table=table))


def check_kept(request: Request) -> None:
    """Refuse options that would need another fit than the kept one, or the files of its rows."""
    if request.reading.paths:
        raise UsageError("--from and files with rows cannot be given together", "Give one of them.")
    settings = getattr(request.running.config, "values", {})
    own = {"jobs", "timeout", "detector_timeout", *settings}
    changed = [*_changed(request.method, own), *_changed(request.reading, own)]
    if changed:
        raise UsageError(
            f"--from takes the fit as it is, and {', '.join(changed)} would change it",
            f"Leave out {', '.join(changed)}, or give the files with the rows instead of --from.",
        )
    if request.answer.columns:
        raise UsageError("--columns shows the columns of files, not of a saved fit", NEW_FILE)
    if request.labelling.by is not None:
        raise UsageError(
            "--by needs a column of the file, which a saved fit does not have", NEW_FILE
        )
    if request.engine.name != "memory":
        raise UsageError("--from reads no files, so it needs no engine", "Leave out --engine.")


def _changed(given: Method | Reading, ignored: set[str]) -> list[str]:
    """The options of a group whose values are not the defaults."""
    default = type(given)()
    names = [name for name in vars(given) if name not in ignored | {"paths"}]
    changed = [name for name in names if getattr(given, name) != getattr(default, name)]
    return [f"--{name.replace('_', '-')}" for name in changed]
