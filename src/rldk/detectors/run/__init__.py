"""Detectors of the run family, one defect per file."""
