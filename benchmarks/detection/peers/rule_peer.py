"""The simple rules as peers: nothing to install, nothing to start."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from rldk.core.event import Event

from .alarm import Alarm
from .cusum import BASELINE, DECISION, SLACK, cusum
from .metric_names import kl_is_by_sequence
from .simple_rules import LIMIT, MAIN, PREFERENCE, WINDOW, fixed_thresholds, rolling_z

__all__ = ["FixedLimits", "RulePeer", "cusum_peer", "z_score_peer"]

FIRST = 25


class RulePeer:
    """A rule that looks at each of the main metrics by itself."""

    def __init__(self, name: str, version: str, rule: Callable[[Sequence[Event], Sequence[str]], list[Alarm]]) -> None:
        self.name, self.version, self._rule = name, version, rule

    def ask(self, events: Sequence[Event], framework: str, reductions: Mapping[str, str] | None = None) -> list[Alarm]:
        return self._rule(events, PREFERENCE if framework == "trl-dpo" else MAIN)

    def close(self) -> None:
        pass


def z_score_peer() -> RulePeer:
    """The rolling z-score, from the 26th row on: with its whole window it would see nothing of a run of 50 rows."""
    return RulePeer("z-score", f"window {FIRST} to {WINDOW}, |z| > {LIMIT:g}", partial(rolling_z, first=FIRST))


def cusum_peer() -> RulePeer:
    """The two-sided CUSUM with the textbook's limits."""
    return RulePeer("cusum", f"k = {SLACK:g}, h = {DECISION:g}, baseline of {BASELINE} rows", cusum)


class FixedLimits:
    """The limits that tutorials and issue threads hand down; that on KL depends on its unit."""

    name, version = "fixed", "limits of folklore"

    def ask(self, events: Sequence[Event], framework: str, reductions: Mapping[str, str] | None = None) -> list[Alarm]:
        return fixed_thresholds(events, kl_is_by_sequence(events, framework, reductions))

    def close(self) -> None:
        pass
