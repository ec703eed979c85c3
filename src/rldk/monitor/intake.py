"""What a training hands over becomes an event of its run: usable, with canonical names, its time, run id and configuration."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping
from functools import cache
from typing import Any

from rldk.core.event import Event
from rldk.core.run_config import RunConfig
from rldk.monitor.sanitize import Sanitizer
from rldk.runs.canonical import Canonicaliser

__all__ = ["Intake"]


class Intake:
    """Turns what is given into events of one run.

    Args:
        run_id: the id that every event gets.
        framework: whose keys the metrics have; where it is `rldk`, rows with keys of another framework are recognised.
        run_config: what the run was started with, which the first event holds; under `rldk` the settings of the judge.
    """

    def __init__(self, run_id: str, framework: str | None, run_config: Mapping[str, Any]) -> None:
        self.run_id = run_id
        self._config = dict(run_config)
        self._canonicaliser = Canonicaliser(framework, recognises=framework == "rldk")
        self._sanitizer = Sanitizer()

    def state_dict(self) -> dict[str, Any]:
        """What the values of keys have decided so far."""
        return self._canonicaliser.state_dict()

    def load_state_dict(self, state: Mapping[str, Any] | None) -> None:
        """Go on with what was decided before; `None` where an older state does not say."""
        self._canonicaliser.load_state_dict(state)

    def event(self, given: Event | Mapping[str, Any], canonical: bool) -> Event | None:
        """The event of a step, a new object; `None` for a summary of the run. With `canonical`, names are kept as they are."""
        read: Event | None
        if isinstance(given, Event):
            read = self._sanitizer.event(given)
            read = self._canonicaliser.to_fractions(read) if canonical else self._canonicaliser.event(read)
        else:
            read = self._of_mapping(given)
        return None if read is None else self.complete(read)

    def _of_mapping(self, given: Mapping[str, Any]) -> Event | None:
        """The event of a row; one with a mapping of metrics is an event that was written before."""
        notes: list[str] = []
        if isinstance(given, Mapping) and not isinstance(given.get("metrics"), Mapping):
            given, notes = self._sanitizer.row(given)
        read = self._canonicaliser.event(given)
        if read is None:
            return None
        event = self._sanitizer.event(read)
        event.notes += notes
        return event

    def step(self, given: object) -> int:
        """A step as it was given, or that of the last event where it is not a whole number."""
        return self._sanitizer.step(given)

    def complete(self, event: Event) -> Event:
        """A new event with its time and this run's id; the given one is not changed."""
        info = {"phase": "train", **event.model_info, "run_id": self.run_id}
        if (sha := _git_sha()) is not None:
            info.setdefault("git_sha", sha)
        if self._config and (config := self._first_config(info)):
            info["config"] = config
        when = time.time() if event.wall_time is None else event.wall_time
        return Event(event.step, event.metrics, when, event.rng, event.data_slice, info, event.notes, event.nulls, event.extra)

    def _first_config(self, info: Mapping[str, Any]) -> dict[str, Any]:
        """What the run was started with, for its first event; the limits with what their metrics are reduced over."""
        given, self._config = self._config, {}
        if isinstance(own := info.get("config", {}), Mapping):
            given |= own
        if given["rldk"] and "reductions" in info:
            given["rldk"] = {**given["rldk"], "per": dict(info["reductions"])}
        return RunConfig.of(given).to_dict()


@cache
def _git_sha() -> str | None:
    """The commit of the repository that the program runs in; `None` outside of one."""
    try:
        found = subprocess.run(
            ["git", "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, timeout=2, check=False
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip() or None if found.returncode == 0 else None
