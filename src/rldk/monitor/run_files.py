"""The id of a run, and its files in a folder, whose names begin with it.

Files of an earlier run of the same id are kept under a numbered id, so that no file mixes two runs.
"""

from __future__ import annotations

import logging
import os
import re
import time
from pathlib import Path

from rldk.core.errors import UsageError
from rldk.core.files import RUN_FILES

__all__ = ["check_run_id", "file_of", "new_run_id", "set_aside"]

_log = logging.getLogger("rldk")
_ENDINGS = re.compile("|".join((r"events\.jsonl", *RUN_FILES)))
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


def set_aside(folder: str | os.PathLike[str], run_id: str) -> str | None:
    """Rename the files of an earlier run of this id to the first free `R_1`, `R_2` …; returns that id, `None` without one.

    An earlier run has left an event log or a table of metrics. Its events keep the id that they were written with.
    """
    place = Path(folder)
    if not _has_run(place, run_id):
        return None
    number = next(n for n in range(1, 10**6) if not _has_run(place, f"{run_id}_{n}"))
    kept = f"{run_id}_{number}"
    for path in sorted(place.iterdir()):
        ending = path.name.removeprefix(f"{run_id}_")
        if ending != path.name and _ENDINGS.fullmatch(ending):
            path.rename(place / f"{kept}_{ending}")
    _log.warning(
        "The folder %s has a run %s already: this is a new run, and the files of the earlier one are now %s_*. To continue a "
        "run, resume it from a checkpoint.", place, run_id, kept,
    )  # fmt: skip
    return kept


def _has_run(folder: Path, run_id: str) -> bool:
    files = [file_of(folder, run_id, ending) for ending in ("events.jsonl", "metrics.csv")]
    return any(path.is_file() and path.stat().st_size for path in files)
