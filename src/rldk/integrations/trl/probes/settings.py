"""The settings of a run: sizes of models, vocabularies and data, ranges and coefficients."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rldk.functional.preflight import DistinctCount, digest, shares_weights
from rldk.integrations.trl.probes.stack import ModelParts

__all__ = ["describe_run", "describe_settings", "end_tokens", "is_ppo", "kl_coefficient"]

_PROMPT_COLUMNS = ("prompt", "prompt_ids", "prompt_input_ids", "query", "question")
_MAX_ROWS = 1024


def kl_coefficient(trainer: Any, args: Any) -> float | None:
    """The trainer's current KL coefficient: PPO reads it from its settings at each update, others have an attribute."""
    own = _set(args, "kl_coef")
    found = own if own is not None else getattr(trainer, "beta", getattr(args, "beta", None))
    return float(found) if isinstance(found, (int, float)) else None


def _set(args: Any, *names: str) -> Any:
    """The first of these settings that has a value: some versions keep a retired name as `None` next to the new one."""
    return next((value for name in names if (value := getattr(args, name, None)) is not None), None)


def describe_run(trainer: Any, args: Any, model: Any, tokenizer: Any) -> tuple[dict[str, float], dict[str, Any]]:
    """The settings that are metrics of the catalogue, and the names of model and trainer."""
    _, policy, value = ModelParts.of(model)
    found: dict[str, Any] = {
        "kl_coef": kl_coefficient(trainer, args),
        "clip_range": _set(args, "cliprange", "epsilon"),
        "clip_range_value": getattr(args, "cliprange_value", None),
        "target_kl": getattr(args, "target_kl", None),
        "temperature": getattr(args, "temperature", None),
        "top_p": getattr(args, "top_p", None),
        "top_k": getattr(args, "top_k", None),
        "repetition_penalty": getattr(args, "repetition_penalty", None),
        "max_response_length": _set(args, "response_length", "max_completion_length") if _samples(args) else None,
        "num_generations": _set(args, "num_generations", "rloo_k"),
        "num_iterations": _set(args, "num_ppo_epochs", "num_iterations"),
        "reference_is_policy": _reference_is_policy(trainer, args, policy),
        "distinct_prompts_frac": _distinct_share(getattr(trainer, "train_dataset", None), tokenised=is_ppo(args)),
        "batch_size": _batch_size(args),
        "rollout_buffer_size": _set(args, "batch_size", "generation_batch_size"),
        "vocab_size": getattr(getattr(policy, "config", None), "vocab_size", None),
        "tokenizer_vocab_size": len(tokenizer) if hasattr(tokenizer, "__len__") else None,
        "dataset_size": _size(getattr(trainer, "train_dataset", None)),
        "advantage_normalized": _normalized(args),
        "advantage_raw": 1.0 if is_ppo(args) else None,
        **_parameters("policy", policy),
        **(_parameters("value", value) if value is not None else {}),
    }
    numbers = {name: float(given) for name, given in found.items() if isinstance(given, (int, float))}
    config = getattr(policy, "config", None)
    name = type(trainer).__name__ if trainer is not None else None
    words = {"model_type": getattr(config, "model_type", None), "trainer": name}
    return numbers, {name: str(word) for name, word in words.items() if word}


def describe_settings(trainer: Any, args: Any, model: Any) -> dict[str, Any]:
    """The trainer's arguments by their own names, with their class, the model, and versions."""
    policy = ModelParts.of(model).policy
    given = args.to_dict() if hasattr(args, "to_dict") else vars(args)
    packages = {name: getattr(sys.modules.get(name), "__version__", None) for name in ("trl", "transformers", "torch", "peft")}
    adapter = getattr(policy, "peft_config", None)
    return {
        "trainer": type(trainer).__name__ if trainer is not None else None,
        "arguments": type(args).__name__,
        "model": getattr(getattr(policy, "config", None), "_name_or_path", None),
        "peft_config": next(iter(adapter.values())).to_dict() if isinstance(adapter, Mapping) and adapter else None,
        "versions": packages,
        **given,
    }


def end_tokens(policy: Any, tokenizer: Any) -> list[int]:
    """The tokens that end a response, from the tokenizer and the model's generation config."""
    own = getattr(getattr(policy, "generation_config", None), "eos_token_id", None)
    found = [getattr(tokenizer, "eos_token_id", None), *(own if isinstance(own, (list, tuple)) else [own])]
    return sorted({one for one in found if isinstance(one, int)})


def _samples(args: Any) -> bool:
    """Whether the policy generates responses. In some versions DPO has a limit for completions too."""
    return _set(args, "num_ppo_epochs", "num_generations", "rloo_k") is not None


def _reference_is_policy(trainer: Any, args: Any, policy: Any) -> float | None:
    """Whether the reference is trained with the policy; `None` without a reference, or if it is unknown."""
    reference = getattr(trainer, "ref_model", None)
    if reference is None:
        adapted = hasattr(policy, "peft_config") and hasattr(trainer, "ref_model") and kl_coefficient(trainer, args)
        return 0.0 if adapted else None  # without its adapter, the policy is the reference
    shared = shares_weights(policy, getattr(reference, "module", reference))
    return None if shared is None else float(shared)


def _parameters(name: str, model: Any) -> dict[str, int]:
    sizes = [(one.numel(), one.requires_grad) for one in model.parameters()]
    trainable = sum(size for size, trained in sizes if trained)
    return {f"{name}_total_params": sum(size for size, _ in sizes), f"{name}_trainable_params": trainable}


def _batch_size(args: Any) -> int | None:
    """Responses in an update, over all processes."""
    if isinstance(found := getattr(args, "batch_size", None), int):
        return found
    size = getattr(args, "per_device_train_batch_size", None)
    return None if size is None else size * args.gradient_accumulation_steps * max(1, getattr(args, "world_size", 1))


def _normalized(args: Any) -> float | None:
    """Whether advantages are normalised before use. The probes see raw advantages in PPO, and normalised ones in GRPO."""
    if is_ppo(args):  # whatever its settings
        return 1.0
    scaled = _set(args, "scale_rewards", "normalize_advantages")
    return None if scaled is None else float(scaled not in (False, "none"))


def is_ppo(args: Any) -> bool:
    """Whether these are settings of TRL's PPO; older ones of RLOO have epochs too, but no value function."""
    return hasattr(args, "num_ppo_epochs") and hasattr(args, "vf_coef")


def _size(data: Any) -> int | None:
    return len(data) if hasattr(data, "__len__") else None


def _distinct_share(data: Any, tokenised: bool) -> float | None:
    """The share of different prompts among at most 1024 evenly spaced records of a data set; `None` if it is unknown.

    Args:
        data: a data set with columns.
        tokenised: whether its `input_ids` are prompts, as in PPO.
    """
    names = [*_PROMPT_COLUMNS, *(["input_ids"] if tokenised else [])]
    columns = getattr(data, "column_names", None)
    column = next((name for name in names if isinstance(columns, Sequence) and name in columns), None)
    if column is None or not hasattr(data, "select") or not len(data):
        return None
    rows = range(0, len(data), -(-len(data) // _MAX_ROWS))
    prompts = data.select(rows)[column]
    return DistinctCount().add(digest(str(prompt).encode("utf-8", "replace")) for prompt in prompts) / len(rows)
