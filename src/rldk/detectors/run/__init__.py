"""Detectors of the run family, one defect a file."""
