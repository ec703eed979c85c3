"""Text for people: numbers, durations and names as all messages and pages write them, and text from logs made harmless."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from math import isfinite

__all__ = [
    "ago", "clean", "counted", "csv_cell", "did_you_mean", "duration", "escaped", "few", "first_line", "in_words",
    "known_names", "listed", "near_names", "sentence", "short_number", "unescaped", "writable",
]  # fmt: skip

_MAX_FLOAT = int(sys.float_info.max)
_MOST_OF_ERROR = 300
_CONTROL = re.compile(
    r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufffe\uffff]"
)


def writable(text: str) -> str:
    """The text with each half of a surrogate pair, which JSON and names of files may hold and no encoder writes, as `?`."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


_HALF = re.compile("[\ud800-\udfff]")
_ESCAPED_HALF = re.compile(r"\\u(d[89a-f][0-9a-f]{2})")


def escaped(text: str) -> str:
    """The text with each half of a surrogate pair as `\\udcff`: it can be written and stays unique; see `unescaped`."""
    return text if text.isascii() else _HALF.sub(lambda half: f"\\u{ord(half[0]):04x}", text)


def unescaped(text: str) -> str:
    """The text that `escaped` was given."""
    return _ESCAPED_HALF.sub(lambda half: chr(int(half[1], 16)), text) if "\\ud" in text else text


def clean(text: object, most: int = 200) -> str:
    """Text from a log as it may be shown: nothing that a terminal would obey or could not write, and not endless."""
    given = str(text)
    given = given if len(given) <= 50 * most else given[: 50 * most]  # a megabyte is not searched for what is cut off anyway
    shown = _CONTROL.sub("", writable(given)).replace("\n", " ")
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def first_line(error: BaseException) -> str:
    """The first line of what an error says, without its full stop; the error's name where it says nothing."""
    return (str(error).strip() or type(error).__name__).splitlines()[0][:_MOST_OF_ERROR].rstrip(".")


def csv_cell(value: object) -> object:
    """A value as a cell of a table: text that a spreadsheet would run as a formula gets an apostrophe before it."""
    if not isinstance(value, str) or not value.startswith(("=", "+", "-", "@", "\t", "\r")):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value


def did_you_mean(name: object, known: Iterable[str], most: int = 3, cutoff: float = 0.6) -> str:
    """` Did you mean a or b?` of the known names that a wrong one is near to; nothing where it is near to none."""
    near = near_names(name, known, most, cutoff)
    return f" Did you mean {' or '.join(near)}?" if near else ""


def known_names(name: object, known: Iterable[str], most: int = 8) -> str:
    """` Did you mean a or b?` of the known names that a wrong one is near to, or else ` Known are a, b and 3 more.`"""
    names = list(known)
    shown = names if len(names) <= most + 1 else [*names[:most], f"{len(names) - most} more"]
    return did_you_mean(name, names, 2) or (f" Known are {listed(shown)}." if names else "")


def near_names(name: object, known: Iterable[str], most: int = 3, cutoff: float = 0.6) -> list[str]:
    """The known names that a wrong one is near to, those that share the most parts first, then the nearest.

    `penalty_too_weak` is `kl_penalty_too_weak`, although `kl_penalty_too_strong` is spelt nearly the same.
    """
    import difflib  # slow to import, and only wanted for a mistake

    names, parts = sorted(known), _parts(str(name))
    near = difflib.get_close_matches(str(name), names, n=max(len(names), 1), cutoff=cutoff)
    return sorted(near, key=lambda one: -len(parts & _parts(one)))[:most]


def _parts(name: str) -> set[str]:
    """`{"kl", "mean"}` of `kl_mean`."""
    return set(re.split(r"[^a-z0-9]+", name.lower())) - {""}


def short_number(value: float | None, digits: int = 4) -> str:
    """A number in few characters: `1234`, `0.0123`, `1.2e-05`, `nan`; a dash for `None`."""
    if value is None:
        return "–"
    if isinstance(value, int) and abs(value) > _MAX_FLOAT:
        return "inf" if value > 0 else "-inf"
    if not isfinite(value):
        return str(value)
    if value == int(value) and abs(value) < 1e7:
        return str(int(value))
    return f"{value:.{digits}g}" if 1e-3 <= abs(value) < 1e6 else f"{value:.{min(digits, 3)}g}"


def counted(number: int, what: str) -> str:
    """`1 event`, `1,234 events`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def duration(seconds: float) -> str:
    """A time in few characters: `12 s`, `5 min`, `1.5 h`; empty where it is not known."""
    if not isfinite(seconds):
        return ""
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 90:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{seconds / 86_400:.1f} d"


def ago(seconds: float) -> str:
    """How long ago something was: `just now`, `5 min ago`."""
    return "just now" if seconds < 1.5 else f"{duration(seconds)} ago"


def listed(parts: Sequence[str]) -> str:
    """Parts of a sentence in a row: `a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def few(parts: Sequence[str], most: int) -> str:
    """The first few of some parts, and whether there are more: `a, b …`."""
    return ", ".join(parts[:most]) + (" …" if len(parts) > most else "")


_SPOKEN = {"user_limit_exceeded": "limit crossed"}  # a value below a minimum exceeds nothing


def in_words(name: str) -> str:
    """An identifier as people say it: `kl_trend_anomaly` is `KL trend`."""
    if name in _SPOKEN:
        return _SPOKEN[name]
    words = name.removesuffix("_anomaly").split("_")
    return " ".join(word.upper() if word in ("kl", "eos") else word for word in words)


def sentence(words: str) -> str:
    """The words with a capital letter at the start."""
    return words[:1].upper() + words[1:]
