"""What a run wrote beside its log: checkpoints and alerts."""

from __future__ import annotations

import csv
import json
from itertools import islice
from pathlib import Path
from typing import Any

from rldk.core.text import clean

__all__ = ["alerts_in", "checkpoints_in"]

_MOST_BYTES = 8 << 20
_MOST_CHECKPOINTS = 2000
_MOST_ALERTS = 500


def checkpoints_in(path: Path | None) -> dict[str, Any]:
    """The columns and rows of a table of checkpoints; none of either where there is no such file."""
    if path is None:
        return {"columns": [], "rows": []}
    with path.open(newline="", encoding="utf-8", errors="replace") as file:
        table = csv.reader(line.replace("\0", "") for line in file)
        columns = [clean(name, 60) for name in next(table, [])][:60]
        rows = [[clean(cell, 300) for cell in row[: len(columns)]] for row in islice(table, _MOST_CHECKPOINTS)]
    return {"columns": columns, "rows": [row + [""] * (len(columns) - len(row)) for row in rows]}


def alerts_in(path: Path | None) -> dict[str, Any]:
    """The last alerts of a file, each with what it says by name."""
    if path is None or path.stat().st_size > _MOST_BYTES:
        return {"alerts": []}
    try:
        given = json.loads(path.read_text(encoding="utf-8", errors="replace"))
    except (ValueError, RecursionError):
        return {"alerts": [], "problem": "The alerts beside this run are half written, or no JSON."}
    given = given.get("alerts", []) if isinstance(given, dict) else given
    alerts = [alert for alert in given if isinstance(alert, dict)][-_MOST_ALERTS:] if isinstance(given, list) else []
    return {"alerts": [{clean(name, 40): _cell(value) for name, value in islice(alert.items(), 30)} for alert in alerts]}


def _cell(value: Any) -> Any:
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else clean(value, 500)
