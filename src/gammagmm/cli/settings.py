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
from inspect import signature
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin

from gammagmm.errors import GammaGMMError, Note

__all__ = ["Settings", "SettingsError", "defaults_of", "find_file"]

OWN_FILE, PROJECT_FILE = "gammagmm.toml", "pyproject.toml"
NO_FILE = "none"
"""Value of --config with which no file is read."""
OUTPUTS = frozenset({"history", "out", "picture", "posterior", "report", "save"})
NOT_IN_FILES = OUTPUTS | {"config", "debug", "force", "from", "scheduler"}
"""Options that a file must not set: it could write or replace files, or send the rows somewhere."""
MAX_BYTES = 1_000_000
MAX_SHOWN = 60
"""Most characters of a wrong value that an error shows."""
WORDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text in quotation marks",
    list: "a list of texts",
}


class SettingsError(GammaGMMError, ValueError):
    """A file with settings cannot be read, or has a wrong key or value."""


@dataclass(frozen=True)
class Settings:
    """The settings of one command, from a file."""

    path: Path | None = None
    values: Mapping[str, Any] = field(default_factory=dict)  # by the name of the parameter
    keys: Mapping[str, str] = field(default_factory=dict)  # the same -> key in the file

    def used(self, given: Mapping[str, Any]) -> Settings:
        """The settings that the values `given` to the command have; the others were overridden."""
        same = {name: v for name, v in self.values.items() if _is_same(given.get(name), v)}
        return Settings(self.path, same, self.keys)

    @property
    def notes(self) -> tuple[Note, ...]:
        """A note that tells the settings; none where there are none."""
        if not self.values:
            return ()
        told = (f"{self.keys[name]} = {_as_toml(value)}" for name, value in self.values.items())
        return (Note.of("settings.given", str(self.path), settings=", ".join(told)),)


@dataclass(frozen=True)
class Setting:
    """An option that a file may set."""

    name: str  # of the parameter
    kind: type[Any]
    choices: tuple[str, ...]


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
    known = {
        name: _settings_of(name, each)
        for name, each in commands.items()
        if "config" in signature(each.callback).parameters
    }
    table = _read(path)
    for key, value in table.items():
        if isinstance(value, dict):
            _check_name(path, key, key, known, "command")
            for inner, inner_value in value.items():
                _check(path, f"{key}.{inner}", inner, inner_value, known[key])
        else:
            of_all = {k: setting for each in known.values() for k, setting in each.items()}
            _check(path, key, key, value, of_all)
    own = known[command]
    chosen = {key: value for key, value in table.items() if key in own} | table.get(command, {})
    values = {own[key].name: _as_given(own[key], value) for key, value in chosen.items()}
    return Settings(path, values, {own[key].name: key for key in chosen})


def _read(path: Path) -> dict[str, Any]:
    """The settings in the file; empty if it is a pyproject.toml without them."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        is_project = path.name == PROJECT_FILE
        if len(data) > MAX_BYTES:
            raise SettingsError(f"{path} is larger than {MAX_BYTES:,} bytes", "Give a TOML file.")
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


def _settings_of(name: str, command: Any) -> dict[str, Setting]:
    """The options of a command that a file may set, by their long names."""
    hints = signature(command.callback).parameters
    found = {}
    for option in command.params:
        key = option.opts[0].removeprefix("--")
        if option.param_type_name == "option" and key not in NOT_IN_FILES:
            choices = tuple((option.metavar or "").split("|"))
            kind = _kind(get_args(hints[option.name].annotation)[0])
            found[key] = Setting(option.name, kind, choices if len(choices) > 1 else ())
    return found


def _kind(hint: Any) -> type[Any]:
    """The type of a value in TOML for a parameter with this annotation."""
    if get_origin(hint) is UnionType:
        hint = next(each for each in get_args(hint) if each is not type(None))
    if get_origin(hint) is list:
        return list
    return hint if hint in (bool, int, float) else str


def _check(path: Path, key: str, name: str, value: Any, known: Mapping[str, Setting]) -> None:
    """Refuse a `name` that is no option and a value of the wrong type; `key` has its table too."""
    if name in NOT_IN_FILES:
        raise SettingsError(
            f"{path}: {key} cannot be set in a file", f"Pass --{name} on the command line."
        )
    _check_name(path, key, name, known, "option")
    setting = known[name]
    words = ", ".join(setting.choices) or WORDS[setting.kind]
    is_choice = not setting.choices or value in setting.choices
    if not (_is_valid(value, setting.kind) and is_choice):
        found = repr(value)
        found = found if len(found) <= MAX_SHOWN else f"{found[:MAX_SHOWN]}…"
        raise SettingsError(
            f"{path}: {key} must be {'one of ' * bool(setting.choices)}{words}, got {found}",
            "Correct the file.",
        )


def _check_name(path: Path, key: str, name: str, known: Mapping[str, Any], what: str) -> None:
    """Refuse a key that is not the name of an option or a command."""
    if name in known:
        return
    near = get_close_matches(name.replace("_", "-"), known, cutoff=0.5)
    raise SettingsError(
        f"{path}: there is no {what} {key[:MAX_SHOWN]!r}",
        f"Similar ones: {', '.join(near)}." if near else f"The {what}s are {', '.join(known)}.",
    )


def _is_valid(value: Any, kind: type[Any]) -> bool:
    if kind is list:
        return isinstance(value, str) or (
            isinstance(value, list) and all(isinstance(each, str) for each in value)
        )
    if isinstance(value, bool) or kind is bool:
        return isinstance(value, bool) and kind is bool
    return isinstance(value, (int, float) if kind is float else kind)


def _as_given(setting: Setting, value: Any) -> Any:
    """The value as a default of the option."""
    return [value] if setting.kind is list and isinstance(value, str) else value


def _as_toml(value: Any) -> str:
    """The value as TOML; numbers, texts, lists and truth values are written as in JSON."""
    return json.dumps(value, ensure_ascii=False)


def _is_same(given: Any, value: Any) -> bool:
    """Whether an option has the value of the file; paths are text there."""
    if isinstance(value, list):
        return list(map(str, given or ())) == value
    return str(given) == value if isinstance(value, str) else bool(given == value)
