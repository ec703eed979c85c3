"""Detectors of the advantages family, one defect per file."""
