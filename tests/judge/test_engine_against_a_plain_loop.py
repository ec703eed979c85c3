"""The engine takes shortcuts for speed; a loop that takes none must say the same, to the last digit."""

from __future__ import annotations

import json
import random
import statistics
from collections import deque
from collections.abc import Sequence
from math import isfinite, nan

import pytest

from rldk.core.anomaly import Anomaly, Note
from rldk.core.event import Event
from rldk.detectors.base import View
from rldk.detectors.table import DETECTORS
from rldk.judge.engine import Engine
from rldk.judge.incidents.advice import LOGGED, logged_knobs
from rldk.judge.incidents.onset import Recent
from rldk.signals.reward import CHANNELS, COMPONENT, SCORES, RewardSignal
from rldk.signals.series import ALIKE, EARLY, RECENT, Series, SeriesByName
from rldk.signals.view import steps_per_row
from rldk.testing.streams import FAULTS, PROFILES, faulty, healthy


class PlainSeries(Series):
    """A series as its documentation says it: every median taken anew, every extreme compared each time."""

    def update(self, value: float, index: int) -> None:
        self.index, self.last = index, value
        if not isfinite(value):
            self.nonfinite += 1
            self.nonfinite_run += 1
            return
        self.n += 1
        self.ready = self.n >= RECENT
        self.nonfinite_run = 0
        alike = self.n > 1 and abs(value - self.previous) <= ALIKE * abs(value)
        self.same = self.same + 1 if alike else 1
        self.repeats += alike
        self._ring.append(value)
        self.level = statistics.median_high(self._ring)
        if self.n <= EARLY:
            self._early.append(value)
            if self.n >= RECENT:
                self._settle(self.n)
        if self.n == 1:
            self.first = self.slow = value
        else:
            step = abs(value - self.previous)
            self.roughness = step if self.n == 2 else self.roughness + 0.1 * (step - self.roughness)
            self.slow += 0.05 * (value - self.slow)
        self.previous = value
        if self.n >= RECENT and self.level > self.high:
            self.high, self.high_index = self.level, index
        if self.n >= RECENT and self.level < self.low:
            self.low = self.level


def plain_loop(events: Sequence[Event]) -> tuple[list[Anomaly], list[Note]]:
    """Every event through every detector that it concerns, with a new view each time."""
    detectors, series, reductions = [kind() for kind in DETECTORS], SeriesByName(), {}
    watched = {name for detector in detectors for name in detector.all_metrics()}.union(LOGGED, SCORES, CHANNELS)
    steps: deque[int] = deque(maxlen=4)
    recent = Recent(detectors)
    reward = RewardSignal()
    anomalies: list[Anomaly] = []
    notes: list[Note] = []
    standing: dict[str, list[Anomaly]] = {}
    over: dict[str, list[Anomaly]] = {}
    for index, event in enumerate(events):
        recent.take(index, event.step, event.metrics)
        for name, value in event.metrics.items():
            if name in watched or name.startswith(COMPONENT):
                series.setdefault(name, PlainSeries()).update(value, index)
        reductions.update(event.model_info.get("reductions", {}))
        apart = (event.step - events[0].step) / index if index >= 4 else 1.0
        view = View(event, index, event.step, series, steps[0] if len(steps) == 4 else None, dict(reductions), {})
        view.steps_per_row = steps_per_row(apart, event.step, steps)
        view.reward = reward
        view.components = [name for name in series if name.startswith(COMPONENT)]
        reward.update(view)
        for detector in detectors:
            if detector.metrics() and not any(name in event.metrics for name in detector.metrics()):
                continue
            was = detector.raised
            anomaly = detector.update(view)
            if isinstance(anomaly, Note):
                notes.append(anomaly)
            elif anomaly is not None:
                anomaly.last_good_step = recent.last_good_step(anomaly)
                anomaly.knobs = logged_knobs(series)
                anomalies.append(anomaly)
                standing.setdefault(detector.key, []).append(anomaly)
            elif detector.raised not in ("", was):  # it counts as what was raised before, which stands again
                before = over.pop(detector.key, [])
                again = [one for one in before if one.severity == detector.raised] or before
                over[detector.key] = [one for one in before if not any(one is other for other in again)]
                for one in again:
                    one.cleared_index = None
                    standing.setdefault(detector.key, []).append(one)
            if was and not detector.raised:
                gone = standing.pop(detector.key, [])
                for old in gone:
                    old.cleared_index = index
                    if detector.passing:
                        anomalies = [one for one in anomalies if one is not old]
                if not detector.passing:
                    over[detector.key] = gone
        steps.append(event.step)
    return anomalies, notes


def engine(events: Sequence[Event]) -> tuple[list[Anomaly], list[Note]]:
    judge = Engine()
    for event in events:
        judge.observe(event)
    return judge.anomalies, judge.notes


def text(said: tuple[list[Anomaly], list[Note]]) -> str:
    return json.dumps([[one.to_dict() for one in kind] for kind in said], indent=1)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("seed", [0, 1])
def test_on_healthy_runs(profile, seed):
    events = healthy(profile, steps=300, seed=seed)
    assert text(engine(events)) == text(plain_loop(events))


@pytest.mark.parametrize(("number", "fault"), list(enumerate(FAULTS)))
def test_on_faulty_runs(number, fault):
    profiles = FAULTS[fault].profiles
    events = faulty(fault, profiles[number % len(profiles)], steps=300, onset=120, seed=5)
    assert text(engine(events)) == text(plain_loop(events))


@pytest.mark.parametrize("seed", range(6))
def test_on_wild_values_with_gaps(seed):
    chance = random.Random(seed)
    names = sorted({name for kind in DETECTORS for name in kind.all_metrics()})
    pool = [0.0, 1.0, -1.0, 0.5, 3.0, 42.0, 1e-9, 1e6, 1e308, -1e308, nan, float("inf")]
    events = []
    for row in range(300):
        kept = [name for name in names if chance.random() < 0.7]
        scale = 1.0 if row < 100 else chance.choice([1.0, 1e-4, 300.0])
        metrics = {
            name: chance.choice(pool) if chance.random() < 0.05 * seed else chance.gauss(1.0, 0.3) * scale for name in kept
        }
        events.append(Event(row, metrics))
    assert text(engine(events)) == text(plain_loop(events))
