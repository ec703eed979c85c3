"""Connects frameworks and trackers to the monitor, one module each; each is imported only when it is used."""
