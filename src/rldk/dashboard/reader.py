"""The process that reads: the page asks it, and it reads and judges between two questions.

It is apart from the page's own process so that reading a million events keeps nobody waiting.
"""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import threading
from typing import Any, BinaryIO

from rldk.dashboard.folder import Folder
from rldk.dashboard.library import Library
from rldk.dashboard.parent import is_orphan
from rldk.dashboard.wire import receive, send

__all__ = ["main", "serve"]

_NAP = 0.1
_GRACE = 0.01  # a page mostly asks several things in a row


def serve(library: Library, questions: BinaryIO, answers: BinaryIO) -> None:
    """Answer questions until there are no more, and work in between."""
    asked: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def listen() -> None:
        try:
            while True:
                asked.put(receive(questions))
        except (EOFError, OSError, ValueError):
            asked.put(None)

    threading.Thread(target=listen, daemon=True).start()
    busy, answered = True, False
    while not is_orphan():
        try:
            question = asked.get(timeout=_GRACE if answered else 0.0 if busy else _NAP)
        except queue.Empty:
            busy, answered = library.work(), False
            continue
        if question is None:
            return
        send(answers, library.answer(question["name"], question["arguments"]))
        answered = True


def main(argv: list[str]) -> None:
    """Read the runs of a folder for the process at the other end of the pipes."""
    if os.name == "posix":
        os.nice(5)  # whoever looks comes first, training and browser alike
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints must not get among the answers
    with contextlib.suppress(BrokenPipeError):
        serve(Library(Folder(argv[0])), sys.stdin.buffer, answers)
    os._exit(0)  # a thread may still be reading


if __name__ == "__main__":
    main(sys.argv[1:])
