"""Detectors of the value family, one defect a file."""
