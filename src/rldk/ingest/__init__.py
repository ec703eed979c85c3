"""From a path, a folder, a glob or a list of them to runs and frames."""

from __future__ import annotations

from rldk.ingest.read import FileReport, Ingested, ingest_runs, read_runs

__all__ = ["FileReport", "Ingested", "ingest_runs", "read_runs"]
