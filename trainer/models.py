"""Models and tokenizers: where they come from, and how weights are written for the next stage."""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import yaml
from accelerate import Accelerator
from safetensors import SafetensorError

from chat_tokens import end_tokens
from checkpoint import CheckpointError, checked_name, heal, put_in_place
from hub import local_folder
from lora import merged_state, save_adapters
from sharding import is_sharded, whole_state

TOKENIZER_FILES = ("*.json", "*.txt", "*.model", "*.jinja")


def weight_folder(args: argparse.Namespace, name: str) -> Path:
    """The folder of the weights `name` under --save_dir."""
    return Path(args.save_dir) / checked_name(name, "--from_weight")


def model_source(args: argparse.Namespace) -> Path | None:
    """The folder to start from, or `None` if a new model is to be built."""
    if args.from_weight != "none":
        folder = heal(weight_folder(args, args.from_weight))
        if not (folder / "config.json").is_file():
            there = sorted(path.parent.name for path in Path(args.save_dir).glob("*/config.json"))
            raise CheckpointError(
                f"--from_weight {args.from_weight}: no weights in {folder}. There are: {', '.join(there) or 'none'}. "
                "Run the previous stage first, or give --model_path."
            )
        return folder
    return model_folder(args.model_path, "--model_path") if args.model_path else None


def model_folder(name: str | Path, flag: str) -> Path:
    """The folder of a model by folder or hub name."""
    folder = local_folder(name, flag)
    if not (folder / "config.json").is_file():
        raise CheckpointError(f"{flag} {name}: no config.json there. Give the folder or hub name of a Hugging Face checkpoint.")
    return folder


@contextmanager
def quiet_transformers():
    """Hide progress bars and the report about heads that are new on purpose."""
    import transformers

    before = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers.logging.set_verbosity(before)


def load_tokenizer(args: argparse.Namespace) -> Any:
    """The tokenizer of --tokenizer, or of the weights to start from."""
    name = args.tokenizer or model_source(args)
    if name is None:
        raise CheckpointError("No tokenizer: neither --tokenizer nor weights were given. Give --tokenizer FOLDER or a hub name.")
    return open_tokenizer(name, "--tokenizer")


def open_tokenizer(name: str | Path, flag: str) -> Any:
    """The tokenizer by folder or hub name, padding on the left."""
    folder = local_folder(name, flag, files=TOKENIZER_FILES)
    if not any((folder / one).is_file() for one in ("tokenizer.json", "tokenizer_config.json", "tokenizer.model", "vocab.json")):
        raise CheckpointError(f"{flag} {name}: there is no tokenizer in {folder}.")
    tokenizer = saved_tokenizer(folder)
    tokenizer.padding_side = "left"
    return tokenizer


def saved_tokenizer(folder: Path) -> Any:
    """The tokenizer of a folder as it was saved; without a token for padding, it pads with the one that ends a text."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def load_model(args: argparse.Namespace, kind: str = "causal", folder: str | Path | None = None, tokenizer: Any = None) -> Any:
    """A model of a kind: `causal` (the policy), `value` (a number at each token) or `score` (one for each sequence).

    From `folder`, else from where the arguments say; with neither weights nor folder it is built from --model_config.
    """
    import transformers

    auto = {
        "causal": transformers.AutoModelForCausalLM,
        "value": transformers.AutoModelForTokenClassification,
        "score": transformers.AutoModelForSequenceClassification,
    }[kind]
    heads = {} if kind == "causal" else {"num_labels": 1}
    source = model_source(args) if folder is None else model_folder(folder, "the model")
    given: dict[str, Any] = {"dtype": getattr(torch, getattr(args, "weight_dtype", "float32"))}
    given |= {"attn_implementation": args.attention} if getattr(args, "attention", None) else {}
    with quiet_transformers():
        if source is not None:
            model = auto.from_pretrained(str(source), local_files_only=True, use_safetensors=True, **given, **heads)
        else:
            model = auto.from_config(new_config(args, tokenizer, heads), **given)
    if tokenizer is not None:
        rows = model.get_input_embeddings().num_embeddings
        if len(tokenizer) > rows:
            raise CheckpointError(
                f"The tokenizer has {len(tokenizer)} entries and the model embeds {rows}: tokens beyond them would be "
                "out of bounds. Give the model's own tokenizer, or enlarge the model with `resize_token_embeddings`."
            )
        model.config.pad_token_id = tokenizer.pad_token_id
        if kind == "causal":  # generation with these weights uses the end tokens of the stages
            model.generation_config.eos_token_id = end_tokens(tokenizer, model)
            model.generation_config.pad_token_id = tokenizer.pad_token_id
    return model


def load_critic(args: argparse.Namespace, tokenizer: Any) -> Any:
    """The value model: of --critic's folder, of the reward model with its head, or of the policy with a new head."""
    if args.critic == "policy":
        return load_model(args, "value", tokenizer=tokenizer)
    if args.critic != "reward":
        return load_model(args, "value", folder=model_folder(args.critic, "--critic"), tokenizer=tokenizer)
    if ":" in args.reward:
        raise CheckpointError(f"--critic reward: --reward {args.reward} is not a folder with a reward model.")
    folder = model_folder(args.reward, "--critic reward: --reward")
    critic = load_model(args, "value", folder=folder, tokenizer=tokenizer)
    judge = load_model(args, "score", folder=folder, tokenizer=tokenizer)
    head = next(module for module in reversed(list(critic.modules())) if isinstance(module, torch.nn.Linear))
    with torch.no_grad():  # the two kinds name their heads differently in some families
        head.weight.copy_(judge.score.weight)
        if head.bias is not None:
            head.bias.zero_()
    return critic


