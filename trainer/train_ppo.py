"""PPO from a supervised policy: rollouts, a reward, a reference to stay near, a value model of its own.

    python trainer/train_ppo.py --data_config config/data/posttrain/rlaif/ppo.yaml --from_weight full_sft --use_prepared \
        --epochs 1 --batch_size 8 --learning_rate 1e-6 --device cpu

Read it from top to bottom. Formulas are in rldk.functional, generation in rollout.py, what all stages share in trainer_utils.py.
"""

from __future__ import annotations

import argparse
import copy
import math
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from checkpoint import set_aside
from data_config import read_config
from data_mix import load_records
from data_sets import Prompts
from faults import Faults
from lean import answer_at_places
from ppo_metrics import gathered, rollout_metrics, update_metrics
from rldk.functional.advantages import gae, whiten
from rldk.functional.gradients import combined_norm
from rldk.functional.kl import AdaptiveKL, FixedKL, estimate_kl
from rldk.functional.masked import masked_mean, masked_sum, masked_var
from rldk.functional.policy import clip_fraction, entropy_of, policy_loss, selected_logprobs, update_kl, value_loss
from rldk.functional.preflight import DistinctCount, digest, has_dropout, shares_weights
from rldk.functional.weights import WeightSample
from rollout import Rollout, generate, sampling_noise
from trainer_utils import (
    Accelerator,
    Logger,
    Stopper,
    Throughput,
    all_finite,
    batch_indices,
    calculate_mfu,
    checkpoint_root,
    clip_gradients,
    common_parser,
    count_parameters,
    disable_dropout,
    find_checkpoint,
    flops_per_token,
    learning_rate_at,
    load_checkpoint,
    load_model,
    load_reward,
    load_tokenizer,
    main_guard,
    make_accelerator,
    make_optimizer,
    parse_args,
    plain_optimizer,
    save_checkpoint,
    save_weights,
    seed_everything,
    set_learning_rate,
    steps_in,
)

CONSOLE = [
    ("actor_loss", "actor_loss", "{:.6f}"),
    ("critic_loss", "critic_loss", "{:.6f}"),
    ("reward", "reward", "{:.4f}"),
    ("kl", "kl", "{:.4f}"),
    ("grad_norm_actor", "actor_grad_norm", "{:.4f}"),
    ("tokens/s", "tokens_per_second", "{:.0f}"),
    ("MFU", "mfu_percent", "{:.2f}%"),
]


# 1. Arguments of this stage, beside those of all.


