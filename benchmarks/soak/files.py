"""Hostile files and folders: each is read and judged within ten seconds and a gigabyte, or refused with a reason.

    python benchmarks/soak/files.py SECONDS SEED [KIND … | NUMBER …]

Each is read in a process forked from this one, by `rldk scan`, by another command, or by the reader of the dashboard. The time is
that of the processor, so that a busy machine makes no difference. With the number of a file, only that one is made and read.
"""

from __future__ import annotations

import io
import os
import random
import resource
import shutil
import signal
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

import hostile_files as hostile
from parts import Account, private_folder

import rldk.cli.main
from rldk.dashboard.folder import Folder
from rldk.dashboard.processes import send
from rldk.dashboard.reader_process import RunReader

MAX_SECONDS = 10.0
MAX_BYTES = 1 << 30
MAX_WAIT = 600  # seconds of one that only waits, as for a pipe


def main() -> None:
    account = Account()
    kinds = [name for name in account.rest if not name.isdigit()] or hostile.ORDER
    numbers = [int(name) for name in account.rest if name.isdigit()] or count()
    account.count(files_beyond_the_limits=0)
    with private_folder() as work:
        os.environ["RLDK_CACHE"] = str(work / "cache")
        for number in numbers:
            if not account.going:
                break
            chance = random.Random(f"files {account.seed} {number}")
            kind, folder = kinds[number % len(kinds)], work / "files"
            folder.mkdir()
            path = made_apart(hostile.KINDS[kind], folder, chance)
            way = chance.choices(list(WAYS), [6, 1, 1, 2])[0]
            took, memory, status = apart(WAYS[way], path, folder)
            account.count(hostile_files=1, **{f"files_for_{way}": 1})
            account.most("max_file_seconds", round(took, 2))
            account.most("max_file_megabytes", memory >> 20)
            if status not in (0, 1, 2) or took > MAX_SECONDS or memory > MAX_BYTES:
                what = f"{kind} by {way}, file {number}: status {status}, {took:.1f} s of processor time, {memory >> 20} MB"
                account.break_("files_beyond_the_limits", what)
            for place in (folder, work / "cache"):
                shutil.rmtree(place, ignore_errors=True)
            if number % 20 == 0:
                account.tell()
    account.tell()


def made_apart(kind: hostile.Kind, folder: Path, chance: random.Random) -> Path:
    """Make the file in a forked process: what that takes must not count for the reader."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.write(write, os.fsencode(kind(folder, random.Random(chance.random()))))
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        path = os.fsdecode(pipe.read())
    os.waitpid(child, 0)
    return Path(path)


def apart(way: Callable[[Path, Path], int], path: Path, folder: Path) -> tuple[float, int, int]:
    """Processor time, memory and status of one way of reading a path, in a forked process. Twice the limits kill it."""
    child = os.fork()
    if not child:
        devnull = os.open(os.devnull, os.O_RDWR)
        for one in (0, 1, 2):
            os.dup2(devnull, one)
        resource.setrlimit(resource.RLIMIT_CPU, (int(2 * MAX_SECONDS), int(2 * MAX_SECONDS)))
        resource.setrlimit(resource.RLIMIT_AS, (4 * MAX_BYTES, 4 * MAX_BYTES))
        signal.alarm(MAX_WAIT)
        status = 70
        try:
            status = way(path, folder)
        except SystemExit as end:
            status = int(end.code or 0) if isinstance(end.code, int) else 2
        finally:
            os._exit(status)
    _, status, used = os.wait4(child, 0)
    return used.ru_utime + used.ru_stime, used.ru_maxrss << 10, os.waitstatus_to_exitcode(status)


class Watched(io.TextIOBase):
    """Takes what a command prints, and knows whether it reports an error that nobody expected."""

    unexpected = False

    def write(self, text: str) -> int:
        self.unexpected |= "unexpected " in text and ("rldk: error: unexpected" in text or "judged: unexpected" in text)
        text.encode()  # what a terminal could not take is an error here, too
        return len(text)


def command(name: str, *options: str) -> Callable[[Path, Path], int]:
    """A command as users call it; one that meets an error that nobody expected has failed."""

    def call(path: Path, folder: Path) -> int:
        sys.stdout = sys.stderr = watched = Watched()
        status = int(rldk.cli.main.main([name, str(path), *(one.format(beside=folder.parent) for one in options)]) or 0)
        return 71 if watched.unexpected else status

    return call


def in_dashboard(path: Path, folder: Path) -> int:
    """All that the dashboard's page asks its reader, about each log that it finds."""
    root = path if path.is_dir() else folder
    reader, answers = RunReader(Folder(root)), io.BytesIO()

    def ask(name: str, **arguments: object) -> dict[str, object]:
        found = reader.answer(name, arguments)
        send(answers, found)
        return found

    for key, *_ in ask("list").get("files", ())[:5]:  # type: ignore[index]
        ask("state", key=key)
        end = time.process_time() + 2.0
        while reader.work() and time.process_time() < end:
            pass
        state = ask("state", key=key)
        drawn = list(state.get("drawn") or ())[:20]  # type: ignore[call-overload]
        ask("points", key=key, run=None, names=drawn, buckets=100, span=None)
        ask("samples", key=key, run=None, start=0, count=10, words="")
        for name in ("analysis", "rows", "checkpoints", "alerts"):
            ask(name, key=key)
    return 0


WAYS: dict[str, Callable[[Path, Path], int]] = {
    "scan": command("scan", "--json", "--jobs", "1"),
    "report": command("report", "--json", "-o", "{beside}/report.html"),
    "ingest": command("ingest", "--json"),
    "dashboard": in_dashboard,
}


if __name__ == "__main__":
    main()
