"""Tables with missing values and text -> finite rows, by ``missing=`` and ``categories=``.

The columns become numbers by the same `TableEncoder` that the command line uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.checks import check_array_kind, explain_rows, warn_user
from gammagmm._support.data_frames import as_objects, column_cells, frame_columns, open_frame
from gammagmm._support.table_encoder import (
    MAX_CATEGORIES,
    Encoded,
    NumberColumn,
    TableEncoder,
    fit_encoder,
    n_texts,
)
from gammagmm._support.text import listed, shown
from gammagmm.errors import NewRowsWarning

if TYPE_CHECKING:
    from gammagmm.estimator.gamma_gmm import GammaGMM

__all__ = ["encode_new_rows", "encode_rows"]

Cells = NDArray[Any]


def encode_rows(estimator: GammaGMM, X: Any) -> tuple[Encoded, TableEncoder]:
    """The training rows as numbers, and the encoder that does the same with new rows.

    The number and the names of the columns of `X` are set on `estimator`.
    """
    names, cells = _columns(estimator, X, reset=True)
    _check_values(names, cells, estimator.missing)
    texts = [name for name, own in zip(names, cells, strict=True) if own.dtype == object]
    if texts and estimator.categories == "error":
        raise ValueError(
            f"X must hold numbers, but it has columns of text: {listed(texts)}. Drop them, or pass "
            'categories="encode".'
        )
    for name, own in zip(names, cells, strict=True):
        if own.dtype == object and (n := n_texts(own)) > MAX_CATEGORIES:
            raise ValueError(
                f"The column {shown(name)} of X has {n:,} different texts, and at most "
                f"{MAX_CATEGORIES} can be encoded: drop it, or encode it as numbers."
            )
        if _gaps(own).all():
            raise ValueError(f"All values of the column {shown(name)} of X are missing: drop it.")
    encoder = fit_encoder(names, cells)
    if not encoder.outputs:
        raise ValueError("X has only columns with a single text: give one whose values differ.")
    if len(set(encoder.outputs)) < len(encoder.outputs):
        raise ValueError("Two columns of X have the same name after their texts are encoded.")
    return encoder.transform(cells, is_new=False), encoder


def encode_new_rows(estimator: GammaGMM, X: Any, encoder: TableEncoder) -> NDArray[np.float64]:
    """New rows as numbers, by the figures of the training rows.

    A text that the training rows do not have is a `NewRowsWarning`.
    """
    names, cells = _columns(estimator, X, reset=False)
    cells = [
        _as_trained(own, isinstance(column, NumberColumn), name)
        for own, column, name in zip(cells, encoder.columns, names, strict=True)
    ]
    _check_values(names, cells, estimator.missing)
    encoded = encoder.transform(cells)
    for note in encoded.notes:
        if "that the training rows do not have" in note.message:
            warn_user(f"In the column {shown(note.subject)}, {note.message}.", NewRowsWarning)
    return encoded.values


def _columns(estimator: GammaGMM, X: Any, *, reset: bool) -> tuple[list[str], list[Cells]]:
    """Names and cells of the columns of `X`: float64 with NaN, or objects that are str or None.

    scikit-learn checks the names, or with `reset` sets them on `estimator`.
    """
    from sklearn.utils.validation import check_array, validate_data

    n_least = 2 if reset else 1
    frame = open_frame(X)
    if frame is not None:
        parts, X = frame_columns(frame), frame.to_native()
        if len(frame) < n_least:
            raise ValueError(f"X has {len(frame)} row(s), and at least {n_least} are needed.")
    else:
        check_array_kind(X)
        try:
            array = X if hasattr(X, "dtype") else np.asarray(X, dtype=object)
            X = check_array(array, dtype=None, ensure_all_finite=False, ensure_min_samples=n_least)
        except (TypeError, ValueError) as error:
            clearer = explain_rows(X, error)
            # An error that is its own cause would never leave a worker of Dask.
            raise clearer from (None if clearer is error else error)
        parts = iter(X.T)
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    found = getattr(estimator, "feature_names_in_", None)
    numbered = [f"x{j}" for j in range(estimator.n_features_in_)]
    names = numbered if found is None else list(map(str, found))
    return names, [column_cells(part, name) for part, name in zip(parts, names, strict=True)]


def _as_trained(cells: Cells, is_number: bool, name: str) -> Cells:
    """The cells of a new column of the kind that it had in training; a column may be all gaps."""
    if is_number == (cells.dtype != object):
        return cells
    if not is_number and np.isnan(cells).all():
        return as_objects([None] * len(cells))
    had, has = ("numbers", "text") if is_number else ("text", "numbers")
    raise ValueError(f"The column {shown(name)} of X has {has}, but had {had} in the fit.")


def _gaps(cells: Cells) -> NDArray[np.bool_]:
    if cells.dtype != object:
        return np.isnan(cells)
    return np.array([cell is None for cell in cells], dtype=bool)


def _check_values(names: list[str], cells: list[Cells], missing: str) -> None:
    """Refuse infinite values, and missing values unless they are filled."""
    pairs = list(zip(names, cells, strict=True))
    infinite = [name for name, own in pairs if own.dtype != object and np.isinf(own).any()]
    if infinite:
        raise ValueError(f"X contains infinity in the columns {listed(infinite)}: correct it.")
    counts = {name: int(_gaps(own).sum()) for name, own in pairs}
    gaps = [f"{shown(name)} ({n:,})" for name, n in counts.items() if n]
    if missing == "error" and gaps:
        raise ValueError(
            f"X contains NaN or other missing values in the columns {', '.join(gaps[:20])}: fill "
            'them, drop their rows, or pass missing="impute".'
        )
