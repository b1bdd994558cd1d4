"""JSON documents with a schema and a version; everything that is read from them is checked."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from types import UnionType
from typing import Any, Literal, NoReturn, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from gammagmm.errors import SavedFileError

__all__ = [
    "MAX_DOCUMENT_BYTES",
    "MAX_REASON",
    "Form",
    "Plain",
    "Reader",
    "Writer",
    "or_null",
    "read_document",
    "record_to_data",
    "to_text",
    "unique_keys",
]

Array = NDArray[np.float64]
Record = TypeVar("Record")
MAX_DOCUMENT_BYTES = 64_000_000
"""Larger files are refused unread; a posterior takes about 60 bytes for each of its parts."""
MAX_REASON = 500
"""Characters of a message that may come from the file."""
SAVED = "Give a file that gammagmm saved."
Plain = str | int | float | bool | None
"""What JSON holds exactly."""
_JSON_NAMES = {str: "text", int: "a whole number", bool: "true or false"}


@dataclass(frozen=True)
class Form:
    """A kind of document: its schema, its version, and its name in messages."""

    schema: str
    version: int
    noun: str
    todo: str = ""  # what to do about a document that is refused, where nothing else is said

    @property
    def header(self) -> dict[str, Any]:
        """The fields at the start of every document of this kind."""
        return {"schema": self.schema, "version": self.version}


def to_text(data: dict[str, Any], *, is_compact: bool = False) -> str:
    """`data` as JSON, in ASCII; every float reads back as the same float."""
    form: dict[str, Any] = {"separators": (",", ":")} if is_compact else {"indent": 1}
    return json.dumps(data, allow_nan=False, **form) + "\n"


def read_document(path: Any, reader: Reader) -> str:
    """The text of the file at `path`, or a `SavedFileError`."""
    with Path(path).open("rb") as file:
        n_bytes = os.fstat(file.fileno()).st_size
        # A device or a pipe can give more bytes than its size says.
        content = b"" if n_bytes > MAX_DOCUMENT_BYTES else file.read(MAX_DOCUMENT_BYTES + 1)
    if max(n_bytes, len(content)) > MAX_DOCUMENT_BYTES:
        reader.refuse(f"it is larger than {MAX_DOCUMENT_BYTES:,} bytes", SAVED)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        reader.refuse("it is not UTF-8 text", SAVED)


@dataclass(frozen=True)
class Reader:
    """Reads the values of a document; what its form does not allow is a `SavedFileError`."""

    form: Form
    where: str  # names the source in messages

    def refuse(self, reason: str, todo: str = "") -> NoReturn:
        """Raise a `SavedFileError` with the source, the `reason` and what to do."""
        what = f"{self.where} cannot be read as a {self.form.noun}: {reason[:MAX_REASON]}"
        raise SavedFileError(what, todo or self.form.todo) from None

    def parse(self, text: str) -> Any:
        """The content of the JSON `text`."""
        try:
            return json.loads(text, object_pairs_hook=unique_keys)
        except (ValueError, RecursionError) as error:
            self.refuse(f"it is not JSON ({error})", SAVED)

    def body(self, data: Any) -> dict[str, Any]:
        """The fields of a document beside its header; another schema or version is refused."""
        schema = data.get("schema") if isinstance(data, dict) else None
        if schema != self.form.schema:
            self.refuse(f"its schema must be {self.form.schema!r}, got {_brief(schema)}", SAVED)
        version = data.get("version")
        if type(version) is not int or version < 1:
            self.refuse(f"its version must be a whole number above 0, got {_brief(version)}")
        if version < self.form.version:
            self.refuse("an earlier version of gammagmm saved it")
        if version > self.form.version:
            known = f"this gammagmm reads version {self.form.version}"
            self.refuse(f"it has version {_brief(version)}, {known}", "Upgrade gammagmm.")
        return {name: value for name, value in data.items() if name not in self.form.header}

    def check_fields(self, data: Any, names: set[str], name: str) -> None:
        """Refuse anything but an object with exactly these fields."""
        if not isinstance(data, dict):
            self.refuse(f"{name} must be an object, got {type(data).__name__}")
        if wrong := sorted(data.keys() ^ names):
            self.refuse(f"{name} has missing or unexpected fields: {', '.join(wrong)}")

    def number(self, name: str, value: Any) -> float:
        """A finite number; text, booleans and null are refused."""
        if type(value) not in (int, float) or not abs(value) <= sys.float_info.max:
            self.refuse(f"{name} must hold finite numbers, got {_shown(value)}")
        return float(value)

    def numbers(self, name: str, value: Any) -> Array:
        """A list of finite numbers."""
        return np.array([self.number(name, item) for item in self.items(name, value)], dtype=float)

    def items(self, name: str, value: Any) -> list[Any]:
        """A list with any items."""
        if not isinstance(value, list):
            self.refuse(f"{name} must be a list, got {type(value).__name__}")
        return value

    def plain(self, name: str, value: Any, kind: type) -> Any:
        """A text, a whole number or a boolean, as `kind` says."""
        if type(value) is not kind:
            self.refuse(f"{name} must be {_JSON_NAMES[kind]}, got {_shown(value)}")
        return value

    def record(self, cls: type[Record], name: str, data: Any) -> Record:
        """An object of the dataclass `cls` from its fields, as `Writer.record` wrote them."""
        hints = get_type_hints(cls)
        self.check_fields(data, {field.name for field in fields(cls)}, name)  # type: ignore[arg-type]
        values = {key: self.value(f"{name}.{key}", data[key], hints[key]) for key in data}
        try:
            return cls(**values)
        except ValueError as error:
            self.refuse(f"{name}: {error}")

    def value(self, name: str, value: Any, kind: Any) -> Any:
        """A value of the type `kind`, which is the type of a field of a dataclass."""
        origin, args = get_origin(kind), get_args(kind)
        if origin is Literal:
            return self._one_of(name, value, args)
        if origin is UnionType:
            return self._union(name, value, kind)
        if origin is tuple:
            return self._tuple(name, value, args)
        if origin is dict:  # from names
            self.check_fields(value, set(value) if isinstance(value, dict) else set(), name)
            return {key: self.value(f"{name}.{key}", value[key], args[1]) for key in value}
        if is_dataclass(kind):
            return self.record(kind, name, value)  # type: ignore[arg-type]
        if kind is float:
            return np.nan if value is None else self.number(name, value)
        if kind not in _JSON_NAMES:
            self.refuse(f"{name} must be null, got {_shown(value)}")
        return self.plain(name, value, kind)

    def _union(self, name: str, value: Any, kind: Any) -> Any:
        """A text, a finite number, a boolean or None, or a value of the first type beside None."""
        if kind == Plain:
            if not (value is None or type(value) in (str, bool)):
                self.number(name, value)
            return value
        return None if value is None else self.value(name, value, get_args(kind)[0])

    def _one_of(self, name: str, value: Any, allowed: tuple[Any, ...]) -> Any:
        if value not in allowed:
            self.refuse(f"{name} must be one of {allowed}, got {_shown(value)}")
        return value

    def _tuple(self, name: str, value: Any, kinds: tuple[Any, ...]) -> tuple[Any, ...]:
        """A tuple of a value of each of the `kinds`, or of any number of one kind with Ellipsis."""
        items = self.items(name, value)
        if kinds[-1] is not Ellipsis and len(items) != len(kinds):
            self.refuse(f"{name} must have {len(kinds)} items, got {len(items)}")
        own = kinds[:1] * len(items) if kinds[-1] is Ellipsis else kinds
        return tuple(self.value(name, item, each) for item, each in zip(items, own, strict=True))


class Writer:
    """Turns records into data that JSON can store; NaN becomes null."""

    def record(self, record: Any, name: str = "") -> dict[str, Any]:
        """The fields of the dataclass `record`; `name` is its place in the document."""
        prefix = name and f"{name}."
        return {
            field.name: self.value(prefix + field.name, getattr(record, field.name))
            for field in fields(record)
        }

    def value(self, name: str, value: Any) -> Any:
        """The `value` of the field with this `name`."""
        if is_dataclass(value):
            return self.record(value, name)
        if isinstance(value, tuple):
            return [self.value(f"{name}.{place}", item) for place, item in enumerate(value)]
        if isinstance(value, dict):
            return {key: self.value(f"{name}.{key}", item) for key, item in value.items()}
        value = value.item() if isinstance(value, np.generic) else value
        return or_null(value) if isinstance(value, float) else value


def record_to_data(record: Any) -> dict[str, Any]:
    """The dataclass `record`, with those in it, as data that JSON can store; NaN is null."""
    return Writer().record(record)


def or_null(value: float) -> float | None:
    """The number, or None for NaN, which JSON does not have."""
    return None if np.isnan(value) else float(value)


def _shown(value: Any) -> str:
    return repr(value)[:40] if type(value) in (float, bool, str) else type(value).__name__


def _brief(value: Any) -> str:
    """The value if it is a plain one, otherwise its type: it may be nested very deeply."""
    return repr(value)[:40] if value is None or isinstance(value, int) else _shown(value)


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Dictionary of the members of a JSON object; a key that occurs twice is a ValueError.

    It is an ``object_pairs_hook`` of `json.loads`.
    """
    if len(made := dict(pairs)) < len(pairs):
        raise ValueError("a key occurs twice in one object")
    return made
