"""New rows above the fitted threshold, counted over time, with an alarm."""
