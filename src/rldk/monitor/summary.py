"""A live run in one dictionary, for reports, and its coverage in one line, for the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rldk.core.files import strict
from rldk.core.text import few

if TYPE_CHECKING:
    from rldk.monitor.monitor import Monitor

__all__ = ["coverage_line", "summary_of"]

_SHOWN = 6


def summary_of(monitor: Monitor) -> dict[str, Any]:
    """The result of the run so far, its health summary, its coverage, and the decision to stop, as strict JSON holds them."""
    found = {
        "run_id": monitor.run_id,
        **monitor.result().to_dict(),
        "health": monitor.forensics.get_health_summary(),
        "coverage": monitor.coverage(),
        "stop": None if monitor.would_stop is None else monitor.would_stop.to_dict(),
    }
    return strict(found)  # type: ignore[no-any-return]


def coverage_line(coverage: Mapping[str, Any]) -> str:
    """Coverage in one line, from `Monitor.coverage`: how many checks can run, and what the others lack."""
    line = f"rldk watches {len(coverage['metrics'])} metrics; {coverage['sentence'].replace('could run', 'can run')}"
    missing: dict[str, list[str]] = {}
    for row in coverage["inactive"]:
        missing.setdefault(row["missing"][0].split("|")[0], []).append(row["detector"])
    if missing:
        named = sorted(missing.items(), key=lambda pair: -len(pair[1]))
        shown = ", ".join(f"{metric} ({few(names, 2)})" for metric, names in named[:_SHOWN])
        more = f" and {len(named) - _SHOWN} more" if len(named) > _SHOWN else ""
        line += f"; inactive, since it is not logged: {shown}{more}"
    if coverage["failed"]:
        line += f"; disabled after a failure: {', '.join(coverage['failed'])}"
    return line
