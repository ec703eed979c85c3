"""What a metric, a framework and a framework's key are: the rows of the tables in `metrics` and `frameworks`.

Records that hold only text and numbers are made with `gc=False`. TRL's PPO collects garbage twice an update, and the
collector would look at thousands of them each time.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from msgspec import Struct

__all__ = [
    "BY_SIGN", "REDUCTIONS", "TRANSFORMS", "TROUBLE", "Framework", "Key", "Metric", "framework", "metric", "normalise",
    "without_blanks",
]  # fmt: skip

def _root(value: float) -> float:
    return math.sqrt(value) if value >= 0 else math.nan


TRANSFORMS: dict[str, Callable[[float], float]] = {
    "same": lambda value: value,
    "negate": lambda value: -value,
    "percent": lambda value: value / 100.0,
    "complement": lambda value: 1.0 - value,
    "root": _root,
    "milli": lambda value: value / 1e3,
    "ten_thousandth": lambda value: value / 1e4,
}
"""What a framework's value may need to become ours: SB3's entropy loss is minus the entropy, a variance has to be rooted."""

BY_SIGN: dict[str, tuple[float | None, float | None]] = {
    "magnitude": (1.0, -1.0),
    "unless_negative": (1.0, None),
    "if_negative": (None, 1.0),
}
"""What the sign of a key's first value that is not 0 decides: the factor of all its values where it is above 0, and where below.

An entropy loss is minus the entropy in some programs. Unlike a magnitude of each value, this leaves the differential entropy of
continuous actions below 0 once it falls there. Where there is no factor, the key is not this metric.
"""

REDUCTIONS = ("token", "sequence", "batch", "run", "unstated")
TROUBLE = ("high", "low", "both", "none")


class Key(Struct, frozen=True, gc=False):
    """A framework's name for a metric, and what its value needs to become ours.

    `name` may hold `*` for one path segment or more (`rewards/*/mean`), or several keys joined by ` + ` whose values
    are added; a key after ` - ` is subtracted. `per` overrides the metric's own reduction.
    """

    name: str
    transform: str = "same"
    per: str = ""
    estimator: str = ""

    def __post_init__(self) -> None:
        if self.transform not in TRANSFORMS and self.transform not in BY_SIGN:
            raise ValueError(f"Expected `transform` to be one of {sorted((*TRANSFORMS, *BY_SIGN))}, got {self.transform!r}.")

    @property
    def parts(self) -> tuple[str, ...]:
        """The raw keys it is made of; one, unless it is a sum. A key that is subtracted has a minus sign before it."""
        return tuple(self.name.replace(" - ", " + -").split(" + "))

    @property
    def is_pattern(self) -> bool:
        return "*" in self.name


class Metric(Struct, frozen=True, gc=False):
    """One canonical metric. A name that ends in `/*` is a family: the part that matches is appended to it."""

    name: str
    group: str
    meaning: str
    unit: str
    reduction: str = "batch"
    trouble: str = "none"
    estimator: str = ""
    aliases: tuple[str, ...] = ()
    complements: tuple[str, ...] = ()
    """Names of somebody's own for 1 minus the metric."""

    def __post_init__(self) -> None:
        if self.reduction not in REDUCTIONS:
            raise ValueError(f"Expected `reduction` to be one of {REDUCTIONS}, got {self.reduction!r}.")
        if self.trouble not in TROUBLE:
            raise ValueError(f"Expected `trouble` to be one of {TROUBLE}, got {self.trouble!r}.")


def metric(
    name: str,
    group: str,
    meaning: str,
    unit: str,
    reduction: str = "batch",
    trouble: str = "none",
    *,
    estimator: str = "",
    aliases: str = "",
    complements: str = "",
) -> Metric:
    """A line of the table of metrics; aliases are one string of words."""
    return Metric(name, group, meaning, unit, reduction, trouble, estimator, tuple(aliases.split()), tuple(complements.split()))


@dataclass(frozen=True, slots=True)
class Framework:
    """What one framework logs.

    Attributes:
        title: what people call it.
        keys: its own keys of each canonical metric; of several in one row the first counts.
        signature: keys that are not metrics but identify it.
        known: keys that it logs and that carry no judgement, such as times; `*` stands for anything, `?` for one letter.
        json_lines: whether it writes JSON lines, one object per step, that are recognised by its keys.
    """

    name: str
    title: str
    keys: Mapping[str, tuple[Key, ...]]
    signature: tuple[str, ...] = ()
    json_lines: bool = False
    known: tuple[str, ...] = ()


def framework(
    name: str,
    title: str,
    *,
    keys: Mapping[str, str | Key | tuple[str | Key, ...]],
    signature: tuple[str, ...] = (),
    json_lines: bool = False,
    known: str = "",
) -> Framework:
    """A framework whose keys are given as a string, a `Key`, or several of them for each metric; `known` are words."""
    made = {
        metric: tuple(key if isinstance(key, Key) else Key(key) for key in (given if isinstance(given, tuple) else (given,)))
        for metric, given in keys.items()
    }
    return Framework(name, title, made, signature, json_lines, tuple(known.split()))


_NOT_WORD = re.compile(r"[^0-9a-z]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z](?:[a-z]|$))")


def normalise(key: str) -> str:
    """A key as people would say it: `Avg Response Len`, `avg-response-len` and `avgResponseLen` are one."""
    return _NOT_WORD.sub("_", _CAMEL.sub("_", key).lower()).strip("_")


def without_blanks(key: str) -> str:
    """A key's path as it was logged: notebooks show `completions/mean_length` as `completions / mean_length`."""
    return key.replace(" / ", "/") if " / " in key else key
