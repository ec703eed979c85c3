"""Detectors of the gradients family, one defect per file."""
