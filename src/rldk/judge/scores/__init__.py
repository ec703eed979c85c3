"""Scores: how parts become a number in [0, 1], and what the overall scores are made of."""