def new_config(args: argparse.Namespace, tokenizer: Any, more: dict[str, Any]) -> Any:
    from transformers import AutoConfig

    if not args.model_config:
        raise CheckpointError("No model: give --from_weight, --model_path or --model_config.")
    text = Path(args.model_config).read_text()
    given = json.loads(text) if args.model_config.endswith(".json") else yaml.safe_load(text)
    if not isinstance(given, dict) or "model_type" not in given:
        raise CheckpointError(f"--model_config {args.model_config}: expected a Hugging Face config with `model_type`.")
    if tokenizer is not None:
        given = {**given, "vocab_size": max(len(tokenizer), given.get("vocab_size") or 0)}
        given |= {key: getattr(tokenizer, key) for key in ("bos_token_id", "eos_token_id", "pad_token_id")}
    return AutoConfig.for_model(**given, **more)


def disable_dropout(model: Any) -> Any:
    """Switch dropout off, so that the policy that is trained is the one that was sampled from."""
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    if getattr(model.config, "attention_dropout", 0.0):
        model.config.attention_dropout = 0.0
        for module in model.modules():
            if hasattr(module, "attention_dropout"):
                module.attention_dropout = 0.0
    return model


def checkpoint_activations(args: argparse.Namespace, model: Any) -> None:
    """With --gradient_checkpointing, keep only the inputs of each layer and recompute the rest in the backward pass."""
    if args.gradient_checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})


def trained_work(model: torch.nn.Module) -> int:
    """The equivalent number of trained parameters: with adapters, the backward pass has no gradient of the frozen weights."""
    trained = count_parameters(model)
    return trained + 2 * (count_parameters(model, False) - trained) // 3


def count_parameters(model: torch.nn.Module, trainable: bool = True) -> int:
    return sum(p.numel() for p in model.parameters() if p.requires_grad or not trainable)


def save_weights(
    accelerator: Accelerator, model: torch.nn.Module, tokenizer: Any, args: argparse.Namespace, name: str | None = None
) -> Path:
    """Write a Hugging Face folder that the next stage (and `from_pretrained`) can load; complete or not at all.

    Weights that are not finite are refused: they are not a result.
    """
    place = weight_folder(args, name or args.save_weight)
    plain = accelerator.unwrap_model(model)
    state = whole_state(plain) if is_sharded(plain) else plain.state_dict()  # sharded: a matter for all processes
    if accelerator.is_main_process:
        if not all(bool(torch.isfinite(weight).all()) for weight in state.values()):
            raise CheckpointError(f"The weights are not finite: nothing is written to {place}.")
        place.parent.mkdir(parents=True, exist_ok=True)
        for left_over in place.parent.glob(f".{place.name}.tmp-*"):  # of a run that was killed
            shutil.rmtree(left_over, ignore_errors=True)
        made = Path(tempfile.mkdtemp(prefix=f".{place.name}.tmp-", dir=place.parent))
        made.chmod(0o755)
        try:
            plain.save_pretrained(str(made), state_dict=merged_state(plain, state), safe_serialization=True)
            save_adapters(plain, state, made / "adapter")
            if tokenizer is not None:
                tokenizer.save_pretrained(str(made))
            put_in_place(made, place)
        except (OSError, SafetensorError) as error:
            shutil.rmtree(made, ignore_errors=True)
            raise CheckpointError(f"The weights cannot be written to {place}: {error}") from error
    accelerator.wait_for_everyone()
    return place
