"""The loop of the stages with one model and one loss: pretrain, midtrain, SFT and DPO. PPO has its own in train_ppo.py.

A stage brings its data and its objective. A step takes `batch_size x accumulation_steps x processes` samples and makes one update
from the mean over all of them, however they are divided: 1 x 8, 8 x 1 and two processes with 4 each are the same step.
"""

from __future__ import annotations

import argparse
import math
import sys
from typing import Any

import torch
from accelerate import Accelerator

from chat_tokens import IGNORED
from data_config import DataError, read_config
from data_mix import load_records
from data_order import batch_indices, steps_in
from faults import Faults, StepSettings
from held_out import Examiner, add_evaluation_flags
from logger import Logger, Throughput
from lora import add_adapters
from machine import leave, seed_everything, set_threads
from models import checkpoint_activations, count_parameters, save_weights, trained_work
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
from run_checkpoints import RunCheckpoints
from sharding import shard
from stopping import SkippedUpdates, Stopper

CONSOLE = [
    ("loss", "loss", "{:.6f}"),
    ("eval_loss", "eval_loss", "{:.4f}"),
    ("grad_norm", "grad_norm", "{:.4f}"),
    ("lr", "lr", "{:.2e}"),
    ("tokens/s", "tokens_per_second", "{:.0f}"),
    ("MFU", "mfu_percent", "{:.2f}%"),
]


def add_stage_flags(parser: argparse.ArgumentParser, writes: bool = True, **defaults: Any) -> None:
    """Add the flags of these stages and set a stage's defaults; `writes`: its model can answer prompts."""
    parser.add_argument("--eval_interval", type=int, default=50, help="steps between evaluations on held-out samples; 0: never")
    parser.add_argument("--eval_samples", type=int, default=64, help="number of held-out samples, at most a tenth of the data")
    if writes:
        add_evaluation_flags(parser)
    parser.set_defaults(**defaults)


def stage_records(args: argparse.Namespace, stages: tuple[str, ...]) -> list[dict[str, Any]]:
    """The records that --data_config names, for a config that is of one of these stages."""
    config = read_config(args.data_config)
    if config.stage not in stages:
        raise DataError(f"--data_config {config.path} is for the stage {config.stage}; this one takes {' or '.join(stages)}.")
    return load_records(config, args.use_prepared)


