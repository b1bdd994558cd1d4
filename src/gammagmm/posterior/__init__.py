"""Mixtures -> the posterior of the contamination factor, and decisions by it."""
