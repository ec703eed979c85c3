"""One module per format of a log: what it looks like, how it is decoded, and the adapter that reads it."""
