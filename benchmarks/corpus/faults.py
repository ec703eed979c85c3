"""The faults: what each does to a training, which families of anomaly may name it, and its cause.

A kind of fault is a row of `FAULTS`. Its function changes the `Plan` of a healthy run; `mid` ones begin in the middle of it.
Families and causes are those of `vocabulary.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from corpus.plan import Batch, Live, Plan

__all__ = ["FAULTS", "Fault"]

ONLINE = ("ppo", "grpo", "rloo", "ours")
GROUPS = ("grpo", "rloo")
EVERY = ("ppo", "grpo", "rloo", "dpo", "ours")


@dataclass(frozen=True)
class Fault:
    """One kind of fault; `mid` says that it begins in the middle of the run, `judge_only` that rules never see it.

    `hidden` says that the log is that of a healthy run which learns another task: metrics alone cannot tell. `later` says
    that it was added after the first recording: only `settings.ADDED` gives it runs.
    """

    trainers: tuple[str, ...]
    families: tuple[str, ...]
    cause: str
    apply: Callable[[Plan], None]
    mid: bool = False
    judge_only: bool = False
    hidden: bool = False
    later: bool = False


# Rewards.


def _reward(edit: Callable[[Plan, list, Batch], list]) -> Callable[[Plan], None]:
    return lambda plan: plan.reward_edits.append(lambda scores, batch: edit(plan, scores, batch))


def _each(edit: Callable[[Plan, float, str, list[str]], float | None]) -> Callable[[Plan], None]:
    """A reward that is a function of the score, the prompt and the words of one response."""
    return _reward(lambda plan, scores, batch: [edit(plan, *one) for one in zip(scores, batch.prompts, batch.words, strict=True)])


def _constant(value: float) -> Callable[[Plan], None]:
    return _each(lambda plan, score, prompt, words: value)


def _random(plan: Plan, score: float, prompt: str, words: list[str]) -> float:
    return plan.chance.gauss(0.3, 0.4)


def _one_batch(value: float) -> Callable[[Plan], None]:
    """One score of the first batch from the onset on."""

    def apply(plan: Plan) -> None:
        done: list[int] = []

        def edit(scores: list, batch: Batch) -> list:
            if done:
                return scores
            done.append(batch.update)
            return [value, *scores[1:]]

        plan.reward_edits.append(edit)

    return apply


def _half_missing(plan: Plan, scores: list, batch: Batch) -> list:
    absent = None if plan.setting.trainer in GROUPS else math.nan
    return [absent if number % 2 else score for number, score in enumerate(scores)]


def _shuffled(plan: Plan, scores: list, batch: Batch) -> list:
    """The scores of a group given to the wrong responses."""
    mixed = []
    for first in range(0, len(scores), batch.group):
        part = list(scores[first : first + batch.group])
        plan.chance.shuffle(part)
        mixed += part
    return mixed


def _growing(plan: Plan, scores: list, batch: Batch) -> list:
    return [score * 1.15 ** (batch.update - plan.onset) for score in scores]


def _noisy(plan: Plan, score: float, prompt: str, words: list[str]) -> float:
    return score + plan.chance.gauss(0.0, 5.0)


# Configuration: the same knob under the name each trainer has for it.

KNOBS = {
    "lr": {
        "ppo": "learning_rate",
        "grpo": "learning_rate",
        "rloo": "learning_rate",
        "dpo": "learning_rate",
        "ours": "learning_rate",
    },
    "beta": {"ppo": "kl_coef", "grpo": "beta", "rloo": "beta", "dpo": "beta", "ours": "kl_coef"},
    "length": {
        "ppo": "response_length",
        "grpo": "max_completion_length",
        "rloo": "max_completion_length",
        "ours": "max_new_tokens",
    },
    "temperature": {"ppo": "temperature", "grpo": "temperature", "rloo": "temperature", "ours": "temperature"},
    "epochs": {"ppo": "num_ppo_epochs", "grpo": "num_iterations", "rloo": "num_iterations", "ours": "ppo_epochs"},
    "clip": {"ppo": "cliprange", "grpo": "epsilon", "rloo": "epsilon", "ours": "clip_range"},
    "grad_clip": {"grpo": "max_grad_norm", "rloo": "max_grad_norm", "dpo": "max_grad_norm", "ours": "grad_clip"},
    "batch": {"ppo": "per_device_train_batch_size", "ours": "batch_size"},
}


def _set(knob: str, value: float | Callable[[Plan], float]) -> Callable[[Plan], None]:
    def apply(plan: Plan) -> None:
        plan.options[KNOBS[knob][plan.setting.trainer]] = value(plan) if callable(value) else value

    return apply


def _many_epochs(plan: Plan) -> None:
    _set("epochs", 20)(plan)
    if plan.setting.trainer == "ours":
        plan.options["max_update_kl"] = 0


def _batch_of_two(plan: Plan) -> None:
    if plan.setting.trainer in GROUPS:
        plan.options |= {"per_device_train_batch_size": 2, "num_generations": 2}
    else:
        _set("batch", 2)(plan)


def _learning_rate(times: float) -> Callable[[Plan], None]:
    """Multiply the learning rate, at the start or in the middle."""

    def change(live: Live) -> None:
        if live.scheduler is not None:
            live.scheduler.base_lrs = [rate * times for rate in live.scheduler.base_lrs]
        for optimizer in live.optimizers:
            for group in optimizer.param_groups:
                group["lr"] *= times

    def apply(plan: Plan) -> None:
        if plan.setting.trainer == "ours":
            plan.inject.append(f"lr={times!r}@{max(plan.onset, 1)}")
        elif plan.onset == 0:
            plan.options["learning_rate"] = plan.setting.lr * times
        else:
            plan.at_onset(change)

    return apply


def _coefficient(value: float) -> Callable[[Plan], None]:
    """Set the KL coefficient in the middle of a run."""

    def change(live: Live) -> None:
        if live.plan.setting.trainer == "ppo":
            live.trainer.args.kl_coef = value
        else:
            live.trainer.beta = value

    def apply(plan: Plan) -> None:
        if plan.setting.trainer == "ours":
            plan.inject.append(f"kl_coef={value!r}@{plan.onset}")
        else:
            plan.at_onset(change)

    return apply


def _unstable_controller(plan: Plan) -> None:
    """A controller that overreacts to its error, tenfold."""
    if plan.setting.trainer == "ours":
        plan.options |= {"kl_target": 0.02, "kl_horizon": plan.setting.batch * 1.5}
        return

    def turn(live: Live) -> None:
        kl, goal = live.logs.get("objective/kl", live.logs.get("kl")), 1.0 if plan.setting.trainer == "ppo" else 0.08
        if kl is None or not math.isfinite(kl):
            return
        push = math.exp(max(-1.0, min(1.0, 2.0 * (kl / goal - 1.0))))
        if plan.setting.trainer == "ppo":
            live.trainer.args.kl_coef = min(50.0, max(1e-4, live.trainer.args.kl_coef * push))
        else:
            live.trainer.beta = min(50.0, max(1e-4, live.trainer.beta * push))

    plan.every_update.append(turn)


# Models and optimizers.


def _shared_reference(plan: Plan) -> None:
    def share(live: Live) -> None:
        live.trainer.ref_model = live.policy

    plan.after_build.append(share)


def _foreign_reference(plan: Plan) -> None:
    """Another model of the same shape if one exists; else the reference with most of its weights overwritten by noise."""

    def replace(live: Live) -> None:
        if plan.setting.shape == "llama-small":
            live.reference.load_state_dict(live.foreign())
        else:
            _perturb(live.reference, 0.8, 3)

    plan.after_build.append(replace)


def _perturb(model: object, share: float, seed: int) -> None:
    import torch

    noise = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():  # type: ignore[attr-defined]
            spread = weight.float().std() if weight.numel() > 1 else 0.0
            weight.add_((torch.randn(weight.shape, generator=noise) * share * spread).to(weight.dtype))


def _perturbed(share: float) -> Callable[[Plan], None]:
    return lambda plan: plan.at_onset(lambda live: _perturb(live.policy, share, plan.seed))


def _old_weights(plan: Plan) -> None:
    def load(live: Live) -> None:
        live.policy.load_state_dict(live.early_weights)

    plan.at_onset(load)


def _lost_optimizer(plan: Plan) -> None:
    plan.at_onset(lambda live: [optimizer.state.clear() for optimizer in live.optimizers])


def _frozen_policy(plan: Plan) -> None:
    """PPO: the policy's weights want no gradient. The others: the optimizer holds copies of the weights, not the weights."""
    if plan.setting.trainer == "ours":
        plan.inject.append("frozen_policy")
    elif plan.setting.trainer == "ppo":
        plan.after_build.append(lambda live: live.policy.requires_grad_(False))
    else:

        def copies(live: Live) -> None:
            if live.plan.update == 1:
                for optimizer in live.optimizers:
                    for group in optimizer.param_groups:
                        group["params"] = [weight.detach().clone().requires_grad_() for weight in group["params"]]

        plan.every_update.append(copies)


