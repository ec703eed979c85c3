"""Rows out of W&B's records, by the definitions of the `wandb` package."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from operator import itemgetter
from typing import Any

from rldk.core.errors import require
from rldk.core.jsonio import loads
from rldk.core.run_config import clean_settings
from rldk.log.problems import LineProblems

__all__ = ["RunInfo", "iter_history", "plain_row"]

_BY_KEY = itemgetter(0)
_MOST_SETTINGS = 40


class RunInfo:
    """What the file says of its run: its id, its settings, and a sentence for people with its name, project and settings."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.note = ""
        self.settings: dict[str, Any] = {}

    def take(self, run: Any) -> None:
        """Learn from the record of the run."""
        self.run_id = run.run_id or self.run_id
        for update in run.config.update:
            key = "/".join(update.nested_key) or update.key
            if key != "_wandb":
                self.settings[key] = _parse(update.value_json)
        plain = {key: value for key, value in clean_settings(self.settings).items() if isinstance(value, (str, int, float))}
        settings = dict(islice(plain.items(), _MOST_SETTINGS))
        names = [run.display_name and f"named {run.display_name!r}", run.project and f"of the project {run.project!r}"]
        said = ", ".join(f"{key}={value!s:.80}" for key, value in settings.items())
        self.note = " ".join(filter(None, [f"W&B run {self.run_id}", *names])) + (f" with {said}" if said else "")


def iter_history(records: Iterable[bytes], info: RunInfo, problems: LineProblems) -> Iterator[dict[str, Any]]:
    """The rows of the history, their keys in the order of the alphabet: the file has them in none."""
    purpose = "Reading .wandb files"
    record_type = require("wandb.proto.wandb_internal_pb2", extra="trackers", purpose=purpose).Record
    decode_error = require("google.protobuf.message", extra="trackers", purpose=purpose).DecodeError
    for number, data in enumerate(records, 1):
        try:
            record = record_type.FromString(data)
        except decode_error:
            problems.add(number, "the record cannot be understood")
            continue
        if record.HasField("history"):
            row = plain_row(_cells(record.history.item))
            if "_step" not in row and record.history.HasField("step"):
                row["_step"] = record.history.step.num
            row["run_id"] = info.run_id
            yield row
        elif record.HasField("run"):
            info.take(record.run)


def _cells(items: Any) -> list[tuple[str, Any]]:
    """Keys and values; all values of a row are parsed in one go where that works."""
    keys: list[str] = []
    texts: list[str] = []
    for item in items:
        keys.append("/".join(item.nested_key) or item.key)
        texts.append(item.value_json)
    values = _parse(f"[{','.join(texts)}]")
    if type(values) is not list or len(values) != len(keys):
        values = [_parse(text) for text in texts]
    return sorted(zip(keys, values, strict=True), key=_BY_KEY)


def plain_row(cells: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """A row without lists, and without media (histograms, images, tables), which are marked with a `_type`."""
    row = {key: value for key, value in cells if not _is_media(value)}
    if media := tuple(key.removesuffix("_type") for key in row if key.endswith("/_type")):
        return {key: value for key, value in row.items() if not key.startswith(media)}
    return row


def _is_media(value: Any) -> bool:
    return type(value) is list or (type(value) is dict and "_type" in value)


def _parse(text: str) -> Any:
    """The value of a JSON text; `None` where it is none."""
    try:
        return loads(text.encode())
    except ValueError:
        return None
