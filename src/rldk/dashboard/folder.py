"""The logs of a folder as the page may see them: by keys that never lead out of it, with the files beside each log."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from rldk.core.errors import ReadError
from rldk.core.jsonio import MAX_STEP, to_number
from rldk.core.text import clean, escaped, unescaped
from rldk.ingest.discovery import LogFinder, newest_first
from rldk.storage.places import lies_within

__all__ = ["Folder", "ListedLog", "Listing", "is_live", "read_alerts"]

_MAX_LOGS = 5_000
_SEARCH_SECONDS = 0.5  # a page waits for the list: what is not opened by then is left for the next call
_EVENTS = re.compile(r"(_?events)?\.(jsonl|ndjson)$", re.IGNORECASE)
_MAX_ALERT_BYTES = 8 << 20
_MAX_ALERTS = 500
_MAX_SKIPPED = 200
_LIVE_SECONDS = 30.0


@dataclass(slots=True)
class ListedLog:
    """A log: its path below the folder, the name it is shown by, its size, and when it last changed."""

    key: str
    name: str
    size: int
    modified: float


@dataclass(slots=True)
class Listing:
    """The logs of the folder, the newest first; how many are not listed (yet), and how many links lead out of it.

    `skipped` has what cannot be opened (pipes, devices, links in a circle, folders without permission), with the reason.
    """

    logs: list[ListedLog] = field(default_factory=list)
    problem: str = ""
    not_listed: int = 0
    outside: int = 0
    skipped: list[tuple[str, str]] = field(default_factory=list)


class Folder:
    """A folder with logs. A link in it that leads out of it is not followed."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).absolute()
        self._finder = LogFinder(self.path)

    def list(self) -> Listing:
        """All logs that exist now."""
        if not self.path.is_dir():
            return Listing(problem="This folder does not exist yet. A run appears here as soon as it is started.")
        try:
            os.scandir(self.path).close()
        except OSError as error:
            return Listing(problem=f"This folder cannot be read: {error.strerror}.")
        listing = Listing()
        for log in newest_first(self._finder.find(_SEARCH_SECONDS)):
            if (log.path.is_symlink() or log.path.is_dir()) and not self.contains(log.path):
                listing.outside += 1
            elif len(listing.logs) < _MAX_LOGS:
                key = self.key_of(log.path)
                listing.logs.append(ListedLog(key, self.name_of(key), log.size, log.modified))
            else:
                listing.not_listed += 1
        listing.not_listed += self._finder.pending
        listing.skipped = [(self.key_of(path), why) for path, why in self._finder.skipped[:_MAX_SKIPPED]]
        return listing

    def key_of(self, path: Path) -> str:
        """The path below the folder, as text that can be sent and is unique: a name need not be UTF-8."""
        return escaped(path.relative_to(self.path).as_posix())

    def name_of(self, key: str) -> str:
        """The name that the log of a key is shown by."""
        name = self.path.name if key == "." else _EVENTS.sub("", key).removesuffix("/")
        return name or key

    def find(self, key: str) -> Path:
        """The log of a key that `list` gave; `ReadError` for anything else."""
        path = self.path.joinpath(*key.split("/")) if key and "\0" not in key else None
        if path is not None and "\\ud" in key and not os.path.lexists(path):
            path = self.path.joinpath(*unescaped(key).split("/"))
        if path is None or ".." in key.split("/") or Path(key).is_absolute() or not self.contains(path):
            raise ReadError("There is no such run in this folder.")
        return path

    def beside(self, key: str, ending: str) -> Path | None:
        """The file with that ending that belongs to a log, such as its `_alerts.json`; `None` where there is none."""
        path = self.find(key)
        stem = _EVENTS.sub("", path.name)
        for found in (path.with_name(f"{stem}{ending}"), path.with_name(ending.lstrip("_"))):
            if found.is_file() and self.contains(found):
                return found
        return None

    def final_report(self, path: Path) -> bool:
        """Whether a run has written its last report beside its log, and so has come to its end."""
        stem = _EVENTS.sub("", str(path))
        return os.path.exists(f"{stem}_final_report.json") or os.path.exists(path.with_name("final_report.json"))  # noqa: PTH110

    def contains(self, path: Path) -> bool:
        """Whether a path, and all that is below it, lies in the folder with all links followed."""
        return lies_within(path, [self.path])


def is_live(age: float, pace: float) -> bool:
    """Whether a run is still being written: its log changed less than 30 s ago, or less than 20 of its events ago."""
    return age < max(_LIVE_SECONDS, min(20 * pace, 3600.0))


def read_alerts(path: Path | None) -> dict[str, Any]:
    """The last alerts of a file."""
    if path is None:
        return {"alerts": []}
    if path.stat().st_size > _MAX_ALERT_BYTES:
        return {"alerts": [], "problem": f"{path.name} is larger than {_MAX_ALERT_BYTES >> 20} MB and is not shown."}
    try:
        given = json.loads(path.read_text(encoding="utf-8", errors="replace"))
    except (ValueError, RecursionError):
        return {"alerts": [], "problem": f"{path.name} cannot be read: it is half written, or not JSON."}
    given = given.get("alerts", []) if isinstance(given, dict) else given
    alerts = [alert for alert in given if isinstance(alert, dict)][-_MAX_ALERTS:] if isinstance(given, list) else []
    return {"alerts": [{clean(name, 40): _cell(value) for name, value in islice(alert.items(), 30)} for alert in alerts]}


def _cell(value: Any) -> Any:
    """A value as a table shows it: a number that no column holds is infinite, and nothing else is longer than a few lines."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value if abs(value) < MAX_STEP else to_number(value)
    return clean(value, 500)
