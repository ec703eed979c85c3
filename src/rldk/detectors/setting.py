"""What a user may set of a detector: the numbers of its clauses, and how long a condition must hold."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from rldk.core.errors import UsageError
from rldk.core.stats.base import bounds_in_words

__all__ = ["COMMON_SETTINGS", "SENSITIVITIES", "Setting"]

SENSITIVITIES: dict[str, dict[str, float]] = {
    "low": {"warning": 2.0, "critical": 1.5},
    "normal": {},
    "high": {"warning": 0.5, "critical": 0.5},
}
"""Factors on how long a condition must hold before it is raised. What one row proves is raised at once in any case."""


class Setting(Struct, frozen=True, gc=False):
    """A number that a user may set: its default, what it means, and its bounds."""

    default: float
    meaning: str
    min: float | None = None
    max: float | None = None
    whole: bool = False

    def check(self, name: str, value: Any) -> float:
        """The value as a number within the bounds, or an error that says what is wrong with it."""
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise UsageError(f"Expected `{name}` to be a number, got {value!r}.")
        low = self.min is not None and value < self.min
        high = self.max is not None and value > self.max
        if low or high or value != value or (self.whole and value % 1 != 0):
            bounds = bounds_in_words(minimum=self.min, maximum=self.max)
            raise UsageError(f"Expected `{name}` to be a {'whole ' * self.whole}number{bounds}, got {value!r}.")
        return float(value)


COMMON_SETTINGS = {
    "persist": Setting(3, "checks in a row for which the condition must hold", min=1, whole=True),
    "clear": Setting(5, "checks in a row for which it must be gone", min=1, whole=True),
}
"""What can be set for every detector, besides `severity`, which overrides its own."""
