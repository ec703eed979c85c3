"""The dashboard: a page that follows the runs of a folder. Starting it needs the extra `dashboard`."""

from __future__ import annotations

from rldk.dashboard.server import Dashboard

__all__ = ["Dashboard"]
