"""Advice names a setting as the framework that wrote the log calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rldk.cli.main import main
from rldk.core.catalog import FRAMEWORKS
from rldk.core.framework_knobs import FRAMEWORK_KNOBS
from rldk.core.knobs import KNOBS, canonical_knobs
from rldk.core.run_config import RunConfig
from rldk.ingest import read_runs
from rldk.judge.incidents.advice import Setup

ROWS = 60


def course(row: int, start: float, end: float) -> float:
    """The reward rises all the time; the others jump in row 40."""
    if (start, end) == REWARD:
        return start + (end - start) * row / ROWS + 0.01 * (row % 3)
    return start * (1.0 + 0.02 * (row % 5)) if row < 40 else end


REWARD = (0.1, 0.6)


RUNS: dict[str, dict[str, tuple[float, float]]] = {
    "verl": {
        "actor/kl_loss": (0.001, 9.0), "critic/score/mean": REWARD, "actor/entropy": (0.5, 0.5), "actor/lr": (1e-6, 1e-6),
    },
    "skyrl": {
        "policy/policy_kl": (0.001, 9.0), "reward/avg_raw_reward": REWARD, "policy/policy_entropy": (0.5, 0.5),
        "policy/policy_lr": (1e-6, 1e-6),
    },
    "openrlhf": {
        "kl": (0.001, 9.0), "reward": REWARD, "entropy_loss": (0.5, 0.5), "actor_lr": (1e-6, 1e-6),
        "timing/broadcast": (1.0, 1.0), "timing/make_experience": (1.0, 1.0),
    },
    "nemo_rl": {
        "kl_penalty": (0.001, 9.0), "reward": REWARD, "approx_entropy": (0.5, 0.5), "token_mult_prob_error": (1.0, 1.0),
        "num_valid_samples": (64.0, 64.0), "lr": (1e-6, 1e-6),
    },
    "roll": {
        "critic/kl": (0.001, 9.0), "critic/score/mean": REWARD, "critic/entropy/mean": (0.5, 0.5),
        "actor/approxkl": (0.001, 0.001), "actor_train/grad_norm": (0.3, 0.3), "system/tps": (900.0, 900.0),
    },
    "slime": {
        "train/kl_loss": (0.001, 9.0), "rollout/raw_reward": REWARD, "train/entropy_loss": (0.5, 0.5),
        "train/pg_loss": (0.1, 0.1), "train/lr-pg_0": (1e-6, 1e-6), "rollout/log_probs": (-0.5, -0.5),
    },
    "art": {
        "loss/kl_policy_ref": (0.001, 9.0), "train/reward": REWARD, "loss/entropy": (0.5, 0.5), "loss/train": (0.1, 0.1),
        "loss/learning_rate": (1e-6, 1e-6), "time/wall_clock_sec": (1.0, 1.0),
    },
    "tinker": {
        "kl_policy_base": (0.001, 9.0), "env/all/reward/total": REWARD, "optim/entropy": (0.5, 0.5), "optim/lr": (1e-6, 1e-6),
        "progress/done_frac": (0.1, 0.1),
    },
}  # fmt: skip


@pytest.mark.parametrize("framework", sorted(RUNS))
def test_advice_on_a_run_names_the_knob_of_its_framework(
    framework: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "metrics.jsonl"
    rows = ({"step": row, **{key: course(row, *ends) for key, ends in RUNS[framework].items()}} for row in range(ROWS))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    main(["scan", str(path), "--json"])
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert run["framework"] == framework and run["verdict"] == "critical"
    advice = " ".join(incident["advice"] for incident in run["incidents"])
    assert any(f"`{name}`" in advice for name in FRAMEWORK_KNOBS[framework].values()), advice


def test_every_framework_that_has_settings_is_in_the_table() -> None:
    assert set(FRAMEWORKS) - set(FRAMEWORK_KNOBS) == {"rldk"}
    assert set(FRAMEWORK_KNOBS) - set(FRAMEWORKS) == {"trl_rloo"}


@pytest.mark.parametrize("framework", sorted(FRAMEWORK_KNOBS))
def test_names_are_of_known_settings_and_are_found_in_a_configuration(framework: str) -> None:
    names = FRAMEWORK_KNOBS[framework]
    assert set(names) <= set(KNOBS) and "learning_rate" in names
    path = names["learning_rate"].removeprefix("--").replace("-", "_").split(".", 1)
    own = path[-1] if path[0].endswith("Config") or path[0] == "PPO" else ".".join(path)
    assert canonical_knobs({own: 3e-6})["learning_rate"] == (own, 3e-6)


def test_a_setting_that_the_framework_does_not_have_is_described_in_words() -> None:
    assert Setup("cleanrl").name_of("kl_coef") is None
    assert Setup("cleanrl").name_of("clip") == "--clip-coef"
    assert Setup(None).name_of("lr") is None


@pytest.mark.parametrize(
    ("kl", "coefficient", "name"),
    [
        ("actor/kl_loss", "actor/kl_coef", "actor_rollout_ref.actor.kl_loss_coef"),
        ("actor/reward_kl_penalty", "actor/reward_kl_penalty_coeff", "algorithm.kl_ctrl.kl_coef"),
    ],
)
def test_of_two_kl_coefficients_advice_names_the_one_that_the_log_has(
    kl: str, coefficient: str, name: str, tmp_path: Path
) -> None:
    path = tmp_path / "metrics.jsonl"
    keys = {kl: 0.01, coefficient: 0.001, "critic/score/mean": 0.5, "actor/entropy": 0.5, "actor/pg_loss": 0.1}
    path.write_text("".join(json.dumps({"step": row, **keys}) + "\n" for row in range(5)))
    (run,) = read_runs(path).runs
    assert run.framework == "verl" and Setup.of(run).name_of("kl_coef") == name
    both = {"actor_rollout_ref": {"actor": {"kl_loss_coef": 0.1}}, "algorithm": {"kl_ctrl": {"kl_coef": 0.1}}}
    run.config = RunConfig.of(both)
    assert Setup.of(run).name_of("kl_coef") == name