class LanguageModelling:
    """Cross-entropy of the next token, as the mean over all tokens that have a label."""

    shown: tuple[tuple[str, str, str], ...] = (("accuracy", "token_accuracy", "{:.3f}"),)

    def units(self, batch: dict[str, torch.Tensor]) -> int:
        return int((batch["labels"][:, 1:] != IGNORED).sum())

    def __call__(self, model: Any, batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Sums over the batch, `loss` among them."""
        logits = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], use_cache=False).logits[:, :-1]
        labels = batch["labels"][:, 1:]
        learnt = labels != IGNORED
        logp = torch.log_softmax(logits[learnt].float(), dim=-1)  # only where something is learnt
        target = labels[learnt]
        loss = -logp.gather(1, target[:, None]).sum()
        with torch.no_grad():
            entropy = -(logp.exp() * logp).sum()
            right = (logp.argmax(-1) == target).sum()
        return {"loss": loss, "entropy": entropy, "token_accuracy": right}

    def metrics(self, means: dict[str, float]) -> dict[str, float]:
        return means | {"perplexity": math.exp(min(means["loss"], 700.0)) if math.isfinite(means["loss"]) else means["loss"]}


def train(args: argparse.Namespace, accelerator: Accelerator, model: Any, tokenizer: Any, data: Any, objective: Any) -> int:
    """Train, and return the exit status: 0 if the run was completed."""
    # 1. Held-out samples are never trained on; the order of the rest depends on the seed and the step.
    rank, world = accelerator.process_index, accelerator.num_processes
    held = min(args.eval_samples, len(data) // 10) if args.eval_interval else 0
    size = len(data) - held
    per_rank = args.batch_size * args.accumulation_steps
    per_epoch, total = steps_in(size, per_rank * world, args.epochs, args.max_steps)
    faults = Faults(args.inject, allowed=("lr", "nan_loss", "slow"))

    # 2. Optimizer and resuming, before accelerate wraps the models.
    threads = set_threads(args, accelerator.device, count_parameters(model, False))
    checkpoint_activations(args, add_adapters(args, model))
    if args.fsdp:
        shard(model, accelerator)
    if args.compile:
        model.compile(dynamic=True)
    optimizer = make_optimizer(model, args.learning_rate, args.weight_decay, kind=args.optimizer)
    checkpoints = RunCheckpoints(args, accelerator, per_rank * world, data)
    state = checkpoints.resume({"model": model}, {"model": optimizer})
    start = state["step"]
    flops = flops_per_token(trained_work(model))
    if not args.fsdp:
        model, optimizer = accelerator.prepare(model, optimizer)
    optimizer = plain_optimizer(optimizer)
    model.train()

    logger = Logger(
        args, accelerator, [CONSOLE[0], *objective.shown, *CONSOLE[1:]], per_epoch, total,
        resume_step=start if args.from_resume else None, monitor_state=state.get("monitor"),
    )  # fmt: skip
    throughput = Throughput(accelerator.device, per_epoch, total, done=start)
    throughput.tokens = state.get("tokens", 0)
    stopper, skipped = Stopper(), SkippedUpdates(args.max_skipped_updates)
    logger.say(
        f"{args.stage}: {count_parameters(model):,} parameters, {size} samples ({held} held out), "
        f"{total} steps of {per_rank * world}"
    )
    for sentence in (threads, *checkpoints.said):
        logger.say(sentence)

    examiner = Examiner(args, accelerator, tokenizer)
    if not start:
        examiner.before(model, logger)

    # 3. The steps.
    ended, done = "", start
    for step in range(start, total):
        seed_everything(args.seed, step, rank)
        with throughput.step():
            settings = faults(StepSettings(step + 1, learning_rate_at(step, total, args, args.learning_rate)))
            notes = list(settings.notes)
            set_learning_rate(optimizer, settings.learning_rate)
            mine = batch_indices(size, per_rank * world, step, args.seed)[rank::world]
            passes = [
                to_device(collated(data, mine[at : at + args.batch_size]), accelerator)
                for at in range(0, per_rank, args.batch_size)
            ]
            counts = [objective.units(batch) for batch in passes]
            tokens = sum(int(batch["attention_mask"].sum()) for batch in passes)
            cells = sum(batch["attention_mask"].numel() for batch in passes)
            units, tokens, cells = reduced(accelerator, [sum(counts), tokens, cells])
            sums: dict[str, torch.Tensor] = {}
            for batch in passes:
                with accelerator.accumulate(model):  # processes exchange gradients at the last pass only
                    with accelerator.autocast():
                        found_here = objective(model, batch)
                    loss = found_here["loss"] * settings.loss_factor / max(units, 1.0)
                    # accelerate divides by the passes and averages over the processes: both are undone, the mean is ours
                    accelerator.backward(loss * args.accumulation_steps * world)
                for key, value in found_here.items():
                    sums[key] = sums.get(key, 0.0) + value.detach().float()
            norm = clip_gradients(accelerator, optimizer, model.parameters(), args.grad_clip)

            # 4. A step whose gradients are not finite would destroy the weights, so it is skipped.
            finite = all_finite(norm)
            skipped.add(finite)
            if not finite:
                notes.append("the gradients are not finite; the step was skipped")
            if finite or accelerator.scaler is not None:  # a loss scaler skips such a step itself and adapts
                step_optimizers(accelerator, [optimizer])
            optimizer.zero_grad()

        # 5. The numbers, of all processes together.
        totals = dict(zip(sums, reduced(accelerator, [float(value) for value in sums.values()]), strict=True))
        means = {key: value / max(units, 1.0) * (settings.loss_factor if key == "loss" else 1.0) for key, value in totals.items()}
        metrics = objective.metrics(means) | {
            "grad_norm": norm,
            "lr": settings.learning_rate,
            "padding_frac": 1.0 - tokens / max(cells, 1.0),
        }
        metrics |= throughput.metrics(int(tokens), per_rank * world)
        metrics["num_tokens"] = metrics.pop("num_tokens_generated")  # seen, not generated
        mfu = calculate_mfu(flops, metrics["tokens_per_second"], accelerator.device, world)
        metrics |= {} if mfu is None else {"mfu_percent": mfu}
        done, last = step + 1, step + 1 == total
        if held and (last or done % args.eval_interval == 0):
            metrics |= evaluate(model, data, range(size, size + held), objective, args.batch_size, accelerator)
        held_out, asked = examiner.after(done, total, model, logger)
        logger.log(done, metrics | held_out, notes, {"samples": per_rank * world, "tokens_in": int(tokens)}, asked)

        # 6. Reasons to stop early, with a checkpoint in any case.
        if stopper.requested(accelerator, also=logger.stop is not None):
            ended = "stopped by a signal" if stopper.signal else "the monitor confirmed a failure"
        elif not finite and args.on_nonfinite == "stop":
            ended = "the gradients are not finite"
        else:
            ended = skipped.dead or (skipped.nothing_learnt if last else "")
        if ended or last or (args.save_interval and done % args.save_interval == 0):
            kept = {"tokens": throughput.tokens, "monitor": logger.state_dict()}
            models = {"model": accelerator.unwrap_model(model)}
            checkpoints.save(done, models, {"model": optimizer}, kept, logger.say)
        if ended:
            break

    # 7. The weights for the next stage. A run that was stopped leaves only its checkpoint.
    if ended:
        logger.say(f"stopped after step {done}: {ended}. {checkpoints.way_back}")
        if logger.stop is not None:
            logger.say(str(logger.stop))
    else:
        place = save_weights(accelerator, model, tokenizer, args)
        logger.say(f"{args.stage}: weights in {place}")
    logger.close()
    stopper.close()
    leave(accelerator)
    return stopper.exit_code or (1 if ended else 0)


@torch.no_grad()
def evaluate(model: Any, data: Any, places: range, objective: Any, batch_size: int, accelerator: Accelerator) -> dict[str, float]:
    """The objective's metrics on held-out samples, by their names with `eval_` before them."""
    model.eval()
    sums: dict[str, float] = {}
    units = 0
    for at in range(places.start, places.stop, batch_size):
        batch = to_device(collated(data, range(at, min(at + batch_size, places.stop))), accelerator)
        with accelerator.autocast():
            found = objective(model, batch)
        units += objective.units(batch)
        for key, value in found.items():
            sums[key] = sums.get(key, 0.0) + float(value)
    model.train()
    means = {key: value / max(units, 1) for key, value in sums.items()}
    return {f"eval_{key}": value for key, value in objective.metrics(means).items()}


def collated(data: Any, places: Any) -> dict[str, torch.Tensor]:
    return data.collate([data[place] for place in places])


def to_device(batch: dict[str, torch.Tensor], accelerator: Accelerator) -> dict[str, torch.Tensor]:
    return {key: value.to(accelerator.device, non_blocking=True) for key, value in batch.items()}


def reduced(accelerator: Accelerator, values: list[float]) -> list[float]:
    """The sums of these numbers over all processes."""
    if accelerator.num_processes == 1:
        return [float(value) for value in values]
    together = torch.tensor(values, dtype=torch.float64 if accelerator.device.type == "cpu" else torch.float32)
    return accelerator.reduce(together.to(accelerator.device), "sum").tolist()


if __name__ == "__main__":
    sys.exit("This file is not a script: start one of the stages, such as trainer/train_pretrain.py.")
