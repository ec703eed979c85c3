"""What a detector reports: one defect, when it was seen, on what evidence, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rldk.core.errors import UsageError

__all__ = ["SEVERITIES", "Anomaly", "Note"]

SEVERITIES = ("warning", "critical")
"""Critical: a competent person would stop the run."""


@dataclass(slots=True)
class Anomaly:
    """One defect of a run.

    `index` is the position of the event in the run at which it was raised, `since` that at which its condition began,
    and `cleared_index` that at which it was gone again (`None`: it is still there). `family` is the family of its detector,
    which the JSON calls `tracker`. `evidence` holds the numbers that support it, `knobs` the learning rate, the KL
    coefficient and similar settings at that moment, with the highest learning rate so far (`lr_highest`) where it was higher.
    `clause` names the condition of its detector that held.
    """

    type: str
    severity: str
    family: str
    step: int
    index: int
    message: str
    value: float
    threshold: float
    advice: str
    since: int
    evidence: dict[str, float] = field(default_factory=dict)
    cleared_index: int | None = None
    last_good_step: int | None = None
    knobs: dict[str, float] = field(default_factory=dict)
    clause: str = ""

    def __post_init__(self) -> None:
        if self.severity not in SEVERITIES:
            raise UsageError(f"Expected `severity` to be one of {list(SEVERITIES)}, got {self.severity!r}.")

    def to_dict(self) -> dict[str, Any]:
        """The anomaly as reports and other tools read it."""
        return {
            "type": self.type,
            "severity": self.severity,
            "tracker": self.family,
            "step": self.step,
            "index": self.index,
            "message": self.message,
            "value": self.value,
            "threshold": self.threshold,
            "advice": self.advice,
            "since": self.since,
            "evidence": dict(self.evidence),
            "cleared_index": self.cleared_index,
            "last_good_step": self.last_good_step,
            "knobs": dict(self.knobs),
            "clause": self.clause,
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Anomaly:
        """The anomaly that `to_dict` wrote."""
        given = dict(saved)
        return cls(family=given.pop("tracker"), **given)


@dataclass(frozen=True, slots=True)
class Note:
    """Something worth knowing that is not a defect: a choice that may be intended, or an odd pattern that is normal."""

    type: str
    clause: str
    step: int
    index: int
    message: str

    def to_dict(self) -> dict[str, Any]:
        """The note as reports and other tools read it."""
        return {"type": self.type, "clause": self.clause, "step": self.step, "index": self.index, "message": self.message}
