"""Probes collect from a trainer what TRL does not log. Each is called through the guard: one that fails is disabled."""
