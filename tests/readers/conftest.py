"""Files for the readers."""

from __future__ import annotations

import pytest


@pytest.fixture
def write(tmp_path):
    """Writer of a file with some content, text or bytes; its path comes back."""

    def write_file(content, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file
