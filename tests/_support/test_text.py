"""Numbers and foreign text, as they are shown."""

from __future__ import annotations

import numpy as np
import pytest

from gammagmm._support.text import percent, spreadsheet_safe, terminal_safe


@pytest.mark.parametrize(
    ("share", "words"),
    [(0.0, "0.0%"), (0.0314, "3.1%"), (0.0004, "0.04%"), (1e-7, "below 0.001%"), (np.nan, "")],
)
def test_shares_in_per_cent(share, words):
    assert percent(share) == words


@pytest.mark.parametrize(
    ("cell", "safe"),
    [("=1+1", "'=1+1"), ("@x", "'@x"), ("-5.5", "-5.5"), ("-x", "'-x"), ("+1", "+1"), ("a", "a")],
)
def test_formulas_are_quoted_and_numbers_are_kept(cell, safe):
    assert spreadsheet_safe(cell) == safe


def test_control_characters_are_escaped():
    assert terminal_safe("\x1b[31mred\x07 γ\n") == "\\x1b[31mred\\x07 γ\n"
