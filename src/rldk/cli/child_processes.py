"""The processes of a command: itself and whatever it started, also what has left its session, and how they are ended."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress

import psutil

__all__ = ["adopt_orphans", "end_processes", "reap_orphans", "started_by"]

_POLL = 0.05
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER


def adopt_orphans() -> None:
    """On Linux, processes whose parent has ended become our children, so that none that the command started is lost."""
    if sys.platform == "linux":
        import ctypes

        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def reap_orphans(command: int) -> None:
    """Let adopted processes that have ended go; the status of the command itself is left for its owner."""
    if sys.platform != "linux":
        return
    with suppress(ChildProcessError):
        while (ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
            if ended.si_pid == command:
                return
            os.waitpid(ended.si_pid, 0)


def started_by(command: int) -> list[psutil.Process]:
    """The command and everything that it started and that still runs."""
    found = {one.pid: one for one in psutil.Process().children(recursive=True)}
    for one in psutil.process_iter():
        if one.pid not in found and _session(one.pid) == command:
            found[one.pid] = one
    return [one for one in found.values() if _runs(one)]


def end_processes(command: subprocess.Popen[bytes], grace: float) -> bool:
    """Ask the command and what it started to end, and kill what is left after `grace` seconds; whether that was needed."""
    first = started_by(command.pid)
    for one in first:
        with suppress(psutil.Error):
            one.terminate()
    _wait(command, first, grace)
    left = {*(one for one in first if _runs(one)), *started_by(command.pid)}
    for one in left:
        with suppress(psutil.Error):
            one.kill()
    _wait(command, left, grace)
    return bool(left)


def _wait(command: subprocess.Popen[bytes], processes: Iterable[psutil.Process], seconds: float) -> None:
    """Wait until they have ended. (psutil's own waiting would take the status of the command away.)"""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        command.poll()
        reap_orphans(command.pid)
        if not any(map(_runs, processes)):
            return
        time.sleep(_POLL)


def _runs(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def _session(process: int) -> int | None:
    if sys.platform == "win32":
        return None
    try:
        return os.getsid(process)
    except OSError:
        return None
