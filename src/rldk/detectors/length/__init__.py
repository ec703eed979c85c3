"""Detectors of the length family, one defect a file."""
