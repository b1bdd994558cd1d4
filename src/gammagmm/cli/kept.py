"""A fit and where its rows came from <-> the file of a kept fit."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gammagmm.cli.options import FIT_SUFFIX, Method, Reading, Request
from gammagmm.cli.request import UsageError
from gammagmm.errors import Note, SavedFileError
from gammagmm.estimator.saved_parts import SavedTexts
from gammagmm.report.origin import Origin

if TYPE_CHECKING:
    from gammagmm.estimator.fit_result import Fit
    from gammagmm.estimator.saved_fit import LoadedFit
    from gammagmm.labels.sample import Sample
    from gammagmm.table.preparation import Preparation

__all__ = ["KeptSource", "check_kept", "keep_fit", "kept_path", "open_kept"]

NEW_FILE = "Give the files with the rows instead of --from."


@dataclass(frozen=True, eq=False)
class KeptSource:
    """What the file of a kept fit has of an `Origin`."""

    name: str
    ids: SavedTexts | None
    places: NDArray[np.int64] | None  # of the rows in their file
    digest: str
    truth: NDArray[np.int64] | None
    notes: tuple[Note, ...]
    id_column: str | None
    hidden: tuple[str, ...]

    @classmethod
    def of(cls, origin: Origin) -> KeptSource:
        """The record of rows that were read from a file."""
        places = origin.rows if origin.numbers is None else origin.numbers
        return cls(
            name=origin.name,
            ids=None if origin.ids is None else SavedTexts.of(origin.ids),
            places=None if places is None else np.array(places, dtype=np.int64),
            digest=origin.digest,
            truth=None if origin.truth is None else origin.truth.astype(np.int64),
            notes=origin.notes,
            id_column=origin.id_column,
            hidden=tuple(sorted(origin.hidden)),
        )

    def fits(self, sample: Sample) -> bool:
        """Whether it can be the source of these rows."""
        n_rows = sample.n_held
        is_right = self.ids is None or len(self.ids) == n_rows
        if self.places is not None:
            differ = len(np.unique(self.places)) == n_rows and bool((self.places >= 0).all())
            is_right = is_right and self.places.shape == (n_rows,) and differ
            is_right = is_right and bool((np.diff(self.places[: sample.n_sampled]) > 0).all())
        if self.truth is not None:
            is_label = bool(np.isin(self.truth, (0, 1)).all())
            is_right = is_right and self.truth.shape == (n_rows,) and is_label
        return is_right

    def origin(self, preparation: Preparation) -> Origin:
        """Where the rows came from; `preparation` is that of the fit."""
        return Origin(
            name=self.name,
            columns=preparation.outputs,
            ids=None if self.ids is None else self.ids.texts,
            rows=None if self.places is None else tuple(self.places.tolist()),
            digest=self.digest,
            truth=self.truth,
            notes=self.notes,
            id_column=self.id_column,
            hidden=frozenset(self.hidden),
            preparation=preparation,
        )


def kept_path(name: Path) -> Path:
    """The file of the kept fit `name`, which gets the suffix .fit if it has none."""
    return name if name.suffix else name.with_suffix(FIT_SUFFIX)


def keep_fit(fit: Fit, origin: Origin, path: Path, overwrite: bool) -> None:
    """Write the fit of rows from a file to `path`, completely or not at all."""
    from gammagmm.estimator.saved_fit import save_fit

    source = None if origin.preparation is None else KeptSource.of(origin)
    save_fit(fit, path, overwrite=overwrite, source=source)


def open_kept(path: Path) -> tuple[LoadedFit, Origin]:
    """The fit in the file at `path`, and where its rows came from."""
    from gammagmm.estimator.saved_fit import read_fit

    loaded = read_fit(path, KeptSource)
    fit, source = loaded.fit, loaded.source
    if source is None:  # GammaGMM.save wrote it
        index = fit.container.index
        ids = None if index is None else tuple(map(str, index))
        named, preparation = fit.number_names or None, fit.preparation
        return loaded, Origin(path.name, columns=named, ids=ids, preparation=preparation)
    if not source.fits(fit.sample):
        raise SavedFileError(
            f"{path} cannot be read as a saved fit: its source does not fit to its rows",
            "Fit the rows again.",
        )
    return loaded, source.origin(fit.preparation)


def check_kept(request: Request) -> None:
    """Refuse options that would need another fit than the kept one, or the files of its rows."""
    if request.reading.paths:
        raise UsageError("--from and files with rows cannot be given together", "Give one of them.")
    settings = getattr(request.running.config, "values", {})
    own = {"jobs", "timeout", *settings}
    changed = [*_changed(request.method, own), *_changed(request.reading, own)]
    if changed:
        raise UsageError(
            f"--from takes the fit as it is, and {', '.join(changed)} would change it",
            f"Leave out {', '.join(changed)}, or give the files with the rows instead of --from.",
        )
    if request.answer.columns:
        raise UsageError("--columns shows the columns of files, not of a kept fit", NEW_FILE)
    if request.labelling.by is not None:
        raise UsageError(
            "--by needs a column of the file, which a kept fit does not have", NEW_FILE
        )
    if request.engine.name != "memory":
        raise UsageError("--from reads no files, so it needs no engine", "Leave out --engine.")


def _changed(given: Method | Reading, ignored: set[str]) -> list[str]:
    """The options of a group whose values are not the defaults."""
    default = type(given)()
    names = [name for name in vars(given) if name not in ignored | {"paths"}]
    changed = [name for name in names if getattr(given, name) != getattr(default, name)]
    return [f"--{name.replace('_', '-')}" for name in changed]
