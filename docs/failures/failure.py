"""What an entry of the gallery says, and the run that shows it."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import rldk
from rldk.core.event import Event
from rldk.detectors.table import BY_TYPE
from rldk.judge.results import Results
from rldk.testing.sick import sick
from rldk.testing.streams import FAULTS, faulty

__all__ = ["Failure", "judged"]

STEPS, ONSET, SEED = 300, 120, 1
RECORDED = Path(__file__).parents[2] / "benchmarks/corpus/recorded"


@dataclass(frozen=True, slots=True)
class Failure:
    """What is seen of a failure, the plots that show it, how its neighbours differ, and what looks like it but is normal.

    The run is a recording of the corpus if `recorded` names one, else the simulated `fault` (by default that of the detector's
    name), else the sick stream by which the detector is tested.
    """

    detector: str
    title: str
    seen: str
    panels: tuple[str, ...]
    neighbours: dict[str, str]
    normal: tuple[str, ...] = ()
    fault: str = ""
    onset: int = ONSET
    steps: int = STEPS
    recorded: str = ""

    def judged(self) -> Results:
        """The run with this failure, as `rldk scan` judges it."""
        if self.recorded:
            return rldk.scan(next((RECORDED / self.recorded).glob("events.jsonl*")))
        name = self.fault or self.detector
        if name in FAULTS:
            return judged(faulty(name, steps=self.steps, onset=self.onset, seed=SEED))
        return judged(sick(BY_TYPE[self.detector]))

    @property
    def origin(self) -> str:
        """Where the curves come from, in words."""
        return "a real training" if self.recorded else "a simulated run"

    def picture(self, panel: str) -> str:
        return f"{self.detector}-{panel}.svg"


def judged(events: list[Event]) -> Results:
    """A run as `rldk scan` judges its log."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "gallery_events.jsonl"
        log.write_bytes(b"".join(event.to_json() + b"\n" for event in events))
        return rldk.scan(log)
