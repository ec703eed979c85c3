"""A live run in one dictionary, for reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rldk.core.files import strict

if TYPE_CHECKING:
    from rldk.monitor.monitor import Monitor

__all__ = ["summary_of"]


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
