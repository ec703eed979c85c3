"""What the five stages share: arguments, seeding, models, the learning rate, the data order, checkpoints, signals.

The Logger with its console line, trackers and monitor is in logger.py, the writing of checkpoints in checkpoint.py; both
are to be had from here. Distribution, mixed precision and gradient accumulation are accelerate's.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import json
import math
import os
import random
import signal
import sys
import tempfile
from collections.abc import Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from accelerate import Accelerator
from accelerate.utils import DistributedType, GradientAccumulationPlugin

from checkpoint import (
    CheckpointError,
    checked_name,
    find_checkpoint,
    heal,
    load_checkpoint,
    put_in_place,
    save_checkpoint,
)
from logger import Logger, Throughput
from rldk.functional.throughput import calculate_mfu, flops_per_token

__all__ = [
    "Accelerator", "CheckpointError", "Logger", "Stopper", "Throughput", "all_finite", "batch_indices", "calculate_mfu",
    "checkpoint_root", "clip_gradients", "common_parser", "count_parameters", "disable_dropout", "find_checkpoint",
    "flops_per_token", "learning_rate_at", "load_checkpoint", "load_model", "load_reward", "load_tokenizer", "main_guard",
    "make_accelerator", "make_optimizer", "parse_args", "plain_optimizer", "save_checkpoint", "save_weights",
    "seed_everything", "set_learning_rate", "steps_in", "weight_folder",
]  # fmt: skip


# 1. Arguments: one interface for all stages, from the command line and from a YAML file.


def common_parser(stage: str, description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=description, allow_abbrev=False, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.set_defaults(stage=stage)
    add = parser.add_argument
    add("--config", metavar="FILE", help="YAML file of these flags by name; the command line comes before it")

    add("--data_config", metavar="FILE", help="YAML file that names the data sources and their mixture")
    add("--use_prepared", action="store_true", help="take the mixed file that prepare_data.py wrote, without mixing again")
    add("--max_seq_len", type=_positive, default=256, help="longest sequence in tokens")

    add("--from_weight", metavar="NAME", default="none", help="start from the weights of this name under --save_dir")
    add("--model_path", metavar="FOLDER", help="start from a Hugging Face checkpoint in this folder")
    add("--model_config", metavar="FILE", help="build a new model from this YAML or JSON of a Hugging Face config")
    add("--tokenizer", metavar="FOLDER", help="folder of the tokenizer; by default the folder of the weights")

    add("--save_dir", metavar="FOLDER", default="out", help="where weights, checkpoints and logs go")
    add("--save_weight", metavar="NAME", default=stage, help="name of the weights that this stage writes under --save_dir")
    add("--run_id", metavar="NAME", help="name of the run in logs and trackers; by default the stage's")
    add("--save_interval", type=int, default=100, help="steps between checkpoints; 0 writes one only at the end or when stopped")
    add("--keep_checkpoints", type=_positive, default=2, help="how many checkpoints of a run are kept")
    add(
        "--from_resume",
        metavar="FOLDER",
        nargs="?",
        const="auto",
        help="go on from the newest checkpoint of this run, or from this one",
    )

    add("--epochs", type=_positive, default=1, help="how often the data are gone through")
    add("--max_steps", type=_positive, help="stop after this many steps, whatever --epochs says")
    add("--batch_size", type=_positive, default=8, help="samples of one process in one pass")
    add("--accumulation_steps", type=_positive, default=1, help="passes whose gradients make one step")
    add("--learning_rate", type=_not_negative, default=1e-4, help="peak learning rate")
    add(
        "--lr_schedule",
        choices=("constant", "linear", "cosine"),
        default="constant",
        help="how the learning rate falls after the warm-up",
    )
    add("--warmup_steps", type=int, default=0, help="steps over which the learning rate rises to its peak")
    add("--weight_decay", type=_not_negative, default=0.0, help="weight decay of AdamW")
    add("--grad_clip", type=_not_negative, default=1.0, help="largest gradient norm; 0 does not clip")
    add("--on_nonfinite", choices=("skip", "stop"), default="skip", help="what to do with a step whose gradients are not finite")

    add("--seed", type=int, default=42, help="seed of everything that is random")
    add("--device", default="cpu", help="cpu, cuda or cuda:N")
    add(
        "--dtype",
        choices=("float32", "bfloat16", "float16"),
        default="float32",
        help="precision of the passes; weights stay float32",
    )
    add("--num_threads", type=int, default=0, help="CPU threads of torch; 0 leaves them as they are")

    add("--log_interval", type=_positive, default=10, help="steps between two console lines; the logs have every step")
    add("--use_wandb", action="store_true", help="log to Weights & Biases; the same as --report_to wandb")
    add("--wandb_project", default="rldk", help="project in W&B, trackio and MLflow")
    add("--report_to", default="", metavar="NAMES", help="trackers by comma: wandb, tensorboard, mlflow, trackio")
    add("--no_rldk", action="store_true", help="no event log and no monitor")
    add(
        "--stop_on",
        choices=("none", "warning", "critical"),
        default="none",
        help="stop with a checkpoint when the monitor confirms one",
    )
    add("--inject", metavar="FAULT[@STEP]", action="append", default=[], help="break the run on purpose, from this step on")
    return parser


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected a number of at least 1, got {text}")
    return value


def _not_negative(text: str) -> float:
    value = float(text)
    if not value >= 0.0 or math.isinf(value):
        raise argparse.ArgumentTypeError(f"expected a number of at least 0, got {text}")
    return value


def parse_args(parser: argparse.ArgumentParser, argv: list[str] | None = None) -> argparse.Namespace:
    """Read the command line; what `--config` says is put before it, so that both go through the same checks."""
    argv = sys.argv[1:] if argv is None else argv
    finder = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    finder.add_argument("--config")
    path = finder.parse_known_args(argv)[0].config
    args = parser.parse_args([*_from_file(parser, path), *argv])
    try:
        args.run_id = checked_name(args.run_id or args.save_weight, "--run_id")
        checked_name(args.save_weight, "--save_weight")
    except CheckpointError as error:
        parser.error(str(error))
    names = [name.strip() for name in args.report_to.split(",") if name.strip() not in ("", "none")]
    args.report_to = list(dict.fromkeys([*names, *(["wandb"] if args.use_wandb else [])]))
    return args


def _from_file(parser: argparse.ArgumentParser, path: str | None) -> list[str]:
    """The flags of a YAML file as words of a command line."""
    if path is None:
        return []
    try:
        given = yaml.safe_load(Path(path).read_text()) or {}
    except (OSError, yaml.YAMLError) as error:
        parser.error(f"--config {path} cannot be read: {error}")
    if not isinstance(given, dict):
        parser.error(f"--config {path}: expected flags by name (`batch_size: 8`), got {type(given).__name__}.")
    flags = {action.dest: action for action in parser._actions if action.option_strings and action.dest not in ("help", "config")}
    words: list[str] = []
    for key, value in given.items():
        if key not in flags:
            near = difflib.get_close_matches(str(key), flags, n=1)
            parser.error(f"--config {path}: there is no flag {key!r}." + (f" Did you mean {near[0]!r}?" if near else ""))
        if flags[key].nargs == 0:  # a switch
            if not isinstance(value, bool):
                parser.error(f"--config {path}: expected {key!r} to be true or false, got {value!r}.")
            words += [f"--{key}"] if value else []
        elif isinstance(value, list) and not isinstance(flags[key], argparse._AppendAction):
            words.append(f"--{key}={','.join(map(str, value))}")
        elif value is not None:
            words += [f"--{key}={one}" for one in (value if isinstance(value, list) else [value])]
    return words


@contextmanager
def main_guard():
    """At the door of a script: an error that is the user's to mend is one sentence, and no traceback."""
    try:
        yield
    except (CheckpointError, FileNotFoundError, ValueError) as error:
        if os.environ.get("RLDK_TRACEBACK"):
            raise
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None


