"""Answers -> a data frame of the kind that the rows came in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.data_frames import as_frame
from gammagmm.errors import MissingExtraError
from gammagmm.inspection.labelled_rows import GroupShare

__all__ = ["OUTPUTS", "Container", "as_output", "group_frame"]

Array = NDArray[np.float64]

OUTPUTS = ("default", "native", "pandas", "polars", "pyarrow")
"""What `predict` can return: an array, the kind of the rows, or the kind of a package."""
INDEXED = ("pandas", "modin", "cudf")
"""Kinds of data frames that have an index."""
GROUP_COLUMNS = (
    *("n_rows", "n_flagged", "share_flagged", "low_flagged", "high_flagged"),
    *("n_labels", "n_anomalies"),
)
"""Attributes of a `GroupShare` that are columns of a data frame."""


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

    def series(self, name: str, values: Any, question: str) -> Any:
        """Values as a series of this kind."""
        return self._native(lambda nw: nw.new_series(name, values, backend=self.kind), question)

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


def as_output(labels: Any, X: Any, output: str) -> Any:
    """The labels of the rows `X` as one of `OUTPUTS`; lazy dask arrays stay what they are."""
    is_array = output == "native" and as_frame(X) is None
    if output == "default" or is_array or not isinstance(labels, np.ndarray):
        return labels
    container = Container.of(X)
    if output not in ("native", container.kind):
        container = Container(output)
    return container.series("label", labels, f"set_output(predict={output!r})")


def group_frame(shares: Sequence[GroupShare], container: Container) -> Any:
    """A line for each group; its name is the index, or a column where there is none."""
    own = [share.posterior for share in shares]
    ends = [(np.nan, np.nan) if each is None else each.interval() for each in own]
    columns: dict[str, list[Any]] = {
        name: [getattr(share, name) for share in shares] for name in GROUP_COLUMNS
    }
    columns |= {
        "mean": [np.nan if each is None else each.mean for each in own],
        "low": [low for low, _ in ends],
        "high": [high for _, high in ends],
    }
    names = [share.group for share in shares]
    if container.kind in INDEXED:
        frame = Container(container.kind).frame(columns, "by_group")
        frame.index = names
        return frame.rename_axis(index="group")
    is_mixed = len({type(name) for name in names}) > 1
    named = {"group": list(map(str, names)) if is_mixed else names}
    return container.frame(named | columns, "by_group")
