"""Questions to the index in SQL: which runs, in which order. Nothing but the index can be read by them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rldk.core.errors import UsageError, require
from rldk.core.knobs import setting_key
from rldk.core.text import did_you_mean
from rldk.core.verdicts import VERDICTS
from rldk.fleet.index import Index
from rldk.fleet.row import CONFIG

__all__ = ["ask", "find_runs"]

_TEXT_OR_SETTING = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\bconfig\.([A-Za-z_][\w.]*)")
_RUNS = "error IS NULL AND part_of IS NULL"


def find_runs(index: Index, where: str = "", order: str = "", limit: int | None = None) -> list[dict[str, Any]]:
    """The runs of an index that fulfil a condition in SQL, such as `verdict = 'critical' and config.lr > 1e-5`.

    Files without a run, and checkpoints that hold the beginning of a longer run, are not runs. By default the worst come first.
    """
    condition = f"{_RUNS} AND ({where})" if where.strip() else _RUNS
    rank = f"list_position({list(VERDICTS)}, verdict), name"
    query = f"SELECT * EXCLUDE (marks) FROM runs WHERE {condition} ORDER BY {order.strip() or rank}"
    return ask(index, query + (f" LIMIT {int(limit)}" if limit is not None else ""))


def ask(index: Index, query: str) -> list[dict[str, Any]]:
    """The answer to a query over the table `runs`; a setting is written `config.name`, by any name its framework gives it."""
    duckdb = require("duckdb", extra="fleet", purpose="Searching the index")
    connection = duckdb.connect(":memory:", config={"enable_external_access": "false", "lock_configuration": "true"})
    try:
        connection.register("runs", index.table)
        answer = connection.execute(_with_settings(query, index.table.column_names))
        names = [column[0] for column in answer.description]
        return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]
    except duckdb.Error as error:
        said, columns = str(error).split("\n")[0].rstrip("."), _listed(index.table.column_names)
        raise UsageError(f"The condition cannot be used: {said}. Columns: {columns}.") from None
    finally:
        connection.close()


def _listed(names: Sequence[str]) -> str:
    return ", ".join(name for name in names if not name.startswith(CONFIG) and name != "marks") + ", config.NAME"


def _with_settings(query: str, columns: Sequence[str]) -> str:
    """The query with each setting as the name of its column; texts in quotes stay as they are."""
    known = {name.removeprefix(CONFIG): name for name in columns if name.startswith(CONFIG)}

    def column(found: re.Match[str]) -> str:
        return found[0] if found[1] is None else '"' + _column_of(found[1], known).replace('"', '""') + '"'

    return _TEXT_OR_SETTING.sub(column, query)


def _column_of(setting: str, known: Mapping[str, str]) -> str:
    """The column of a setting: by its own name, or by another name of the same knob (`lr` is `learning_rate`)."""
    key = setting_key(setting, known)
    if key is not None:
        return known[key]
    raise UsageError(f"No run has the setting {setting!r}.{did_you_mean(setting, known) or f' Settings: {_first(known)}.'}")


def _first(known: Mapping[str, str]) -> str:
    return ", ".join(list(known)[:20]) or "none is known"
