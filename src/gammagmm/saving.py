"""Posterior -> versioned JSON with exact floats, and back; what is not ours is refused."""

from __future__ import annotations

import json
import os
import secrets
import sys
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from gammagmm.betas import BetaMixture
from gammagmm.errors import SavedFileError
from gammagmm.posterior import GammaPosterior

__all__ = [
    "load_posterior",
    "posterior_from_text",
    "posterior_to_text",
    "save_posterior",
]

Array = NDArray[np.float64]

SCHEMA = "gammagmm/posterior"
VERSION = 1
MAX_BYTES = 64_000_000
"""Larger files are refused unread: a posterior takes some 60 bytes a part."""

_FIELDS = {"schema", "version", "prob_zero", "standard_error", "between_runs", "betas"}
_BETA_FIELDS = {"low", "high", "weights", "a", "b"}


def save_posterior(posterior: GammaPosterior, path: Any, overwrite: bool = False) -> None:
    """Write `posterior` to `path`, whole or not at all.

    An existing file is replaced only with `overwrite`, and is a FileExistsError otherwise.
    """
    path = Path(path)
    if not overwrite and os.path.lexists(path):
        _refuse_existing(path)
    text = posterior_to_text(posterior)
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with part.open("x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        _place(part, path, overwrite)
    finally:
        part.unlink(missing_ok=True)


def load_posterior(path: Any) -> GammaPosterior:
    """The posterior in the file at `path`, or a `SavedFileError`."""
    with Path(path).open("rb") as file:
        n_bytes = os.fstat(file.fileno()).st_size
        # What is no plain file may give more than its size says.
        content = b"" if n_bytes > MAX_BYTES else file.read(MAX_BYTES + 1)
    if max(n_bytes, len(content)) > MAX_BYTES:
        _refuse(str(path), f"it is larger than {MAX_BYTES:,} bytes")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        _refuse(str(path), "it is no UTF-8 text")
    return posterior_from_text(text, str(path))


def posterior_to_text(posterior: GammaPosterior) -> str:
    """The posterior as JSON, each float written so that it reads back as itself."""
    betas = posterior.betas
    data = {
        "schema": SCHEMA,
        "version": VERSION,
        "prob_zero": float(posterior.prob_zero),
        "standard_error": _or_null(posterior.standard_error),
        "between_runs": _or_null(posterior.between_runs),
        "betas": {
            "low": float(betas.low),
            "high": float(betas.high),
            "weights": betas.weights.tolist(),
            "a": betas.a.tolist(),
            "b": betas.b.tolist(),
        },
    }
    # What could not be read back is not written either.
    _posterior_of(data, "What would be written")
    return json.dumps(data, indent=1, allow_nan=False) + "\n"


def posterior_from_text(text: str, where: str = "The text") -> GammaPosterior:
    """The posterior that `posterior_to_text` wrote; `where` names the source in errors."""
    try:
        data = json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        _refuse(where, f"it is no JSON ({error})")
    return _posterior_of(data, where)


def _posterior_of(data: Any, where: str) -> GammaPosterior:
    """The posterior that `data`, as JSON gives it, describes."""
    _check_header(data, where)
    _check_fields(data, _FIELDS, "the file", where)
    _check_fields(data["betas"], _BETA_FIELDS, "betas", where)
    prob_zero = _number(data, "prob_zero", where)
    if not 0.0 <= prob_zero <= 1.0:
        _refuse(where, f"prob_zero must lie between 0 and 1, got {prob_zero!r}")
    betas = _betas_of(data["betas"], where)
    total = prob_zero + float(betas.weights.sum())
    if abs(total - 1.0) > 1e-9:
        _refuse(where, f"the weights and prob_zero must sum to 1, got {total!r}")
    errors = [_error(data, name, where) for name in ("standard_error", "between_runs")]
    return GammaPosterior(prob_zero, betas, *errors)


def _betas_of(data: dict[str, Any], where: str) -> BetaMixture:
    low, high = _number(data, "low", where), _number(data, "high", where)
    if not 0.0 <= low < high <= 1.0:
        _refuse(where, f"the range must have 0 <= low < high <= 1, got {low!r} to {high!r}")
    weights, a, b = (_numbers(data, name, where) for name in ("weights", "a", "b"))
    if not len(weights) == len(a) == len(b):
        _refuse(where, f"weights, a and b differ in length: {len(weights)}, {len(a)}, {len(b)}")
    if (weights < 0.0).any():
        _refuse(where, f"weights must be at least 0, got {weights.min()!r}")
    if (a <= 0.0).any() or (b <= 0.0).any():
        _refuse(where, f"a and b must be above 0, got {min(a.min(), b.min())!r}")
    betas = BetaMixture(weights, a, b, low, high)
    with np.errstate(all="ignore"):
        mean = betas.moment(1)
    if not np.isfinite(mean):
        _refuse(where, f"some part has no probability between {low!r} and {high!r}")
    return betas


def _check_header(data: Any, where: str) -> None:
    """Refuse another schema and a version that is not ours."""
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema != SCHEMA:
        _refuse(where, f"its schema must be {SCHEMA!r}, got {schema!r}")
    version = data.get("version")
    if type(version) is not int or version < 1:
        _refuse(where, f"its version must be a whole number above 0, got {version!r}")
    if version > VERSION:
        reads = f"this gammagmm reads up to {VERSION}"
        _refuse(where, f"it has version {version}, {reads}: upgrade gammagmm")


def _check_fields(data: Any, fields: set[str], name: str, where: str) -> None:
    """Refuse what is no object with just these fields."""
    if not isinstance(data, dict):
        _refuse(where, f"{name} must be an object, got {type(data).__name__}")
    if wrong := sorted(data.keys() ^ fields):
        _refuse(where, f"{name} lacks, or has beyond its fields: {', '.join(wrong)}")


def _number(data: dict[str, Any], name: str, where: str) -> float:
    return float(_floats(name, [data[name]], where)[0])


def _numbers(data: dict[str, Any], name: str, where: str) -> Array:
    values = data[name]
    if not isinstance(values, list):
        _refuse(where, f"{name} must be a list, got {type(values).__name__}")
    return _floats(name, values, where)


def _floats(name: str, values: list[Any], where: str) -> Array:
    """Finite numbers as an array; text, booleans, null and the like are refused."""
    for value in values:
        if type(value) not in (int, float) or not abs(value) <= sys.float_info.max:
            shown = repr(value)[:40] if type(value) in (float, bool, str) else type(value).__name__
            _refuse(where, f"{name} must hold finite numbers, got {shown}")
    return np.array(values, dtype=np.float64)


def _error(data: dict[str, Any], name: str, where: str) -> float:
    """A standard error: a number of at least 0, or NaN where the file has null."""
    if data[name] is None:
        return np.nan
    value = _number(data, name, where)
    if value < 0.0:
        _refuse(where, f"{name} must be at least 0 or null, got {value!r}")
    return value


def _or_null(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of JSON with these members; a name that comes twice is refused."""
    if len(made := dict(pairs)) < len(pairs):
        raise ValueError("a name comes twice in one object")
    return made


def _place(part: Path, path: Path, overwrite: bool) -> None:
    """Give `part` its name; a link is what fails where the name was taken meanwhile."""
    if overwrite:
        part.replace(path)
        return
    try:
        path.hardlink_to(part)
    except FileExistsError:
        _refuse_existing(path)
    except OSError:  # a file system without links
        part.replace(path)


def _refuse_existing(path: Path) -> NoReturn:
    raise FileExistsError(f"{path} exists already: pass overwrite=True to replace it.") from None


def _refuse(where: str, reason: str) -> NoReturn:
    raise SavedFileError(f"{where} cannot be read as a posterior: {reason}.") from None
