"""The monitor of a live run: every event is logged, judged and shown, and none of that can break the training."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rldk.core.anomaly import SEVERITIES, Anomaly
from rldk.core.errors import UsageError
from rldk.core.event import Event
from rldk.judge.alerts import Alert
from rldk.judge.config import ScanConfig
from rldk.judge.coverage import coverage_of
from rldk.judge.record import ComprehensivePPOMetrics
from rldk.judge.result import Result
from rldk.log.resume import check_resume_step
from rldk.monitor.crash import last_error, report_crash
from rldk.monitor.guard import Guard
from rldk.monitor.intake import Intake
from rldk.monitor.live_judge import LiveJudge, build_forensics, settings_for_log, without_responses
from rldk.monitor.outputs import EventLog, Output, writers_of
from rldk.monitor.run_files import check_run_id, file_of, new_run_id, set_aside
from rldk.monitor.run_log import RunLog
from rldk.monitor.runner import runner_of
from rldk.monitor.stopping import Stop, Stopper
from rldk.monitor.summary import coverage_line, summary_of

__all__ = ["Monitor"]

_open_monitors: weakref.WeakSet[Monitor] = weakref.WeakSet()


class Monitor:
    """Watches one live run.

    In a training loop of your own::

        monitor = Monitor("out", run_id="my_run", stop_on="critical", resume_step=step if resumed else None)
        for step in ...:
            monitor.observe(Event(step, {"reward_mean": ..., "kl_mean": ...}))
            if monitor.stop:            # a `Stop`, with the incident and its advice
                break                   # after saving a checkpoint
        monitor.close()

    `observe` judges the event, writes it to the log, then shows it. It never raises: a metric that is not a number is left out,
    a detector or output that fails is reported once through the `rldk` logger, with its traceback, and one that keeps failing
    is disabled. Metrics are given by canonical name or by the keys of `framework`; unknown keys are kept under their own names.

    Save `state_dict()` with a checkpoint and pass it to `load_state_dict` on resuming; or give `resume_step` alone, and the
    events of the log up to that step are judged again, which is equivalent.

    Args:
        output_dir: where the files of the run go: `R_events.jsonl`, `R_metrics.csv`, `R_alerts.json`, `R_final_report.json`.
        run_id: the `R` in these names; by default made from the time. Files of an earlier run of this id are renamed to
            `R_1_…`, unless `resume_step` says that it goes on.
        event_log_path: another place for the event log; without `output_dir` the only file.
        config: settings of the detectors, as `rldk scan --config` takes them.
        forensics: options of `ComprehensivePPOForensics` (`kl_target`, `window_size`, its switches).
        limits: hard limits by metric: a maximum, or `{"max": …, "min": …}`.
        run_config: the settings of the training itself, such as `vars(args)`. They are written into the first event and into
            `R_config.json`, with the limits and targets given here and without secrets.
        stop_on: `critical` or `warning` to set `stop` on such an anomaly, `confirm` events later if it still stands then.
        dry_run: only record where the run would have been stopped (`would_stop`).
        outputs: where to write, instead of the files of `output_dir`. The first `EventLog` among them is written before the
            others, with what the detectors note about the event.
        actions: further outputs, such as `Webhook` and `Command`.
        resume_step: the last step of the checkpoint that the run resumes from.
        framework: whose keys the metrics have, `rldk` for canonical names.
        main_process: false in the other processes of a distributed run, where nothing is judged or written.
        strict: raise errors instead of reporting them, for tests.
    """

    def __init__(
        self,
        output_dir: str | os.PathLike[str] | None = None,
        run_id: str | None = None,
        *,
        event_log_path: str | os.PathLike[str] | None = None,
        config: ScanConfig | Mapping[str, Any] | None = None,
        forensics: Mapping[str, Any] | None = None,
        limits: Mapping[str, Any] | None = None,
        run_config: Mapping[str, Any] | None = None,
        stop_on: str | None = None,
        confirm: int = 0,
        dry_run: bool = False,
        outputs: Iterable[Output] | None = None,
        actions: Iterable[Output] = (),
        resume_step: int | None = None,
        framework: str | None = "rldk",
        main_process: bool = True,
        strict: bool = False,
    ) -> None:
        self.output_dir = output_dir
        self.run_id = check_run_id(new_run_id() if run_id is None else run_id)
        self.resume_step = resume_step = check_resume_step(resume_step)
        self.main_process = main_process
        self.guard = Guard(strict)
        self.forensics = build_forensics(config, forensics, limits)
        self._judge = LiveJudge(self.forensics, self.guard)
        given = dict(run_config or {})
        given["rldk"] = {**settings_for_log(config, forensics, limits), **given.get("rldk", {})}
        self._intake = Intake(self.run_id, framework, given)
        self.stopper = Stopper(stop_on, confirm, dry_run)
        self.sources: dict[str, str] = {}
        self._lock = threading.RLock()  # outputs on their own threads read what the training's thread judges
        self._started = self._closed = False
        every = [*(writers_of(output_dir, self.run_id) if outputs is None else outputs), *actions]
        if event_log_path is None and output_dir is not None and outputs is None:
            event_log_path = file_of(output_dir, self.run_id, "events.jsonl")
        if event_log_path is not None:
            every.insert(0, EventLog(event_log_path, resume_step))
        log = next((one for one in every if isinstance(one, EventLog)), None)
        self._log = RunLog(log, self.guard)
        self.outputs = [one for one in every if one is not log]
        self._runners = [runner_of(one, self.guard) for one in self.outputs]
        _open_monitors.add(self)

    @property
    def anomalies(self) -> list[Anomaly]:
        """All anomalies of the training so far; those of the machine are in `result().machine`."""
        return self.forensics.anomalies

    def record(self) -> ComprehensivePPOMetrics:
        """What trackers and scores say after the last event; made once, however many outputs and callbacks ask."""
        with self._lock:
            return self._judge.record()

    @property
    def stop(self) -> Stop | None:
        """The decision to stop, once it is taken; never set with `dry_run`."""
        decision = self.stopper.decision
        return None if decision is None or decision.dry_run else decision

    @property
    def would_stop(self) -> Stop | None:
        """The decision to stop, whether it is obeyed or only recorded."""
        return self.stopper.decision

    def start(self) -> None:
        """Open the files, and judge again what the log of a resumed run holds. The first event calls it if nobody has."""
        if self._started or self._closed or not self.main_process:
            return
        self._started = True
        if self.output_dir is not None and self.resume_step is None:
            self.guard.attempt("the files of an earlier run", set_aside, self.output_dir, self.run_id)
        self._log.open()
        if self.resume_step is not None:
            self.guard.attempt("the events before the checkpoint", self._judge.take_again, self._log.earlier(self.run_id))
        for output in self._runners:
            output.start(self)

    def observe(self, event: Event | Mapping[str, Any], *, canonical: bool = False) -> list[Anomaly]:
        """Log, judge and show one event; returns the anomalies that it raises. Another event of the same step adds to it.

        Where each step comes in several calls, it is logged at once, and judged when the next step begins, or at `flush`.
        With `canonical`, it is an `Event` whose metrics already have canonical names, and is taken as it is.
        """
        if not self.main_process or self._closed:
            return []
        with self._lock:
            return self.guard.attempt("an event", self._observe, event, canonical) or []

    def _observe(self, given: Event | Mapping[str, Any], canonical: bool) -> list[Anomaly]:
        self.start()
        event = self._intake.event(given, canonical)
        if event is None:
            return []  # a summary of the run, and no step
        is_new = self._judge.steps.begins(event.step)
        raised = self._judge_held() if is_new else []
        if self._judge.steps.hold(event):
            self._log.write(without_responses(event), is_new)
            return raised
        event, own = self._judge.take(event)
        self._decide_and_show(self._log.write(event, is_new), own)
        return [*raised, *own] if raised else own

    def _judge_held(self) -> list[Anomaly]:
        """Judge the step that came in several calls, now that it is complete. Its rows are in the log; what is new is added."""
        held = self._judge.steps.release()
        if held is None:
            return []
        event, raised = self._judge.take(held)
        metrics = {name: value for name, value in event.metrics.items() if name not in held.metrics}
        if metrics or len(event.notes) > len(held.notes):
            info = {name: value for name, value in event.model_info.items() if name != "config"}
            self._log.write(Event(event.step, metrics, event.wall_time, model_info=info, notes=event.notes), is_new=False)
        self._decide_and_show(event, raised)
        return raised

    def _decide_and_show(self, event: Event, raised: list[Anomaly]) -> None:
        if self.stopper.stop_on is not None:
            self.guard.attempt("stopping", self.stopper.look, self.forensics)
        if not event.metrics.keys() <= self.sources.keys():
            self.sources.update((name, name) for name in event.metrics if name not in self.sources)
        for output in self._runners:
            output.take(event, raised)

    def alert(
        self, step: int, kind: str, message: str, severity: str = "critical", advice: str = "", *,
        family: str = "probe", lasting: bool = False,
    ) -> None:  # fmt: skip
        """Report at once what was seen between two events, such as a gradient that is not finite, before the weights change.

        An alert is an anomaly: it counts for the verdict, the scores and the decision to stop, and reaches every output. It is
        cleared when it has not come again for five events, unless it is `lasting`. The log holds it with the next event, or after
        the last one, so that a scan of the log finds it too.
        """
        if self.main_process and not self._closed:
            with self._lock:
                self.guard.attempt("alert", self._alert, step, kind, message, severity, advice, family, lasting)

    def _alert(self, step: int, kind: str, message: str, severity: str, advice: str, family: str, lasting: bool) -> None:
        self.start()
        given = severity if severity in SEVERITIES else "critical"
        found = Alert(str(kind), given, self._intake.step(step), str(message), str(advice), family, bool(lasting))
        self._judge_held()
        self._log.add(found)
        self._judge.forget_record()
        anomaly = self.forensics.engine.alert(found)
        if anomaly is None:
            return
        for output in self._runners:
            output.alert(anomaly)

    def _log_last_alerts(self) -> None:
        """Alerts after which no event came are logged with one of their own."""
        last = self.forensics.engine.last_step
        event = self._log.write(self._intake.complete(self._log.last_alerts(last)))
        for output in self.outputs:
            if isinstance(output, EventLog):
                self.guard.call(output.key, output.write, event)
        if event.step != last:
            self._judge.take(event)

    def flush(self) -> None:
        """Judge at once what was logged of a step in several calls, which waits for the next step otherwise."""
        if self.main_process and not self._closed:
            with self._lock:
                self.guard.attempt("an event", self._judge_held)

    def saved(self, step: int) -> None:
        """The training has written a checkpoint."""
        if self.main_process and not self._closed:
            self._log.save(step)
            for output in self._runners:
                output.save(step)

    def coverage(self) -> dict[str, Any]:
        """Which metrics come under which keys, which detectors judge by them, and which cannot."""
        return {**coverage_of(self.forensics.engine, self.sources).to_dict(), "failed": dict(self.guard.broken)}

    def coverage_line(self) -> str:
        """Coverage in one line."""
        return coverage_line(self.coverage())

    def result(self) -> Result:
        """The verdict, the scores, the incidents and everything else that is known about the run now."""
        with self._lock:
            return self.forensics.result()

    def summary(self) -> dict[str, Any]:
        """The run as it stands: verdict, scores, incidents, coverage, and the decision to stop."""
        with self._lock:
            return summary_of(self)

    def state_dict(self) -> dict[str, Any]:
        """Everything the monitor knows about the run, as JSON; save it with a checkpoint."""
        self.flush()
        return {"version": 1, "stop": self.stopper.state_dict(), "keys": self._intake.state_dict(), **self._judge.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where the monitor that gave `state` was."""
        if state.get("version") != 1:
            raise UsageError(f"Expected the state of a Monitor of version 1, got version {state.get('version')!r}.")
        self._judge.load_state_dict(state)
        self.stopper.load_state_dict(state["stop"])
        self._intake.load_state_dict(state.get("keys"))

    def close(self) -> None:
        """Complete and close all files, those of outputs that have failed too. A second call does nothing."""
        if self._closed:
            return
        self.flush()
        self._closed = True
        _open_monitors.discard(self)
        if self.main_process and self._started:
            if self._log.has_alerts:
                self.guard.attempt("alert", self._log_last_alerts)
            for output in self._runners:
                output.end_soon()
            ends: list[tuple[str, Callable[[], None]]] = [(output.key, output.close) for output in self._runners]
            ends.append(("event log", self._log.close))
            self.guard.each(ends)

    def __del__(self) -> None:
        if hasattr(self, "outputs"):
            self.close()

    def __enter__(self) -> Monitor:
        return self

    def __exit__(self, _: object, error: BaseException | None = None, *rest: object) -> None:
        report_crash(self, error)
        self.close()


@atexit.register
def _close_all() -> None:
    """A run that ends with an exception still leaves complete files, which say so."""
    for monitor in list(_open_monitors):
        report_crash(monitor, last_error())
        monitor.close()
