"""What is coming in and what can be judged by it: silence must never be mistaken for health."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rldk.core.catalog import entry_of
from rldk.judge.engine import Engine

__all__ = ["coverage_line", "coverage_of"]

_SHOWN = 6


def coverage_of(engine: Engine, sources: Mapping[str, str], broken: Mapping[str, str]) -> dict[str, Any]:
    """The metrics by the keys they came from, the detectors that can judge, and those that cannot, for want of what."""
    inactive = engine.inactive()
    lacking = {name for name, _ in inactive}
    return {
        "metrics": dict(sources),
        "unmapped": sorted(name for name in sources if entry_of(name) is None),
        "active": [detector.type for detector in engine.detectors if detector.type not in lacking],
        "inactive": [{"detector": name, "missing": missing} for name, missing in inactive],
        "failed": dict(broken),
    }


def coverage_line(coverage: Mapping[str, Any]) -> str:
    """Coverage in one line, for the terminal."""
    metrics, inactive = coverage["metrics"], coverage["inactive"]
    active = len(coverage["active"])
    line = f"rldk watches {len(metrics)} metrics with {active} of {active + len(inactive)} detectors"
    if inactive:
        wanting: dict[str, list[str]] = {}
        for row in inactive:
            wanting.setdefault(row["missing"][0].split("|")[0], []).append(row["detector"])
        named = sorted(wanting.items(), key=lambda pair: -len(pair[1]))
        shown = ", ".join(f"{metric} ({_few(names)})" for metric, names in named[:_SHOWN])
        more = f" and {len(named) - _SHOWN} more" if len(named) > _SHOWN else ""
        line += f"; not judged for want of {shown}{more}"
    if coverage["failed"]:
        line += f"; switched off after a failure: {', '.join(coverage['failed'])}"
    return line


def _few(names: list[str]) -> str:
    return ", ".join(names[:2]) + (" …" if names[2:] else "")
