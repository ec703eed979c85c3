"""verl: attached in the process that runs the trainer, in two ways.

In Python: `rldk.attach("verl")` before the trainer is made. Without changing code:

    VERL_USE_EXTERNAL_MODULES=rldk.integrations.verl_plugin python -m verl.trainer.main_ppo …

since verl imports these modules in each of its processes. Or from outside: let it write its file logger
(`trainer.logger=["console","file"]`) and follow `$VERL_FILE_LOGGER_ROOT/<project>/<experiment>.jsonl` with `rldk watch`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rldk.integrations.hooks import Hook, Row

__all__ = ["FRAMEWORK", "WHOLE_ROWS", "hooks"]

FRAMEWORK = "verl"
WHOLE_ROWS = True


def hooks() -> list[Hook]:
    """`Tracking.log`, which the trainer calls once per step, and `Tracking.finish`."""
    place = "verl.utils.tracking"
    return [Hook(place, "Tracking.log", _rows), Hook(place, "Tracking.finish", ends=True)]


def _rows(call: Mapping[str, Any]) -> Iterator[Row]:
    yield call["data"], call["step"]
