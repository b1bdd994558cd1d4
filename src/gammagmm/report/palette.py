"""Colours and sizes of every picture; style.css has the same colours for pages."""

from __future__ import annotations

__all__ = ["ACCENT", "ALARM", "FONT", "INK", "LINE", "MUTED", "REFERENCE"]

# Okabe and Ito's blue and vermilion: distinct for colour-blind readers, in grey print, and on white
# and black paper.
ACCENT, ALARM = "#0072b2", "#b34700"
"""What is known of the share, and what is flagged."""
INK, MUTED, LINE = "#1b1f24", "#57606a", "#d0d7de"
"""Words, words of less weight, and what lies behind."""
REFERENCE = "#8b949e"
"""What holds for other tables."""
FONT = "system-ui, sans-serif"
"""Of SVG and HTML; matplotlib has the font of its own settings."""
