"""Evaluation on held-out prompts: answers are sampled, scored, counted and shown. Stages evaluate every --eval_interval steps.

The prompts are the `held_out` sources of the data config. The noise of the sampling is a function of the seed alone, so that two
evaluations differ by the model and not by chance, and training is the same with and without evaluations.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import gather_object

from chat_tokens import end_tokens
from data_config import DataConfig, DataError, read_config
from data_mix import mix
from data_sets import Prompts
from faults import StepSettings
from logger import Logger
from rldk.functional.pass_at_k import mean_pass_at_k
from rldk.functional.responses import distinct_endings
from rollout import Rollout, respond, sampling_noise
from scoring import load_scorer

GREEDY = 1e-4  # the temperature that stands for 0


def add_evaluation_flags(parser: argparse.ArgumentParser, own_reward: bool = False) -> None:
    """The flags of this evaluation; a stage with a reward of its own is evaluated by it."""
    add = parser.add_argument
    words = "default: --reward" if own_reward else "without it, no answers are sampled"
    add(
        "--eval_reward",
        metavar="REWARD",
        help=f"score answers to the held-out prompts with this reward, given as for --reward of PPO; {words}",
    )
    add("--eval_prompts", type=int, default=64, help="maximum number of held-out prompts")
    add("--eval_generations", type=int, default=4, help="answers per prompt; pass@k is reported for k = 1 and this number")
    add("--eval_new_tokens", type=int, default=48, help="maximum length of these answers in tokens")
    add("--pass_score", type=float, default=1.0, help="minimum score of an answer that passes, for pass@k")


@dataclass(frozen=True)
class Evaluation:
    """Answers to the held-out prompts: one row per prompt."""

    prompts: list[str]
    answers: list[list[str]]
    scores: np.ndarray  # (prompts, answers)
    lengths: np.ndarray  # tokens, the end token included
    ended: np.ndarray
    endings: float  # share of different endings

    @property
    def reward(self) -> float:
        return float(self.scores.mean())

    @property
    def standard_error(self) -> float:
        """Of the reward, over prompts."""
        return standard_error(self.scores.mean(1))

    def metrics(self, pass_score: float) -> dict[str, float]:
        count = self.scores.shape[1]
        passed = (self.scores >= pass_score).tolist()
        said = [answer for row in self.answers for answer in row]
        found = {
            "eval_reward": self.reward,
            "eval_reward_sem": self.standard_error,
            "eval_pass_at_1": mean_pass_at_k(passed, 1),
            "eval_distinct_responses_frac": len(set(said)) / len(said),
            "eval_distinct_endings_frac": self.endings,
            "eval_avg_response_len": float(self.lengths.mean()),
            "eval_eos_frac": float(self.ended.mean()),
        }
        return found | ({"eval_pass_at_k": mean_pass_at_k(passed, count)} if count > 1 else {})

    def samples(self, count: int = 4) -> list[dict[str, Any]]:
        """The first answers to some evenly spaced prompts, for the event log."""
        places = np.linspace(0, len(self.prompts) - 1, min(count, len(self.prompts))).astype(int)
        return [
            {"prompt": self.prompts[at], "completion": self.answers[at][0], "reward": round(float(self.scores[at, 0]), 6)}
            | {"held_out": True}
            for at in places
        ]

    def sentence(self, pass_score: float) -> str:
        """The result in one line."""
        found = self.metrics(pass_score)
        counts = {"eval_pass_at_1": 1, "eval_pass_at_k": self.scores.shape[1]}
        passes = ", ".join(f"pass@{count} {found[key]:.0%}" for key, count in counts.items() if key in found)
        return (
            f"reward {self.reward:+.3f} ± {self.standard_error:.3f} over {len(self.prompts)} held-out prompts, {passes}, "
            f"{found['eval_distinct_responses_frac']:.0%} of the answers and {self.endings:.0%} of their endings differ"
        )

    def shown(self, count: int = 3) -> list[str]:
        """A line for each of some samples."""
        return [f"  {one['reward']:+.1f}  {one['prompt']}  ->  {one['completion']!r}" for one in self.samples(count)]


def standard_error(values: np.ndarray) -> float:
    """The standard error of the mean; NaN for fewer than two values."""
    return float(values.std(ddof=1) / len(values) ** 0.5) if len(values) > 1 else float("nan")


class HeldOut:
    """Evaluates a policy on the same held-out prompts each time.

    Args:
        records: prompts as PPO takes them.
        scorer: scores the answers, see scoring.py.
        length: maximum length of an answer in tokens.
        micro: number of answers sampled at a time.
    """

    def __init__(
        self, records: list[dict[str, Any]], tokenizer: Any, scorer: Any, args: argparse.Namespace, longest_prompt: int
    ) -> None:
        self.prompts = Prompts(records[: args.eval_prompts], tokenizer, longest_prompt)
        self.tokenizer, self.scorer, self.args = tokenizer, scorer, args
        self.length = getattr(args, "max_new_tokens", None) or args.eval_new_tokens
        self.temperature = max(getattr(args, "temperature", 1.0), GREEDY)

    @torch.no_grad()
    def measure(self, policy: Any, accelerator: Accelerator | None = None) -> Evaluation:
        """Sample and score; with an accelerator, each process samples its share, and all get the whole."""
        training = policy.training
        policy.eval()
        rank, world = (0, 1) if accelerator is None else (accelerator.process_index, accelerator.num_processes)
        mine = range(rank, len(self.prompts), world)
        rows = [row for at in range(0, len(mine), self.micro) for row in self._ask(policy, list(mine[at : at + self.micro]))]
        if world > 1:
            rows = gather_object(rows)
        policy.train(training)
        rows.sort(key=lambda row: row["place"])
        tokens = [one for row in rows for one in row["tokens"]]
        width = max(map(len, tokens))
        return Evaluation(
            [row["prompt"] for row in rows],
            [row["answers"] for row in rows],
            np.array([row["scores"] for row in rows], dtype=float),
            np.array([[len(one) for one in row["tokens"]] for row in rows]),
            np.array([row["ended"] for row in rows]),
            distinct_endings(
                np.array([one + [0] * (width - len(one)) for one in tokens]), np.array([len(one) for one in tokens])
            ),
        )

    @property
    def micro(self) -> int:
        """Prompts at a time."""
        return max(1, getattr(self.args, "batch_size", 32) // self.args.eval_generations)

    def _ask(self, policy: Any, places: list[int]) -> list[dict[str, Any]]:
        """The answers to some prompts."""
        count = self.args.eval_generations
        batch = self.prompts.collate([self.prompts[place] for place in places for _ in range(count)])
        noise = sampling_noise(self.args.seed, 0, len(self.prompts) * count, self.length)
        noise = torch.cat([noise[place * count : (place + 1) * count] for place in places])
        settings = StepSettings(0, 0.0, temperature=self.temperature, end_tokens=end_tokens(self.tokenizer, policy))
        roll: Rollout = respond(policy, batch, noise, len(noise), settings, self.tokenizer.pad_token_id)
        scores = self.scorer(batch, roll).float().tolist()
        words = self.tokenizer.batch_decode(roll.responses, skip_special_tokens=True)
        lengths = roll.mask.sum(1).tolist()
        tokens = [row[:length] for row, length in zip(roll.responses.tolist(), lengths, strict=True)]
        return [
            {
                "place": place,
                "prompt": batch["texts"][first],
                "answers": words[first : first + count],
                "scores": scores[first : first + count],
                "tokens": tokens[first : first + count],
                "ended": roll.ended[first : first + count].tolist(),
            }
            for place, first in zip(places, range(0, len(places) * count, count), strict=True)
        ]


def held_out_records(config: DataConfig) -> list[dict[str, Any]]:
    """The records of the `held_out` sources of a data config, as PPO takes prompts."""
    return mix(replace(config, stage="ppo", sources=config.held_out, max_records=None)).records


class Examiner:
    """Examines the model of a stage on the held-out prompts: before its first step, every --eval_interval steps, at its end.

    Without held-out prompts or a reward, and for a sharded model, it does nothing.
    """

    def __init__(self, args: argparse.Namespace, accelerator: Accelerator, tokenizer: Any, scorer: Any = None) -> None:
        self.args, self.accelerator = args, accelerator
        self.held_out = None if args.fsdp else load_held_out(args, accelerator, tokenizer, scorer)

    def before(self, model: Any, logger: Logger) -> None:
        """The model that the stage starts from, as the event of step 0."""
        if self.held_out is not None:
            found = self._measure(model)
            logger.log_evaluation(0, found.metrics(self.args.pass_score), found.samples())
            self._say(logger, "before", found, with_samples=True)

    def after(self, step: int, total: int, model: Any, logger: Logger) -> tuple[dict[str, float], list[dict[str, Any]]]:
        """Metrics and samples of the model after a step; empty if no evaluation is due."""
        last = step == total
        if self.held_out is None or not (last or step % self.args.eval_interval == 0):
            return {}, []
        found = self._measure(model)
        self._say(logger, "after" if last else f"step {step}", found, with_samples=last)
        return found.metrics(self.args.pass_score), found.samples()

    def _measure(self, model: Any) -> Evaluation:
        assert self.held_out is not None
        with self.accelerator.autocast():
            return self.held_out.measure(self.accelerator.unwrap_model(model), self.accelerator)

    def _say(self, logger: Logger, when: str, found: Evaluation, with_samples: bool) -> None:
        for line in (f"{when}: {found.sentence(self.args.pass_score)}", *(found.shown() if with_samples else ())):
            logger.say(line)


def load_held_out(args: argparse.Namespace, accelerator: Accelerator, tokenizer: Any, scorer: Any = None) -> HeldOut | None:
    """The evaluation of a stage, or `None` without a reward."""
    config, reward = read_config(args.data_config), getattr(args, "eval_reward", None)
    if not args.eval_interval or (reward is None and (scorer is None or not config.held_out)):
        return None
    if not config.held_out:
        raise DataError(f"--eval_reward {reward}: {config.path} names no `held_out` sources to ask.")
    if reward is not None:
        scorer = load_scorer(args, tokenizer, accelerator.device, reward)
    return HeldOut(held_out_records(config), tokenizer, scorer, args, args.max_seq_len)