def _frozen_value(plan: Plan) -> None:
    if plan.setting.trainer == "ours":
        plan.inject.append("frozen_value")
    else:
        plan.after_build.append(lambda live: live.value.requires_grad_(False))


def _value_weight(times: float) -> Callable[[Plan], None]:
    return lambda plan: plan.options.__setitem__("vf_coef", 0.1 * times)


def _value_rate(times: float) -> Callable[[Plan], None]:
    return lambda plan: plan.inject.append(f"critic_lr={times!r}@{max(plan.onset, 1)}")


def _overwritten_value(plan: Plan) -> None:
    plan.at_onset(lambda live: _perturb(live.value, 3.0, plan.seed))


def _no_eos(plan: Plan) -> None:
    from corpus.world import EOS

    if plan.setting.trainer == "ours":
        plan.inject.append(f"no_eos@{max(plan.onset, 1)}")
    else:
        plan.at_onset(lambda live: plan.blocked.append(EOS))


def _excluded(plan: Plan) -> None:
    plan.options |= {"mask_truncated_completions": True, "max_completion_length": 5}


def _unscaled(plan: Plan) -> None:
    if plan.setting.trainer == "ours":
        plan.options["no_whiten"] = True
    else:
        plan.options["scale_rewards"] = "none"


def _switched_data(plan: Plan) -> None:
    """Prompts with their words in the reverse order, from the onset on. Loaders fetch one batch ahead."""

    def edit(text: str, update: int) -> str:
        words = [word for word in text.split() if word != "?"]
        return text if update + 1 < plan.onset else " ".join([*reversed(words), "?"])

    plan.prompt_edit = edit


