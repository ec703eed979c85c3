"""Frameworks that write JSON lines, each known by its keys; and lines of several kinds in one file."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rldk.ingest.choose import ADAPTERS
from rldk.ingest.formats.json_lines import JsonLinesAdapter

Row = dict[str, Any]

ROWS: dict[str, tuple[Row, dict[str, float]]] = {
    "openrlhf": (
        {
            "policy_loss": 0.5,
            "actor_lr": 1e-6,
            "actor_grad_norm": 2.0,
            "reward": 0.25,
            "return": 0.125,
            "kl": 0.01,
            "response_length": 120.0,
            "timing/make_experience": 3.0,
            "timing/step_total": 9.0,
        },
        {
            "policy_loss": 0.5,
            "policy_grad_norm": 2.0,
            "reward_mean": 0.25,
            "reward_after_kl": 0.125,
            "kl_mean": 0.01,
            "step_time": 9.0,
        },
    ),
    "nemo_rl": (
        {
            "train/loss": 0.5,
            "train/grad_norm": 2.0,
            "train/reward": 0.25,
            "train/kl_penalty": 0.01,
            "train/approx_entropy": 1.5,
            "train/probs_ratio": 1.0,
            "train/token_mult_prob_error": 1.02,
            "train/baseline_reward/pct_0": 25.0,
            "train/baseline_reward/pct_1": 50.0,
        },
        {
            "loss": 0.5,
            "reward_mean": 0.25,
            "kl_mean": 0.01,
            "entropy_mean": 1.5,
            "ratio_mean": 1.0,
            "mismatch_ratio": 1.02,
            "reward_zero_std_frac": 0.75,
        },
    ),
    "areal": (
        {
            "ppo_actor/task_reward/avg": 0.25,
            "ppo_actor/task_reward/max": 1.0,
            "ppo_actor/final_reward/avg": 0.125,
            "ppo_actor/update/actor_loss/avg": 0.5,
            "ppo_actor/update/grad_norm": 2.0,
            "ppo_actor/no_eos_ratios/avg": 0.75,
        },
        {
            "reward_mean": 0.25,
            "reward_max": 1.0,
            "reward_after_kl": 0.125,
            "policy_loss": 0.5,
            "policy_grad_norm": 2.0,
            "truncated_frac": 0.75,
        },
    ),
    "slime": (
        {
            "train/loss": 0.5,
            "train/pg_loss": 0.25,
            "train/entropy_loss": 1.5,
            "train/ppo_kl": 0.001,
            "train/kl_loss": 0.01,
            "train/lr-pg_0": 1e-6,
            "train/train_rollout_logprob_abs_diff": 0.03,
            "rollout/raw_reward": 0.75,
            "rollout/log_probs": -1.0,
        },
        {
            "policy_loss": 0.25,
            "entropy_mean": 1.5,
            "kl_update": 0.001,
            "kl_mean": 0.01,
            "mismatch_logp_diff": 0.03,
            "reward_mean": 0.75,
        },
    ),
    "prime_rl": (
        {
            "loss/mean": 0.5,
            "entropy/all/mean": 1.5,
            "mismatch_kl/all/mean": 0.002,
            "optim/lr": 1e-6,
            "optim/grad_norm": 2.0,
            "perf/mfu": 35.0,
            "reward/mean": 0.25,
            "batch/solve_none": 0.25,
            "batch/solve_all": 0.5,
        },
        {
            "loss": 0.5,
            "entropy_mean": 1.5,
            "mismatch_kl": 0.002,
            "grad_norm": 2.0,
            "mfu": 0.35,
            "reward_mean": 0.25,
            "reward_zero_std_frac": 0.75,
        },
    ),
    "tinker": (
        {
            "env/all/reward/total": 0.25,
            "env/all/ac_tokens_per_turn": 120.0,
            "optim/kl_sample_train_v1": 0.002,
            "progress/done_frac": 0.1,
            "test/env/all/reward/total": 0.5,
            "env/all/by_group/frac_all_good": 0.25,
            "env/all/by_group/frac_all_bad": 0.25,
        },
        {
            "reward_mean": 0.25,
            "rollout_length_mean": 120.0,
            "mismatch_kl": 0.002,
            "eval_reward_mean": 0.5,
            "reward_zero_std_frac": 0.5,
        },
    ),
}


def lines(rows: list[Row]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.mark.parametrize("framework", ROWS)
def test_a_framework_is_known_by_its_keys(text_log: Any, framework: str) -> None:
    row, expected = ROWS[framework]
    run = text_log.run(lines([{"step": step, **row} for step in (1, 2, 3)]), framework)
    assert run.framework == framework
    assert run.steps.tolist() == [1, 2, 3]
    for name, value in expected.items():
        assert text_log.values(run, name) == pytest.approx([value] * 3), name


@pytest.mark.parametrize("framework", ROWS)
def test_the_other_frameworks_decline(text_log: Any, framework: str) -> None:
    path = text_log.write(lines([{"step": 1, **ROWS[framework][0]}]))
    accepting = [kind.name for kind in ADAPTERS if issubclass(kind, JsonLinesAdapter) and kind(path).can_handle()]
    assert accepting == [framework]


def test_ms_swift_writes_steps_and_times_as_words(text_log: Any) -> None:
    rows = [
        {
            "loss": 0.5,
            "grad_norm": 1.0,
            "learning_rate": 4e-8,
            "reward": 0.25,
            "kl": 0.0,
            "completions/mean_length": 100.0,
            "clip_ratio/region_mean": 0.0,
            "global_step/max_steps": f"{step}/547",
            "percentage": "0.18%",
            "elapsed_time": f"5m {step}s",
            "remaining_time": "2d 0h 18m 21s",
            "train_speed(iter/s)": 0.003,
        }
        for step in (1, 2, 3)
    ]
    run = text_log.run(lines(rows), "ms_swift")
    assert run.steps.tolist() == [1, 2, 3]
    assert run.wall_time.tolist() == [301.0, 302.0, 303.0]
    assert run.coverage.reductions["kl_mean"] == "token"
    assert run.coverage.unmapped == []


def test_ms_swift_of_supervised_training_has_no_rl_metrics(text_log: Any) -> None:
    rows: list[Row] = [
        {
            "loss": 0.5,
            "grad_norm": 1.0,
            "learning_rate": 1e-5,
            "token_acc": 0.9,
            "epoch": 0.1,
            "global_step/max_steps": f"{step}/438",
            "percentage": "0.23%",
            "elapsed_time": "6s",
            "remaining_time": "1h",
        }
        for step in (1, 2)
    ]
    rows.append(
        {"train_runtime": 2959.8, "train_samples_per_second": 2.3, "global_step/max_steps": "438/438", "train_loss": 0.28}
    )
    run = text_log.run(lines(rows), "ms_swift")
    assert (run.kind, len(run)) == ("supervised", 2)
    assert any("no RL metrics" in note for note in run.notes)


def test_llama_factory(text_log: Any) -> None:
    rows = [
        {
            "current_steps": 10 * n,
            "total_steps": 100,
            "loss": 0.5,
            "reward": 0.25 * n,
            "lr": 1e-5,
            "epoch": 0.1,
            "percentage": 10.0,
            "elapsed_time": f"0:00:{10 * n}",
            "remaining_time": "0:01:00",
        }
        for n in (1, 2)
    ]
    run = text_log.run(lines(rows), "llama_factory")
    assert run.steps.tolist() == [10, 20]
    assert text_log.values(run, "reward_mean") == [0.25, 0.5]
    assert run.wall_time.tolist() == [10.0, 20.0]


def test_lines_that_are_no_objects_are_located(text_log: Any) -> None:
    row = ROWS["openrlhf"][0]
    text = lines([{"step": 1, **row}]) + "not json\n[1, 2]\n" + lines([{"step": 2, **row}])
    adapter, (run,) = text_log.read(text, "openrlhf")
    assert len(run) == 2
    assert [line for line, _ in adapter.problems.skipped] == [2, 3]


def test_lines_of_several_kinds(text_log: Any) -> None:
    rows = [
        {"type": "config", "learning_rate": 1e-6, "batch_size": 8},
        {"type": "train", "step": 1, "loss": 0.5, "reward": 0.25},
        {"type": "train", "step": 2, "loss": 0.4, "reward": 0.5},
        {"type": "eval", "step": 2, "reward": 0.75},
        {"type": "checkpoint", "path": "x", "size_gb": 3.5},
        {"type": "train", "step": 3, "loss": 0.3, "reward": 1.0},
    ]
    run = text_log.run(lines(rows), "flexible")
    assert run.steps.tolist() == [1, 2, 3]
    assert text_log.values(run, "reward_mean") == [0.25, 0.5, 1.0]
    assert text_log.values(run, "eval_reward_mean") == [None, 0.75, None]
    assert "lr" not in run.columns
    assert any("type='config'" in note for note in run.notes)


def test_a_split_that_is_named_keeps_held_out_rows_apart(text_log: Any) -> None:
    rows = [{"step": 1, "split": split, "loss": loss, "reward": 0.5} for split, loss in (("train", 0.5), ("validation", 0.75))]
    run = text_log.run(lines(rows), "flexible")
    assert text_log.values(run, "loss") == [0.5]
    assert text_log.values(run, "eval_loss") == [0.75]


def test_kinds_without_any_step_are_all_kept(text_log: Any) -> None:
    rows = [{"event": event, "reward": 0.5, "kl": 0.1} for event in ("rollout", "update")]
    assert len(text_log.run(lines(rows), "flexible")) == 2


@pytest.mark.parametrize("framework", ["openrlhf", "tinker"])
def test_cut_off_at_every_byte(text_log: Any, framework: str) -> None:
    kind = next(kind for kind in ADAPTERS if kind.name == framework)
    text_log.cut_everywhere(lines([{"step": step, **ROWS[framework][0]} for step in (1, 2)]), kind)


def test_a_first_line_of_settings_is_no_step(text_log: Any) -> None:
    info = {"event": "run_info", "step": 0, "epoch": 0, "group_size": 4, "steps_per_epoch": 7473}
    keys = {"train/loss": 0.5, "train/reward_std": 0.2, "train/learning_rate": 1e-6, "train/policy_loss": 0.1}
    rows = [info, *({"event": "train_metrics", "step": n, "epoch": 0, "train/avg_reward": 0.1 * n, **keys} for n in range(1, 6))]
    run = text_log.run("".join(json.dumps(row) + "\n" for row in rows), "flexible")
    assert run.steps.tolist() == [1, 2, 3, 4, 5] and run.framework is None
    assert "a line with event='run_info' has no known metric and was left out" in run.notes
    assert run.coverage.unmapped == []


def test_lines_of_a_kind_of_their_own_are_kept(text_log: Any) -> None:
    rows = [{"event": ("a", "b")[n % 2], "step": n, ("loss", "my_own")[n % 2]: 0.5} for n in range(8)]
    run = text_log.run("".join(json.dumps(row) + "\n" for row in rows), "flexible")
    assert len(run) == 8 and run.coverage.unmapped == ["my_own"]
