"""Responses are trained on long after they were written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.detectors.base import NOTE, Clause, Detector, Finding, Setting, View

__all__ = ["StaleRollouts"]


class StaleRollouts(Detector):
    """The policy that wrote the responses is many updates older than the one that is trained on them.

    What it catches: a mean staleness that has doubled since the start and passed 4 updates, or one above 8 from the start;
        rollouts that are dropped for their age, as many as a batch holds.
    Why it matters: old responses are off-policy: importance weights become uneven, clipping grows, and learning slows down or
        collapses. Dropped rollouts cost as much as used ones.
    When it misfires: methods made for off-policy data tolerate more; set `most` to what yours allows.
    What to do: raise the share of sampling hardware, shorten responses, lower the allowed staleness, or sync weights more often.
    References: AReaL's asynchronous example, SkyRL and ART allow at most 4 updates, prime-rl 8.
    """

    __slots__ = ("grown", "most")
    type: ClassVar[str] = "stale_rollouts"
    family: ClassVar[str] = "run"
    needs: ClassVar = (("staleness_mean", "dropped_rollouts"),)
    panels: ClassVar = ("mismatch", "reward")
    reads: ClassVar = ("batch_size",)
    special: ClassVar[bool] = True
    advice: ClassVar[str] = (
        "Give sampling more of the hardware, shorten responses, lower the allowed staleness, or sync weights more often."
    )
    clear: ClassVar[int] = 10
    clauses: ClassVar = {
        "grown": Clause(
            "staleness has doubled and passed what asynchronous recipes allow", "warning",
            "AReaL, SkyRL and ART allow 4 updates; twice the start means that sampling falls behind", persist=15, min_rows=6,
        ),
        "old": Clause(
            "responses are older than any published recipe allows", "warning", "prime-rl allows 8 updates, the others 4",
            persist=15, min_rows=6,
        ),
        "dropped": Clause(
            "as many rollouts are dropped for their age as are trained on", "warning",
            "definition: half of the sampling is thrown away", persist=15, min_rows=6,
        ),
        "some_dropped": Clause(
            "rollouts are dropped for their age in most rows", NOTE, "definition: they were paid for and not used",
            persist=10, min_rows=5,
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "grown": Setting(4.0, "mean staleness from which growth counts", min=0.0),
        "most": Setting(8.0, "mean staleness that is too much in any case", min=0.0),
    }
    grown: float
    most: float

    def find(self, view: View) -> Sequence[Finding]:
        age, dropped, batch = view.get("staleness_mean"), view.get("dropped_rollouts"), view.get("batch_size")
        if age.ready and age.level > self.most:
            message = f"Responses are {age.level:.3g} updates old when they are trained on."
            return (Finding("", age.level, self.most, message, {"staleness": age.level}, clause="old"),)
        if age.ready and age.level > (limit := max(self.grown, 2.0 * age.start)):
            message = f"Responses are {age.level:.3g} updates old when they are trained on; at the start it was {age.start:.3g}."
            return (Finding("", age.level, limit, message, {"staleness": age.level, "start": age.start}, clause="grown"),)
        if dropped.ready and batch.n and dropped.level >= batch.last > 0.0:
            message = f"{dropped.level:.0f} rollouts per step are dropped for their age; a batch has {batch.last:.0f}."
            return (Finding("", dropped.level, batch.last, message, {"dropped": dropped.level}, clause="dropped"),)
        if dropped.ready and dropped.level > 0.0:
            message = f"{dropped.level:.0f} rollouts per step are dropped for their age."
            return (Finding("", dropped.level, 0.0, message, {"dropped": dropped.level}, clause="some_dropped"),)
        return ()
