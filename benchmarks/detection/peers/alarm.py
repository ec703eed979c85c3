"""What a peer answers, and what a peer is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from rldk.core.event import Event

__all__ = ["Alarm", "Peer"]

Alarm = tuple[int, str, str]
"""The row at which it was raised, its severity (`warning` or `critical`), and what it is about."""


class Peer(Protocol):
    """A monitor that judges one run after another."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    def ask(self, events: Sequence[Event], framework: str, reductions: Mapping[str, str] | None = None) -> list[Alarm]:
        """The alarms of one run, in the order of its rows.

        `framework` is `trl-ppo`, `trl-grpo`, `trl-rloo`, `trl-dpo` or `rldk-trainer`. `reductions` says over what a metric was
        reduced, as in `{"kl_mean": "sequence"}`; without it, the events and then the framework say.
        """
        ...

    def close(self) -> None: ...
