"""Reads records from files, folders and the hub, and brings the formats of public data sets into one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from checkpoint import CheckpointError
from data_config import NEEDED, DataError, Source
from hub import local_folder

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
    """A record without the format that its stage needs; the message says why."""


def iter_records(source: Source) -> Iterator[tuple[str, Any]]:
    """The location of each record and the record itself; what cannot be read is returned as `Misshapen`."""
    if source.format == "hub":
        yield from _hub(source)
        return
    if not source.path.exists():
        raise DataError(
            f"Source {source.name}: no {source.path}. `python trainer/generate_corpus.py` writes the project's own sets; "
            f"for your own data set `path` in the data config."
        )
    if source.format == "datasets":
        yield from _datasets(source)
        return
    readers = {"jsonl": _jsonl, "json": _json, "parquet": _parquet, "text": _text}
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


def _datasets(source: Source) -> Iterator[tuple[str, Any]]:
    """A folder written by `Dataset.save_to_disk`; of a dictionary of splits, the one in the config."""
    import datasets

    loaded = datasets.load_from_disk(str(source.path))
    if isinstance(loaded, datasets.DatasetDict):
        if source.split not in loaded:
            raise DataError(
                f"{source.path} holds the splits {sorted(loaded)} but not {source.split}; set `split` to one of them."
            )
        loaded = loaded[source.split]
    for number, record in enumerate(loaded):
        yield f"{source.path} row {number}", record


def _hub(source: Source) -> Iterator[tuple[str, Any]]:
    """A data set on the hub, by way of the local cache."""
    import datasets

    name = str(source.path)
    try:
        folder = local_folder(name, f"source {source.name}: `hub`", "dataset", source.files)
    except CheckpointError as error:
        raise DataError(str(error)) from error
    given: dict[str, Any] = {"data_files": {source.split: list(source.files)}} if source.files else {"name": source.subset}
    try:
        loaded = datasets.load_dataset(str(folder), split=source.split, **given)
    except (ValueError, FileNotFoundError, datasets.exceptions.DatasetsError) as error:
        raise DataError(
            f"Source {source.name}: {name} cannot be loaded: {error}. Name one of its splits by `split`, a configuration by "
            "`subset`, or files by `files`."
        ) from error
    for number, record in enumerate(loaded):
        yield f"{name} {source.split} row {number}", record


def shape_record(raw: Any, stage: str, fields: dict[str, str], columns: tuple[str, ...] = (), system: str = "") -> Record:
    """The record as its stage needs it, from any format of public data sets; `Misshapen` if it has none of them.

    `fields` may name a part of an object (`reward_model.ground_truth`); `system` goes before conversations without such a prompt.
    """
    if isinstance(raw, Misshapen):
        raise raw
    if not isinstance(raw, dict):
        raise Misshapen(f"expected an object, got {type(raw).__name__}")
    found = {needed: _part(raw, name) for needed, name in fields.items()}
    raw = {**raw, **{needed: value for needed, value in found.items() if value is not None}}
    shaped = {"sft": _sft, "dpo": _dpo, "ppo": _ppo}.get(stage, _plain)(raw, system)
    if shaped is None:
        raise Misshapen(f"has {sorted(map(str, raw))}, needs {list(NEEDED[stage])}")
    if missing := [name for name in columns if name not in raw]:
        raise Misshapen(f"has {sorted(map(str, raw))}, needs the columns {missing}")
    return shaped | {name: raw[name] for name in columns}


def _part(raw: Record, name: str) -> Any:
    """A field by its name, or by the names of the objects around it, joined by dots."""
    if name in raw:
        return raw[name]
    found: Any = raw
    for key in name.split("."):
        found = found.get(key) if isinstance(found, dict) else None
    return found


def _plain(raw: Record, system: str) -> Record | None:
    """Plain text; a conversation also has `messages`, to which the chat template is applied."""
    text = raw.get("text", raw.get("content"))
    if isinstance(text, str):
        return {"text": text}
    messages = _messages(raw.get("messages", raw.get("conversations")))
    return {"text": "\n".join(message["content"] for message in messages), "messages": messages} if messages else None


def _sft(raw: Record, system: str) -> Record | None:
    messages = _messages(raw.get("messages", raw.get("conversations")))
    if messages is None and (ask := _first(raw, _ASKS)) is not None and (reply := _first(raw, _REPLIES)) is not None:
        context = raw.get("input") if raw.get("instruction") else None
        ask = f"{ask}\n{context}" if isinstance(context, str) and context.strip() else ask
        messages = [{"role": "user", "content": ask}, {"role": "assistant", "content": reply}]
    if messages is None:
        return None
    if not any(message["role"] == "assistant" for message in messages):
        raise Misshapen("no message of the assistant to learn from")
    return {"messages": _with_system(messages, system)}


def _dpo(raw: Record, system: str) -> Record | None:
    """`prompt` is a text, or messages where there are several turns or a system prompt."""
    chosen, rejected = raw.get("chosen"), raw.get("rejected")
    prompt: Any = _messages(raw["prompt"]) if isinstance(raw.get("prompt"), list) else _first(raw, _ASKS)
    if isinstance(chosen, list) and isinstance(
        rejected, list
    ):  # whole conversations, alike up to the last message; or answers alone
        one, other = _messages(chosen), _messages(rejected)
        if not one or not other or one[:-1] != other[:-1] or any(talk[-1]["role"] != "assistant" for talk in (one, other)):
            raise Misshapen("chosen and rejected are not the same conversation up to the assistant's last message")
        prompt = one[:-1] or prompt
        chosen, rejected = one[-1]["content"], other[-1]["content"]
    if isinstance(prompt, str):
        prompt = [{"role": "user", "content": prompt}]
    if not (prompt and isinstance(chosen, str) and isinstance(rejected, str)):
        return None
    if chosen == rejected:
        raise Misshapen("chosen and rejected are the same")
    return {"prompt": _alone(_with_system(prompt, system)), "chosen": chosen, "rejected": rejected}


def _ppo(raw: Record, system: str) -> Record | None:
    """`text` is the user's last message. If the prompt is longer, `messages` has all of it."""
    text: Any = raw.get("text") if isinstance(raw.get("text"), str) else _first(raw, _ASKS)
    given = [raw.get(name) for name in ("prompt", "messages", "conversations")]
    talk = next((_messages(one) for one in given if isinstance(one, list)), None) if text is None else None
    if talk:
        last = max((place for place, message in enumerate(talk) if message["role"] == "user"), default=-1)
        talk = talk[: last + 1]
    messages = talk or ([{"role": "user", "content": text}] if text is not None else [])
    if not messages:
        return None
    messages = _with_system(messages, system)
    alone = _alone(messages)
    return {"text": alone} if isinstance(alone, str) else {"text": messages[-1]["content"], "messages": messages}


def _with_system(messages: list[dict[str, str]], system: str) -> list[dict[str, str]]:
    """With the system prompt of the data config, unless the conversation has one."""
    return [{"role": "system", "content": system}, *messages] if system and messages[0]["role"] != "system" else messages


def _alone(messages: list[dict[str, str]]) -> str | list[dict[str, str]]:
    """A single message of the user as its text."""
    return messages[0]["content"] if len(messages) == 1 and messages[0]["role"] == "user" else messages


def _first(raw: Record, names: tuple[str, ...]) -> str | None:
    return next((raw[name] for name in names if isinstance(raw.get(name), str) and raw[name].strip()), None)


def _messages(given: Any) -> list[dict[str, str]] | None:
    """Messages with `role` and `content`, which may be called `from` and `value`."""
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
