"""Logs as the frameworks write them, as long as is wanted."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

__all__ = ["FORMATS", "event", "write_events"]

NAMES = [
    "reward_mean", "reward_std", "reward_min", "reward_max", "kl_mean", "kl_std", "kl_coef", "entropy_mean", "clip_frac",
    "value_loss",
    "policy_loss", "loss", "policy_grad_norm", "value_grad_norm", "grad_norm", "value_mean", "value_std", "rollout_length_mean",
    "rollout_length_std", "advantage_mean", "advantage_std", "explained_variance", "lr", "tokens_per_second", "truncated_frac",
]  # fmt: skip
GRPO = [
    "loss", "grad_norm", "learning_rate", "reward", "reward_std", "frac_reward_zero_std", "kl", "entropy",
    "completions/mean_length",
    "completions/clipped_ratio",
]  # fmt: skip
OPENRLHF = [
    "policy_loss", "actor_lr", "actor_grad_norm", "critic_loss", "values", "reward", "return", "kl", "group_reward_std",
    "response_length", "truncated",
]  # fmt: skip
VERL = [
    "actor/pg_loss", "actor/kl_loss", "actor/entropy", "actor/grad_norm", "actor/lr", "critic/score/mean", "critic/rewards/mean",
    "response_length/mean",
]  # fmt: skip
NEMO = [
    "train/loss", "train/reward", "train/kl_penalty", "train/probs_ratio", "train/grad_norm", "train/lr", "train/approx_entropy",
    "train/mean_gen_tokens_per_sample", "train/gen_kl_error",
]  # fmt: skip
AREAL = [
    "ppo_actor/task_reward/avg", "ppo_actor/advantages/avg", "ppo_actor/kl_rewards/avg", "ppo_actor/seq_len/avg",
    "ppo_actor/update/actor_loss/avg", "ppo_actor/update/entropy/avg", "ppo_actor/update/grad_norm", "ppo_actor/update/lr",
]  # fmt: skip
SLIME = [
    "train/loss", "train/pg_loss", "train/entropy_loss", "train/pg_clipfrac", "train/ppo_kl", "train/kl_loss",
    "train/grad_norm", "rollout/raw_reward", "rollout/response_lengths", "rollout/log_probs",
]  # fmt: skip
PRIME = [
    "loss/mean", "entropy/mean", "mismatch_kl/mean", "optim/grad_norm", "optim/lr", "reward/mean", "seq_len/mean",
    "perf/throughput", "progress/total_tokens",
]  # fmt: skip
TINKER = [
    "env/all/reward/total", "env/all/ac_tokens_per_turn", "optim/kl_sample_train_v1", "optim/kl_sample_train_v2",
    "optim/entropy", "optim/lr", "env/all/by_group/frac_mixed", "time/total",
]  # fmt: skip
OWN = ["my_loss", "mean_reward", "kl_to_reference", "policy_entropy", "response_len"]
TRAINER = (
    "Epoch:[1/1]({}/{}) actor_loss:{:.6f} critic_loss:{:.6f} reward:{:.4f} kl:{:.4f} grad_norm_actor:{:.4f} "
    "tokens/s:12345 MFU:0.35% epoch_Time:5min"
)
MINIMIND = (
    "Epoch:[1/1]({}/{}), Reward: {:.4f}, KL_ref: {:.4f}, Approx KL: {:.4f}, ClipFrac: {:.4f}, Critic Loss: {:.4f}, "
    "Avg Response Len: {:.2f}"
)
WORDS = "2025-01-01 00:00:00 [INFO] step {}: loss={:.5f} reward={:.5f} kl={:.5f} entropy={:.5f}"
_chance = random.Random(0)
_NOISE = [_chance.gauss(0.0, 1.0) for _ in range(4096)]


def values(step: int) -> list[float]:
    """As many different numbers as there are names."""
    return [math.sin(0.001 * step * (place + 1)) + 0.1 * _NOISE[(31 * step + place) % 4096] for place in range(len(NAMES))]


def event(step: int) -> dict[str, Any]:
    """An event in the shape of the contract, with 25 metrics."""
    return {
        "step": step,
        "wall_time": 1.7e9 + 1.5 * step,
        "metrics": dict(zip(NAMES, values(step), strict=True)),
        "rng": {"seed": 42},
        "data_slice": {"tokens_in": 1000 + step % 97, "tokens_out": 500 + step % 89},
        "model_info": {"run_id": "bench", "git_sha": "abc123", "phase": "train"},
        "notes": ["High clipping fraction detected"] if step % 500 == 0 else [],
    }


def write_events(path: Path, rows: int) -> None:
    """An event log."""
    _write(path, (json.dumps(event(step)) for step in range(rows)))


def _write(path: Path, lines: Iterator[str]) -> None:
    with path.open("w") as file:
        file.writelines(f"{line}\n" for line in lines)


def _grpo(step: int) -> dict[str, Any]:
    return {**dict(zip(GRPO, values(step), strict=False)), "epoch": step / 1000, "step": step}


def _rows(path: Path, rows: int) -> None:
    _write(path, (json.dumps(_grpo(step)) for step in range(rows)))


def _mixed_rows(path: Path, rows: int) -> None:
    """Every tenth row is an evaluation."""
    held_out = {"eval_loss": 0.5, "eval_reward": 0.25, "eval_runtime": 1.0}
    _write(path, (json.dumps({**held_out, "step": step} if step % 10 == 0 else _grpo(step)) for step in range(rows)))


def _state(path: Path, rows: int) -> None:
    history = [_grpo(step) for step in range(rows)]
    path.write_text(json.dumps({"epoch": 1.0, "is_world_process_zero": True, "log_history": history}, indent=2))


def _lists(path: Path, rows: int) -> None:
    columns = zip(*map(values, range(rows)), strict=True)
    path.write_text(json.dumps({"step": list(range(rows)), **dict(zip(NAMES, columns, strict=True))}))


def _openrlhf(path: Path, rows: int) -> None:
    _json_rows("train/global_step", OPENRLHF)(path, rows)


def _json_rows(step_key: str, names: list[str]) -> Callable[[Path, int], None]:
    """A writer of JSON lines under a framework's keys."""

    def write(path: Path, rows: int) -> None:
        _write(path, (json.dumps({step_key: step, **dict(zip(names, values(step), strict=False))}) for step in range(rows)))

    return write


