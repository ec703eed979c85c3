"""The one place where a failure of watching is kept from training."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

__all__ = ["Guard"]

_log = logging.getLogger("rldk")
Result = TypeVar("Result")


class Guard:
    """Calls the parts of a monitor; one that raises is reported once, with its traceback, and called no more.

    Args:
        strict: raise again instead, for tests and for those who would rather have the crash.
        level: how loud a failure is said.

    Attributes:
        broken: the parts that have failed, and what each said.
    """

    def __init__(self, strict: bool = False, level: int = logging.ERROR) -> None:
        self.strict, self.level = strict, level
        self.broken: dict[str, str] = {}

    def call(self, part: str, function: Callable[..., Result], *args: Any) -> Result | None:
        """What the function returns; `None` where it fails now or has failed before."""
        if part in self.broken:
            return None
        try:  # and not by `attempt`: a step makes some thirty of these calls
            return function(*args)
        except Exception as error:  # noqa: BLE001  as below
            self.report(part, error)
            return None

    def attempt(self, part: str, function: Callable[..., Result], *args: Any) -> Result | None:
        """The same for what is tried again each time: a single event that cannot be read is no reason to read no more."""
        try:
            return function(*args)
        except Exception as error:  # noqa: BLE001  this is the boundary: whatever goes wrong in watching stays here
            self.report(part, error)
            return None

    def each(self, parts: Iterable[tuple[str, Callable[[], Any]]]) -> None:
        """Call all of these, those that have failed before as well: what is let go at the end must not hang on the others.

        With `strict` the first that fails is raised after the last was called.
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
        """Take note of a failure; the first one of a part is said, and with `strict` raised."""
        if self.strict:
            raise error
        if part not in self.broken:
            self.broken[part] = f"{type(error).__name__}: {error}"
            _log.log(
                self.level, "rldk: %s failed and is left out from here on; training goes on: %s",
                part, error, exc_info=error,
            )  # fmt: skip
