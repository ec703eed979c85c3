"""The files of a run in its folder: what writes them, and where those of an earlier run with the same id are moved.

The earlier ones are kept under a numbered id, so that no file mixes two runs.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Container, Sequence
from pathlib import Path

from rldk.core.files import RUN_FILES
from rldk.monitor.outputs import Alerts, ConfigFile, FinalReport, MetricsCsv, Output
from rldk.monitor.run_id import file_of

__all__ = ["set_aside", "writers_of"]

_log = logging.getLogger("rldk")
WRITTEN = ("metrics", "alerts", "final_report")
_ENDINGS = re.compile("|".join((r"events\.jsonl", *RUN_FILES)))


def writers_of(
    folder: str | os.PathLike[str] | None, run_id: str, files: Container[str] = WRITTEN, columns: Sequence[str] = ()
) -> list[Output]:
    """The outputs that write these files of a run besides its event log; none without a folder."""
    if folder is None:
        return []
    writers: dict[str, list[Output]] = {
        "metrics": [MetricsCsv(file_of(folder, run_id, "metrics.csv"), columns)],
        "alerts": [Alerts(file_of(folder, run_id, "alerts.json"))],
        "final_report": [
            FinalReport(file_of(folder, run_id, "final_report.json")), ConfigFile(file_of(folder, run_id, "config.json")),
        ],
    }  # fmt: skip
    return [writer for name, own in writers.items() if name in files for writer in own]


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
