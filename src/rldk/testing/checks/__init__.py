"""The checks, one module per subject."""
