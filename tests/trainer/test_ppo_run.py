"""A real PPO run in small: what it writes, prints and learns."""

from __future__ import annotations

import contextlib
import io
import json
import math
import re
import sys
from itertools import pairwise
from pathlib import Path

import pytest

pytestmark = pytest.mark.full
sys.path.insert(0, str(Path(__file__).parent))

from ppo_world import build, command, events_of, numbers, same  # noqa: E402

CONTRACT = [
    "actor_loss", "critic_loss", "reward", "kl", "kl_ref", "avg_response_len", "actor_lr", "critic_lr", "actor_grad_norm",
    "critic_grad_norm", "epoch", "global_step", "tokens_per_second", "samples_per_second", "steps_per_second",
    "num_tokens_generated", "eta_minutes",
]  # fmt: skip
LINE = re.compile(
    r"Epoch:\[1/100\]\(\d+/6\) actor_loss:-?\d+\.\d{6} critic_loss:\d+\.\d{6} reward:-?\d+\.\d{4} kl:-?\d+\.\d{4} "
    r"grad_norm_actor:\d+\.\d{4} tokens/s:\d+ epoch_Time:\d+min"
)


def run(*words: str) -> tuple[int, str]:
    import train_ppo

    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        status = train_ppo.main(list(words))
    return status, said.getvalue()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch")
    return build(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def healthy(world: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    out = tmp_path_factory.mktemp("healthy")
    status, said = run(
        *command(world, out, "--max_steps=60", "--save_interval=20", "--log_interval=3", "--report_to=tensorboard")
    )
    assert status == 0
    return out, said


def test_the_reward_rises(healthy) -> None:
    rewards = [event["metrics"]["reward_mean"] for event in events_of(healthy[0])]
    assert sum(rewards[:5]) / 5 < 0.6
    assert sum(rewards[-5:]) / 5 > sum(rewards[:5]) / 5 + 0.2


def test_every_step_is_in_the_event_log_once_under_canonical_names(healthy) -> None:
    from rldk.core.catalog import CATALOG

    events = events_of(healthy[0])
    assert [event["step"] for event in events] == list(range(1, 61))
    ours = {"updates", "kl_early_stop", "scoring_time", "epoch_time"}
    assert set(events[-1]["metrics"]) - ours <= set(CATALOG)
    wanted = "explained_variance entropy_mean ratio_max eos_frac advantage_skewness advantage_p95 kl_coef value_std clip_frac"
    assert set(wanted.split()) <= set(events[-1]["metrics"])
    assert events[-1]["model_info"]["reductions"] == {"kl_mean": "token"} and events[0]["rng"] == {"seed": 42}
    assert all(math.isfinite(value) for event in events for value in numbers(event).values())


def test_the_first_event_says_what_is_known_before_anything_is_learnt(healthy) -> None:
    first, second, *_, last = (event["metrics"] for event in events_of(healthy[0]))
    names = ("max_response_length", "num_iterations", "dropout_active", "reference_is_policy", "distinct_prompts_frac")
    assert [first[name] for name in names] == [8.0, 2.0, 0.0, 0.0, 1.0]
    assert first["policy_trainable_params"] > 1000
    assert [event["distinct_prompts"] for event in (first, second, last)] == [8, 16, 48]


def test_the_log_says_how_varied_the_responses_are(world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import rollout

    generate, expected = rollout.generate, []

    def noted(*given: object) -> object:
        roll = generate(*given)
        rows = [row[: sum(real)] for row, real in zip(roll.responses.tolist(), roll.mask.tolist(), strict=True)]
        long = [list(pairwise(row)) for row in rows if len(row) >= 4]
        repeated = [1.0 - len(set(pairs)) / len(pairs) for pairs in long]
        expected.append((len(set(map(tuple, rows))) / len(rows), sum(repeated) / len(repeated)))
        return roll

    monkeypatch.setattr(rollout, "generate", noted)
    assert run(*command(world, tmp_path, "--max_steps=3"))[0] == 0
    found = [event["metrics"] for event in events_of(tmp_path)]
    assert [(one["distinct_responses_frac"], one["repetition_frac"]) for one in found] == [pytest.approx(one) for one in expected]
    assert len(expected) == 3


def test_the_log_says_what_the_run_was_started_with(healthy) -> None:
    from rldk.ingest import read_runs

    (run,) = read_runs(healthy[0] / "ppo_events.jsonl").runs
    wanted = {
        "learning_rate": 3e-3,
        "kl_coef": 0.05,
        "clip_range": 0.2,
        "num_iterations": 2,
        "max_response_length": 8,
        "max_steps": 60,
    }
    assert {knob: run.config[knob] for knob in wanted} == wanted
    assert (run.config.owner, run.config.key_of("num_iterations")) == ("trainer/train_ppo.py", "ppo_epochs")
    assert json.loads((healthy[0] / "ppo_config.json").read_text())["knobs"] == dict(run.config)


def test_one_event_in_ten_has_samples_with_their_rewards(healthy) -> None:
    from ppo_world import even_words

    events = events_of(healthy[0])
    assert [event["step"] for event in events if "samples" in event] == [1, 11, 21, 31, 41, 51]
    for sample in (sample for event in events for sample in event.get("samples", [])):
        assert sample["reward"] == pytest.approx(even_words([sample["prompt"]], [sample["completion"]])[0], abs=1e-5)


def test_the_monitor_is_silent_on_a_healthy_run_and_agrees_with_the_scan(healthy) -> None:
    from rldk.ingest import ingest_runs

    report = json.loads((healthy[0] / "ppo_final_report.json").read_text())
    assert [one for one in report["anomalies"] if one["severity"] == "critical"] == []
    frame = ingest_runs(str(healthy[0] / "ppo_events.jsonl"))
    assert len(frame) == 60 and frame["run_id"].unique().tolist() == ["ppo"]


def test_the_console_has_the_line_of_the_contract(healthy) -> None:
    lines = [line for line in healthy[1].splitlines() if line.startswith("Epoch:[1/")]
    assert len(lines) == 3 and all(LINE.fullmatch(line) for line in lines), lines


def test_the_console_is_read_back_as_a_run(healthy, tmp_path: Path) -> None:
    from rldk.ingest import ingest_runs

    (tmp_path / "console.log").write_text(healthy[1])
    frame = ingest_runs(str(tmp_path / "console.log"))
    assert {"reward_mean", "kl_update", "policy_grad_norm", "tokens_per_second"} <= set(frame.columns)


def test_tracker_keys_are_those_of_the_contract(healthy) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    from rldk.ingest import ingest_runs

    folder = next((healthy[0] / "tensorboard/ppo").glob("events*"))
    reader = EventAccumulator(str(folder), size_guidance={"scalars": 0})
    reader.Reload()
    keys = set(reader.Tags()["scalars"])
    assert {f"train/{name}" for name in CONTRACT} | {"system/epoch_time"} <= keys
    assert "train/mfu_percent" not in keys  # the peak of a CPU is not known
    rewards = [point.value for point in reader.Scalars("train/reward")]
    logged = [event["metrics"]["reward_mean"] for event in events_of(healthy[0])]
    assert rewards == pytest.approx(logged, rel=1e-6)
    assert len(ingest_runs(str(folder))) == 60


def test_the_weights_are_a_hugging_face_folder_and_checkpoints_are_pruned(healthy, world) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(str(healthy[0] / "ppo"))
    start = AutoModelForCausalLM.from_pretrained(str(world / "model"))
    assert not model.lm_head.weight.equal(start.lm_head.weight)
    assert AutoTokenizer.from_pretrained(str(healthy[0] / "ppo")).eos_token_id == 2
    kept = sorted(path.name for path in (healthy[0] / "checkpoints/ppo").iterdir())
    assert kept == ["step_00000040", "step_00000060"]
    names = sorted(path.name for path in (healthy[0] / "checkpoints/ppo/step_00000060").iterdir())
    assert names == [
        "actor.safetensors",
        "actor_optimizer.safetensors",
        "checksums.json",
        "critic.safetensors",
        "critic_optimizer.safetensors",
        "state.json",
    ]


def test_one_by_eight_is_eight_by_one(world, tmp_path: Path) -> None:
    """However a step is cut into passes, it is the same step."""
    cuts = {"8x1": (8, 1), "1x8": (1, 8), "2x4": (2, 4)}
    for name, (batch, passes) in cuts.items():
        words = (f"--batch_size={batch}", f"--accumulation_steps={passes}", "--max_steps=3", "--learning_rate=1e-3")
        assert run(*command(world, tmp_path / name, *words))[0] == 0
    for name in ("1x8", "2x4"):
        same(events_of(tmp_path / "8x1"), events_of(tmp_path / name), rel=2e-3, skip=("ratio_min", "ratio_max"))


def test_mini_batches_and_their_passes(world, tmp_path: Path) -> None:
    assert run(*command(world, tmp_path, "--mini_batches=2", "--max_steps=3"))[0] == 0
    assert {event["metrics"]["updates"] for event in events_of(tmp_path)} == {4.0}
    with pytest.raises(SystemExit):
        run(*command(world, tmp_path, "--mini_batches=3"))


def test_updates_end_as_soon_as_the_policy_has_gone_far_in_the_first_epoch_too(world, tmp_path: Path) -> None:
    words = ("--max_update_kl=0.00001", "--max_steps=3", "--mini_batches=4")
    for name, epochs in (("one", 1), ("six", 6)):
        assert run(*command(world, tmp_path / name, *words, f"--ppo_epochs={epochs}"))[0] == 0
        for event in events_of(tmp_path / name):
            assert 1 <= event["metrics"]["updates"] < 4 and event["metrics"]["kl_early_stop"] == 1.0
            assert event["metrics"]["kl_update"] > 0.00001  # that of the updates that were made


def test_kl_is_that_of_the_policy_after_the_last_update(world, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One update per step: a mean over updates, each measured before it was made, would be 0."""
    import torch
    from transformers import AutoModelForCausalLM

    import rollout

    rolls, generate = [], rollout.generate
    monkeypatch.setattr(rollout, "generate", lambda *given: rolls.append(generate(*given)) or rolls[-1])
    words = ("--ppo_epochs=1", "--max_steps=1", "--save_interval=1")
    assert run(*command(world, tmp_path, *words))[0] == 0
    (roll,) = rolls

    def logp(folder: Path) -> torch.Tensor:
        positions = (roll.attention.cumsum(1) - 1).clamp(min=0)
        with torch.no_grad():
            model = AutoModelForCausalLM.from_pretrained(str(folder))
            logits = model(input_ids=roll.tokens, attention_mask=roll.attention, position_ids=positions).logits
        width = roll.responses.shape[1]
        return logits[:, -width - 1 : -1].log_softmax(-1).gather(-1, roll.responses[..., None])[..., 0]

    before, after = logp(world / "model"), logp(tmp_path / "ppo")
    expected, tokens = 0.0, 0
    for row in range(0, 8, 2):  # four of the eight responses
        for place in range(int(roll.mask[row].sum())):
            d = float(before[row, place] - after[row, place])
            expected += math.exp(-d) - 1 + d
            tokens += 1
    assert events_of(tmp_path)[0]["metrics"]["kl_update"] == pytest.approx(expected / tokens, rel=1e-2) and expected > 0


def test_an_adaptive_coefficient_moves(world, tmp_path: Path) -> None:
    assert run(*command(world, tmp_path, "--kl_target=0.5", "--kl_coef=0.2", "--max_steps=4", "--kl_horizon=100"))[0] == 0
    coefs = [event["metrics"]["kl_coef"] for event in events_of(tmp_path)]
    assert coefs[0] == 0.2 and coefs == sorted(coefs, reverse=True) and coefs[-1] < 0.195  # far below the target
    assert events_of(tmp_path)[0]["metrics"]["target_kl"] == 0.5


def test_a_sequence_classifier_may_be_the_reward(world, tmp_path: Path) -> None:
    from transformers import AutoModelForSequenceClassification

    judge = AutoModelForSequenceClassification.from_pretrained(str(world / "model"), num_labels=1)
    judge.save_pretrained(str(tmp_path / "judge"))
    assert run(*command(world, tmp_path / "out", f"--reward={tmp_path / 'judge'}", "--max_steps=2"))[0] == 0
    assert events_of(tmp_path / "out")[0]["metrics"]["reward_std"] > 0


def test_bfloat16_trains(world, tmp_path: Path) -> None:
    from accelerate.state import AcceleratorState

    AcceleratorState._reset_state(reset_partial_state=True)
    assert run(*command(world, tmp_path, "--dtype=bfloat16", "--max_steps=3"))[0] == 0
    AcceleratorState._reset_state(reset_partial_state=True)
    assert all(math.isfinite(value) for event in events_of(tmp_path) for value in numbers(event).values())


def test_without_rldk_nothing_is_written_of_it(world, tmp_path: Path) -> None:
    assert run(*command(world, tmp_path, "--no_rldk", "--max_steps=2"))[0] == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoints", "ppo", "ppo_critic"]


def test_a_second_run_of_the_same_name_does_not_write_into_the_first_ones_log(world, tmp_path: Path) -> None:
    for steps in (3, 2):
        assert run(*command(world, tmp_path, f"--max_steps={steps}"))[0] == 0
    assert len(events_of(tmp_path)) == 2
    assert len((tmp_path / "ppo_1_events.jsonl").read_text().splitlines()) == 3


def test_a_reward_that_gives_the_wrong_number_of_scores_is_refused(world, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="give 8 numbers, got 3"):
        run(*command(world, tmp_path, "--reward=test_ppo_run:three", "--max_steps=1"))


def three(prompts: list[str], responses: list[str]) -> list[float]:
    return [0.0, 1.0, 2.0]


def test_the_page_about_training_names_every_metric_fault_and_flag(healthy) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    import train_ppo
    from faults import FAULTS

    page = (Path(__file__).parents[2] / "docs/training.md").read_text()
    words = set(re.findall(r"`([^`\n]+)`", page))
    suffixes = {f"advantage{word}" for word in words if word.startswith("_")}
    reader = EventAccumulator(str(next((healthy[0] / "tensorboard/ppo").glob("events*"))))
    reader.Reload()
    logged = {key.removeprefix("train/") for key in reader.Tags()["scalars"]}
    assert logged - words - suffixes == set()
    assert set(FAULTS) <= words
    flags = {word.split()[0] for word in words if word.startswith("--")}
    known = {f"--{name}" for name in vars(train_ppo.get_args([]))} | {"--help", "--config"}
    assert flags - known == set()
