"""What a run is started with, under one name each: the knobs that advice and comparison speak of."""

from __future__ import annotations

from collections.abc import Container, Mapping
from functools import cache
from typing import Any

__all__ = ["KNOBS", "canonical_knobs", "flat_settings", "setting_key"]

KNOBS: dict[str, tuple[str, ...]] = {
    "learning_rate": (
        "learning_rate", "actor_learning_rate", "actor_lr", "lr", "actor_rollout_ref.actor.optim.lr", "policy.optimizer.lr",
        "actor.optim.lr", "policy.optimizer.kwargs.lr", "trainer.policy.optimizer_config.lr",
        "actor.optimizer.lr", "actor.adam.lr", "trainer.optim.lr", "optim.lr", "optimizer.lr",
        "actor_train.training_args.learning_rate",
    ),
    "value_learning_rate": ("critic_learning_rate", "critic_lr", "value_learning_rate", "critic.optim.lr", "critic.adam.lr",
        "trainer.critic.optimizer_config.lr", "critic.optimizer.lr",),
    "lr_scheduler": ("lr_scheduler_type", "lr_scheduler", "lr_decay_style", "lr_schedule"),
    "warmup_steps": ("warmup_steps", "lr_warmup_steps", "num_warmup_steps", "warmup_iters"),
    "warmup_ratio": ("warmup_ratio", "lr_warmup_ratio", "lr_warmup_steps_ratio"),
    "weight_decay": ("weight_decay",),
    "max_grad_norm": ("max_grad_norm", "grad_clip", "clip_grad", "gradient_clipping", "max_norm", "clip_grad_norm"),
    "adam_epsilon": ("adam_epsilon", "adam_eps"),
    "optimizer": ("optim", "optimizer", "optimizer_type"),
    "kl_coef": (
        "kl_coef", "beta", "init_kl_coef", "kl_loss_coef", "kl_beta", "kl_penalty_coef", "reference_policy_kl_penalty",
        "dpo_beta", "kl_ctl", "kl_coeff", "kl_coefficient", "pref_beta", "actor_rollout_ref.actor.kl_loss_coef",
        "algorithm.kl_ctrl.kl_coef", "algo.kl.init_coef",
    ),
    "kl_target": ("kl_target", "target_kl", "algorithm.kl_ctrl.target_kl"),
    "syncs_reference": ("sync_ref_model",),
    "reference_sync_steps": ("ref_model_sync_steps",),
    "reference_mixup": ("ref_model_mixup_alpha",),
    "token_entropy_share": ("top_entropy_quantile",),
    "kl_estimator": ("kl_estimator", "kl_loss_type", "algorithm.kl_penalty", "actor_rollout_ref.actor.kl_loss_type"),
    "clip_range": (
        "clip_range", "cliprange", "epsilon", "eps_clip", "clip_coef", "clip_ratio", "clip_eps", "ratio_clip_min",
        "ratio_clip_eps", "eps_clip_low", "pg_clip", "clip_epsilon", "actor_rollout_ref.actor.clip_ratio",
    ),
    "clip_range_high": ("epsilon_high", "clip_ratio_high", "eps_clip_high", "ratio_clip_max"),
    "clip_range_value": ("clip_range_value", "cliprange_value", "value_clip", "cliprange_v", "clip_range_vf"),
    "entropy_coef": ("entropy_coef", "entropy_coeff", "ent_coef", "entropy_loss_coef", "actor_rollout_ref.actor.entropy_coeff"),
    "value_coef": ("vf_coef", "value_coef", "critic_coef", "value_loss_coef"),
    "gamma": ("gamma", "algorithm.gamma"),
    "lam": ("lam", "gae_lambda", "lambd", "algorithm.lam"),
    "whiten_advantages": ("whiten_rewards", "whiten_advantages", "norm_adv", "normalize_advantage", "normalize_advantages"),
    "scale_rewards": ("scale_rewards", "norm_adv_by_std_in_grpo", "use_std_normalization"),
    "loss_type": ("loss_type", "loss_agg_mode", "adv_estimator", "advantage_estimator", "algorithm.adv_estimator"),
    "label_smoothing": ("label_smoothing",),
    "excludes_truncated": ("mask_truncated_completions", "overlong_filter"),
    "missing_eos_penalty": ("missing_eos_penalty", "non_eos_penalty"),
    "num_generations": (
        "num_generations", "rloo_k", "n_samples_per_prompt", "group_size", "num_samples_per_prompt", "rollouts_per_example",
        "num_generations_per_prompt", "actor_rollout_ref.rollout.n",
    ),
    "num_iterations": (
        "num_iterations", "num_ppo_epochs", "ppo_epochs", "update_epochs", "n_epochs", "noptepochs", "update_epochs_per_batch",
        "actor_rollout_ref.actor.ppo_epochs",
    ),
    "num_minibatches": ("num_mini_batches", "mini_batches", "num_minibatches"),
    "temperature": ("temperature", "rollout_temperature", "sampling_temperature", "actor_rollout_ref.rollout.temperature"),
    "top_p": ("top_p", "actor_rollout_ref.rollout.top_p"),
    "top_k": ("top_k", "actor_rollout_ref.rollout.top_k"),
    "max_response_length": (
        "max_completion_length", "response_length", "max_new_tokens", "generate_max_len", "max_response_length",
        "rollout_max_response_len", "max_generate_length", "max_generated_tokens", "max_gen_len", "max_answer_seq_len",
        "max_total_sequence_length", "data.max_response_length",
    ),
    "max_prompt_length": ("max_prompt_length", "prompt_max_len", "data.max_prompt_length"),
    "max_length": ("max_length", "max_seq_len", "max_seq_length", "cutoff_len"),
    "batch_size": (
        "batch_size", "generation_batch_size", "train_batch_size", "rollout_batch_size", "global_batch_size", "groups_per_batch",
        "num_prompts_per_step",
        "data.train_batch_size",
    ),
    "micro_batch_size": ("per_device_train_batch_size", "micro_train_batch_size", "micro_batch_size"),
    "gradient_accumulation_steps": ("gradient_accumulation_steps", "accumulation_steps"),
    "num_epochs": ("num_train_epochs", "epochs", "num_epochs", "total_epochs", "max_epochs", "trainer.total_epochs"),
    "max_steps": ("max_steps", "total_training_steps", "num_steps", "num_rollout", "total_steps", "max_num_steps"),
    "total_episodes": ("total_episodes", "num_episodes", "total_timesteps"),
    "steps_per_generation": ("steps_per_generation",),
    "logging_steps": ("logging_steps", "log_interval", "log_freq"),
    "save_steps": ("save_steps", "save_interval", "save_freq"),
    "seed": ("seed",),
    "bf16": ("bf16",),
    "fp16": ("fp16",),
    "dtype": ("dtype", "torch_dtype", "mixed_precision", "precision"),
    "lora_alpha": ("lora_alpha", "peft_config.lora_alpha"),
    "lora_rank": ("lora_r", "lora_rank", "peft_config.r"),
    "model": (
        "model_name_or_path", "model_path", "model_name", "pretrain", "actor_rollout_ref.model.path", "policy.model_name",
        "sft_model_path", "model", "base_model", "_name_or_path",
    ),
    "reward_model": ("reward_model_path", "reward_pretrain", "reward_model", "reward"),
    "dataset": ("dataset_name", "prompt_data", "dataset", "data_config", "train_files", "data.train_files"),
    "vocab_size": ("vocab_size",),
}  # fmt: skip
"""Each knob and what the frameworks call it, the likeliest first; a name with dots is the whole path of a nested one."""

