"""What a run says when its training ends with an exception."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from rldk.core.text import clean
from rldk.monitor.guard import PASSING

if TYPE_CHECKING:
    from rldk.monitor.monitor import Monitor

__all__ = ["crash_in_words", "last_error", "report_crash"]

_MAX_TEXT = 300
_ADVICE = {
    r"probability tensor|\bnan\b|\binf\b": "The policy's outputs or losses are not finite. Look at gradients and learning rate "
    "in the last events, and resume from the last good checkpoint with a lower learning rate.",
    r"out of memory|bad alloc|cannot allocate": "Lower the batch size or the length limit, or accumulate gradients; the memory "
    "of the last events shows whether it grew.",
    r"no space left|disk quota": "Free some space, and resume from the last checkpoint.",
    r"\bnccl|\bgloo|connection|timed? ?out": "A process or a connection was lost. Look at the logs of the other processes, and "
    "resume from the last checkpoint.",
}
"""What to do about an exception whose text matches."""
_OTHERWISE = "Read the traceback, fix its cause, and resume from the last checkpoint."


def last_error() -> BaseException | None:
    """The exception that ends this program; in a notebook or at a prompt the program goes on, and there is none."""
    return None if hasattr(sys, "ps1") else getattr(sys, "last_value", None)


def report_crash(monitor: Monitor, error: BaseException | None) -> None:
    """The training has ended with this exception: that is a lasting critical of a run that has begun."""
    step = monitor.forensics.engine.last_step
    said = None if error is None or step is None else crash_in_words(error)
    if said is not None and step is not None:
        monitor.alert(step, "training_crashed", said[0], "critical", said[1], lasting=True)


def crash_in_words(error: BaseException) -> tuple[str, str] | None:
    """What to say and to advise about it; `None` for an end that somebody asked for."""
    if isinstance(error, (*PASSING, GeneratorExit)):
        return None
    text = clean(str(error), _MAX_TEXT)
    said = f"{type(error).__name__}: {text}" if text else type(error).__name__
    advice = next((advice for pattern, advice in _ADVICE.items() if re.search(pattern, said, re.IGNORECASE)), _OTHERWISE)
    return f"The training ended with {said.rstrip('.')}.", advice
