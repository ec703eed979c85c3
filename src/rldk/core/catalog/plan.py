"""What becomes of a row: the routes by which its keys become metrics, and the plan for all rows with the same keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import Any

from msgspec import Struct

from rldk.core.catalog.metric import BY_SIGN, TRANSFORMS
from rldk.core.jsonio import to_number

__all__ = ["Plan", "Route"]


class Route(Struct, frozen=True, gc=False):
    """How one canonical metric is made of a row: which raw keys are added or subtracted, and what is done to the sum."""

    metric: str
    parts: tuple[str, ...]
    transform: str
    per: str
    signs: tuple[float, ...] = (1.0,)

    @property
    def source(self) -> str:
        first, *others = self.parts
        if not others:
            return first
        return first + "".join(f" {'+' if sign > 0 else '-'} {part}" for part, sign in zip(others, self.signs[1:], strict=True))

    def value(self, row: Mapping[str, Any], signs: dict[str, float]) -> float | None:
        """The metric's value in a row; `None` where a part of it is not a number, or its sign says that it is another metric.

        `signs` remembers the sign of each key's first value that is not 0.
        """
        total = to_number(row.get(self.parts[0]))
        for part, sign in zip(self.parts[1:], self.signs[1:], strict=True):
            number = to_number(row.get(part))
            total = None if total is None or number is None else total + sign * number
        if total is None:
            return None
        if self.transform in TRANSFORMS:
            return TRANSFORMS[self.transform](total)
        if total and isfinite(total):
            signs.setdefault(self.source, total)
        factor = self.factor(signs)
        return None if factor is None else factor * total

    def factor(self, signs: Mapping[str, float]) -> float | None:
        """The factor of a metric that depends on the sign; `None` where the key is another metric."""
        return BY_SIGN[self.transform][signs.get(self.source, 0.0) < 0.0] if self.transform in BY_SIGN else 1.0


@dataclass(frozen=True)
class Plan:
    """What becomes of the rows that have a given set of keys. Each metric has its routes in order of priority.

    Rows are read by `values`; the columns of a table by `rldk.runs.canonical.canonical_columns`.
    """

    routes: Mapping[str, tuple[Route, ...]]
    unmapped: tuple[str, ...]
    kind: str
    not_judged: tuple[str, ...] = ()
    """The keys that the framework is known to log and that carry no judgement; like unknown ones, they keep their name."""
    guessed: tuple[str, ...] = ()
    """The keys whose metric was guessed by the parts of their name."""

    @cached_property
    def copied(self) -> tuple[tuple[str, str], ...]:
        """The keys whose values are taken as they are, each with its metric; those of no metric keep their name."""
        alone = ((ways[0].parts[0], name) for name, ways in self.routes.items() if _is_copy(ways))
        return (*((key, key) for key in (*self.unmapped, *self.not_judged)), *alone)

    @cached_property
    def made(self) -> tuple[tuple[str, tuple[Route, ...]], ...]:
        """The other metrics, with their routes."""
        return tuple((name, ways) for name, ways in self.routes.items() if not _is_copy(ways))

    @cached_property
    def changes_nothing(self) -> bool:
        """Whether every key is kept as it is."""
        return not self.made and all(key == name for key, name in self.copied)

    def values(self, row: Mapping[str, Any], signs: dict[str, float]) -> tuple[dict[str, float], list[str]]:
        """The numbers of a row by canonical name, or by their own where they have none; and the metrics logged as `null`.

        `signs` belongs to the run that the row is of: see `Route.value`.
        """
        found: dict[str, float] = {}
        nulls = []
        for key, name in self.copied:
            value = row[key]
            if type(value) is not float:
                if value is None:
                    nulls.append(name)
                if (value := to_number(value)) is None:
                    continue
            found[name] = value
        for name, ways in self.made:
            number = next((made for way in ways if (made := way.value(row, signs)) is not None), None)
            if number is not None:
                found[name] = number
            elif any(part in row and row[part] is None for way in ways if way.factor(signs) for part in way.parts):
                nulls.append(name)
        return found, nulls


def _is_copy(ways: tuple[Route, ...]) -> bool:
    return len(ways) == 1 and ways[0].transform == "same" and len(ways[0].parts) == 1
