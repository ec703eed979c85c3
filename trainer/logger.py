"""The metrics of a run: printed as one line per interval, sent to the trackers, and judged by the monitor."""

from __future__ import annotations

import argparse
import atexit
import math
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator

from rldk.core.catalog import resolve
from rldk.core.event import Event
from trackers import Tracker, make_trackers

SAMPLE_INTERVAL = 10  # steps between two events with samples


class Throughput:
    """Seconds of a step and of its parts; tokens, samples and steps per second since the start of the epoch; the time left in it.

    The device is synchronised at both ends of every span, so that queued work is included. A run that is
    resumed within an epoch counts from there.
    """

    def __init__(self, device: torch.device | str, steps_per_epoch: int, total_steps: int, done: int = 0) -> None:
        self.cuda = torch.device(device).type == "cuda"
        self.per_epoch, self.total, self.done = steps_per_epoch, total_steps, done
        self.spans: dict[str, float] = {}
        self.tokens = 0  # of the whole run
        self._open_epoch()

    def _open_epoch(self) -> None:
        self.began, self.steps, self.epoch_tokens, self.epoch_samples = self.now(), 0, 0, 0

    def now(self) -> float:
        if self.cuda:
            torch.cuda.synchronize()
        return time.perf_counter()

    @contextmanager
    def span(self, name: str):
        """Time a part of the step; it is logged as `<name>_time` in seconds."""
        begin = self.now()
        try:
            yield
        finally:
            self.spans[name] = self.spans.get(name, 0.0) + self.now() - begin

    @contextmanager
    def step(self):
        """Time a whole step, without its checkpoint and its logs."""
        if self.steps and self.done % self.per_epoch == 0:
            self._open_epoch()
        self.spans = {}
        begin = self.now()
        yield
        self._last = self.now() - begin

    def metrics(self, tokens: int, samples: int) -> dict[str, float]:
        """The speed of the step that has just ended, from the totals over all processes."""
        self.done += 1
        self.steps += 1
        self.tokens += tokens
        self.epoch_tokens += tokens
        self.epoch_samples += samples
        seconds = max(self.now() - self.began, 1e-9)
        left = min(-self.done % self.per_epoch, self.total - self.done)  # steps of this epoch that are still to come
        return {
            "num_tokens_generated": float(self.tokens),
            "step_time": self._last,
            **{f"{name}_time": spent for name, spent in self.spans.items()},
            "tokens_per_second": self.epoch_tokens / seconds,
            "samples_per_second": self.epoch_samples / seconds,
            "steps_per_second": self.steps / seconds,
            "eta_minutes": left * seconds / self.steps / 60.0,
            "epoch_time": seconds / 60.0,
        }


