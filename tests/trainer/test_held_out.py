"""Evaluation on held-out prompts: in a stage, by `evaluate.py`, and in a conversation."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.full
HERE = Path(__file__).parent
sys.path[:0] = [path for path in (str(HERE),) if path not in sys.path]

from ppo_world import build, command, events_of, same  # noqa: E402

EVERY_TWO = ("--max_steps=4", "--eval_interval=2", "--eval_generations=3", "--pass_score=0.6")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small task of PPO, with prompts that are held out."""
    pytest.importorskip("torch")
    folder = build(tmp_path_factory.mktemp("world"))
    (folder / "held_out.jsonl").write_text("".join(json.dumps({"question": f"w{n} w{n + 1}"}) + "\n" for n in range(6)))
    source = f"{{name: held_out, path: {folder / 'held_out.jsonl'}, fields: {{text: question}}}}"
    (folder / "ppo_plain.yaml").write_text((folder / "ppo.yaml").read_text())
    (folder / "ppo.yaml").write_text((folder / "ppo.yaml").read_text() + f"held_out:\n  - {source}\n")
    return folder


@pytest.fixture(scope="module")
def trained(world: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    import train_ppo

    out = tmp_path_factory.mktemp("trained")
    assert train_ppo.main(command(world, out, *EVERY_TWO)) == 0
    return out


def test_a_run_is_evaluated_before_every_so_many_steps_and_at_its_end(trained: Path, world: Path) -> None:
    events = events_of(trained)
    assert [event["step"] for event in events] == [0, 1, 2, 3, 4]
    assert [event["step"] for event in events if "eval_reward_mean" in event["metrics"]] == [0, 2, 4]
    for event in (events[0], events[2], events[4]):
        found = event["metrics"]
        assert 0 <= found["eval_pass_at_1"] <= found["eval_pass_at_k"] <= 1 and found["eval_reward_sem"] > 0
        assert 0 < found["eval_distinct_endings_frac"] <= 1 and 0 < found["eval_distinct_responses_frac"] <= 1
        held_out = [sample for sample in event["samples"] if sample.get("held_out")]
        assert held_out and {sample["prompt"] for sample in held_out} <= {f"w{n} w{n + 1}" for n in range(6)}


def test_the_samples_reach_the_dashboard(trained: Path) -> None:
    from rldk.core.event import Event
    from rldk.dashboard.samples import Samples

    samples = Samples()
    for event in events_of(trained):
        samples.take(Event.from_dict(event))
    answers = {json.dumps(s["completion"]) for event in events_of(trained) for s in event.get("samples", [])}
    assert answers <= {json.dumps(sample["answer"]) for sample in samples.page(0, 100)[0]}


def test_an_evaluation_changes_nothing_of_the_training(trained: Path, world: Path, tmp_path: Path) -> None:
    import train_ppo

    words = command(world, tmp_path, "--max_steps=4", f"--data_config={world / 'ppo_plain.yaml'}")
    assert train_ppo.main(words) == 0
    kept = [
        {**event, "metrics": {k: v for k, v in event["metrics"].items() if not k.startswith("eval_")}}
        for event in events_of(trained)
    ]
    same(kept[1:], events_of(tmp_path))
    one, other = ((out / "ppo/model.safetensors").read_bytes() for out in (trained, tmp_path))
    assert one == other


def test_the_numbers_are_those_of_the_answers() -> None:
    from held_out import Evaluation

    scores = np.array([[1.0, 0.0], [0.0, 0.0], [1.0, 1.0]])
    answers = [["a", "b"], ["b", "b"], ["c", "a"]]
    found = Evaluation(["x", "y", "z"], answers, scores, np.full((3, 2), 4), np.array([[True, False]] * 3), 0.5)
    metrics = found.metrics(pass_score=1.0)
    assert (metrics["eval_reward"], metrics["eval_pass_at_1"], metrics["eval_pass_at_k"]) == pytest.approx((0.5, 0.5, 2 / 3))
    assert metrics["eval_reward_sem"] == pytest.approx(np.std([0.5, 0.0, 1.0], ddof=1) / 3**0.5)
    assert metrics["eval_distinct_responses_frac"] == 0.5 and metrics["eval_eos_frac"] == 0.5
    assert "reward +0.500" in found.sentence(1.0) and "pass@2 67%" in found.sentence(1.0)


def evaluate(*words: str) -> int:
    import evaluate as script

    return script.main(["--reward", "ppo_world:even_words", "--max_new_tokens=8", "--max_seq_len=16", *words])


def test_evaluate_compares_models_prompt_by_prompt(trained: Path, world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    models = [str(world / "model"), str(trained / "ppo")]
    words = ["--data_config", str(world / "ppo.yaml"), "--pass_score=0.6", "--weights", *models]
    assert evaluate(*words, "--json") == 0
    first, last = json.loads(capsys.readouterr().out)["models"]
    assert (first["weights"], last["weights"]) == tuple(models) and len(last["samples"]) == 3
    assert last["gain"] == pytest.approx(last["eval_reward"] - first["eval_reward"]) and last["gain_sem"] > 0
    assert evaluate(*words, "--show=1") == 0
    out = capsys.readouterr().out
    assert f"{models[1]} is better than {models[0]} by {last['gain']:+.3f} ± {last['gain_sem']:.3f}" in out
    assert out.count("  ->  ") == 2
    assert evaluate(*words, "--rising") == (0 if last["gain"] > 0 else 1)
    assert evaluate("--data_config", str(world / "ppo.yaml"), "--rising", "--weights", models[0], models[0]) == 1  # no gain


def test_evaluate_takes_a_file_of_prompts_and_says_what_is_missing(world: Path) -> None:
    from data_config import DataError

    assert evaluate("--prompts", str(world / "held_out.jsonl"), "--weights", str(world / "model"), "--temperature=0") == 0
    with pytest.raises(DataError, match="names no `held_out` sources"):
        evaluate("--data_config", str(world / "ppo_plain.yaml"), "--weights", str(world / "model"))


def test_a_stage_that_is_to_be_judged_needs_held_out_prompts(world: Path, tmp_path: Path) -> None:
    import train_ppo
    from data_config import DataError

    words = command(world, tmp_path, f"--data_config={world / 'ppo_plain.yaml'}", "--eval_reward=ppo_world:even_words")
    with pytest.raises(DataError, match="names no `held_out` sources to ask"):
        train_ppo.main(words)


def test_chat_answers_a_prompt_and_keeps_the_conversation(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import chat

    words = ["--weights", str(world / "model"), "--max_new_tokens=6", "--prompt", "w1 w2"]
    assert chat.main(words) == 0
    one = capsys.readouterr().out.strip()
    assert chat.main([*words, "--prompt", "w3", "--system", "w9", "--json"]) == 0
    messages = json.loads(capsys.readouterr().out)["messages"]
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user", "assistant"]
    assert chat.main(words) == 0 and capsys.readouterr().out.strip() == one  # the seed decides


def test_chat_goes_on_until_it_is_told_to_quit(world: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import chat

    said: list[int] = []
    say = chat.Talk.say
    monkeypatch.setattr(chat.Talk, "say", lambda self, text: said.append(len(self.messages)) or say(self, text))
    monkeypatch.setattr(sys, "stdin", io.StringIO("w1\nw2\n/reset\n\nw3\n/quit\nw4\n"))
    assert chat.main(["--weights", str(world / "model"), "--max_new_tokens=4"]) == 0
    assert said == [0, 2, 0]
    monkeypatch.setattr(sys, "stdin", io.StringIO("w1 " * 80 + "\n"))  # more than the model takes; then the end of the input
    assert chat.main(["--weights", str(world / "model")]) == 0
    assert "the model takes 64: use `/reset`" in capsys.readouterr().out
