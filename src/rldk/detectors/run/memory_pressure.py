"""Memory is running out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.detectors.base import Clause, Detector, Finding, Setting, View

__all__ = ["MemoryPressure"]


class MemoryPressure(Detector):
    """Memory is almost full, or keeps growing.

    What it catches: more than 95 % of the memory in use for several steps, and more than at the start; or twice the memory
        of the start and still at its highest.
    Why it matters: the next long batch ends the run with an out-of-memory error, and everything since the last checkpoint is
        lost.
    When it misfires: allocators that reserve all memory in advance look full by design; a run that is full from its first rows
        is not judged.
    What to do: lower the batch or the length, checkpoint activations, free what the steps keep (logits, graphs, samples).
    References: none.
    """

    __slots__ = ("growth", "share")
    type: ClassVar[str] = "memory_pressure"
    family: ClassVar[str] = "run"
    machine: ClassVar[bool] = True
    needs: ClassVar = (("memory_usage", "gpu_memory_gb", "cpu_memory_gb"),)
    panels: ClassVar = ("memory", "memory_share")
    advice: ClassVar[str] = "Lower the batch or the length, checkpoint activations, and free what each step keeps."
    clauses: ClassVar = {
        "full": Clause("nearly all of the memory is in use", "warning", "a judgement: 95 %", persist=5, min_rows=5),
        "grows": Clause(
            "the memory has doubled and is at its highest", "warning", "a judgement: caches level off", persist=5, min_rows=5,
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "share": Setting(0.95, "share of the memory in use", min=0.0, max=1.0),
        "growth": Setting(2.0, "factor over its start that the memory must reach", min=1.0),
    }
    share: float
    growth: float

    def find(self, view: View) -> Sequence[Finding]:
        usage = view.get("memory_usage")
        if usage.level > self.share and usage.level > usage.start + 0.02:
            message = f"{usage.level:.0%} of the memory is in use."
            return (Finding("", usage.level, self.share, message, {"usage": usage.level}, clause="full"),)
        for name in ("gpu_memory_gb", "cpu_memory_gb"):
            memory = view.get(name)
            if memory.level > self.growth * memory.base > self.growth and memory.n >= 20 and memory.level >= memory.high:
                message = f"{name} grew from {memory.base:.3g} to {memory.level:.3g} GiB and is still at its highest."
                limit = self.growth * memory.base
                return (Finding("", memory.level, limit, message, {"start": memory.base}, clause="grows"),)
        return ()
