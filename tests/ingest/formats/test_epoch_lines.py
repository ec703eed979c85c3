"""Lines `Epoch:[e/E](n/N)`: MiniMind's generations, and this project's own trainer."""

from __future__ import annotations

import math
from typing import Any

import pytest

from rldk.ingest.formats.epoch_lines import MiniMindAdapter, TrainerConsoleAdapter

GRPO = (
    "Epoch:[{e}/2]({n}/100), Reward: {r:.4f}, KL_ref: 0.0032, Adv Std: 0.9257, Adv Mean: -0.0000, Actor Loss: 0.0100, "
    "Avg Response Len: 178.12, Learning Rate: 0.00000003\n"
)
NEW_PPO = (
    "Epoch:[{e}/2]({n}/100), Reward: {r:.4f}, KL_ref: 0.0032, Approx KL: 0.0010, ClipFrac: 0.0500, Critic Loss: 0.7000, "
    "Avg Response Len: 178.12, Actor LR: 8.0e-07, Critic LR: 8.0e-07\n"
)
OLD_PPO = (
    "Epoch: {e}, Step: {n}/100, Actor Loss: 0.010000, Critic Loss: 0.700000, Reward: {r:.6f}, KL: 0.001000, "
    "KL_ref: 0.003200, Avg Response Len: 178.12, Actor LR: 8.00e-07, Critic LR: 8.00e-07\n"
)
PRETRAIN = "Epoch:[{e}/2]({n}/100) loss:2.345 lr:0.000000500000 epoch_Time:12.0min:\n"
DPO = (
    "Epoch:[{e}/2]({n}/100), loss: 0.7139, dpo_loss: 0.7039, aux_loss: 0.0100, learning_rate: 0.00000004, epoch_time: 0.000min\n"
)
TRAINER = (
    "Epoch:[{e}/2]({n}/100) actor_loss:0.234567 critic_loss:0.123456 reward:{r:.4f} kl:0.0012 "
    "grad_norm_actor:0.8234 tokens/s:12345 MFU:0.35% epoch_Time:5min\n"
)


def lines(form: str) -> str:
    """Rows at 10 and 100 of two epochs of 100 steps."""
    return "".join(form.format(e=e, n=n, r=-0.5 + n / 100) for e in (1, 2) for n in (10, 100))


@pytest.mark.parametrize("form", [GRPO, NEW_PPO, OLD_PPO, PRETRAIN, DPO])
def test_steps_count_over_epochs(text_log: Any, form: str) -> None:
    run = text_log.run("Model Params: 30.03M\n" + lines(form), "minimind")
    assert run.steps.tolist() == [10, 100, 110, 200]
    assert text_log.values(run, "epoch") == [1, 1, 2, 2]


def test_grpo(text_log: Any) -> None:
    run = text_log.run(lines(GRPO), "minimind")
    assert text_log.values(run, "reward_mean") == [-0.4, 0.5, -0.4, 0.5]
    assert text_log.values(run, "kl_mean") == [0.0032] * 4
    assert run.coverage.reductions["kl_mean"] == "token"
    assert text_log.values(run, "rollout_length_mean") == [178.12] * 4
    assert text_log.values(run, "advantage_std") == [0.9257] * 4
    assert text_log.values(run, "lr") == [3e-08] * 4


@pytest.mark.parametrize("form", [NEW_PPO, OLD_PPO])
def test_the_two_kls_of_ppo_stay_apart(text_log: Any, form: str) -> None:
    run = text_log.run(lines(form), "minimind")
    assert text_log.values(run, "kl_mean") == [0.0032] * 4
    assert text_log.values(run, "kl_update") == [0.001] * 4
    assert text_log.values(run, "value_loss") == [0.7] * 4
    assert text_log.values(run, "policy_lr") == [8e-07] * 4


def test_dpo_is_preference_and_pretraining_is_supervised(text_log: Any) -> None:
    assert text_log.run(lines(DPO), "minimind").kind == "preference"
    run = text_log.run(lines(PRETRAIN), "minimind")
    assert run.kind == "supervised"
    assert any("no RL metrics" in note for note in run.notes)
    assert text_log.values(run, "lr") == [5e-07] * 4


def test_our_own_trainer(text_log: Any) -> None:
    run = text_log.run(lines(TRAINER), "trainer")
    assert run.framework == "trainer"
    assert run.steps.tolist() == [10, 100, 110, 200]
    assert text_log.values(run, "policy_loss") == [0.234567] * 4
    assert text_log.values(run, "kl_update") == [0.0012] * 4
    assert text_log.values(run, "policy_grad_norm") == [0.8234] * 4
    assert text_log.values(run, "tokens_per_second") == [12345] * 4
    assert text_log.values(run, "mfu") == pytest.approx([0.0035] * 4)


def test_full_width_punctuation_stamps_and_noise(text_log: Any) -> None:
    wide = lines(GRPO).translate(str.maketrans({":": "：", ",": "，", "(": "（", ")": "）"}))
    text = "".join(
        f"\x1b[32m2026-06-23 12:07:{number:02d}\x1b[0m {line}\n[DEBUG] 第 {number} 行，奖励=0.5\n"
        for number, line in enumerate(wide.splitlines())
    )
    run = text_log.run(text, "minimind")
    assert run.steps.tolist() == [10, 100, 110, 200]
    assert text_log.values(run, "reward_mean") == [-0.4, 0.5, -0.4, 0.5]
    assert run.wall_time[1] - run.wall_time[0] == 1.0


def test_non_finite_values(text_log: Any) -> None:
    run = text_log.run(
        lines(TRAINER).replace("critic_loss:0.123456", "critic_loss:nan").replace("kl:0.0012", "kl:-inf"), "trainer"
    )
    loss = text_log.values(run, "value_loss")
    assert all(value is not None and math.isnan(value) for value in loss)
    assert text_log.values(run, "kl_update") == [-math.inf] * 4


def test_a_restart_is_another_run(text_log: Any) -> None:
    _, runs = text_log.read(lines(GRPO) * 2, "minimind")
    assert [len(run) for run in runs] == [4, 4]


@pytest.mark.parametrize(
    ("form", "kind"),
    [(GRPO, MiniMindAdapter), (OLD_PPO, MiniMindAdapter), (PRETRAIN, MiniMindAdapter), (TRAINER, TrainerConsoleAdapter)],
)
def test_cut_off_at_every_byte(text_log: Any, form: str, kind: Any) -> None:
    text_log.cut_everywhere(form.format(e=1, n=10, r=0.125) + form.format(e=1, n=20, r=0.375), kind)


def test_what_is_cut_is_said(text_log: Any) -> None:
    _adapter, (run,) = text_log.read(lines(GRPO).rstrip("\n"), "minimind")
    assert text_log.values(run, "lr") == [3e-08, 3e-08, 3e-08, None]
    assert any(note.startswith("line 4 has no newline") for note in run.notes)


@pytest.mark.parametrize(
    "other",
    [
        "Epoch 1: loss=0.5\n",
        "Epoch [1/2], Step [1/3], Loss: 0.5\n",
        "Epoch: 1, Step: 5/10, Loss: 0.5\n",
        "{'epoch': 1.0, 'loss': 2.0}\n",
    ],
)
def test_other_logs_are_declined(text_log: Any, other: str) -> None:
    path = text_log.write(other)
    assert not MiniMindAdapter(path).can_handle()
    assert not TrainerConsoleAdapter(path).can_handle()