# 2. The machine: accelerate, seeds, threads.


def make_accelerator(args: argparse.Namespace, accumulation_steps: int | None = None) -> Accelerator:
    """One process or many, on CPU or GPU; `torchrun` and `accelerate launch` decide how many."""
    kind = torch.device(args.device).type
    if kind == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"--device {args.device}: torch sees no GPU here. Use --device cpu.")
    if kind == "cuda" and ":" in args.device and "LOCAL_RANK" not in os.environ:
        torch.cuda.set_device(args.device)
    if args.num_threads:
        torch.set_num_threads(args.num_threads)
    precision = {"float32": "no", "bfloat16": "bf16", "float16": "fp16"}[args.dtype]
    plugin = GradientAccumulationPlugin(num_steps=accumulation_steps or args.accumulation_steps, sync_with_dataloader=False)
    accelerator = Accelerator(cpu=kind == "cpu", mixed_precision=precision, gradient_accumulation_plugin=plugin)
    seed_everything(args.seed)
    return accelerator


def seed_everything(seed: int, step: int = 0, rank: int = 0) -> None:
    """Seed Python, numpy and torch for one step of one process.

    Called at the beginning of every step, it makes all randomness a function of seed, step and rank: a run that is
    resumed needs no stored state to go on as if it had not been stopped.
    """
    mixed = int(np.random.SeedSequence((seed & 0xFFFFFFFF, step, rank)).generate_state(1)[0])
    random.seed(mixed)
    np.random.seed(mixed)
    torch.manual_seed(mixed)


