"""Episodes are aborted, or cannot be read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.detectors.base import Clause, Detector, Finding, Setting, View

__all__ = ["BrokenEpisodes"]

WORDS = {
    "aborted_frac": "episodes were aborted",
    "malformed_frac": "messages cannot be read",
    "tool_failure_rate": "tool calls fail",
    "tool_loop_exhausted_frac": "episodes run out of tool calls",
    "max_turns_frac": "episodes reach the limit of turns",
}


class BrokenEpisodes(Detector):
    """Episodes end with an error, have the wrong format, or run into a limit, more and more often.

    What it catches: half of the episodes aborted (nine of ten is critical); or a share of aborted, unreadable or failing ones
        that has grown by a quarter of all and passed 0.3.
    Why it matters: such episodes are dropped or get the lowest reward. What is learnt comes from the rest, which is often the
        easier part; and a format that breaks is how degeneration begins in training with tools.
    When it misfires: a base model has to learn the format first: a share that is high from the start counts only where episodes
        are aborted.
    What to do: read aborted and unreadable episodes; look for time limits, a tool server that is down, a length limit that cuts
        calls, and stop tokens.
    References: ranges of these shares in NeMo-RL and verl logs are not published; the limits are shares by definition.
    """

    __slots__ = ("grown", "most")
    type: ClassVar[str] = "broken_episodes"
    family: ClassVar[str] = "run"
    needs: ClassVar = (tuple(WORDS),)
    panels: ClassVar = ("reward", "length")
    special: ClassVar[bool] = True
    advice: ClassVar[str] = (
        "Read aborted and unreadable episodes, and look for time limits, a tool server that is down, and a length limit that "
        "cuts calls."
    )
    clear: ClassVar[int] = 10
    clauses: ClassVar = {
        "most_aborted": Clause(
            "nine of ten episodes are aborted", "critical", "definition: there is hardly anything left to learn from",
            persist=20, min_rows=8,
        ),
        "half_aborted": Clause(
            "half of the episodes are aborted", "warning", "definition: most of what is paid for is thrown away",
            persist=10, min_rows=5,
        ),
        "more_often": Clause(
            "episodes break far more often than at the start", "warning",
            "definition of noise: a quarter of all episodes is two standard deviations of a share in a batch of 16; and at 0.3 "
            "every third episode is lost",
            persist=10, min_rows=5,
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "most": Setting(0.9, "share of aborted episodes that leaves nothing to learn from", min=0.5, max=1.0),
        "grown": Setting(0.25, "growth of a share over its start", min=0.0, max=1.0),
    }
    most: float
    grown: float

    def find(self, view: View) -> Sequence[Finding]:
        found = []
        aborted = view.get("aborted_frac")
        if aborted.ready and aborted.level >= 0.5:
            nearly_all = aborted.level >= self.most
            message = f"{aborted.level:.0%} of the episodes were aborted."
            clause, limit = ("most_aborted", self.most) if nearly_all else ("half_aborted", 0.5)
            found.append(Finding("", aborted.level, limit, message, {"aborted": aborted.level}, clause=clause))
        for name, words in WORDS.items():
            share = view.get(name)
            if share.ready and share.level >= max(0.3, share.start + self.grown):
                message = f"{share.level:.0%} of the {words}; at the start it was {share.start:.0%}."
                if name == "tool_failure_rate":
                    message = f"{share.level:.0%} of the tool calls fail; at the start it was {share.start:.0%}."
                evidence = {name: share.level, "start": share.start}
                found.append(Finding("", share.level, share.start + self.grown, message, evidence, clause="more_often"))
                break
        return found
