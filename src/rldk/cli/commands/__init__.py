"""One command per file: `configure(parser)` and `run(args) -> exit status`."""
