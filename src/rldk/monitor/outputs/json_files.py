"""The JSON files of a run: alerts, settings, the report at the end, and the full analysis."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

from rldk.core.anomaly import Anomaly
from rldk.core.event import Event
from rldk.core.files import write_json
from rldk.core.run_config import RunConfig
from rldk.core.stats.moments import RunningMoments
from rldk.judge.incidents.incident import anomaly_dicts, group_incidents
from rldk.monitor.outputs.base import FileOutput
from rldk.monitor.run_files import file_of

if TYPE_CHECKING:
    from rldk.monitor.monitor import Monitor

__all__ = ["Alerts", "Analysis", "ConfigFile", "FinalReport", "MetricSummary"]

_MIN_SECONDS = 0.5  # between two writings of the alerts


class Alerts(FileOutput):
    """Writes every anomaly, including those of the machine, to a list of alerts.

    The file exists from the start, so that an empty list means that nothing was found. It is written again when there is
    something new, at most twice per second, and in full at the end. An empty list that is no longer true and cannot be
    replaced, as on a full disk, is deleted.
    """

    name: ClassVar[str] = "alerts"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path)
        self._dirty = True
        self._written = 0.0
        self._held: int | None = None  # how many alerts the file holds; `None` if it is not ours

    def start(self, monitor: Monitor) -> None:
        self._monitor = monitor
        self._write()

    def take(self, event: Event, raised: list[Anomaly]) -> None:
        self._dirty |= bool(raised)
        if self._dirty and (not self._held or time.monotonic() - self._written >= _MIN_SECONDS):
            self._write()

    def alert(self, anomaly: Anomaly) -> None:
        self._write()

    def close(self) -> None:
        self._write()

    def _write(self) -> None:
        judge = self._monitor.forensics
        anomalies = judge.anomalies
        told = anomaly_dicts(anomalies, group_incidents(anomalies, judge.engine.events))
        by_anomaly = {id(anomaly): one for anomaly, one in zip(anomalies, told, strict=True)}
        found = [by_anomaly.get(id(anomaly)) or anomaly.to_dict() for anomaly in judge.engine.anomalies]
        for alert in found:
            alert["alert"] = f"{alert['severity']} at step {alert['step']}: {alert['message']}"
        self._dirty = True
        try:
            write_json(self.path, found)
        except OSError:
            if not self._held and found:
                self._withdraw()
            raise
        self._dirty, self._written, self._held = False, time.monotonic(), len(found)

    def _withdraw(self) -> None:
        """Remove a file that says that nothing was found; deleting needs no space."""
        try:
            self.path.unlink(missing_ok=True)
        except OSError:
            with suppress(OSError):
                os.truncate(self.path, 0)


class ConfigFile(FileOutput):
    """Writes the settings that the first event holds: by canonical name (`knobs`), as given (`raw`), and rldk's own."""

    name: ClassVar[str] = "config"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path)
        self._unwritten: dict[str, Any] | None = None

    def take(self, event: Event, raised: list[Anomaly]) -> None:
        settings = event.model_info.get("config")
        if isinstance(settings, dict):
            config = RunConfig.of(settings)
            self._unwritten = {"run_id": event.run_id, "knobs": dict(config), "raw": config.raw, "rldk": config.rldk}
        self.close()

    def close(self) -> None:
        if self._unwritten is not None:
            write_json(self.path, self._unwritten)
            self._unwritten = None


class MetricSummary:
    """Count, mean, spread and extremes of every metric of a run; values that are not finite are only counted."""

    def __init__(self) -> None:
        self._moments: dict[str, RunningMoments] = {}
        self._first: dict[str, float] = {}
        self._last: dict[str, float] = {}

    def add(self, metrics: Mapping[str, float]) -> None:
        """Take the metrics of an event."""
        moments = self._moments
        for name, value in metrics.items():
            known = moments.get(name)
            if known is None:
                known = moments[name] = RunningMoments()
                self._first[name] = value
            if known.min == value == known.max:
                known.count += 1  # the same as ever, as a setting is: neither mean nor variance changes
            else:
                known.update(value)
        self._last.update(metrics)

    def by_metric(self) -> dict[str, dict[str, Any]]:
        """What is known of each metric, by name."""
        return {
            name: {
                "count": known.count,
                "nonfinite": known.missing + known.nonfinite,
                "first": self._first[name],
                "last": self._last[name],
                "mean": known.mean,
                "std": known.std,
                "min": known.min,
                "max": known.max,
            }
            for name, known in sorted(self._moments.items())
        }


class FinalReport(FileOutput):
    """Writes summary statistics of every metric, the verdict, the scores, the incidents and the coverage, at the end."""

    name: ClassVar[str] = "final report"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path)
        self._metrics = MetricSummary()

    def start(self, monitor: Monitor) -> None:
        self._monitor = monitor
        self._began = time.time()

    def take(self, event: Event, raised: list[Anomaly]) -> None:
        self._metrics.add(event.metrics)

    def close(self) -> None:
        seconds = time.time() - self._began
        write_json(self.path, {**self._monitor.summary(), "wall_seconds": seconds, "metrics": self._metrics.by_metric()})


class Analysis(FileOutput):
    """Writes `R_comprehensive_analysis.json`, `R_health_summary.json` and `R_comprehensive_metrics.json` at the end, and
    `R_comprehensive_analysis_step_N.json` at each checkpoint.

    Args:
        folder: where they go.
        keep: how many events the file of metrics holds at most, each with the trackers' values and the scores; the CSV
            beside it has them all.
    """

    name: ClassVar[str] = "analysis"

    def __init__(self, folder: str | os.PathLike[str], keep: int = 10_000) -> None:
        super().__init__(folder)
        self.keep = keep
        self._every = 1
        self._rows: list[dict[str, Any]] = []
        self._count = 0

    def start(self, monitor: Monitor) -> None:
        self._monitor = monitor

    def take(self, event: Event, raised: list[Anomaly]) -> None:
        self._count += 1
        if self._count % self._every == 0 or self._count == 1:
            known = self._monitor.record().flat()
            self._rows.append({**known, "step": event.step, "wall_time": event.wall_time, "metrics": dict(event.metrics)})
            if len(self._rows) > self.keep:
                self._rows = self._rows[::2]  # thinned out, so that the file covers the whole run in bounded memory
                self._every *= 2

    def save(self, step: int) -> None:
        self._write(f"comprehensive_analysis_step_{step}.json", self._monitor.forensics.get_comprehensive_analysis())

    def close(self) -> None:
        forensics = self._monitor.forensics
        self._write("comprehensive_analysis.json", forensics.get_comprehensive_analysis())
        self._write("health_summary.json", forensics.get_health_summary())
        self._write("comprehensive_metrics.json", self._rows)

    def _write(self, ending: str, value: Any) -> None:
        write_json(file_of(self.path, self._monitor.run_id, ending), value)
