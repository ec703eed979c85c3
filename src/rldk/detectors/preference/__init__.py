"""Detectors of the preference family, one defect per file."""
