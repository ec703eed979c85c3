"""Scores: how parts become a number in [0, 1], and the parts of the overall scores."""
