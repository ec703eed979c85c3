"""Runs as they are met in the wild, each from what it is made of: healthy ones that look odd, failing ones that look calm.

Every function gives the columns of a run for a seed; where the KL is logged by token or by sequence, `KL_BY` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from rldk.core.anomaly import Anomaly
from rldk.core.event import Event
from rldk.judge.engine import Engine

Columns = dict[str, np.ndarray]
KL_BY: dict[str, str] = {}
rng_of = np.random.default_rng


def course(rows: int, start: float, end: float, share: float = 0.3) -> np.ndarray:
    """From start to end, most of the way within a share of the run."""
    return end + (start - end) * np.exp(-np.arange(rows) / (share * rows))


def geometric(rows: int, start: float, end: float, share: float = 0.3) -> np.ndarray:
    return np.exp(course(rows, np.log(start), np.log(end), share))


def shares(rng: np.random.Generator, chance: np.ndarray, batch: int) -> np.ndarray:
    """The mean of a batch of rewards of 0 and 1."""
    return rng.binomial(batch, np.clip(chance, 0.0, 1.0)) / batch


def near(rng: np.random.Generator, values: np.ndarray, noise: float) -> np.ndarray:
    return values * np.exp(noise * rng.standard_normal(len(values)))


def slow(rng: np.random.Generator, rows: int, memory: float = 0.9) -> np.ndarray:
    """Noise of spread 1 that remembers."""
    values = np.zeros(rows)
    for row in range(1, rows):
        values[row] = memory * values[row - 1] + np.sqrt(1.0 - memory**2) * rng.standard_normal()
    return values


def math_rlvr(seed: int, rows: int = 300) -> Columns:
    """Right or wrong: answers grow from 500 to 4000 tokens, entropy falls to a twentieth, the reward rises."""
    rng = rng_of(seed)
    chance = course(rows, 0.25, 0.78) + 0.02 * slow(rng, rows)
    return {
        "reward_mean": shares(rng, chance, 512),
        "reward_std": near(rng, np.sqrt(chance * (1 - chance)) * 0.6, 0.05),
        "reward_zero_std_frac": np.clip(0.3 + 0.3 * np.arange(rows) / rows + 0.05 * rng.standard_normal(rows), 0, 1),
        "rollout_length_mean": near(rng, geometric(rows, 500, 4000), 0.04),
        "truncated_frac": np.clip(course(rows, 0.02, 0.3) + 0.02 * rng.standard_normal(rows), 0, 1),
        "entropy_mean": near(rng, geometric(rows, 0.5, 0.025, 0.25), 0.08),
        "grad_norm": near(rng, np.full(rows, 0.15), 0.3),
        "clip_frac": near(rng, np.full(rows, 0.002), 0.5),
        "loss": 0.01 * rng.standard_normal(rows),
        "lr": np.full(rows, 1e-6),
    }


def without_penalty(seed: int, rows: int = 400) -> Columns:
    """No KL penalty: the KL by token goes to 1.5 and the reward is fine."""
    columns = math_rlvr(seed, rows)
    columns["kl_mean"] = near(rng_of(seed + 1), 1.5 * np.arange(1, rows + 1) / rows, 0.15)
    return columns


KL_BY["without_penalty"] = "token"


def without_penalty_unit_unknown(seed: int) -> Columns:
    """The same, in a log that does not say how its KL was reduced."""
    return without_penalty(seed)


def code_with_rare_success(seed: int, rows: int = 250) -> Columns:
    """Hardly any success at first: batches of 64 with none among them, and a slow take-off."""
    rng = rng_of(seed)
    chance = 0.004 + 0.2 / (1 + np.exp(-(np.arange(rows) - 0.6 * rows) / (0.08 * rows)))
    return {
        "reward_mean": shares(rng, chance, 128),
        "grad_norm": near(rng, 0.02 + chance, 0.6) * (rng.random(rows) < 0.7),
        "entropy_mean": near(rng, np.full(rows, 0.6), 0.1),
        "rollout_length_mean": near(rng, np.full(rows, 900.0), 0.1),
        "kl_mean": near(rng, 0.05 * np.arange(1, rows + 1) / rows, 0.4),
    }


def tool_use(seed: int, rows: int = 200) -> Columns:
    """Rewards from -1 to 1; the answers lose nine tenths of their length as the model learns to call the tool."""
    rng = rng_of(seed)
    return {
        "reward_mean": course(rows, -0.7, 0.6) + 0.08 * rng.standard_normal(rows),
        "reward_std": near(rng, course(rows, 0.5, 0.3), 0.15),
        "rollout_length_mean": near(rng, geometric(rows, 1500, 150, 0.2), 0.1),
        "entropy_mean": near(rng, geometric(rows, 0.8, 0.1), 0.1),
        "grad_norm": near(rng, np.full(rows, 1.5), 0.4),
        "kl_mean": near(rng, course(rows, 0.001, 0.25), 0.3),
    }


def _rlhf(seed: int, rows: int, start: float, end: float, spread: float) -> Columns:
    rng = rng_of(seed)
    kl = near(rng, course(rows, 0.3, 7.0, 0.1), 0.2)
    return {
        "reward_mean": course(rows, start, end) + 0.15 * spread * slow(rng, rows, 0.5),
        "reward_std": near(rng, np.full(rows, spread), 0.1),
        "kl_mean": kl,
        "kl_coef": 0.1 * np.exp(np.cumsum(0.01 * np.clip(kl / 6.0 - 1.0, -0.2, 0.2))),
        "target_kl": np.full(rows, 6.0),
        "value_loss": near(rng, course(rows, 2.0, 0.4, 0.1) * spread**2, 0.4),
        "policy_loss": -0.01 + 0.01 * rng.standard_normal(rows),
        "loss": near(rng, course(rows, 0.3, 0.06, 0.1) * spread**2, 0.4),
        "explained_variance": course(rows, -0.5, 0.6, 0.1) + 0.08 * rng.standard_normal(rows),
        "entropy_mean": near(rng, course(rows, 2.2, 1.6), 0.05),
        "clip_frac": near(rng, np.full(rows, 0.05), 0.3),
        "kl_update": near(rng, np.full(rows, 0.006), 0.4),
        "ratio_mean": 1.0 + 0.003 * rng.standard_normal(rows),
        "rollout_length_mean": near(rng, np.full(rows, 53.0), 0.02),
        "grad_norm": near(rng, np.full(rows, 3.0), 0.4),
        "lr": 1.4e-5 * (1 - np.arange(rows) / rows) + 1e-9,
    }


def rlhf_of_scale_20(seed: int) -> Columns:
    """A reward model that scores from 0 to 20."""
    return _rlhf(seed, 400, 3.0, 14.0, 3.0)


def rlhf_through_zero(seed: int) -> Columns:
    """A reward model that scores from -5 to 5; the mean passes zero."""
    return _rlhf(seed, 400, -2.5, 2.0, 1.5)


def rlhf_below_zero(seed: int) -> Columns:
    """Scores that stay below zero throughout."""
    return _rlhf(seed, 300, -6.0, -3.0, 2.0)


KL_BY.update(dict.fromkeys(("rlhf_of_scale_20", "rlhf_through_zero", "rlhf_below_zero"), "sequence"))


def sparse_log(seed: int, rows: int = 30) -> Columns:
    """A row every fifty steps: thirty in all, and the reward rises steeply among the first."""
    columns = math_rlvr(seed, rows)
    columns["reward_mean"] = shares(rng_of(seed), course(rows, 0.1, 0.7, 0.15), 256)
    columns["entropy_mean"] = near(rng_of(seed + 2), geometric(rows, 0.4, 0.06), 0.1)
    return columns


def twenty_rows(seed: int) -> Columns:
    """Twenty rows of noise around a reward that has not moved yet."""
    rng = rng_of(seed)
    return {
        "reward_mean": shares(rng, np.full(20, 0.35), 16),
        "loss": 0.02 * rng.standard_normal(20),
        "grad_norm": near(rng, np.full(20, 0.5), 0.5),
        "rollout_length_mean": near(rng, np.full(20, 200.0), 0.2),
        "kl_mean": near(rng, 1e-4 * np.arange(1, 21), 0.5),
    }


def few_metrics(seed: int) -> Columns:
    """Loss and reward, and nothing else; a batch of eight."""
    rng = rng_of(seed)
    return {"reward_mean": shares(rng, course(400, 0.3, 0.6), 8), "loss": 0.05 * rng.standard_normal(400)}


def one_response_a_row(seed: int) -> Columns:
    """A batch of one: each reward is 0 or 1."""
    rng = rng_of(seed)
    return {"reward_mean": shares(rng, np.full(600, 0.4), 1), "rollout_length_mean": near(rng, np.full(600, 80.0), 0.6)}


def already_trained(seed: int, rows: int = 250) -> Columns:
    """A model that was trained so before: good from the start, most groups all right, half of the gradients 0."""
    rng = rng_of(seed)
    return {
        "reward_mean": shares(rng, np.full(rows, 0.93), 64),
        "reward_std": np.abs(0.08 + 0.04 * rng.standard_normal(rows)) * (rng.random(rows) < 0.7),
        "reward_zero_std_frac": np.clip(0.8 + 0.1 * rng.standard_normal(rows), 0, 1),
        "entropy_mean": near(rng, np.full(rows, 0.02), 0.3),
        "grad_norm": near(rng, np.full(rows, 0.3), 0.8) * (rng.random(rows) < 0.5),
        "kl_mean": near(rng, np.full(rows, 0.08), 0.3),
        "rollout_length_mean": near(rng, np.full(rows, 700.0), 0.08),
    }


def harder_prompts(seed: int, rows: int = 300) -> Columns:
    """A curriculum: at a third of the run the prompts get harder, the reward halves, and climbs again."""
    rng = rng_of(seed)
    chance = np.where(np.arange(rows) < rows // 3, course(rows, 0.4, 0.85, 0.1), 0.0)
    chance[rows // 3 :] = course(rows - rows // 3, 0.42, 0.62)
    columns = math_rlvr(seed, rows)
    columns["reward_mean"] = shares(rng, chance, 256)
    columns["rollout_length_mean"] = near(rng, np.where(np.arange(rows) < rows // 3, 600.0, 1500.0), 0.05)
    columns["entropy_mean"] = near(rng, np.where(np.arange(rows) < rows // 3, 0.3, 0.45), 0.1)
    return columns


def dips(seed: int, rows: int = 400) -> Columns:
    """The reward falls to a tenth and comes back, several times, each within a dozen rows."""
    columns = math_rlvr(seed, rows)
    for place in (90, 180, 300):
        columns["reward_mean"][place : place + 12] *= np.concatenate([np.linspace(1, 0.1, 4), np.linspace(0.1, 1, 8)])
    return columns


def format_then_answer(seed: int, rows: int = 200) -> Columns:
    """The format is learnt within ten rows, its reward jumps and its spread is gone; the rest comes slowly."""
    rng = rng_of(seed)
    form = 1.0 / (1.0 + np.exp(-(np.arange(rows) - 8) / 1.5))
    answer = course(rows, 0.1, 0.5, 0.4)
    return {
        "reward_mean": form + shares(rng, answer, 96),
        "reward_std": near(rng, 0.5 * (1 - form) + 0.25, 0.1),
        "rollout_length_mean": near(rng, np.where(form > 0.5, 180.0, 330.0), 0.08),
        "grad_norm": near(rng, 0.4 + 2.0 * (1 - form), 0.4),
        "kl_mean": near(rng, course(rows, 0.0005, 0.06), 0.4),
        "entropy_mean": near(rng, geometric(rows, 0.7, 0.15, 0.1), 0.1),
    }


def half_precision_start(seed: int) -> Columns:
    """Half precision: the loss scaler skips the first steps, whose gradient norm is infinite."""
    columns = _rlhf(seed, 200, 0.0, 2.0, 1.0)
    columns["grad_norm"][:4] = np.inf
    columns["grad_norm"][120] = np.nan
    return columns


KL_BY["half_precision_start"] = "sequence"


def gaps_as_nan(seed: int) -> Columns:
    """What is measured every fifth row is written as NaN in the others."""
    columns = math_rlvr(seed)
    for name in ("reward_mean", "reward_std", "rollout_length_mean", "entropy_mean"):
        columns[name][np.arange(300) % 5 != 0] = np.nan
    return columns


def preference(seed: int, rows: int = 300) -> Columns:
    """DPO that goes well: margins to 4, both rewards a little down, the loss to 0.2, gradients up and down."""
    rng = rng_of(seed)
    margin = course(rows, 0.0, 4.0)
    return {
        "preference_margin": margin + 0.3 * rng.standard_normal(rows),
        "preference_accuracy": np.clip(course(rows, 0.5, 0.93) + 0.05 * rng.standard_normal(rows), 0, 1),
        "chosen_reward_mean": -0.3 * margin + 0.2 * rng.standard_normal(rows),
        "rejected_reward_mean": -1.3 * margin + 0.2 * rng.standard_normal(rows),
        "loss": near(rng, course(rows, 0.69, 0.2), 0.2),
        "grad_norm": near(rng, course(rows, 12.0, 5.0), 0.5),
        "lr": np.full(rows, 5e-7),
    }


def preference_of_easy_pairs(seed: int, rows: int = 300) -> Columns:
    """DPO on easy pairs: all told apart soon, margins to 12 and the loss near 0, the chosen answers still likely."""
    columns = preference(seed, rows)
    rng = rng_of(seed + 9)
    columns["preference_margin"] = course(rows, 0.0, 12.0) + 0.5 * rng.standard_normal(rows)
    columns["preference_accuracy"] = np.clip(course(rows, 0.6, 1.0, 0.1), 0, 1)
    columns["chosen_reward_mean"] = course(rows, 0.0, 2.0) + 0.2 * rng.standard_normal(rows)
    columns["loss"] = near(rng, geometric(rows, 0.69, 0.03), 0.4)
    columns["grad_norm"] = near(rng, geometric(rows, 12.0, 0.8), 0.6)
    return columns


def rloo(seed: int, rows: int = 300) -> Columns:
    """RLOO without a controller: the KL by sequence to 25 over answers of 400 tokens, the reward up."""
    columns = _rlhf(seed, rows, -1.0, 2.5, 1.2)
    for name in ("value_loss", "explained_variance", "target_kl"):
        del columns[name]
    columns["kl_mean"] = near(rng_of(seed + 3), course(rows, 0.1, 25.0, 0.5), 0.2)
    columns["kl_coef"] = np.full(rows, 0.05)
    columns["rollout_length_mean"] = near(rng_of(seed + 4), np.full(rows, 400.0), 0.1)
    return columns


KL_BY["rloo"] = "sequence"


def solved(seed: int, rows: int = 300) -> Columns:
    """A task that is solved half-way: every answer right, no spread, no gradient."""
    rng = rng_of(seed)
    chance = np.clip(np.arange(rows) / (0.4 * rows), 0.1, 1.0)
    reward = shares(rng, chance, 64)
    return {
        "reward_mean": reward,
        "reward_std": np.sqrt(reward * (1 - reward)),
        "reward_zero_std_frac": np.clip(reward**8, 0, 1),
        "grad_norm": near(rng, 0.5 * (1 - reward) + 1e-4, 0.3),
        "entropy_mean": near(rng, geometric(rows, 0.6, 0.05), 0.1),
        "rollout_length_mean": near(rng, np.full(rows, 120.0), 0.05),
        "kl_mean": near(rng, course(rows, 0.001, 0.08), 0.3),
    }


def solved_from_the_start(seed: int, rows: int = 120) -> Columns:
    """Nothing to learn at all: every answer scores 1, from the first row to the last."""
    rng = rng_of(seed)
    return {
        "reward_mean": np.ones(rows), "reward_std": np.zeros(rows), "grad_norm": np.zeros(rows),
        "rollout_length_mean": near(rng, np.full(rows, 60.0), 0.05),
        "kl_mean": near(rng, np.full(rows, 1e-4), 0.3),
    }  # fmt: skip


def off_policy(seed: int, rows: int = 250) -> Columns:
    """Many updates on each batch: a third of the tokens clipped, ratios to 30, KL of the update of 0.03."""
    columns = math_rlvr(seed, rows)
    rng = rng_of(seed + 5)
    columns["clip_frac"] = near(rng, np.full(rows, 0.3), 0.1)
    columns["ratio_max"] = near(rng, np.full(rows, 12.0), 0.6)
    columns["ratio_mean"] = 1.0 + 0.02 * rng.standard_normal(rows)
    columns["kl_update"] = near(rng, np.full(rows, 0.03), 0.3)
    columns["grad_norm"] = near(rng, np.full(rows, 0.8), 0.7)
    return columns


def spiky_gradients(seed: int, rows: int = 400) -> Columns:
    """Lone gradient norms of hundreds among ones of 0.3, and a loss that spikes with them."""
    columns = math_rlvr(seed, rows)
    rng = rng_of(seed + 6)
    lone = rng.random(rows) < 0.015
    columns["grad_norm"] = np.where(lone, 300.0, near(rng, np.full(rows, 0.3), 0.4))
    columns["loss"] = np.where(lone, 5.0, columns["loss"])
    return columns


def slow_collapse(seed: int) -> Columns:
    """The reward goes from 0.7 to 0.1 in the course of 150 rows, and stays."""
    rng = rng_of(seed)
    chance = np.concatenate([course(200, 0.3, 0.72), np.linspace(0.72, 0.1, 150), np.full(150, 0.1)])
    return {"reward_mean": shares(rng, chance, 128), "loss": 0.02 * rng.standard_normal(500)}


def worse_than_untrained(seed: int) -> Columns:
    """Learns from 0.4 to 0.8, falls to 0.25, and stays there for two hundred rows."""
    rng = rng_of(seed)
    chance = np.concatenate([course(150, 0.4, 0.82), np.full(200, 0.25)])
    return {"reward_mean": shares(rng, chance, 128), "grad_norm": near(rng, np.full(350, 0.4), 0.4)}


def gibberish_in_forty_rows(seed: int) -> Columns:
    """A log of forty rows: from row 20 on entropy to 6 nats, every answer cut off, no reward."""
    rng = rng_of(seed)
    bad = np.arange(40) >= 20
    return {
        "reward_mean": np.where(bad, 0.02, 0.5) + 0.03 * rng.standard_normal(40),
        "entropy_mean": near(rng, np.where(bad, 6.0, 0.4), 0.1),
        "rollout_length_mean": np.where(bad, 512.0, near(rng, np.full(40, 180.0), 0.1)),
        "truncated_frac": np.where(bad, 1.0, 0.05),
    }


def scores_collapse_below_zero(seed: int) -> Columns:
    """Scores of a reward model: from -2 to -1, then to -5 for good."""
    columns = _rlhf(seed, 300, -2.0, -0.8, 1.0)
    columns["reward_mean"][180:] = -5.0 + 0.2 * rng_of(seed).standard_normal(120)
    columns["entropy_mean"][180:] *= 0.05
    return columns


KL_BY["scores_collapse_below_zero"] = "sequence"


def twenty_rows_to_nothing(seed: int) -> Columns:
    """Twenty rows: learns until row 8, and nothing after."""
    rng = rng_of(seed)
    reward = np.concatenate([np.linspace(0.4, 0.65, 8), np.full(14, 0.01)])
    return {
        "reward_mean": np.clip(reward + 0.02 * rng.standard_normal(22), 0, 1),
        "entropy_mean": near(rng, np.where(np.arange(22) < 8, 0.5, 0.01), 0.1),
    }


def only_the_format_pays(seed: int) -> Columns:
    """Every answer gets 0.1 for its form and none more for its content."""
    rng = rng_of(seed)
    return {
        "reward_mean": np.full(100, 0.1), "reward_std": np.zeros(100), "grad_norm": np.zeros(100),
        "rollout_length_mean": near(rng, np.full(100, 300.0), 0.1),
    }  # fmt: skip


def kl_explodes_unit_unknown(seed: int) -> Columns:
    """The KL from 0.01 to hundreds while the reward goes; the log does not say how it was reduced."""
    rng = rng_of(seed)
    rows = np.arange(200)
    return {
        "kl_mean": near(rng, 0.01 * np.exp(np.clip((rows - 80) / 10.0, 0.0, 10.0)), 0.2),
        "reward_mean": np.where(rows > 120, 0.05, 0.6) + 0.04 * rng.standard_normal(200),
        "grad_norm": near(rng, np.where(rows > 100, 20.0, 0.5), 0.3),
    }


def weights_are_nan(seed: int) -> Columns:
    """From row 60 on no number of the training is finite."""
    columns = math_rlvr(seed, 100)
    for name in ("loss", "grad_norm", "entropy_mean"):
        columns[name][60:] = np.nan
    return columns


def hidden_nan(seed: int) -> Columns:
    """The trainer writes a loss of 0 in place of NaN; only the gradient norm tells."""
    columns = math_rlvr(seed, 100)
    columns["loss"][60:] = 0.0
    columns["grad_norm"][60:] = np.nan
    return columns


def answers_of_one_token(seed: int) -> Columns:
    """Answers shrink to one token, and the score with them."""
    rng = rng_of(seed)
    rows = np.arange(200)
    return {
        "rollout_length_mean": np.where(rows > 90, 1.5, near(rng, np.full(200, 120.0), 0.1)),
        "reward_mean": np.where(rows > 90, -4.0, course(200, 0.0, 1.5, 0.2)) + 0.2 * rng.standard_normal(200),
    }


def value_function_diverges(seed: int) -> Columns:
    """The value loss grows a thousandfold, its explained variance far below zero; the reward follows."""
    columns = _rlhf(seed, 300, 0.0, 2.0, 1.0)
    late = np.arange(300) >= 150
    columns["value_loss"] = np.where(late, columns["value_loss"] * 1000.0, columns["value_loss"])
    columns["explained_variance"] = np.where(late, -50.0, columns["explained_variance"])
    columns["reward_mean"] = np.where(np.arange(300) >= 180, -3.0, columns["reward_mean"])
    return columns


KL_BY["value_function_diverges"] = "sequence"


def preference_unlearns(seed: int) -> Columns:
    """DPO: margins to 40, the chosen answers at -25, no gradient left."""
    columns = preference(seed)
    rows = np.arange(300)
    columns["preference_margin"] = np.where(rows > 120, 40.0, columns["preference_margin"])
    columns["preference_accuracy"] = np.where(rows > 120, 1.0, columns["preference_accuracy"])
    columns["chosen_reward_mean"] = np.where(rows > 120, -25.0, columns["chosen_reward_mean"])
    columns["grad_norm"] = np.where(rows > 120, 1e-4, columns["grad_norm"])
    columns["loss"] = np.where(rows > 120, 1e-6, columns["loss"])
    return columns


def hacked_with_few_evaluations(seed: int) -> Columns:
    """The reward doubles while accuracy on held-out prompts, measured six times, halves; answers grow, the KL too."""
    rng = rng_of(seed)
    rows = 300
    columns: Columns = {
        "reward_mean": course(rows, 0.4, 0.95) + 0.03 * rng.standard_normal(rows),
        "kl_mean": near(rng, course(rows, 0.01, 0.9, 0.4), 0.2),
        "rollout_length_mean": near(rng, geometric(rows, 200, 700), 0.05),
        "eval_accuracy": np.full(rows, np.nan),
    }
    columns["eval_accuracy"][::50] = np.array([0.5, 0.52, 0.4, 0.3, 0.24, 0.2])
    return columns


KL_BY["hacked_with_few_evaluations"] = "token"


def steps_too_large(seed: int) -> Columns:
    """Updates of half a nat from the first row on; the policy is lost within ten, and then all is calm."""
    rng = rng_of(seed)
    rows = np.arange(150)
    wild = rows < 15
    return {
        "kl_update": near(rng, np.where(wild, 0.5, 1e-5), 0.2),
        "clip_frac": np.where(wild, 0.7, 0.0),
        "entropy_mean": near(rng, np.where(rows < 6, 1.2, 0.004), 0.1),
        "reward_mean": np.where(rows < 5, 0.45, 0.0) + 0.01 * rng.random(150),
        "kl_mean": near(rng, np.where(rows < 5, 0.02, 2.5), 0.05),
        "lr": np.full(150, 1e-3),
    }


KL_BY["steps_too_large"] = "token"


def loss_of_millions(seed: int) -> Columns:
    """A loss near 0 with leaps to thousands and millions, ever more often."""
    rng = rng_of(seed)
    columns = math_rlvr(seed, 300)
    leaps = (np.arange(300) > 120) & (rng.random(300) < 0.25)
    columns["loss"] = np.where(leaps, 10.0 ** rng.uniform(3, 6, 300), columns["loss"])
    return columns


def test_a_curriculum_that_halves_the_reward_is_told_as_a_collapse_and_nothing_else() -> None:
    """A known misfire: a log does not say that the prompts got harder, and a reward that stays down is a collapse."""
    for seed in SEEDS:
        assert {found.type for found in anomalies(harder_prompts, seed)} == {"policy_collapse"}


def test_gaps_that_are_written_as_nan_are_told_as_what_they_look_like() -> None:
    """A reward of NaN for three rows in a row is critical; what is not measured has to be left out of a row, or be null."""
    for seed in SEEDS:
        assert {found.type for found in anomalies(gaps_as_nan, seed)} == {"nonfinite_metric"}


Wild = Callable[[int], Columns]
SEEDS = range(8)


def anomalies(run: Wild, seed: int, every: int = 1) -> list[Anomaly]:
    """All anomalies of a run, from a log with a row every n steps; what is NaN among evaluations was not logged."""
    columns = run(seed)
    reduction = KL_BY.get(run.__name__)
    engine = Engine(reductions={"kl_mean": reduction} if reduction else None)
    for row in range(len(next(iter(columns.values())))):
        values = {name: float(column[row]) for name, column in columns.items()}
        metrics = {name: value for name, value in values.items() if value == value or not name.startswith("eval_")}
        engine.observe(Event(every * row, metrics))
    return engine.anomalies


SILENT: dict[Wild, Sequence[str]] = {
    math_rlvr: (),
    without_penalty: ("kl_explosion", "kl_trend_anomaly", "reward_hacking"),
    without_penalty_unit_unknown: (),
    code_with_rare_success: (),
    tool_use: (),
    rlhf_of_scale_20: (),
    rlhf_through_zero: (),
    rlhf_below_zero: (),
    sparse_log: (),
    twenty_rows: (),
    few_metrics: (),
    one_response_a_row: ("plateau",),
    already_trained: (),
    dips: ("length_runaway",),
    format_then_answer: (),
    half_precision_start: ("nonfinite_metric",),
    preference: (),
    preference_of_easy_pairs: ("preference_degenerate",),
    rloo: ("kl_trend_anomaly",),
    solved: ("reward_saturation",),
    solved_from_the_start: ("dead_reward",),
    off_policy: (),
    spiky_gradients: (),
}
"""Healthy runs, and of what they may be warned."""

LOUD: dict[Wild, tuple[str, int]] = {
    slow_collapse: ("policy_collapse", 350),
    worse_than_untrained: ("policy_collapse", 210),
    gibberish_in_forty_rows: ("entropy_explosion", 26),
    scores_collapse_below_zero: ("policy_collapse", 195),
    twenty_rows_to_nothing: ("entropy_collapse", 19),
    only_the_format_pays: ("dead_reward", 40),
    kl_explodes_unit_unknown: ("kl_explosion", 157),
    weights_are_nan: ("nonfinite_metric", 61),
    hidden_nan: ("nonfinite_metric", 62),
    answers_of_one_token: ("length_collapse", 105),
    value_function_diverges: ("value_divergence", 160),
    preference_unlearns: ("preference_degenerate", 130),
    hacked_with_few_evaluations: ("held_out_collapse", 251),
    steps_too_large: ("learning_rate_too_high", 12),
    loss_of_millions: ("loss_explosion", 150),
}
"""Failing runs, what must be said of them as critical, and before which row."""


@pytest.mark.parametrize("run", SILENT, ids=lambda run: run.__name__)
def test_healthy_runs_are_let_be(run: Wild) -> None:
    for seed in SEEDS:
        found = anomalies(run, seed)
        assert [anomaly.message for anomaly in found if anomaly.severity == "critical"] == []
        assert {anomaly.type for anomaly in found} <= set(SILENT[run])


@pytest.mark.parametrize("run", LOUD, ids=lambda run: run.__name__)
def test_failing_runs_are_caught_in_time(run: Wild) -> None:
    kind, before = LOUD[run]
    for seed in SEEDS:
        rows = [found.index for found in anomalies(run, seed) if found.type == kind and found.severity == "critical"]
        assert rows
        assert rows[0] < before


@pytest.mark.parametrize("run", [run for run in SILENT if run is not dips], ids=lambda run: run.__name__)
def test_the_number_of_steps_in_a_row_changes_no_verdict(run: Wild) -> None:
    """But for dips: a reward that is down for twelve rows of twenty-five steps was lost for three hundred updates."""
    assert not [found for found in anomalies(run, 1, every=25) if found.severity == "critical"]
