"""A run as a table: rows in any order and shape become columns, are split into runs, and get canonical names."""

from __future__ import annotations

from rldk.runs.run import Run

__all__ = ["Run"]
