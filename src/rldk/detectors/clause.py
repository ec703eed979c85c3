"""A named condition of a detector, and the finding that it holds now."""

from __future__ import annotations

from dataclasses import dataclass, field

from msgspec import Struct

__all__ = ["NOTE", "Clause", "Finding"]

NOTE = "note"
"""The severity of a clause that is worth knowing but not a defect."""


class Clause(Struct, frozen=True, gc=False):
    """One named condition of a detector.

    Args:
        says: the condition in a sentence that a user can read.
        severity: `note`, `warning` or `critical`; the highest with which the clause is raised.
        basis: where its numbers come from: a definition, a source, or the corpus.
        persist: for how many steps it must hold; overwhelming evidence needs only one.
        min_rows: the minimum number of rows for that, where a row stands for several steps.
    """

    says: str
    severity: str
    basis: str
    persist: int = 1
    min_rows: int = 2


@dataclass(slots=True)
class Finding:
    """A condition that holds now; `confirmed` skips the wait for persistence where the damage is beyond doubt.

    `clause` names the condition; it may be empty if the detector has only one clause. An empty severity means that of the
    clause, and a `persist` of 0 means that of the clause.
    """

    severity: str
    value: float
    threshold: float
    message: str
    evidence: dict[str, float] = field(default_factory=dict)
    confirmed: bool = False
    clause: str = ""
    persist: float = 0.0
