"""Callbacks for TRL's trainers (0.23 and newer): PPO, GRPO, RLOO, DPO, SFT and reward modelling.

    from rldk.integrations.trl import RLDKCallback
    trainer = GRPOTrainer(..., callbacks=[RLDKCallback(output_dir="./rldk_logs", run_id="my_run")])

The names are looked up when they are first used, so that this package can be imported without TRL.
"""

from __future__ import annotations

import importlib
from typing import Any

from rldk.core.errors import need

__all__ = [
    "AdvancedPPOMonitor", "CheckpointMetrics", "CheckpointMonitor", "ComprehensivePPOMonitor", "CustomRLDKCallback",
    "EventWriterCallback", "PPOMetrics", "PPOMonitor", "RLDKCallback", "RLDKDashboard", "RLDKMetrics", "RLDKMonitor",
    "create_ppo_trainer",
]  # fmt: skip

_MODULES = {
    **dict.fromkeys(("RLDKCallback", "RLDKMetrics", "RLDKMonitor", "CustomRLDKCallback", "EventWriterCallback"), "callbacks"),
    **dict.fromkeys(("PPOMonitor", "PPOMetrics", "ComprehensivePPOMonitor", "AdvancedPPOMonitor"), "monitors"),
    **dict.fromkeys(("CheckpointMonitor", "CheckpointMetrics"), "monitors"),
    "RLDKDashboard": "dashboard",
    "create_ppo_trainer": "ppo_trainer",
}
_NEEDS_NOTHING = {"dashboard"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = _MODULES[name]
    if module not in _NEEDS_NOTHING:
        for package in ("transformers", "trl"):
            need(package, "'rldk[trl]'", name)
    found = getattr(importlib.import_module(f"{__name__}.{module}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
