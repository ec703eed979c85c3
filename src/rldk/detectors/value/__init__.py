"""Detectors of the value family, one defect per file."""
