"""The process behind the table of runs: it answers what the page asks, and judges logs that are not in the index in between."""

from __future__ import annotations

import logging
import sys
import time
import zlib
from collections.abc import Callable
from typing import Any

from rldk.core.errors import RLDKError
from rldk.core.text import clean
from rldk.dashboard.folder import Folder
from rldk.dashboard.processes import encoded
from rldk.dashboard.reader_process import serve_pipes
from rldk.dashboard.workbench.comparer import Comparer
from rldk.dashboard.workbench.notes import Notes
from rldk.dashboard.workbench.overlay import Overlay
from rldk.dashboard.workbench.run_table import RunTable
from rldk.dashboard.workbench.settings import shown_settings

__all__ = ["Workbench", "main"]

_FRESH_SECONDS = 1.0
_OPEN_SECONDS = 0.3
_SENT = (
    "id", "key", "part", "name", "verdict", "status", "is_judged", "changed", "framework", "events", "last_step", "reward", "kl",
    "reward_curve", "cause_title",
)  # fmt: skip

logger = logging.getLogger("rldk")


class Workbench:
    """The runs of a folder as a table, as curves over each other, and compared."""

    def __init__(self, folder: Folder) -> None:
        self.table = RunTable(folder)
        self.notes = Notes(folder)
        self.overlay = Overlay(self.table)
        self.comparer = Comparer(self.table)
        self._made: tuple[float, int, dict[str, Any]] = (-1.0, -1, {})

    def work(self) -> bool:
        """Look for what is new, and judge a little of it; whether there is more to do."""
        self.table.look()
        return self.table.work()

    def answer(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The answer to a question of a page; a problem is reported in `problem`, never raised."""
        questions: dict[str, Callable[..., dict[str, Any]]] = {
            "table": self.rows, "annotate": self.annotate, "metrics": self.overlay.metrics, "curves": self.overlay.curves,
            "compare": self.comparer.compare,
        }  # fmt: skip
        try:
            return questions[name](**arguments)
        except RLDKError as error:
            return {"problem": clean(error, 1000)}
        except OSError as error:
            return {"problem": f"The file cannot be read: {error.strerror or error}."}
        except Exception as error:
            logger.exception("The dashboard could not answer %s", name)
            return {"problem": f"It cannot be shown: {type(error).__name__}: {clean(error, 500)}"}

    def rows(self, since: int = 0) -> dict[str, Any]:
        """The rows of the table; without them if they are those of the version `since`."""
        now = time.monotonic()
        self.table.look()
        self.table.open_new(_OPEN_SECONDS)
        changed = self.notes.refresh()
        made, version, answer = self._made
        if changed or version != self.table.version or now - made > _FRESH_SECONDS:
            answer = self._table()
            self._made = (now, self.table.version, answer)
        return answer if answer["version"] != since else {**answer, "rows": None}

    def _table(self) -> dict[str, Any]:
        found = self.table.rows()
        settings = shown_settings([row["config"] for row in found])
        rows = []
        for row in found:
            kept = {name: row.get(name) for name in _SENT}
            kept["config"] = {name: row["config"][name] for name in settings if name in row["config"]}
            rows.append({**kept, **self.notes.of(_note_name(row))})
        return {
            "version": zlib.crc32(encoded([rows, settings])),
            "rows": rows,
            "settings": settings,
            "waiting": self.table.waiting,
            "unopened": self.table.unopened,
            "indexed": self.table.index.is_there,
            "remarks": [one for one in (self.table.index.problem, self.notes.problem) if one],
            "parts": self.table.parts,
            "outside": self.table.outside,
            "skipped": [[clean(name), clean(why)] for name, why in self.table.skipped],
        }

    def annotate(self, runs: list[str], add: list[str], remove: list[str], note: str | None) -> dict[str, Any]:
        """Change the tags and the note of runs."""
        names = [_note_name({"key": key, **row}) for _, key, _, row in self.table.found(runs)]
        self.notes.change(names, add, remove, note)
        self._made = (-1.0, -1, {})
        return {"problem": ""}


def _note_name(row: dict[str, Any]) -> str:
    """What the notes call a run: its log, and for a later run of that log its number."""
    return f"{row['key']}#{row['number']}" if row["number"] else str(row["key"])


def main(argv: list[str]) -> None:
    """Serve the table of a folder for the process at the other end of the pipes."""
    serve_pipes(Workbench(Folder(argv[0])))


if __name__ == "__main__":
    main(sys.argv[1:])