def _few_prompts(plan: Plan) -> None:
    plan.prompts = 2


def _two_epochs_stale(plan: Plan) -> None:
    plan.inject.append(f"stale_rollouts@{max(plan.onset, 1)}")


# Preference pairs.


def _swapped(share: float) -> Callable[[Plan], None]:
    def edit(plan: Plan, pairs: list[dict[str, str]]) -> list[dict[str, str]]:
        return [
            {**pair, "chosen": pair["rejected"], "rejected": pair["chosen"]} if plan.chance.random() < share else pair
            for pair in pairs
        ]

    return lambda plan: plan.pair_edits.append(lambda pairs: edit(plan, pairs))


FAULTS: dict[str, Fault] = {
    # The reward function.
    "reward_constant": Fault(ONLINE, ("reward", "gradients", "advantages"), "reward_constant", _constant(0.5)),
    "reward_constant_mid": Fault(ONLINE, ("reward", "gradients", "advantages"), "reward_constant", _constant(0.0), mid=True),
    "reward_constant_below_best": Fault(ONLINE, ("reward", "gradients", "advantages"), "reward_constant", _constant(0.4), mid=True),
    "reward_flipped": Fault(ONLINE, ("reward", "policy"), "reward_flipped", _each(lambda plan, score, *_: -score), hidden=True),
    "reward_flipped_mid": Fault(ONLINE, ("reward", "policy"), "reward_flipped", _each(lambda plan, score, *_: -score), mid=True),
    "reward_offset_down": Fault(ONLINE, ("reward",), "reward_changed", _each(lambda plan, score, *_: score - 5.0), mid=True),
    "reward_offset_up": Fault(ONLINE, ("reward",), "reward_changed", _each(lambda plan, score, *_: score + 5.0), mid=True, judge_only=True),
    "reward_scaled_up": Fault(ONLINE, ("reward", "value", "advantages"), "reward_changed", _each(lambda plan, score, *_: 50.0 * score), mid=True),
    "reward_scaled_down": Fault(ONLINE, ("reward", "gradients", "advantages"), "reward_changed", _each(lambda plan, score, *_: 0.01 * score), mid=True),
    "reward_growing": Fault(("ppo", "ours", "grpo"), ("reward", "value", "advantages", "run"), "reward_changed", _reward(_growing), mid=True, judge_only=True),
    "reward_random": Fault(ONLINE, ("reward",), "reward_random", _each(_random)),
    "reward_random_mid": Fault(ONLINE, ("reward",), "reward_random", _each(_random), mid=True),
    "reward_noisy": Fault(ONLINE, ("reward", "advantages"), "reward_too_noisy", _each(_noisy)),
    "reward_prompt_only": Fault(ONLINE, ("reward", "gradients", "advantages"), "reward_ignores_response", _each(lambda plan, score, prompt, words: (sum(map(ord, prompt)) % 11) / 10), judge_only=True),
    "reward_nan": Fault(ONLINE, ("reward", "run"), "reward_nonfinite", _constant(math.nan), mid=True),
    "reward_nan_once": Fault(ONLINE, ("reward", "run"), "reward_nonfinite", _one_batch(math.nan), mid=True),
    "reward_inf_once": Fault(ONLINE, ("reward", "run"), "reward_nonfinite", _one_batch(math.inf), mid=True),
    "reward_half_missing": Fault(ONLINE, ("reward", "run"), "reward_missing", _reward(_half_missing)),
    "reward_half_missing_mid": Fault(ONLINE, ("reward", "run"), "reward_missing", _reward(_half_missing), mid=True),
    "reward_length": Fault(ONLINE, ("reward", "length"), "reward_pays_for_length", _each(lambda plan, score, prompt, words: 0.1 * len(words))),
    "reward_length_mid": Fault(ONLINE, ("reward", "length"), "reward_pays_for_length", _each(lambda plan, score, prompt, words: 0.1 * len(words)), mid=True),
    "reward_token": Fault(ONLINE, ("reward", "policy", "length"), "reward_exploited", _each(lambda plan, score, prompt, words: 0.3 * words.count("very"))),
    "reward_format": Fault(ONLINE, ("reward", "policy"), "reward_exploited", _each(lambda plan, score, prompt, words: 0.5 * (words[:1] == ["well"]) + 0.5 * (words[-1:] == ["."])), hidden=True),
    "reward_exploitable": Fault(ONLINE, ("reward", "policy", "length"), "reward_exploited", _each(lambda plan, score, prompt, words: score + 0.25 * sum(word in ("very", "and") for word in words))),
    "reward_shuffled": Fault(ONLINE, ("reward",), "reward_random", _reward(_shuffled)),
    # The learning rate.
    "lr_x30": Fault(EVERY, ("run", "policy", "kl", "gradients"), "learning_rate_too_high", _learning_rate(30.0)),
    "lr_x100": Fault(EVERY, ("run", "policy", "kl", "gradients"), "learning_rate_too_high", _learning_rate(100.0)),
    "lr_x30_mid": Fault(EVERY, ("run", "policy", "kl", "gradients"), "learning_rate_too_high", _learning_rate(30.0), mid=True),
    "lr_x100_mid": Fault(EVERY, ("run", "policy", "kl", "gradients"), "learning_rate_too_high", _learning_rate(100.0), mid=True),
    "lr_zero": Fault(EVERY, ("run", "reward", "gradients"), "learning_rate_too_low", _set("lr", 0.0)),
    "lr_1e6": Fault(EVERY, ("run", "policy", "kl", "gradients"), "learning_rate_too_high", _set("lr", 1e6)),
    "lr_tiny": Fault(EVERY, ("run", "reward", "gradients"), "learning_rate_too_low", _set("lr", lambda plan: plan.setting.lr * 1e-3)),
    "lr_gone_early": Fault(EVERY, ("run", "reward", "gradients"), "learning_rate_too_low", _learning_rate(1e-5), mid=True),
    # The KL penalty and its reference.
    "kl_coef_zero": Fault(("ppo", "ours"), ("kl", "policy"), "kl_penalty_too_weak", _set("beta", 0.0)),
    "kl_coef_zero_mid": Fault(ONLINE, ("kl", "policy"), "kl_penalty_too_weak", _coefficient(0.0), mid=True),
    "kl_coef_tiny": Fault(ONLINE, ("kl", "policy"), "kl_penalty_too_weak", _set("beta", 1e-6)),
    "kl_coef_huge": Fault(ONLINE, ("kl", "reward"), "kl_penalty_too_strong", _set("beta", 20.0)),
    "kl_coef_huge_mid": Fault(ONLINE, ("kl", "reward"), "kl_penalty_too_strong", _coefficient(20.0), mid=True, judge_only=True),
    "kl_coef_negative": Fault(("ppo", "grpo", "rloo"), ("kl", "policy"), "kl_penalty_negative", _set("beta", -0.2)),
    "kl_coef_negative_mid": Fault(("ppo", "grpo", "ours"), ("kl", "policy"), "kl_penalty_negative", _coefficient(-0.3), mid=True, judge_only=True),
    "reference_shared": Fault(("ppo", "grpo", "rloo"), ("kl",), "reference_wrong", _shared_reference),
    "reference_foreign": Fault(("ppo", "grpo", "rloo", "dpo"), ("kl", "reward"), "reference_wrong", _foreign_reference),
    "controller_unstable": Fault(("ppo", "grpo", "ours"), ("kl",), "kl_controller_unstable", _unstable_controller, judge_only=True),
    # Sampling.
    "eos_impossible": Fault(ONLINE, ("length", "policy"), "responses_cannot_end", _no_eos),
    "eos_impossible_mid": Fault(ONLINE, ("length", "policy"), "responses_cannot_end", _no_eos, mid=True),
    "cut_at_two": Fault(ONLINE, ("length", "reward"), "responses_cut_short", _set("length", 2)),
    "truncated_excluded": Fault(GROUPS, ("length", "reward", "gradients"), "responses_cut_short", _excluded),
    "temperature_low": Fault(ONLINE, ("policy", "reward"), "temperature_wrong", _set("temperature", 0.05)),
    "temperature_high": Fault(ONLINE, ("policy", "reward", "length"), "temperature_wrong", _set("temperature", 3.0)),
    "dropout_active": Fault(("ppo", "grpo", "rloo", "dpo"), ("kl", "policy"), "dropout_active", lambda plan: setattr(plan, "dropout", 0.3), judge_only=True),
    "rollouts_stale": Fault(("ours",), ("policy", "reward", "kl"), "rollouts_stale", _two_epochs_stale, mid=True, judge_only=True),
    # The models.
    "policy_frozen": Fault(EVERY, ("gradients", "run", "reward", "kl"), "policy_frozen", _frozen_policy),
    "value_frozen": Fault(("ppo", "ours"), ("value", "gradients"), "value_frozen", _frozen_value),
    "value_loss_off": Fault(("ppo",), ("value", "gradients"), "value_frozen", _value_weight(0.0), judge_only=True),
    "value_loss_x100": Fault(("ppo",), ("value", "gradients", "advantages"), "value_diverged", _value_weight(100.0)),
    "value_lr_x100": Fault(("ours",), ("value", "gradients", "advantages"), "value_diverged", _value_rate(100.0)),
    "value_overwritten": Fault(("ppo", "ours"), ("value", "gradients", "advantages"), "value_overwritten", _overwritten_value, mid=True, judge_only=True),
    "weights_old": Fault(EVERY, ("reward", "kl", "policy", "run"), "weights_replaced", _old_weights, mid=True),
    "weights_perturbed": Fault(EVERY, ("reward", "kl", "policy", "run"), "weights_replaced", _perturbed(0.5), mid=True),
    "weights_perturbed_slightly": Fault(EVERY, ("reward", "kl", "policy", "run"), "weights_replaced", _perturbed(0.05), mid=True),
    "optimizer_lost": Fault(EVERY, ("gradients", "run"), "optimizer_state_lost", _lost_optimizer, mid=True, judge_only=True),
    "precision_low": Fault(("dpo",), ("gradients", "run", "reward"), "precision_too_low", lambda plan: setattr(plan, "dtype", "bfloat16"), judge_only=True),
    # The update.
    "epochs_20": Fault(("ppo", "ours"), ("policy", "kl", "gradients"), "too_many_epochs", _many_epochs, judge_only=True),
    "clip_wide": Fault(("ppo", "grpo", "ours"), ("policy", "kl"), "clip_range_wrong", _set("clip", 1000.0)),
    "clip_narrow": Fault(("ppo", "grpo", "ours"), ("policy", "reward"), "clip_range_wrong", _set("clip", 0.0005)),
    "grad_clip_tiny": Fault(("grpo", "rloo", "dpo", "ours"), ("gradients", "reward", "run"), "gradient_clip_too_tight", _set("grad_clip", 1e-6)),
    "grad_clip_off": Fault(("grpo", "rloo", "dpo", "ours"), ("gradients",), "gradients_unclipped", _set("grad_clip", lambda plan: 0.0 if plan.setting.trainer == "ours" else 1e9)),
    "advantages_unscaled": Fault(("grpo", "ours"), ("advantages", "gradients"), "advantages_unscaled", _unscaled),
    "batch_of_two": Fault(ONLINE, ("reward", "gradients", "advantages"), "batch_too_small", _batch_of_two, judge_only=True),
    # The data.
    "two_prompts": Fault(EVERY, ("reward", "policy", "run"), "too_few_prompts", _few_prompts, judge_only=True),
    "data_switched": Fault(("ppo", "grpo", "rloo"), ("reward", "length", "policy"), "data_changed", _switched_data, mid=True, judge_only=True),
    "labels_swapped": Fault(("dpo",), ("preference", "reward"), "labels_swapped", _swapped(1.0), hidden=True),
    "labels_random": Fault(("dpo",), ("preference", "reward"), "labels_noisy", _swapped(0.5)),
    "dpo_beta_tiny": Fault(("dpo",), ("preference", "kl"), "preference_beta_wrong", _set("beta", 1e-4)),
    "dpo_beta_huge": Fault(("dpo",), ("preference", "kl", "reward"), "preference_beta_wrong", _set("beta", 50.0)),
}  # fmt: skip
