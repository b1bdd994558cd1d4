"""Parts of a fit that JSON does not have, as records of plain values, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm.errors import Note
from gammagmm.mixture.prior import MixturePrior
from gammagmm.table.container import is_default

__all__ = ["SavedIndex", "SavedPrior", "SavedTexts", "index_notes"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SavedTexts:
    """Texts as the bytes of all of them, and the place at which each ends.

    Examples
    --------
    >>> saved = SavedTexts.of(["a", "", "é"])
    >>> saved.ends.tolist(), saved.texts
    ([1, 1, 3], ('a', '', 'é'))
    """

    content: NDArray[np.uint8]
    ends: NDArray[np.int64]

    @classmethod
    def of(cls, texts: Sequence[str]) -> SavedTexts:
        """The record of these texts."""
        parts = [text.encode("utf-8", "surrogatepass") for text in texts]
        ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
        return cls(np.frombuffer(b"".join(parts), dtype=np.uint8), ends)

    def __post_init__(self) -> None:
        ends = self.ends
        is_right = self.content.ndim == ends.ndim == 1
        is_right = is_right and bool((np.diff(ends, prepend=0) >= 0).all())
        if not is_right or len(self.content) != (ends[-1] if len(ends) else 0):
            raise ValueError("its texts do not end where they should")
        _ = self.texts  # that they are UTF-8

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts."""
        content, ends = self.content.tobytes(), [0, *self.ends.tolist()]
        parts = (content[start:end] for start, end in pairwise(ends))
        return tuple(part.decode("utf-8", "surrogatepass") for part in parts)


@dataclass(frozen=True, eq=False)
class SavedIndex:
    """An index of pandas: whole numbers or texts, and its name.

    Of any other index, such as one of dates, these are the names of the rows, see `index_notes`.
    """

    name: str | None
    numbers: NDArray[np.int64] | None
    texts: SavedTexts | None

    @classmethod
    def of(cls, index: Any) -> SavedIndex | None:
        """The record of an index; None for none and for the default index, which show the same."""
        if index is None or is_default(index):
            return None
        name = None if index.name is None else str(index.name)
        if index.dtype == np.int64 and name == index.name:
            return cls(name, index.to_numpy(dtype=np.int64), None)
        return cls(name, None, SavedTexts.of(list(map(str, index))))

    def __post_init__(self) -> None:
        if (self.numbers is None) == (self.texts is None):
            raise ValueError("an index must have either numbers or texts")
        if self.numbers is not None and self.numbers.ndim != 1:
            raise ValueError("the numbers of an index must be a single column")

    def __len__(self) -> int:
        return len(self.texts if self.numbers is None else self.numbers)  # type: ignore[arg-type]

    def index(self) -> Any:
        """The index."""
        import pandas as pd

        values = self.numbers if self.texts is None else list(self.texts.texts)
        return pd.Index(values, name=self.name)


def index_notes(index: Any) -> list[Note]:
    """A note if the record of an index is not what the index is, but texts."""
    saved = SavedIndex.of(index)
    if saved is None or saved.numbers is not None:
        return []
    are_texts = index.nlevels == 1 and all(isinstance(each, str) for each in index)
    if are_texts and saved.name == index.name:
        return []
    return [Note.of("load.index", "index", kind=f"{type(index).__name__}, {index.dtype}")]


@dataclass(frozen=True, eq=False)
class SavedPrior:
    """A `MixturePrior`, whose covariance is a name or an array."""

    covariance_name: str | None
    covariance: Array | None
    concentration: float
    mean_precision: float
    degrees_of_freedom: float | None
    reg_covar: float

    @classmethod
    def of(cls, prior: MixturePrior) -> SavedPrior:
        """The record of a prior."""
        is_name = isinstance(prior.covariance, str)
        return cls(
            covariance_name=prior.covariance if is_name else None,
            covariance=None if is_name else np.asarray(prior.covariance, dtype=np.float64),
            concentration=float(prior.concentration),
            mean_precision=float(prior.mean_precision),
            degrees_of_freedom=prior.degrees_of_freedom,
            reg_covar=float(prior.reg_covar),
        )

    def __post_init__(self) -> None:
        if (self.covariance_name is None) == (self.covariance is None):
            raise ValueError("a prior must have either the name of a covariance or an array")

    def prior(self, n_detectors: int) -> MixturePrior:
        """The prior of a mixture of the scores of `n_detectors`; ValueError if it is none."""
        prior = MixturePrior(
            self.covariance if self.covariance_name is None else self.covariance_name,
            self.concentration,
            self.mean_precision,
            self.degrees_of_freedom,
            self.reg_covar,
        )
        prior.resolve_covariance(np.eye(n_detectors))
        return prior
