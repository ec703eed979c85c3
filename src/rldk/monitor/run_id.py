"""The id of a run, which begins the names of its files, and the commit it runs on."""

from __future__ import annotations

import os
import re
import subprocess
import time
from functools import cache
from pathlib import Path

from rldk.core.errors import UsageError

__all__ = ["check_run_id", "file_of", "git_sha", "new_run_id"]

_GOOD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+=@ -]{0,127}")


def check_run_id(run_id: object) -> str:
    """The run id if it can begin a file name: it may not lead out of the folder."""
    name = str(run_id)
    if not _GOOD.fullmatch(name):
        raise UsageError(
            f"Expected `run_id` to be a name of at most 128 letters, digits and `._+=@ -` that begins with a letter, digit or "
            f"underscore, got {name!r:.160}. It becomes part of file names."
        )
    return name


def new_run_id(kind: str = "run") -> str:
    """The name of a run that was given none: its kind, date, time and process number."""
    return f"{kind}_{time.strftime('%Y%m%d_%H%M%S')}_{os.getpid()}"


def file_of(folder: str | os.PathLike[str], run_id: str, ending: str) -> Path:
    """The file of a run, such as `my_run_events.jsonl`."""
    return Path(folder) / f"{check_run_id(run_id)}_{ending}"


@cache
def git_sha() -> str | None:
    """The commit of the repository that the program runs in; `None` outside of one."""
    try:
        found = subprocess.run(
            ["git", "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, timeout=2, check=False
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip() or None if found.returncode == 0 else None