def batch_indices(n: int, global_batch: int, step: int, seed: int) -> list[int]:
    """The records of a step (from 0) for all processes together: each epoch is a permutation of its own.

    A function of the step, so that the data position needs no place in a checkpoint. The last, smaller batch of an epoch
    is filled from the next one.
    """
    first = step * global_batch
    found: list[int] = []
    while len(found) < global_batch:
        epoch, offset = divmod(first + len(found), n)
        found += _order(n, seed, epoch)[offset : offset + global_batch - len(found)]
    return found


_ORDERS: dict[tuple[int, int, int], list[int]] = {}


def _order(n: int, seed: int, epoch: int) -> list[int]:
    key = (n, seed, epoch)
    if key not in _ORDERS:
        if len(_ORDERS) > 1:
            _ORDERS.pop(next(iter(_ORDERS)))
        _ORDERS[key] = np.random.default_rng((seed & 0xFFFFFFFF, 7919, epoch)).permutation(n).tolist()
    return _ORDERS[key]


def steps_in(n: int, global_batch: int, epochs: int, max_steps: int | None) -> tuple[int, int]:
    """How many steps an epoch has, and how many will be made in all."""
    if n < 1:
        raise ValueError("The data set is empty: nothing to train on.")
    each = max(1, math.ceil(n / global_batch))
    return each, min(each * epochs, max_steps) if max_steps else each * epochs


# 3. Models, tokenizers, rewards.


def weight_folder(args: argparse.Namespace, name: str) -> Path:
    """The folder of the weights `name` under --save_dir."""
    return Path(args.save_dir) / checked_name(name, "--from_weight")


def model_source(args: argparse.Namespace) -> Path | None:
    """The folder to start from, or `None` where a model is to be built."""
    if args.from_weight != "none":
        folder = heal(weight_folder(args, args.from_weight))
        if not (folder / "config.json").is_file():
            there = sorted(path.parent.name for path in Path(args.save_dir).glob("*/config.json"))
            raise CheckpointError(
                f"--from_weight {args.from_weight}: no weights in {folder}. There are: {', '.join(there) or 'none'}. "
                "Run the stage before this one, or give --model_path."
            )
        return folder
    if args.model_path:
        folder = Path(args.model_path)
        if not (folder / "config.json").is_file():
            raise CheckpointError(f"--model_path {folder}: no config.json there. Give the folder of a Hugging Face checkpoint.")
        return folder
    return None


@contextmanager
def _quiet_transformers():
    """Without its progress bars and its report on heads that are new by intent."""
    import transformers

    before = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers.logging.set_verbosity(before)


def load_tokenizer(args: argparse.Namespace) -> Any:
    from transformers import AutoTokenizer

    folder = args.tokenizer or model_source(args)
    if folder is None or not Path(folder).is_dir():
        raise CheckpointError(f"No tokenizer: {folder or 'neither --tokenizer nor weights were given'}. Give --tokenizer FOLDER.")
    tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    tokenizer.padding_side = "left"
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
    source = folder or model_source(args)
    with _quiet_transformers():
        if source is not None:
            model = auto.from_pretrained(str(source), local_files_only=True, dtype=torch.float32, use_safetensors=True, **heads)
        else:
            model = auto.from_config(_new_config(args, tokenizer, heads), dtype=torch.float32)
    if tokenizer is not None:
        model.config.pad_token_id = tokenizer.pad_token_id
    return model


def _new_config(args: argparse.Namespace, tokenizer: Any, more: dict[str, Any]) -> Any:
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


def load_reward(name: str, folder_allowed: bool = True) -> Any:
    """What --reward means: `module:function`, or the folder of a trained sequence classifier (given back as a path)."""
    if folder_allowed and (Path(name) / "config.json").is_file():
        return Path(name)
    module, colon, function = name.partition(":")
    if not colon or not module or not function:
        raise ValueError(f"--reward {name}: neither a folder with a sequence classifier nor `module:function`.")
    sys.path[:0] = [path for path in (str(Path.cwd()),) if path not in sys.path]
    try:
        return getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"--reward {name} cannot be imported: {error}") from error


def disable_dropout(model: Any) -> Any:
    """Without dropout, so that the policy that is trained is the one that was sampled from."""
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    if getattr(model.config, "attention_dropout", 0.0):
        model.config.attention_dropout = 0.0
        for module in model.modules():
            if hasattr(module, "attention_dropout"):
                module.attention_dropout = 0.0
    return model


