"""Shells over the monitor, one a framework."""
