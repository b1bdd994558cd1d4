"""Answers -> a data frame of the kind that the rows came in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.data_frames import as_frame
from gammagmm.errors import MissingExtraError

__all__ = ["Container"]

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

    def frame(self, columns: dict[str, Any], question: str) -> Any:
        """Columns by name as a data frame of this kind; `question` asks for it."""
        return self._native(lambda nw: nw.from_dict(columns, backend=self.kind), question)

    def _native(self, make: Callable[[Any], Any], question: str) -> Any:
        import narwhals.stable.v2 as nw

        try:
            made = make(nw).to_native()
        except ModuleNotFoundError as error:
            if error.name != self.kind:
                raise
            needs = f"{question} needs {self.kind}"
            extra = "data" if self.kind == "pyarrow" else self.kind
            raise MissingExtraError(needs, extra, name=self.kind) from None
        if self.index is not None:
            made.index = self.index
        return made
