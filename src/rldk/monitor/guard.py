"""The one place that keeps a failure of monitoring away from the training."""

from __future__ import annotations

import errno
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from rldk.monitor.stopping import TrainingStopped

__all__ = ["PASSING", "Guard"]

_log = logging.getLogger("rldk")
Result = TypeVar("Result")

PASSING = (KeyboardInterrupt, SystemExit, TrainingStopped)
"""What no guard holds back: the user's own end of the program, a signal's, and the stop that was asked for."""

_TRIES = 3  # failures in a row after which a part is no longer called at each event
_LONGEST_REST = 30.0  # seconds
_MAX_SAID = 200
_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO, errno.ESTALE, errno.EACCES, errno.EPERM})


@dataclass(slots=True)
class _Trouble:
    """In which of its functions a part has failed, how often in a row, whether it may come back, and when it is tried again."""

    where: str = ""
    count: int = 0
    may_recover: bool = False
    again: float = 0.0


class Guard:
    """Calls the parts of a monitor, and keeps what they raise.

    A part that raises is reported once, with its traceback, and called again at the next event; one that fails three times in
    a row is disabled. A disk or connection that fails may work again: such a part is then tried now and then, at most every
    thirty seconds. Of a disk that is full there is one warning, however many parts meet it.

    Args:
        strict: raise the error instead, for tests and for users who prefer the crash.
        level: the logging level of a failure.
        clock: the time in seconds, for tests.

    Attributes:
        broken: the parts that have failed and not worked since, each with its error.
    """

    def __init__(self, strict: bool = False, level: int = logging.ERROR, clock: Callable[[], float] = time.monotonic) -> None:
        self.strict, self.level = strict, level
        self.broken: dict[str, str] = {}
        self._clock = clock
        self._troubles: dict[str, _Trouble] = {}
        self._said: set[object] = set()

    def call(self, part: str, function: Callable[..., Result], *args: Any) -> Result | None:
        """What the function returns; `None` where it fails, or has failed too often."""
        if part in self._troubles and not self.is_due(part):
            return None  # it rests, or is disabled
        return self.attempt(part, function, *args)

    def attempt(self, part: str, function: Callable[..., Result], *args: Any) -> Result | None:
        """The same for a part that is never disabled: one event that cannot be judged must not end the judging."""
        try:
            result = function(*args)
        except PASSING:
            raise
        except BaseException as error:  # noqa: BLE001  this is the boundary: whatever goes wrong in monitoring stays here
            self.report(part, error, _name(function))
            return None
        if part in self._troubles and self._troubles[part].where == _name(function):
            self._recovered(part)
        return result

    def hook(self, part: str, function: Callable[..., Any]) -> Callable[..., None]:
        """A function that others call, such as an optimizer, wrapped so that nothing it raises reaches them."""

        def called(*args: Any, **kwargs: Any) -> None:
            try:
                function(*args, **kwargs)
            except PASSING:
                raise
            except BaseException as error:  # noqa: BLE001  as above
                self.report(part, error)

        return called

    def each(self, parts: Iterable[tuple[str, Callable[[], Any]]]) -> None:
        """Call all of these, also those that have failed before: closing one must not depend on the others.

        With `strict` the first error is raised after the last call.
        """
        first: BaseException | None = None
        for part, function in parts:
            try:
                function()
            except PASSING:
                raise
            except BaseException as error:  # noqa: BLE001  as above
                if self.strict:
                    first = first or error
                else:
                    self.report(part, error)
        if first is not None:
            raise first

    def is_due(self, part: str) -> bool:
        """Whether a part is to be called now: it has not failed, or not too often, or may work again by now."""
        trouble = self._troubles.get(part)
        return trouble is None or trouble.count < _TRIES or (trouble.may_recover and self._clock() >= trouble.again)

    def may_recover(self, part: str) -> bool:
        """Whether a part failed last for a reason that may pass, such as a full disk."""
        return part in self._troubles and self._troubles[part].may_recover

    def report(self, part: str, error: BaseException, where: str = "") -> None:
        """Record a failure; the first of its kind is logged, and with `strict` raised."""
        if self.strict:
            raise error
        self.broken[part] = f"{type(error).__name__}: {error}"
        trouble = self._troubles.setdefault(part, _Trouble())
        trouble.count, trouble.where = trouble.count + 1, where
        trouble.may_recover = isinstance(error, OSError)
        trouble.again = self._clock() + min(2.0 ** (trouble.count - _TRIES), _LONGEST_REST)
        cause = cause_of(error)
        if cause is None:
            self.say(
                (part, type(error)), self.level,
                "rldk: %s failed; training continues. It is called again, and disabled if it fails %d times in a row: %s",
                part, _TRIES, error, exc_info=error,
            )  # fmt: skip
        else:
            reason = error.strerror or error if isinstance(error, OSError) else error
            self.say(
                cause, logging.WARNING,
                "rldk: %s failed: %s. Training continues, and whatever fails for this reason is tried again. "
                "Free some space, or check the disk and its permissions.", part, reason,
            )  # fmt: skip

    def say(self, cause: object, level: int, message: str, *args: object, exc_info: BaseException | None = None) -> None:
        """Log a message, once for each cause."""
        if cause not in self._said and len(self._said) < _MAX_SAID:
            self._said.add(cause)
            _log.log(level, message, *args, exc_info=exc_info)

    def knows(self, error: BaseException) -> None:
        """Somebody else has reported this error of a disk: no part needs to say it again."""
        if (cause := cause_of(error)) is not None:
            self._said.add(cause)

    def _recovered(self, part: str) -> None:
        trouble = self._troubles.pop(part)
        self.broken.pop(part, None)
        if trouble.may_recover:
            self._said = {one for one in self._said if not (isinstance(one, tuple) and one[0] == "disk")}
            self.say(("again", part), logging.WARNING, "rldk: %s works again.", part)


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", "")


def cause_of(error: BaseException) -> tuple[str, int] | None:
    """What is wrong with the disk, where it is that: parts that fail of the same cause are reported once."""
    if isinstance(error, OSError) and error.errno in _DISK:
        return "disk", error.errno
    return None

