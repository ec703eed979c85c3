"""What all parts of the page know: the reader, the run that is shown, and how the user wants it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rldk.dashboard.client import Client, RemoteRun

__all__ = ["Look"]


@dataclass(slots=True)
class Look:
    """One look at a run.

    `state` is how it stands (see `Library.state`); `others` are the runs it is compared with.
    """

    client: Client
    key: str
    run: str | None
    state: dict[str, Any]
    others: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    span: tuple[float, float] | None = None
    smoothing: float = 0.0
    dark: bool = False
    axis: str = "step"

    @property
    def label(self) -> str:
        """What the run is called."""
        return str(self.state.get("run_id") or self.key)

    @property
    def words_of_axis(self) -> str:
        """What a range of the axis is called."""
        return "Hours" if self.axis == "hours" else "Steps"

    def runs(self) -> list[RemoteRun]:
        """The runs as the panels see them, this one first; those of one name are told apart by their files."""
        found = [(self.key, self.state.get("key_of_run"), self.state, self.label)]
        found += [(key, state.get("key_of_run"), state, str(state.get("run_id") or key)) for key, state in self.others]
        labels = [label for _, _, _, label in found]
        return [
            RemoteRun(self.client, key, run, state.get("drawn", ()), label if labels.count(label) == 1 else key, self.axis)
            for key, run, state, label in found
        ]

    @property
    def revision(self) -> str:
        """What a zoom belongs to: while this stays the same, the browser keeps what the user zoomed to."""
        low, high = self.span or (None, None)
        return f"{self.key}|{self.run}|{self.axis}|{low}|{high}"
