"""The rules: one defect per file, one line in the table."""
