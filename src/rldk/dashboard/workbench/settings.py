"""Which settings the table shows: those that differ between the runs, the ones that matter most first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rldk.comparison.grouping import differing_settings
from rldk.core.knobs import KNOBS

__all__ = ["shown_settings"]

_MAX_SETTINGS = 40


def shown_settings(configs: Sequence[Mapping[str, Any]]) -> list[str]:
    """The settings that are not the same in all runs: knobs first, and texts that are different in each run last."""
    names = differing_settings([config for config in configs if config])
    return sorted(names, key=lambda name: (name not in KNOBS, _is_a_name(name, configs)))[:_MAX_SETTINGS]


def _is_a_name(setting: str, configs: Sequence[Mapping[str, Any]]) -> bool:
    values = [config[setting] for config in configs if setting in config]
    return len(values) > 2 and all(isinstance(value, str) for value in values) and len(set(values)) == len(values)
