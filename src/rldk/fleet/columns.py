"""The rows of the index as columns with fixed types; each setting that any run has is a column of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rldk.core.errors import require
from rldk.core.jsonio import MAX_STEP, to_number
from rldk.core.text import escaped
from rldk.fleet.row import CONFIG

__all__ = ["COLUMNS", "to_columns"]

COLUMNS: dict[str, str] = {
    "verdict": "string", "name": "string", "path": "string", "number": "int32", "run_id": "string", "state": "string",
    "reason": "string", "framework": "string", "adapter": "string", "kind": "string", "events": "int64", "first_step": "int64",
    "last_step": "int64", "started": "double", "ended": "double", "seconds": "double", "reward": "double", "kl": "double",
    "reward_metric": "string", "reward_curve": "list", "kl_curve": "list", "entropy_curve": "list", "length_curve": "list",
    "cause": "string", "cause_title": "string", "incidents": "names", "anomalies": "names",
    "onset_step": "int64", "last_good_step": "int64", "recovered_step": "int64", "lost_share": "double", "coverage": "string",
    "checks_active": "int32", "checks_total": "int32", "health": "double", "skipped_lines": "int64", "part_of": "string",
    "error": "string", "file_bytes": "int64", "file_changed": "int64", "marks": "marks",
}  # fmt: skip
"""The columns of every index and their types, in the order of the table; then come the settings, as `config.<name>`."""


def to_columns(rows: Sequence[Mapping[str, Any]]) -> Any:
    """The rows as a `pyarrow.Table`."""
    arrow = require("pyarrow", extra="fleet", purpose="The index")
    types = {
        "string": arrow.string(), "int32": arrow.int32(), "int64": arrow.int64(), "double": arrow.float64(),
        "list": arrow.list_(arrow.float32()), "names": arrow.list_(arrow.string()), "marks": arrow.list_(arrow.uint32()),
    }  # fmt: skip
    data = {name: arrow.array([_storable(row.get(name)) for row in rows], types[kind]) for name, kind in COLUMNS.items()}
    for name in sorted({name for row in rows for name in row.get("config") or {}}):
        values = [_storable((row.get("config") or {}).get(name)) for row in rows]
        data[CONFIG + escaped(name)] = arrow.array(*_one_type(values, arrow))
    return arrow.table(data)


def _storable(value: Any) -> Any:
    """A value as a column takes it: text that is not Unicode is escaped, and a whole number beyond 64 bits is a float."""
    if isinstance(value, str):
        return escaped(value)
    if isinstance(value, list) and value and isinstance(value[0], str):
        return [escaped(one) for one in value]
    return to_number(value) if isinstance(value, int) and abs(value) > MAX_STEP else value


def _one_type(values: list[Any], arrow: Any) -> tuple[list[Any], Any]:
    """Values of one setting in one type: truth values, numbers, or text where they differ."""
    given = [value for value in values if value is not None]
    if _all(given, bool):
        return values, arrow.bool_()
    if _all(given, (int, float)):
        return [None if value is None else float(value) for value in values], arrow.float64()
    return [None if value is None else str(value) for value in values], arrow.string()


def _all(values: Iterable[Any], kinds: type | tuple[type, ...]) -> bool:
    return all(isinstance(value, kinds) for value in values)
