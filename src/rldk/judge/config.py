"""What a user may set: thresholds, persistence and severities of detectors, hard limits, and what is known about the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any, TypeVar

from rldk.core.catalog import CATALOG, metric_named
from rldk.core.errors import UsageError
from rldk.core.run_config import SCAN_KEYS
from rldk.core.text import known_names
from rldk.detectors.base import SENSITIVITIES, Detector
from rldk.detectors.run.user_limit import KL_UNITS, UserLimit
from rldk.detectors.table import BY_TYPE, DETECTORS
from rldk.judge.judge import Judge

__all__ = ["ScanConfig", "bounds_of"]

J = TypeVar("J", bound=Judge)


@dataclass(slots=True)
class ScanConfig:
    """The settings of a scan.

    `detectors` maps a type to its settings; `enabled: false` switches it off, `severity` overrules its own, `persist` and
    `clear` say how long a condition must hold or be gone. `limits` maps a metric to `max`, `min` and `severity`: hard
    limits of the user's own. `sensitivity` applies to all detectors: with `low` a warning must hold twice as long
    and a critical 1.5 times as long, with `high` half as long; `normal` is the default. It does not affect what one row
    proves, nor a user's own limits and `persist`.
    """

    detectors: dict[str, dict[str, Any]] = field(default_factory=dict)
    limits: dict[str, dict[str, Any]] = field(default_factory=dict)
    kl_target: float | None = None
    kl_target_tolerance: float | None = None
    sensitivity: str | None = None

    def __post_init__(self) -> None:
        if self.sensitivity is not None and self.sensitivity not in SENSITIVITIES:
            raise UsageError(f"Expected `sensitivity` to be one of {list(SENSITIVITIES)}, got {self.sensitivity!r}.")
        if self.detectors or self.limits:
            self.build()  # every mistake is reported now, not in the middle of a run
        for name in ("kl_target", "kl_target_tolerance"):
            value = _number(name, getattr(self, name))
            if value is not None and not 0.0 <= value < inf:
                raise UsageError(f"Expected `{name}` to be a finite number of at least 0, got {value:g}.")

    @classmethod
    def from_yaml(cls, path: str | Path) -> ScanConfig:
        """Read the settings from a file; an error says what is wrong in it."""
        import yaml

        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from None
        try:
            given = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise UsageError(f"{path} is not YAML: {' '.join(str(error).split())}.") from None
        try:
            return cls.from_dict(given or {})
        except UsageError as error:
            raise UsageError(f"{path}: {error}") from None

    @classmethod
    def from_dict(cls, given: Any) -> ScanConfig:
        """Take the settings from a mapping, as the file holds them."""
        if not isinstance(given, Mapping):
            raise UsageError(f"Expected a mapping with {', '.join(SCAN_KEYS)}, got {type(given).__name__}.")
        for key in given:
            if key not in SCAN_KEYS:
                raise UsageError(f"Unknown key {key!r}.{known_names(key, SCAN_KEYS)}")
        parts = {}
        for key in ("detectors", "limits"):
            part = {} if given.get(key) is None else given[key]
            if not isinstance(part, Mapping):
                raise UsageError(f"Expected `{key}` to be a mapping, got {type(part).__name__}.")
            parts[key] = {str(name): _settings(key, str(name), value) for name, value in part.items()}
        target, tolerance = (_number(key, given.get(key)) for key in ("kl_target", "kl_target_tolerance"))
        return cls(parts["detectors"], parts["limits"], target, tolerance, given.get("sensitivity"))

    def merged_with(self, over: ScanConfig) -> ScanConfig:
        """These settings, with those of another place where it has its own."""
        return ScanConfig(
            detectors={**self.detectors, **over.detectors},
            limits={**self.limits, **over.limits},
            kl_target=self.kl_target if over.kl_target is None else over.kl_target,
            kl_target_tolerance=self.kl_target_tolerance if over.kl_target_tolerance is None else over.kl_target_tolerance,
            sensitivity=over.sensitivity or self.sensitivity,
        )

    def build(self) -> list[Detector]:
        """The detectors that these settings ask for."""
        for name in self.detectors:
            if name not in BY_TYPE:
                raise UsageError(f"There is no detector {name!r}.{known_names(name, BY_TYPE)}")
        made: list[Detector] = []
        for kind in DETECTORS:
            given = {"sensitivity": self.sensitivity or "normal", **self.detectors.get(kind.type, {})}
            enabled = given.pop("enabled", True)
            if not isinstance(enabled, bool):
                raise UsageError(f"Expected `{kind.type}.enabled` to be true or false, got {enabled!r}.")
            if enabled:
                made.append(kind(**given))
        return made + [_limit(metric, given) for metric, given in self.limits.items()]

    def judge(self, reductions: Mapping[str, str] | None = None) -> Judge:
        """A judge with these settings, for a run whose KL is reduced as stated."""
        judge = self.build_judge(Judge)
        judge.engine.reductions.update(reductions or {})
        return judge

    def build_judge(self, kind: type[J], options: Mapping[str, Any] | None = None, limits: Mapping[str, Any] | None = None) -> J:
        """A judge of this kind, with options and switches of its own and further limits.

        A limit is a number that must not be passed, or `max`, `min` and `severity`. Every mistake is an error now.
        """
        tolerance = {} if self.kl_target_tolerance is None else {"kl_target_tolerance": self.kl_target_tolerance}
        chosen: dict[str, Any] = {"kl_target": self.kl_target, **tolerance, **(options or {})}
        off = kind(**chosen, detectors=()).switched_off
        settings = self._extended(chosen.get("length_bias_threshold"), limits or {})
        wanted = [detector for detector in settings.build() if not off & {detector.family, detector.type}]
        return kind(**chosen, detectors=wanted)

    def _extended(self, length_bias_threshold: float | None, limits: Mapping[str, Any]) -> ScanConfig:
        """These settings with further limits, and a threshold of length bias unless they have one."""
        detectors = dict(self.detectors)
        if length_bias_threshold is not None:
            detectors["length_bias"] = {"threshold": length_bias_threshold, **detectors.get("length_bias", {})}
        bounds = {**self.limits, **bounds_of(limits)}
        return ScanConfig(detectors, bounds, self.kl_target, self.kl_target_tolerance, self.sensitivity)


def bounds_of(limits: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Limits as `max`, `min` and `severity`; a number alone is a maximum."""
    return {name: dict(bound) if isinstance(bound, Mapping) else {"max": bound} for name, bound in limits.items()}


