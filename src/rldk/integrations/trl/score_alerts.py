"""Alerts about scores and risks: those that a user set a limit for, and two that are watched in any case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rldk.core.text import in_words, sentence
from rldk.judge.scores.alarms import FROM_SCORES
from rldk.judge.scores.risks import collapse_risk, hacking_risk

if TYPE_CHECKING:
    from rldk.monitor import Monitor

__all__ = ["DEFAULT_MAX_RISKS", "DEFAULT_MIN_SCORES", "ScoreAlerts"]

DEFAULT_MIN_SCORES = {"training_stability": 0.3}
"""A run with a lower score has a critical anomaly, or several others: none of 120 sound runs stayed below it for long."""
DEFAULT_MAX_RISKS = {"collapse_risk": 0.6}
"""The lowest risk while an anomaly of a collapse is active."""
_PERSIST = 5  # events for which a default limit must be crossed
_ADVICE = {
    "training_stability": "Look at the active anomalies and the parts of the score in the final report; lower the learning rate.",
    "collapse_risk": "Look at samples, the entropy and the reward; go back to the last good checkpoint and raise the KL penalty.",
    "hacking_risk": "Read samples: the reward rises while other measures of the policy leave their range.",
}
_PARTS = "See the parts of the score in the final report."


@dataclass(slots=True)
class ScoreAlerts:
    """Watches the scores and risks of one run; each alert is raised once, and again if it recurs.

    A limit of the user fires at once. Without one, a low stability and a high risk of collapse must last for five events.
    """

    min_scores: Mapping[str, float]
    max_risks: Mapping[str, float]
    _lasted: dict[str, int] = field(default_factory=dict)

    def look(self, monitor: Monitor, step: int) -> None:
        """Compare the scores after an event with their limits."""
        scores = monitor.record().scores
        for name, minimum in {**DEFAULT_MIN_SCORES, **self.min_scores}.items():
            own = name in self.min_scores
            if self._fires(name, scores[name] < minimum, own):
                self._alert(monitor, step, f"low_{name}", name, scores[name], "below", minimum, own)
        for name, maximum in {**DEFAULT_MAX_RISKS, **self.max_risks}.items():
            view, standing = monitor.forensics.engine.view, monitor.forensics.standing
            risk = collapse_risk(view, standing) if name == "collapse_risk" else hacking_risk(view, standing)
            own = name in self.max_risks
            if self._fires(name, risk >= maximum, own):
                kind = "policy_collapse_risk" if name == "collapse_risk" else "reward_hacking_risk"
                self._alert(monitor, step, kind, name, risk, "at or above", maximum, own)

    def _fires(self, name: str, crossed: bool, own: bool) -> bool:
        self._lasted[name] = self._lasted.get(name, 0) + 1 if crossed else 0
        return self._lasted[name] == (1 if own else _PERSIST)

    def _alert(self, monitor: Monitor, step: int, kind: str, name: str, value: float, word: str, limit: float, own: bool) -> None:
        limit_of = "your limit of" if own else "the default limit of"
        said = f"{sentence(in_words(name))} is {value:.2f}, {word} {limit_of} {limit:g}."
        monitor.alert(step, kind, said, "warning", _ADVICE.get(name, _PARTS), family=FROM_SCORES)
