"""A metric that was logged in every row is not logged any more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.detectors.base import NOTE, Clause, Detector, Finding, Setting, View

__all__ = ["VanishedMetric"]

WATCHED = (
    "reward_mean", "kl_mean", "kl_update", "entropy_mean", "loss", "policy_loss", "value_loss", "grad_norm", "policy_grad_norm",
    "rollout_length_mean", "clip_frac",
)  # fmt: skip


class VanishedMetric(Detector):
    """A training metric that was logged in every row is no longer logged, while others still are.

    What it catches: a metric with at least 20 values that is missing or null for 20 rows, and for three times as long as its
        longest gap so far, while a metric that was logged as often as it is still logged.
    Why it matters: some writers leave out values that are not finite, or write null, since JSON has no NaN; in others the branch
        that computes the metric is not reached any more. In both cases the run is not the one that was started.
    When it misfires: a change of settings at a resume, or a phase with its own metrics, ends a metric on purpose. That the KL
        alone is missing is a note: its coefficient may have become 0. Rows of evaluation are not counted.
    What to do: look at the row where it was last logged; check the weights and the loss for values that are not finite.
    References: prime-rl and ART drop non-finite values from their files.
    """

    __slots__ = ("_first", "_gap", "_here", "_longest", "_missed", "_row", "rows")
    type: ClassVar[str] = "vanished_metric"
    family: ClassVar[str] = "run"
    needs: ClassVar = (WATCHED,)
    panels: ClassVar = ("losses", "gradients")
    advice: ClassVar[str] = (
        "Look at the row where it was last logged, and check weights and loss for values that are not finite: some trainers "
        "leave those out."
    )
    clear: ClassVar[int] = 3
    clauses: ClassVar = {
        "gone": Clause(
            "a metric that was logged in every row is missing", "warning",
            "definition: 20 rows and three times the longest gap so far are longer than the gaps of a metric that is logged now "
            "and then",
            persist=1, min_rows=1,
        ),
        "kl_gone": Clause(
            "the KL is not logged any more", NOTE, "trainers log no KL where its coefficient is 0", persist=1, min_rows=1,
        ),
    }  # fmt: skip
    settings: ClassVar = {"rows": Setting(20, "rows for which a metric must be missing", min=5, whole=True)}
    rows: float
    _row: int  # rows of training so far
    _here: list[str]  # what the last of them logged
    _first: dict[str, int]  # the row that first logged each metric
    _gap: dict[str, int]  # for how many rows a metric is missing now
    _longest: dict[str, int]  # longest gap that has ended
    _missed: dict[str, int]  # rows of all gaps that have ended

    def reset(self) -> None:
        super().reset()
        self._row, self._here = 0, []
        self._first, self._gap, self._longest, self._missed = {}, {}, {}, {}

    @classmethod
    def metrics(cls) -> tuple[str, ...]:
        return ()  # it must also see the rows in which a metric is missing

    def find(self, view: View) -> Sequence[Finding]:
        metrics = view.event.metrics
        here = [name for name in WATCHED if name in metrics]
        if not here:
            return ()  # not a row of training
        self._row += 1
        if here == self._here and not self._gap:
            return ()  # nothing is missing: most rows end here
        self._here = here
        for name in here:
            self._first.setdefault(name, self._row)
            if gap := self._gap.pop(name, 0):
                self._longest[name] = max(self._longest.get(name, 0), gap)
                self._missed[name] = self._missed.get(name, 0) + gap
        gone = []
        for name in self._first:
            if name not in here:
                self._gap[name] = self._gap.get(name, 0) + 1
                if self._is_gone(name, here):
                    gone.append(name)
        if not gone:
            return ()
        longest = max(self._gap[name] for name in gone)
        also = f" and {len(gone) - 1} more" if len(gone) > 1 else ""
        has = "have" if len(gone) > 1 else "has"
        how = "been null" if gone[0] in view.event.nulls else "not been logged"
        message = f"{gone[0]}{also} {has} {how} for {longest} rows, while {here[0]} is logged."
        evidence = {"rows": float(longest), "metrics": float(len(gone))}
        clause = "kl_gone" if gone == ["kl_mean"] else "gone"
        return (Finding("", float(longest), self.rows, message, evidence, clause=clause),)

    def _is_gone(self, name: str, here: Sequence[str]) -> bool:
        gap, seen = self._gap[name], self._seen(name)
        if seen < 20 or gap < max(self.rows, 3 * self._longest.get(name, 0)):
            return False
        return any(self._seen(other) >= 0.8 * seen + gap for other in here)

    def _seen(self, name: str) -> int:
        """How many rows have logged it."""
        return self._row + 1 - self._first[name] - self._missed.get(name, 0) - self._gap.get(name, 0)
