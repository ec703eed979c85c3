"""What a row says of itself: its step, its time, its run, and whether it is a row of training at all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rldk.core.catalog.metric import without_blanks
from rldk.core.jsonio import to_step

__all__ = [
    "EVAL_PREFIXES", "HELD_OUT", "LABEL_KEYS", "PHASE_KEYS", "REDUCTION_KEY", "RUN_KEYS", "STEP_KEYS", "SUMMARY_KEYS",
    "TIME_KEYS", "has_step", "is_axis", "parse_step", "step_of", "strip_eval",
]  # fmt: skip

STEP_KEYS = (
    "step", "global_step", "train/global_step", "training/global_step", "trainer/global_step", "training/step", "train/step",
    "global_step/max_steps", "current_steps", "Step", "rollout/step", "iteration", "iter", "update", "round",
    "Iteration", "Iter", "Update", "Round", "#", "步数", "训练步数", "迭代",
    "time/total_timesteps", "timesteps_total", "num_timesteps", "timesteps", "progress/batch", "training_step", "train_step",
    "train_steps", "optimizer_step", "update_step", "_step",
)  # fmt: skip
"""Keys that hold the step, best first; W&B's own `_step` counts calls and comes last."""

TIME_KEYS = (
    "wall_time", "_timestamp", "timestamp", "ts", "Wall time", "time", "_runtime", "elapsed_time", "elapsed_s",
    "time/time_elapsed", "elapsed",
)  # fmt: skip
"""Keys that hold the time, absolute ones first."""

RUN_KEYS = ("model_info/run_id", "run_id", "run", "run_name", "experiment")
PHASE_KEYS = ("model_info/phase", "phase", "split", "stage", "mode")
LABEL_KEYS = {
    "git_sha": ("model_info/git_sha", "git_sha"),
    "seed": ("rng/seed", "seed"),
    "tokens_in": ("data_slice/tokens_in", "tokens_in"),
    "tokens_out": ("data_slice/tokens_out", "tokens_out"),
    "samples": ("data_slice/samples",),
    "notes": ("notes",),
    "alerts": ("model_info/alerts",),
}
"""What else a row may say of itself, and the keys that hold it."""

HELD_OUT = frozenset({"eval", "evaluation", "val", "valid", "validation", "test", "dev", "held_out", "holdout"})
"""What a phase is called in which held-out data is measured."""

REDUCTION_KEY = "model_info/reductions/kl_mean"
"""Where an event says over what its KL was reduced, when the log it was read from had said so."""

SUMMARY_KEYS = frozenset(
    {"train_runtime", "train_samples_per_second", "train_steps_per_second", "total_flos", "train/train_runtime"}
)
"""What Hugging Face logs once at the end: a row that has it describes the run and not a step."""

EVAL_PREFIXES = (
    "eval/", "eval_", "validation/", "validation_", "val-core/", "val-aux/", "valid/", "valid_", "val/", "val_", "test/", "test_",
    "heldout/", "heldout_", "held_out/", "held_out_", "evaluation/", "Evaluation/",
    "gold/", "gold_", "true_",
)  # fmt: skip
"""What is put before the name of a metric that was measured on held-out data, or by a judge that training never sees
(`gold_reward` beside `proxy_reward`). TRL's `val/…` of the value function is known by its whole keys and is never taken
for one of these."""
_GOLD = ("gold", "true_reward", "oracle_reward", "quality")
"""What such a judge's reward is called without a prefix."""

_MARKS = ("_wandb", "percentage", "remaining_time", "max_steps", "total_steps")
_LABELS = tuple(key for keys in LABEL_KEYS.values() for key in keys)
_AXES = frozenset((*STEP_KEYS, *TIME_KEYS, *RUN_KEYS, *PHASE_KEYS, *_LABELS, *_MARKS, REDUCTION_KEY))


def is_axis(key: str) -> bool:
    """Whether a key places a row rather than measures something."""
    return key in _AXES


def has_step(row: Mapping[str, Any]) -> bool:
    """Whether a row has a key that holds the step."""
    return any(key in row for key in STEP_KEYS)


def parse_step(value: object) -> int | None:
    """The step that a value stands for; of `10/547` it is the 10."""
    return to_step(value.split("/", 1)[0] if isinstance(value, str) else value)


def step_of(row: Mapping[str, Any], keys: Iterable[str] = STEP_KEYS) -> int | None:
    """The step of a row by the first of these keys that holds one."""
    return next((step for key in keys if (step := parse_step(row.get(key))) is not None), None)


def strip_eval(key: str) -> str | None:
    """The name of a held-out metric without its prefix; `None` if the key is not of held-out data."""
    key = without_blanks(key)
    if " " in key:  # the heading of a table: `Eval Acc`
        key = key.lower().replace(" ", "_")
    base = key.removeprefix("train/") if key.startswith("train/eval") else key
    for prefix in EVAL_PREFIXES:
        if base.startswith(prefix) and len(base) > len(prefix):
            return base[len(prefix) :]
    return "reward" if base in _GOLD else None