def _limit(name: str, given: dict[str, Any]) -> UserLimit:
    metric = name if "/" in name or name in KL_UNITS else metric_named(name)  # `kl` is `kl_mean`, as in a log
    if metric is None:
        raise UsageError(f"Cannot limit {name!r}: no metric has that name.{known_names(name, CATALOG)}")
    unknown = sorted(set(given) - {"max", "min", "severity"})
    if unknown or not {"max", "min"} & set(given):
        raise UsageError(f"Expected the limit of {metric!r} to have `max` or `min`, got {sorted(given)}.")
    highest, lowest = (_required(f"limits.{metric}.{key}", given, key, none) for key, none in (("max", inf), ("min", -inf)))
    if lowest > highest:
        raise UsageError(f"Expected the limit of {metric!r} to have `min` below `max`, got {lowest:g} and {highest:g}.")
    return UserLimit(metric, highest, lowest, given.get("severity", "warning"))


def _required(name: str, given: Mapping[str, Any], key: str, none: float) -> float:
    """The number under a key, which may be left out but not left empty."""
    if key not in given:
        return none
    number = _number(name, given[key])
    if number is None:
        raise UsageError(f"Expected `{name}` to be a number, got None.")
    return number


def _settings(key: str, name: str, value: Any) -> dict[str, Any]:
    if isinstance(value, bool) and key == "detectors":
        return {"enabled": value}
    if not isinstance(value, Mapping):
        raise UsageError(f"Expected `{key}.{name}` to be a mapping, got {value!r}.")
    return {str(setting): given for setting, given in value.items()}


def _number(name: str, value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:
        raise UsageError(f"Expected `{name}` to be a number, got {value!r}.")
    return float(value)
