"""What a picture shows, said without saying how it is drawn: a panel with curves, bands, target lines and marks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from rldk.core.text import clean, short_number

__all__ = ["Band", "Curve", "FloatArray", "Level", "Mark", "Panel", "describe"]

FloatArray = npt.NDArray[np.float64]

STYLES = ("solid", "dashed", "faint")
SEVERITIES = ("warning", "critical", "good")


@dataclass(frozen=True, slots=True)
class Band:
    """A shaded range around a curve, at the curve's own steps; `label` says what it spans."""

    low: FloatArray
    high: FloatArray
    label: str


@dataclass(frozen=True, slots=True)
class Curve:
    """One series. `y` may hold what is not finite: there the line is broken and the place is marked, never drawn as 0.

    `colour` is a number of the palette; curves of one run share it where several runs are laid over each other.
    """

    label: str
    metric: str
    x: FloatArray
    y: FloatArray
    bands: tuple[Band, ...] = ()
    style: str = "solid"
    colour: int = 0
    run: str = ""

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y):
            raise ValueError(f"Expected `x` and `y` of one length, got {len(self.x)} and {len(self.y)}.")
        if self.style not in STYLES:
            raise ValueError(f"Expected `style` to be one of {STYLES}, got {self.style!r}.")


@dataclass(frozen=True, slots=True)
class Level:
    """A horizontal line: a target, or a value that means something, such as a ratio of 1."""

    y: float
    label: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment: where an incident was raised, or the last good step. `text` is what a reader may want to know of it."""

    x: float
    label: str
    severity: str
    text: str = ""

    def __post_init__(self) -> None:
        if self.severity not in SEVERITIES:
            raise ValueError(f"Expected `severity` to be one of {SEVERITIES}, got {self.severity!r}.")


@dataclass(slots=True)
class Panel:
    """One picture: what a renderer needs, and no more.

    `limits` are bounds that the quantity cannot leave (a share is in 0 to 1), and the axis neither; `log` asks for a
    logarithmic axis, on which values of 0 lie on the floor.
    """

    key: str
    group: str
    title: str
    unit: str
    curves: list[Curve]
    levels: list[Level] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    limits: tuple[float, float] | None = None
    log: bool = False
    x_label: str = "step"

    @property
    def alt(self) -> str:
        """The picture in words, for those who cannot see it."""
        return describe(self)

    def metrics(self) -> list[str]:
        """The metrics that are shown, each once."""
        return list(dict.fromkeys(curve.metric for curve in self.curves))

    def values(self) -> Iterator[FloatArray]:
        """All that must find room on the axis: curves and bands."""
        for curve in self.curves:
            yield curve.y
            for band in curve.bands:
                yield band.low
                yield band.high


def describe(panel: Panel) -> str:
    """A panel in a few sentences: where each curve begins and ends, how far it went, and what is marked."""
    told = [f"{panel.title}{f' in {panel.unit}' if panel.unit else ''}, by {panel.x_label}."]
    for curve in panel.curves[:6]:
        told.append(_told(curve))
    if len(panel.curves) > 6:
        told.append(f"And {len(panel.curves) - 6} more curves.")
    told += [f"A line at {short_number(level.y)}: {level.label}." for level in panel.levels]
    told += [f"Marked at {panel.x_label} {short_number(mark.x)}: {clean(mark.text or mark.label)}." for mark in panel.marks[:6]]
    return clean(" ".join(told), 1500)


def _told(curve: Curve) -> str:
    name = clean(f"{curve.label} of {curve.run}" if curve.run else curve.label, 80)
    finite = np.flatnonzero(np.isfinite(curve.y))
    broken = len(curve.y) - len(finite)
    if not len(finite):
        return f"{name}: no finite value."
    y = curve.y[finite]
    first, last = short_number(float(y[0])), short_number(float(y[-1]))
    said = f"{name}: from {first} to {last}, between {short_number(float(y.min()))} and {short_number(float(y.max()))}"
    return f"{said}, with places that are not finite." if broken else f"{said}."
