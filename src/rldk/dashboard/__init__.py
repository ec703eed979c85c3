"""The live dashboard: a page that follows the runs of a folder. It needs the extra `dashboard` when it is started."""

from __future__ import annotations

from rldk.dashboard.server import Dashboard

__all__ = ["Dashboard"]
