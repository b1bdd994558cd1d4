"""A fit -> pictures and a report for readers without Python."""
