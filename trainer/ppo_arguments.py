"""The flags of PPO, GRPO, Dr. GRPO and RLOO, beside those that all stages share."""

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
    add("--max_new_tokens", type=int, default=48, help="maximum length of a response in tokens")
    add("--temperature", type=float, default=1.0, help="sampling temperature; also used for the log-probabilities in the loss")
    add("--missing_eos_penalty", type=float, default=0.0, help="subtracted from the score of a response without an end token")
    add(
        "--advantage",
        choices=tuple(DEFAULTS),
        default="gae",
        help="gae uses a critic; the others compare the responses to one prompt",
    )
    add("--num_generations", type=int, default=1, help="responses per prompt; at least 2 for grpo, dr_grpo and rloo")
    add("--loss_aggregation", choices=AGGREGATIONS, help="how token losses are averaged; default: token, and length for dr_grpo")
    add("--kl_in", choices=("reward", "loss"), help="where the KL penalty is applied; default: reward for gae, rloo")
    add(
        "--critic",
        default="policy",
        help="initial weights of the value model: policy, reward (the reward model), or a folder",
    )
    add("--critic_learning_rate", type=float, help="peak learning rate of the value model; default: --learning_rate")
    add("--ppo_epochs", type=int, default=4, help="passes over each rollout")
    add("--mini_batches", type=int, default=1, help="updates in each pass")
    add("--clip_range", type=float, default=0.2, help="clip the ratio of new to old probability at 1 minus and plus this value")
    add("--clip_range_high", type=float, help="clip range above 1; default: --clip_range")
    add("--clip_range_value", type=float, default=0.2, help="clip the change of a predicted value at this distance")
    add("--truncated_importance", type=float, default=0.0, help="largest importance weight of trainer to sampler; 0: no weights")
    add("--gamma", type=float, default=1.0, help="discount factor of rewards")
    add("--lam", type=float, default=0.95, help="lambda of GAE")
    add("--no_whiten", action="store_true", help="do not normalise the advantages of gae to mean 0 and standard deviation 1")
    add("--entropy_coef", type=float, default=0.0, help="weight of the entropy bonus")
    add("--kl_coef", type=float, default=0.05, help="weight of the KL to the reference; with --kl_target the initial one")
    add(
        "--kl_target",
        type=float,
        help="adapt the KL coefficient to keep the KL at this value, in nats per token; without it the coefficient is fixed",
    )
    add("--kl_horizon", type=float, default=2000.0, help="number of responses over which the coefficient adapts")
    add(
        "--kl_estimator", choices=("k1", "k2", "k3"), default="k1", help="KL estimator in the reward; the loss always uses k3"
    )
    add(
        "--max_update_kl",
        type=float,
        default=0.1,
        help="skip the remaining updates of a step once the KL from the policy that sampled exceeds this value; 0: no limit",
    )
    add(
        "--rollout",
        choices=("torch", "process", "vllm", "sglang"),
        default="torch",
        help="how responses are sampled: torch in this process, Hugging Face generate in another process, vLLM or SGLang",
    )
    add("--rollout_memory", type=float, default=0.4, help="share of the GPU memory for vLLM or SGLang")
    add(
        "--eval_interval",
        type=int,
        default=50,
        help="steps between evaluations on the held-out prompts of the data config; 0: never",
    )
    add_evaluation_flags(parser, own_reward=True)
    add("--logprob_chunk", type=int, default=4096, help="number of tokens whose logits are in memory at a time")
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