def get_args(argv: list[str] | None = None) -> argparse.Namespace:
    parser = common_parser(
        "ppo", "PPO: learn from a reward on the policy's own responses, without leaving the reference too far."
    )
    parser.set_defaults(learning_rate=1e-6, batch_size=8, data_config="config/data/posttrain/rlaif/ppo.yaml")
    add = parser.add_argument
    add(
        "--reward",
        default="rewards:helpful",
        help="folder of a trained sequence classifier, or module:function(prompts, responses)",
    )
    add("--max_new_tokens", type=int, default=48, help="longest response in tokens")
    add("--temperature", type=float, default=1.0, help="sampling temperature; losses are those of the policy at it")
    add("--missing_eos_penalty", type=float, default=0.0, help="taken off the score of a response that does not end")
    add("--critic_learning_rate", type=float, help="peak learning rate of the value model; by default the policy's")
    add("--ppo_epochs", type=int, default=4, help="how often each rollout is learnt from")
    add("--mini_batches", type=int, default=1, help="updates in each of these epochs")
    add("--clip_range", type=float, default=0.2, help="how far the ratio of new to old probability may go from 1")
    add("--clip_range_value", type=float, default=0.2, help="how far a value may go from the old one")
    add("--gamma", type=float, default=1.0, help="discount of later rewards")
    add("--lam", type=float, default=0.95, help="lambda of GAE")
    add("--no_whiten", action="store_true", help="use advantages as they are, not at mean 0 and spread 1")
    add("--entropy_coef", type=float, default=0.0, help="weight of the entropy bonus")
    add(
        "--kl_coef",
        type=float,
        default=0.05,
        help="weight of the KL to the reference in the reward; the first one with --kl_target",
    )
    add(
        "--kl_target",
        type=float,
        help="nats a token that the coefficient is to hold the KL at; without it the coefficient is fixed",
    )
    add("--kl_horizon", type=float, default=2000.0, help="responses over which the coefficient adapts")
    add("--kl_estimator", choices=("k1", "k2", "k3"), default="k1", help="estimator of the KL to the reference")
    add(
        "--max_update_kl",
        type=float,
        default=0.1,
        help="end the epochs of a step when the policy is so far from the old one; 0 never",
    )
    args = parse_args(parser, argv)
    samples = args.batch_size * args.accumulation_steps
    if (
        args.mini_batches < 1
        or samples % args.mini_batches
        or (samples // args.mini_batches) % min(args.batch_size, samples // args.mini_batches)
    ):
        parser.error(f"--mini_batches {args.mini_batches} does not divide the {samples} samples of a step into whole passes.")
    for name in ("max_new_tokens", "ppo_epochs", "temperature"):
        if not getattr(args, name) > 0:
            parser.error(f"expected --{name} to be above 0, got {getattr(args, name)}")
    return args


def main(argv: list[str] | None = None) -> int:
    args = get_args(argv)
    faults = Faults(args.inject)

    # 2. How a step is cut: `local` samples a process, `mini` of them an update, `micro` a pass.
    local = args.batch_size * args.accumulation_steps
    mini = local // args.mini_batches
    micro = min(args.batch_size, mini)
    accelerator = make_accelerator(args, accumulation_steps=mini // micro)
    device, rank, world = accelerator.device, accelerator.process_index, accelerator.num_processes

    # 3. Models: the policy, the frozen reference it started as, the value model, and what judges.
    tokenizer = load_tokenizer(args)
    eos, pad = tokenizer.eos_token_id, tokenizer.pad_token_id
    actor = disable_dropout(load_model(args, "causal", tokenizer=tokenizer))
    reference = copy.deepcopy(actor).to(device).requires_grad_(False)
    seed_everything(args.seed)  # the head of the value model is new
    critic = disable_dropout(load_model(args, "value", tokenizer=tokenizer))
    judge = load_reward(args.reward)
    if isinstance(judge, Path):
        judge = disable_dropout(load_model(args, "score", folder=judge, tokenizer=tokenizer)).to(device).requires_grad_(False)
    actor_optimizer = make_optimizer(actor, args.learning_rate, args.weight_decay)
    critic_rate = args.learning_rate if args.critic_learning_rate is None else args.critic_learning_rate
    critic_optimizer = make_optimizer(critic, critic_rate, args.weight_decay)
    flops = flops_per_token(count_parameters(actor) + count_parameters(critic))
    for model in (actor, reference, critic):  # on a CPU, operations weigh more than memory
        answer_at_places(model, lean=device.type == "cpu")

    # 4. Data. Which prompts a step takes is a function of the step.
    prompts = Prompts(load_records(read_config(args.data_config), args.use_prepared), tokenizer, args.max_seq_len)
    digests = [digest(item["text"].encode()) for item in prompts]
    per_epoch, total = steps_in(len(prompts), local * world, args.epochs, args.max_steps)

    # 5. Where an interrupted run had got to.
    controller = AdaptiveKL(args.kl_coef, args.kl_target, args.kl_horizon) if args.kl_target else FixedKL(args.kl_coef)
    actor, critic, actor_optimizer, critic_optimizer = accelerator.prepare(actor, critic, actor_optimizer, critic_optimizer)
    models = {"actor": accelerator.unwrap_model(actor), "critic": accelerator.unwrap_model(critic)}
    optimizers = {"actor": actor_optimizer, "critic": critic_optimizer}
    actor_optimizer, critic_optimizer = (plain_optimizer(accelerator, optimizer) for optimizer in optimizers.values())
    weights = {"actor": list(actor.parameters()), "critic": list(critic.parameters())}
    saved = find_checkpoint(args.from_resume, checkpoint_root(args)) if args.from_resume else None
    state: dict[str, Any] = load_checkpoint(saved, models, optimizers) if saved else {"step": 0}
    begin = state["step"]
    if accelerator.is_main_process and not args.from_resume:
        set_aside(checkpoint_root(args))  # those of an earlier run by this name
    if saved:
        controller.load_state_dict(state["kl_controller"])
    clock = Throughput(device, total, done=begin)
    clock.tokens = state.get("tokens", 0)
    logger = Logger(
        args, accelerator, CONSOLE, per_epoch, total, resume_step=begin if args.from_resume else None,
        monitor_state=state.get("monitor"), kl_target=args.kl_target,
    )  # fmt: skip
    stopper = Stopper()
    count = f"{count_parameters(models['actor'], False):,} + {count_parameters(models['critic'], False):,} parameters"
    logger.say(
        f"PPO on {device}, {world} process(es): {count}, {len(prompts)} prompts, {total} steps of {local * world} responses"
    )
    if args.from_resume:
        logger.say(f"resumed after step {begin} from {saved}" if saved else "nothing to resume from: starting at step 1")

    def save(step: int) -> None:
        if accelerator.is_main_process:
            kept = {"kl_controller": controller.state_dict(), "monitor": logger.state_dict(), "tokens": clock.tokens}
            save_checkpoint(checkpoint_root(args), step, models, optimizers, kept, args.keep_checkpoints)
        accelerator.wait_for_everyone()

    facts = {
        "policy_trainable_params": count_parameters(models["actor"]),
        "reference_is_policy": shares_weights(models["actor"], reference),
        "dropout_active": has_dropout(models["actor"], try_it=False),
        "max_response_length": args.max_new_tokens,
        "num_iterations": args.ppo_epochs,
        "distinct_prompts_frac": len(set(digests)) / len(digests),
    }
    seen_prompts = DistinctCount()
    for past in range(min(begin, per_epoch)):  # what a resumed run has seen; after an epoch that is all
        seen_prompts.add(digests[i] for i in batch_indices(len(prompts), local * world, past, args.seed))
    moved = {f"{name}_weight_change": WeightSample(model) for name, model in models.items()}
    for sample in moved.values():
        sample.measure()
    stale: tuple[Rollout, list[str]] | None = None  # for the fault of that name: responses, and the prompts they answer
    stopped, step = "", begin
    for step in range(begin + 1, total + 1):
        notes = faults.at(step)
        seed_everything(args.seed, step, rank)
        coef = controller.coef if faults("kl_coef") is None else faults("kl_coef")
        temperature = faults("temperature") or args.temperature
        clip_range = faults("clip_range") or args.clip_range
        with clock.step():
            # 6. Rollouts: this process's prompts of the step, one noise number for each sample and token.
            rows = slice(rank * local, (rank + 1) * local)
            taken = batch_indices(len(prompts), local * world, step - 1, args.seed)
            batch = prompts.collate([prompts[i] for i in taken[rows]])
            with clock.span("generation"), accelerator.autocast():
                noise = sampling_noise(args.seed, step, local * world, args.max_new_tokens)[rows]
                ids, ids_mask = batch["input_ids"].to(device), batch["attention_mask"].to(device)
                ending = -1 if faults("no_eos") else eos
                roll = generate(models["actor"], ids, ids_mask, noise, temperature, ending, pad)
                if faults("stale_rollouts"):
                    stale = stale or (roll, batch["texts"])
                    roll, batch["texts"] = stale

            # 7. Judgement: score, reference and value of every response.
            with clock.span("scoring"), torch.no_grad(), accelerator.autocast():
                mask, width = roll.mask.bool(), roll.responses.shape[1]
                score = score_of(judge, batch["texts"], roll, tokenizer).to(device)
                score = score - args.missing_eos_penalty * (~roll.ended).float()
                score = broken_score(score, roll, faults, args.max_new_tokens)
                inputs = model_inputs(roll)
                places = slice(roll.tokens.shape[1] - width - 1, roll.tokens.shape[1] - 1)  # those that foretell a response token
                ref_logp = selected_logprobs(tempered(reference(**inputs, places=places).logits, temperature), roll.responses)
                values = critic(**inputs, places=places).logits[..., 0].float().masked_fill(~mask, 0.0)

                # 8. Rewards at each token: the KL penalty everywhere, the score at the last one. Then advantages.
                kl = estimate_kl(roll.logprobs, ref_logp, args.kl_estimator).masked_fill(~mask, 0.0)
                rewards = -coef * kl
                rewards[torch.arange(len(rewards)), roll.mask.sum(1) - 1] += score
                advantages, returns = gae(rewards, values, mask, args.gamma, args.lam)
                whole = gathered(accelerator, roll=roll, score=score, kl=kl, values=values, returns=returns, raw=advantages)
                metrics = rollout_metrics(whole, coef)
                if not args.no_whiten:  # by the moments of all processes together
                    mean, var = masked_mean(whole["raw"], whole["mask"]), masked_var(whole["raw"], whole["mask"])
                    advantages = whiten(advantages, mask, mean, var)

            # 9. Updates: some epochs over the rollouts, with a step of both optimizers for each mini-batch.
            with clock.span("update"):
                actor_rate = learning_rate_at(step - 1, total, args, args.learning_rate) * (faults("lr") or 1.0)
                rate = learning_rate_at(step - 1, total, args, critic_rate) * (faults("lr") or 1.0) * (faults("critic_lr") or 1.0)
                set_learning_rate(actor_optimizer, actor_rate)
                set_learning_rate(critic_optimizer, rate)
                lengths = whole["mask"].sum(1).view(world, local)
                seen, early = [], False
                for epoch in range(args.ppo_epochs):
                    order = np.arange(local)
                    if mini < local:  # the same in all processes
                        order = np.random.default_rng((args.seed & 0xFFFFFFFF, step, epoch)).permutation(local)
                    for first in range(0, local, mini):
                        chosen = order[first : first + mini]
                        tokens = lengths[:, chosen].sum()  # of this mini-batch in all processes: what the losses are means over
                        scale = accelerator.gradient_accumulation_steps * world / tokens  # undoes accelerate's own division
                        parts = []
                        for at in range(0, mini, micro):
                            part = slice(at, at + micro)
                            if mini < local:
                                part = torch.as_tensor(chosen[part], device=device)
                            with accelerator.accumulate(actor, critic):
                                parts.append(
                                    learn_from(
                                        accelerator, actor, critic, take(inputs, part), roll, part, advantages, returns, values,
                                        clip_range, temperature, scale, faults, args, with_entropy=epoch == 0,
                                    )
                                )  # fmt: skip
                        done = update_metrics(accelerator, parts, tokens)
                        done["actor_grad_norm"] = clip_gradients(accelerator, weights["actor"], args.grad_clip)
                        done["critic_grad_norm"] = clip_gradients(accelerator, weights["critic"], args.grad_clip)
                        finite = all_finite(done["actor_grad_norm"], done["critic_grad_norm"])
                        apply = (
                            finite or accelerator.scaler is not None
                        )  # a loss scaler leaves such a step out itself, and learns from it
                        if apply and not faults("frozen_policy"):
                            actor_optimizer.step()
                        if apply and not faults("frozen_value"):
                            critic_optimizer.step()
                        actor_optimizer.zero_grad()
                        critic_optimizer.zero_grad()
                        done["update_applied"] = float(finite)
                        seen.append(done)
                        early = bool(args.max_update_kl) and done["kl"] > args.max_update_kl
                        if early or (not finite and args.on_nonfinite == "stop"):
                            break
                    if early or (not finite and args.on_nonfinite == "stop"):
                        break
                for sample in moved.values():
                    sample.measure()
                if faults("slow"):
                    time.sleep(faults("slow"))

        # 10. The numbers of the step: to the console, the trackers, the event log and the monitor.
        metrics |= {
            key: float(np.mean([done[key] for done in seen if key in done])) for key in dict.fromkeys(k for d in seen for k in d)
        }
        metrics |= {"ratio_min": min(done["ratio_min"] for done in seen), "ratio_max": max(done["ratio_max"] for done in seen)}
        metrics |= {"grad_norm": combined_norm(metrics["actor_grad_norm"], metrics["critic_grad_norm"])}
        metrics |= {name: float(value) for name, value in facts.items() if value is not None}
        metrics["distinct_prompts"] = float(seen_prompts.add(digests[i] for i in taken))
        metrics |= {name: change for name, sample in moved.items() if (change := sample.read()) is not None}
        metrics |= {"actor_lr": actor_rate, "critic_lr": rate, "clip_range": clip_range, "temperature": temperature}
        metrics |= {"updates": float(len(seen)), "kl_early_stop": float(early)}
        metrics |= {"advantage_normalized": float(not args.no_whiten), "advantage_raw": 1.0}
        if args.kl_target:
            metrics["target_kl"] = args.kl_target
        made = int(whole["mask"].sum())
        metrics |= clock.metrics(made, local * world)
        mfu = calculate_mfu(flops, metrics.get("tokens_per_second", math.nan), device, world)
        if mfu is not None:
            metrics["mfu_percent"] = mfu
        controller.update(metrics["kl_ref"], local * world)
        skipped = sum(not done["update_applied"] for done in seen)
        if skipped:
            notes.append(f"gradients were not finite: {skipped} of {len(seen)} updates skipped, weights unchanged by them")
        slice_info = {"tokens_in": int(ids_mask.sum()), "tokens_out": made, "samples": local * world}
        shown = show_samples(batch["texts"], roll, score, tokenizer) if logger.shows_samples(step) else []
        logger.log(step, metrics, notes, slice_info, shown)

        # 11. Reasons to leave, and checkpoints.
        if skipped and args.on_nonfinite == "stop":
            stopped = "gradients are not finite"
        elif stopper.requested(accelerator, also=logger.stop is not None):
            stopped = "told to by a signal" if stopper.signal else "the monitor confirmed a failure"
        if stopped or step == total or (args.save_interval and step % args.save_interval == 0):
            save(step)
        if stopped:
            break

    # 12. The weights for the next stage. A run that was cut short leaves its checkpoint only.
    if stopped:
        logger.say(f"stopped after step {step}: {stopped}. Checkpoint in {checkpoint_root(args)}; go on with --from_resume.")
        if logger.stop is not None:
            logger.say(str(logger.stop))
    else:
        place = save_weights(accelerator, actor, tokenizer, args)
        logger.say(f"finished after step {step}: weights in {place}")
    logger.close()
    stopper.close()
    accelerator.end_training()
    return stopper.exit_code or (1 if stopped else 0)


# What the acts above call: how the models see a rollout, the score, and one pass of an update.


def model_inputs(roll: Rollout) -> dict[str, Any]:
    """Tokens, mask and positions of prompt and response together."""
    positions = (roll.attention.cumsum(1) - 1).clamp(min=0)
    return {"input_ids": roll.tokens, "attention_mask": roll.attention, "position_ids": positions, "use_cache": False}


def take(inputs: dict[str, Any], part: torch.Tensor | slice) -> dict[str, Any]:
    return {key: value[part] if isinstance(value, torch.Tensor) else value for key, value in inputs.items()}


def tempered(logits: torch.Tensor, temperature: float) -> torch.Tensor:
    return logits.float() if temperature == 1.0 else logits.float() / temperature


def show_samples(texts: list[str], roll: Rollout, score: torch.Tensor, tokenizer: Any, count: int = 2) -> list[dict[str, Any]]:
    """The first prompts of a step with their responses and scores, for the event log."""
    words = tokenizer.batch_decode(roll.responses[:count], skip_special_tokens=True)
    return [
        {"prompt": prompt, "completion": said, "reward": round(float(reward), 6)}
        for prompt, said, reward in zip(texts[:count], words, score[:count], strict=True)
    ]


def score_of(judge: Any, texts: list[str], roll: Rollout, tokenizer: Any) -> torch.Tensor:
    """One number for each response, by the function or by the classifier."""
    if isinstance(judge, torch.nn.Module):
        inputs = model_inputs(roll)
        return judge(**inputs).logits[:, 0].float()
    words = tokenizer.batch_decode(roll.responses, skip_special_tokens=True)
    scores = torch.as_tensor(judge(texts, words), dtype=torch.float32)
    if scores.shape != (len(words),):
        raise ValueError(f"Expected the reward function to give {len(words)} numbers, got the shape {tuple(scores.shape)}.")
    return scores


def broken_score(score: torch.Tensor, roll: Rollout, faults: Faults, longest: int) -> torch.Tensor:
    """The score as injected faults leave it."""
    if (value := faults("constant_reward")) is not None:
        score = torch.full_like(score, value)
    if (value := faults("length_reward")) is not None:
        score = value * roll.mask.sum(1).float() / longest
    if (value := faults("noisy_reward")) is not None:
        score = score + value * torch.randn_like(score)
    if faults("flipped_reward") is not None:
        score = -score
    if (value := faults("reward_scale")) is not None:
        score = score * value ** faults.since("reward_scale")
    if (value := faults("nan_reward")) is not None:
        score = score.clone()
        score[:: max(int(value), 1)] = math.nan
    return score


def learn_from(
    accelerator: Accelerator, actor: Any, critic: Any, inputs: dict[str, Any], roll: Rollout, part: torch.Tensor | slice,
    advantages: torch.Tensor, returns: torch.Tensor, values: torch.Tensor, clip_range: float, temperature: float,
    scale: torch.Tensor, faults: Faults, args: argparse.Namespace, with_entropy: bool,
) -> dict[str, torch.Tensor]:  # fmt: skip
    """Forward and backward of both models over a part of the rollouts; the sums that its metrics are made of."""
    mask, old, tokens, width = roll.mask[part].bool(), roll.logprobs[part], roll.responses[part], roll.responses.shape[1]
    with accelerator.autocast():
        places = slice(inputs["input_ids"].shape[1] - width - 1, inputs["input_ids"].shape[1] - 1)
        logits = tempered(actor(**inputs, places=places).logits, temperature)
        predicted = critic(**inputs, places=places).logits[..., 0].float()
    logp = selected_logprobs(logits, tokens).where(mask, old)
    loss = policy_loss(logp, old, advantages[part], mask, clip_range, count=1)  # sums; `scale` makes them means
    error = value_loss(predicted, values[part], returns[part], mask, args.clip_range_value, count=1)
    sums: dict[str, torch.Tensor] = {}
    if args.entropy_coef or with_entropy:
        with torch.set_grad_enabled(args.entropy_coef > 0):
            entropy = masked_sum(entropy_of(logits), mask)
        sums["entropy"] = entropy.detach()
    bonus = args.entropy_coef * entropy if args.entropy_coef else 0.0
    broken = math.nan if faults("nan_loss") is not None else 1.0
    accelerator.backward((loss - bonus + error) * scale * broken)  # two graphs that share nothing: one pass back through both
    with torch.no_grad():
        ratio = (logp - old).exp()
        off = (predicted - values[part]).abs() > args.clip_range_value
        sums |= {"actor_loss": loss.detach() * broken, "critic_loss": error.detach() * broken}
        sums |= {
            "kl": update_kl(logp, old, mask, count=1),
            "clip_frac": clip_fraction(logp, old, mask, clip_range, count=1),
            "value_clip_frac": off.logical_and(mask).sum(),
            "ratio_sum": masked_sum(ratio, mask),
            "ratio_squares": masked_sum(ratio * ratio, mask),
            "ratio_min": ratio.masked_fill(~mask, 1.0).min(),
            "ratio_max": ratio.masked_fill(~mask, 1.0).max(),
        }
    return sums


if __name__ == "__main__":
    with main_guard():
        sys.exit(main())
