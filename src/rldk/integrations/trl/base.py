"""What all callbacks share: they join the session of their trainer and pass its calls on."""

from __future__ import annotations

import functools
import logging
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from transformers import TrainerCallback

from rldk.core.anomaly import Anomaly
from rldk.core.event import Event
from rldk.integrations import processes
from rldk.integrations.trl.options import CallbackOptions
from rldk.integrations.trl.session import Session
from rldk.monitor import Guard, Monitor, Stop

__all__ = ["KEPT", "WatchingCallback"]

KEPT = 1000
"""The number of steps in `metrics_history`."""


def _guarded(entry: Callable[..., None]) -> Callable[..., None]:
    """An entry point of a callback: no error leaves it, except for a stop that was asked for."""

    @functools.wraps(entry)
    def called(self: WatchingCallback, *args: Any, **kwargs: Any) -> None:
        self._guard.hook(f"{type(self).__name__}.{entry.__name__}", entry)(self, *args, **kwargs)

    return called


class WatchingCallback(TrainerCallback):  # type: ignore[misc, unused-ignore]
    """Base of rldk's callbacks for TRL and other Hugging Face trainers.

    A subclass may add metrics of its own to `logs` before it calls `super().on_log(...)`, and may override `on_event` to look
    at each event after it was judged. Nothing here raises, except `TrainingStopped` where a stop was asked for.
    """

    def __init__(self, options: CallbackOptions) -> None:
        super().__init__()
        self.options = options
        self._guard = Guard(options.strict, logging.WARNING)
        self._session: Session | None = None
        self.metrics_history: deque[Any] = deque(maxlen=KEPT)

    @property
    def current_metrics(self) -> Any:
        """The metrics of the last step, the last of `metrics_history`; `None` before the first."""
        return self.metrics_history[-1] if self.metrics_history else None

    @property
    def monitor(self) -> Monitor | None:
        """The monitor that writes this callback's files; `None` before training begins."""
        return None if self._session is None else self._session.monitor_of(self)

    @property
    def run_id(self) -> str | None:
        """The run id in the names of its files; `None` before training begins if none was given."""
        return self.options.run_id or (self.monitor.run_id if self.monitor is not None else None)

    @property
    def stop(self) -> Stop | None:
        """The decision to stop, once it is taken."""
        return None if self._session is None else self._session.stop

    @property
    def anomalies(self) -> list[Anomaly]:
        """All anomalies of the run so far."""
        return [] if self.monitor is None else self.monitor.anomalies

    def on_event(self, event: Event, raised: list[Anomaly], monitor: Monitor) -> None:
        """Called after each event, in every process; only the monitor of the main one has judged it. Keeps the metrics."""
        if event.phase == "train":
            self.metrics_history.append(dict(event.metrics))

    @_guarded
    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        Session.end_interrupted(state)
        self._join(args, state, kwargs)

    def _join(self, args: Any, state: Any, given: Mapping[str, Any]) -> Session:
        session = Session.of(state, args)
        if session is not self._session:
            self._session = session
            session.guard.attempt("attaching to the trainer", session.join, self, given, WatchingCallback)
        return session

    @_guarded
    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        session = self._join(args, state, kwargs)
        session.guard.attempt("the log", session.logged, self, state, logs or {})
        if session.stop is not None:
            control.should_save = processes.world_size() == 1 or not session.is_ppo  # TRL's PPO cannot save there
            control.should_training_stop = True

    @_guarded
    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        session = self._session
        if session is not None and session.maker is not None and self._is_last(session):
            session.maker.step_began()

    @_guarded
    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        session = self._session
        if session is not None and session.maker is not None and self._is_last(session) and not session.is_ppo:
            session.maker.step_ended()
            session.updated()
        if session is not None and session.is_ppo:
            session.guard.attempt("the log", session.flush)
            if session.stop is not None and not control.should_save and self._is_last(session):
                session.raise_stop(int(state.global_step))

    @_guarded
    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        session = self._session
        if session is not None:
            session.guard.attempt("the checkpoint", session.saved, self, int(state.global_step))
            if session.is_ppo and self._is_last(session):
                session.raise_stop(int(state.global_step))
                if session.ending:
                    session.guard.attempt("closing", session.close)

    @_guarded
    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        session = self._session
        if session is not None and self._is_last(session):
            session.guard.attempt("the log", session.flush)
            session.ending = session.is_ppo and control.should_save  # PPO then saves once more
            if not session.ending:
                session.guard.attempt("closing", session.close)

    def _is_last(self, session: Session) -> bool:
        return not session.members or session.members[-1] is self
