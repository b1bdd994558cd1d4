"""What some tests need, such as PyTorch or Java. Without it they are skipped, with the reason."""

from __future__ import annotations

import os
import signal
from importlib.util import find_spec
from shutil import which

import pytest

__all__ = ["KILL", "needs_posix", "needs_ray", "needs_spark", "needs_torch"]

KILL = getattr(signal, "SIGKILL", signal.SIGTERM)
"""Ends a process at once; Windows has no SIGKILL, and there SIGTERM does it."""

needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch")
needs_posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX")
needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="needs Ray")
HAS_JAVA = "JAVA_HOME" in os.environ or which("java") is not None
needs_spark = pytest.mark.skipif(
    find_spec("pyspark") is None or not HAS_JAVA, reason="needs PySpark and Java"
)
