"""New rows beyond the fitted cut, counted over time, with an alarm."""
