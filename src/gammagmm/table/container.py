"""Answers -> a data frame of the kind that the rows came in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.data_frames import as_frame
from gammagmm.errors import MissingExtraError

__all__ = ["Container", "is_default"]

Array = NDArray[np.float64]

INDEXED = ("pandas", "modin", "cudf")
"""Kinds of data frames that have an index."""


@dataclass(frozen=True, eq=False)
class Container:
    """The kind of data frame that rows came in, by its name in Narwhals, and its index.

    Rows that came in an array have pandas data frames.
    """

    kind: str = "pandas"
    index: Any = None  # of pandas, Modin or cuDF

    @classmethod
    def of(cls, X: Any) -> Container:
        """That of the rows `X`; a lazy frame has the kind that `collect` gives."""
        frame = as_frame(X)
        if frame is None:
            return cls()
        native, kind = frame.to_native(), frame.implementation.value
        index = native.index.copy() if kind in INDEXED else None
        return cls(kind if kind in (*INDEXED, "polars") else "pyarrow", index)

    @property
    def row_names(self) -> tuple[str, ...] | None:
        """The names of the rows by their index; None if it only has their numbers."""
        if self.index is None or is_default(self.index):
            return None
        return tuple(map(str, self.index))

    def first(self, n: int) -> Container:
        """That of the first `n` rows."""
        return self if self.index is None else replace(self, index=self.index[:n])

    def with_more(self, more: Container) -> Container:
        """That of these rows, and then those of `more`, if both have an index."""
        if self.index is None or more.index is None:
            return self
        return replace(self, index=self.index.append(more.index))

    def frame(self, columns: dict[str, Any]) -> Any:
        """Columns by name as a data frame of this kind, which `GammaGMM.to_frame` gives."""
        import narwhals.stable.v2 as nw

        try:
            made = nw.from_dict(columns, backend=cast("Any", self.kind)).to_native()
        except ModuleNotFoundError as error:
            if error.name != self.kind:
                raise
            needs = f"to_frame needs {self.kind}"
            extra = "data" if self.kind == "pyarrow" else self.kind
            raise MissingExtraError(needs, extra, name=self.kind) from None
        if self.index is not None:
            made.index = self.index
        return made


def is_default(index: Any) -> bool:
    """Whether an index of pandas has the numbers from 0 and no name."""
    import pandas as pd

    is_range = isinstance(index, pd.RangeIndex) and index.name is None
    return is_range and (index.start, index.step) == (0, 1)
