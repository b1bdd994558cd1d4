"""Posterior -> versioned JSON with exact floats, and back; any other file is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.documents import Form, Reader, or_null, read_document, to_text
from gammagmm._support.files import write_document
from gammagmm.posterior.beta_binomials import BetaBinomialMixture
from gammagmm.posterior.betas import BetaMixture
from gammagmm.posterior.gamma_posterior import GammaPosterior

__all__ = [
    "load_posterior",
    "posterior_from_text",
    "posterior_of",
    "posterior_to_data",
    "posterior_to_text",
    "save_posterior",
]

Array = NDArray[np.float64]

FORM = Form("gammagmm/posterior", 1, "posterior")

_FIELDS = {"prob_zero", "standard_error", "between_runs", "n_labels", "is_model", "betas"}
_MAY_BE_ZERO = "may_be_zero"  # written only if it is true
_BETA_FIELDS = {"low", "high", "weights", "a", "b"}
_COUNTS = ("n_rows", "n_anomalies", "n_left", "first", "last")
_BETA_BINOMIAL_FIELDS = {"weights", "a", "b", *_COUNTS}
# Written only if there are bounds.
_BOUNDS = ("least", "most")
MAX_ROWS = 2**53  # up to this number a float represents every whole number
MAX_CELLS = 200_000_000
"""Most possible shares, times parts, of a posterior that is read, since each takes memory."""


def save_posterior(posterior: GammaPosterior, path: Any, overwrite: bool = False) -> None:
    """Write `posterior` to `path`; see `gammagmm._support.files.write_document`."""
    write_document(posterior_to_text(posterior), path, overwrite)


def load_posterior(path: Any) -> GammaPosterior:
    """The posterior in the file at `path`; raises `SavedFileError` if it cannot be read."""
    return posterior_from_text(read_document(path, Reader(FORM, str(path))), str(path))


def posterior_to_text(posterior: GammaPosterior) -> str:
    """The posterior as JSON."""
    data = posterior_to_data(posterior)
    # Nothing is written that could not be read back.
    posterior_of(data, "The data to write")
    return to_text(data)


def posterior_from_text(text: str, where: str = "The text") -> GammaPosterior:
    """The posterior that `posterior_to_text` wrote; `where` names the source in errors."""
    return posterior_of(Reader(FORM, where).parse(text), where)


def posterior_to_data(posterior: GammaPosterior) -> dict[str, Any]:
    """The posterior as data that JSON can store."""
    betas = posterior.betas
    if isinstance(betas, BetaMixture):
        place: dict[str, Any] = {"low": float(betas.low), "high": float(betas.high)}
    else:
        place = {name: int(getattr(betas, name)) for name in _COUNTS}
        if betas.bounds is not None:
            place |= dict(zip(_BOUNDS, betas.bounds, strict=True))
    return {
        **FORM.header,
        "prob_zero": float(posterior.prob_zero),
        "standard_error": or_null(posterior.standard_error),
        "between_runs": or_null(posterior.between_runs),
        "n_labels": posterior.n_labels,
        "is_model": posterior.is_model,
        **({_MAY_BE_ZERO: True} if posterior.may_be_zero else {}),
        "betas": {
            **place,
            "weights": betas.weights.tolist(),
            "a": betas.a.tolist(),
            "b": betas.b.tolist(),
        },
    }


def posterior_of(data: Any, where: str) -> GammaPosterior:
    """The posterior that `data`, parsed from JSON, describes."""
    reader = Reader(FORM, where)
    data = reader.body(data)
    reader.check_fields(data, _FIELDS | ({_MAY_BE_ZERO} & data.keys()), "the file")
    has_counts = isinstance(data["betas"], dict) and bool(set(_COUNTS) & data["betas"].keys())
    fields = _BETA_FIELDS
    if has_counts:
        has_bounds = bool(set(_BOUNDS) & data["betas"].keys())
        fields = _BETA_BINOMIAL_FIELDS | set(_BOUNDS if has_bounds else ())
    reader.check_fields(data["betas"], fields, "betas")
    prob_zero = reader.number("prob_zero", data["prob_zero"])
    if not 0.0 <= prob_zero <= 1.0:
        reader.refuse(f"prob_zero must lie between 0 and 1, got {prob_zero!r}")
    betas = (_beta_binomials_of if has_counts else _betas_of)(data["betas"], reader)
    total = prob_zero + float(betas.weights.sum())
    if abs(total - 1.0) > 1e-9:
        reader.refuse(f"the weights and prob_zero must sum to 1, got {total!r}")
    return GammaPosterior(
        prob_zero,
        betas,
        standard_error=_error("standard_error", data["standard_error"], reader),
        between_runs=_error("between_runs", data["between_runs"], reader),
        n_labels=_n_labels(data["n_labels"], reader),
        is_model=bool(reader.plain("is_model", data["is_model"], bool)),
        may_be_zero=bool(reader.plain(_MAY_BE_ZERO, data.get(_MAY_BE_ZERO, False), bool)),
    )


def _n_labels(value: Any, reader: Reader) -> int:
    n_labels = int(reader.plain("n_labels", value, int))
    if n_labels < 0:
        reader.refuse(f"n_labels must be at least 0, got {n_labels!r}")
    return n_labels


def _betas_of(data: dict[str, Any], reader: Reader) -> BetaMixture:
    low, high = reader.number("low", data["low"]), reader.number("high", data["high"])
    if not 0.0 <= low < high <= 1.0:
        reader.refuse(f"the range must have 0 <= low < high <= 1, got {low!r} to {high!r}")
    betas = BetaMixture(*_parts_of(data, reader), low, high)
    with np.errstate(all="ignore"):
        # Both divide by the probability of each part, which may underflow.
        found = betas.moment(1), float(betas.cdf(np.array(high)))
    if not np.isfinite(found).all():
        reader.refuse(f"some part has no probability between {low!r} and {high!r}")
    return betas


def _beta_binomials_of(data: dict[str, Any], reader: Reader) -> BetaBinomialMixture:
    counts = {name: int(reader.plain(name, data[name], int)) for name in _COUNTS}
    n_rows, n_anomalies, n_left, first, last = counts.values()
    if not 1 <= n_rows <= MAX_ROWS:
        reader.refuse(f"n_rows must be at least 1 and at most {MAX_ROWS:,}, got {n_rows!r}")
    is_possible = 0 <= n_anomalies <= n_rows - n_left <= n_rows and first >= 0
    if not (is_possible and last <= n_left and first <= last + 1):
        reader.refuse(f"its numbers of rows do not fit together: {counts!r}")
    bounds = None
    if "least" in data:
        least, most = (int(reader.plain(name, data[name], int)) for name in _BOUNDS)
        if not (0 <= least <= first and last <= most <= n_left):
            reader.refuse(f"least {least!r} and most {most!r} do not fit to its numbers of rows")
        bounds = least, most
    parts = _parts_of(data, reader)
    if first > last and parts[0].any():
        reader.refuse(f"it has no possible share: {counts!r}")
    if len(parts[0]) * ((n_left if bounds else last - first) + 1) > MAX_CELLS:
        reader.refuse(f"it has more than {MAX_CELLS:,} possible shares in all parts")
    betas = BetaBinomialMixture(*parts, n_rows, n_anomalies, n_left, first, last, bounds)
    with np.errstate(all="ignore"):
        mean = betas.moment(1)
    if not np.isfinite(mean):
        reader.refuse(f"some part has no probability: {counts!r}")
    return betas


def _parts_of(data: dict[str, Any], reader: Reader) -> tuple[Array, Array, Array]:
    """Weights, a and b of the parts of a mixture."""
    weights, a, b = (reader.numbers(name, data[name]) for name in ("weights", "a", "b"))
    if not len(weights) == len(a) == len(b):
        reader.refuse(f"weights, a and b differ in length: {len(weights)}, {len(a)}, {len(b)}")
    if (weights < 0.0).any():
        reader.refuse(f"weights must be at least 0, got {weights.min()!r}")
    if (a <= 0.0).any() or (b <= 0.0).any():
        reader.refuse(f"a and b must be above 0, got {min(a.min(), b.min())!r}")
    return weights, a, b


def _error(name: str, value: Any, reader: Reader) -> float:
    """A standard error: a number of at least 0, or NaN if the file has null."""
    if value is None:
        return np.nan
    number = reader.number(name, value)
    if number < 0.0:
        reader.refuse(f"{name} must be at least 0 or null, got {number!r}")
    return number
