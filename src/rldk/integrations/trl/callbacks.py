"""The callbacks that go into `callbacks=[…]` of a trainer."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from rldk.core.anomaly import Anomaly
from rldk.core.catalog import locate
from rldk.core.errors import UsageError
from rldk.core.event import Event
from rldk.integrations.trl.base import WatchingCallback
from rldk.integrations.trl.metrics import RLDKMetrics, fill
from rldk.integrations.trl.options import CallbackOptions, as_path, split_thresholds, stricter
from rldk.judge.config import ScanConfig
from rldk.monitor import Monitor, Output

__all__ = ["CustomRLDKCallback", "EventWriterCallback", "RLDKCallback", "RLDKMetrics", "RLDKMonitor"]


class RLDKCallback(WatchingCallback):
    """Watches a training: event log, metrics, alerts, and a report at the end, all in one folder.

    Args:
        output_dir: where the files go, each with the run id before its name.
        log_interval: events between two lines in the terminal, and between two records of samples.
        jsonl_log_interval: write every n-th event to the event log.
        enable_jsonl_logging: false for no event log.
        alert_thresholds: hard limits by metric: maxima (`kl_divergence`, `clip_fraction`, `gradient_norm`, `memory_usage` …).
            `kl_divergence` counts in the unit of the trainer (PPO: per response, GRPO: per token), `kl_per_token` and
            `kl_per_sequence` in their own. Further
            minima of scores (`stability`, `health`) and maxima of risks (`collapse_risk`, `hacking_risk`). Other metrics are
            judged by the run's own baseline. Without configuration, a stability below 0.3 and a risk of collapse from 0.6
            on alert when they last; `{"stability": 0.0, "collapse_risk": 1.1}` turns that off.
        run_id: the run id in the names of its files; by default made from the time.
        enable_resource_monitoring: sample processor, memory and accelerator on a separate thread.
        enable_checkpoint_analysis: `R_checkpoint_summary.csv`, one row after each save.
        stop_on: `critical` or `warning` to stop the training on such an anomaly, `confirm` events later if it still stands
            then; `dry_run` only records it. TRL's PPO stops with `rldk.monitor.TrainingStopped`, after a checkpoint.
        skip_nonfinite_steps: skip optimizer steps with a gradient that is NaN or infinite.
        samples: how many prompts and completions with their rewards an event records, every `log_interval` events; 0 for none.
        terminal: print coverage, alerts, and a line every `log_interval` events to stderr.
        report_to: experiment trackers to log to: `wandb`, `tensorboard`, `mlflow`, `trackio`.
        kl_target: the KL that is aimed at, if there is one.
        config: settings of the detectors, as `rldk scan --config` takes them.
        actions: what to do on an alert (`rldk.monitor.Webhook`, `Command`).
        outputs: further places to write to (subclasses of `rldk.monitor.Output`).
        strict: raise errors of the monitoring instead of reporting them, for tests.

    Attributes:
        metrics: the record of the last step (also `current_metrics`); `metrics_history` those of the last thousand.
    """

    def __init__(
        self,
        output_dir: str | os.PathLike[str] = "./rldk_logs",
        log_interval: int = 10,
        jsonl_log_interval: int = 1,
        enable_jsonl_logging: bool = True,
        alert_thresholds: Mapping[str, Any] | None = None,
        run_id: str | None = None,
        enable_resource_monitoring: bool = True,
        enable_checkpoint_analysis: bool = True,
        *,
        stop_on: str | None = None,
        confirm: int = 0,
        dry_run: bool = False,
        skip_nonfinite_steps: bool = False,
        samples: int = 2,
        terminal: bool = True,
        report_to: str | Sequence[str] = (),
        event_log_path: str | os.PathLike[str] | None = None,
        kl_target: float | None = None,
        config: ScanConfig | Mapping[str, Any] | None = None,
        actions: Sequence[Output] = (),
        outputs: Sequence[Output] = (),
        strict: bool = False,
    ) -> None:
        limits, min_scores, max_risks = split_thresholds(alert_thresholds)
        files = {"metrics", "alerts", "scores", "final_report"} | ({"events"} if enable_jsonl_logging else set())
        super().__init__(
            CallbackOptions(
                as_path(output_dir), run_id, as_path(event_log_path) if enable_jsonl_logging else None,
                frozenset(files | ({"checkpoints"} if enable_checkpoint_analysis else set())), limits, min_scores,
                max_risks, {} if kl_target is None else {"kl_target": kl_target}, config,
                tuple(one.name for one in fields(RLDKMetrics) if one.name not in ("wall_time", "run_id")),
                stop_on, confirm, dry_run, log_interval=log_interval, jsonl_interval=jsonl_log_interval, terminal=terminal,
                report_to=(report_to,) if isinstance(report_to, str) else tuple(report_to), actions=tuple(actions),
                outputs=tuple(outputs), resources=enable_resource_monitoring, samples=samples,
                skip_nonfinite=skip_nonfinite_steps, strict=strict,
            )
        )  # fmt: skip
        self.metrics = RLDKMetrics()

    @property
    def current_metrics(self) -> RLDKMetrics:
        """The `metrics` of the last step."""
        return self.metrics

    def on_event(self, event: Event, raised: list[Anomaly], monitor: Monitor) -> None:
        """Make the record of the step."""
        if event.phase != "train":
            return
        own = {"global_step": event.step, "run_id": monitor.run_id, "wall_time": event.wall_time, **event.model_info}
        self.metrics = fill(RLDKMetrics, event.metrics, own, monitor.record().scores)
        self.metrics_history.append(self.metrics)


class RLDKMonitor(RLDKCallback):
    """`RLDKCallback` without options."""

    def __init__(self, output_dir: str | os.PathLike[str] = "./rldk_logs", run_id: str | None = None, **options: Any) -> None:
        super().__init__(output_dir=output_dir, run_id=run_id, **options)


class CustomRLDKCallback(RLDKCallback):
    """`RLDKCallback` with targets and limits of your own.

    `performance_benchmarks` maps `target_X` to a value that X should reach (`target_reward`), `max_X` and `min_X` to hard
    limits (`max_kl_divergence`). `benchmarks` says of each target whether and when it was reached.
    """

    def __init__(
        self,
        output_dir: str | os.PathLike[str] = "./rldk_logs",
        performance_benchmarks: Mapping[str, float] | None = None,
        **options: Any,
    ) -> None:
        self.performance_benchmarks = dict(performance_benchmarks or {})
        limits: dict[str, Any] = dict(options.pop("alert_thresholds", None) or {})
        self._targets: dict[str, str] = {}
        for name, mark in self.performance_benchmarks.items():
            kind, _, metric = name.partition("_")
            if kind not in ("target", "max", "min") or not metric:
                raise UsageError(f"Expected a benchmark to begin with target_, max_ or min_, got {name!r}.")
            if kind == "target":
                place = locate(metric, "rldk")
                self._targets[name] = metric if place is None else place.metric
            else:
                limits = stricter(limits, {metric: {kind: mark}})
        super().__init__(output_dir=output_dir, alert_thresholds=limits, **options)
        fresh = {"reached": False, "step": None, "best": None}
        self.benchmarks: dict[str, dict[str, Any]] = {
            name: {"target": self.performance_benchmarks[name], **fresh} for name in self._targets
        }  # fmt: skip

    def on_event(self, event: Event, raised: list[Anomaly], monitor: Monitor) -> None:
        super().on_event(event, raised, monitor)
        for name, metric in self._targets.items():
            value, mark = event.metrics.get(metric), self.benchmarks[name]
            if value is None or value != value:
                continue
            mark["best"] = value if mark["best"] is None else max(mark["best"], value)
            if value >= mark["target"] and not mark["reached"]:
                mark.update(reached=True, step=event.step)


class EventWriterCallback(WatchingCallback):
    """Writes the event log and nothing else: one event per line, flushed as it happens.

    Args:
        event_log_path: the log. A run that resumes removes the rows after its checkpoint.
        run_id: the run id in the events; by default made from the time.
    """

    def __init__(self, event_log_path: str | os.PathLike[str], run_id: str | None = None) -> None:
        self.event_log_path = as_path(event_log_path)
        super().__init__(CallbackOptions(run_id=run_id, event_log_path=self.event_log_path, files=frozenset({"events"})))
