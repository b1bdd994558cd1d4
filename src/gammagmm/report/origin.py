"""The file that the rows of a fit came from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gammagmm.errors import Note

__all__ = ["Origin"]


@dataclass(frozen=True)
class Origin:
    """What is known about the rows of a fit beyond their values."""

    name: str = "the table"  # of the file
    columns: tuple[str, ...] | None = None  # names of the features
    ids: tuple[str, ...] | None = None  # names of the rows; None: their numbers from 1
    digest: str = ""  # SHA-256 of the file
    truth: NDArray[np.int_] | None = None  # labels that the method does not use
    notes: tuple[Note, ...] = ()  # changes before the fit
    rows: tuple[int, ...] | None = None  # place of each row in the file, from 0; None: all rows

    def row_number(self, row: int) -> int:
        """Number in the file, from 1, of a training row, from 0."""
        return 1 + (row if self.rows is None else self.rows[row])
