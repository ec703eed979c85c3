"""Detectors of the gradients family, one defect a file."""
