"""GRPO, RLOO and Dr. GRPO in real runs: groups, columns, no critic, and learning from a reward that can be checked."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.full
torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parent))

from ppo_world import build, command, events_of, same  # noqa: E402

seen: list[tuple[list[str], list[str], dict[str, Any]]] = []


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Prompts with the word that is wanted as a column."""
    folder = build(tmp_path_factory.mktemp("world"))
    lines = [{"text": f"w{n % 28} w{n % 5}", "wanted": f"w{n % 4}", "level": n} for n in range(48)]
    (folder / "asked.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    source = f"{{name: test, path: {folder / 'asked.jsonl'}, columns: [wanted, level]}}"
    (folder / "ppo.yaml").write_text(f"stage: ppo\noutput: {folder / 'prepared.jsonl'}\nsources:\n  - {source}\n")
    return folder


def names_wanted(prompts: list[str], responses: list[str], wanted: list[str]) -> list[float]:
    """Takes one of the two columns."""
    seen.append((prompts, responses, {"wanted": wanted}))
    return [float(word in response.split()) for response, word in zip(responses, wanted, strict=True)]


def takes_all(prompts: list[str], responses: list[str], **columns: Any) -> list[float]:
    seen.append((prompts, responses, columns))
    return [float(len(response) % 3) for response in responses]


def needs_more(prompts: list[str], responses: list[str], answer: list[str]) -> list[float]:
    return [0.0] * len(responses)


def run(world: Path, out: Path, *more: str) -> int:
    import train_ppo

    words = command(world, out, "--num_generations=4", "--batch_size=16", "--ppo_epochs=1", *more)
    with contextlib.redirect_stdout(io.StringIO()):
        return train_ppo.main(words)


@pytest.mark.parametrize("advantage", ["grpo", "dr_grpo", "rloo"])
def test_the_reward_rises_without_a_critic(advantage: str, world: Path, tmp_path: Path) -> None:
    flags = ("--reward=ppo_world:even_words", "--max_steps=35", "--learning_rate=1e-2", "--save_interval=0", "--kl_coef=0.01")
    assert run(world, tmp_path, f"--advantage={advantage}", *flags) == 0
    found = [event["metrics"] for event in events_of(tmp_path)]
    rewards = [metrics["reward_mean"] for metrics in found]
    assert sum(rewards[-5:]) / 5 > sum(rewards[:5]) / 5 + 0.2
    assert not [name for name in found[-1] if name.startswith("value_") or name in ("return_mean", "explained_variance")]
    assert found[0]["num_generations"] == 4 and found[0]["reward_group_std"] > 0 and "reward_zero_std_frac" in found[0]
    names = sorted(path.name for path in (tmp_path / "checkpoints/ppo/step_00000035").iterdir())
    assert names == ["actor.safetensors", "actor_optimizer.safetensors", "checksums.json", "state.json"]
    assert not (tmp_path / "ppo_critic").exists()
    text = Path(tmp_path / "ppo_events.jsonl").read_text()
    assert "critic" not in json.loads(text.splitlines()[-1])["metrics"]


def test_a_reward_gets_the_columns_it_names_for_each_response(world: Path, tmp_path: Path) -> None:
    seen.clear()
    assert run(world, tmp_path / "one", "--advantage=grpo", "--reward=test_ppo_groups:names_wanted", "--max_steps=2") == 0
    assert run(world, tmp_path / "all", "--advantage=rloo", "--reward=test_ppo_groups:takes_all", "--max_steps=1") == 0
    data = {line["text"]: line for line in map(json.loads, (world / "asked.jsonl").read_text().splitlines())}
    assert [sorted(columns) for _, _, columns in sys.modules["test_ppo_groups"].seen] == [
        ["wanted"],
        ["wanted"],
        ["level", "wanted"],
    ]
    for prompts, responses, columns in sys.modules["test_ppo_groups"].seen:
        assert len(prompts) == len(responses) == 16 and [prompts[at] for at in range(0, 16, 4)] == [
            prompts[at + 3] for at in range(0, 16, 4)
        ]
        for name, values in columns.items():
            assert values == [data[prompt][name] for prompt in prompts]
    with pytest.raises(ValueError, match=r"needs the columns \['answer'\]; the data have \['level', 'wanted'\]"):
        run(world, tmp_path / "more", "--advantage=grpo", "--reward=test_ppo_groups:needs_more", "--max_steps=1")


@pytest.mark.parametrize("aggregation", ["token", "sequence", "length"])
def test_however_a_step_is_cut_it_is_the_same_step(aggregation: str, world: Path, tmp_path: Path) -> None:
    flags = (
        "--advantage=grpo",
        f"--loss_aggregation={aggregation}",
        "--reward=ppo_world:even_words",
        "--max_steps=2",
        "--ppo_epochs=2",
    )
    for name, cut in (("whole", ()), ("parts", ("--batch_size=2", "--accumulation_steps=8"))):
        assert run(world, tmp_path / name, *flags, "--learning_rate=1e-3", *cut) == 0
    same(events_of(tmp_path / "whole"), events_of(tmp_path / "parts"), rel=2e-3, skip=("ratio_min", "ratio_max"))


@pytest.mark.parametrize(("kl_in", "advantage"), [("reward", "grpo"), ("loss", "gae"), ("loss", "rloo")])
def test_the_kl_may_be_paid_in_the_reward_or_in_the_loss(kl_in: str, advantage: str, world: Path, tmp_path: Path) -> None:
    """With a coefficient this large the policy stays where it was; with none it goes."""
    drift = {}
    for coef in (0, 20):
        flags = (f"--advantage={advantage}", f"--kl_in={kl_in}", f"--kl_coef={coef}", "--reward=ppo_world:even_words")
        assert run(world, tmp_path / str(coef), *flags, "--max_steps=20", "--learning_rate=1e-2", "--kl_estimator=k3") == 0
        drift[coef] = events_of(tmp_path / str(coef))[-1]["metrics"]["kl_mean"]
    assert drift[20] < 0.5 * drift[0]


@pytest.mark.parametrize(
    "wrong", [["--advantage=grpo", "--num_generations=1"], ["--advantage=rloo", "--num_generations=5"], ["--advantage=best"]]
)
def test_flags_that_do_not_go_together_are_refused(wrong: list[str], world: Path, tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        run(world, tmp_path, *wrong)
