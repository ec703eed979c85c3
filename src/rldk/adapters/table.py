"""The table of adapters, the most particular first, and the choice among them."""

from __future__ import annotations

import os
from collections.abc import Mapping

from rldk.adapters.areal import ARealAdapter
from rldk.adapters.base import Adapter
from rldk.adapters.delimited import DelimitedAdapter
from rldk.adapters.events import EventLogAdapter
from rldk.adapters.flexible import FlexibleAdapter
from rldk.adapters.hf_console import HFConsoleAdapter
from rldk.adapters.json_document import JsonDocumentAdapter
from rldk.adapters.keyvalue import KeyValueAdapter
from rldk.adapters.llama_factory import LlamaFactoryAdapter
from rldk.adapters.minimind import MiniMindAdapter
from rldk.adapters.mlflow_store import MLflowAdapter
from rldk.adapters.ms_swift import MsSwiftAdapter
from rldk.adapters.nemo_rl import NemoRLAdapter
from rldk.adapters.notebook import NotebookAdapter
from rldk.adapters.openrlhf import OpenRLHFAdapter
from rldk.adapters.parquet import ParquetAdapter
from rldk.adapters.prime_rl import PrimeRLAdapter
from rldk.adapters.sb3_console import SB3ConsoleAdapter
from rldk.adapters.slime import SlimeAdapter
from rldk.adapters.source import Source
from rldk.adapters.tensorboard import TensorBoardAdapter
from rldk.adapters.tinker import TinkerAdapter
from rldk.adapters.trackio_store import TrackioAdapter
from rldk.adapters.trainer_console import TrainerConsoleAdapter
from rldk.adapters.trl import TRLAdapter
from rldk.adapters.verl import VerlAdapter
from rldk.adapters.wandb_store import WandbAdapter
from rldk.core.errors import ReadError, UsageError
from rldk.core.text import did_you_mean
from rldk.log.blocks import Progress

__all__ = ["ADAPTERS", "choose", "names", "register"]

ADAPTERS: list[type[Adapter]] = [
    TensorBoardAdapter,
    WandbAdapter,
    MLflowAdapter,
    TrackioAdapter,
    ParquetAdapter,
    EventLogAdapter,
    VerlAdapter,
    LlamaFactoryAdapter,
    MsSwiftAdapter,
    OpenRLHFAdapter,
    NemoRLAdapter,
    ARealAdapter,
    SlimeAdapter,
    PrimeRLAdapter,
    TinkerAdapter,
    NotebookAdapter,
    TRLAdapter,
    HFConsoleAdapter,
    TrainerConsoleAdapter,
    MiniMindAdapter,
    SB3ConsoleAdapter,
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
        chosen = next((adapter for adapter in ADAPTERS if adapter.name == hint), None)
        if chosen is None:
            raise UsageError(f"There is no adapter {hint!r}.{did_you_mean(hint, names())} There are {', '.join(names())}.")
        adapter = chosen(source, field_map=field_map, progress=progress)
        if not adapter.can_handle():
            raise ReadError(f"{source.path} cannot be read by the adapter {hint!r}: {adapter.why}.")
        return adapter
    if not source.is_folder and not source.head:
        raise ReadError(f"{source.path} {f'holds nothing that can be read: {source.damage}' if source.damage else 'is empty'}.")
    for kind in ADAPTERS:
        adapter = kind(source, field_map=field_map, progress=progress)
        if adapter.can_handle():
            return adapter
    raise ReadError(f"{source.path} is no log that rldk can read: {_reason(source, adapter)}")


def _reason(source: Source, last: Adapter) -> str:
    if source.is_binary:
        return "it is a binary file."
    if "no metric is known by" in last.why:
        return f"{last.why}. Say which is which with --field-map key=metric (`rldk catalog` lists the metrics)."
    return f"{last.why}."
