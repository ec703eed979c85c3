"""How rows are laid out in files: JSON lines, JSON documents, delimited text. Which framework wrote them is the adapters' matter."""
