"""Stable-Baselines3 on a console: a table for each rollout, with `|    ep_rew_mean | 21.5 |` under `| rollout/ | |`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from rldk.core.jsonio import to_number
from rldk.ingest.adapter import Adapter
from rldk.ingest.formats import console

__all__ = ["SB3ConsoleAdapter"]

_EDGE = b"-" * 12
_ROW = re.compile(r"^\| ( {0,3})([^\s|][^|\n]*?) *\| ([^|\n]*?) *\|$", re.MULTILINE)
_MARK = re.compile(rb"^\| {4,5}(?:total_timesteps|ep_rew_mean|approx_kl|n_updates) +\| [^|\n]*\|\r?$", re.MULTILINE)
_STEP = "time/total_timesteps"
_SECTIONS = {
    "rollout/": ("ep_len_mean", "ep_rew_mean", "exploration_rate"),
    "time/": ("episodes", "fps", "iterations", "time_elapsed", "total_timesteps"),
    "train/": (
        "actor_loss", "approx_kl", "clip_fraction", "clip_range", "clip_range_vf", "critic_loss", "ent_coef", "ent_coef_loss",
        "entropy_loss", "explained_variance", "learning_rate", "loss", "n_updates", "policy_gradient_loss", "policy_loss", "std",
        "value_loss",
    ),
}  # fmt: skip
_SECTION_OF = {key: section for section, keys in _SECTIONS.items() for key in keys}
"""The section that each key of the library's own stands under."""


class SB3ConsoleAdapter(Adapter):
    """Reads the tables that Stable-Baselines3 prints with `verbose=1`; each is a row, and its timesteps are the step.

    The library writes keys in their order, so a table whose keys are not in it or stand under another section than their
    own, whose lines differ in length, or that has no timesteps was mixed with other output or cut off, and is left out.
    """

    name: ClassVar[str] = "sb3_console"
    title: ClassVar[str] = "Stable-Baselines3 console output"
    framework: str | None = "sb3"
    max_rows: ClassVar[int] = console.MAX_ROWS

    def can_handle(self) -> bool:
        self.why = "no tables of Stable-Baselines3"
        if not console.is_console(self.source) or next(console.iter_head(self.source, _MARK), None) is None:
            return False
        self.why = "tables with total_timesteps, as Stable-Baselines3 prints them"
        return True

    def read(self) -> Iterator[Mapping[str, Any]]:
        table: list[bytes] = []
        opened = 0
        self.problems.last_row = 0
        for number, raw in self.source.lines(self.problems, self.progress):
            line = console.plain_line(raw).rstrip(b"\r")
            whole = number != self.problems.unterminated
            if line[:1] == b"|" and opened and whole:
                table.append(line)
            elif line[:12] == _EDGE and not line.strip(b"-") and whole:
                if table:
                    row = _row_of(table, len(line))
                    if row is not None:
                        self.problems.last_row = number
                        yield row
                    else:
                        self.problems.add(opened, "an incomplete table")
                    table, opened = [], 0
                else:
                    opened = number
            elif opened:
                self.problems.add(number, "not a line of the table around it")
                table.append(b"")  # spoils it: what stood here may have been a line of it
        if opened and table:
            self.problems.add(opened, "a table without an end")


def _row_of(table: list[bytes], width: int) -> dict[str, float] | None:
    """The table as a row by its keys with their section before them; `None` where it is not whole."""
    lines = _ROW.findall(b"\n".join(table).decode("utf-8", "replace"))
    if len(lines) != len(table) or any(len(line) != width for line in table):
        return None
    row: dict[str, float] = {}
    section = last = ""
    for indent, key, value in lines:
        if not value and key.endswith("/"):
            section = key
            continue
        name = section + key if indent else key
        if name <= last or (indent and _SECTION_OF.get(key, section) != section):
            return None
        last = name
        if (number := to_number(value)) is not None:
            row[name] = number
    return row if _STEP in row else None
