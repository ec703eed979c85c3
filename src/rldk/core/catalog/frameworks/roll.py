"""ROLL: TensorBoard, W&B, SwanLab or the console; names like verl's, and its own for the update (`actor/approxkl`).

A loss may be logged as a sum over the batch, with `@sum` after its name; those are not judged.
"""

from __future__ import annotations

from rldk.core.catalog.metric import Key, framework

__all__ = ["ROLL"]

ROLL = framework(
    "roll", "ROLL",
    signature=("system/tps", "system/samples", "actor_train/grad_norm", "critic/ref_log_prob/mean", "critic/old_log_prob/mean"),
    json_lines=True,
    known=(
        "time/* memory/* system/* tokens/* actor/* actor_train/* critic/* critic_train/* token/* scheduler/* env/* val/* "
        "offpolicy/* val_correct/* domain/* length/* reward/selected_*"
    ),
    keys={
        "kl_mean": ("critic/kl", "actor/kl_loss"),
        "kl_update": (Key("actor/approxkl", estimator="k2"), Key("actor/policykl", estimator="k1")),
        "kl_coef": ("critic/kl_coef", "actor/kl_loss_coef"),
        "entropy_mean": ("critic/entropy/mean", "actor/entropy"),
        "clip_frac": ("actor/ppo_ratio_clipfrac", "actor/clipfrac"),
        "clip_frac_low": "actor/ppo_ratio_low_clipfrac",
        "clip_frac_high": "actor/ppo_ratio_high_clipfrac",
        "ratio_mean": "actor/ratio_mean",
        "ratio_min": "actor/ratio_min",
        "ratio_max": "actor/ratio_max",
        "loss": "actor/total_loss",
        "policy_loss": "actor/pg_loss",
        "policy_grad_norm": ("actor_train/grad_norm", "actor/grad_norm"),
        "value_grad_norm": "critic_train/grad_norm",
        "policy_lr": "actor/lr",
        "value_lr": "critic/lr",
        "reward_mean": ("critic/score/mean", "reward/selected_mean", "score/mean"),
        "reward_after_kl": "critic/rewards/mean",
        "reward_min": "critic/score/min",
        "reward_max": "critic/score/max",
        "advantage_mean": "critic/advantages/mean",
        "advantage_min": "critic/advantages/min",
        "advantage_max": "critic/advantages/max",
        "value_loss": "critic/loss",
        "value_mean": ("critic/values/mean", "critic/vpred", "critic/value"),
        "value_error": "critic/error",
        "value_clip_frac": "critic/clipfrac",
        "return_mean": "critic/returns/mean",
        "return_min": "critic/returns/min",
        "return_max": "critic/returns/max",
        "rollout_length_mean": ("tokens/response_length/mean", "length/mean"),
        "rollout_length_min": ("tokens/response_length/min", "length/min"),
        "rollout_length_max": ("tokens/response_length/max", "length/max"),
        "prompt_length_mean": "tokens/prompt_length/mean",
        "tokens_per_second": "system/tps",
        "step_time": "time/step_total",
        "generation_time": ("time/step_generate", "time/rollout"),
        "update_time": ("time/step_train", "time/train_step/total"),
    },
)
