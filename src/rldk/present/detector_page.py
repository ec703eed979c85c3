"""A detector's page, as `rldk explain` and `rldk.explain` show it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from rldk.core.errors import UsageError
from rldk.core.text import did_you_mean, sentence
from rldk.detectors.base import COMMON_SETTINGS, SECTIONS, Detector
from rldk.detectors.run.user_limit import UserLimit
from rldk.detectors.table import DETECTORS
from rldk.present.html import text

__all__ = ["DetectorPage", "detector_page", "detector_pages"]


@dataclass(frozen=True, slots=True, repr=False)
class DetectorPage:
    """What a detector catches, why it matters, when it misfires, what to do, and its settings."""

    kind: type[Detector]

    @property
    def type(self) -> str:
        return self.kind.type

    @property
    def title(self) -> str:
        return self.kind.documentation()["title"]

    def parts(self) -> Iterator[tuple[str, list[str]]]:
        """The page as headings and what stands below each."""
        kind, pages = self.kind, self.kind.documentation()
        yield f"{kind.type}  ({kind.family})", [pages["title"]]
        for section in SECTIONS:
            yield section, [sentence(pages.get(section, "–"))]
        yield "Clauses", [line for name in kind.clauses for line in self._clause(name)]
        yield "Needs", ["; ".join(" or ".join(group) for group in kind.needs) or "nothing in particular"]
        yield "Settings", [*self._settings()]

    def _clause(self, name: str) -> tuple[str, str]:
        clause = self.kind.clauses[name]
        said = f"{name} ({clause.severity}, {self.kind.wait_in_words(name)}): {sentence(clause.says)}."
        return said, f"    Basis: {clause.basis}."

    def _settings(self) -> Iterator[str]:
        for name, setting in {**self.kind.settings, **COMMON_SETTINGS}.items():
            default = _default(self.kind, name)
            yield f"{name} = {'by clause' if default is None else f'{default:g}'}: {setting.meaning}"
        yield "enabled, severity, sensitivity: disable it, override its severity, or make it wait less (high) or longer (low)"

    def __repr__(self) -> str:
        return "\n\n".join("\n".join([heading, *lines]) for heading, lines in self.parts())

    def _repr_html_(self) -> str:
        made = Markup("")
        for number, (heading, lines) in enumerate(self.parts()):
            tag = Markup("h3" if number == 0 else "h4")
            made += Markup("<{0}>{1}</{0}>").format(tag, text(heading))
            made += Markup("").join(Markup("<p>{}</p>").format(text(line, 4000)) for line in lines)
        return str(made)

    def to_dict(self) -> dict[str, Any]:
        """As `rldk explain --json` prints it."""
        kind = self.kind
        settings = {**kind.settings, **COMMON_SETTINGS}
        return {
            "type": kind.type,
            "tracker": kind.family,
            "needs": [list(group) for group in kind.needs],
            "documentation": kind.documentation(),
            "clauses": {
                name: {"says": clause.says, "severity": clause.severity, "holds": steps, "rows": rows, "basis": clause.basis}
                for name, clause in kind.clauses.items()
                for steps, rows in (kind.persistence(name),)
            },
            "settings": {
                name: {"default": _default(kind, name), "meaning": setting.meaning, "least": setting.min, "most": setting.max}
                for name, setting in settings.items()
            },
        }


def detector_pages() -> dict[str, DetectorPage]:
    """The pages of all detectors, by type."""
    kinds: list[type[Detector]] = [*DETECTORS, UserLimit]
    return {kind.type: DetectorPage(kind) for kind in kinds}


def detector_page(kind: str) -> DetectorPage:
    """The page of one detector, by the type of its anomalies."""
    pages = detector_pages()
    if kind not in pages:
        raise UsageError(f"No detector {kind!r}." + (did_you_mean(kind, pages) or " `rldk explain` lists them."))
    return pages[kind]


def _default(kind: type[Detector], name: str) -> float | None:
    """The default of a setting; `None` for a persistence that each clause sets for itself."""
    if name in kind.settings:
        return kind.settings[name].default
    return None if name == "persist" and kind.check is Detector.check else float(getattr(kind, name))
