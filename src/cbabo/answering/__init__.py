"""Answers to thresholds: the query, the answer, the fitted model, its refinement, its quality and its file."""
