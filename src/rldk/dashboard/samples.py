"""The prompts and answers that a run recorded in its events."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from rldk.core.event import Event
from rldk.core.jsonio import to_number

__all__ = ["Samples"]

_SAMPLE_KEYS = ("samples", "response_data", "completions", "responses", "generations", "rollouts")
_PROMPT_KEYS = ("prompt", "query", "question", "input", "instruction")
_ANSWER_KEYS = ("completion", "response", "answer", "output", "text", "generation", "response_text")
_REWARD_KEYS = ("reward", "score", "reward_mean", "advantage")
_MAX_SAMPLES = 500
_MAX_PER_STEP = 32
_MAX_TEXT = 4000


class Samples:
    """Prompts and answers that a run recorded in its events: the last 500, each text cut at 4000 characters."""

    def __init__(self) -> None:
        self.kept: deque[dict[str, Any]] = deque(maxlen=_MAX_SAMPLES)
        self.total = 0

    def take(self, event: Event) -> None:
        """Keep the samples of an event."""
        for name in _SAMPLE_KEYS:
            given = event.extra.get(name)
            if isinstance(given, list):
                made = [sample for record in given[:_MAX_PER_STEP] if (sample := _sample(event.step, record)) is not None]
                self.kept.extend(made)
                self.total += len(made)

    def page(self, start: int, count: int, words: str = "") -> tuple[list[dict[str, Any]], int]:
        """Some of them, the latest first, and how many there are; with `words` only those that contain them."""
        found = list(reversed(self.kept))
        if words:
            wanted = words.lower()
            found = [sample for sample in found if wanted in sample["prompt"].lower() or wanted in sample["answer"].lower()]
        return found[start : start + count], len(found)


def _sample(step: int, record: Any) -> dict[str, Any] | None:
    """A record as prompt, answer and reward; `None` for one without any text (a length and a reward alone)."""
    if isinstance(record, str):
        record = {"text": record}
    if not isinstance(record, Mapping):
        return None
    prompt, answer = _text(record, _PROMPT_KEYS), _text(record, _ANSWER_KEYS)
    if not prompt and not answer:
        return None
    reward = next((number for name in _REWARD_KEYS if (number := to_number(record.get(name))) is not None), None)
    cut = len(prompt) > _MAX_TEXT or len(answer) > _MAX_TEXT
    return {"step": step, "prompt": prompt[:_MAX_TEXT], "answer": answer[:_MAX_TEXT], "reward": reward, "cut": cut}


def _text(record: Mapping[str, Any], names: tuple[str, ...]) -> str:
    found = next((record[name] for name in names if record.get(name) is not None), "")
    return found if isinstance(found, str) else str(found)[: 2 * _MAX_TEXT]
