"""The batch is too small to learn from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.detectors.base import Clause, Detector, Finding, Setting, View
from rldk.signals.reward import SCORES, score_of

__all__ = ["BatchTooSmall"]


class BatchTooSmall(Detector):
    """Each update learns from two or three responses.

    What it catches: a rollout of fewer than four responses per update.
    Why it matters: an advantage is a comparison. Among two or three responses it is mostly chance, and whitening
        reduces it to a sign.
    When it misfires: the log gives the batch of one device only, or gradients are accumulated over many such batches.
    What to do: raise the batch size, or accumulate gradients over more responses.
    References: TRL and verl recipes use 64 to 1024 responses per update.
    """

    __slots__ = ("few",)
    type: ClassVar[str] = "batch_too_small"
    family: ClassVar[str] = "run"
    needs: ClassVar = (("rollout_buffer_size", "batch_size"), SCORES)
    panels: ClassVar = ("reward", "reward_spread")
    watches: ClassVar = ("rollout_buffer_size", "batch_size")
    advice: ClassVar[str] = "Raise the batch size, or accumulate gradients over more responses."
    clear: ClassVar[int] = 3
    clauses: ClassVar = {
        "few": Clause(
            "fewer than four responses per update", "warning",
            "recipes use 64 to 1024; the advantage of one of two responses is its sign", persist=3, min_rows=1,
        ),
    }  # fmt: skip
    settings: ClassVar = {"few": Setting(4, "responses per update below which there are too few", min=2)}
    few: float

    def find(self, view: View) -> Sequence[Finding]:
        size = view.first("rollout_buffer_size", "batch_size").last
        if not 0.0 < size < self.few or not score_of(view).n:
            return ()
        return (Finding("", size, self.few, f"Each update learns from {size:.0f} responses.", {"batch": size}, clause="few"),)
