"""Words for people: ages, counts, numbers; and text from logs made harmless."""

from __future__ import annotations

import html
import math

from rldk.core.text import clean

__all__ = ["ago", "count", "named", "number", "safe", "safe_lines", "since_bytes"]


def safe(text: object, most: int = 400) -> str:
    """Text from a log as it may stand in a page: it says what it says, and does nothing."""
    return html.escape(clean(text, most), quote=True)


def safe_lines(text: str, most: int = 4000) -> str:
    """A longer text, with its lines kept."""
    return "\n".join(html.escape(clean(line, most), quote=True) for line in text[:most].split("\n"))


def ago(seconds: float) -> str:
    """How long ago that was."""
    if seconds < 1.5:
        return "just now"
    for size, unit in ((86400.0, "day"), (3600.0, "hour"), (60.0, "minute"), (1.0, "second")):
        if seconds >= size:
            whole = int(seconds // size)
            return f"{whole} {unit}{'' if whole == 1 else 's'} ago"
    return "just now"


def count(value: int) -> str:
    """A whole number with its thousands apart."""
    return f"{value:,}".replace(",", " ")


def number(value: float | None) -> str:
    """A number in few characters; a dash where there is none."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not math.isfinite(value):
        return str(value)
    if value == int(value) and abs(value) < 1e7:
        return count(int(value))
    return f"{value:.3g}" if abs(value) < 1e-3 or abs(value) >= 1e6 else f"{value:.4g}"


def since_bytes(size: int) -> str:
    """The size of a file."""
    amount = float(size)
    for unit in ("B", "kB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"


def named(identifier: str) -> str:
    """A name of ours as words."""
    return identifier.replace("_", " ")
