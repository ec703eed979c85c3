"""The public names of adapters: `Adapter` to write one, `register` to add it. The adapters themselves are in `rldk.ingest`."""

from __future__ import annotations

from rldk.ingest.adapter import Adapter
from rldk.ingest.choose import ADAPTERS, register

__all__ = ["ADAPTERS", "Adapter", "register"]
