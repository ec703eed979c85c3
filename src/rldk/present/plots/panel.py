"""What a plot shows, independent of how it is drawn: a panel with curves, bands, horizontal lines and marks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from rldk.core.text import clean, short_number

__all__ = ["Band", "Curve", "FloatArray", "Level", "Mark", "Panel"]

FloatArray = npt.NDArray[np.float64]

STYLES = ("solid", "dashed", "faint")
SEVERITIES = ("warning", "critical", "good")


@dataclass(frozen=True, slots=True)
class Band:
    """A shaded range around a curve, at the x values of the curve; `label` says what it spans."""

    low: FloatArray
    high: FloatArray
    label: str


@dataclass(frozen=True, slots=True)
class Curve:
    """One series. Where `y` is not finite, the line is broken and the place is marked; it is never drawn as 0.

    `colour` is a number of the palette; with several runs in one panel, all curves of a run share it.
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

    @property
    def name(self) -> str:
        """The label, with the run where several runs are drawn."""
        return f"{self.run} · {self.label}" if self.run else self.label


@dataclass(frozen=True, slots=True)
class Level:
    """A horizontal line: a target, or a value with a meaning, such as a ratio of 1."""

    y: float
    label: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment: where an incident was raised, or the last good step. `text` describes it."""

    x: float
    label: str
    severity: str
    text: str = ""

    def __post_init__(self) -> None:
        if self.severity not in SEVERITIES:
            raise ValueError(f"Expected `severity` to be one of {SEVERITIES}, got {self.severity!r}.")


@dataclass(slots=True)
class Panel:
    """One plot: what a renderer needs to know.

    `limits` are the bounds of the quantity, and so of the axis (a share is in 0 to 1); `log` asks for a logarithmic axis,
    with values of 0 at its lower end, and `x_log` for a logarithmic x axis.
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
    x_log: bool = False

    @property
    def alt(self) -> str:
        """The plot in words, for screen readers: where each curve begins and ends, its range, and what is marked."""
        sentences = [f"{self.title}{f' in {self.unit}' if self.unit else ''}, by {self.x_label}."]
        sentences += map(_describe_curve, self.curves[:6])
        if len(self.curves) > 6:
            sentences.append(f"And {len(self.curves) - 6} more curves.")
        sentences += [f"A line at {short_number(level.y)}: {level.label}." for level in self.levels]
        for mark in self.marks[:6]:
            sentences.append(f"Marked at {self.x_label} {short_number(mark.x)}: {clean(mark.text or mark.label)}.")
        return clean(" ".join(sentences), 1500)

    def values(self) -> Iterator[FloatArray]:
        """All values that the axis must include: curves and bands."""
        for curve in self.curves:
            yield curve.y
            for band in curve.bands:
                yield band.low
                yield band.high


def _describe_curve(curve: Curve) -> str:
    name = clean(f"{curve.label} of {curve.run}" if curve.run else curve.label, 80)
    finite = np.flatnonzero(np.isfinite(curve.y))
    broken = len(curve.y) - len(finite)
    if not len(finite):
        return f"{name}: no finite value."
    y = curve.y[finite]
    first, last = short_number(float(y[0])), short_number(float(y[-1]))
    range_ = f"{name}: from {first} to {last}, between {short_number(float(y.min()))} and {short_number(float(y.max()))}"
    return f"{range_}, with values that are not finite." if broken else f"{range_}."
