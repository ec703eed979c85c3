"""Records from files: JSON lines, JSON, parquet, text and `datasets` folders; the shapes of public data sets become one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from data_config import NEEDED, DataError, Source

__all__ = ["Misshapen", "iter_records", "shape_record"]

Record = dict[str, Any]
_ROLES = {
    "user": "user", "human": "user", "prompter": "user",
    "assistant": "assistant", "gpt": "assistant", "model": "assistant",
    "system": "system",
}  # fmt: skip
_ASKS = ("prompt", "question", "instruction", "query", "input")
_REPLIES = ("response", "answer", "output", "completion", "reply")


class Misshapen(ValueError):
    """One record that is not of the shape its stage needs; the message says why."""


def iter_records(source: Source) -> Iterator[tuple[str, Any]]:
    """The location of each record and the record itself; what cannot be read is returned as `Misshapen`."""
    if not source.path.exists():
        raise DataError(
            f"Source {source.name}: no {source.path}. `python trainer/generate_corpus.py` writes the project's own sets; "
            f"for your own data set `path` in the data config."
        )
    readers = {"jsonl": _jsonl, "json": _json, "parquet": _parquet, "text": _text, "datasets": _datasets}
    yield from readers[source.format](source.path)


def _jsonl(path: Path) -> Iterator[tuple[str, Any]]:
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                try:
                    yield f"{path}:{number}", json.loads(line)
                except ValueError as error:
                    yield f"{path}:{number}", Misshapen(f"not JSON: {error}")


def _json(path: Path) -> Iterator[tuple[str, Any]]:
    try:
        loaded = json.loads(path.read_bytes())
    except ValueError as error:
        raise DataError(f"{path} is not JSON: {error}. Lines of JSON are `format: jsonl`.") from None
    if isinstance(loaded, dict):  # {"data": [...]}: the one list in it
        lists = [value for value in loaded.values() if isinstance(value, list)]
        loaded = lists[0] if len(lists) == 1 else loaded
    if not isinstance(loaded, list):
        raise DataError(f"Expected {path} to hold a list of records, got {type(loaded).__name__}.")
    for number, record in enumerate(loaded):
        yield f"{path}[{number}]", record


def _text(path: Path) -> Iterator[tuple[str, Any]]:
    """A text file with one record per line, or one per paragraph if blank lines separate them."""
    text = path.read_text(encoding="utf-8")
    parts = text.split("\n\n") if "\n\n" in text.strip() else text.splitlines()
    for number, part in enumerate(parts, start=1):
        if part.strip():
            yield f"{path} part {number}", {"text": part.strip()}


def _parquet(path: Path) -> Iterator[tuple[str, Any]]:
    import pyarrow.parquet

    number = 0
    for batch in pyarrow.parquet.ParquetFile(path).iter_batches():
        for record in batch.to_pylist():
            yield f"{path} row {number}", record
            number += 1


def _datasets(path: Path) -> Iterator[tuple[str, Any]]:
    """A folder written by `Dataset.save_to_disk`; of a dictionary of splits, the one called train."""
    import datasets

    loaded = datasets.load_from_disk(str(path))
    if isinstance(loaded, datasets.DatasetDict):
        if "train" not in loaded:
            raise DataError(f"{path} holds the splits {sorted(loaded)} and none called train; name one by its folder.")
        loaded = loaded["train"]
    for number, record in enumerate(loaded):
        yield f"{path} row {number}", record


def shape_record(raw: Any, stage: str, fields: dict[str, str], columns: tuple[str, ...] = ()) -> Record:
    """The record as its stage needs it, from any of the shapes that public sets have; `Misshapen` if it has none of them."""
    if isinstance(raw, Misshapen):
        raise raw
    if not isinstance(raw, dict):
        raise Misshapen(f"expected an object, got {type(raw).__name__}")
    raw = {**raw, **{needed: raw[name] for needed, name in fields.items() if name in raw}}
    shaped = {"sft": _sft, "dpo": _dpo, "ppo": _ppo}.get(stage, _plain)(raw)
    if shaped is None:
        raise Misshapen(f"has {sorted(map(str, raw))}, needs {list(NEEDED[stage])}")
    if missing := [name for name in columns if name not in raw]:
        raise Misshapen(f"has {sorted(map(str, raw))}, needs the columns {missing}")
    return shaped | {name: raw[name] for name in columns}


def _plain(raw: Record) -> Record | None:
    text = raw.get("text", raw.get("content"))
    return {"text": text} if isinstance(text, str) else None


def _sft(raw: Record) -> Record | None:
    messages = _messages(raw.get("messages", raw.get("conversations")))
    if messages is None and (ask := _first(raw, _ASKS)) is not None and (reply := _first(raw, _REPLIES)) is not None:
        context = raw.get("input") if raw.get("instruction") else None
        ask = f"{ask}\n{context}" if isinstance(context, str) and context.strip() else ask
        messages = [{"role": "user", "content": ask}, {"role": "assistant", "content": reply}]
    if messages is None:
        return None
    if not any(message["role"] == "assistant" for message in messages):
        raise Misshapen("no message of the assistant to learn from")
    return {"messages": messages}


def _dpo(raw: Record) -> Record | None:
    chosen, rejected, prompt = raw.get("chosen"), raw.get("rejected"), _first(raw, _ASKS)
    if isinstance(chosen, list) and isinstance(rejected, list):  # whole conversations, alike up to the last message
        one, other = _messages(chosen), _messages(rejected)
        if not one or not other or one[:-1] != other[:-1]:
            raise Misshapen("chosen and rejected are not the same conversation up to the last message")
        if prompt is None and len(one) > 2:
            raise Misshapen("a conversation of several turns; give it as `prompt`, `chosen` and `rejected`")
        prompt = prompt if prompt is not None else one[0]["content"] if len(one) == 2 else None
        chosen, rejected = one[-1]["content"], other[-1]["content"]
    if not (isinstance(prompt, str) and isinstance(chosen, str) and isinstance(rejected, str)):
        return None
    if chosen == rejected:
        raise Misshapen("chosen and rejected are the same")
    return {"prompt": prompt, "chosen": chosen, "rejected": rejected}


def _ppo(raw: Record) -> Record | None:
    text = raw.get("text") if isinstance(raw.get("text"), str) else _first(raw, _ASKS)
    if text is None and (messages := _messages(raw.get("messages", raw.get("conversations")))):
        asked = [message["content"] for message in messages if message["role"] == "user"]
        text = asked[0] if asked else None
    return {"text": text} if text is not None else None


def _first(raw: Record, names: tuple[str, ...]) -> str | None:
    return next((raw[name] for name in names if isinstance(raw.get(name), str) and raw[name].strip()), None)


def _messages(given: Any) -> list[dict[str, str]] | None:
    """Messages with `role` and `content`, also where they are called `from` and `value`."""
    if not isinstance(given, list) or not given:
        return None
    messages = []
    for part in given:
        role = part.get("role", part.get("from")) if isinstance(part, dict) else None
        content = part.get("content", part.get("value")) if isinstance(part, dict) else None
        if role not in _ROLES or not isinstance(content, str):
            raise Misshapen(f"expected messages with a role among {sorted(set(_ROLES.values()))} and text, got {part!r:.60}")
        messages.append({"role": _ROLES[role], "content": content})
    return messages
