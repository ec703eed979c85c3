"""Reinforcement learning from a supervised policy: rollouts, a reward, a reference to stay near; PPO, GRPO, RLOO or Dr. GRPO.

    python trainer/train_ppo.py --data_config config/data/posttrain/rlaif/ppo.yaml --from_weight full_sft --use_prepared \
        --epochs 1 --batch_size 8 --learning_rate 1e-6 --device cpu

Read it from top to bottom. Formulas are in rldk.functional, generation in rollout.py, what is known of a
rollout in experience.py, rewards in scoring.py.
"""

from __future__ import annotations

import thread_policy  # isort: skip  # noqa: F401  before torch

import argparse
import copy
import sys
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from torch import Tensor

from arguments import common_parser, main_guard, parse_args
from chat_tokens import end_tokens
from checkpoint import (
    CheckpointError,
    check_fingerprint,
    checkpoint_root,
    find_checkpoint,
    fingerprint,
    load_checkpoint,
    save_checkpoint,
    set_aside,
)
from data_config import read_config
from data_mix import load_records
from data_order import batch_indices, steps_in
from data_sets import Prompts
from experience import Experience, answers, judged, kl_after
from faults import Faults, StepSettings
from logger import Logger, Throughput
from logprobs import TokenLogprobs
from machine import make_accelerator, seed_everything, set_threads
from models import (
    checkpoint_activations,
    count_parameters,
    disable_dropout,
    load_critic,
    load_model,
    load_tokenizer,
    save_weights,
)
from optimization import (
    all_finite,
    clip_gradients,
    has_whole_gradients,
    learning_rate_at,
    make_optimizer,
    plain_optimizer,
    set_learning_rate,
    step_optimizers,
)
from ppo_metrics import gathered, rollout_metrics, step_metrics, update_metrics
from rldk.functional.advantages import gae, group_relative, leave_one_out, whiten
from rldk.functional.kl import AdaptiveKL, FixedKL, corrected_kl, estimate_kl
from rldk.functional.masked import masked_mean, masked_sum, masked_var
from rldk.functional.mismatch import truncated_importance
from rldk.functional.policy import AGGREGATIONS, clip_fraction, policy_loss, token_weights, update_kl, value_loss
from rldk.functional.preflight import DistinctCount, digest, has_dropout, shares_weights
from rldk.functional.throughput import calculate_mfu, rl_step_flops
from rldk.functional.weights import WeightSample
from rollout import Rollout, generate, joined, sampling_noise
from scoring import load_scorer
from stopping import SkippedUpdates, Stopper, weights_are_finite

CONSOLE = [
    ("actor_loss", "actor_loss", "{:.6f}"),
    ("critic_loss", "critic_loss", "{:.6f}"),
    ("reward", "reward", "{:.4f}"),
    ("kl", "kl", "{:.4f}"),
    ("grad_norm_actor", "actor_grad_norm", "{:.4f}"),
    ("tokens/s", "tokens_per_second", "{:.0f}"),
    ("MFU", "mfu_percent", "{:.2f}%"),
]
# How each estimator is used in its paper, or in TRL where that differs; any of it can be set by a flag.
DEFAULTS = {
    "gae": {"loss_aggregation": "token", "kl_in": "reward"},
    "grpo": {"loss_aggregation": "token", "kl_in": "loss"},
    "dr_grpo": {"loss_aggregation": "length", "kl_in": "loss"},
    "rloo": {"loss_aggregation": "token", "kl_in": "reward"},
}


# 1. Arguments of this stage, beside those of all.


