"""Colours for light and for dark backgrounds, each with a contrast of at least 3 to 1, and as CSS variables."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CSS", "DARK", "LIGHT", "Palette"]


@dataclass(frozen=True, slots=True)
class Palette:
    """The colours of a renderer.

    The first eight of `series` can be distinguished with colour blindness, too, in their order; the others are as far from
    those and from each other as the contrast allows.
    """

    paper: str
    ground: str
    ink: str
    soft: str
    grid: str
    critical: str
    warning: str
    good: str
    series: tuple[str, ...]

    def curve(self, number: int) -> str:
        """The colour of a curve; after the last one they repeat."""
        return self.series[number % len(self.series)]

    def severity(self, name: str) -> str:
        """The colour of a mark."""
        return {"critical": self.critical, "warning": self.warning, "good": self.good}[name]

    def variables(self) -> str:
        """The palette as CSS declarations."""
        named = {name: getattr(self, name) for name in ("paper", "ground", "ink", "soft", "grid", "critical", "warning", "good")}
        named |= {f"s{number}": colour for number, colour in enumerate(self.series)}
        return "".join(f"--rldk-{name}:{colour};" for name, colour in named.items())


LIGHT = Palette(
    "#ffffff", "#f5f7f9", "#1c2430", "#5a6675", "#e3e7ec", "#c4271a", "#9a6100", "#16794c",
    (
        "#1f66d1", "#c2510a", "#0f8a5f", "#8a3ab9", "#b8316f", "#0b7f8f", "#7a6200", "#58616f",
        "#780000", "#3c0f87", "#004b00", "#69005a", "#a578a5", "#004b87", "#5a3c0f", "#96875a",
        "#7878f0", "#d25ab4", "#873c4b", "#5a3c78", "#e15a69", "#004b4b", "#5a9600", "#4b3cb4",
        "#5a87c3", "#3c6900", "#a51e00", "#961e87", "#5a2d3c", "#a569d2", "#695aa5", "#a56969",
    ),
)  # fmt: skip
DARK = Palette(
    "#14181f", "#0e1116", "#e7ebf0", "#a3aebb", "#2c343f", "#ff7a6b", "#f0b13c", "#4fce93",
    (
        "#6ea8ff", "#ff9c55", "#47cf9d", "#c894f2", "#f58ab8", "#4cc9dc", "#d9c04a", "#aab4c0",
        "#878700", "#e14b3c", "#a5ff87", "#c34ba5", "#009687", "#8769e1", "#a57869", "#69fff0",
        "#00a53c", "#6987b4", "#ffc3ff", "#87c32d", "#d27800", "#0087f0", "#ffe196", "#a5a569",
        "#f0b4b4", "#b4d2a5", "#ffe100", "#b478a5", "#f05a87", "#b4d2ff", "#00a5d2", "#ff7869",
    ),
)  # fmt: skip
CSS = Palette(
    "var(--rldk-paper)", "var(--rldk-ground)", "var(--rldk-ink)", "var(--rldk-soft)", "var(--rldk-grid)",
    "var(--rldk-critical)", "var(--rldk-warning)", "var(--rldk-good)",
    tuple(f"var(--rldk-s{number})" for number in range(len(LIGHT.series))),
)  # fmt: skip
