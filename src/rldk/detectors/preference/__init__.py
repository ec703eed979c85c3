"""Detectors of the preference family, one defect a file."""
