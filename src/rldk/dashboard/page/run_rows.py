"""The rows of the table of runs as the page needs them: asked for once per version, searched, sorted, and as Arrow columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import pyarrow as arrow
import pyarrow.compute as compute

from rldk.comparison.grouping import shown_value
from rldk.core.text import clean
from rldk.dashboard.client import Client
from rldk.present.verdicts import VERDICTS, verdict_words

__all__ = ["ORDERS", "SHOWN", "RunRows", "columns_of", "matching", "rows_of", "setting_column", "short_names"]

Row = dict[str, Any]

JUDGING = "not judged yet"
SHOWN = (*map(verdict_words, VERDICTS), "live")
"""What the table can be limited to: verdicts, and runs that are being written."""

_LONG_NAME = 40


def _missing_last(value: Any, sign: int = 1) -> tuple[bool, Any]:
    return value is None, 0 if value is None else sign * value


ORDERS: dict[str, Any] = {
    "newest": lambda row: -row["changed"],
    "worst": lambda row: (VERDICTS.index(row["verdict"]) if row["verdict"] in VERDICTS else 99, -row["changed"]),
    "name": lambda row: row["name"],
    "highest reward": lambda row: _missing_last(row["reward"], -1),
    "lowest reward": lambda row: _missing_last(row["reward"]),
    "highest KL": lambda row: _missing_last(row["kl"], -1),
    "most steps": lambda row: _missing_last(row["last_step"], -1),
}
"""The orders of the table, by the values that they sort by."""


@dataclass(slots=True)
class RunRows:
    """The runs of a folder: their rows, the settings that differ between them, and what is to be said about them."""

    version: int = 0
    rows: list[Row] = field(default_factory=list)
    settings: list[str] = field(default_factory=list)
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def by_id(self) -> dict[str, Row]:
        return {row["id"]: row for row in self.rows}

    def of(self, ids: Sequence[str]) -> list[Row]:
        """The rows of these runs, in this order; a run that is gone is left out."""
        by_id = self.by_id
        return [by_id[one] for one in ids if one in by_id]

    @property
    def tags(self) -> list[str]:
        """All tags that any run has."""
        return sorted({tag for row in self.rows for tag in row["tags"]})

    def chosen(self, pattern: str, shown: Sequence[str], order: str) -> tuple[list[Row], str]:
        """The rows to show, in their order; and what is wrong with the pattern, if so."""
        verdicts = {verdict for verdict in VERDICTS if verdict_words(verdict) in shown}
        rows = [
            row for row in self.rows
            if (not verdicts or row["verdict"] in verdicts) and ("live" not in shown or row["status"] == "live")
        ]  # fmt: skip
        found, problem = matching([searched(row) for row in rows], pattern)
        rows = [row for row, there in zip(rows, found, strict=True) if there]
        return sorted(rows, key=ORDERS.get(order, ORDERS["newest"])), problem


def searched(row: Mapping[str, Any]) -> str:
    """The text of a run in which the search looks."""
    settings = " ".join(f"{name}={shown_value(value)}" for name, value in row["config"].items())
    parts = (row["name"], row["key"], row["framework"], row["status"], row["cause_title"], settings, *row["tags"], row["note"])
    return " ".join(clean(part, 500) for part in parts if part)


def matching(texts: Sequence[str], pattern: str) -> tuple[list[bool], str]:
    """Which texts contain a match, upper and lower case alike; and what is wrong with the pattern, if so.

    Without a pattern, and with one that is wrong, all texts match. Arrow brings the regular expressions of RE2, of which none
    takes longer than the text is long.
    """
    if not pattern.strip():
        return [True] * len(texts), ""
    try:
        found = compute.match_substring_regex(arrow.array(texts, arrow.string()), pattern.strip(), ignore_case=True)
    except (arrow.ArrowInvalid, arrow.ArrowNotImplementedError, UnicodeError) as error:
        said = str(error).split("\n")[0].removeprefix("Invalid regular expression: ")
        hint = " Look-around and back-references cannot be used." if "(?" in pattern or "\\" in pattern else ""
        signs = "Write \\. \\[ \\( \\* for these signs themselves."
        return [True] * len(texts), f"This is not a regular expression: {said}.{hint} {signs}"
    return found.to_pylist(), ""


_KNOWN: dict[str, RunRows] = {}
_LOCK = Lock()


def rows_of(client: Client) -> RunRows:
    """The runs of a folder as they are now. The rows are kept for all pages, and sent again only when they have changed."""
    known = _KNOWN.get(client.folder) or RunRows()
    answer = client.ask("table", since=known.version)
    if answer.get("rows") is None:
        known.about = answer
        return known
    found = RunRows(answer["version"], answer["rows"], answer["settings"], {**answer, "rows": None})
    with _LOCK:
        _KNOWN[client.folder] = found
    return found


def short_names(rows: Sequence[Row]) -> list[str]:
    """The names without a long beginning that all of them share: they differ in their ends."""
    names = [clean(row["name"], 200) for row in rows]
    first, last = min(names, default=""), max(names, default="")  # what these two share, all names do
    shared = first[: next((place for place, sign in enumerate(first) if last[place : place + 1] != sign), len(first))]
    cut = max(shared.rfind(sign) for sign in "/-_. ") + 1
    if len(names) < 2 or cut < 8 or max(map(len, names)) <= _LONG_NAME:
        return names
    return ["…" + name[cut:] for name in names]


def columns_of(rows: Sequence[Row], settings: Sequence[str]) -> arrow.Table:
    """The rows as the browser takes them."""
    values: dict[str, arrow.Array] = {
        "verdict": arrow.array([[verdict_words(row["verdict"]) if row["verdict"] else JUDGING] for row in rows], _LIST),
        "run": arrow.array(short_names(rows), arrow.string()),
        "status": arrow.array([row["status"] for row in rows], arrow.string()),
        "changed": arrow.array([int(1000 * row["changed"]) for row in rows], arrow.timestamp("ms", "UTC")),
        "steps": arrow.array([row["last_step"] for row in rows], arrow.int64()),
        "reward": arrow.array([row["reward"] for row in rows], arrow.float64()),
        "KL": arrow.array([row["kl"] for row in rows], arrow.float64()),
        "curve": arrow.array([_curve(row["reward_curve"]) for row in rows], arrow.list_(arrow.float32())),
        "cause": arrow.array([clean(row["cause_title"] or "", 200) for row in rows], arrow.string()),
        "framework": arrow.array([row["framework"] for row in rows], arrow.string()),
        "tags": arrow.array([row["tags"] for row in rows], _LIST),
        "note": arrow.array([clean(row["note"], 200) for row in rows], arrow.string()),
        "log": arrow.array([clean(row["key"], 300) for row in rows], arrow.string()),
    }
    for name in settings:
        values[setting_column(name)] = _one_type([row["config"].get(name) for row in rows])
    return arrow.table(values)


_LIST = arrow.list_(arrow.string())


def setting_column(name: str) -> str:
    """The column of a setting, whose name may be that of another column."""
    return f"{clean(name, 80)} "


def _curve(values: Sequence[float | None] | None) -> list[float]:
    return [value for value in values or () if value is not None]


def _one_type(values: list[Any]) -> arrow.Array:
    given = [value for value in values if value is not None]
    if all(isinstance(value, bool) for value in given):
        return arrow.array(values, arrow.bool_())
    if all(isinstance(value, (int, float)) and abs(value) < 2**53 for value in given):
        return arrow.array([None if value is None else float(value) for value in values], arrow.float64())
    return arrow.array([None if value is None else clean(shown_value(value), 200) for value in values], arrow.string())
