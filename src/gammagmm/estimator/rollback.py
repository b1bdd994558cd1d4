"""An estimator's change that fails -> the estimator as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["undone_on_failure"]


@contextmanager
def undone_on_failure(estimator: Any) -> Iterator[None]:
    """Take back what the block set on `estimator`, if anything is raised in it.

    Half a fit beside half of the one before would answer, and wrongly.
    """
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).update(before)
        for name in vars(estimator).keys() - before.keys():
            delattr(estimator, name)
        raise