_OTHERS = frozenset(
    {"critic", "value", "ref", "reference", "reward", "reward_model", "rm", "teacher", "eval", "rldk", "versions"}
)
"""Parts of nested settings that are not those of the policy."""

_DEEP = 8


def flat_settings(raw: Mapping[str, Any], prefix: str = "", depth: int = 0) -> dict[str, Any]:
    """Nested settings by their path: `{"actor": {"lr": 1}}` is `actor.lr`. W&B's `{"value": …}` around each is taken off."""
    found: dict[str, Any] = {}
    for key, value in raw.items():  # `Mapping` would keep each kind of value in a cache of every kind of mapping
        path = f"{prefix}{key}".replace("/", ".")
        if isinstance(value, dict) and "value" in value and set(value) <= {"value", "desc"}:
            value = value["value"]
        if isinstance(value, dict) and depth < _DEEP:
            found |= flat_settings(value, f"{path}.", depth + 1)
        else:
            found[path] = value
    return found


def setting_key(name: str, known: Container[str]) -> str | None:
    """The key among the known ones that a name stands for: its own, or the knob of which it is another name (`lr`)."""
    if name in known:
        return name
    return next((knob for knob, names in KNOBS.items() if name in names and knob in known), None)


def canonical_knobs(raw: Mapping[str, Any]) -> dict[str, tuple[str, Any]]:
    """The knobs that settings hold, each with the key that holds it and its value.

    A whole path counts before the last part of one, and a part near the top before one that is nested deeply.
    """
    flat = {path: value for path, value in flat_settings(raw).items() if _is_plain(value)}
    by_path = {path.lower(): path for path in flat}
    by_part: dict[str, str] = {}
    for path in sorted(flat, key=lambda path: path.count(".")):
        *owners, part = path.lower().split(".")
        if _OTHERS.isdisjoint(owners):
            by_part.setdefault(part, path)
    found: dict[str, tuple[str, Any]] = {}
    for knob, names in KNOBS.items():
        places = [by_path[name] for name in _paths_first(names) if name in by_path]
        places = places or [by_part[name] for name in names if name in by_part]
        if places:
            found[knob] = (places[0], _number(flat[places[0]]))
    return found


@cache
def _paths_first(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(names, key=lambda name: "." not in name))


def _is_plain(value: Any) -> bool:
    return isinstance(value, (str, int, float)) and value != ""


def _number(value: Any) -> Any:
    """A number that a store keeps as text (MLflow's `1e-06`) as a number."""
    if not isinstance(value, str):
        return value
    if value in ("True", "False", "true", "false"):
        return value.lower() == "true"
    try:
        number = float(value)
    except ValueError:
        return value
    return int(number) if number.is_integer() and value.lstrip("-").isdecimal() else number
