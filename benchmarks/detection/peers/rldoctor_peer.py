"""rldoctor (`rl-doctor` on GitHub): nine diagnoses of the whole history of a run, by robust trends and fixed limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rldk.core.event import Event

from .alarm import Alarm
from .metric_names import Row, kl_is_by_sequence, per_token_kl, rows_of
from .piped import PipedPeer

__all__ = ["ALGORITHMS", "NAMES", "RldoctorPeer"]

NAMES = {
    "reward": ("reward_mean", "reward_after_kl", "rollout_mean_reward", "accuracy"),
    "reward_std": ("reward_std", "reward_group_std", "rollout_std_reward"),
    "reward_max": ("reward_max",),
    "reward_min": ("reward_min",),
    "eval_score": ("eval_accuracy", "eval_reward_mean", "eval_preference_accuracy"),
    "frac_reward_zero_std": ("reward_zero_std_frac",),
    "advantage/mean": ("advantage_mean",),
    "advantage/std": ("advantage_std",),
    "entropy": ("entropy_mean",),
    "kl": ("kl_mean",),
    "clip_ratio/region_mean": ("clip_frac",),
    "clip_ratio/low_mean": ("clip_frac_low",),
    "clip_ratio/high_mean": ("clip_frac_high",),
    "grad_norm": ("grad_norm", "policy_grad_norm"),
    "learning_rate": ("lr", "policy_lr"),
    "policy_loss": ("policy_loss", "loss", "dpo_loss"),
    "completions/mean_length": ("rollout_length_mean",),
    "completions/max_length": ("rollout_length_max",),
    "completions/clipped_ratio": ("truncated_frac",),
    "prompt_length": ("prompt_length_mean",),
    "explained_variance": ("explained_variance",),
    "tokens_per_second": ("tokens_per_second",),
    "step_time": ("step_time",),
}
"""Key of rldoctor's alias table -> the metrics that fit. Reward functions are added as `rewards/NAME/mean`."""
FUNCTION = "reward_function_mean/"

ALGORITHMS = {"trl-grpo": "grpo", "trl-rloo": "rloo", "trl-ppo": "ppo", "rldk-trainer": "ppo", "trl-dpo": "dpo"}
"""Its setting `algorithm` for each framework: groups without spread are looked for in GRPO and RLOO only."""


class RldoctorPeer(PipedPeer):
    """rldoctor with the `LiveMonitor` of its documentation: a diagnosis every 25 rows from the 60th on, and one at the end.

    It has a live API and an offline one. The live one announces a finding once and again if it gets worse, finds more (what
    has healed or changed by the end is seen too) and gives a row. The offline one, `diagnose` on the whole run, is asked as well:
    its findings count at the last row, which also serves runs of less than 60 rows. Findings of the level `info` are not alarms.

    It has no presets but the algorithm. `max_steps`, which it reads from a `trainer_state.json`, is passed as the last step: it
    calls a plateau in the first half of a run a note and no warning. Its limits on KL (0.5 and 2 nats) are those of TRL's GRPO,
    per token, so a KL that is summed over the sequence is divided by the mean length. Where no length is logged it
    is passed as it is, as rldoctor's own alias for TRL's PPO (`objective/kl`) does.
    """

    name: ClassVar[str] = "rldoctor"
    requirement: ClassVar[str] = "rldoctor"
    child: ClassVar[str] = "rldoctor_child.py"

    def ask(self, events: Sequence[Event], framework: str, reductions: Mapping[str, str] | None = None) -> list[Alarm]:
        """Its findings of the levels `warning` and `critical`."""
        if not events:
            return []
        rows = _rows(events, kl_is_by_sequence(events, framework, reductions))
        config = {"algorithm": ALGORITHMS.get(framework), "max_steps": max(event.step for event in events)}
        return [tuple(alarm) for alarm in self.request(rows=rows, config=config)]


def _rows(events: Sequence[Event], kl_by_sequence: bool) -> list[Row]:
    rows = rows_of(events, NAMES)
    for (_, metrics), event in zip(rows, events, strict=True):
        functions = [name for name in event.metrics if name.startswith(FUNCTION)]
        metrics |= {f"rewards/{name[len(FUNCTION) :].replace('/', '_')}/mean": event.metrics[name] for name in functions}
    by_token = [per_token_kl(event) if kl_by_sequence else None for event in events]
    if any(kl is not None for kl in by_token):
        for (_, metrics), kl in zip(rows, by_token, strict=True):
            metrics.pop("kl", None)
            metrics |= {} if kl is None else {"kl": kl}
    return rows
