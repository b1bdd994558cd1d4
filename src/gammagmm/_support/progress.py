"""What is being done now, told to the user's callback and shown as a bar."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from gammagmm.errors import MissingExtraError

__all__ = ["Progress", "check_progress", "quiet", "tell"]

Progress: TypeAlias = Callable[[str, str, float], Any]
"""Called with what is at work, its state ("started", then its status) and its seconds."""


def quiet(subject: str, state: str, seconds: float) -> None:
    """Nothing: the progress of those who did not ask for it."""


def check_progress(progress: Any, verbose: Any) -> None:
    """Refuse a `progress` that cannot be called, and a bar that cannot be drawn."""
    if progress is not None and not callable(progress):
        raise TypeError(f"progress must be a function or None, got {progress!r}.")
    if verbose:
        _tqdm()


@contextmanager
def tell(
    progress: Progress | None, verbose: int, description: str, total: int
) -> Iterator[Progress]:
    """Callback that passes all it hears on to `progress` and, if `verbose`, to a bar of `total`."""
    told = progress or quiet
    if not verbose:
        yield told
        return
    with _tqdm()(total=total, desc=description) as bar:

        def tell_both(subject: str, state: str, seconds: float) -> None:
            if state == "started":
                bar.set_postfix_str(subject)
            else:
                bar.update()
            told(subject, state, seconds)

        yield tell_both


def _tqdm() -> Any:
    """The class tqdm.auto.tqdm: a bar on standard error, a widget in a notebook."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        raise MissingExtraError("verbose=1 needs tqdm: pip install tqdm.") from None
    return tqdm
