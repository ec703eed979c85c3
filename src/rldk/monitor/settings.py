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
    """A judge with the settings of a scan, the options and switches of `ComprehensivePPOForensics`, and hard limits."""
    given = config if isinstance(config, ScanConfig) else ScanConfig.from_dict(config or {})
    return given.build_judge(ComprehensivePPOForensics, options, limits)
