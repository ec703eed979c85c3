"""How rows are laid out in files: JSON lines, documents, delimited text, consoles. Whose they are, the adapters know."""
