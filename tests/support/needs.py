"""What some tests need: PyTorch or POSIX. Without it they are skipped, with the reason."""

from __future__ import annotations

import os
import signal
from importlib.util import find_spec

import pytest

__all__ = ["KILL", "needs_posix", "needs_torch"]

KILL = getattr(signal, "SIGKILL", signal.SIGTERM)
"""Ends a process at once; Windows has no SIGKILL, and there SIGTERM does it."""

needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch")
needs_posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX")
