"""The run has become slow."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from typing import ClassVar

from rldk.detectors.base import Clause, Detector, Finding, Setting, View

__all__ = ["ThroughputDrop"]


class ThroughputDrop(Detector):
    """The run makes much less progress per second than before.

    What it catches: a throughput that stays below half of the run's own best, or steps that keep taking three times as long
        without longer responses.
    Why it matters: a throttled node, a full disk, a slow data loader or swapped memory can cost days before anyone looks.
    When it misfires: evaluation and checkpoints slow single steps, and warm-up makes the first ones slow; it waits
        for both. Longer responses take longer and do not count; neither do fewer tokens per second from responses half as
        long, unless the step itself takes 1.5 times as long.
    What to do: check how the time of a step is spent, the accelerator's load and temperature, and what else runs on the node.
    References: none.
    """

    __slots__ = ("_length_then", "_seen", "share", "times_longer")
    type: ClassVar[str] = "throughput_drop"
    family: ClassVar[str] = "run"
    machine: ClassVar[bool] = True
    needs: ClassVar = (("tokens_per_second", "step_time"),)
    panels: ClassVar = ("throughput", "step_time")
    reads: ClassVar = ("rollout_length_mean",)
    advice: ClassVar[str] = (
        "Check how the time of a step is spent, the accelerator's load and temperature, and what else runs on the node."
    )
    clear: ClassVar[int] = 10
    clauses: ClassVar = {
        "slower": Clause("the throughput fell to less than half of its best", "warning", "a judgement", persist=20, min_rows=8),
        "longer_steps": Clause(
            "a step takes three times as long as at the start", "warning", "a judgement", persist=20, min_rows=8,
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "share": Setting(0.45, "share of its best below which the throughput has dropped", min=0.0, max=1.0),
        "times_longer": Setting(3.0, "factor over its start that the time of a step must reach", min=1.0),
    }
    share: float
    times_longer: float
    _seen: int
    _length_then: float

    def reset(self) -> None:
        super().reset()
        self._seen = -1
        self._length_then = nan

    def find(self, view: View) -> Sequence[Finding]:
        speed, time, length = view.get("tokens_per_second"), view.get("step_time"), view.get("rollout_length_mean")
        if speed.high_index != self._seen:  # at its best: remember how long responses were
            self._seen, self._length_then = speed.high_index, length.level
        if speed.n >= 40:
            grown = length.level > 1.5 * self._length_then
            shorter = length.ready and length.level < 0.5 * length.high  # fewer tokens for the same overhead
            longer = time.level > 1.5 * time.base  # fewer tokens do not explain that
            share = 0.5 * self.share if grown else self.share  # long responses leave room for fewer at once
            if speed.level < share * speed.high and (longer or not shorter):
                message = f"Throughput fell from {speed.high:.4g} to {speed.level:.4g} tokens per second."
                return (Finding("", speed.level, share * speed.high, message, {"best": speed.high}, clause="slower"),)
        elif time.n >= 20 and time.base > 0 and time.level > self.times_longer * time.base:
            if length.ready and length.level > 1.5 * length.start:
                return ()
            message = f"A step takes {time.level:.3g} s, {time.level / time.base:.3g} times as long as at the start."
            limit = self.times_longer * time.base
            return (Finding("", time.level, limit, message, {"start": time.base}, clause="longer_steps"),)
        return ()
