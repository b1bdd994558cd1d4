"""The commands that come next, with the files and options of the one that was given."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, get_args, get_type_hints

from typer.models import ArgumentInfo

from gammagmm._support.text import visible
from gammagmm.cli.options import Inspecting, Request
from gammagmm.table.table import Commands

__all__ = ["estimate_command", "label_commands"]

CHECK = Path("check.csv")
"""The sheet of a check, unless the user has one with this name."""


def label_commands(request: Request, name: str | None) -> Commands:
    """The commands that label the rows of a request, whose table has this `name`."""
    reading, labelling = request.reading, request.labelling
    if not reading.paths:  # a kept fit, which has only the name of the file
        is_typed = name is not None and name.isprintable() and ", " not in name
        reading = replace(reading, paths=[name if name and is_typed else "FILE"])
    given = [*(labelling.labels or ()), *([labelling.known] if labelling.known else ())]
    groups = reading, replace(labelling, known=None, second_labels=None), request.engine
    sheet, check = _new_path(Inspecting().sheet, given), _new_path(CHECK, given)
    asked = (
        Inspecting(sheet=sheet),
        Inspecting(sheet=check, purpose="check"),
        Inspecting(sheet=sheet, purpose="find"),
    )
    words = (_command("label", *groups, request.method, each) for each in asked)
    return Commands(*words)


def estimate_command(request: Request, sheet: Path) -> str:
    """The command that uses the answers in a `sheet`, beside those of the request."""
    labels = [*(request.labelling.labels or ()), sheet]
    labelling = replace(request.labelling, labels=labels)
    return _command("estimate", request.reading, labelling, request.engine, request.method)


def _new_path(path: Path, given: Sequence[Path]) -> Path:
    """The `path`, or one with a number, that is none of those `given`."""
    known, n = {each.absolute() for each in given}, 1
    new = path
    while new.absolute() in known:
        n += 1
        new = path.with_stem(f"{path.stem}_{n}")
    return new


def _command(name: str, *groups: Any) -> str:
    """A command with the options of these groups that do not have their defaults."""
    words = [word for group in groups for word in _words(group)]
    return visible(shlex.join(["gammagmm", name, *words]))


def _words(group: Any) -> Iterator[str]:
    hints = get_type_hints(type(group), include_extras=True)
    for field in fields(group):
        value, declared = getattr(group, field.name), get_args(hints[field.name])[1]
        values = value if isinstance(value, list) else [value]
        if isinstance(declared, ArgumentInfo):
            yield from values
        elif value != field.default:
            names = [declared.default, *(declared.param_decls or ())]
            own = [each for each in names if isinstance(each, str) and each.startswith("--")]
            option = own[0] if own else f"--{field.name.replace('_', '-')}"
            for each in values:
                yes, _, no = option.partition("/")
                yield from [yes if each else no] if isinstance(each, bool) else [yes, str(each)]
