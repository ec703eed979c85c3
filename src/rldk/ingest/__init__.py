"""From a path, a folder, a glob or a list of them to runs and frames.

Each stage is passed once, in this order:
  paths, discovery   which files the user means, and which of a folder's files are logs
  source, choose     a first look at a file, and the adapter that reads it
  formats            the adapter decodes it: rows or columns under the keys that were logged
  runs.table         rows become columns
  runs.build         columns become runs: keys by the catalogue (`core.catalog`), steps, restarts, held-out rows
"""

from __future__ import annotations

from rldk.ingest.read import FileReport, Ingested, ingest_runs, read_runs

__all__ = ["FileReport", "Ingested", "ingest_runs", "read_runs"]
