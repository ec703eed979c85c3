"""Shells over the monitor, one per framework. Nothing is imported before it is asked for."""
