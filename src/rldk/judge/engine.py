"""The judge: one event after another through all detectors, the same live and from a file."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rldk.core.anomaly import Anomaly, Note
from rldk.core.event import Event
from rldk.core.run_config import RunConfig
from rldk.detectors.base import Detector, Finding, View
from rldk.detectors.table import DETECTORS
from rldk.judge.alerts import ALERTS, PASSING, Alert, alerts_in
from rldk.judge.incidents.advice import LOGGED, logged_knobs
from rldk.judge.incidents.onset import Recent
from rldk.runs.canonical import prefix_held_out
from rldk.signals.reward import CHANNELS, COMPONENT, SCORES
from rldk.signals.series import Series, SeriesByName, update_all
from rldk.signals.view import steps_per_row

__all__ = ["Engine", "OnError"]

_MOST_PLANS = 1024
_BACK = 4
_MOST_FAULTS, _FAULTS_APART = 3, 100  # errors after which a detector is dropped, and events after which one no longer counts

OnError = Callable[[Detector, BaseException], None]
_Find = Callable[[View], Sequence[Finding]]
_Plan = tuple[list[tuple[str, Series]], list[tuple[_Find, Detector]]]


class Engine:
    """Runs the detectors over a stream of events; constant time per step and bounded memory.

    Args:
        detectors: those to run; by default one of each in the table.
        context: what is known of the run beforehand, such as `{"kl_target": 6.0}`; `settings` are taken from the first event
            that holds them.
        reductions: by what the KL is reduced, where the log says it (`{"kl_mean": "sequence"}`).
        follow: metrics whose series are kept even if no detector reads them.
    """

    def __init__(
        self,
        detectors: Iterable[Detector] | None = None,
        *,
        context: Mapping[str, Any] | None = None,
        reductions: Mapping[str, str] | None = None,
        follow: Iterable[str] = (),
    ) -> None:
        self.detectors = [kind() for kind in DETECTORS] if detectors is None else list(detectors)
        self.context = dict(context or {})
        self.reductions = dict(reductions or {})
        self.anomalies: list[Anomaly] = []
        self.notes: list[Note] = []
        self.cleared_steps: dict[int, int] = {}  # the step of each event at which something cleared
        self.events = 0
        self.first_step: int | None = None
        self.last_step: int | None = None
        self._last_index = 0
        self._faults: dict[str, tuple[int, int]] = {}  # how often each detector has raised, and the last such event
        self._steps: deque[int] = deque(maxlen=_BACK)
        self._recent = Recent(self.detectors)
        self._open: dict[str, list[Anomaly]] = {}
        self._over: dict[str, list[Anomaly]] = {}  # what each detector raised last and has cleared since
        self._passing: dict[str, int] = {}  # the event before which each standing alert came last
        read = (name for detector in self.detectors for name in detector.all_metrics())
        watched = frozenset((*read, *LOGGED, *follow))
        self._watched = watched if watched.isdisjoint(SCORES) else watched.union(SCORES, CHANNELS)
        self._keep_in(SeriesByName())

    def _keep_in(self, series: SeriesByName) -> None:
        """Keep the series in this table from now on."""
        self.series = series
        self._plans: dict[tuple[str, ...], _Plan] = {}
        self._plans_of_watched: dict[tuple[str, ...], _Plan] = {}
        self.view = View(Event(0), 0, 0, series, None, self.reductions, self.context)
        self.view.components = [name for name in series if name.startswith(COMPONENT)]
        self._follows_reward = not self._watched.isdisjoint(SCORES)
        self._looked_up = SeriesByName({name: series[name] for name in self._watched})  # found without a miss, logged or not
        self.view.get = self._looked_up.__getitem__

    def observe(self, event: Event, on_error: OnError | None = None) -> list[Anomaly]:
        """Take the next event; the anomalies that it raises.

        `on_error` is called when a detector raises, which then misses the event, and is dropped if it keeps failing. Without it
        the error is raised.
        """
        if event.model_info.get("phase", "train") != "train":
            event = prefix_held_out(event)
        metrics = event.metrics
        names = tuple(metrics)
        followed, detectors = self._plans.get(names) or self._plan(names)
        index = self.events
        self._recent.take(index, event.step, metrics)
        update_all(followed, metrics, index)
        if (info := event.model_info.get("reductions")) and isinstance(info, Mapping) and isinstance(info.get("kl_mean"), str):
            self.reductions["kl_mean"] = info["kl_mean"]
        if "config" in event.model_info:
            self.take_settings(event.model_info["config"])
        view = self._view_of(event, index)
        if self._follows_reward:
            view.reward.update(view)
        alerted = self._take_alerts(event) if self._passing or ALERTS in event.model_info else []
        raised: list[Anomaly] = []
        for find, detector in detectors:
            try:
                found = find(view)
                if not found and detector.idle:
                    continue
                was = detector.raised
                said = detector.take(view, found)
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:
                if on_error is None:
                    raise
                self._fault(detector, index)
                on_error(detector, error)
                continue
            if isinstance(said, Note):
                self.notes.append(said)
            elif said is not None:
                raised.append(said)
                self._open.setdefault(detector.key, []).append(said)
            elif detector.raised != was and detector.raised:
                self._reopen(detector.key, detector.raised)
            if was and not detector.raised:
                self._clear(detector.key, event.step, taken_back=detector.passing)
        if raised:
            self._keep(raised)
        self.events = index + 1
        if self.first_step is None:
            self.first_step = event.step
        self.last_step, self._last_index = event.step, index
        self._steps.append(event.step)
        return [*alerted, *raised] if alerted else raised

    def take_settings(self, given: Any) -> None:
        """What the run was started with; what is known already stays."""
        if isinstance(given, Mapping) and given and "settings" not in self.context:
            self.context["settings"] = given if isinstance(given, RunConfig) else RunConfig.of(given)

    def alert(self, found: Alert) -> Anomaly | None:
        """Take what was seen between two events; `None` where the same already stands.

        It is an anomaly of the last event where it has that step, and else of the next.
        """
        if not found.lasting:
            self._passing[found.key] = self.events
        if any(found.severity in (one.severity, "warning") for one in self._open.get(found.key, ())):
            return None
        anomaly = found.anomaly(self._last_index if found.step == self.last_step else self.events)
        anomaly.last_good_step = next((step for step in reversed(self._steps) if step != found.step), None)
        self._open.setdefault(found.key, []).append(anomaly)
        self.anomalies.append(anomaly)
        return anomaly

    def _take_alerts(self, event: Event) -> list[Anomaly]:
        """Raise the alerts that the log holds with this event, and clear those that have not come again."""
        raised = [anomaly for found in alerts_in(event) if (anomaly := self.alert(found)) is not None]
        for key, last in list(self._passing.items()):
            if self.events - last >= PASSING:
                del self._passing[key]
                self._clear(key, event.step)
        return raised

    def _clear(self, key: str, step: int, taken_back: bool = False) -> None:
        """What was raised under this key has cleared at the event of this step.

        A defect that was only passing is withdrawn: a late learner is healthy once it learns.
        """
        gone = self._open.pop(key, [])
        for anomaly in gone:
            anomaly.cleared_index = self.events
            self.cleared_steps[self.events] = step
        self._over[key] = [] if taken_back else gone
        if taken_back:
            self.anomalies = [anomaly for anomaly in self.anomalies if not any(anomaly is one for one in gone)]

    def _reopen(self, key: str, severity: str) -> None:
        """A defect has returned so soon, or so often, that it counts as the one that was cleared: that one stands again."""
        over = self._over.get(key, [])
        same = [anomaly for anomaly in over if anomaly.severity == severity] or over
        for anomaly in same:
            anomaly.cleared_index = None
            self._open.setdefault(key, []).append(anomaly)
        self._over[key] = [anomaly for anomaly in over if anomaly.cleared_index is not None]

    def supplement(self, event: Event, on_error: OnError | None = None) -> list[Anomaly]:
        """Take more of the step that was observed last: it stays one event, as the rows of a step in a log are one."""
        if not self.events or event.step != self.last_step:
            return self.observe(event, on_error)
        events, steps = self.events, list(self._steps)
        self.events -= 1
        self._steps.pop()
        try:
            return self.observe(event, on_error)
        except BaseException:
            self.events, self._steps = events, deque(steps, _BACK)
            raise

    def _fault(self, detector: Detector, index: int) -> None:
        """A detector has raised: it misses this event. One that keeps failing is dropped; what it has raised stays."""
        count, last = self._faults.get(detector.key, (0, index))
        count = count + 1 if index - last <= _FAULTS_APART else 1
        self._faults[detector.key] = count, index
        if count >= _MOST_FAULTS:
            self.detectors = [one for one in self.detectors if one is not detector]
            self._plans, self._plans_of_watched = {}, {}

    def _view_of(self, event: Event, index: int) -> View:
        """The run as it stands after this event: one view for the whole run, moved along."""
        view, steps = self.view, self._steps
        view.event, view.index, view.step = event, index, event.step
        view.earlier_step = steps[0] if len(steps) == _BACK else None
        if index >= _BACK and self.first_step is not None:
            view.steps_per_row = steps_per_row((event.step - self.first_step) / index, event.step, steps)
        return view

    def _keep(self, raised: list[Anomaly]) -> None:
        self.anomalies += raised
        for anomaly in raised:
            anomaly.last_good_step = self._recent.last_good_step(anomaly)
            anomaly.knobs = logged_knobs(self.series)

    def _plan(self, names: tuple[str, ...]) -> _Plan:
        """Which series such an event moves, and which detectors have something new to look at.

        What nobody watches makes no difference: a log may have other keys in each row.
        """
        followed = tuple(name for name in names if name in self._watched or name.startswith(COMPONENT))
        plan = self._plans_of_watched.get(followed) or self._new_plan(followed)
        if len(self._plans) < _MOST_PLANS:
            self._plans[names] = plan
        return plan

    def _new_plan(self, followed: tuple[str, ...]) -> _Plan:
        series, present = self.series, frozenset(followed)
        for name in followed:
            if name not in series:
                series[name] = self._looked_up[name] = Series()
                if name.startswith(COMPONENT):
                    self.view.components.append(name)
        active = [detector for detector in self.detectors if not detector.metrics() or present.intersection(detector.metrics())]
        plan: _Plan = (
            [(name, series[name]) for name in followed],
            [(detector.find, detector) for detector in active],
        )
        if len(self._plans_of_watched) < _MOST_PLANS:
            self._plans_of_watched[followed] = plan
        return plan

    @property
    def standing(self) -> list[Anomaly]:
        """The anomalies that have been raised and not cleared."""
        return [anomaly for found in self._open.values() for anomaly in found] if self._open else []

    def inactive(self) -> list[tuple[str, list[str]]]:
        """The detectors that could not judge this run, and the metrics, or `config`, that they lack."""
        found = []
        present = {name for name, series in self.series.items() if series.n or series.nonfinite}
        for detector in self.detectors:
            lacking = detector.lacks(present)
            if detector.of_settings and "settings" not in self.context:
                lacking.append("config")
            if lacking:
                found.append((detector.type, lacking))
        return found

    def state_dict(self) -> dict[str, Any]:
        """All that the engine knows, as JSON can hold it."""
        return {
            "events": self.events,
            "first_step": self.first_step,
            "last_step": self.last_step,
            "context": {name: known.to_dict() if name == "settings" else known for name, known in self.context.items()},
            "reductions": self.reductions,
            "series": {name: series.state_dict() for name, series in self.series.items()},
            "detectors": {detector.key: detector.state_dict() for detector in self.detectors},
            "steps": list(self._steps),
            "recent": self._recent.state_dict(),
            "cleared_steps": [[index, step] for index, step in self.cleared_steps.items()],
            "passing": dict(self._passing),
            "open": self._places(self._open),
            "over": self._places(self._over),
            "anomalies": [anomaly.to_dict() for anomaly in self.anomalies],
            "notes": [note.to_dict() for note in self.notes],
            "reward": self.view.reward.state_dict(),
        }

    def _places(self, kept: Mapping[str, list[Anomaly]]) -> dict[str, list[int]]:
        """Anomalies by their places in the list of all."""
        return {key: [self.anomalies.index(anomaly) for anomaly in found] for key, found in kept.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where the engine that gave `state` was; the results are the same as without the break."""
        self.events, self.first_step, self.last_step = state["events"], state["first_step"], state["last_step"]
        self._last_index = max(0, self.events - 1)
        self.context, self.reductions = dict(state["context"]), dict(state["reductions"])
        self.take_settings(self.context.pop("settings", None))
        series = SeriesByName()
        for name, saved in state["series"].items():
            series[name] = Series()
            series[name].load_state_dict(saved)
        self._keep_in(series)
        self.view.reward.load_state_dict(state["reward"])
        self.notes = [Note(**saved) for saved in state["notes"]]
        for detector in self.detectors:
            if detector.key in state["detectors"]:
                detector.load_state_dict(state["detectors"][detector.key])
        self.anomalies = [Anomaly.from_dict(saved) for saved in state["anomalies"]]
        self._steps = deque(state["steps"], _BACK)
        self._recent.load_state_dict(state["recent"])
        self.cleared_steps = dict(state.get("cleared_steps", ()))
        self._passing = dict(state.get("passing", {}))
        self._open = {key: [self.anomalies[number] for number in found] for key, found in state["open"].items()}
        self._over = {key: [self.anomalies[number] for number in found] for key, found in state.get("over", {}).items()}
