"""The clock of a run: which update it is at, when the outcome is measured, and when the fault acts."""

from __future__ import annotations

from corpus.outcome import OutcomeProbe
from corpus.plan import Live

__all__ = ["Clock"]

PROBES = 15
"""Measurements of the outcome over a run, beside those of the first two updates."""


class Clock:
    """Called by whatever trains, before the first update and after each."""

    def __init__(self, live: Live, probe: OutcomeProbe) -> None:
        self.live, self.probe = live, probe
        self.every = max(1, round(live.plan.setting.updates / PROBES))

    def begin(self) -> None:
        self._turn(1)

    def done(self, update: int) -> None:
        live, plan = self.live, self.live.plan
        if update <= 2 or update % self.every == 0 or update == plan.setting.updates:
            self.probe.measure(live.policy, update, plan.blocked)
        if update == max(2, round(0.1 * plan.setting.updates)):
            live.early_weights = {key: value.clone() for key, value in live.policy.state_dict().items()}
        self._turn(update + 1)

    def _turn(self, update: int) -> None:
        """Between two updates: what the fault does before the next one."""
        self.live.plan.update = update
        for act in self.live.plan.every_update:
            act(self.live)
