"""The settings of a run in a file beside its log: `config.json`, `args.yaml`, `R_config.json` and others."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rldk.core.jsonio import loads
from rldk.core.run_config import RunConfig
from rldk.ingest.formats.stores import first_bytes, list_folder

__all__ = ["document_settings", "printed_settings", "read_settings", "settings_beside", "settings_files"]

_NAMES = (
    "config", "args", "training_args", "train_args", "trainer_config", "train_config", "hparams", "hyperparameters", "params",
)  # fmt: skip
_OF_LOGS = ("events", "metrics", "log", "logs", "history")
_ENDINGS = (".json", ".yaml", ".yml")
_MAX_BYTES, _MAX_YAML_BYTES = 1 << 20, 256 << 10  # YAML is a hundred times as slow to read
_MAX_ENTRIES = 2_000
_ALONE = frozenset({"trainer_state.json", "trainer_log.jsonl", "wandb-summary.json"})
"""Logs of which a folder holds one, whatever else is in it."""

_MODEL = frozenset({"architectures", "hidden_size"})
_OF_MODEL = ("_name_or_path", "model_type", "vocab_size", "max_position_embeddings")
_HEADS = ("", "param", "parameter", "name", "key")
_STATE = (
    "max_steps", "num_train_epochs", "train_batch_size", "logging_steps", "eval_steps", "save_steps", "total_flos", "trial_name",
)  # fmt: skip


def settings_beside(log: Path) -> RunConfig:
    """The settings in the folder of a log: those named after the log, and those of any name where they can be of no other log."""
    listed = list_folder(log.absolute().parent, _MAX_ENTRIES)
    entries = [Path(entry.path) for entry in listed if entry.is_file() and not entry.name.startswith(".")]
    stem = _stem(log.name)
    own = [path for path in entries if _is_settings(path.name) and _stem(path.name) == stem]
    others = [path for path in entries if path.suffix == log.suffix and path.name != log.name and not _is_settings(path.name)]
    if log.name in _ALONE or not others:
        own += [path for path in entries if path.stem in _NAMES and path.suffix in _ENDINGS]
        own.append(log.absolute().parent / ".hydra" / "config.yaml")
    found = RunConfig()
    for path in own:
        if path.name != log.name and (given := read_settings(path)):
            found = found.with_defaults(RunConfig.of(given, path.name))
    return found


def settings_files(names: Iterable[str]) -> set[str]:
    """Those files of a folder, by name, that `settings_beside` reads as the settings of another one."""
    settings: list[str] = []
    logs: list[str] = []
    for name in names:
        (settings if name.endswith(_ENDINGS) and _is_settings(name) else logs).append(name)
    if not settings:
        return set()
    stems, endings = set(map(_stem, logs)), Counter(Path(name).suffix for name in logs)
    any_name = any(name in _ALONE or endings[Path(name).suffix] == 1 for name in logs)
    return {name for name in settings if _stem(name) in stems or (any_name and Path(name).stem in _NAMES)}


def _is_settings(name: str) -> bool:
    """Whether a file is called after settings, by that name alone or after the name of a run."""
    path = Path(name)
    return path.suffix in _ENDINGS and re.fullmatch(rf"(.*[_.-])?({'|'.join(_NAMES)})", path.stem) is not None


def _stem(name: str) -> str:
    """What the files of a run have in common: `my_run` of `my_run_events.jsonl` and of `my_run_config.json`."""
    return re.sub(rf"[_.-]({'|'.join((*_OF_LOGS, *_NAMES))})$", "", name.split(".", 1)[0])


def read_settings(path: Path) -> dict[str, Any]:
    """The settings in a file; empty where it holds none. Of the description of a model only what tells which it is."""
    limit = _MAX_BYTES if path.suffix == ".json" else _MAX_YAML_BYTES
    text = first_bytes(path, limit + 1)
    if not text or len(text) > limit:
        return {}
    found = _parse(path, text)
    if not isinstance(found, Mapping):
        return {}
    if found.keys() >= _MODEL:
        return {key: found[key] for key in _OF_MODEL if key in found}
    inner = found.get("raw")
    if isinstance(inner, Mapping) and "knobs" in found:  # as rldk itself writes them
        return {**inner, "rldk": found.get("rldk")}
    return {str(key): value for key, value in found.items()}


def _parse(path: Path, text: bytes) -> Any:
    if path.suffix == ".json":
        try:
            return loads(text)
        except ValueError:
            return None
    import yaml

    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None


def printed_settings(text: str) -> dict[str, Any]:
    """The settings in a text that a tracker was given: JSON, or a table in Markdown with a name and a value in each line."""
    try:
        found = loads(text.encode("utf-8", "replace"))
    except ValueError:
        rows = (line.strip().strip("|").split("|", 1) for line in text.splitlines() if line.strip().startswith("|"))
        return {cells[0].strip(): cells[1].strip() for cells in rows if len(cells) == 2 and cells[0].strip(" -:") not in _HEADS}
    return dict(found) if isinstance(found, dict) else {}


def document_settings(document: Any) -> dict[str, Any]:
    """What a JSON document with rows says of how its run was started: `trainer_state.json`, or settings beside the rows."""
    if not isinstance(document, Mapping):
        return {}
    if "log_history" in document:
        return {key: document[key] for key in _STATE if document.get(key) is not None}
    return next((dict(inner) for name in _NAMES if isinstance(inner := document.get(name), Mapping)), {})
