"""Detectors of the kl family, one defect per file."""
