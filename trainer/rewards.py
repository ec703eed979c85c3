"""Rewards for the small world: `--reward rewards:helpful`.

Each takes prompts and responses as text and returns a number for each pair. Your own reward is a function of the same
form in any importable module: `--reward package.module:function`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import data_world as world

__all__ = ["helpful", "kindness", "truth"]

_KIND = tuple(phrase.lower() for phrase in world.KIND_BEFORE + world.KIND_AFTER)
_GRUMPY = tuple(phrase.lower() for phrase in world.GRUMPY_BEFORE + world.GRUMPY_AFTER)
_ASKED = {question.lower(): (animal, kind) for question, animal, kind in world.questions()}


def helpful(prompts: Sequence[str], responses: Sequence[str]) -> list[float]:
    """Kind and true: between -2 and 2. An answer that does not end in a sentence, or repeats itself, loses half a point."""
    scores = []
    for kind, true, response in zip(kindness(prompts, responses), truth(prompts, responses), responses, strict=True):
        text = response.strip()
        sentences = [part.strip() for part in re.split(r"[.!?]", text) if part.strip()]
        whole = text.endswith((".", "!", "?")) and len(set(sentences)) == len(sentences)
        scores.append(kind + true - (0.0 if whole else 0.5))
    return scores


def kindness(prompts: Sequence[str], responses: Sequence[str]) -> list[float]:
    """Plus half a point for each kind phrase and minus half for each grumpy one, between -1 and 1; a phrase counts once."""
    return [min(1.0, max(-1.0, 0.5 * _count(_KIND, text) - 0.5 * _count(_GRUMPY, text))) for text in map(str.lower, responses)]


def truth(prompts: Sequence[str], responses: Sequence[str]) -> list[float]:
    """1 for a response that names the animal with the fact asked for and no other of its kind, -1 for another fact, else 0."""
    return [_truth(prompt, response) for prompt, response in zip(prompts, responses, strict=True)]


def _truth(prompt: str, response: str) -> float:
    asked = next((found for question, found in _ASKED.items() if prompt.strip().lower().endswith(question)), None)
    if asked is None:
        return 0.0
    animal, kind = asked
    words = response.lower()
    told = {value for value in world.values(kind) if re.search(rf"\b{value}\b", words)}
    if told == {world.fact(animal, kind)} and re.search(rf"\b{animal}\b", words):
        return 1.0
    return -1.0 if told - {world.fact(animal, kind)} else 0.0


def _count(phrases: tuple[str, ...], text: str) -> int:
    return sum(phrase in text for phrase in phrases)
