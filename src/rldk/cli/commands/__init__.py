"""One command a file: `configure(parser)` and `run(args) -> exit status`."""
