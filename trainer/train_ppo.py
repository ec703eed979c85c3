"""Reinforcement learning from a supervised policy, with a reward and a KL penalty: PPO, GRPO, RLOO or Dr. GRPO.

    python trainer/train_ppo.py --data_config config/data/posttrain/rlaif/ppo.yaml --from_weight full_sft --use_prepared \
        --epochs 1 --batch_size 8 --learning_rate 1e-6 --device cpu

Read it from top to bottom. Formulas are in rldk.functional, flags in ppo_arguments.py, models in ppo_models.py, generation in
rollout.py, the experience of a step in experience.py, rewards in scoring.py, losses in ppo_losses.py.
"""

from __future__ import annotations

import thread_policy  # isort: skip  # noqa: F401  before torch

import sys

import torch

from advantages import raw_advantages, whitened
from arguments import main_guard
from chat_tokens import end_tokens
from data_config import read_config
from data_mix import load_records
from data_order import Cut, batch_indices, steps_in
from data_sets import Prompts
from experience import answers, judged, kl_after
from faults import Faults, StepSettings
from held_out import Examiner
from logger import Logger, Throughput
from machine import leave, make_accelerator, seed_everything, set_threads
from memory_plan import show_plan
from models import count_parameters, load_tokenizer, save_weights
from optimization import all_finite, learning_rate_at
from ppo_arguments import get_args
from ppo_losses import losses
from ppo_metrics import RunFacts, flops_of_step, gathered, rollout_metrics, step_metrics, update_metrics
from ppo_models import Learners
from rldk.functional.kl import AdaptiveKL, FixedKL, estimate_kl
from rldk.functional.mismatch import truncated_importance
from rldk.functional.policy import token_weights
from rldk.functional.throughput import calculate_mfu
from rollout import Scored, sampling_noise
from rollout_engines import make_engine
from run_checkpoints import RunCheckpoints
from scoring import load_scorer
from stopping import SkippedUpdates, Stopper

CONSOLE = [
    ("actor_loss", "actor_loss", "{:.6f}"),
    ("critic_loss", "critic_loss", "{:.6f}"),
    ("reward", "reward", "{:.4f}"),
    ("kl", "kl", "{:.4f}"),
    ("grad_norm_actor", "actor_grad_norm", "{:.4f}"),
    ("tokens/s", "tokens_per_second", "{:.0f}"),
    ("MFU", "mfu_percent", "{:.2f}%"),
]


