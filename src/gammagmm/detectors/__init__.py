"""Rows -> raw scores: presets, fits, and our faster versions of PyOD's detectors."""