class Logger:
    """Takes the metrics of every step on every process; only the main one prints and writes.

    Args:
        console: the parts of the console line: label, metric, and how the number is written (`MFU:{:.2f}%`).
        steps_per_epoch, total_steps: of the whole run, resumed or not.
        resume_step: the step of the checkpoint that this run resumes from.
        monitor_state: what `state_dict` gave then.
    """

    def __init__(
        self,
        args: argparse.Namespace,
        accelerator: Accelerator,
        console: list[tuple[str, str, str]],
        steps_per_epoch: int,
        total_steps: int,
        resume_step: int | None = None,
        monitor_state: dict[str, Any] | None = None,
        kl_target: float | None = None,
    ) -> None:
        self.args, self.console, self.main = args, console, accelerator.is_main_process
        self.per_epoch, self.total = steps_per_epoch, total_steps
        self.trackers: Tracker = Tracker()
        self.monitor: Any = None
        self.device, self.said_no_mfu = accelerator.device, False
        self.screen = Screen(self.main, total_steps, resume_step or 0)
        if self.main:
            self._open(resume_step, monitor_state, kl_target)
            atexit.register(self.close)  # also after an exception, the terminal and the files must be complete

    def _open(self, resume_step: int | None, monitor_state: dict[str, Any] | None, kl_target: float | None) -> None:
        args = self.args
        folder = Path(args.save_dir)
        folder.mkdir(parents=True, exist_ok=True)
        config = {key: value for key, value in sorted(vars(args).items()) if value is not None}
        self.trackers = make_trackers(args.report_to, folder, args.wandb_project, args.run_id, config, resume_step)
        self.about = {"run_id": args.run_id, "phase": "train", "stage": args.stage, "reductions": {"kl_mean": "token"}}
        if not args.no_rldk:
            self.monitor = _make_monitor(args, resume_step, kl_target)
            if monitor_state:
                self.monitor.load_state_dict(monitor_state)

    @property
    def stop(self) -> Any:
        """The failure for which the monitor wants the run stopped, or `None`. Known to the main process only."""
        return None if self.monitor is None else self.monitor.stop

    def log(
        self, step: int, metrics: dict[str, float], notes: list[str] | None = None, data_slice: dict[str, Any] | None = None,
        samples: list[dict[str, Any]] | None = None,
    ) -> None:  # fmt: skip
        """Take the metrics of a step (from 1) by their short names; an unknown metric is absent."""
        if not self.main:
            return
        metrics = {**metrics, "epoch": step / self.per_epoch, "global_step": float(step)}
        if "mfu_percent" not in metrics and not self.said_no_mfu:
            self.say(f"No MFU: the peak FLOP/s of {self.device} is not known (rldk.functional.throughput has the table of GPUs).")
        self.said_no_mfu = True
        names = {key: f"system/{key}" if key == "epoch_time" else f"train/{key}" for key in metrics}
        self.trackers.log({names[key]: value for key, value in metrics.items()}, step)
        if self.monitor is not None:
            event = self._event(step, metrics, notes or [], data_slice or {})
            if samples:
                event.extra["samples"] = samples
            for anomaly in self.monitor.observe(event):
                self.say(f"rldk: {anomaly.severity} {anomaly.type} at step {anomaly.step}: {anomaly.message} {anomaly.advice}")
        for note in notes or []:
            self.say(f"step {step}: {note}")
        if self.is_shown(step):
            self.screen.line(self._line(step, metrics))
        self.screen.advance(step)

    def log_evaluation(self, step: int, metrics: dict[str, float], samples: list[dict[str, Any]]) -> None:
        """Log an evaluation outside of training steps, such as that of the initial model."""
        if not self.main:
            return
        self.trackers.log({f"train/{key}": value for key, value in metrics.items()}, step)
        if self.monitor is not None:
            event = self._event(step, metrics, [], {})
            event.extra["samples"] = samples
            self.monitor.observe(event)

    def is_shown(self, step: int) -> bool:
        """Whether a step has a line on the console."""
        return step % self.args.log_interval == 0 or step in (1, self.total)

    def shows_samples(self, step: int) -> bool:
        """Whether the event of a step has samples: one in ten, of the process that writes."""
        return self.monitor is not None and (step - 1) % SAMPLE_INTERVAL == 0

    def say(self, text: str) -> None:
        """Print a sentence, on the main process only; an empty one is not printed."""
        if text:
            self.screen.say(text)

    def _event(self, step: int, metrics: dict[str, float], notes: list[str], data_slice: dict[str, Any]) -> Event:
        found = resolve(metrics, framework="trainer")
        known = found.metrics | {key: metrics[key] for key in found.unmapped}
        return Event(step, known, time.time(), {"seed": self.args.seed}, data_slice, self.about, notes)

    def _line(self, step: int, metrics: dict[str, float]) -> str:
        epoch, inside = divmod(step - 1, self.per_epoch)
        words = [f"Epoch:[{epoch + 1}/{max(self.args.epochs, epoch + 1)}]({inside + 1}/{self.per_epoch})"]
        words += [f"{label}:{form.format(metrics[key])}" for label, key, form in self.console if key in metrics]
        words.append(f"epoch_Time:{math.ceil(metrics['eta_minutes'])}min")
        return " ".join(words)

    def state_dict(self) -> dict[str, Any]:
        """What the monitor knows, for the checkpoint."""
        return {} if self.monitor is None else self.monitor.state_dict()

    def close(self) -> None:
        """Write what is left; a second call does nothing."""
        atexit.unregister(self.close)
        self.screen.close()
        if self.monitor is not None:
            self.monitor.close()
        self.trackers.close()
        self.trackers = Tracker()


class Screen:
    """Prints lines above a progress bar on a terminal, or plain lines without one."""

    def __init__(self, shown: bool, total: int, done: int) -> None:
        self.shown, self.live, self.last = shown, None, ""
        if shown and sys.stdout.isatty():
            from rich.console import Group
            from rich.live import Live
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
            from rich.text import Text

            self.text, self.group = Text, Group
            self.bar = Progress(TextColumn("training"), BarColumn(bar_width=None), MofNCompleteColumn(), TimeRemainingColumn())
            self.task = self.bar.add_task("training", total=total, completed=done)
            self.live = Live(Group(self.bar, Text("")), auto_refresh=False)
            self.live.start()
            self.drawn = 0.0

    def line(self, text: str) -> None:
        if self.live is None:
            self.say(text)
            return
        self._scroll()
        self.last = text

    def _scroll(self) -> None:
        """Release the line below the bar: it becomes one of those above."""
        if self.last:
            self.live.console.print(self.text(self.last), soft_wrap=True)
            self.last = ""

    def say(self, text: str) -> None:
        if not self.shown:
            return
        if self.live is None:
            print(text, flush=True)
        else:
            self._scroll()
            self.live.console.print(self.text(text), soft_wrap=True)

    def advance(self, step: int) -> None:
        if self.live is not None and time.perf_counter() - self.drawn > 0.1:
            self.bar.update(self.task, completed=step)
            self.live.update(self.group(self.bar, self.text(self.last)), refresh=True)
            self.drawn = time.perf_counter()

    def close(self) -> None:
        if self.live is not None:
            self.live.update(self.text(self.last), refresh=True)
            self.live.stop()
            self.live = None


def _make_monitor(args: argparse.Namespace, resume_step: int | None, kl_target: float | None) -> Any:
    from rldk.monitor import Monitor

    forensics = {} if kl_target is None else {"kl_target": kl_target}
    stop_on = None if args.stop_on == "none" else args.stop_on
    settings = {"arguments": f"trainer/train_{args.stage}.py", **vars(args)}
    return Monitor(args.save_dir, args.run_id, forensics=forensics, run_config=settings, stop_on=stop_on, resume_step=resume_step)