def main(argv: list[str] | None = None) -> int:
    args = get_args(argv)
    if args.plan:
        return show_plan(args)
    faults = Faults(args.inject, longest=args.max_new_tokens)

    # 1. How a step is divided: the responses per process, per update and per pass.
    cut = Cut.of(args)
    accelerator = make_accelerator(args, accumulation_steps=cut.mini // cut.micro)
    device, rank, world = accelerator.device, accelerator.process_index, accelerator.num_processes
    responses = cut.local * world

    # 2. Models: the policy, the frozen reference, the value model if it is needed, and the scorer.
    tokenizer = load_tokenizer(args)
    learners = Learners(args, tokenizer, device)
    policy, ends = learners.policy, end_tokens(tokenizer, learners.policy)
    scorer = load_scorer(args, tokenizer, device)
    threads = set_threads(args, device, count_parameters(policy, False))
    sizes = learners.sizes | {"reward": scorer.parameters}

    # 3. Data. Which prompts a step takes is a function of the step; each is taken --num_generations times.
    prompts = Prompts(load_records(read_config(args.data_config), args.use_prepared), tokenizer, args.max_seq_len)
    taken_each = responses // args.num_generations
    per_epoch, total = steps_in(len(prompts), taken_each, args.epochs, args.max_steps)

    # 4. The state of an interrupted run.
    controller = AdaptiveKL(args.kl_coef, args.kl_target, args.kl_horizon) if args.kl_target else FixedKL(args.kl_coef)
    checkpoints = RunCheckpoints(args, accelerator, responses, prompts)
    state = checkpoints.resume(learners.models, learners.optimizers)
    begin = state["step"]
    if begin:
        controller.load_state_dict(state["kl_controller"])
    learners.prepare(accelerator)
    facts = RunFacts(args, learners, prompts)
    facts.resume(min(begin, per_epoch), taken_each, args.seed)  # after an epoch all prompts were seen

    # 5. The clock, the logs, and what may end the run.
    clock = Throughput(device, per_epoch, total, done=begin)
    clock.tokens = state.get("tokens", 0)
    logger = Logger(
        args, accelerator, CONSOLE, per_epoch, total, resume_step=begin if args.from_resume else None,
        monitor_state=state.get("monitor"), kl_target=args.kl_target,
    )  # fmt: skip
    stopper, skipped = Stopper(), SkippedUpdates(args.max_skipped_updates)
    count = " + ".join(f"{count_parameters(model, False):,}" for model in learners.models.values())
    logger.say(
        f"{args.advantage} on {device}, {world} process(es): {count} parameters, {len(prompts)} prompts, "
        f"{total} steps of {responses} responses"
    )
    for sentence in (threads, *checkpoints.said):
        logger.say(sentence)

    engine = make_engine(args, policy, tokenizer, cut.micro, world)
    examiner = Examiner(args, accelerator, tokenizer, scorer)
    if not begin:
        examiner.before(policy, logger)

    stopped, step = "", begin
    for step in range(begin + 1, total + 1):
        seed_everything(args.seed, step, rank)
        with clock.step():
            rates = [learning_rate_at(step - 1, total, args, peak) for peak in learners.peaks.values()]
            settings = faults(
                StepSettings(step, *rates, controller.coef, args.temperature, args.clip_range, args.clip_range_high, ends)
            )

            # 6. Rollouts: this process's prompts of the step, one noise number for each sample and token.
            rows = slice(rank * cut.local, (rank + 1) * cut.local)
            taken = batch_indices(len(prompts), taken_each, step - 1, args.seed)
            batch = prompts.collate([prompts[i] for i in taken for _ in range(args.num_generations)][rows])
            with clock.span("generation"), accelerator.autocast():
                noise = sampling_noise(args.seed, step, responses, args.max_new_tokens)[rows]
                if settings.sync_engine:
                    engine.sync(policy)
                roll = engine.respond(batch, noise, settings)
                learners.train()

            # 7. Experience: the score of every response, and the outputs of policy, reference and critic for its tokens.
            with clock.span("scoring"), torch.no_grad():
                with accelerator.autocast():
                    score = scorer(batch, roll).to(device) - args.missing_eos_penalty * (~roll.ended).float()
                scored = faults(Scored(batch, roll, score))
                roll, score, mask = scored.roll, scored.score, scored.roll.mask.bool()
                experience, entropy, graph = judged(accelerator, learners, roll, cut.micro, settings.temperature)
                experience.old = roll.old = experience.old if roll.old is None else roll.old  # rollouts used again have theirs
                kl = estimate_kl(experience.old, experience.reference, args.kl_estimator).masked_fill(~mask, 0.0)

                # 8. Advantages: at each token by GAE, or for each response from the scores of its group.
                paid = settings.kl_coef * kl if args.kl_in == "reward" else torch.zeros_like(kl)
                raw = raw_advantages(args, experience, score, paid)
                found = {"score": score, "kl": kl, "raw": raw, "old": experience.old, "entropy": entropy}
                found |= {} if learners.critic is None else {"values": experience.values, "returns": experience.returns}
                whole = gathered(accelerator, roll, **found)
                metrics = rollout_metrics(whole, settings.kl_coef, args.num_generations)
                experience.advantages = whitened(raw, mask, whole) if facts.facts["advantage_normalized"] else raw
                if args.truncated_importance:
                    experience.importance = truncated_importance(experience.old, roll.logprobs, args.truncated_importance)

            # 9. Updates: some epochs over the rollouts, with a step of the optimizers for each mini-batch.
            with clock.span("update"):
                learners.set_learning_rates(settings)
                lengths = whole["mask"].sum(1).view(world, cut.local)
                seen: list[dict[str, float]] = []
                early = False
                for chosen in cut.mini_batches(args, step):
                    tokens = int(lengths[:, chosen].sum())  # of this mini-batch in all processes
                    parts = []
                    for at in range(0, cut.mini, cut.micro):
                        part = experience.part(torch.as_tensor(chosen[at : at + cut.micro], device=device))
                        weights = token_weights(part.mask, args.loss_aggregation, tokens, cut.mini * world, args.max_new_tokens)
                        with accelerator.accumulate(*learners.trained):
                            said = graph or answers(accelerator, learners, part, settings.temperature, args.entropy_coef > 0)
                            loss, sums = losses(args, settings, part, said, weights, tokens)
                            # accelerate divides by the passes and averages over the processes: both are undone, the mean is ours
                            accelerator.backward(loss * accelerator.gradient_accumulation_steps * world)
                        parts.append(sums)
                        graph = None  # the first update starts from the pass that `old` came from, where one pass is a step
                    done = update_metrics(accelerator, parts, tokens)
                    early = bool(args.max_update_kl) and done["kl"] > args.max_update_kl
                    if early:  # the updates before this one have moved the policy far enough
                        learners.zero_grad()
                        break
                    norms = learners.clip_gradients(accelerator, args.grad_clip)
                    finite = all_finite(*norms.values())
                    skipped.add(finite)
                    if finite or accelerator.scaler is not None:  # a loss scaler skips such a step itself
                        learners.step(accelerator, settings.frozen)
                    learners.zero_grad()
                    seen.append(done | norms | {"update_applied": float(finite)})
                    if skipped.dead or (not finite and args.on_nonfinite == "stop"):
                        break
                facts.weights_changed()
                metrics["kl"] = kl_after(accelerator, learners, experience, cut.micro, settings.temperature, lengths)

        # 10. The numbers of the step: to the console, the trackers, the event log and the monitor.
        metrics = step_metrics(seen) | metrics | facts.metrics(taken)
        metrics |= {"actor_lr": settings.learning_rate, "clip_range": settings.clip_low, "temperature": settings.temperature}
        metrics |= {} if learners.critic is None else {"critic_lr": settings.critic_learning_rate}
        metrics |= {"updates": float(len(seen)), "kl_early_stop": float(early)}
        counts = torch.stack([scored.batch["attention_mask"].sum(), roll.mask.sum()]).to(device)
        read, made = accelerator.reduce(counts, "sum").tolist()
        metrics |= clock.metrics(made, responses)
        flops = flops_of_step(cut, sizes, read + made, len(seen))
        mfu = calculate_mfu(flops / max(made, 1), metrics["tokens_per_second"], device, world)
        metrics |= {} if mfu is None else {"mfu_percent": mfu}
        controller.update(metrics["kl_ref"], responses)
        notes = list(settings.notes)
        lost = sum(not done["update_applied"] for done in seen)
        if lost:
            notes.append(f"gradients were not finite: {lost} of {len(seen)} updates were skipped")
        shown = scored.shown(tokenizer) if logger.shows_samples(step) else []
        held_out, asked = examiner.after(step, total, policy, logger)
        counts_of_step = {"tokens_in": read, "tokens_out": made, "samples": responses}
        logger.log(step, metrics | held_out, notes, counts_of_step, [*shown, *asked])

        # 11. Reasons to stop, and checkpoints.
        if stopper.requested(accelerator, also=logger.stop is not None):
            stopped = "stopped by a signal" if stopper.signal else "the monitor confirmed a failure"
        elif lost and args.on_nonfinite == "stop":
            stopped = "gradients are not finite"
        else:
            stopped = skipped.dead or (skipped.nothing_learnt if step == total else "")
        if stopped or step == total or (args.save_interval and step % args.save_interval == 0):
            kept = {"kl_controller": controller.state_dict(), "monitor": logger.state_dict(), "tokens": clock.tokens}
            checkpoints.save(step, learners.models, learners.optimizers, kept, logger.say)
        if stopped:
            break

    # 12. The weights for the next stage, and the critic's. A run that was stopped leaves only its checkpoint.
    if stopped:
        logger.say(f"stopped after step {step}: {stopped}. {checkpoints.way_back}")
        if logger.stop is not None:
            logger.say(str(logger.stop))
    else:
        place = save_weights(accelerator, policy, tokenizer, args)
        if learners.critic is not None:
            save_weights(accelerator, learners.models["critic"], tokenizer, args, f"{args.save_weight}_critic")
        logger.say(f"finished after step {step}: weights in {place}")
    engine.close()
    logger.close()
    stopper.close()
    leave(accelerator)
    return stopper.exit_code or (1 if stopped else 0)


if __name__ == "__main__":
    with main_guard():
        sys.exit(main())
