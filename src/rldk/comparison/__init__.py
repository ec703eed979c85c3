"""Comparing runs: how their settings differ, where they part ways, and where each of them ended."""

from __future__ import annotations

from rldk.comparison.compare import Comparison, compare_results
from rldk.comparison.divergence import Divergence

__all__ = ["Comparison", "Divergence", "compare_results"]
