"""`gammagmm mcp` without the SDK; tests/neighbours has the tests of the server."""

from __future__ import annotations

import sys

import pytest

from gammagmm.cli.mcp import run_server
from gammagmm.errors import MissingExtraError
from tests.support.command_line import gammagmm_here


def test_without_the_sdk(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(MissingExtraError) as caught:
        run_server(tmp_path)
    assert caught.value.args[1] == "mcp"
    done = gammagmm_here("mcp", ".", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
