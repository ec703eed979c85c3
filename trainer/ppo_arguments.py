"""The flags of PPO, GRPO, RLOO and Dr. GRPO, beside those that all stages share."""

from __future__ import annotations

import argparse

from arguments import common_parser, parse_args
from held_out import add_evaluation_flags
from rldk.functional.policy import AGGREGATIONS

# How each estimator is used in its paper, or in TRL where that differs; any of it can be set by a flag.
DEFAULTS = {
    "gae": {"loss_aggregation": "token", "kl_in": "reward"},
    "grpo": {"loss_aggregation": "token", "kl_in": "loss"},
    "dr_grpo": {"loss_aggregation": "length", "kl_in": "loss"},
    "rloo": {"loss_aggregation": "token", "kl_in": "reward"},
}


def get_args(argv: list[str] | None = None) -> argparse.Namespace:
    parser = make_parser()
    args = parse_args(parser, argv)
    for name, value in DEFAULTS[args.advantage].items():
        setattr(args, name, getattr(args, name) or value)
    args.clip_range_high = args.clip_range if args.clip_range_high is None else args.clip_range_high
    _check(parser, args)
    return args


def make_parser() -> argparse.ArgumentParser:
    parser = common_parser("ppo", "PPO, GRPO, RLOO or Dr. GRPO: learn from a reward on the policy's own responses.")
    parser.set_defaults(learning_rate=1e-6, batch_size=8, data_config="config/data/posttrain/rlaif/ppo.yaml")
    add = parser.add_argument
    add(
        "--reward",
        default="rewards:helpful",
        help="folder of a trained sequence classifier, or module:function(prompts, responses, **columns)",
    )
    add("--max_new_tokens", type=int, default=48, help="longest response in tokens")
    add("--temperature", type=float, default=1.0, help="sampling temperature; losses are those of the policy at it")
    add("--missing_eos_penalty", type=float, default=0.0, help="taken off the score of a response that does not end")
    add(
        "--advantage",
        choices=tuple(DEFAULTS),
        default="gae",
        help="gae has a critic; the others compare the responses to one prompt",
    )
    add("--num_generations", type=int, default=1, help="responses to each prompt; at least 2 for grpo, dr_grpo and rloo")
    add("--loss_aggregation", choices=AGGREGATIONS, help="what weighs the same in the loss; by default token, for dr_grpo length")
    add("--kl_in", choices=("reward", "loss"), help="where the KL to the reference is paid; by default reward for gae and rloo")
    add(
        "--critic",
        default="policy",
        help="where the value model starts: policy, reward (the reward model), or a folder of weights",
    )
    add("--critic_learning_rate", type=float, help="peak learning rate of the value model; by default the policy's")
    add("--ppo_epochs", type=int, default=4, help="how often each rollout is learnt from")
    add("--mini_batches", type=int, default=1, help="updates in each of these epochs")
    add("--clip_range", type=float, default=0.2, help="how far the ratio of new to old probability may go below 1, and above")
    add("--clip_range_high", type=float, help="how far it may go above 1, where that is not the same")
    add("--clip_range_value", type=float, default=0.2, help="how far a value may go from the old one")
    add("--truncated_importance", type=float, default=0.0, help="weigh tokens by trainer over sampler, at most this; 0 does not")
    add("--gamma", type=float, default=1.0, help="discount of later rewards")
    add("--lam", type=float, default=0.95, help="lambda of GAE")
    add("--no_whiten", action="store_true", help="use advantages of gae as they are, not at mean 0 and spread 1")
    add("--entropy_coef", type=float, default=0.0, help="weight of the entropy bonus")
    add("--kl_coef", type=float, default=0.05, help="weight of the KL to the reference; the first one with --kl_target")
    add(
        "--kl_target",
        type=float,
        help="nats per token that the coefficient is to hold the KL at; without it the coefficient is fixed",
    )
    add("--kl_horizon", type=float, default=2000.0, help="responses over which the coefficient adapts")
    add(
        "--kl_estimator", choices=("k1", "k2", "k3"), default="k1", help="estimator of the KL in the reward; in the loss it is k3"
    )
    add(
        "--max_update_kl",
        type=float,
        default=0.1,
        help="make no further update of a step once the policy is so far from the old one; 0 always",
    )
    add(
        "--rollout",
        choices=("torch", "process", "vllm", "sglang"),
        default="torch",
        help="what samples responses: this process, another one with Hugging Face generate, vLLM or SGLang",
    )
    add("--rollout_memory", type=float, default=0.4, help="share of the GPU's memory that vLLM or SGLang may use")
    add(
        "--eval_interval",
        type=int,
        default=50,
        help="steps between evaluations on the held-out prompts of the data config; 0 never",
    )
    add_evaluation_flags(parser, own_reward=True)
    add("--logprob_chunk", type=int, default=4096, help="tokens whose logits are held at a time")
    return parser


def critic_rate(args: argparse.Namespace) -> float:
    """The peak learning rate of the value model."""
    return args.learning_rate if args.critic_learning_rate is None else args.critic_learning_rate


def _check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    if args.fsdp:
        parser.error("PPO does not shard: policy, reference and critic must fit on each device. --fsdp is for earlier stages.")
    samples = args.batch_size * args.accumulation_steps
    if (
        args.mini_batches < 1
        or samples % args.mini_batches
        or (samples // args.mini_batches) % min(args.batch_size, samples // args.mini_batches)
    ):
        parser.error(f"--mini_batches {args.mini_batches} does not divide the {samples} samples of a step into whole passes.")
    for name in (
        "max_new_tokens",
        "ppo_epochs",
        "temperature",
        "num_generations",
        "logprob_chunk",
        "eval_prompts",
        "eval_generations",
    ):
        if not getattr(args, name) > 0:
            parser.error(f"expected --{name} to be above 0, got {getattr(args, name)}")
    if args.advantage != "gae" and args.num_generations < 2:
        parser.error(f"--advantage {args.advantage} compares responses to one prompt: give --num_generations of at least 2.")
    if samples % args.num_generations:
        parser.error(f"--num_generations {args.num_generations} does not divide the {samples} responses of a step.")
