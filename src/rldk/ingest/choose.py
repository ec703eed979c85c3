"""The table of adapters, the most particular first, and the choice among them."""

from __future__ import annotations

import os
from collections.abc import Mapping

from rldk.core.errors import ReadError, UsageError
from rldk.core.text import did_you_mean
from rldk.ingest.adapter import Adapter
from rldk.ingest.formats.console_tables import BoxTableAdapter, TableConsoleAdapter
from rldk.ingest.formats.delimited import DelimitedAdapter
from rldk.ingest.formats.epoch_lines import MiniMindAdapter, TrainerConsoleAdapter
from rldk.ingest.formats.flexible import FlexibleAdapter
from rldk.ingest.formats.free_text import KeyValueAdapter
from rldk.ingest.formats.hf_trainer import HFConsoleAdapter, TRLAdapter
from rldk.ingest.formats.json_document import JsonDocumentAdapter
from rldk.ingest.formats.json_lines import JSON_LINES_ADAPTERS, EventLogAdapter
from rldk.ingest.formats.mlflow_store import MLflowAdapter
from rldk.ingest.formats.notebook import NotebookAdapter
from rldk.ingest.formats.parquet import ParquetAdapter
from rldk.ingest.formats.sb3_console import SB3ConsoleAdapter
from rldk.ingest.formats.tensorboard import TensorBoardAdapter
from rldk.ingest.formats.trackio_store import TrackioAdapter
from rldk.ingest.formats.verl_console import VerlAdapter
from rldk.ingest.formats.wandb_store import WandbAdapter
from rldk.ingest.source import Source
from rldk.log.blocks import Progress

__all__ = ["ADAPTERS", "adapter_named", "choose", "names", "register"]

ADAPTERS: list[type[Adapter]] = [
    TensorBoardAdapter,
    WandbAdapter,
    MLflowAdapter,
    TrackioAdapter,
    ParquetAdapter,
    EventLogAdapter,
    VerlAdapter,
    *JSON_LINES_ADAPTERS,
    NotebookAdapter,
    TRLAdapter,
    HFConsoleAdapter,
    TrainerConsoleAdapter,
    MiniMindAdapter,
    SB3ConsoleAdapter,
    TableConsoleAdapter,
    BoxTableAdapter,
    DelimitedAdapter,
    JsonDocumentAdapter,
    KeyValueAdapter,
    FlexibleAdapter,
]
"""Tried in this order; the first that can handle the content reads it."""


def register(adapter: type[Adapter]) -> None:
    """Add a reader of your own; it is tried before those of rldk. `rldk.testing` checks it."""
    if adapter.name in names():
        raise UsageError(f"An adapter named {adapter.name!r} exists already: give yours another name.")
    ADAPTERS.insert(0, adapter)


def names() -> list[str]:
    """The names that `adapter_hint` and `--adapter` take."""
    return [adapter.name for adapter in ADAPTERS]


def adapter_named(name: str) -> type[Adapter]:
    """The adapter of this name; an unknown one is an error with those there are."""
    for adapter in ADAPTERS:
        if adapter.name == name:
            return adapter
    near = did_you_mean(name, names(), cutoff=0.7)
    raise UsageError(f"Unknown adapter {name!r}.{near} Available: {', '.join(names())}.")


def choose(
    path: str | os.PathLike[str] | Source,
    *,
    hint: str | None = None,
    field_map: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> Adapter:
    """The adapter that reads a file or folder, by its content, or the one that was asked for."""
    source = path if isinstance(path, Source) else Source(path)
    if hint is not None:
        adapter = adapter_named(hint)(source, field_map=field_map, progress=progress)
        if not adapter.can_handle():
            raise ReadError(f"{source.path} cannot be read by the adapter {hint!r}: {adapter.why}.")
        return adapter
    if not source.is_folder and not source.head:
        raise ReadError(f"{source.path} {f'holds nothing that can be read: {source.damage}' if source.damage else 'is empty'}.")
    for kind in ADAPTERS:
        adapter = kind(source, field_map=field_map, progress=progress)
        if adapter.can_handle():
            return adapter
    why = "it is a binary file" if source.is_binary else adapter.why
    raise ReadError(f"rldk cannot read {source.path}: {why}.")
