"""What is coming in and what can be judged by it, in one line for the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["coverage_line"]

_SHOWN = 6


def coverage_line(coverage: Mapping[str, Any]) -> str:
    """Coverage in one line, from `Monitor.coverage`: how many checks can run, and what the others lack."""
    line = f"rldk watches {len(coverage['metrics'])} metrics; {coverage['sentence'].replace('could run', 'can run')}"
    wanting: dict[str, list[str]] = {}
    for row in coverage["inactive"]:
        wanting.setdefault(row["missing"][0].split("|")[0], []).append(row["detector"])
    if wanting:
        named = sorted(wanting.items(), key=lambda pair: -len(pair[1]))
        shown = ", ".join(f"{metric} ({_few(names)})" for metric, names in named[:_SHOWN])
        more = f" and {len(named) - _SHOWN} more" if len(named) > _SHOWN else ""
        line += f"; inactive, since it is not logged: {shown}{more}"
    if coverage["failed"]:
        line += f"; disabled after a failure: {', '.join(coverage['failed'])}"
    return line


def _few(names: list[str]) -> str:
    return ", ".join(names[:2]) + (" …" if names[2:] else "")
