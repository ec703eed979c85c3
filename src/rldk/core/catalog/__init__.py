"""The metric catalogue: the one table of what a run may log, what it means, and what each framework calls it."""

from __future__ import annotations

from rldk.core.catalog.index import CATALOG, ambiguous_keys, entry_of, identify, locate
from rldk.core.catalog.metric import FRAMEWORKS, Key, Metric
from rldk.core.catalog.resolve import AXIS_TARGETS, Plan, Resolution, Route, check_field_map, plan_for, resolve

__all__ = [
    "AXIS_TARGETS",
    "CATALOG",
    "FRAMEWORKS",
    "Key",
    "Metric",
    "Plan",
    "Resolution",
    "Route",
    "ambiguous_keys",
    "check_field_map",
    "entry_of",
    "identify",
    "locate",
    "plan_for",
    "resolve",
]
