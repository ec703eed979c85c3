"""The metric catalogue: the one table of what a run may log, what it means, and what each framework calls it."""

from __future__ import annotations

from rldk.core.catalog.frameworks import FRAMEWORKS
from rldk.core.catalog.lookup import CATALOG, entry_of, identify, is_known, is_measured, keys_of, locate, metric_named
from rldk.core.catalog.metric import Key, Metric
from rldk.core.catalog.plan import Plan, Route
from rldk.core.catalog.resolve import AXIS_TARGETS, Resolution, check_field_map, plan_for, resolve

__all__ = [
    "AXIS_TARGETS", "CATALOG", "FRAMEWORKS", "Key", "Metric", "Plan", "Resolution", "Route", "check_field_map", "entry_of",
    "identify", "is_known", "is_measured", "keys_of", "locate", "metric_named", "plan_for", "resolve",
]  # fmt: skip
