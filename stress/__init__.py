"""Long tests that are not installed: hostile files, kills, faults in writing."""
