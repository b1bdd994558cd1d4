"""A file with settings -> defaults of the options of a command.

The file is ``gammagmm.toml`` in the working directory, or ``pyproject.toml`` with a table
``[tool.gammagmm]``. Its keys are the long names of options, for all commands or in a table for one.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import typer

from gammagmm.errors import GammaGMMError, Note

__all__ = ["Settings", "SettingsError", "defaults_of", "find_file"]

OWN_FILE, PROJECT_FILE = "gammagmm.toml", "pyproject.toml"
NO_FILE = "none"
"""Value of --config with which no file is read."""
OUTPUTS = frozenset({"history", "out", "picture", "posterior", "report", "save"})
NOT_IN_FILES = OUTPUTS | {"config", "debug", "force", "from", "scheduler"}
"""Options that a file must not set: it could write or replace files, or send the rows somewhere."""
MAX_SETTINGS_BYTES = 1_000_000
MAX_SHOWN = 100
"""Most characters of a wrong value that an error shows, and of what is wrong with it."""


class SettingsError(GammaGMMError, ValueError):
    """A file with settings cannot be read, or has a wrong key or value."""


@dataclass(frozen=True)
class Settings:
    """The settings of one command, from a file."""

    path: Path | None = None
    values: Mapping[str, Any] = field(default_factory=dict)  # by the name of the parameter
    lines: Mapping[str, str] = field(default_factory=dict)  # the same, as in the file

    def used(self, given: Mapping[str, Any]) -> Settings:
        """The settings that the values `given` to the command have; the others were overridden."""
        same = {name: v for name, v in self.values.items() if _text(given.get(name)) == _text(v)}
        return Settings(self.path, same, self.lines)

    @property
    def notes(self) -> tuple[Note, ...]:
        """A note that tells the settings; none where there are none."""
        if not self.values:
            return ()
        told = ", ".join(self.lines[name] for name in self.values)
        return (Note.of("settings.given", str(self.path), settings=told),)


def _text(value: Any) -> Any:
    """A value as text: a file has text in place of paths."""
    return list(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def find_file(config: str | None) -> Path | None:
    """The file with settings: `config` if it is given, otherwise one in the working directory."""
    if config == NO_FILE:
        return None
    if config is not None:
        return Path(config)
    return next((Path(name) for name in (OWN_FILE, PROJECT_FILE) if Path(name).is_file()), None)


def defaults_of(command: str, commands: Mapping[str, Any], config: str | None) -> Settings:
    """The settings for a command, one of `commands` (by their names), from the file."""
    path = find_file(config)
    if path is None:
        return Settings()
    known = {name: _options_of(each) for name, each in commands.items()}
    known = {name: options for name, options in known.items() if "config" in options}
    of_any = {key: option for options in known.values() for key, option in options.items()}
    table, values, lines = _read(path), {}, {}
    tables = {name: own for name, own in table.items() if isinstance(own, dict)}
    general = {key: value for key, value in table.items() if key not in tables}
    for name, settings in (("", general), *tables.items()):
        if name:
            _check_name(path, name, name, known, "command")
        for key, value in settings.items():
            where = f"{name}.{key}" if name else key
            read = _value(path, where, key, value, known[name] if name else of_any)
            if name in ("", command) and (option := known[command].get(key)):
                values[option.name] = read
                lines[option.name] = f"{key} = {json.dumps(value, ensure_ascii=False)}"
    return Settings(path, values, lines)


def _read(path: Path) -> dict[str, Any]:
    """The settings in the file; empty if it is a pyproject.toml without them."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_SETTINGS_BYTES + 1)
        is_project = path.name == PROJECT_FILE
        if len(data) > MAX_SETTINGS_BYTES:
            raise SettingsError(
                f"{path} is larger than {MAX_SETTINGS_BYTES:,} bytes", "Give a TOML file."
            )
        if is_project and b"gammagmm" not in data:
            return {}
        found: Any = tomllib.loads(data.decode("utf-8"))
    except OSError as error:
        raise SettingsError(
            f"{path} cannot be read ({error.strerror})", "Check the path."
        ) from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise SettingsError(
            f"{path} is not a TOML file ({error})",
            "Correct it, or pass --config none to use no settings.",
        ) from error
    if is_project:
        for name in ("tool", "gammagmm"):
            found = found.get(name, {}) if isinstance(found, dict) else found
    if not isinstance(found, dict):
        raise SettingsError(
            f"{path}: tool.gammagmm must be a table", "Write [tool.gammagmm] above the settings."
        )
    return found


def _options_of(command: Any) -> dict[str, Any]:
    """The options of a command, by their long names."""
    options = [each for each in command.params if each.param_type_name == "option"]
    return {option.opts[0].removeprefix("--"): option for option in options}


def _value(path: Path, where: str, key: str, value: Any, known: Mapping[str, Any]) -> Any:
    """The value of the option `key`, as the command line reads it; `where` has its table too."""
    if key in NOT_IN_FILES:
        raise SettingsError(
            f"{path}: {where} cannot be set in a file", f"Pass --{key} on the command line."
        )
    _check_name(path, where, key, known, "option")
    option, given = known[key], value if isinstance(value, list) else [value]
    is_valid = all(isinstance(each, (str, int, float)) for each in given)
    if not is_valid or (isinstance(value, list) and not option.multiple):
        raise SettingsError(
            f"{path}: {where} must be a single value or, for some options, a list of texts",
            "Correct the file.",
        )
    texts: Any = list(map(str, given)) if option.multiple else str(given[0])
    try:
        return option.process_value(None, texts)
    except typer.BadParameter as error:
        line, what = f"{where} = {texts!r}", str(error.message).removesuffix(".")
        raise SettingsError(
            f"{path}: {line[:MAX_SHOWN]}: {what[:MAX_SHOWN]}", "Correct the file."
        ) from error


def _check_name(path: Path, key: str, name: str, known: Mapping[str, Any], what: str) -> None:
    """Refuse a key that is not the name of an option or a command."""
    if name in known:
        return
    near = get_close_matches(name.replace("_", "-"), known, cutoff=0.5)
    raise SettingsError(
        f"{path}: there is no {what} {key[:60]!r}",
        f"Similar ones: {', '.join(near)}." if near else f"The {what}s are {', '.join(known)}.",
    )
