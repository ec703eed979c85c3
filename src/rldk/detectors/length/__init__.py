"""Detectors of the length family, one defect per file."""
