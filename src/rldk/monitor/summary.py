"""A live run in one dictionary, for reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rldk.core.files import strict
from rldk.judge.incidents.incident import group_incidents
from rldk.judge.result import scores_of, verdict_of

if TYPE_CHECKING:
    from rldk.monitor.monitor import Monitor

__all__ = ["summary_of"]


def summary_of(monitor: Monitor) -> dict[str, Any]:
    """Verdict, scores, anomalies, incidents, coverage, and the decision to stop, as strict JSON holds them."""
    engine = monitor.forensics.engine
    verdict, reason = verdict_of(engine)
    found = {
        "run_id": monitor.run_id,
        "events": engine.events,
        "first_step": engine.first_step,
        "last_step": engine.last_step,
        "verdict": verdict,
        "reason": reason,
        "health": monitor.forensics.get_health_summary(),
        "scores": scores_of(monitor.forensics),
        "anomalies": [anomaly.to_dict() for anomaly in engine.anomalies],
        "incidents": [incident.to_dict() for incident in group_incidents(engine.anomalies, engine.events)],
        "coverage": monitor.coverage(),
        "stop": None if monitor.would_stop is None else monitor.would_stop.to_dict(),
    }
    return strict(found)  # type: ignore[no-any-return]
