"""The page of a cause of incidents, as `rldk explain` and `rldk.explain` show it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rldk.core.text import in_words, sentence
from rldk.detectors.table import BY_TYPE
from rldk.judge.incidents.advice import advice_in_general
from rldk.judge.incidents.causes import CAUSES, Cause
from rldk.present.page import Page

__all__ = ["CausePage", "cause_pages"]

_HOW_CHOSEN = "Of the causes that explain what was found, the one with the most weight is named; what moved first counts most."


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
        """The page as headings and what stands below each."""
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
