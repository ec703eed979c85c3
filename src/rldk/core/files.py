"""Results as strict JSON, and files that are whole or not there."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import Any

from rldk.core.jsonio import plain

__all__ = ["RUN_FILES", "file_name", "replacing", "strict", "write_json", "write_text"]

RUN_FILES = (
    r"metrics\.csv", r"alerts\.json", r"config\.json", r"final_report\.json", r"health_summary\.json", r"checkpoint_summary\.csv",
    r"samples\.jsonl", r"comprehensive_metrics\.(?:csv|json)", r"comprehensive_analysis(?:_step_-?\d+)?\.json", "tensorboard",
)  # fmt: skip
"""What follows `R_` in the names of the files and folders that a monitor writes beside the event log of a run, `R_events.jsonl`:
regular expressions."""


def strict(value: Any) -> Any:
    """`value` as strict JSON holds it: a number that is not finite becomes `None`, a record its dictionary."""
    if isinstance(value, float):
        return value if isfinite(value) else None
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, (list, tuple)):
        return [strict(inner) for inner in value]
    if isinstance(value, Mapping):
        return {str(key): strict(inner) for key, inner in value.items()}
    if hasattr(value, "to_dict"):
        return strict(value.to_dict())
    return strict(plain(value))


def write_json(path: str | os.PathLike[str], value: Any) -> Path:
    """Write `value` as JSON; a reader sees the old file or the new one, never a half."""
    return write_text(path, json.dumps(strict(value), indent=2, allow_nan=False) + "\n")


def write_text(path: str | os.PathLike[str], text: str) -> Path:
    """Write `text` as UTF-8; a reader sees the old file or the new one, never a half. A pipe or device is written to as it is."""
    if os.path.exists(path) and not os.path.isfile(path):  # noqa: PTH110, PTH113
        with open(path, "w", encoding="utf-8", newline="") as file:  # noqa: PTH123  renaming over /dev/null would replace it
            file.write(text)
        return Path(path)
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8", newline="")
    return Path(path)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Write to the path that this gives, which lies beside `path`: at the end it is on the disk and renamed to `path`.

    A reader sees the old file or the new one, and an error leaves the old one.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    os.close(handle)
    part = Path(name)
    try:
        yield part
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        part.chmod(0o666 & ~_umask())
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def file_name(text: str) -> str:
    """Text as the name of a file that stays in its folder: letters, digits, `-`, `_` and `.`, at most 80 of them."""
    kept = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip(".-")
    return kept[:80] or "run"
