"""Labels of a few rows -> a sharper posterior."""
