"""Detectors of the policy family, one defect per file."""
