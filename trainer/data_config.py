"""Data configs: the sources of a stage, their mixture, and where the mixed file is written."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

__all__ = ["FORMATS", "NEEDED", "DataConfig", "DataError", "Source", "read_config"]

# What a record of each stage must have; every prepared record has `source` beside it.
NEEDED: dict[str, tuple[str, ...]] = {
    "pretrain": ("text",),
    "midtrain": ("text",),
    "sft": ("messages",),
    "dpo": ("prompt", "chosen", "rejected"),
    "ppo": ("text",),
}
FORMATS = ("jsonl", "json", "parquet", "text", "datasets", "hub")
_ENDINGS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json", ".parquet": "parquet", ".txt": "text", ".md": "text"}


class DataError(ValueError):
    """Data or a data config that cannot be used; the message says what, where, and what to do."""


@dataclass(frozen=True)
class Source:
    """One place that records come from."""

    name: str
    path: Path  # or the name of a data set on the hub
    format: str
    weight: float | None = None  # its share of the mixture, relative to the other weights
    limit: int | None = None  # at most so many of its records
    repeat: int = 1  # how often each record may be used to reach the weight
    fields: dict[str, str] = field(default_factory=dict)  # name the stage needs: name the source has
    columns: tuple[str, ...] = ()  # further columns of a record, for the reward function
    system: str = ""  # system prompt of conversations that have none
    split: str = "train"  # of a data set with several
    subset: str | None = None  # configuration of a data set on the hub
    files: tuple[str, ...] = ()  # of the hub: only these, by patterns


@dataclass(frozen=True)
class DataConfig:
    """A mixture for one stage."""

    path: Path
    stage: str
    output: Path
    sources: tuple[Source, ...]
    seed: int = 42
    max_records: int | None = None  # of the whole mixture
    max_chars: int | None = None  # a longer record is left out
    held_out: tuple[Source, ...] = ()  # prompts for evaluation, which are never trained on
    max_bad: float = 0.05  # fail if more than this share of the records has a wrong shape


def read_config(path: str | Path) -> DataConfig:
    """Read a YAML data config; every error names the file and the key."""
    path = Path(path)
    if not path.is_file():
        raise DataError(f"No data config {path}. The data configs of this project are in config/data/.")
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise DataError(f"{path} is not YAML: {error}") from None
    known = {"stage", "output", "sources", "held_out", "seed", "max_records", "max_chars", "max_bad"}
    _check_keys(raw, known, {"stage", "output", "sources"}, str(path))
    if raw["stage"] not in NEEDED:
        raise DataError(f"{path}: Expected `stage` to be one of {list(NEEDED)}, got {raw['stage']!r}.")
    if not isinstance(raw["sources"], list) or not raw["sources"]:
        raise DataError(f"{path}: Expected `sources` to be a list with at least one source, got {raw['sources']!r:.80}.")
    for key, least in (("max_records", 1), ("max_chars", 1), ("seed", 0)):
        _check_whole(raw, key, least, str(path))
    max_bad = raw.get("max_bad", 0.05)
    if isinstance(max_bad, bool) or not isinstance(max_bad, int | float) or not 0 <= max_bad <= 1:
        raise DataError(f"{path}: Expected `max_bad` to be a share between 0 and 1, got {max_bad!r}.")
    sources = tuple(
        _source(entry, f"{path}: source {number}", raw["stage"]) for number, entry in enumerate(raw["sources"], start=1)
    )
    if raw["stage"] != "ppo" and any(source.columns for source in sources):
        raise DataError(f"{path}: `columns` are for the reward of the stage ppo, not for {raw['stage']}.")
    if len({source.columns for source in sources}) > 1:
        raise DataError(f"{path}: give all sources the same `columns`; `fields` maps names that differ.")
    names = [source.name for source in sources]
    if len(set(names)) < len(names):
        raise DataError(f"{path}: Expected every source to have a name of its own, got {names}.")
    weighted = [source.weight is not None for source in sources]
    if any(weighted) and not all(weighted):
        raise DataError(f"{path}: give every source a `weight`, or none (then everything is taken).")
    asked = enumerate(raw.get("held_out") or [], start=1)
    held_out = tuple(_source(entry, f"{path}: held_out {number}", "ppo") for number, entry in asked)
    options = {key: raw[key] for key in ("seed", "max_records", "max_chars") if raw.get(key) is not None}
    return DataConfig(path, raw["stage"], Path(raw["output"]), sources, held_out=held_out, max_bad=float(max_bad), **options)


def _source(raw: Any, where: str, stage: str) -> Source:
    known = {
        "name",
        "path",
        "hub",
        "format",
        "weight",
        "limit",
        "repeat",
        "fields",
        "columns",
        "system",
        "split",
        "subset",
        "files",
    }
    _check_keys(raw, known, set(), where)
    if ("path" in raw) == ("hub" in raw):
        raise DataError(f"{where}: give `path` (a file or folder) or `hub` (owner/name); it has {sorted(map(str, raw))}.")
    path = Path(raw.get("path") or raw["hub"])
    kind = "hub" if "hub" in raw else raw.get("format") or ("datasets" if path.is_dir() else _ENDINGS.get(path.suffix))
    if kind not in FORMATS:
        raise DataError(f"{where}: Expected `format` to be one of {list(FORMATS)}, got {kind!r} for {path}.")
    for key in ("limit", "repeat"):
        _check_whole(raw, key, 1, where)
    weight = raw.get("weight")
    if weight is not None and (isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < float("inf")):
        raise DataError(f"{where}: Expected `weight` to be a number above 0, got {weight!r}.")
    fields = raw.get("fields") or {}
    if not isinstance(fields, dict) or not all(isinstance(part, str) for pair in fields.items() for part in pair):
        raise DataError(f"{where}: Expected `fields` to map names the stage needs to names the source has, got {fields!r:.80}.")
    for key in ("system", "split", "subset"):
        if not isinstance(raw.get(key) or "", str):
            raise DataError(f"{where}: Expected `{key}` to be text, got {raw[key]!r:.80}.")
    if raw.get("system") and stage in ("pretrain", "midtrain"):
        raise DataError(f"{where}: a `system` prompt is for conversations, and {stage} takes plain text.")
    columns = _names(raw, "columns", where)
    if {"text", "source"} & set(columns):
        raise DataError(
            f"{where}: Expected `columns` to be a list of names other than text and source, got {list(columns)!r:.80}."
        )
    return Source(
        str(raw.get("name") or path.stem), path, kind, None if weight is None else float(weight), raw.get("limit"),
        raw.get("repeat") or 1, fields, columns, raw.get("system") or "", raw.get("split") or "train", raw.get("subset"),
        _names(raw, "files", where),
    )  # fmt: skip


def _names(raw: dict[str, Any], key: str, where: str) -> tuple[str, ...]:
    """A list of names, or one name."""
    given = raw.get(key) or []
    given = [given] if isinstance(given, str) else given
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
        raise DataError(f"{where}: Expected `{key}` to be a list of names, got {given!r:.80}.")
    return tuple(given)


def _check_keys(raw: Any, known: set[str], needed: set[str], where: str) -> None:
    if not isinstance(raw, dict):
        raise DataError(f"{where}: Expected a mapping with {sorted(needed)}, got {raw!r:.80}.")
    if missing := sorted(needed - raw.keys()):
        raise DataError(f"{where}: {missing} missing; it has {sorted(map(str, raw))}.")
    if unknown := sorted(map(str, raw.keys() - known)):
        raise DataError(f"{where}: {unknown} not known; known are {sorted(known)}.")


def _check_whole(raw: dict[str, Any], key: str, least: int, where: str) -> None:
    value = raw.get(key)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
        raise DataError(f"{where}: Expected `{key}` to be a whole number of at least {least}, got {value!r}.")
