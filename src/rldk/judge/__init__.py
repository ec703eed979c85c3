"""The judge: one engine, one verdict rule and one result for a live run and for a log."""
