"""What was replaced and still works for one release, with a FutureWarning."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["DEPRECATED", "moved_name", "no_effect", "warn_if_given"]

DEPRECATED = "deprecated"
"""Default of a parameter that will be removed, as in scikit-learn; signatures write it out."""


def no_effect(name: str, todo: str) -> str:
    """The sentences about a parameter or an option of version 0.1 that is ignored."""
    return f"{name} has no effect since version 0.2 and will be removed in version 0.3. {todo}"


def warn_if_given(name: str, value: Any, todo: str) -> None:
    """Warn that the parameter `name` is ignored, unless its `value` is the default."""
    from gammagmm._support.checks import warn_user

    if not (isinstance(value, str) and value == DEPRECATED):
        warn_user(no_effect(name, todo), FutureWarning)


def moved_name(module: str, name: str, moved: str) -> Any:
    """The attribute `name` of a `module` of version 0.1, from which only the name `moved` is left.

    It is called by the ``__getattr__`` of the module.
    """
    from gammagmm._support.checks import warn_user

    if name != moved:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    warn_user(
        f"The module {module} will be removed in version 0.3. Write: from gammagmm import {name}",
        FutureWarning,
    )
    return getattr(import_module("gammagmm"), name)
