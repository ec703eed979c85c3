"""What a user needs to test detectors and adapters of their own: the checks that rldk's own pass, and simulated runs.

`rldk.testing.streams` has the runs, healthy and sick; docs/extending.md shows how the checks are run.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rldk.testing.adapters import yield_adapter_checks
    from rldk.testing.detectors import yield_detector_checks

__all__ = ["yield_adapter_checks", "yield_detector_checks"]

_HOMES = {"yield_adapter_checks": "rldk.testing.adapters", "yield_detector_checks": "rldk.testing.detectors"}


def __getattr__(name: str) -> Any:
    """The checks are imported when they are asked for: whoever wants simulated runs needs neither engine nor adapters."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
