"""Logs that are somewhere else: in object storage, on the web, in a tracker or in an archive. All are read from a local copy."""
