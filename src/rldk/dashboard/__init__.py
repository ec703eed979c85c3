"""The dashboard: a page that follows the runs of a folder. Starting it needs the extra `dashboard`.

There are four processes. The user's own has a `Dashboard` (`server.py`), which starts the one that serves the page
(`web_process.py`, `page/`). That one asks two others (`client.py`): one reads and judges the logs of the runs that are open
(`reader_process.py`), the other knows the table of all runs (`workbench/`).
"""

from __future__ import annotations

from rldk.dashboard.server import Dashboard

__all__ = ["Dashboard"]
