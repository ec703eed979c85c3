"""The dashboard: a page that follows the runs of a folder. Starting it needs the extra `dashboard`.

There are three processes. The user's own has a `Dashboard` (`server.py`), which starts the one that serves the page
(`web_process.py`, `page/`). That one asks a third, which reads and judges the logs (`client.py`, `reader_process.py`).
"""

from __future__ import annotations

from rldk.dashboard.server import Dashboard

__all__ = ["Dashboard"]
