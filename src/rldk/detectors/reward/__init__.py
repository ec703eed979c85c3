"""Detectors of the reward family, one defect per file."""
