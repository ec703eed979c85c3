"""The process behind the table of runs: it answers what the page asks, and judges logs that are not in the index in between."""

from __future__ import annotations

import sys
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rldk.comparison.grouping import differing_settings
from rldk.core.knobs import KNOBS
from rldk.core.text import clean
from rldk.dashboard.folder import Folder
from rldk.dashboard.processes import answer_or_problem, encoded, serve_pipes
from rldk.dashboard.workbench.comparer import Comparer
from rldk.dashboard.workbench.notes import Notes
from rldk.dashboard.workbench.overlay import Overlay
from rldk.dashboard.workbench.run_table import RunTable

__all__ = ["Workbench", "main"]

_FRESH_SECONDS = 1.0
_OPEN_SECONDS = 0.3
_MAX_SETTINGS = 40
_SENT = (
    "id", "key", "part", "name", "verdict", "status", "changed", "framework", "events", "last_step", "reward", "kl",
    "reward_curve", "cause_title",
)  # fmt: skip


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
        """The answer to a question of a page."""
        questions: dict[str, Callable[..., dict[str, Any]]] = {
            "table": self.rows, "annotate": self.annotate, "metrics": self.overlay.metrics, "curves": self.overlay.curves,
            "compare": self.comparer.compare,
        }  # fmt: skip
        return answer_or_problem(lambda: questions[name](**arguments), name)

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
        settings = _shown_settings([row["config"] for row in found])
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


def _shown_settings(configs: Sequence[Mapping[str, Any]]) -> list[str]:
    """The settings that are not the same in all runs: knobs first, and texts that are different in each run last."""
    names = differing_settings([config for config in configs if config])
    return sorted(names, key=lambda name: (name not in KNOBS, _is_a_name(name, configs)))[:_MAX_SETTINGS]


def _is_a_name(setting: str, configs: Sequence[Mapping[str, Any]]) -> bool:
    values = [config[setting] for config in configs if setting in config]
    return len(values) > 2 and all(isinstance(value, str) for value in values) and len(set(values)) == len(values)


def _note_name(row: dict[str, Any]) -> str:
    """What the notes call a run: its log, and for a later run of that log its number."""
    return f"{row['key']}#{row['number']}" if row["number"] else str(row["key"])


def main(argv: list[str]) -> None:
    """Serve the table of a folder for the process at the other end of the pipes."""
    serve_pipes(Workbench(Folder(argv[0])))


if __name__ == "__main__":
    main(sys.argv[1:])
