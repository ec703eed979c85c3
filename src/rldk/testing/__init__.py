"""Tests for your own detectors and adapters: the checks that rldk's own pass, simulated runs, and a scorer.

`rldk.testing.streams` has the runs, healthy and sick; docs/extending.md shows how the checks are run. `rldk.testing.scoring`
measures how accurate a judge is on runs with a known outcome; docs/benchmark.md shows what it gives for rldk and its peers.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rldk.testing.adapters import yield_adapter_checks
    from rldk.testing.detectors import yield_detector_checks
    from rldk.testing.scoring import Alarm, Judged, Label, score_run, total_scores

__all__ = ["Alarm", "Judged", "Label", "score_run", "total_scores", "yield_adapter_checks", "yield_detector_checks"]

_HOMES = {
    "yield_adapter_checks": "rldk.testing.adapters",
    "yield_detector_checks": "rldk.testing.detectors",
    **dict.fromkeys(("Alarm", "Judged", "Label", "score_run", "total_scores"), "rldk.testing.scoring"),
}


def __getattr__(name: str) -> Any:
    """Imports a name when it is used: simulated runs need neither engine nor adapters."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
