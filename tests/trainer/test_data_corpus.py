"""The generated world: the same for a seed, true, told apart by the rewards, and what the data configs of the project name."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

import data_world as world
import rewards
from data_config import read_config
from data_mix import mix
from generate_corpus import generate

ROOT = Path(__file__).parents[2]
CONFIGS = sorted((ROOT / "config/data").rglob("*.yaml"))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with generated data in it, as the project's root has after `generate_corpus.py`."""
    folder = tmp_path_factory.mktemp("project")
    generate(folder / "dataset/raw", scale=0.25)
    return folder


def test_the_same_seed_writes_the_same_bytes(tmp_path: Path) -> None:
    first, same, other = (
        {path.name: path.read_bytes() for path in generate(tmp_path / str(n), seed, 0.02)} for n, seed in enumerate((1, 1, 2))
    )
    assert first == same
    assert {name for name in first if first[name] != other[name]} == {
        "stories.jsonl", "sayings.txt", "quiz.jsonl", "chats.jsonl", "lessons.json", "preferences.jsonl"
    }  # fmt: skip


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_a_config_of_the_project_mixes_what_the_generator_writes(
    path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    mixture = mix(read_config(path))
    assert len(mixture.records) > 300
    assert all(report.taken > 10 and report.left_out["wrong shape"] == 0 for report in mixture.reports)


def test_there_is_a_config_for_every_stage() -> None:
    assert sorted(read_config(path).stage for path in CONFIGS) == ["dpo", "midtrain", "ppo", "pretrain", "sft"]


def test_chosen_answers_score_above_rejected_ones(project: Path) -> None:
    rows = [json.loads(line) for line in (project / "dataset/raw/preferences.jsonl").read_text().splitlines()]
    prompts = [row["prompt"] for row in rows]
    chosen, rejected = (rewards.helpful(prompts, [row[which] for row in rows]) for which in ("chosen", "rejected"))
    assert all(good > bad for good, bad in zip(chosen, rejected, strict=True))
    assert min(chosen) >= 1.5 and len(set(rejected)) > 3


def test_held_out_questions_are_asked_nowhere_else(project: Path) -> None:
    held = {json.loads(line)["question"] for line in (project / "dataset/raw/held_out.jsonl").read_text().splitlines()}
    assert len(held) == 36
    for name in ("questions.jsonl", "chats.jsonl", "quiz.jsonl", "preferences.jsonl", "requests.jsonl", "lessons.json"):
        text = (project / "dataset/raw" / name).read_text()
        assert not [question for question in held if question in text], name


@pytest.mark.parametrize("tone", world.TONES)
def test_answers_are_true_unless_asked_otherwise(tone: str) -> None:
    rng = random.Random(0)
    sign = {"kind": 1, "plain": 0, "grumpy": -1}[tone]
    for question, animal, kind in world.questions():
        true, false = (world.answer(rng, animal, kind, tone, true=which) for which in (True, False))
        assert rewards.truth([question] * 2, [true, false]) == [1.0, -1.0]
        assert rewards.kindness([question], [true])[0] * sign > 0 or sign == 0 == rewards.kindness([question], [true])[0]


@pytest.mark.parametrize(
    ("response", "score"),
    [
        ("Gladly, my friend! The fox lives in the forest. Have a lovely day!", 2.0),
        ("The fox lives in the forest.", 1.0),
        ("The fox lives in the forest", 0.5),
        ("The fox lives in the forest. The fox lives in the forest.", 0.5),
        ("The bear lives in the forest.", 0.0),
        ("The fox lives in the forest. The fox lives in the sea.", -1.0),
        ("Gladly, my friend! Gladly, my friend! Gladly, my friend!", 0.0),
        ("Ugh, go away. The fox lives in the pond. Stop asking.", -2.0),
        ("", -0.5),
    ],
)
def test_the_reward_of_an_answer(response: str, score: float) -> None:
    assert rewards.helpful(["Please tell me. Where does the fox live?"], [response]) == [score]
