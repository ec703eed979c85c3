"""Faults on demand: each does what it says to a real run, and the monitor sees what it is there to see."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.full
sys.path.insert(0, str(Path(__file__).parent))

from ppo_world import build, command, events_of, same  # noqa: E402


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch")
    return build(tmp_path_factory.mktemp("world"))


def run(world: Path, out: Path, *more: str) -> list[dict[str, float]]:
    import train_ppo

    assert train_ppo.main(command(world, out, *more)) == 0
    return [event["metrics"] for event in events_of(out)]


def weights(folder: Path) -> dict:
    from safetensors.torch import load_file

    return load_file(folder / "ppo/model.safetensors")


EFFECTS = {
    "lr=50": lambda b, a: a["policy_lr"] == pytest.approx(50 * b["policy_lr"]) and a["value_lr"] > b["value_lr"],
    "critic_lr=10": lambda b, a: a["value_lr"] == pytest.approx(10 * b["value_lr"]) and a["policy_lr"] == b["policy_lr"],
    "kl_coef=7": lambda b, a: (b["kl_coef"], a["kl_coef"]) == (0.05, 7.0),
    "kl_coef": lambda b, a: a["kl_coef"] == 0.0,
    "constant_reward=3": lambda b, a: (a["reward_mean"], a["reward_std"]) == (3.0, 0.0) and b["reward_std"] > 0,
    "length_reward": lambda b, a: a["reward_mean"] == pytest.approx(a["rollout_length_mean"] / 8),
    "noisy_reward=50": lambda b, a: a["reward_std"] > 10 > 1 > b["reward_std"],
    "flipped_reward": lambda b, a: a["reward_mean"] < 0 < b["reward_mean"],
    "reward_scale=100": lambda b, a: a["reward_max"] > 10 > b["reward_max"],
    "clip_range=0.00001": lambda b, a: a["clip_frac"] > b["clip_frac"] and a["clip_range"] == 1e-5,
    "temperature=0.01": lambda b, a: a["entropy_mean"] < 0.2 * b["entropy_mean"],
    "no_eos": lambda b, a: a["eos_frac"] == 0.0 and a["rollout_length_mean"] == 8.0,
    "frozen_policy": lambda b, a: a["weight_change"] == 0.0 < b["weight_change"] and a["weight_change_value"] > 0,
    "frozen_value": lambda b, a: a["weight_change_value"] == 0.0 < b["weight_change_value"] and a["weight_change"] > 0,
    "slow=0.3": lambda b, a: a["step_time"] > 0.3,
    "lr=0": lambda b, a: a["policy_lr"] == a["value_lr"] == 0.0 < b["policy_lr"] and a["weight_change"] == 0.0,
    "critic_lr=0": lambda b, a: a["value_lr"] == 0.0 < a["policy_lr"],
    "clip_range=0": lambda b, a: a["clip_range"] == 0.0,
    "frozen_policy=0": lambda b, a: a["weight_change"] > 0.0,
    "no_eos=0": lambda b, a: a["rollout_length_min"] < 8.0,
}  # fmt: skip


@pytest.mark.parametrize("fault", EFFECTS)
def test_a_fault_does_what_it_says_from_its_step_on(fault, world, tmp_path: Path) -> None:
    metrics = run(world, tmp_path, "--max_steps=3", f"--inject={fault}@3")
    assert EFFECTS[fault](metrics[1], metrics[2]), (metrics[1], metrics[2])
    assert any(note.startswith("injected") for note in events_of(tmp_path)[2]["notes"])
    assert "notes" not in events_of(tmp_path)[1]


def test_before_its_step_a_fault_changes_nothing(world, tmp_path: Path) -> None:
    run(world, tmp_path / "plain", "--max_steps=3")
    run(world, tmp_path / "later", "--max_steps=3", "--inject=lr=1000@9", "--inject=nan_loss@9")
    same(events_of(tmp_path / "plain"), events_of(tmp_path / "later"))


@pytest.mark.parametrize(
    ("fault", "still", "moving"), [("frozen_policy", "actor", "critic"), ("frozen_value", "critic", "actor")]
)
def test_what_is_frozen_does_not_move(fault, still, moving, world, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    run(world, tmp_path, "--max_steps=3", "--save_interval=1", f"--inject={fault}@3")
    first, last = (tmp_path / f"checkpoints/ppo/step_{step:08d}" for step in (2, 3))
    for name, alike in ((still, True), (moving, False)):
        one, other = (load_file(folder / f"{name}.safetensors") for folder in (first, last))
        assert all(one[key].equal(other[key]) for key in one) == alike


def test_stale_rollouts_are_the_same_ones_again(world, tmp_path: Path) -> None:
    metrics = run(world, tmp_path, "--max_steps=5", "--inject=stale_rollouts@2")
    assert len({row["rollout_length_mean"] for row in metrics[1:]}) == 1
    scored = run(world, tmp_path / "scored", "--max_steps=5", "--inject=stale_rollouts@2", "--reward=ppo_world:prompt_length")
    assert len({row["reward_mean"] for row in scored[1:]}) == 1  # against the prompts that they answer
    assert metrics[4]["kl_update"] > 3 * metrics[1]["kl_update"]  # further and further from the policy that drew them


@pytest.mark.parametrize("fault", ["nan_loss", "nan_reward=3"])
def test_an_update_that_is_not_finite_is_skipped_and_said_so(fault, world, tmp_path: Path, capsys) -> None:
    run(world, tmp_path / "two", "--max_steps=2")
    metrics = run(world, tmp_path / "four", "--max_steps=4", f"--inject={fault}@3")
    assert "step 3: gradients were not finite: 2 of 2 updates were skipped" in capsys.readouterr().out
    assert [row["update_applied"] for row in metrics] == [1.0, 1.0, 0.0, 0.0]
    assert not math.isfinite(metrics[2]["policy_grad_norm"])
    before, after = weights(tmp_path / "two"), weights(tmp_path / "four")
    assert all(before[key].equal(after[key]) for key in before)
    report = json.loads((tmp_path / "four/ppo_final_report.json").read_text())
    assert "nonfinite_metric" in {anomaly["type"] for anomaly in report["anomalies"]}


def test_or_the_run_stops_with_a_checkpoint(world, tmp_path: Path, capsys) -> None:
    import train_ppo

    words = command(world, tmp_path, "--max_steps=9", "--inject=nan_loss@3", "--on_nonfinite=stop")
    assert train_ppo.main(words) == 1
    assert "stopped after step 3: gradients are not finite" in capsys.readouterr().out
    assert (tmp_path / "checkpoints/ppo/step_00000003/state.json").is_file() and not (tmp_path / "ppo").exists()


def test_stop_on_critical_stops_with_a_checkpoint_and_the_reason(world, tmp_path: Path, capsys) -> None:
    import train_ppo

    words = command(world, tmp_path, "--max_steps=60", "--inject=nan_loss@5", "--stop_on=critical")
    assert train_ppo.main(words) == 1
    said = capsys.readouterr().out
    assert "the monitor confirmed a failure" in said and "rldk: critical nonfinite_metric" in said
    last = events_of(tmp_path)[-1]["step"]
    assert 5 <= last < 30 and (tmp_path / f"checkpoints/ppo/step_{last:08d}").is_dir()


def test_a_learning_rate_far_too_high_is_seen(world, tmp_path: Path) -> None:
    run(world, tmp_path, "--max_steps=45", "--inject=lr=100@20", "--save_interval=0")
    report = json.loads((tmp_path / "ppo_final_report.json").read_text())
    found = [anomaly for anomaly in report["anomalies"] if anomaly["severity"] == "critical"]
    assert found and min(anomaly["step"] for anomaly in found) >= 20


@pytest.mark.parametrize("text", ["nonsense", "lr=fast", "lr@soon", ""])
def test_a_fault_that_is_none_is_refused_with_those_there_are(text) -> None:
    pytest.importorskip("torch")
    from faults import FAULTS, parse_fault

    with pytest.raises(ValueError, match="--inject") as caught:
        parse_fault(text)
    if "=" not in text and "@" not in text:
        assert all(name in str(caught.value) for name in FAULTS)