def _verl_rows(path: Path, rows: int) -> None:
    _write(path, (json.dumps({"step": step, "data": dict(zip(VERL, values(step), strict=False))}) for step in range(rows)))


def _ms_swift(path: Path, rows: int) -> None:
    """Places and times are words."""

    def row(step: int) -> dict[str, Any]:
        row = {name: value for name, value in _grpo(step).items() if name != "step"}
        row |= {"global_step/max_steps": f"{step + 1}/{rows}", "percentage": f"{100 * step / rows:.2f}%"}
        return {**row, "elapsed_time": "5m 18s"}

    _write(path, (json.dumps(row(step)) for step in range(rows)))


def _noisy_dicts(path: Path, rows: int) -> None:
    """Progress bars between the rows, and a NaN now and then."""

    def lines() -> Iterator[str]:
        for step in range(rows):
            yield f"  0%|          | {step}/{rows} [00:05<5:18,  1.06s/it]\r {step}/{rows} [00:06<5:17,  1.06s/it]"
            row = {name: value for name, value in _grpo(step).items() if name != "step"}
            yield repr({**row, "kl": math.nan} if step % 50 == 0 else row)

    _write(path, lines())


def _csv(path: Path, rows: int) -> None:
    def lines() -> Iterator[str]:
        yield ",".join(["step", *NAMES])
        for step in range(rows):
            yield ",".join([str(step), *map(repr, values(step))])

    _write(path, lines())


def _verl(path: Path, rows: int) -> None:
    form = "step:{} - " + " - ".join(f"{name}:{{:.6f}}" for name in VERL)
    _write(path, (form.format(step, *values(step)[: len(VERL)]) for step in range(1, rows + 1)))


def _dicts(path: Path, rows: int) -> None:
    _write(path, (repr({name: value for name, value in _grpo(step).items() if name != "step"}) for step in range(rows)))


def _trainer(path: Path, rows: int) -> None:
    _write(path, (TRAINER.format(step, rows, *values(step)[:5]) for step in range(1, rows + 1)))


def _minimind(path: Path, rows: int) -> None:
    _write(path, (MINIMIND.format(step, rows, *values(step)[:6]) for step in range(1, rows + 1)))


def _words(path: Path, rows: int) -> None:
    _write(path, (WORDS.format(step, *values(step)[:4]) for step in range(1, rows + 1)))


FORMATS: dict[str, tuple[int, Callable[[Path, int], None]]] = {
    "event log": (50_000, write_events),
    "TRL rows": (50_000, _rows),
    "TRL rows with evaluations": (50_000, _mixed_rows),
    "trainer_state.json": (50_000, _state),
    "JSON lists": (50_000, _lists),
    "OpenRLHF rows": (50_000, _openrlhf),
    "NeMo-RL rows": (50_000, _json_rows("step", NEMO)),
    "AReaL rows": (50_000, _json_rows("step", AREAL)),
    "slime rows": (50_000, _json_rows("step", SLIME)),
    "prime-rl rows": (50_000, _json_rows("step", PRIME)),
    "Tinker rows": (50_000, _json_rows("progress/batch", TINKER)),
    "ms-swift rows": (50_000, _ms_swift),
    "verl rows": (50_000, _verl_rows),
    "rows of one's own": (50_000, _json_rows("step", OWN)),
    "CSV": (50_000, _csv),
    "verl console": (50_000, _verl),
    "Hugging Face console": (50_000, _dicts),
    "Hugging Face console with bars": (50_000, _noisy_dicts),
    "trainer console": (50_000, _trainer),
    "MiniMind console": (50_000, _minimind),
    "key=value text": (50_000, _words),
}
"""Every text format, the rows per second it must be read at, and how to write a log of it."""