def get_args(argv: list[str] | None = None) -> argparse.Namespace:
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
    add("--logprob_chunk", type=int, default=4096, help="tokens whose logits are held at a time")
    args = parse_args(parser, argv)
    for name, value in DEFAULTS[args.advantage].items():
        setattr(args, name, getattr(args, name) or value)
    args.clip_range_high = args.clip_range if args.clip_range_high is None else args.clip_range_high
    samples = args.batch_size * args.accumulation_steps
    if (
        args.mini_batches < 1
        or samples % args.mini_batches
        or (samples // args.mini_batches) % min(args.batch_size, samples // args.mini_batches)
    ):
        parser.error(f"--mini_batches {args.mini_batches} does not divide the {samples} samples of a step into whole passes.")
    for name in ("max_new_tokens", "ppo_epochs", "temperature", "num_generations", "logprob_chunk"):
        if not getattr(args, name) > 0:
            parser.error(f"expected --{name} to be above 0, got {getattr(args, name)}")
    if args.advantage != "gae" and args.num_generations < 2:
        parser.error(f"--advantage {args.advantage} compares responses to one prompt: give --num_generations of at least 2.")
    if samples % args.num_generations:
        parser.error(f"--num_generations {args.num_generations} does not divide the {samples} responses of a step.")
    return args


def main(argv: list[str] | None = None) -> int:
    args = get_args(argv)
    faults = Faults(args.inject)

    # 2. How a step is cut: `local` responses per process, `mini` of them per update, `micro` per pass.
    local = args.batch_size * args.accumulation_steps
    mini = local // args.mini_batches
    micro = min(args.batch_size, mini)
    accelerator = make_accelerator(args, accumulation_steps=mini // micro)
    if not has_whole_gradients(accelerator):
        raise ValueError(
            "PPO does not shard: policy, reference and critic must fit on each device. FSDP is for the stages before it."
        )
    device, rank, world = accelerator.device, accelerator.process_index, accelerator.num_processes

    # 3. Models: the policy, the frozen reference it started as, the value model where one is needed, and what scores.
    tokenizer = load_tokenizer(args)
    policy = disable_dropout(load_model(args, "causal", tokenizer=tokenizer))
    ends, pad = end_tokens(tokenizer, policy), tokenizer.pad_token_id
    reference = TokenLogprobs(copy.deepcopy(policy).to(device).requires_grad_(False), args.logprob_chunk)
    seed_everything(args.seed)  # the head of the value model is new
    models = {"actor": policy} | ({"critic": disable_dropout(load_critic(args, tokenizer))} if args.advantage == "gae" else {})
    for model in models.values():
        checkpoint_activations(args, model)
    scorer = load_scorer(args, tokenizer, device)
    threads = set_threads(args, device, count_parameters(policy, False))
    peaks = {
        "actor": args.learning_rate,
        "critic": args.learning_rate if args.critic_learning_rate is None else args.critic_learning_rate,
    }
    optimizers = {name: make_optimizer(model, peaks[name], args.weight_decay) for name, model in models.items()}
    sizes = {"policy": count_parameters(policy), "reference": count_parameters(policy, False), "reward": scorer.parameters}
    sizes |= {"critic": count_parameters(models["critic"])} if "critic" in models else {}

    # 4. Data. Which prompts a step takes is a function of the step; each is taken --num_generations times.
    prompts = Prompts(load_records(read_config(args.data_config), args.use_prepared), tokenizer, args.max_seq_len)
    digests = [digest(item["text"].encode()) for item in prompts]
    taken_each = local * world // args.num_generations
    per_epoch, total = steps_in(len(prompts), taken_each, args.epochs, args.max_steps)

    # 5. Where an interrupted run had got to.
    controller = AdaptiveKL(args.kl_coef, args.kl_target, args.kl_horizon) if args.kl_target else FixedKL(args.kl_coef)
    saved = find_checkpoint(args.from_resume, checkpoint_root(args)) if args.from_resume else None
    state: dict[str, Any] = {"step": 0}
    identity = fingerprint(args, local * world, prompts)
    for model in models.values():
        model.to(device)
    if saved:
        state = load_checkpoint(saved, models, optimizers)
        differences = check_fingerprint(state.get("fingerprint"), identity, args.resume_anyway)
        controller.load_state_dict(state["kl_controller"])
    begin = state["step"]
    if accelerator.is_main_process and not args.from_resume:
        set_aside(checkpoint_root(args))  # those of an earlier run by this name
    actor = accelerator.prepare(TokenLogprobs(policy, args.logprob_chunk))
    critic = accelerator.prepare(models["critic"]) if "critic" in models else None
    trained = [actor] if critic is None else [actor, critic]
    optimizers = {name: plain_optimizer(accelerator, accelerator.prepare(one)) for name, one in optimizers.items()}
    clock = Throughput(device, per_epoch, total, done=begin)
    clock.tokens = state.get("tokens", 0)
    logger = Logger(
        args, accelerator, CONSOLE, per_epoch, total, resume_step=begin if args.from_resume else None,
        monitor_state=state.get("monitor"), kl_target=args.kl_target,
    )  # fmt: skip
    stopper, skipped = Stopper(), SkippedUpdates(args.max_skipped_updates)
    count = " + ".join(f"{count_parameters(model, False):,}" for model in models.values())
    logger.say(
        f"{args.advantage} on {device}, {world} process(es): {count} parameters, {len(prompts)} prompts, "
        f"{total} steps of {local * world} responses"
    )
    if threads:
        logger.say(threads)
    if args.from_resume:
        logger.say(f"resumed after step {begin} from {saved}" if saved else "nothing to resume from: starting at step 1")
        for difference in differences if saved else []:
            logger.say(f"resumed although the run differs: {difference}")

    def save(step: int) -> None:
        if accelerator.is_main_process:
            kept = {"kl_controller": controller.state_dict(), "monitor": logger.state_dict(), "tokens": clock.tokens}
            try:
                if not all(map(weights_are_finite, models.values())):
                    raise CheckpointError(f"The weights after step {step} are not finite: no checkpoint is written")
                kept["fingerprint"] = identity
                save_checkpoint(checkpoint_root(args), step, models, optimizers, kept, args.keep_checkpoints)
            except CheckpointError as error:  # a full disk need not be full tomorrow: training continues
                logger.say(f"{error}.")
        accelerator.wait_for_everyone()

    facts = {
        "policy_trainable_params": count_parameters(policy),
        "reference_is_policy": shares_weights(policy, reference),
        "dropout_active": has_dropout(policy.train(), try_it=False),
        "max_response_length": args.max_new_tokens,
        "num_iterations": args.ppo_epochs,
        "num_generations": args.num_generations,
        "distinct_prompts_frac": len(set(digests)) / len(digests),
        "advantage_normalized": args.advantage == "gae" and not args.no_whiten,
        "advantage_raw": True,
    }
    facts |= {"target_kl": args.kl_target} if args.kl_target else {}
    seen_prompts = DistinctCount()
    for past in range(min(begin, per_epoch)):  # what a resumed run has seen; after an epoch that is all
        seen_prompts.add(digests[i] for i in batch_indices(len(prompts), taken_each, past, args.seed))
    moved = {f"{name}_weight_change": WeightSample(model) for name, model in models.items()}
    for sample in moved.values():
        sample.measure()
    stopped, step = "", begin
    for step in range(begin + 1, total + 1):
        notes = faults.at(step)
        seed_everything(args.seed, step, rank)
        with clock.step():
            rates = [learning_rate_at(step - 1, total, args, peak) for peak in peaks.values()]
            settings = faults.settings(
                StepSettings(*rates, controller.coef, args.temperature, args.clip_range, args.clip_range_high, ends)
            )

            # 6. Rollouts: this process's prompts of the step, one noise number for each sample and token.
            rows = slice(rank * local, (rank + 1) * local)
            taken = batch_indices(len(prompts), taken_each, step - 1, args.seed)
            batch = prompts.collate([prompts[i] for i in taken for _ in range(args.num_generations)][rows])
            with clock.span("generation"), accelerator.autocast():
                noise = sampling_noise(args.seed, step, local * world, args.max_new_tokens)[rows]
                policy.eval()
                roll = respond(policy, batch, noise, micro, settings, pad, device)
                batch, roll = faults.rollouts((batch, roll))
                for model in models.values():
                    model.train()

            # 7. Judgement: the score of every response, and what policy, reference and critic say of its tokens.
            with clock.span("scoring"), torch.no_grad():
                mask = roll.mask.bool()
                with accelerator.autocast():
                    score = scorer(batch, roll).to(device) - args.missing_eos_penalty * (~roll.ended).float()
                score = faults.scores(score, roll.mask.sum(1), args.max_new_tokens)
                experience, entropy, graph = judged(accelerator, trained, reference, roll, micro, settings.temperature)
                experience.old = roll.old = experience.old if roll.old is None else roll.old  # stale rollouts have theirs
                kl = estimate_kl(experience.old, experience.reference, args.kl_estimator).masked_fill(~mask, 0.0)

                # 8. Advantages: at each token by GAE, or for each response from the scores of its group.
                paid = settings.kl_coef * kl if args.kl_in == "reward" else torch.zeros_like(kl)
                if args.advantage == "gae":
                    rewards = -paid
                    rewards[torch.arange(len(rewards)), roll.mask.sum(1) - 1] += score
                    raw, experience.returns = gae(rewards, experience.values, mask, args.gamma, args.lam)
                else:
                    score_after = score - paid.sum(1)
                    if args.advantage == "rloo":
                        raw = leave_one_out(score_after, args.num_generations)
                    else:
                        raw = group_relative(score_after, args.num_generations, scale=args.advantage == "grpo")
                    raw = raw[:, None].expand(mask.shape).masked_fill(~mask, 0.0)
                found = {"score": score, "kl": kl, "raw": raw, "old": experience.old, "entropy": entropy}
                found |= {"values": experience.values, "returns": experience.returns} if critic is not None else {}
                whole = gathered(accelerator, roll, **found)
                metrics = rollout_metrics(whole, settings.kl_coef, args.num_generations)
                experience.advantages = raw
                if facts["advantage_normalized"]:  # by the moments of all processes together
                    mean, var = masked_mean(whole["raw"], whole["mask"]), masked_var(whole["raw"], whole["mask"])
                    experience.advantages = whiten(raw, mask, mean, var)
                if args.truncated_importance:
                    experience.importance = truncated_importance(experience.old, roll.logprobs, args.truncated_importance)

            # 9. Updates: some epochs over the rollouts, with a step of the optimizers for each mini-batch.
            with clock.span("update"):
                for name, rate in zip(optimizers, (settings.learning_rate, settings.critic_learning_rate), strict=False):
                    set_learning_rate(optimizers[name], rate)
                lengths = whole["mask"].sum(1).view(world, local)
                seen: list[dict[str, float]] = []
                early, finite = False, True
                for chosen in mini_batches(args, step, local, mini):
                    tokens = int(lengths[:, chosen].sum())  # of this mini-batch in all processes
                    parts = []
                    for at in range(0, mini, micro):
                        part = experience.part(torch.as_tensor(chosen[at : at + micro], device=device))
                        weights = token_weights(part.mask, args.loss_aggregation, tokens, mini * world, args.max_new_tokens)
                        with accelerator.accumulate(*trained):
                            said = graph or answers(accelerator, trained, part, settings.temperature, args.entropy_coef > 0)
                            parts.append(learn_from(accelerator, said, part, weights, tokens, settings, args))
                        graph = None  # the first update starts from the pass that `old` came from, where one pass is a step
                    done = update_metrics(accelerator, parts, tokens)
                    early = bool(args.max_update_kl) and done["kl"] > args.max_update_kl
                    if early:  # the updates before this one have gone far enough
                        for optimizer in optimizers.values():
                            optimizer.zero_grad()
                        break
                    for name, model in models.items():
                        done[f"{name}_grad_norm"] = clip_gradients(
                            accelerator, optimizers[name], model.parameters(), args.grad_clip
                        )
                    finite = all_finite(*(done[f"{name}_grad_norm"] for name in models))
                    skipped.add(finite)
                    if (
                        finite or accelerator.scaler is not None
                    ):  # a loss scaler leaves such a step out itself, and learns from it
                        step_optimizers(accelerator, [one for name, one in optimizers.items() if name not in settings.frozen])
                    for optimizer in optimizers.values():
                        optimizer.zero_grad()
                    seen.append(done | {"update_applied": float(finite)})
                    if skipped.dead or (not finite and args.on_nonfinite == "stop"):
                        break
                for sample in moved.values():
                    sample.measure()
                metrics["kl"] = kl_after(accelerator, actor, experience, micro, settings.temperature, int(lengths.sum()))

        # 10. The numbers of the step: to the console, the trackers, the event log and the monitor.
        metrics = step_metrics(seen) | metrics | {name: float(value) for name, value in facts.items() if value is not None}
        metrics["distinct_prompts"] = float(seen_prompts.add(digests[i] for i in taken))
        metrics |= {name: change for name, sample in moved.items() if (change := sample.read()) is not None}
        metrics |= {"actor_lr": settings.learning_rate, "clip_range": settings.clip_low, "temperature": settings.temperature}
        metrics |= {} if critic is None else {"critic_lr": settings.critic_learning_rate}
        metrics |= {"updates": float(len(seen)), "kl_early_stop": float(early)}
        read, made = accelerator.reduce(torch.stack([batch["attention_mask"].sum(), roll.mask.sum()]).to(device), "sum").tolist()
        metrics |= clock.metrics(made, local * world)
        passes = (2, 0) if micro == local else (3, 1)  # of actor and critic that are not trained on; see `judged`
        flops = rl_step_flops(
            read + made, **sizes, forwards=passes[0], critic_forwards=passes[1], epochs=len(seen) * mini / local
        )
        mfu = calculate_mfu(flops / max(made, 1), metrics["tokens_per_second"], device, world)
        metrics |= {} if mfu is None else {"mfu_percent": mfu}
        controller.update(metrics["kl_ref"], local * world)
        lost = sum(not done["update_applied"] for done in seen)
        if lost:
            notes.append(f"gradients were not finite: {lost} of {len(seen)} updates skipped, weights unchanged by them")
        shown = show_samples(batch["texts"], roll, score, tokenizer) if logger.shows_samples(step) else []
        logger.log(step, metrics, notes, {"tokens_in": read, "tokens_out": made, "samples": local * world}, shown)

        # 11. Reasons to leave, and checkpoints.
        if stopper.requested(accelerator, also=logger.stop is not None):
            stopped = "stopped by a signal" if stopper.signal else "the monitor confirmed a failure"
        elif lost and args.on_nonfinite == "stop":
            stopped = "gradients are not finite"
        else:
            stopped = skipped.dead or (skipped.nothing_learnt if step == total else "")
        if stopped or step == total or (args.save_interval and step % args.save_interval == 0):
            save(step)
        if stopped:
            break

    # 12. The weights for the next stage, and the critic's. A run that was cut short leaves its checkpoint only.
    if stopped:
        logger.say(f"stopped after step {step}: {stopped}. Checkpoints in {checkpoint_root(args)}; resume with --from_resume.")
        if logger.stop is not None:
            logger.say(str(logger.stop))
    else:
        place = save_weights(accelerator, policy, tokenizer, args)
        if critic is not None:
            save_weights(accelerator, models["critic"], tokenizer, args, f"{args.save_weight}_critic")
        logger.say(f"finished after step {step}: weights in {place}")
    logger.close()
    stopper.close()
    accelerator.end_training()
    return stopper.exit_code or (1 if stopped else 0)


# What the acts above call.


def respond(
    policy: Any, batch: dict[str, Any], noise: Tensor, micro: int, settings: StepSettings, pad: int, device: torch.device
) -> Rollout:
    """A response to each prompt of the batch, `micro` of them at a time."""
    ids, mask = batch["input_ids"].to(device), batch["attention_mask"].to(device)
    rolls = [
        generate(
            policy,
            ids[at : at + micro],
            mask[at : at + micro],
            noise[at : at + micro],
            settings.temperature,
            settings.end_tokens,
            pad,
        )
        for at in range(0, len(ids), micro)
    ]
    return joined(rolls, pad)


def mini_batches(args: argparse.Namespace, step: int, local: int, mini: int) -> Any:
    """The rows of each update: in order where an update takes all, else shuffled in every epoch, alike in all processes."""
    for epoch in range(args.ppo_epochs):
        order = np.arange(local)
        if mini < local:
            order = np.random.default_rng((args.seed & 0xFFFFFFFF, step, epoch)).permutation(local)
        yield from (order[first : first + mini] for first in range(0, local, mini))


def learn_from(
    accelerator: Accelerator, said: Any, part: Experience, weights: Tensor, tokens: int, settings: StepSettings,
    args: argparse.Namespace,
) -> dict[str, Tensor]:  # fmt: skip
    """The losses from what the models say of a part of a mini-batch, and their gradients; the sums that metrics are made of."""
    mask = part.mask.bool()
    logp, entropy, predicted = said
    logp = logp.where(mask, part.old)
    weights = weights if part.importance is None else weights * part.importance
    loss = policy_loss(logp, part.old, part.advantages, mask, settings.clip_low, clip_high=settings.clip_high, weights=weights)
    if args.kl_in == "loss":
        loss = loss + settings.kl_coef * masked_sum(corrected_kl(logp, part.old, part.reference) * weights, mask)
    bonus = args.entropy_coef * masked_sum(entropy, mask) / tokens if args.entropy_coef else 0.0
    sums = {"actor_loss": loss.detach() * settings.loss_factor}
    whole = loss - bonus
    if predicted is not None:
        error = value_loss(predicted, part.values, part.returns, mask, args.clip_range_value, count=tokens)
        whole = whole + error  # two graphs that share nothing: one pass back through both
        off = (predicted.detach() - part.values).abs() > args.clip_range_value
        sums |= {"critic_loss": error.detach() * settings.loss_factor, "value_clip_frac": off.logical_and(mask).sum()}
    # accelerate divides by the passes and averages over the processes: both are undone, the mean is ours
    accelerator.backward(whole * settings.loss_factor * accelerator.gradient_accumulation_steps * accelerator.num_processes)
    with torch.no_grad():
        ratio = (logp - part.old).exp()
        inside = ratio.masked_fill(~mask, 1.0)
        return sums | {
            "kl": update_kl(logp, part.old, mask, count=1),
            "clip_frac": clip_fraction(logp, part.old, mask, settings.clip_low, count=1, clip_high=settings.clip_high),
            "ratio_sum": masked_sum(ratio, mask),
            "ratio_squares": masked_sum(ratio * ratio, mask),
            "ratio_min": inside.min(),
            "ratio_max": inside.max(),
        }


def show_samples(texts: list[str], roll: Rollout, score: Tensor, tokenizer: Any, count: int = 2) -> list[dict[str, Any]]:
    """The first prompts of a step with their responses and scores, for the event log."""
    words = tokenizer.batch_decode(roll.responses[:count], skip_special_tokens=True)
    return [
        {"prompt": prompt, "completion": said, "reward": round(float(reward), 6)}
        for prompt, said, reward in zip(texts[:count], words, score[:count], strict=True)
    ]


if __name__ == "__main__":
    with main_guard():
        sys.exit(main())
