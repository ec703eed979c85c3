"""A detector's page, as `rldk explain` and `rldk.explain` show it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rldk.core.errors import UsageError
from rldk.core.text import did_you_mean, sentence
from rldk.detectors.base import COMMON_SETTINGS, SECTIONS, Detector
from rldk.detectors.run.user_limit import UserLimit
from rldk.detectors.table import DETECTORS
from rldk.present.cause_page import CausePage, cause_pages
from rldk.present.page import Page

__all__ = ["DetectorPage", "detector_pages", "page_names", "page_of"]


@dataclass(frozen=True, slots=True, repr=False)
class DetectorPage(Page):
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
        if self.cause is not None:
            yield from self.cause.parts()

    @property
    def cause(self) -> CausePage | None:
        """The page of the cause that has the same name, if there is one."""
        return cause_pages().get(self.kind.type)

    def _clause(self, name: str) -> tuple[str, str]:
        clause = self.kind.clauses[name]
        said = f"{name} ({clause.severity}, {self.kind.wait_in_words(name)}): {sentence(clause.says)}."
        return said, f"    Basis: {clause.basis}."

    def _settings(self) -> Iterator[str]:
        for name, setting in {**self.kind.settings, **COMMON_SETTINGS}.items():
            default = _default(self.kind, name)
            yield f"{name} = {'by clause' if default is None else f'{default:g}'}: {setting.meaning}"
        yield "enabled, severity, sensitivity: disable it, override its severity, or make it wait less (high) or longer (low)"

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
                name: {
                    "says": clause.says, "severity": clause.severity, "holds": clause.persist, "rows": clause.min_rows,
                    "basis": clause.basis,
                }
                for name, clause in kind.clauses.items()
            },
            "settings": {
                name: {"default": _default(kind, name), "meaning": setting.meaning, "least": setting.min, "most": setting.max}
                for name, setting in settings.items()
            },
            "cause": None if self.cause is None else self.cause.to_dict()["cause"],
        }


def detector_pages() -> dict[str, DetectorPage]:
    """The pages of all detectors, by type."""
    kinds: list[type[Detector]] = [*DETECTORS, UserLimit]
    return {kind.type: DetectorPage(kind) for kind in kinds}


def page_of(name: str) -> DetectorPage | CausePage:
    """The page of a detector, by the type of its anomalies, or of a cause, by its name."""
    detectors, causes = detector_pages(), cause_pages()
    found = detectors.get(name) or causes.get(name)
    if found is None:
        hint = did_you_mean(name, page_names()) or " `rldk explain` lists both."
        raise UsageError(f"No detector or cause {name!r}.{hint}")
    return found


def page_names() -> set[str]:
    """The names that `rldk explain` takes: the types of anomalies, and the causes."""
    return {*detector_pages(), *cause_pages()}


def _default(kind: type[Detector], name: str) -> float | None:
    """The default of a setting; `None` for a persistence that each clause sets for itself."""
    if name in kind.settings:
        return kind.settings[name].default
    return None if name == "persist" else float(kind.clear)
