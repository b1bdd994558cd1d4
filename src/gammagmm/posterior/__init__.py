"""Mixtures -> the posterior of the contamination factor, and the decisions that follow from it."""
