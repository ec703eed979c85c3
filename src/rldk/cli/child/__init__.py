"""A command that `rldk run` runs: its terminal or pipes, its processes, and the log of its output."""
