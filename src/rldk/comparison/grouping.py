"""Which runs belong together: those that share a setting, or all settings but the seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rldk.core.errors import UsageError
from rldk.core.knobs import KNOBS, flat_settings, setting_key
from rldk.core.run_config import RunConfig
from rldk.core.text import did_you_mean, short_number
from rldk.runs.run import Run

__all__ = ["ALL_SETTINGS", "PLACES", "differing_settings", "group_names", "plain_settings", "run_groups", "shown_value"]

ALL_SETTINGS = "config"
"""Group by this: runs that have all settings in common, except the seed."""

PLACES = frozenset({"output_dir", "logging_dir", "run_name", "run_id", "save_dir", "log_dir", "hub_model_id", "wandb_run_id"})
"""Settings that differ between any two runs and say nothing about the training."""

_SEEDS = frozenset({"seed", "data_seed", "random_seed"})
_MAX_SETTINGS = 200

Settings = Mapping[str, Any]


def plain_settings(config: RunConfig) -> dict[str, Any]:
    """The settings by one name each: all of them by their own path, and the knobs by their canonical name."""
    plain = {name: value for name, value in flat_settings(config.raw).items() if isinstance(value, (str, int, float, bool))}
    return {**dict(list(plain.items())[:_MAX_SETTINGS]), **dict(config)}


def differing_settings(runs: Sequence[Settings]) -> list[str]:
    """The settings that are not the same in all runs, knobs first; of two names for the same values the first."""
    known = dict.fromkeys(name for settings in runs for name in settings)
    names = sorted(known, key=lambda name: name not in KNOBS)  # stable: in the order of the configuration otherwise
    found: dict[tuple[Any, ...], str] = {}
    for name in names:
        values = tuple(_hashable(settings.get(name)) for settings in runs)
        if len(set(values)) > 1 and name.rsplit(".", 1)[-1] not in PLACES:
            found.setdefault(values, name)
    return list(found.values())


def group_names(runs: Sequence[Settings], by: str) -> list[str | None]:
    """The name of the group that each run belongs to, such as `lr=1e-05`; `None` where a run does not have the setting."""
    if by == ALL_SETTINGS:
        names = [name for name in differing_settings(runs) if name.rsplit(".", 1)[-1] not in _SEEDS]
        return [", ".join(f"{name}={shown_value(settings.get(name))}" for name in names) or None for settings in runs]
    name = by.removeprefix("config.")
    return [_named(name, settings) for settings in runs]


def run_groups(runs: Sequence[Run], by: str) -> list[str]:
    """The group of each run; a run without the setting is an error that names it."""
    settings = [plain_settings(run.config) for run in runs]
    found = group_names(settings, by)
    for run, own, group in zip(runs, settings, found, strict=True):
        if group is None:
            _complain(run, own, by)
    return [group or "" for group in found]


def _complain(run: Run, own: Settings, by: str) -> None:
    name = by.removeprefix("config.")
    if not own:
        raise UsageError(f"Cannot group by {name!r}: the configuration of {run.run_id} is not in its log or beside it.")
    if by == ALL_SETTINGS:
        raise UsageError("Cannot group by the configuration: it is the same in all runs, except for the seed.")
    raise UsageError(f"Cannot group by {name!r}: {run.run_id} has no such setting.{did_you_mean(name, own)}")


def _named(name: str, settings: Settings) -> str | None:
    """A setting by its own path, the name of its knob, or another name of that knob (`lr` is `learning_rate`)."""
    key = setting_key(name, settings)
    return None if key is None else f"{name}={shown_value(settings[key])}"


def shown_value(value: Any) -> str:
    """A setting's value as the name of a group has it."""
    return short_number(value) if isinstance(value, float) else "–" if value is None else str(value)


def _hashable(value: Any) -> Any:
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)
