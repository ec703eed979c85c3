"""How much memory a run will take, before it starts: `--plan` of every stage. The arithmetic is a table in docs/scaling.md.

Parameters are counted on a model without memory (torch's `meta` device), built from its configuration alone.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from hub import local_folder
from models import load_tokenizer, new_config, weight_folder

SIZES = {"float32": 4, "bfloat16": 2, "float16": 2}
PAIRS = ("dpo", "reward")


@dataclass(frozen=True)
class Shape:
    """The properties of a model that determine its memory."""

    parameters: int
    adapters: int  # of rank 1, on all linear layers
    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    vocabulary: int

    @property
    def head(self) -> int:
        return self.hidden // self.heads


@dataclass(frozen=True)
class Part:
    """A part of the memory, and whether FSDP divides it among the processes."""

    name: str
    size: float  # bytes
    shards: bool = False


def shape_of(config: Any, kind: str = "causal") -> Shape:
    """Count a model of this configuration without building it in memory."""
    import transformers

    auto = {"causal": transformers.AutoModelForCausalLM, "value": transformers.AutoModelForTokenClassification}[kind]
    with torch.device("meta"):
        model = auto.from_config(config)
    text = config.get_text_config()
    heads = text.num_attention_heads
    linear = [module for name, module in model.named_modules() if isinstance(module, torch.nn.Linear) and name != "lm_head"]
    return Shape(
        sum(weight.numel() for weight in model.parameters()),
        sum(one.in_features + one.out_features for one in linear),
        text.num_hidden_layers,
        text.hidden_size,
        getattr(text, "intermediate_size", None) or 4 * text.hidden_size,
        heads,
        getattr(text, "num_key_value_heads", None) or heads,
        text.vocab_size,
    )


def config_of(args: argparse.Namespace) -> Any:
    """The configuration of the model that a stage would start from; of a hub name, no weights are downloaded."""
    from transformers import AutoConfig

    if args.from_weight != "none":
        return AutoConfig.from_pretrained(str(weight_folder(args, args.from_weight)), local_files_only=True)
    if args.model_path:
        return AutoConfig.from_pretrained(
            str(local_folder(args.model_path, "--model_path", files=("*.json",))), local_files_only=True
        )
    return new_config(args, load_tokenizer(args), {})


def plan(args: argparse.Namespace, config: Any) -> list[Part]:
    """The memory of a stage by parts, in bytes, for one process that has everything."""
    shape = shape_of(config)
    weight, passes = SIZES[args.weight_dtype], SIZES[args.dtype]
    rows = args.batch_size * (2 if args.stage in PAIRS else 1)
    width = args.max_seq_len
    trained = 2 if args.stage == "ppo" and args.advantage == "gae" else 1
    each = shape.parameters * weight
    learnt = args.lora_rank * shape.adapters * weight if args.lora_rank else each
    found = [
        Part("weights", trained * (each + (learnt if args.lora_rank else 0)), shards=True),
        Part("gradients", trained * learnt, shards=True),
        Part("optimizer (two moments of AdamW)", 2 * trained * learnt, shards=True),
    ]
    if args.stage in ("ppo", "dpo") and not args.lora_rank:  # with adapters, the reference is the model without them
        found.append(Part("reference", each, shards=args.stage == "dpo"))
    if args.stage == "ppo":
        if ":" not in args.reward:
            found.append(Part("reward model, taken as large as the policy", each))
        width += args.max_new_tokens
        cache = 2 * shape.layers * shape.kv_heads * shape.head * rows * width * passes
        found.append(Part("cache of keys and values in generation", cache))
    found.append(Part("activations", _activations(args, shape, rows * width, passes) * trained))
    found.append(Part("logits", _logits(args, shape, rows, width)))
    return found


def _activations(args: argparse.Namespace, shape: Shape, tokens: int, size: int) -> float:
    """What a layer keeps for the backward pass, per token: 11 x hidden + 2 x keys and values + 4 x intermediate."""
    layer = 11 * shape.hidden + 2 * shape.kv_heads * shape.head + 4 * shape.intermediate
    if args.gradient_checkpointing:  # the inputs of all layers, and one layer at a time
        return float(tokens * size * (shape.layers * shape.hidden + layer))
    return float(tokens * size * (shape.layers * layer + 3 * shape.hidden))


def _logits(args: argparse.Namespace, shape: Shape, rows: int, width: int) -> float:
    """Logits and tensors of their size (a copy, log-probabilities, entropies, gradients): five in all, in 32 bits."""
    tokens = rows * width
    if args.stage == "ppo":
        tokens = min(args.logprob_chunk, rows * args.max_new_tokens)
    return 0.0 if args.stage == "reward" else 4.0 * 5 * tokens * shape.vocabulary


def show_plan(args: argparse.Namespace) -> int:
    """Print the plan of a stage, over --plan devices; no training."""
    config = config_of(args)
    parts, devices = plan(args, config), args.plan
    shards = args.stage != "ppo"
    on_each = {part.name: part.size / (devices if part.shards and shards else 1) for part in parts}
    total = sum(on_each.values())
    if args.json:
        print(json.dumps({"stage": args.stage, "devices": devices, "bytes": on_each, "total": total}, indent=1))
        return 0
    print(f"{args.stage}: {shape_of(config).parameters:,} parameters, batch {args.batch_size}, up to {args.max_seq_len} tokens")
    for name, size in on_each.items():
        print(f"  {name:44} {readable(size):>10}")
    sharing = "" if devices == 1 else f", sharded over {devices} devices" if shards else ", PPO does not shard"
    print(f"  {'total per device' + sharing:44} {readable(total):>10}")
    print("plus torch itself (about 0.5 GB on a CPU, 1 GB on a GPU); measured peaks are within 30 % of this")
    return 0


def readable(size: float) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            return f"{size:.1f} {unit}" if unit != "B" else f"{size:.0f} B"
        size /= 1000
    raise AssertionError


if __name__ == "__main__":
    raise SystemExit(f"Use --plan with a stage: `python {Path(__file__).with_name('train_full_sft.py')} --plan …`")
