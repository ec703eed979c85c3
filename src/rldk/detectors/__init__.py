"""The rules: one defect a file, one line in the table."""
