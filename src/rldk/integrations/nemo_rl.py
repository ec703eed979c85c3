"""NeMo-RL: `rldk.attach("nemo_rl")` in the driver, for everything that its `Logger` receives.

NeMo-RL is not on PyPI: this is tested against the documented interface (0.6), not against the package.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rldk.integrations.hooks import Hook, Row

__all__ = ["FRAMEWORK", "WHOLE_ROWS", "hooks"]

FRAMEWORK = "nemo_rl"
WHOLE_ROWS = False


def hooks() -> list[Hook]:
    """`Logger.log_metrics`, which is called several times per step, each with a prefix."""
    return [Hook("nemo_rl.utils.logger", "Logger.log_metrics", _rows)]


def _rows(call: Mapping[str, Any]) -> Iterator[Row]:
    prefix = f"{call['prefix']}/" if call.get("prefix") else ""
    metrics, axis = call["metrics"], call.get("step_metric")
    step = metrics[axis] if axis and axis in metrics else call["step"]
    yield {f"{prefix}{key}": value for key, value in metrics.items() if key != axis}, step
