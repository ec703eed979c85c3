"""ART (Agent Reinforcement Trainer): `history.jsonl`, with `loss/…` of the update and `train/…` or `val/…` of the trajectories.

Values that are not finite are left out of the file.
"""

from __future__ import annotations

from rldk.core.catalog.metric import framework

__all__ = ["ART"]

ART = framework(
    "art", "ART",
    signature=("training_step", "recorded_at", "time/wall_clock_sec", "time/step_wall_s", "data/step_num_groups_submitted"),
    json_lines=True,
    known=(
        "time/* data/* costs/* throughput/* loss/* train/* val/* test/* group_* reward_std_dev num_gradient_steps "
        "num_groups_submitted num_trajectories recorded_at"
    ),
    keys={
        "kl_mean": ("loss/kl_policy_ref", "loss/kl_div"),
        "entropy_mean": "loss/entropy",
        "loss": "loss/train",
        "grad_norm": "loss/grad_norm",
        "lr": "loss/learning_rate",
        "reward_mean": "train/reward",
        "reward_group_std": ("train/reward_std_dev", "reward_std_dev"),
        "rollout_length_mean": ("train/completion_tokens", "completion_tokens"),
        "turns_mean": "train/num_turns",
        "aborted_frac": ("train/exception_rate", "exception_rate"),
        "staleness_mean": ("train/steps_off_policy", "steps_off_policy"),
        "dropped_rollouts": ("train/discarded_stale_groups", "discarded_stale_groups"),
        "step_time": "time/step_wall_s",
        "generation_time": "time/step_actor_s",
        "update_time": "time/step_trainer_s",
        "step_tokens": "data/step_trainer_tokens",
    },
)
