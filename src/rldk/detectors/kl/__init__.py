"""Detectors of the kl family, one defect a file."""
