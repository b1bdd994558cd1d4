"""Rows -> raw anomaly scores, one column for each detector."""
