"""Detectors of the policy family, one defect a file."""
