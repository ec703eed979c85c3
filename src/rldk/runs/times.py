"""Times and steps as logs write them: seconds, ISO dates, `5m 18s`, `1:02:03`, and steps such as `10/547`."""

from __future__ import annotations

import re
from datetime import datetime, timezone

from rldk.core.jsonio import to_step

__all__ = ["parse_seconds", "parse_step"]

_UNITS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "min": 60.0, "s": 1.0, "ms": 0.001}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(d|h|min|ms|m|s)(?![a-z])")
_CLOCK = re.compile(r"(?:(\d+) days?, )?(\d+):(\d{1,2})(?::(\d{1,2}(?:\.\d+)?))?")


def parse_seconds(text: str) -> float | None:
    """Seconds that a text stands for: since 1970 for a date, a duration otherwise; `None` if it is neither."""
    text = text.strip()[:64]
    if match := _CLOCK.fullmatch(text):
        days, first, second, third = match.groups()
        if third is None:
            return int(first) * 60.0 + int(second)
        return int(days or 0) * 86400.0 + int(first) * 3600.0 + int(second) * 60.0 + float(third)
    parts = _PART.findall(text)
    if parts and not _PART.sub("", text).strip(" ,"):
        return sum(float(number) * _UNITS[unit] for number, unit in parts)
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00").replace(",", "."))
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp()


def parse_step(text: str) -> int | None:
    """The step that a text stands for; of `10/547` it is the 10."""
    return to_step(text.split("/", 1)[0])
