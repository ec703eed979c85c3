"""prime-rl: `rldk.attach("prime_rl")` in the trainer or the orchestrator, for everything that its monitors receive.

prime-rl is not on PyPI: this is tested against the documented interface (0.8), not against the package. Its file monitor drops
values that are not finite; rldk sees them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rldk.integrations.hooks import Hook, Row

__all__ = ["FRAMEWORK", "WHOLE_ROWS", "hooks"]

FRAMEWORK = "prime_rl"
WHOLE_ROWS = False


def hooks() -> list[Hook]:
    """`Monitor.log` of every monitor, for metrics but not for episodes."""
    return [Hook("prime_rl.monitors.base", "Monitor.log", _rows), Hook("prime_rl.monitors.base", "Monitor.finalize", ends=True)]


def _rows(call: Mapping[str, Any]) -> Iterator[Row]:
    """Rows without a step are sampled by time and belong to no step of the training."""
    if isinstance(call["data"], Mapping) and call["step"] is not None:
        yield call["data"], call["step"]
