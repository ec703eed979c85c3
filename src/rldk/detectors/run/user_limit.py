"""A limit that the user has set."""

from __future__ import annotations

from typing import ClassVar

from rldk.detectors.base import Clause, Detector, Finding, View

__all__ = ["UserLimit"]


class UserLimit(Detector):
    """A metric has crossed a limit that the user has set.

    What it catches: a value above the `max` or below the `min` that was given for its metric. It is a hard limit: no
        baseline, no waiting.
    Why it matters: the user knows something about this run that no rule can know.
    When it misfires: never; it fires whenever the limit is crossed.
    What to do: whatever the limit was set for.
    References: none.
    """

    __slots__ = ("highest", "lowest", "metric")
    type: ClassVar[str] = "user_limit_exceeded"
    family: ClassVar[str] = "run"
    needs: ClassVar[tuple[tuple[str, ...], ...]] = ()
    advice: ClassVar[str] = "The limit is yours: do what it was set for, or change it."
    persist: ClassVar[int] = 1
    clear: ClassVar[int] = 1
    rearm: ClassVar[int] = 0
    most_raises: ClassVar[int] = 1 << 30
    clauses: ClassVar = {
        "crossed": Clause("a metric crossed a limit set by the user", "critical", "the user's own number"),
    }  # fmt: skip
    metric: str
    highest: float
    lowest: float

    def __init__(
        self, metric: str = "", highest: float = float("inf"), lowest: float = float("-inf"), severity: str = "warning"
    ) -> None:
        self.metric, self.highest, self.lowest = metric, highest, lowest
        super().__init__(severity=severity)

    @property
    def key(self) -> str:
        return f"{self.type}:{self.metric}"

    def check(self, view: View) -> Finding | None:
        value = view.event.metrics.get(self.metric)
        if value is None or not (value < self.lowest or value > self.highest):
            return None  # NaN is neither above nor below; `nonfinite_metric` judges it
        limit = self.lowest if value < self.lowest else self.highest
        word = "below" if value < self.lowest else "above"
        return Finding(
            "warning", value, limit, f"{self.metric} is {value:.4g}, {word} your limit of {limit:g}.", {self.metric: value}
        )
