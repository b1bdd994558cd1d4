"""Which rows of a table are held: all of them, or a random sample and some others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

__all__ = ["Sample"]

Numbers = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Sample:
    """The rows of a table that are held.

    Attributes
    ----------
    n_rows : int
        Number of rows of the table.
    n_sampled : int
        Number of rows that are a uniform sample of the table. They are held first, in rising order.
    numbers : ndarray of shape (n_held,) or None
        Number in the table, from 0, of each row that is held; None if all rows are held.

    Examples
    --------
    >>> sample = Sample(1000, 3, np.array([20, 500, 900])).with_more(np.array([7]))
    >>> sample.n_held, sample.places(np.array([7, 500])).tolist()
    (4, [3, 1])
    """

    n_rows: int
    n_sampled: int
    numbers: Numbers | None = None

    @classmethod
    def whole(cls, n_rows: int) -> Sample:
        """All rows of a table of `n_rows` rows."""
        return cls(n_rows, n_rows)

    @property
    def is_whole(self) -> bool:
        """Whether all rows of the table are held."""
        return self.numbers is None

    @property
    def n_held(self) -> int:
        """Number of rows that are held."""
        return self.n_rows if self.numbers is None else len(self.numbers)

    @property
    def all_places(self) -> Numbers:
        """Places of the held rows: 0, 1, ..."""
        return np.arange(self.n_held)

    def number(self, places: Numbers) -> Numbers:
        """Numbers in the table of the rows held at these places."""
        return places if self.numbers is None else self.numbers[places]

    def places(self, numbers: Numbers) -> Numbers:
        """Places among the held rows of the rows with these numbers, all of which are held."""
        if self.numbers is None:
            return numbers
        order = self._order
        return order[np.searchsorted(self.numbers, numbers, sorter=order)]

    def not_held(self, numbers: Numbers) -> Numbers:
        """Those of the `numbers`, in rising order, whose rows are not held."""
        return np.empty(0, np.intp) if self.numbers is None else np.setdiff1d(numbers, self.numbers)

    def with_more(self, numbers: Numbers) -> Sample:
        """The sample, with the rows with these numbers held after all others."""
        return replace(self, numbers=np.append(self.number(self.all_places), numbers))

    @cached_property
    def _order(self) -> Numbers:
        return np.argsort(self.numbers)  # type: ignore[arg-type]
