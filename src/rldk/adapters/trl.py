"""The adapter of TRL and Hugging Face trainer logs."""

from __future__ import annotations

from rldk.ingest.formats.hf_trainer import TRLAdapter

__all__ = ["TRLAdapter"]