def count_parameters(model: torch.nn.Module, trainable: bool = True) -> int:
    return sum(p.numel() for p in model.parameters() if p.requires_grad or not trainable)


# 4. Optimizer, learning rate, gradients.


def make_optimizer(
    model: torch.nn.Module, learning_rate: float, weight_decay: float = 0.0, betas=(0.9, 0.999)
) -> torch.optim.AdamW:
    """AdamW in one fused pass; norms and biases are not decayed."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.dim() >= 2], "weight_decay": weight_decay},
        {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW([group for group in groups if group["params"]], lr=learning_rate, betas=betas, fused=True)


def learning_rate_at(step: int, total: int, args: argparse.Namespace, peak: float) -> float:
    """The learning rate of a step (from 0): up to the peak in --warmup_steps, then as --lr_schedule says."""
    if step < args.warmup_steps:
        return peak * (step + 1) / args.warmup_steps
    done = (step - args.warmup_steps) / max(1, total - args.warmup_steps)
    if args.lr_schedule == "linear":
        return peak * max(0.0, 1.0 - done)
    if args.lr_schedule == "cosine":
        return peak * (0.1 + 0.45 * (1.0 + math.cos(math.pi * min(1.0, done))))  # down to a tenth
    return peak


def set_learning_rate(optimizer: torch.optim.Optimizer, value: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = value


def has_whole_gradients(accelerator: Accelerator) -> bool:
    """Whether a process has all gradients and its optimizer is torch's own: then accelerate has nothing to add to either.

    What it would do is not free: at each update it scans the gradients for sharded ones, and the disk for optional packages.
    """
    return accelerator.distributed_type in (DistributedType.NO, DistributedType.MULTI_CPU, DistributedType.MULTI_GPU)


def clip_gradients(accelerator: Accelerator, parameters: Iterable[torch.nn.Parameter], largest: float) -> float:
    """The gradient norm before clipping; with 0 nothing is clipped. Non-finite where any gradient is."""
    parameters = list(parameters)
    if not has_whole_gradients(accelerator):
        return float(accelerator.clip_grad_norm_(parameters, largest or math.inf))
    accelerator.unscale_gradients()
    norm = torch.nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])
    if largest:
        torch.nn.utils.clip_grads_with_norm_(parameters, largest, norm)
    return float(norm)


def plain_optimizer(accelerator: Accelerator, optimizer: Any) -> Any:
    """The optimizer that steps: torch's own, unless a loss scaler or sharding needs accelerate's around it.

    It is for a loop that steps only after the last pass of an update: whether that is now, it does not ask.
    """
    return optimizer.optimizer if accelerator.scaler is None and has_whole_gradients(accelerator) else optimizer


def all_finite(*values: float) -> bool:
    return all(math.isfinite(value) for value in values)


# 5. Weights, checkpoints, signals.


def checkpoint_root(args: argparse.Namespace) -> Path:
    return Path(args.save_dir) / "checkpoints" / args.run_id


def save_weights(
    accelerator: Accelerator, model: torch.nn.Module, tokenizer: Any, args: argparse.Namespace, name: str | None = None
) -> Path:
    """Write a Hugging Face folder that the next stage (and `from_pretrained`) takes; whole or not at all."""
    place = weight_folder(args, name or args.save_weight)
    state = accelerator.get_state_dict(model)  # gathers sharded weights: a matter for all processes
    if accelerator.is_main_process:
        place.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f".{place.name}.tmp-", dir=place.parent))
        made.chmod(0o755)
        accelerator.unwrap_model(model).save_pretrained(str(made), state_dict=state, safe_serialization=True)
        if tokenizer is not None:
            tokenizer.save_pretrained(str(made))
        put_in_place(made, place)
    accelerator.wait_for_everyone()
    return place


class Stopper:
    """SIGTERM and Ctrl-C end the run after the step that is under way, with a checkpoint; a second one ends it at once."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self.before = {number: signal.signal(number, self._note) for number in (signal.SIGTERM, signal.SIGINT)}

    def close(self) -> None:
        """Leave signals to those who had them before."""
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def _note(self, number: int, _frame: object) -> None:
        if self.signal is not None:
            raise KeyboardInterrupt
        self.signal = number

    def requested(self, accelerator: Accelerator, also: bool = False) -> bool:
        """Whether any process was told to stop, or has a reason of its own (`also`): all must leave at the same step."""
        told = float(self.signal or 0), float(also)
        if accelerator.num_processes > 1:
            told = tuple(accelerator.reduce(torch.tensor(told, device=accelerator.device), "sum").tolist())
            if told[0] and self.signal is None:
                self.signal = signal.SIGTERM
        return any(told)

    @property
    def exit_code(self) -> int:
        return 0 if self.signal is None else 128 + self.signal
