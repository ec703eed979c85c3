"""Speed and memory, a section a file."""
