"""Prompts and answers that a run recorded in its events, the latest of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from rldk.core.event import Event
from rldk.core.jsonio import to_number

__all__ = ["Samples"]

_WHERE = ("samples", "response_data", "completions", "responses", "generations", "rollouts")
_PROMPT = ("prompt", "query", "question", "input", "instruction")
_ANSWER = ("completion", "response", "answer", "output", "text", "generation", "response_text")
_REWARD = ("reward", "score", "reward_mean", "advantage")
_MOST = 500
_MOST_OF_A_STEP = 32
_MOST_TEXT = 4000


class Samples:
    """The last recorded samples, in bounded memory: 500 of them, each text cut at 4000 characters."""

    def __init__(self) -> None:
        self.kept: deque[dict[str, Any]] = deque(maxlen=_MOST)
        self.total = 0

    def take(self, event: Event) -> None:
        """Keep what an event holds of samples."""
        for name in _WHERE:
            given = event.extra.get(name)
            if isinstance(given, list):
                made = [sample for record in given[:_MOST_OF_A_STEP] if (sample := _sample(event.step, record)) is not None]
                self.kept.extend(made)
                self.total += len(made)

    def page(self, start: int, count: int, words: str = "") -> tuple[list[dict[str, Any]], int]:
        """Some of them, the latest first, and how many there are; only those with `words` in them where any are given."""
        found = list(reversed(self.kept))
        if words:
            wanted = words.lower()
            found = [sample for sample in found if wanted in sample["prompt"].lower() or wanted in sample["answer"].lower()]
        return found[start : start + count], len(found)


def _sample(step: int, record: Any) -> dict[str, Any] | None:
    """A record as prompt, answer and reward; `None` for one without any text (a length and a reward alone)."""
    if isinstance(record, str):
        return {"step": step, "prompt": "", "answer": record[:_MOST_TEXT], "reward": None, "cut": len(record) > _MOST_TEXT}
    if not isinstance(record, Mapping):
        return None
    prompt, answer = _text(record, _PROMPT), _text(record, _ANSWER)
    if not prompt and not answer:
        return None
    reward = next((number for name in _REWARD if (number := to_number(record.get(name))) is not None), None)
    cut = len(prompt) > _MOST_TEXT or len(answer) > _MOST_TEXT
    return {"step": step, "prompt": prompt[:_MOST_TEXT], "answer": answer[:_MOST_TEXT], "reward": reward, "cut": cut}


def _text(record: Mapping[str, Any], names: tuple[str, ...]) -> str:
    found = next((record[name] for name in names if record.get(name) is not None), "")
    return found if isinstance(found, str) else str(found)[: 2 * _MOST_TEXT]
