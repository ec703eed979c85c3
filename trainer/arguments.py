"""The flags that all stages share, from the command line and from a YAML file, and how their errors are shown."""

from __future__ import annotations

import argparse
import math
import os
import sys
from contextlib import contextmanager
from pathlib import Path

import yaml

from checkpoint import CheckpointError, checked_name
from rldk.core.text import did_you_mean


class HelpFormatter(argparse.ArgumentDefaultsHelpFormatter):
    """Shows a default only if there is one."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        plain = action.default is False or action.default in (None, "", [])
        return action.help if plain else super()._get_help_string(action)


def common_parser(stage: str, description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=description, allow_abbrev=False, formatter_class=HelpFormatter
    )
    parser.set_defaults(stage=stage)
    add = parser.add_argument
    add("--config", metavar="FILE", help="YAML file with these flags by name; the command line takes precedence")

    add("--data_config", metavar="FILE", help="YAML file with the data sources and their mixture")
    add("--use_prepared", action="store_true", help="use the mixed file that prepare_data.py wrote instead of mixing again")
    add("--max_seq_len", type=_positive, default=256, help="longest sequence in tokens")

    add("--from_weight", metavar="NAME", default="none", help="start from the weights of this name under --save_dir")
    add(
        "--model_path",
        metavar="MODEL",
        help="start from a Hugging Face checkpoint: a folder, or a hub name (owner/name@revision)",
    )
    add("--model_config", metavar="FILE", help="build a new model from this Hugging Face config (YAML or JSON)")
    add("--tokenizer", metavar="TOKENIZER", help="folder or hub name of the tokenizer; default: the one of the weights")

    add("--save_dir", metavar="FOLDER", default="out", help="folder for weights, checkpoints and logs")
    add("--save_weight", metavar="NAME", default=stage, help="name under which this stage saves its weights in --save_dir")
    add("--run_id", metavar="NAME", help="name of the run in logs and trackers; default: --save_weight")
    add("--save_interval", type=int, default=100, help="steps between checkpoints; 0: only at the end or when stopped")
    add("--keep_checkpoints", type=_positive, default=2, help="number of checkpoints to keep")
    add(
        "--from_resume",
        metavar="FOLDER",
        nargs="?",
        const="auto",
        help="resume from this checkpoint; without FOLDER, from the newest one of this run",
    )

    add("--resume_anyway", action="store_true", help="resume even if seed, batch size, data or other settings have changed")

    add("--epochs", type=_positive, default=1, help="number of passes over the data")
    add("--max_steps", type=_positive, help="stop after this many steps, regardless of --epochs")
    add("--batch_size", type=_positive, default=8, help="samples per process in one pass")
    add("--accumulation_steps", type=_positive, default=1, help="number of passes whose gradients are added up for one step")
    add("--learning_rate", type=_not_negative, default=1e-4, help="peak learning rate")
    add(
        "--lr_schedule",
        choices=("constant", "linear", "cosine"),
        default="constant",
        help="schedule of the learning rate after the warm-up",
    )
    add("--warmup_steps", type=int, default=0, help="steps over which the learning rate rises to its peak")
    add("--weight_decay", type=_not_negative, default=0.0, help="weight decay of AdamW")
    add("--grad_clip", type=_not_negative, default=1.0, help="clip the gradient norm at this value; 0: no clipping")
    add("--on_nonfinite", choices=("skip", "stop"), default="skip", help="what to do when the gradients of a step are not finite")

    add(
        "--max_skipped_updates",
        type=int,
        default=20,
        help="end the run with status 1 after this many non-finite updates in a row; 0: never",
    )

    add("--seed", type=int, default=42, help="random seed")
    add("--device", default="cpu", help="cpu, cuda or cuda:N")
    add(
        "--dtype",
        choices=("float32", "bfloat16", "float16"),
        default="float32",
        help="precision of the computation; see --weight_dtype for the weights",
    )
    add("--num_threads", type=int, default=0, help="CPU threads for torch; 0: chosen by the size of the model")
    add("--weight_dtype", choices=("float32", "bfloat16"), default="float32", help="precision of the weights in memory")
    add(
        "--attention",
        help="attention implementation: eager, sdpa or flash_attention_2; default: what transformers chooses",
    )
    add(
        "--gradient_checkpointing",
        action="store_true",
        help="recompute activations in the backward pass: less memory, more time",
    )

    add("--compile", action="store_true", help="use torch.compile for the training passes; needs a C++ compiler")
    add(
        "--optimizer",
        choices=("adamw", "adamw_8bit"),
        default="adamw",
        help="adamw_8bit stores its moments in 8 bits (bitsandbytes)",
    )
    add("--lora_rank", type=int, default=0, help="train LoRA adapters of this rank (peft); 0: train the weights")
    add("--lora_alpha", type=float, help="scale of the adapters; default: twice the rank")
    add("--lora_targets", default="all-linear", help="layers with adapters: all-linear, or names separated by commas")
    add("--fsdp", action="store_true", help="shard weights, gradients and optimizer state over the processes; not for PPO")

    add("--log_interval", type=_positive, default=10, help="steps between two lines on the console; the logs contain every step")
    add("--use_wandb", action="store_true", help="log to Weights & Biases; the same as --report_to wandb")
    add("--wandb_project", default="rldk", help="project in W&B, trackio and MLflow")
    add("--report_to", default="", metavar="NAMES", help="trackers, separated by commas: wandb, tensorboard, mlflow, trackio")
    add("--no_rldk", action="store_true", help="write no event log and do not monitor the run")
    add(
        "--stop_on",
        choices=("none", "warning", "critical"),
        default="none",
        help="save a checkpoint and stop when the monitor confirms an anomaly of this severity",
    )
    add(
        "--plan",
        metavar="DEVICES",
        type=_positive,
        nargs="?",
        const=1,
        help="do not train; print the memory needed per device if this run used DEVICES devices (default: 1)",
    )
    add("--json", action="store_true", help="with --plan, print JSON")
    add("--inject", metavar="FAULT[@STEP]", action="append", default=[], help="inject a fault from this step on")
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
    """Read the command line. The flags of `--config` are put before it, so that both are checked in the same way."""
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
    if args.fsdp and (args.compile or args.dtype == "float16" or args.optimizer != "adamw"):
        parser.error("--fsdp works with float32 and bfloat16 and with the optimizer adamw, and not with --compile.")
    if args.lora_rank < 0 or (args.lora_alpha is not None and not args.lora_alpha > 0):
        parser.error("expected --lora_rank of at least 0, and --lora_alpha above 0")
    names = [name.strip() for name in args.report_to.split(",") if name.strip() not in ("", "none")]
    args.report_to = list(dict.fromkeys([*names, *(["wandb"] if args.use_wandb else [])]))
    return args


def _from_file(parser: argparse.ArgumentParser, path: str | None) -> list[str]:
    """The flags of a YAML file as command-line arguments."""
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
            parser.error(f"--config {path}: there is no flag {key!r}.{did_you_mean(key, flags, most=1)}")
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
    """At the entry of a script: an error that the user can fix is one sentence without a traceback."""
    try:
        yield
    except (CheckpointError, FileNotFoundError, ValueError) as error:
        if os.environ.get("RLDK_TRACEBACK"):
            raise
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
