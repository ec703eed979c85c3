"""Detectors of the reward family, one defect a file."""
