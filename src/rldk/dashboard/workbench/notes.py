"""Tags and notes of runs, kept beside them in one file: `.rldk/notes.json` of the folder."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from rldk.core.errors import ReadError, UsageError
from rldk.core.files import write_json
from rldk.core.text import clean
from rldk.dashboard.folder import Folder
from rldk.ingest.discovery import stamp_of

__all__ = ["NOTES", "Notes"]

NOTES = ".rldk/notes.json"
"""Where the tags and notes of a folder are."""

_MAX_BYTES = 32 << 20
_MAX_TAG, _MAX_TAGS, _MAX_NOTE = 40, 20, 2000


class Notes:
    """The tags and notes of the runs of a folder, by the name of a run: its log, and the number of the run in it."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._path = folder.path / NOTES
        self._stamp: tuple[int, int] | None = None
        self._known: dict[str, dict[str, Any]] = {}
        self.problem = ""

    def refresh(self) -> bool:
        """Read the file if it has changed; whether it was read."""
        stamp = stamp_of(self._path)
        if stamp == self._stamp:
            return False
        self._stamp, self._known, self.problem = stamp, {}, ""
        if stamp is not None:
            try:
                self._known = self._read(stamp[0])
            except (OSError, ReadError, ValueError, RecursionError) as error:
                self.problem = f"{NOTES} cannot be read: {clean(error, 200)}. Rename it to begin a new one."
        return True

    def _read(self, size: int) -> dict[str, dict[str, Any]]:
        if size > _MAX_BYTES or not self._folder.contains(self._path):
            raise ReadError("it is too large, or lies outside of the folder")
        given = json.loads(self._path.read_text(encoding="utf-8", errors="replace"))
        runs = given.get("runs") if isinstance(given, dict) else None
        if not isinstance(runs, dict):
            raise ReadError("it holds no table of runs")
        return {str(name): _checked(one.get("tags"), one.get("note")) for name, one in runs.items() if isinstance(one, dict)}

    def of(self, name: str) -> dict[str, Any]:
        """The tags and the note of a run."""
        return self._known.get(name) or {"tags": [], "note": ""}

    def change(self, names: Sequence[str], add: Iterable[str] = (), remove: Iterable[str] = (), note: str | None = None) -> None:
        """Add and remove tags of these runs, and set their note; `None` leaves the notes as they are.

        Raises:
            UsageError: the file cannot be written, or what is there cannot be read and would be lost.
        """
        self.refresh()
        if self.problem:
            raise UsageError(self.problem)
        added, removed = _tags(add), set(_tags(remove))
        known = dict(self._known)
        for name in names:
            before = self.of(name)
            tags = [tag for tag in dict.fromkeys([*before["tags"], *added]) if tag not in removed]
            made = _checked(tags, before["note"] if note is None else note)
            known[name] = made
        self._write({name: one for name, one in known.items() if one["tags"] or one["note"]})

    def _write(self, known: dict[str, dict[str, Any]]) -> None:
        if self._path.parent.exists() and not self._folder.contains(self._path.parent):
            raise UsageError(f"{self._path.parent.name} leads out of the folder: notes are not written.")
        try:
            write_json(self._path, {"version": 1, "runs": known})
        except OSError as error:
            raise UsageError(f"The note was not saved: {NOTES} cannot be written ({error.strerror or error}).") from None
        self.refresh()


def _checked(tags: Any, note: Any) -> dict[str, Any]:
    lines = (clean(line, _MAX_NOTE) for line in str(note or "")[: 2 * _MAX_NOTE].split("\n"))
    return {"tags": _tags(tags if isinstance(tags, list) else ()), "note": "\n".join(lines).strip()[:_MAX_NOTE]}


def _tags(given: Iterable[Any]) -> list[str]:
    return list(dict.fromkeys(tag for one in given if (tag := clean(str(one).strip(), _MAX_TAG))))[:_MAX_TAGS]
