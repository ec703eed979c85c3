"""What the callbacks of one trainer share: one set of probes, one event per step, and one monitor for each run's files."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rldk.functional.gradients import describe_flow
from rldk.integrations import processes
from rldk.integrations.trl.build_monitors import build_monitors
from rldk.integrations.trl.events import EventMaker
from rldk.integrations.trl.options import merged
from rldk.integrations.trl.probes.ending import EndingProbe
from rldk.integrations.trl.probes.memory import memory_use, savings
from rldk.integrations.trl.probes.optimizer import GradientProbe, WeightProbe
from rldk.integrations.trl.probes.settings import describe_run, describe_settings, end_tokens, is_ppo
from rldk.integrations.trl.probes.stack import ModelParts, find_trainer
from rldk.integrations.trl.score_alerts import ScoreAlerts
from rldk.monitor import Guard, Monitor, Stop, TrainingStopped
from rldk.monitor.resources import ResourceSampler

__all__ = ["Session"]

_log = logging.getLogger("rldk")
_ATTRIBUTE = "_rldk_session"
_FLOW_EVERY = 10  # steps between two looks at the gradient flow, if it is unknown when checkpoints are saved
_ADVICE = (
    "Look at the reward and the loss of this batch, skip such steps (`skip_nonfinite_steps=True`), and lower the learning rate."
)
_UNHELD = "The KL coefficient is 0: nothing keeps the policy near its reference"
_UNSEEN = ", and the trainer does not compute the KL, so that a drift would not be seen"


class Session:
    """One training, watched by any number of callbacks.

    It is attached to the trainer's state, which all callbacks of a trainer receive. Each `on_log` adds the logs of its callback,
    and after the last one the event is made: in all processes of a distributed run, since statistics are gathered. The main
    process then passes it to the monitors.
    """

    def __init__(self, state: Any, args: Any) -> None:
        self.args = args
        self.main = bool(state.is_world_process_zero)
        self.is_ppo = is_ppo(args)
        self.resume_step = int(state.global_step) or None
        self.guard = Guard(level=logging.WARNING)
        self.members: list[Any] = []
        self.monitors: list[Monitor] = []
        self.stop: Stop | None = None
        self.closed = self.ending = False
        self.gradients: GradientProbe | None = None
        self.weights: WeightProbe | None = None
        self.endings: EndingProbe | None = None
        self.resources: ResourceSampler | None = None
        self.maker: EventMaker | None = None
        self.trainer: Any = lambda: None
        self.optimizer: Any = None
        self._monitor_of: dict[int, Monitor] = {}
        self._score_alerts: dict[Monitor, ScoreAlerts] = {}
        self._logs: dict[str, Any] = {}
        self._called: list[Any] = []
        self._step = 0

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        """A copy of a trainer's state has no session: threads and open files cannot be copied."""
        return type(None), ()

    @classmethod
    def of(cls, state: Any, args: Any) -> Session:
        """The session of a trainer; a new one if there is none, or if its training is over."""
        found = getattr(state, _ATTRIBUTE, None)
        if not isinstance(found, Session) or found.closed:
            found = cls(state, args)
            setattr(state, _ATTRIBUTE, found)
        return found

    @staticmethod
    def end_interrupted(state: Any) -> None:
        """Close the session of a training that an exception ended: `train()` was called again on the same trainer."""
        found = getattr(state, _ATTRIBUTE, None)
        if isinstance(found, Session) and found.maker is not None and not found.closed:
            found.guard.attempt("closing", found.close)

    def join(self, member: Any, given: Mapping[str, Any], kind: type) -> None:
        """Add a callback; when the last of the trainer's callbacks of this kind has joined, monitoring begins."""
        self.members.append(member)
        self.guard.strict |= member.options.strict
        if self.optimizer is None:
            self.optimizer, self._model = given.get("optimizer"), given.get("model")
            trainer = self.guard.call("the look for the trainer", find_trainer, member)
            self.trainer = weakref.ref(trainer) if trainer is not None else self.trainer
        handler = getattr(self.trainer(), "callback_handler", None)
        if handler is not None and sum(isinstance(one, kind) for one in handler.callbacks) == len(self.members):
            self.begin()
            self.updated()  # the first update is compared with these weights

    def begin(self) -> None:
        """Build the monitors and set the probes."""
        if self.maker is not None:
            return
        self.options = merged(member.options for member in self.members)
        trainer, guard = self.trainer(), self.guard
        tokenizer = getattr(trainer, "processing_class", None)
        facts, words = guard.call("the probe of settings", describe_run, trainer, self.args, self._model, tokenizer) or ({}, {})
        self.maker = EventMaker(self, facts, words)
        settings = guard.call("the probe of settings", describe_settings, trainer, self.args, self._model) or {}
        pairs = build_monitors(self.members, self.args, self.resume_step, self.main, settings, self._checkpoint_facts)
        self._monitor_of = {id(member): monitor for member, monitor in pairs}
        self.monitors = list(dict.fromkeys(self._monitor_of.values()))
        for monitor in self.monitors:
            own = merged(member.options for member, other in pairs if other is monitor)
            if "scores" in own.files:
                self._score_alerts[monitor] = ScoreAlerts(own.min_scores, own.max_risks)
        found = type(trainer).__name__ if trainer is not None else "no trainer found, so probes that need one are off"
        _log.debug("rldk attached to %s; monitors: %s", found, [f"{one.run_id} in {one.output_dir}" for one in self.monitors])
        guard.call("the probe of gradients", self._watch_gradients)
        self.weights = guard.call("the probe of weights", WeightProbe, self._model, self.optimizer) if self.main else None
        if self.main and "max_response_length" in facts:
            self.endings = guard.call("the probe of endings", self._watch_endings, tokenizer, int(facts["max_response_length"]))
        if self.options.resources and self.main:
            self.resources = ResourceSampler(path=getattr(self.args, "output_dir", None))
            guard.call("the probe of resources", self.resources.start)
        if facts.get("kl_coef") == 0.0:
            self.maker.notes.append(f"{_UNHELD}{'' if self.is_ppo else _UNSEEN}.")
        self._model = None

    def _watch_gradients(self) -> None:
        skip = self.options.skip_nonfinite
        due = self._flow_due if self.options.gradient_flow else None
        self.gradients = GradientProbe(self._model, self.is_ppo, skip, self._on_nonfinite, self.guard, due)
        self.gradients.attach(self.optimizer)

    def _watch_endings(self, tokenizer: Any, limit: int) -> EndingProbe:
        policy = ModelParts.of(self._model).policy
        return EndingProbe(policy, end_tokens(policy, tokenizer), limit, self.guard)

    def _flow_due(self) -> bool:
        """Whether a checkpoint is saved after the current step, as far as this is known in advance."""
        state = self.trainer().state
        step, every = int(state.global_step) + 1, getattr(self.args, "save_steps", 0)
        return step % int(every if every >= 1 else _FLOW_EVERY) == 0 or step == state.max_steps

    def _checkpoint_facts(self) -> dict[str, Any]:
        """What a checkpoint's row says besides its weights: gradient flow and memory, if they are wanted."""
        if not self.options.gradient_flow:
            return {}
        trainer = self.trainer()
        model = getattr(trainer, "model", None)
        flow = describe_flow(self.gradients.layer_norms if self.gradients is not None else {})
        if model is None:
            return flow
        use = memory_use(trainer, model, self.optimizer)
        advice = savings(use, trainer, self.args, model)
        return {
            **flow,
            "training_memory_gb": sum(use.values()),
            "memory_advice": advice[0] if advice else "",
            "memory_gb": use,
            "suggestions": advice,
        }

    def updated(self) -> None:
        """The trainer has made an update."""
        if self.weights is not None:
            self.guard.call("the probe of weights", self.weights.measure)

    def _on_nonfinite(self, what: str) -> None:
        """Gradients are not finite, and the optimizer is about to use them: alert now."""
        assert self.maker is not None
        step, message = self.maker.last_step + 1, f"Before the optimizer step, {what}."
        self.maker.notes.append(message)
        for monitor in self.monitors:
            monitor.alert(step, "nonfinite_gradient", message, "critical", _ADVICE)

    def monitor_of(self, member: Any) -> Monitor | None:
        """The monitor that writes a callback's files."""
        return self._monitor_of.get(id(member))

    def logged(self, member: Any, state: Any, logs: Mapping[str, Any]) -> None:
        """A callback's `on_log`: collect its logs, and make the event with the last callback's."""
        self.begin()
        if any(one is member for one in self._called):
            self.flush()  # a callback that did not call `super().on_log` is not waited for
        self._called.append(member)
        self._logs.update(logs)
        self._step = int(state.global_step)
        if len(self._called) >= len(self.members):
            self.flush()

    def flush(self) -> None:
        """Make the event of what was logged, hand it on, and decide whether to stop."""
        if not self._called or self.maker is None:
            return
        logs, self._logs = self._logs, {}
        self.members = [one for one in self.members if any(one is called for called in self._called)]
        self._called = []
        event = self.maker.make(self._step, logs)
        if event is None:
            return
        raised = {}
        for monitor in self.monitors:
            monitor.sources.update(self.maker.sources)
            raised[monitor] = monitor.observe(event, canonical=True)
            if event.phase == "train" and self.main and monitor in self._score_alerts:
                self.guard.call("the alerts of scores", self._score_alerts[monitor].look, monitor, event.step)
        for member in self.members:
            monitor = self._monitor_of[id(member)]
            self.guard.call(f"{type(member).__name__}.on_event", member.on_event, event, raised[monitor], monitor)
        if self.options.stop_on is not None and not self.options.dry_run:
            self.stop = processes.from_main(next((one.stop for one in self.monitors if one.stop is not None), None))

    def saved(self, member: Any, step: int) -> None:
        """A checkpoint was written; counted once, with the last callback's call."""
        if self.members and member is self.members[-1]:
            for monitor in self.monitors:
                monitor.saved(step)

    def close(self) -> None:
        """Remove the probes, and complete the files."""
        if self.closed:
            return
        self.closed = True
        self.optimizer = self.weights = None
        ends: list[tuple[str, Callable[[], None]]] = [("closing", monitor.close) for monitor in self.monitors]
        if self.resources is not None:
            ends.insert(0, ("the probe of resources", self.resources.stop))
        if self.gradients is not None:
            ends.insert(0, ("the probe of gradients", self.gradients.detach))
        if self.endings is not None:
            ends.insert(0, ("the probe of endings", self.endings.detach))
        self.guard.each(ends)

    def raise_stop(self, step: int) -> None:
        """Stop a trainer that cannot be stopped otherwise: write everything, then raise `TrainingStopped`."""
        if self.stop is not None:
            folder = Path(self.args.output_dir) / f"checkpoint-{step}"
            self.close()
            raise TrainingStopped(self.stop, str(folder) if folder.is_dir() else None)
