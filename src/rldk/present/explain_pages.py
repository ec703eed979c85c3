"""The pages that `rldk explain` and `rldk.explain` show: of each detector, and of each cause of incidents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from rldk.core.errors import UsageError
from rldk.core.text import did_you_mean, in_words, sentence
from rldk.detectors.base import COMMON_SETTINGS, SECTIONS, Detector
from rldk.detectors.run.user_limit import UserLimit
from rldk.detectors.table import BY_TYPE, DETECTORS
from rldk.judge.incidents.advice import advice_in_general
from rldk.judge.incidents.causes import CAUSES, Cause
from rldk.present.html import text

__all__ = ["CausePage", "DetectorPage", "Page", "cause_pages", "detector_pages", "page_names", "page_of"]

_HOW_CHOSEN = "Of the causes that explain what was found, the one with the most weight is named; what moved first counts most."


class Page:
    """A page of headings with lines below each: text for a terminal, HTML in a notebook."""

    __slots__ = ()

    def parts(self) -> Iterator[tuple[str, list[str]]]:
        """The page as headings and what stands below each."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return "\n\n".join("\n".join([heading, *lines]) for heading, lines in self.parts())

    def _repr_html_(self) -> str:
        made = Markup("")
        for number, (heading, lines) in enumerate(self.parts()):
            tag = Markup("h3" if number == 0 else "h4")
            made += Markup("<{0}>{1}</{0}>").format(tag, text(heading))
            made += Markup("").join(Markup("<p>{}</p>").format(text(line, 4000)) for line in lines)
        return str(made)


@dataclass(frozen=True, slots=True, repr=False)
class CausePage(Page):
    """What a cause means, by which evidence it is recognised, and what to do."""

    cause: Cause

    @property
    def type(self) -> str:
        return self.cause.name

    @property
    def title(self) -> str:
        return sentence(self.cause.title)

    def parts(self) -> Iterator[tuple[str, list[str]]]:
        yield f"{self.cause.name}  (cause of an incident)", [f"{self.title}."]
        yield "Evidence for it", [f"{sign}: {_said_by(sign)} (weight {weight:g})" for sign, weight in self._signs(1)]
        if against := self._signs(-1):
            yield "Evidence against it", [f"{sign}: {_said_by(sign)} (weight {-weight:g})" for sign, weight in against]
        if self.cause.needs:
            yield "Needs at least one of", [", ".join(self.cause.needs)]
        yield "How it is chosen", [_HOW_CHOSEN]
        yield "What to do", [*self._advice()]

    def _signs(self, direction: int) -> list[tuple[str, float]]:
        """The signs for it (1) or against it (-1), the strongest first."""
        found = [(sign, weight) for sign, weight in self.cause.signs.items() if weight * direction > 0]
        return sorted(found, key=lambda pair: -abs(pair[1]))

    def _advice(self) -> Iterator[str]:
        yield sentence(advice_in_general(self.cause.advice))
        for first, advice in self.cause.advice_after.items():
            yield f"Where {first} came first: {sentence(advice_in_general(advice))}"

    def to_dict(self) -> dict[str, Any]:
        """As `rldk explain --json` prints it."""
        cause = self.cause
        after = {first: advice_in_general(advice) for first, advice in cause.advice_after.items()}
        own = {
            "name": cause.name, "title": cause.title, "signs": dict(cause.signs), "needs": list(cause.needs),
            "advice": advice_in_general(cause.advice), "advice_after": after,
        }  # fmt: skip
        return {"cause": own}


def cause_pages() -> dict[str, CausePage]:
    """The pages of all causes, by name."""
    return {cause.name: CausePage(cause) for cause in CAUSES}


def _said_by(sign: str) -> str:
    """What a sign says: the title of a detector, or the sentence of one of its clauses."""
    kind, _, clause = sign.partition(".")
    detector = BY_TYPE.get(kind)
    if detector is None:
        return sentence(in_words(kind))
    said = detector.clauses[clause].says if clause else detector.documentation()["title"]
    return sentence(said.rstrip("."))


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
                    "says": clause.says,
                    "severity": clause.severity,
                    "holds": clause.persist,
                    "rows": clause.min_rows,
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
    pages: dict[str, DetectorPage | CausePage] = {**cause_pages(), **detector_pages()}
    found = pages.get(name)
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
