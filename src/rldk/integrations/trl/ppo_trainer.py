"""Builds TRL's PPO trainer from one model, wherever the installed TRL has it."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from typing import Any

from rldk.core.errors import RLDKError, UsageError

__all__ = ["create_ppo_trainer", "find_ppo"]


def find_ppo() -> tuple[Any, Any]:
    """`PPOTrainer` and `PPOConfig`: in `trl` up to 0.28, in `trl.experimental.ppo` from 0.26 to 1.12, and nowhere after."""
    import trl

    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    for place in ("trl.experimental.ppo", "trl"):
        try:
            module = importlib.import_module(place)
            return module.PPOTrainer, module.PPOConfig
        except (ImportError, AttributeError):
            continue
    raise RLDKError(
        f"TRL {trl.__version__} has no PPOTrainer: it left with 1.13. Either pin TRL (pip install 'trl<1.13' "
        "'transformers<5.19'), or train with rldk's own PPO (python trainer/train_ppo.py --help)."
    )


def create_ppo_trainer(
    model_name: str | os.PathLike[str],
    ppo_config: Any = None,
    train_dataset: Any = None,
    callbacks: Sequence[Any] = (),
    event_log_path: str | os.PathLike[str] | None = None,
    *,
    reward_model: Any = None,
    value_model: Any = None,
    ref_model: Any = None,
    tokenizer: Any = None,
    eval_dataset: Any = None,
    **options: Any,
) -> Any:
    """Build TRL's PPO trainer with policy, reference, value and reward model from one name or folder.

    Args:
        model_name: a model on the hub or in a folder, with its tokenizer.
        ppo_config: a `PPOConfig`; its defaults where none is given.
        train_dataset: prompts: tokenised (`input_ids`), or text in `prompt`, `query` or `text`, which is tokenised here.
        callbacks: rldk's and others.
        event_log_path: adds an `EventWriterCallback`, unless one is among the callbacks. An existing log is appended to.
        reward_model: a model, or the name of one; by default a new head on `model_name`, which is random
            until it is trained. `value_model`, `ref_model` and `tokenizer` likewise.
        options: passed on to `PPOTrainer`.

    Raises:
        RLDKError: this version of TRL has no PPO; the message names two alternatives.
    """
    trainer_kind, config_kind = find_ppo()
    from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, AutoTokenizer

    from rldk.integrations.trl.callbacks import EventWriterCallback

    if train_dataset is None:
        raise UsageError("Expected `train_dataset` with prompts, got None.")
    name = os.fspath(model_name)
    words = AutoTokenizer.from_pretrained(name) if tokenizer is None else tokenizer
    if words.pad_token is None:
        words.pad_token = words.eos_token
    words.padding_side = "left"

    def causal(given: Any) -> Any:
        return AutoModelForCausalLM.from_pretrained(given) if isinstance(given, (str, os.PathLike)) else given

    def scoring(given: Any) -> Any:
        if given is not None and not isinstance(given, (str, os.PathLike)):
            return given
        return AutoModelForSequenceClassification.from_pretrained(name if given is None else given, num_labels=1)

    config = config_kind(output_dir="ppo_output", report_to="none") if ppo_config is None else ppo_config
    every = list(callbacks)
    if event_log_path is not None and not any(isinstance(one, EventWriterCallback) for one in every):
        every.append(EventWriterCallback(event_log_path))
    trainer = trainer_kind(
        args=config, processing_class=words, model=causal(name), ref_model=causal(name if ref_model is None else ref_model),
        reward_model=scoring(reward_model), value_model=scoring(value_model), train_dataset=_tokenised(train_dataset, words),
        eval_dataset=None if eval_dataset is None else _tokenised(eval_dataset, words), callbacks=every, **options,
    )  # fmt: skip
    if not hasattr(trainer, "is_distributed_loading_by_transformers"):
        trainer.is_distributed_loading_by_transformers = False  # transformers 5.19 and newer ask for it when PPO saves
    return trainer


def _tokenised(dataset: Any, tokenizer: Any) -> Any:
    """The prompts as token ids; a data set that has them is left as it is."""
    columns = list(getattr(dataset, "column_names", None) or ())
    if "input_ids" in columns:
        return dataset
    text = next((name for name in ("prompt", "query", "text", "question") if name in columns), None)
    if text is None:
        raise UsageError(f"Expected prompts in `input_ids`, `prompt`, `query` or `text`, got columns {columns}.")
    return dataset.map(
        lambda rows: {"input_ids": tokenizer(rows[text], padding=False)["input_ids"]}, batched=True, remove_columns=columns
    )  # fmt: skip
