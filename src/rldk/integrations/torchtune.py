"""torchtune: a metric logger for its configuration. It does not import torchtune.

    tune run … metric_logger._component_=rldk.integrations.torchtune.RLDKLogger metric_logger.output_dir=rldk_logs
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from rldk.integrations.rows import RowLog

__all__ = ["RLDKLogger"]


class RLDKLogger:
    """torchtune's `MetricLoggerInterface` over a monitor.

    Args:
        output_dir: where the files of the run go; `log_dir` is another name for it.
        options: those of `rldk.integrations.rows.RowLog`, such as `run_id` and `stop_on`.
    """

    def __init__(
        self, output_dir: str | os.PathLike[str] | None = None, log_dir: str | os.PathLike[str] | None = None, **options: Any
    ) -> None:
        self.rows = RowLog("torchtune", output_dir=output_dir or log_dir or "./rldk_logs", **options)

    def log(self, name: str, data: Any, step: int) -> None:
        """Log one metric."""
        self.rows.log({name: data}, step)

    def log_dict(self, payload: Mapping[str, Any], step: int) -> None:
        """Log several metrics of a step."""
        self.rows.log(payload, step)

    def log_config(self, config: Any) -> None:
        """Does nothing: torchtune saves its configuration itself."""

    def close(self) -> None:
        """Judge what is waiting, and complete the files."""
        self.rows.close()
