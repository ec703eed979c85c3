"""The one rule by which a run gets its verdict, its state now, and its status in a health summary."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan

from rldk.core.anomaly import Anomaly
from rldk.core.catalog import CATALOG
from rldk.core.text import counted
from rldk.core.verdicts import worst_of
from rldk.judge.coverage import CheckCoverage
from rldk.judge.engine import Engine

__all__ = ["DEGRADED", "state_of", "status_of", "verdict_of"]

DEGRADED = 0.7  # overall health below which a run is not called healthy; also the most that a standing warning leaves
_JUDGED = frozenset({"kl", "reward", "advantage", "value", "preference"})
_ENOUGH_EVENTS = 10


def verdict_of(engine: Engine, anomalies: Sequence[Anomaly], coverage: CheckCoverage) -> tuple[str, str]:
    """The worst that was found over the whole run, and why; `no_data` where there was nothing to judge by, never `healthy`."""
    severity = worst_of((anomaly.severity for anomaly in anomalies), "")
    if severity:
        count = sum(anomaly.severity == severity for anomaly in anomalies)
        return severity, f"{count} {severity} {'anomaly' if count == 1 else 'anomalies'}{_over(engine, anomalies)}"
    if engine.events < _ENOUGH_EVENTS:
        return "no_data", f"only {counted(engine.events, 'event')}: too few to judge"
    if not _has_evidence(engine):
        return "no_data", "no metric of reinforcement learning to judge by (reward, KL, advantage, value or preference)"
    if coverage.level == "weak":
        return "healthy", f"nothing found, but coverage is weak: {coverage.counted}"
    return "healthy", f"nothing found by {coverage.active} active checks"


def _over(engine: Engine, anomalies: Sequence[Anomaly]) -> str:
    """`, recovered at step 40` where all anomalies are over; empty while one stands."""
    cleared = [anomaly.cleared_index for anomaly in anomalies]
    ends = [index for index in cleared if index is not None]
    if len(ends) < len(cleared):
        return ""
    step = engine.cleared_steps.get(max(ends))
    return ", recovered" if step is None else f", recovered at step {step}"


def _has_evidence(engine: Engine) -> bool:
    return any(
        series.n >= _ENOUGH_EVENTS and (entry := CATALOG.get(name)) is not None and entry.group in _JUDGED
        for name, series in engine.series.items()
    )


def state_of(verdict: str, anomalies: Sequence[Anomaly]) -> str:
    """How the run stands now: the worst that stands, `recovered` where all that was found is over, else the verdict."""
    standing = (anomaly.severity for anomaly in anomalies if anomaly.cleared_index is None)
    return worst_of(standing, "recovered" if anomalies else verdict)


def status_of(verdict: str, overall_health: float = nan) -> str:
    """The status of a health summary: the verdict, and `degraded` for a run short of critical whose health is below 0.7."""
    return "degraded" if verdict in ("healthy", "warning") and overall_health < DEGRADED else verdict
