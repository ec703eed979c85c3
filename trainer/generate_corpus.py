"""Write small data sets for every stage: `python trainer/generate_corpus.py`.

Nothing is downloaded: stories, questions, answers and preferences are generated from the world of data_world.py, the same ones
for the same seed. They are written to dataset/raw/, where the data configs in config/data/ expect them.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import data_world as world
from rldk.core.files import write_text

HELD_OUT = 8  # every eighth question is held out and never answered in a training set


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("dataset/raw"), help="folder to write into")
    parser.add_argument("--seed", type=int, default=42, help="random seed; the same seed writes the same files")
    parser.add_argument("--scale", type=float, default=1.0, help="size of all sets relative to the default: 0.1 is a tenth")
    args = parser.parse_args()
    for path, count in generate(args.output, args.seed, args.scale).items():
        print(f"{count:7d} records  {path}")


def generate(folder: Path, seed: int = 42, scale: float = 1.0) -> dict[Path, int]:
    """Write every set; returns how many records each file holds."""
    if scale <= 0:
        raise ValueError(f"Expected `scale` to be above 0, got {scale}.")
    known = [question for question, _, _ in asked(held_out=False)]
    sets: dict[str, Iterable[Any]] = {
        "stories.jsonl": ({"text": text} for text in stories(seed, round(12000 * scale))),
        "sayings.txt": sayings(seed, round(600 * scale)),
        "quiz.jsonl": quiz(seed, round(4000 * scale)),
        "chats.jsonl": chats(seed, round(4000 * scale)),
        "lessons.json": lessons(seed, round(800 * scale)),
        "preferences.jsonl": preferences(seed, round(2000 * scale)),
        "questions.jsonl": ({"question": question} for question in known),
        "requests.jsonl": ({"prompt": f"{start} {question}"} for start in ("Please tell me.", "Quick!") for question in known),
        "held_out.jsonl": ({"question": question} for question, _, _ in asked(held_out=True)),
    }
    return {folder / name: _write(folder / name, list(records)) for name, records in sets.items()}


def asked(held_out: bool) -> list[tuple[str, str, str]]:
    """The questions of the training sets, or those kept apart from them."""
    return [row for number, row in enumerate(world.questions()) if (number % HELD_OUT == HELD_OUT - 1) == held_out]


def stories(seed: int, count: int) -> Iterator[str]:
    rng = random.Random(f"stories {seed}")
    return (world.story(rng) for _ in range(count))


def sayings(seed: int, count: int) -> Iterator[str]:
    """Sayings of one line each."""
    rng = random.Random(f"sayings {seed}")
    for _ in range(count):
        animal, other = rng.sample(sorted(world.FACTS), 2)
        yield f"Said the {animal} to the {other}: {rng.choice(world.KIND_BEFORE)} You come from {world.fact(other, 'home')}."


def quiz(seed: int, count: int) -> Iterator[dict[str, str]]:
    """Plain text of questions with their answers: a step between stories and conversations."""
    rng = random.Random(f"quiz {seed}")
    rows = asked(held_out=False)
    for _ in range(count):
        lines = []
        for question, animal, kind in rng.sample(rows, 3):
            lines.append(f"{question} {world.answer(rng, animal, kind, rng.choice(world.TONES))}")
        yield {"text": " ".join(lines)}


def chats(seed: int, count: int) -> Iterator[dict[str, Any]]:
    """Conversations of one or two turns, in all tones; later stages teach the kind one."""
    rng = random.Random(f"chats {seed}")
    rows = asked(held_out=False)
    for _ in range(count):
        messages = []
        for question, animal, kind in rng.sample(rows, 2 if rng.random() < 0.2 else 1):
            reply = world.answer(rng, animal, kind, rng.choice(world.TONES))
            messages += [{"role": "user", "content": question}, {"role": "assistant", "content": reply}]
        yield {"messages": messages}


def lessons(seed: int, count: int) -> Iterator[dict[str, str]]:
    """Instructions with their output, in the format of many public data sets."""
    rng = random.Random(f"lessons {seed}")
    for _ in range(count):
        question, animal, kind = rng.choice(asked(held_out=False))
        yield {"instruction": f"Please tell me. {question}", "input": "", "output": world.answer(rng, animal, kind, "plain")}


def preferences(seed: int, count: int) -> Iterator[dict[str, str]]:
    """Two answers to one question: the chosen one is kind and true."""
    rng = random.Random(f"preferences {seed}")
    rows = asked(held_out=False)
    for _ in range(count):
        question, animal, kind = rng.choice(rows)
        chosen, rejected = world.answer(rng, animal, kind, "kind"), world.bad_answer(rng, animal, kind)
        yield {"prompt": question, "chosen": chosen, "rejected": rejected}


def _write(path: Path, records: list[Any]) -> int:
    if path.suffix == ".txt":
        text = "".join(f"{record}\n" for record in records)
    elif path.suffix == ".json":
        text = json.dumps(records, indent=1) + "\n"
    else:
        text = "".join(json.dumps(record) + "\n" for record in records)
    write_text(path, text)
    return len(records)


if __name__ == "__main__":
    main()
