"""Ask models held-out questions, and show how well they answer by a reward: mean and standard error, pass@k, variety, samples.

    python trainer/evaluate.py --weights out/full_sft out/ppo

Every model gets the same prompts and the same noise. From the second on, the paired difference to the one before is shown.
`--rising` ends with status 1 unless every model is better than the one before.
"""

from __future__ import annotations

import thread_policy  # isort: skip  # noqa: F401  before torch

import argparse
import json
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch

from arguments import main_guard
from data_config import DataConfig, DataError, Source, read_config
from held_out import Evaluation, HeldOut, held_out_records, standard_error
from machine import spare_threads
from models import count_parameters, load_model, open_tokenizer
from scoring import load_scorer


def get_args(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--weights", nargs="+", required=True, metavar="MODEL", help="folders or hub names; each is compared with the one before")
    add("--data_config", default="config/data/posttrain/rlaif/ppo.yaml", help="data config with `held_out` sources of prompts")
    add("--prompts", metavar="FILE", help="use the prompts of this file instead, in the format of PPO's sources")
    add(
        "--reward",
        default="rewards:helpful",
        help="`module:function`, or the folder of a sequence classifier, that scores the answers",
    )
    add("--eval_prompts", type=int, default=1000, help="maximum number of prompts")
    add("--eval_generations", type=int, default=4, help="answers per prompt; pass@k is reported for k = 1 and this number")
    add("--max_new_tokens", type=int, default=48, help="maximum length of an answer in tokens")
    add("--max_seq_len", type=int, default=256, help="maximum length of a prompt in tokens")
    add("--batch_size", type=int, default=128, help="number of answers sampled at a time")
    add("--temperature", type=float, default=1.0, help="sampling temperature; 0: always the most likely token")
    add("--pass_score", type=float, default=1.0, help="minimum score of an answer that passes, for pass@k")
    add("--show", type=int, default=3, help="number of answers to print per model; all of them are scored")
    add("--seed", type=int, default=42, help="seed of the sampling")
    add("--device", default="cpu", help="cpu, cuda or cuda:N")
    add("--rising", action="store_true", help="exit with status 1 unless every model is better than the one before it")
    add("--json", action="store_true", help="print JSON")
    args = parser.parse_args(argv)
    for name in ("eval_prompts", "eval_generations", "max_new_tokens", "batch_size"):
        if getattr(args, name) < 1:
            parser.error(f"expected --{name} of at least 1, got {getattr(args, name)}")
    if args.temperature < 0:
        parser.error(f"expected --temperature of at least 0, got {args.temperature}")
    return args


def main(argv: list[str] | None = None) -> int:
    args = get_args(argv)
    records, device = prompts_of(args), torch.device(args.device)
    found: dict[str, Evaluation] = {}
    for place in args.weights:
        tokenizer = open_tokenizer(place, "--weights")
        model = load_model(args, "causal", folder=place, tokenizer=tokenizer).to(device).eval()
        spare_threads(count_parameters(model, False))
        held_out = HeldOut(records, tokenizer, load_scorer(args, tokenizer, device), args, args.max_seq_len)
        found[place] = held_out.measure(model)
        if not args.json:
            print(f"{place}: {found[place].sentence(args.pass_score)}")
            print("\n".join(found[place].shown(args.show)))
    differences = [difference(found[one], found[other]) for one, other in pairwise(args.weights)]
    if args.json:
        print(json.dumps(report(args, found, differences), indent=1))
    else:
        for (one, other), (mean, error) in zip(pairwise(args.weights), differences, strict=True):
            print(f"{other} is better than {one} by {mean:+.3f} ± {error:.3f} (paired over prompts)")
    return 1 if args.rising and not all(mean > 0 for mean, _ in differences) else 0


def prompts_of(args: argparse.Namespace) -> list[dict[str, Any]]:
    if args.prompts is None:
        config = read_config(args.data_config)
        if not config.held_out:
            raise DataError(f"--data_config {config.path} names no `held_out` sources; give --prompts FILE.")
        return held_out_records(config)
    path = Path(args.prompts)
    kind = {".json": "json", ".txt": "text", ".parquet": "parquet"}.get(path.suffix, "jsonl")
    return held_out_records(DataConfig(path, "ppo", path, (), held_out=(Source(path.stem, path, kind),)))


def difference(before: Evaluation, after: Evaluation) -> tuple[float, float]:
    """Mean gain of the reward and its standard error, prompt by prompt."""
    gains = np.asarray(after.scores.mean(1) - before.scores.mean(1))
    return float(gains.mean()), standard_error(gains)


def report(args: argparse.Namespace, found: dict[str, Evaluation], differences: list[tuple[float, float]]) -> dict[str, Any]:
    models = [
        {"weights": place, **one.metrics(args.pass_score), "prompts": len(one.prompts), "samples": one.samples(args.show)}
        for place, one in found.items()
    ]
    for model, (mean, error) in zip(models[1:], differences, strict=True):
        model |= {"gain": mean, "gain_sem": error}
    return {"reward": args.reward, "pass_score": args.pass_score, "seed": args.seed, "models": models}


if __name__ == "__main__":
    with main_guard():
        sys.exit(main())
