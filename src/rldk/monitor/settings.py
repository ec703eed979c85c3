"""The judge of a live run, from what the user has set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rldk.forensics.comprehensive_ppo_forensics import ComprehensivePPOForensics
from rldk.judge.config import ScanConfig

__all__ = ["build_forensics"]


def build_forensics(
    config: ScanConfig | Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    limits: Mapping[str, Any] | None = None,
) -> ComprehensivePPOForensics:
    """A judge with the settings of a scan, the options and switches of `ComprehensivePPOForensics`, and hard limits.

    A limit is a number that must not be passed, or `max`, `min` and `severity`. Every mistake is an error now.
    """
    given = config if isinstance(config, ScanConfig) else ScanConfig.from_dict(config or {})
    bounds = {name: dict(bound) if isinstance(bound, Mapping) else {"max": bound} for name, bound in (limits or {}).items()}
    chosen: dict[str, Any] = {"kl_target": given.kl_target, "kl_target_tolerance": given.kl_target_tolerance}
    chosen = {name: value for name, value in chosen.items() if value is not None} | dict(options or {})
    detectors = dict(given.detectors)
    if "length_bias_threshold" in chosen:
        detectors["length_bias"] = {"threshold": chosen["length_bias_threshold"], **detectors.get("length_bias", {})}
    settings = ScanConfig(detectors, {**given.limits, **bounds}, given.kl_target, given.kl_target_tolerance)
    switches = ComprehensivePPOForensics(**chosen).trackers.by_name()
    off = {name for name, tracker in switches.items() if tracker is None}
    wanted = [detector for detector in settings.build() if not off & {detector.tracker, detector.type}]
    return ComprehensivePPOForensics(**chosen, detectors=wanted)
