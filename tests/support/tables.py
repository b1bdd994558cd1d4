"""Tables for tests: rows and what is known of them, without a file."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm.estimator.fit_result import Fit
from gammagmm.table.preparation import Preparation
from gammagmm.table.sample import Sample
from gammagmm.table.table import Table

__all__ = ["knowing", "table_of"]


def table_of(
    X: NDArray[np.float64],
    columns: tuple[str, ...] | None = None,
    id_column: str | None = None,
    **known: Any,
) -> Table:
    """The rows `X` as a table, of which something else is known."""
    preparation = Preparation(columns, X.shape[1], id=id_column)
    return Table(X, preparation, Sample.whole(len(X)), **known)


def knowing(fit: Fit, columns: tuple[str, ...] | None = None, **known: Any) -> Fit:
    """The fit, of whose rows something else is known."""
    table = fit.table
    if columns is not None:
        table = replace(table, preparation=Preparation(columns, len(columns)))
    return replace(fit, table=replace(table, **known))
