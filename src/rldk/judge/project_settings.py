"""The settings of a project: `rldk.toml`, or `[tool.rldk]` in `pyproject.toml`, found upwards from the working directory.

The command line wins over the environment (`RLDK_SENSITIVITY` …), and that over the file.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rldk.core.errors import UsageError
from rldk.core.run_config import SCAN_KEYS
from rldk.core.text import known_names
from rldk.judge.config import ScanConfig

__all__ = ["ENVIRONMENT", "OPTIONS", "ProjectSettings", "project_settings", "read_toml", "template"]

OPTIONS = ("adapter", "fail_on", "jobs", "config", "cache_size")
"""Options of the command line that the file may set, beside what judges a run and `field_map`."""

ENVIRONMENT = {f"RLDK_{name.upper()}": name for name in ("config", "sensitivity", "adapter", "fail_on", "jobs")}
"""The environment variables that set an option."""

_KEYS = (*SCAN_KEYS, *OPTIONS, "field_map")


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    """What the file and the environment set: how runs are judged, the field map, and defaults of options by name."""

    scan: ScanConfig = field(default_factory=ScanConfig)
    field_map: dict[str, str] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    source: str = ""


def project_settings(folder: Path | None = None, environment: Mapping[str, str] = os.environ) -> ProjectSettings:
    """The settings that hold in a folder, by default the working directory."""
    path = _find((folder or Path.cwd()).resolve())
    given = {} if path is None else read_toml(path)
    try:
        scan = ScanConfig.from_dict({key: value for key, value in given.items() if key in SCAN_KEYS})
        fields = _field_map(given.get("field_map", {}))
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    options = {key: given[key] for key in OPTIONS if key in given}
    if path is not None and "config" in options:
        options["config"] = str(path.parent / str(options["config"]))  # beside the file, wherever rldk is called
    options |= {name: environment[key] for key, name in ENVIRONMENT.items() if environment.get(key)}
    return ProjectSettings(scan, fields, options, "" if path is None else str(path))


def read_toml(path: Path) -> dict[str, Any]:
    """The settings in a file; an unknown key is an error with the nearest known name."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from None
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path} is not TOML: {error}.") from None
    own: dict[str, Any] = given.get("tool", {}).get("rldk", {}) if path.name == "pyproject.toml" else given
    for key in own:
        if key not in _KEYS:
            raise UsageError(f"{path}: unknown key {key!r}.{known_names(key, _KEYS, len(_KEYS))}")
    return own


def _find(folder: Path) -> Path | None:
    for place in (folder, *folder.parents):
        if (place / "rldk.toml").is_file():
            return place / "rldk.toml"
        project = place / "pyproject.toml"
        if project.is_file() and "[tool.rldk" in project.read_text(encoding="utf-8", errors="replace"):
            return project
    return None


def _field_map(given: Any) -> dict[str, str]:
    if not isinstance(given, Mapping) or not all(isinstance(value, str) for value in given.values()):
        raise UsageError(f"Expected `field_map` to map keys to metrics, such as my_kl = \"kl_mean\", got {given!r}.")
    return dict(given)


def template() -> str:
    """A file with every setting, commented out."""
    return """# Settings of rldk for this folder and those below it. The command line wins over the environment
# (RLDK_SENSITIVITY, RLDK_ADAPTER, RLDK_FAIL_ON, RLDK_JOBS, RLDK_CONFIG), and that over this file.

# sensitivity = "normal"          # low reports less and later, high more and sooner
# kl_target = 0.1                 # the KL that the run is meant to keep, in the unit of its log
# kl_target_tolerance = 0.05
# fail_on = "critical"            # what makes the exit status 1: critical, warning or never
# adapter = "trl"                 # read with this adapter, not the one chosen by content
# jobs = 4                        # processes of `rldk scan`
# config = "thresholds.yaml"      # further settings in YAML, relative to this file
# cache_size = "20GB"             # what copies of logs from elsewhere may take (RLDK_CACHE_SIZE)

# [field_map]                     # keys of your own, and the metrics they stand for (`rldk catalog`)
# my_kl = "kl_mean"

# [limits.kl_mean]                # hard limits of your own
# max = 0.5
# severity = "critical"

# [detectors.plateau]             # thresholds of a detector (`rldk explain plateau`), or enabled = false
# enabled = false
"""
