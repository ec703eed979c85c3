"""The judge of a live run, from what the user has set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rldk.forensics.comprehensive_ppo_forensics import ComprehensivePPOForensics
from rldk.judge.config import ScanConfig, bounds_of

__all__ = ["build_forensics", "settings_for_log"]


def build_forensics(
    config: ScanConfig | Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    limits: Mapping[str, Any] | None = None,
) -> ComprehensivePPOForensics:
    """A judge with the settings of a scan, the options and switches of `ComprehensivePPOForensics`, and hard limits."""
    given = config if isinstance(config, ScanConfig) else ScanConfig.from_dict(config or {})
    return given.build_judge(ComprehensivePPOForensics, options, limits)


def settings_for_log(
    config: ScanConfig | Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    limits: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The same settings in the form of the log (`RunConfig.rldk`), so that a scan judges as the live run does."""
    given = config if isinstance(config, ScanConfig) else ScanConfig.from_dict(config or {})
    others = dict(options or {})
    found = {
        "limits": {**given.limits, **bounds_of(limits or {})},
        "detectors": given.detectors,
        "kl_target": others.pop("kl_target", given.kl_target),
        "kl_target_tolerance": others.pop("kl_target_tolerance", given.kl_target_tolerance),
        "sensitivity": given.sensitivity,
        "options": others,
    }
    return {name: value for name, value in found.items() if value not in (None, {})}
