"""The recorded runs on disk: one folder for each, compressed, and written whole or not at all.

recorded/ID/events.jsonl.zst    rldk's event log, with probes and samples
recorded/ID/plain.json.zst      the trainer's own log: `log_history` of `trainer_state.json`, or a tracker's rows
recorded/ID/outcome.json.zst    what the outcome probe measured, and how the run was made
"""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import zstandard

__all__ = ["EVENTS", "OUTCOME", "PLAIN", "RECORDED", "read_json", "read_text", "rounded", "write_run"]

RECORDED = Path(__file__).parent / "recorded"
EVENTS, PLAIN, OUTCOME = "events.jsonl.zst", "plain.json.zst", "outcome.json.zst"
DIGITS = 6
"""Significant digits that numbers are stored with: no rule looks closer, and files are a third of the size."""


def rounded(value: Any) -> Any:
    """Every number in a document, to six significant digits; zero stays zero and tiny stays tiny."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else value
    if isinstance(value, dict):
        return {key: inner if key == "wall_time" else rounded(inner) for key, inner in value.items()}
    return [rounded(inner) for inner in value] if isinstance(value, list) else value


def _compressed(text: str) -> bytes:
    return zstandard.ZstdCompressor(level=19).compress(text.encode())


def read_text(path: Path) -> str:
    with path.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as reader:
        return reader.read().decode()


def read_json(path: Path) -> Any:
    return json.loads(read_text(path))


def _without_answer(row: dict[str, Any]) -> dict[str, Any]:
    """An event without the note that names the injected fault."""
    kept = [note for note in row.get("notes", []) if not note.startswith("injected ")]
    return {name: value for name, value in row.items() if name != "notes"} | ({"notes": kept} if kept else {})


def write_run(folder: Path, events: Path, plain: Any, outcome: dict[str, Any]) -> None:
    """Store a run: into a folder beside its own, which then takes its place."""
    made = folder.with_name(f".{folder.name}")
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    rows = [json.loads(line) for line in events.read_text().splitlines()] if events.exists() else []
    (made / EVENTS).write_bytes(_compressed("".join(json.dumps(rounded(_without_answer(row))) + "\n" for row in rows)))
    (made / PLAIN).write_bytes(_compressed(json.dumps(rounded(plain))))
    (made / OUTCOME).write_bytes(_compressed(json.dumps(outcome)))
    shutil.rmtree(folder, ignore_errors=True)
    made.rename(folder)
