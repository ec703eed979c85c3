"""Detectors of the advantages family, one defect a file."""
