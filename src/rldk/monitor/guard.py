"""The one place that keeps a failure of monitoring away from the training."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

__all__ = ["Guard"]

_log = logging.getLogger("rldk")
Result = TypeVar("Result")


class Guard:
    """Calls the parts of a monitor; a part that raises is reported once, with its traceback, and not called again.

    Args:
        strict: raise the error instead, for tests and for users who prefer the crash.
        level: the logging level of a failure.

    Attributes:
        broken: the parts that have failed, each with its error.
    """

    def __init__(self, strict: bool = False, level: int = logging.ERROR) -> None:
        self.strict, self.level = strict, level
        self.broken: dict[str, str] = {}

    def call(self, part: str, function: Callable[..., Result], *args: Any) -> Result | None:
        """What the function returns; `None` where it fails now or has failed before."""
        if part in self.broken:
            return None
        try:  # not through `attempt`: a step makes some thirty of these calls
            return function(*args)
        except Exception as error:  # noqa: BLE001  as below
            self.report(part, error)
            return None

    def attempt(self, part: str, function: Callable[..., Result], *args: Any) -> Result | None:
        """The same, but the part is called again next time: one event that cannot be read must not disable reading."""
        try:
            return function(*args)
        except Exception as error:  # noqa: BLE001  this is the boundary: whatever goes wrong in monitoring stays here
            self.report(part, error)
            return None

    def each(self, parts: Iterable[tuple[str, Callable[[], Any]]]) -> None:
        """Call all of these, also those that have failed before: closing one must not depend on the others.

        With `strict` the first error is raised after the last call.
        """
        first: Exception | None = None
        for part, function in parts:
            try:
                function()
            except Exception as error:  # noqa: BLE001  as above
                if self.strict:
                    first = first or error
                else:
                    self.report(part, error)
        if first is not None:
            raise first

    def report(self, part: str, error: Exception) -> None:
        """Record a failure; the first failure of a part is logged, and with `strict` raised."""
        if self.strict:
            raise error
        if part not in self.broken:
            self.broken[part] = f"{type(error).__name__}: {error}"
            _log.log(
                self.level, "rldk: %s failed and has been disabled; training continues: %s",
                part, error, exc_info=error,
            )  # fmt: skip
