"""Estimates of gamma by PyThresh."""

from __future__ import annotations

import inspect
import warnings
from importlib import import_module

import numpy as np


def thresholder_shares(name: str, Z: np.ndarray, joint: bool, seed: int) -> list[float]:
    """Share of rows that PyThresh's `name` flags, for each column of `Z` (n, M) or for all."""
    cls = getattr(import_module(f"pythresh.thresholds.{name.lower()}"), name)
    seeded = {"random_state": seed} if "random_state" in inspect.signature(cls).parameters else {}
    columns = [Z] if joint else [column.copy() for column in Z.T]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs: division by zero, deprecations
        return [float(np.mean(cls(**seeded).eval(scores))) for scores in columns]
