"""JSON files with a schema and a version: written whole or not at all, read with suspicion."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from gammagmm.errors import SavedFileError

__all__ = ["Form", "Reader", "or_null", "read_document", "to_text", "unique_keys"]

Array = NDArray[np.float64]
Record = TypeVar("Record")
MAX_BYTES = 64_000_000
"""Larger files are refused unread: a posterior takes some 60 bytes a part."""
MAX_REASON = 500
"""Characters of a message that may come from the file."""
_JSON_NAMES = {str: "text", int: "a whole number", bool: "true or false"}


@dataclass(frozen=True)
class Form:
    """A kind of document: its schema, its newest version, and its name in messages."""

    schema: str
    version: int
    noun: str

    @property
    def header(self) -> dict[str, Any]:
        """The fields that every document of this kind begins with."""
        return {"schema": self.schema, "version": self.version}


def to_text(data: dict[str, Any]) -> str:
    """`data` as JSON, each float written so that it reads back as itself."""
    return json.dumps(data, indent=1, allow_nan=False) + "\n"


def read_document(path: Any, reader: Reader) -> str:
    """The text of the file at `path`, or a `SavedFileError`."""
    with Path(path).open("rb") as file:
        n_bytes = os.fstat(file.fileno()).st_size
        # What is no plain file may give more than its size says.
        content = b"" if n_bytes > MAX_BYTES else file.read(MAX_BYTES + 1)
    if max(n_bytes, len(content)) > MAX_BYTES:
        reader.refuse(f"it is larger than {MAX_BYTES:,} bytes")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        reader.refuse("it is no UTF-8 text")


@dataclass(frozen=True)
class Reader:
    """Takes a document apart; whatever is not as its form promises is a `SavedFileError`."""

    form: Form
    where: str  # names the source in messages

    def refuse(self, reason: str) -> NoReturn:
        """Raise, with the source and the `reason`."""
        raise SavedFileError(
            f"{self.where} cannot be read as a {self.form.noun}: {reason[:MAX_REASON]}."
        ) from None

    def parse(self, text: str) -> Any:
        """What the JSON `text` holds."""
        try:
            return json.loads(text, object_pairs_hook=unique_keys)
        except (ValueError, RecursionError) as error:
            self.refuse(f"it is no JSON ({error})")

    def check_header(self, data: Any) -> None:
        """Refuse another schema and a version that is not ours."""
        schema = data.get("schema") if isinstance(data, dict) else None
        if schema != self.form.schema:
            self.refuse(f"its schema must be {self.form.schema!r}, got {_brief(schema)}")
        version = data.get("version")
        if type(version) is not int or version < 1:
            self.refuse(f"its version must be a whole number above 0, got {_brief(version)}")
        if version > self.form.version:
            reads = f"this gammagmm reads up to {self.form.version}"
            self.refuse(f"it has version {_brief(version)}, {reads}: upgrade gammagmm")

    def check_fields(self, data: Any, names: set[str], name: str) -> None:
        """Refuse what is no object with just these fields."""
        if not isinstance(data, dict):
            self.refuse(f"{name} must be an object, got {type(data).__name__}")
        if wrong := sorted(data.keys() ^ names):
            self.refuse(f"{name} lacks, or has beyond its fields: {', '.join(wrong)}")

    def number(self, name: str, value: Any) -> float:
        """A finite number; text, booleans, null and the like are refused."""
        if type(value) not in (int, float) or not abs(value) <= sys.float_info.max:
            self.refuse(f"{name} must hold finite numbers, got {_shown(value)}")
        return float(value)

    def numbers(self, name: str, value: Any) -> Array:
        """A list of finite numbers."""
        return np.array([self.number(name, item) for item in self.items(name, value)], dtype=float)

    def items(self, name: str, value: Any) -> list[Any]:
        """A list of anything."""
        if not isinstance(value, list):
            self.refuse(f"{name} must be a list, got {type(value).__name__}")
        return value

    def plain(self, name: str, value: Any, kind: type) -> Any:
        """A text, whole number or boolean, by `kind`."""
        if type(value) is not kind:
            self.refuse(f"{name} must be {_JSON_NAMES[kind]}, got {_shown(value)}")
        return value

    def record(self, cls: type[Record], name: str, data: Any) -> Record:
        """An object of the dataclass `cls` from its fields; null is NaN where a float belongs."""
        hints = get_type_hints(cls)
        self.check_fields(data, {field.name for field in fields(cls)}, name)  # type: ignore[arg-type]
        return cls(**{key: self._value(f"{name}.{key}", data[key], hints[key]) for key in data})

    def _value(self, name: str, value: Any, kind: Any) -> Any:
        if get_origin(kind) is Literal:
            if value not in get_args(kind):
                self.refuse(f"{name} must be one of {get_args(kind)}, got {_shown(value)}")
            return value
        if kind is float:
            return np.nan if value is None else self.number(name, value)
        return self.plain(name, value, kind)


def or_null(value: float) -> float | None:
    """NaN, which JSON has not, as null."""
    return None if np.isnan(value) else float(value)


def _shown(value: Any) -> str:
    return repr(value)[:40] if type(value) in (float, bool, str) else type(value).__name__


def _brief(value: Any) -> str:
    """The value where it is a plain one, its type otherwise: it may be nested without end."""
    return repr(value)[:40] if value is None or isinstance(value, int) else _shown(value)


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Dictionary of the members of a JSON object; a key that occurs twice is a ValueError.

    It is an ``object_pairs_hook`` of `json.loads`.
    """
    if len(made := dict(pairs)) < len(pairs):
        raise ValueError("a key occurs twice in one object")
    return made
