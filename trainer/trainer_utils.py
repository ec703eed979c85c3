# ruff: noqa: E402
"""What the stages share, under one name; the modules themselves are named after what they do.

`from trainer.trainer_utils import calculate_mfu` works from the project's root, too.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [folder for folder in (str(Path(__file__).resolve().parent),) if folder not in sys.path]

from arguments import common_parser, main_guard, parse_args
from checkpoint import CheckpointError, checkpoint_root, find_checkpoint, load_checkpoint, save_checkpoint
from data_order import batch_indices, steps_in
from logger import Logger, Throughput
from machine import make_accelerator, seed_everything
from models import count_parameters, disable_dropout, load_model, load_tokenizer, save_weights, weight_folder
from optimization import (
    all_finite,
    clip_gradients,
    learning_rate_at,
    make_optimizer,
    plain_optimizer,
    set_learning_rate,
    step_optimizers,
)
from rldk.functional.throughput import calculate_mfu, flops_per_token
from scoring import load_reward
from stopping import SkippedUpdates, Stopper, weights_are_finite

__all__ = [
    "CheckpointError", "Logger", "SkippedUpdates", "Stopper", "Throughput", "all_finite", "batch_indices", "calculate_mfu",
    "checkpoint_root", "clip_gradients", "common_parser", "count_parameters", "disable_dropout", "find_checkpoint",
    "flops_per_token", "learning_rate_at", "load_checkpoint", "load_model", "load_reward", "load_tokenizer", "main_guard",
    "make_accelerator", "make_optimizer", "parse_args", "plain_optimizer", "save_checkpoint", "save_weights",
    "seed_everything", "set_learning_rate", "step_optimizers", "steps_in", "weight_folder", "weights_are_finite",
]  # fmt: skip
